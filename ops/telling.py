"""The telling: stories of orders and runs laid out for a terminal, in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledgers.events import Event
from ledgers.layout import TEXT_WIDTH, labelled, wrapped
from ledgers.money import TokenRaw, Wei, decimal_text
from ledgers.postings import ETH, Entry
from ledgers.report import UNMEASURED, eth_text, percent_text
from ops.further_gaps import NAMES, RULES, OrderGap
from ops.lines import DECIDED, asked_text, because, counted, detail_text, fill_text, ledgers_text, line_of, plain, reverted_text, seconds_text, turn_end
from ops.names import amount_text, token_text
from ops.position_telling import ACCOUNTS, BLANK, accrual_chapters, asked_chapters, opening_chapters, position_chapters, positions_chapters
from ops.story import OrderStory, RunStory, order_gaps, outcome_word, why
from referee.onchain.book import SHARES
from referee.onchain.decision import CLOSE_LP, OPEN_LP
from referee.onchain.events import (
    HEADLINE, PERMISSIVE, BoardTaken, BundleShown, DecisionTaken, FillCredited, GateTaken, OrderNotFilled, OrderRefused,
    RouteReverted, RouteSimulated, RouteUnprovable, Row, TickMissed, TurnPlayed, Woken,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened

LABEL_CHARS = 10
HASH_SHOWN = 16
COLUMNS_APART, HANGING = "  ", "      "
"""What is between the columns of a text, and what its next line begins with when it does not fit into one."""


# --- one order ------------------------------------------------------------------------------------------------------


def order_text(story: RunStory, order: OrderStory, width: int = TEXT_WIDTH) -> str:
    """Tell one order."""
    assert story.window is not None
    head = f"{story.run_id} · order {order.number} of {len(story.orders)} · {order.order_id} · {story.window.label}"
    return "\n".join([*_headed(head, width), *_laid_out(_chapters(story, order), width)]) + "\n"


def _headed(head: str, width: int) -> list[str]:
    """Underline a heading, broken where it would not fit."""
    lines = wrapped(head, width)
    return [*lines, "═" * max(map(len, lines))]


def _chapters(story: RunStory, order: OrderStory) -> Iterator[tuple[str, str]]:
    yield "asked", asked_text(order.asked, story.names)
    pooled = order.asked.side in (OPEN_LP, CLOSE_LP)
    yield from asked_chapters(order.asked, _pool_sides(story, order.asked.pool), story.names) if pooled else [("token", order.asked.token)]
    for _, event in story.turns.get(order.tick, []):
        yield from _turn_chapter(story, event)
    for _, event in order.seen:
        yield from _order_chapter(story, order, event)
    yield from _pooled_chapters(story, order) if pooled else ()
    yield from (("gap", f"{gap_text(gap)} against headline ({RULES[gap.ledger]})") for gap in order_gaps(order))
    yield from (("why", text) for text in why(order))


def _turn_chapter(story: RunStory, event: Event) -> Iterator[tuple[str, str]]:
    assert story.window is not None
    match event:
        case Woken():
            at = seconds_text(event.ts_ms - story.window.open_ts_ms)
            yield "woken", f"for tick {event.tick}, {at} after the opening, {event.lag_ms} ms late, place {event.order_index + 1} in the rotation"
        case BundleShown():
            yield "shown", f"bundle {event.bundle_sha256[:HASH_SHOWN]}… at block {event.pin.block}, own book {event.book_sha256[:HASH_SHOWN]}…"
        case TurnPlayed():
            yield "turn", f"{event.outcome} in {event.latency_ms} ms, {counted(event.steps, 'step')}, waited {event.wait_ms} ms"
        case DecisionTaken():
            yield "decision", f"{event.decision_sha256[:HASH_SHOWN]}… ({event.schema}, {counted(len(event.orders), 'order')})"


def _order_chapter(story: RunStory, order: OrderStory, event: Event) -> Iterator[tuple[str, str]]:
    match event:
        case BoardTaken():
            yield "board", _board_text(event)
            yield from (("", text) for text in _rows_text(story, event, _filled_routes(order, event.ledgers)))
        case FurtherBoardTaken():
            yield "again", _again_text(story, event)
            yield from (("", text) for text in _rows_text(story, event, _filled_routes(order, event.ledgers)))
        case GateTaken():
            yield "gate", _gate_text(story, event)
        case RouteSimulated():
            yield "simulated", f"{ledgers_text(event.ledgers)}{plain(event.route)}; evidence {event.evidence_sha256[:HASH_SHOWN]}…"
        case RouteReverted():
            yield "reverted", f"{ledgers_text(event.ledgers)}{plain(event.route)}: {plain(event.reason)}; evidence {event.evidence_sha256[:HASH_SHOWN]}…"
        case RouteUnprovable():
            yield "unproven", f"{ledgers_text(event.ledgers)}{plain(event.route)}: {plain(event.reason)}"
        case FillCredited():
            yield "filled", f"{ledgers_text(event.ledgers)}{fill_text(event, story.names)}"
            yield from _entry_chapter(story, event.entry)
        case LiquidityOpened():
            yield from opening_chapters(event, story.names)
            yield from _outcome_chapter(story, event)
        case LiquidityClosed():
            yield "simulated", f"{ledgers_text(event.ledgers)}at block {event.pin.block} ({event.pin.block_hash[:HASH_SHOWN]}…); evidence {event.evidence_sha256[:HASH_SHOWN]}…"
            yield from _outcome_chapter(story, event)
        case DelayedReverted():
            yield "reverted", f"{ledgers_text(event.ledgers)}{reverted_text(event)}{_bound_text(story, order, event)}"
        case OrderSkipped():
            yield "skipped", f"{ledgers_text(event.ledgers)}{event.reason}{because(event.detail)}"
        case OrderRefused() | OrderNotFilled():
            line = line_of(event, story.names)
            said, label = line.text if line else "", "refused" if isinstance(event, OrderRefused) else "not filled"
            yield label, said.replace(f"{label}: ", "", 1).replace(f"{label} ", "", 1)


def _bound_text(story: RunStory, order: OrderStory, event: DelayedReverted) -> str:
    board = next((seen for _, seen in order.seen if isinstance(seen, FurtherBoardTaken) and seen.ledgers == event.ledgers), None)
    if board is None or event.arrival_raw is None:
        return ""
    return f"; {_amount(story, board, event.arrival_raw)} would arrive, at least {_amount(story, board, board.least_raw)} must"


def _pool_sides(story: RunStory, pool: str) -> tuple[str, str] | None:
    """What the sides of a pool are booked as, as far as the run's positions tell."""
    return next((kept.assets for kept in story.positions.all() if kept.opened.pool == pool), None)


def _outcome_chapter(story: RunStory, event: LiquidityOpened | LiquidityClosed) -> Iterator[tuple[str, str]]:
    line, label = line_of(event, story.names), outcome_word(event)
    yield label, line.text.replace(f"{label} ", "", 1) if line else ""
    yield from _entry_chapter(story, event.entry)


def _entry_chapter(story: RunStory, entry: Entry) -> Iterator[tuple[str, str]]:
    accounts = [ACCOUNTS.get(posting.account, posting.account) for posting in entry.postings]
    width = max((len(account) for account in accounts), default=0)
    yield "entry", f"on {' and '.join(entry.ledgers)}"
    yield from (("", f"{account:{max(width, 7)}} {_posting_text(story, posting.asset, posting.amount)}") for account, posting in zip(accounts, entry.postings, strict=True))


def _pooled_chapters(story: RunStory, order: OrderStory) -> Iterator[tuple[str, str]]:
    """Tell what the order's position earned and how it stands; of a closing only the sum."""
    for kept in story.positions_of(order):
        if order.asked.side == OPEN_LP:
            yield from accrual_chapters([event for _, event in story.accruals if event.ledgers[0] in kept.ledgers], kept.opened, story.names)
        yield from (BLANK, *position_chapters(kept, story.names), BLANK)


def _board_text(board: BoardTaken) -> str:
    pin = board.pin
    reserve = f", {eth_text(board.exit_reserve_wei)} ETH kept back for the gas of exits" if board.side == "buy" else ""
    return (
        f"{ledgers_text(board.ledgers)}{counted(len(board.rows), 'row')} at block {pin.block} ({pin.block_hash[:HASH_SHOWN]}…) by {plain(pin.lane)}, "
        f"age {board.age_ms:,} ms, gas price {decimal_text(board.gas_price_wei, 9)} gwei{reserve}"
    )


def _again_text(story: RunStory, board: FurtherBoardTaken) -> str:
    """Say how a further ledger looked again."""
    pin = board.pin
    if board.least_raw is not None:
        least, quoted = (_amount(story, board, raw) for raw in (board.least_raw, board.quote_raw))
        how = f"{board.delay_ms:,} ms after headline's block; at least {least} must arrive of {quoted} quoted"
    elif board.earlier:
        weighed = ", ".join(f"{order_id} at {decimal_text(weight, 4)} %" for order_id, weight in zip(board.earlier, board.earlier_weights_ppm, strict=True))
        how = f"after {counted(len(board.earlier), 'earlier trade')} of its own: {weighed}"
    else:
        how = "no earlier trade of its own is felt"
    return f"{ledgers_text(board.ledgers)}{counted(len(board.rows), 'row')} at block {pin.block} ({pin.block_hash[:HASH_SHOWN]}…), {how}"


def gap_text(gap: OrderGap) -> str:
    """Say how far a further ledger is from headline on an order."""
    if gap.gap_ppm is None:
        return f"{NAMES[gap.ledger]} {gap.ended}{f' ({gap.reason})' if gap.reason else ''}"
    return f"{NAMES[gap.ledger]} {percent_text(gap.gap_ppm)}"


def _filled_routes(order: OrderStory, ledgers: tuple[str, ...]) -> set[str]:
    return {event.route for _, event in order.seen if isinstance(event, FillCredited) and set(event.ledgers) & set(ledgers)}


def _rows_text(story: RunStory, board: BoardTaken | FurtherBoardTaken, filled: set[str]) -> Iterator[str]:
    cells = [_row_cells(story, board, row, row.route in filled) for row in board.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row_cells(story: RunStory, board: BoardTaken | FurtherBoardTaken, row: Row, filled: bool) -> tuple[str, ...]:
    return (
        "→" if filled else " ",
        plain(row.source),
        plain(row.route),
        row.status,
        f"arrives {_amount(story, board, row.arrival_raw)}",
        f"quoted {_amount(story, board, row.quoted_raw)}",
        f"gas {eth_text(row.gas_wei, 8)} ETH",
        " ".join((plain(row.reason), *map(plain, row.flags))).strip(),
    )


def _amount(story: RunStory, board: BoardTaken | FurtherBoardTaken, raw: TokenRaw | None) -> str:
    if raw is None:
        return UNMEASURED
    return f"{decimal_text(raw, 18, 8)} ETH" if board.side == "sell" else f"{amount_text(raw, board.token, story.names)} {token_text(board.token, story.names)}"


def _gate_text(story: RunStory, gate: GateTaken) -> str:
    arrived = f"buys {amount_text(gate.buy_arrival_raw, _token_of(story, gate.order_id), story.names)}"
    sales = _sale_text("selling it", gate.own_wei)
    if int(gate.ghost_wei):  # of windows whose rules tried a second wallet
        sales += f"; {_sale_text('a second wallet that was simply given the balance', gate.ghost_wei)}"
    loss = "" if gate.loss_bps < 0 else f"; round trip loses {gate.loss_bps:,} bps before gas"
    exit_ = "" if gate.exit_provable else f"; a later sale cannot be simulated{detail_text('', gate.exit_cause)}"
    return f"{ledgers_text(gate.ledgers)}{gate.verdict}{f' ({plain(gate.cause)})' if gate.cause else ''}: {arrived}, {sales}{loss}{exit_}"


def _sale_text(who: str, wei: Wei | None) -> str:
    """Say what a sale at once brings; a sale that brings nothing reverted or was not possible."""
    return f"{who} brings {eth_text(wei, 8)} ETH" if wei is not None and int(wei) > 0 else f"{who} brings nothing"


def _token_of(story: RunStory, order_id: str) -> str:
    return next((order.asked.token for order in story.orders if order.order_id == order_id), "")


def _posting_text(story: RunStory, asset: str, amount: TokenRaw) -> str:
    sign = "+" if int(amount) > 0 else ""
    if asset == ETH:
        return f"{sign}{decimal_text(amount, 18)} ETH"
    if asset.endswith(SHARES):
        return f"{sign}{amount} shares of {token_text(asset.removesuffix(SHARES), story.names)}"
    return f"{sign}{amount_text(amount, asset, story.names)} {token_text(asset, story.names)}"


# --- one run --------------------------------------------------------------------------------------------------------


def run_text(story: RunStory, width: int = TEXT_WIDTH) -> str:
    """Tell one run: its orders by number, and how it ended."""
    assert story.window is not None and story.opened is not None
    opened = story.opened
    head = f"{story.run_id} · {story.window.label}"
    chapters = [
        ("stack", f"{opened.stack}, copy {opened.copy}, {opened.stack_sha256[:HASH_SHOWN]}…"),
        ("wallet", f"{opened.wallet} (nobody holds a key to it)"),
        ("stake", f"{eth_text(story.window.stake_wei, 8)} ETH"),
        *(("turns", text) for text in (_turns_text(story), *_undecided_texts(story))),
        *(("orders" if order.number == 1 else "", text) for order, text in zip(story.orders, _orders_text(story), strict=True)),
        *positions_chapters(story.positions.all(), story.names),
        *(("ended", line.text) for _, event in story.ends if (line := line_of(event, story.names))),
    ]
    hint = [f"\none order's story: referee show {story.run_id} --order N"] if story.orders else []
    return "\n".join([*_headed(head, width), *_laid_out(chapters, width), *hint]) + "\n"


def _turns_text(story: RunStory) -> str:
    events = [event for turn in story.turns.values() for _, event in turn]
    woken, answered = sum(isinstance(event, Woken) for event in events), sum(isinstance(event, TurnPlayed) and event.outcome == "ANSWERED" for event in events)
    missed = sum(isinstance(event, TickMissed) for event in events)
    return f"{woken} woken, {answered} answered, {counted(missed, 'tick')} missed"


def _undecided_texts(story: RunStory) -> Iterator[str]:
    """Say every turn that brought no decision, and every tick that was missed; ticks missed alike are said once."""
    missed: dict[str, list[str]] = {}
    for tick, turn in sorted(story.turns.items()):
        for _, event in turn:
            if isinstance(event, TickMissed):
                missed.setdefault(event.reason, []).append(str(tick))
            elif turn_end(event) not in (None, (DECIDED, "")) and (line := line_of(event, story.names)):
                yield f"tick {tick}: {line.text}"
    for reason, ticks in missed.items():
        yield f"missed ({reason}): tick{'' if len(ticks) == 1 else 's'} {', '.join(ticks)}"


def _orders_text(story: RunStory) -> Iterator[str]:
    cells = []
    for order in story.orders:
        headline, permissive = (outcome_word(order.outcome(ledger)) for ledger in (HEADLINE, PERMISSIVE))
        outcome = headline if headline == permissive else f"headline {headline}; permissive {permissive}"
        gaps = "; ".join(gap_text(gap) for gap in order_gaps(order))
        cells.append((str(order.number), f"tick {order.tick}", asked_text(order.asked, story.names), outcome, gaps))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _laid_out(chapters: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Lay chapters out; a text of several columns, which are two blanks apart, keeps them while they fit."""
    last = ""
    for label, text in chapters:
        shown = "" if label == last else label
        fits = LABEL_CHARS + 2 + len(text) <= width
        columns = text[: len(text) - len(text.lstrip())] + COLUMNS_APART.join(part.strip() for part in text.split(COLUMNS_APART) if part.strip())
        yield from [f"{shown:{LABEL_CHARS}}  {text}".rstrip()] if fits else labelled(shown, columns, LABEL_CHARS, width, HANGING if COLUMNS_APART in text else "")
        last = label or last
