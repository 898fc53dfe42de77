"""Further ledgers: what the rules make of an order that is simulated again, later or after the run's own earlier trades.

Pure, so that a replay does the same again. A further ledger follows the headline: what the headline refused or did not fill
is skipped, what it filled is simulated anew against the ledger's own book and judged by the same rules.
Source: 001 §5.1, §5.2; ONC-22, ONC-23.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from chain.trade import FAILED, PROVEN, REVERTED, UNPROVABLE, UNREPEATABLE
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei, mul_div_ceil, mul_div_floor
from ledgers.postings import BOOK, ETH
from referee.onchain.book import Book, entry_of
from referee.onchain.credit import CLEAR, GAS, chosen_row, exit_reserve_wei, not_filled, refusal, settle
from referee.onchain.decision import CLOSE_LP, OPEN_LP
from referee.onchain.events import (
    DELAYED, HEADLINE, BoardTaken, FillCredited, GateTaken, OrderAsked, OrderNotFilled, OrderRefused, Row,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped
from referee.onchain.rules import Rules
from referee.onchain.state import Trade

BPS, PPM = 10_000, 1_000_000
HEADLINE_REFUSED, HEADLINE_NOT_FILLED, LIQUIDITY_ORDER, NOT_HELD = "headline_refused", "headline_not_filled", "liquidity_order", "not_held"
SKIPPED = {
    HEADLINE_REFUSED: "headline refused the order, and a further ledger only follows what headline filled",
    HEADLINE_NOT_FILLED: "headline did not fill the order, and a further ledger only follows what headline filled",
    LIQUIDITY_ORDER: "liquidity positions are kept on headline and permissive; this ledger leaves them out",
    NOT_HELD: "this ledger never got any of the token, or has sold it all",
}
"""Every reason a further ledger may skip an order for, in words."""
BELOW_BOUND = "below_bound"
Ended = FillCredited | OrderRefused | OrderNotFilled


# --- who is followed ------------------------------------------------------------------------------------------------


def skipped(asked: OrderAsked, order_id: str, outcomes: Iterable[Event], ledgers: Sequence[str], run_id: str, ts_ms: int) -> tuple[OrderSkipped, ...]:
    """Say that further ledgers do not follow an order, as its headline outcome has it; nothing when they do."""
    outcome = next((event for event in outcomes if isinstance(event, Ended) and HEADLINE in event.ledgers), None)
    if not ledgers or (isinstance(outcome, FillCredited) and asked.side not in (OPEN_LP, CLOSE_LP)):
        return ()
    if asked.side in (OPEN_LP, CLOSE_LP) and not isinstance(outcome, OrderRefused | OrderNotFilled):
        return (skip(run_id, order_id, ledgers, LIQUIDITY_ORDER, "", ts_ms),)
    reason = HEADLINE_REFUSED if isinstance(outcome, OrderRefused) else HEADLINE_NOT_FILLED
    return (skip(run_id, order_id, ledgers, reason, getattr(outcome, "reason", ""), ts_ms),)


def skip(run_id: str, order_id: str, ledgers: Sequence[str], reason: str, detail: str, ts_ms: int) -> OrderSkipped:
    """Write down that further ledgers have no say in an order."""
    assert reason in SKIPPED, reason
    return OrderSkipped(run_id=run_id, ts_ms=ts_ms, order_id=order_id, ledgers=tuple(ledgers), reason=reason, detail=detail)


# --- sizes and bounds -----------------------------------------------------------------------------------------------


def size_raw(asked: OrderAsked, held_raw: int) -> int:
    """Size of an order on a further ledger; a sale of more than it holds is one of all it holds, since that is what it is after."""
    if asked.spend_wei is not None:
        return int(asked.spend_wei)
    return held_raw if asked.amount_raw is None else min(int(asked.amount_raw), held_raw)


def quote_of(fill: FillCredited, size: int) -> int:
    """What arrived on the headline's board, for another size in proportion and rounded down."""
    spent = int(fill.spent_raw)
    return int(fill.arrival_raw) if size == spent else mul_div_floor(int(fill.arrival_raw), size, spent)


def least_of(rules: Rules, quote_raw: int) -> int:
    """Least that must arrive at a quote, rounded up (ONC-22)."""
    assert rules.delay_loss_bps_max is not None, f"{rules.name} keeps no delayed ledger"
    return mul_div_ceil(quote_raw, BPS - rules.delay_loss_bps_max, BPS)


# --- own earlier trades ---------------------------------------------------------------------------------------------


def weight_ppm(rules: Rules, age_ms: int) -> int:
    """How much of an earlier trade is still felt: all of it, then evenly less, then nothing; rounded down (ONC-23)."""
    full_ms, gone_ms = rules.impact_full_ms, rules.impact_gone_ms
    assert full_ms is not None and gone_ms is not None, f"{rules.name} keeps no ledger of own impact"
    if age_ms <= full_ms:
        return PPM
    return mul_div_floor(PPM, gone_ms - age_ms, gone_ms - full_ms) if age_ms < gone_ms else 0


def felt(rules: Rules, trades: Sequence[Trade], block_ts_s: int) -> tuple[tuple[Trade, int], ...]:
    """The latest earlier trades that are still felt at a block's time, each with its weight in parts per million.

    Shapes: oldest first."""
    assert rules.impact_trades_max is not None
    weighed = ((trade, weight_ppm(rules, max(block_ts_s - trade.block_ts_s, 0) * 1_000)) for trade in trades)
    return tuple((trade, weight) for trade, weight in weighed if weight)[-rules.impact_trades_max :]


def felt_raw(amount_raw: int, weight: int) -> int:
    """The part of an amount that is still felt, rounded down."""
    return mul_div_floor(amount_raw, weight, PPM)


# --- what becomes of it ---------------------------------------------------------------------------------------------


def settle_further(rules: Rules, board: FurtherBoardTaken, book: Book, ts_ms: int) -> tuple[Event, ...]:
    """Turn a further ledger's board into the order's events on that ledger.

    Shapes: first what the chosen route did, if one is chosen, then the outcome."""
    judged = _judged_as_headline(rules, board, book, ts_ms)
    if board.ledgers == (DELAYED,):
        return _delayed(board, book, judged, ts_ms, bool(rules.lane_claims_only))
    statuses = {row.status for row in board.rows}
    if any(row.reason == UNREPEATABLE for row in board.rows):
        return (_not_filled(board, UNREPEATABLE, "an earlier trade of the run does not go through again", ts_ms),)
    if board.side == "sell" and PROVEN not in statuses and UNPROVABLE in statuses:
        return (_not_filled(board, "unprovable_no_quote", "a sale on a claim cannot be run again before later ones", ts_ms),)
    return judged


def _delayed(board: FurtherBoardTaken, book: Book, judged: tuple[Event, ...], ts_ms: int, lane_only: bool) -> tuple[Event, ...]:
    """Fill within the bound; else the transaction reverts and its gas is paid, where the book can pay it."""
    assert board.least_raw is not None, f"{board.order_id} is delayed without a bound"
    if any(isinstance(event, OrderRefused) and event.reason == "insufficient_eth" for event in judged):
        return judged
    row = chosen_row(_as_headline(board, Wei(0)), HEADLINE, lane_only)
    dead = next((row for row in board.rows if row.status == REVERTED), None) if row is None else None
    failed = sorted({row.reason for row in board.rows if row.status == FAILED})
    if row is None and dead is None:
        return (_not_filled(board, "fault", ", ".join(failed), ts_ms),) if failed else judged
    arrival = None if row is None else row.arrival_raw if row.status == PROVEN else row.quoted_raw
    if arrival is not None and arrival >= board.least_raw:
        return judged
    return (_reverted(board, book, row or dead, arrival, ts_ms),)


def _reverted(board: FurtherBoardTaken, book: Book, row: Row | None, arrival: TokenRaw | None, ts_ms: int) -> Event:
    assert row is not None
    if row.gas_wei > book.eth_wei:
        return refusal(board.run_id, board.order_id, board.ledgers, "insufficient_eth", f"gas {row.gas_wei} wei > {book.eth_wei} held", ts_ms)
    gas = int(row.gas_wei)
    return DelayedReverted(
        run_id=board.run_id, ts_ms=ts_ms, order_id=board.order_id, ledgers=board.ledgers,
        reason=REVERTED if arrival is None else BELOW_BOUND,
        detail=row.reason if arrival is None else f"{arrival} would arrive, at least {board.least_raw} must",
        route=row.route, arrival_raw=arrival, gas_wei=row.gas_wei, approvals=row.approvals, evidence_sha256=row.digest,
        entry=entry_of(board.ledgers, {(BOOK, ETH): -gas, (GAS, ETH): gas}), kept=row.kept,
    )  # fmt: skip


def _judged_as_headline(rules: Rules, board: FurtherBoardTaken, book: Book, ts_ms: int) -> tuple[Event, ...]:
    """What the headline's own rules make of the board; its buy passed the gate at the headline's block, whatever route it takes now."""
    reserve = exit_reserve_wei(rules, book, board.token, board.gas_price_wei) if board.side == "buy" else Wei(0)
    as_headline = _as_headline(board, reserve)
    gates = [_passed(as_headline, row) for row in board.rows if row.status == PROVEN] if board.side == "buy" else []
    events = settle(rules, as_headline, gates, {HEADLINE: replace(book, ledger=HEADLINE)}, ts_ms)
    return tuple(_on(board.ledgers, event) for event in events)


def _as_headline(board: FurtherBoardTaken, exit_reserve: Wei) -> BoardTaken:
    return BoardTaken(
        run_id=board.run_id, ts_ms=board.ts_ms, order_id=board.order_id, ledgers=(HEADLINE,), side=board.side, token=board.token,
        size_raw=board.size_raw, size_units_raw=board.size_units_raw, shares=board.shares, pin=board.pin, gas_price_wei=board.gas_price_wei,
        arrived_ts_ms=board.ts_ms, age_ms=0, exit_reserve_wei=exit_reserve, rows=board.rows,
    )  # fmt: skip


def _passed(board: BoardTaken, row: Row) -> GateTaken:
    return GateTaken(
        run_id=board.run_id, ts_ms=board.ts_ms, order_id=board.order_id, ledgers=board.ledgers, route=row.route, verdict=CLEAR, cause="",
        exit_provable=True, exit_cause="", buy_arrival_raw=row.arrival_raw or TokenRaw(0), loss_bps=-1, sell_route="",
        own_wei=Wei(0), ghost_wei=Wei(0), digest="",
    )  # fmt: skip


def _on(ledgers: tuple[str, ...], event: Event) -> Event:
    changed: dict[str, Any] = {"ledgers": ledgers}
    if isinstance(event, FillCredited):
        changed["entry"] = replace(event.entry, ledgers=ledgers)
    return replace(event, **changed)


def _not_filled(board: FurtherBoardTaken, reason: str, detail: str, ts_ms: int) -> Event:
    return not_filled(board.run_id, board.order_id, board.ledgers, reason, detail, ts_ms)
