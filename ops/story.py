"""The story: everything the journal knows about one order, or about one run.

Nothing is computed again here; it is what was recorded when it happened, with the rule that decided it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from ledgers.events import Event
from ledgers.journal import Journal, Record
from ops.further_gaps import OrderGap, gaps_of
from ops.lines import ledgers_text, plain
from ops.names import TokenName, names_in, network_names
from ops.positions import Kept, Positions
from referee.onchain.events import (
    DELAYED, FURTHER_LEDGERS, IMPACT, LEDGERS, BoardTaken, BundleShown, DecisionTaken, FillCredited, OrderAsked, OrderNotFilled, OrderRefused, RunOpened, RunScored,
    WindowLiquidated, WindowOpened,
)  # fmt: skip
from referee.onchain.further import SKIPPED
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.rulebook import RULE_ROWS
from referee.onchain.state import decoded, order_id_of

Outcome = FillCredited | LiquidityOpened | LiquidityClosed | OrderRefused | OrderNotFilled | OrderSkipped | DelayedReverted

NOT_FILLED_WHY = {
    "no_route": "no pool of this token gave a price for this size",
    "reverted": "every route reverted in simulation, and a revert is no fill on any ledger (ONC-10)",
    "fault": "the node failed, and a fault never becomes a price",
    "interrupted": "the process ended before the order was priced, and an order is never priced late",
    "impact_unrepeatable": "an earlier trade of the run does not go through again, and what it would have left is never guessed (ONC-23)",
    "unprovable_no_quote": "the sale could not be proven and no source gave a quote to book it at",
}
OPENED_WHY = "its amounts left the wallet in simulation, and its part of the liquidity in range is within the rule (ONC-21)"
CLOSED_WHY = "principal is what closing brought in simulation; fees are computed from the pool's own logs, block by block (ONC-21)"


@dataclass(slots=True)
class OrderStory:
    """One order: what was asked, and every event that names it."""

    order_id: str
    number: int
    """Place among the run's orders, from 1."""
    tick: int
    asked: OrderAsked
    seen: list[tuple[Record, Event]] = field(default_factory=list)

    def outcome(self, ledger: str) -> Outcome | None:
        """What became of it on a ledger."""
        outcomes = (event for _, event in self.seen if isinstance(event, Outcome))
        return next((event for event in outcomes if ledger in event.ledgers), None)


@dataclass(slots=True)
class RunStory:
    """One run: its opening, its turns, its orders, its end."""

    run_id: str
    window: WindowOpened | None = None
    opened: RunOpened | None = None
    orders: list[OrderStory] = field(default_factory=list)
    turns: dict[int, list[tuple[Record, Event]]] = field(default_factory=dict)
    """What happened on the way to each tick's decision."""
    ends: list[tuple[Record, Event]] = field(default_factory=list)
    """Liquidations and the score."""
    positions: Positions = field(default_factory=Positions)
    accruals: list[tuple[Record, LiquidityAccrued]] = field(default_factory=list)
    """What real swaps left positions."""
    names: dict[str, TokenName] = field(default_factory=dict)

    @property
    def ledgers(self) -> tuple[str, ...]:
        """The ledgers that the run keeps."""
        return self.opened.entry.ledgers if self.opened else LEDGERS

    @property
    def further(self) -> tuple[str, ...]:
        """Those with simulations of their own."""
        return tuple(ledger for ledger in self.ledgers if ledger not in LEDGERS)

    def positions_of(self, order: OrderStory) -> list[Kept]:
        """The position that an order opened or asked to close, once for all ledgers that keep it alike."""
        return self.positions.of(order.asked.position or order.order_id)

    def order(self, wanted: str) -> OrderStory | None:
        """Find an order by its number, `tick/index` or whole id."""
        return next((order for order in self.orders if wanted in (str(order.number), order.order_id, order.order_id.removeprefix(f"{self.run_id}/"))), None)


def runs_of(journal: Journal) -> list[str]:
    """List the runs of a window in the order in which they were opened. Raises: CorruptJournal."""
    return [decoded(record).run_id for record in journal.read() if record.kind == RunOpened.__name__]


def read_run(journal: Journal, run_id: str) -> RunStory | None:
    """Collect a run's story from its window's journal; None when the window has no such run.

    Raises: CorruptJournal."""
    story = RunStory(run_id)
    named = orjson.dumps(run_id)
    by_id: dict[str, OrderStory] = {}
    for record in journal.read():
        if record.kind == WindowOpened.__name__ or named in record.body:
            _take(story, by_id, record, decoded(record), journal)
    return story if story.opened else None


def _take(story: RunStory, by_id: dict[str, OrderStory], record: Record, event: Event, journal: Journal) -> None:
    story.positions.apply(event)
    match event:
        case WindowOpened():
            story.window = event
            story.names.update(network_names(event.network))
        case RunOpened():
            story.opened = event
        case BundleShown():
            story.names.update(names_in(journal.blob(event.bundle_sha256)))
            story.turns.setdefault(event.tick, []).append((record, event))
        case DecisionTaken():
            story.turns.setdefault(event.tick, []).append((record, event))
            for asked in event.orders:
                order_id = order_id_of(event.run_id, event.tick, asked.index)
                by_id[order_id] = OrderStory(order_id, len(story.orders) + 1, event.tick, asked)
                story.orders.append(by_id[order_id])
        case WindowLiquidated() | RunScored():
            story.ends.append((record, event))
        case LiquidityAccrued():
            story.accruals.append((record, event))
        case _ if getattr(event, "order_id", None) in by_id:
            by_id[event.order_id].seen.append((record, event))  # type: ignore[attr-defined]
        case _ if hasattr(event, "tick") and event.tick >= 0 and not hasattr(event, "clock"):
            story.turns.setdefault(event.tick, []).append((record, event))


# --- as data --------------------------------------------------------------------------------------------------------


def order_data(story: RunStory, order: OrderStory) -> dict[str, object]:
    """Give one order as a JSON object: every event about it as it was recorded."""
    assert story.window is not None
    positions = story.positions_of(order)
    accrued = [(record, event) for record, event in story.accruals if event.position in {kept.id for kept in positions}]
    events = [*story.turns.get(order.tick, []), *order.seen, *accrued]
    return {
        "order_id": order.order_id,
        "run_id": story.run_id,
        "number": order.number,
        "tick": order.tick,
        "label": story.window.label,
        "outcome": {ledger: outcome_word(order.outcome(ledger)) for ledger in story.ledgers},
        "gap_ppm": {gap.ledger: gap.gap_ppm for gap in order_gaps(order)},
        "why": list(why(order)),
        "positions": [kept.data() for kept in positions],
        "events": [_event_data(record) for record, _ in events],
    }


def run_data(story: RunStory) -> dict[str, object]:
    """Give one run as a JSON object."""
    assert story.window is not None and story.opened is not None
    return {
        "run_id": story.run_id,
        "window_id": story.opened.window_id,
        "label": story.window.label,
        "stack": story.opened.stack,
        "stack_sha256": story.opened.stack_sha256,
        "copy": story.opened.copy,
        "wallet": story.opened.wallet,
        "stake_wei": str(story.window.stake_wei),
        "orders": [_order_row(story, order) for order in story.orders],
        "positions": [kept.data() for kept in story.positions.all()],
        "ends": [_event_data(record) for record, _ in story.ends],
    }


def _event_data(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "kind": record.kind, "link": record.link, "body": orjson.loads(record.body)}


def order_gaps(order: OrderStory) -> list[OrderGap]:
    """How far the further ledgers are from headline on an order; none where headline did not fill it."""
    return sorted(gaps_of(event for _, event in order.seen).orders, key=lambda gap: FURTHER_LEDGERS.index(gap.ledger))


def _order_row(story: RunStory, order: OrderStory) -> dict[str, object]:
    asked = order.asked
    return {
        "number": order.number,
        "order_id": order.order_id,
        "side": asked.side,
        "token": asked.token,
        "spend_wei": None if asked.spend_wei is None else str(asked.spend_wei),
        "amount_raw": "all" if asked.sell_all else None if asked.amount_raw is None else str(asked.amount_raw),
        "pool": asked.pool or None,
        "position": asked.position or None,
        "outcome": {ledger: outcome_word(order.outcome(ledger)) for ledger in story.ledgers},
        "gap_ppm": {gap.ledger: gap.gap_ppm for gap in order_gaps(order)},
    }


def outcome_word(outcome: Outcome | None) -> str:
    """Say an outcome in a few words."""
    match outcome:
        case LiquidityOpened():
            return "opened"
        case LiquidityClosed():
            return "closed"
        case FillCredited():
            return "filled" if outcome.proven and not outcome.tag else f"filled unproven ({outcome.tag})"
        case OrderRefused():
            return f"refused {outcome.reason} ({outcome.rule})"
        case OrderNotFilled():
            return f"not filled: {outcome.reason}"
        case OrderSkipped():
            return f"skipped: {outcome.reason}"
        case DelayedReverted():
            return f"reverted: {outcome.reason}"
    return "open"


# --- why ------------------------------------------------------------------------------------------------------------


def why(order: OrderStory) -> Iterator[str]:
    """Say, for every outcome of an order, which rule made it."""
    said: dict[str, list[str]] = {}
    for _, event in order.seen:
        for ledgers, text in _why(order, event):
            said.setdefault(text, []).extend(ledgers)
    for text, ledgers in said.items():
        yield f"{ledgers_text(tuple(dict.fromkeys(ledgers)))}{text}"


def _why(order: OrderStory, event: Event) -> Iterator[tuple[tuple[str, ...], str]]:
    match event:
        case FillCredited():
            yield event.ledgers, _fill_why(order, event)
        case LiquidityOpened():
            yield event.ledgers, OPENED_WHY
        case LiquidityClosed():
            yield event.ledgers, CLOSED_WHY
        case OrderRefused():
            rule = next((row for row in RULE_ROWS if row.id == event.rule), None)
            yield event.ledgers, f"{event.rule}: {rule.rule if rule else 'a rule said no'}"
        case OrderNotFilled():
            yield event.ledgers, NOT_FILLED_WHY.get(event.reason, plain(event.reason))
        case OrderSkipped():
            yield event.ledgers, f"{SKIPPED.get(event.reason, plain(event.reason))} (ONC-22, ONC-23)"
        case DelayedReverted():
            yield event.ledgers, "less than its bound would have arrived after the delay, so the transaction reverts and its gas is paid (ONC-22)"


def _fill_why(order: OrderStory, fill: FillCredited) -> str:
    if fill.ledgers == (DELAYED,):
        return "headline's transaction sent again after the declared delay; at least its bound arrived, and that is what is credited (ONC-22)"
    if fill.ledgers == (IMPACT,):
        return "the best row after the run's own earlier trades, credited with what then arrived (ONC-23)"
    boards = [event for _, event in order.seen if isinstance(event, BoardTaken) and set(fill.ledgers) & set(event.ledgers)]
    proven = sum(row.status == "proven" for board in boards for row in board.rows)
    if fill.proven and not fill.tag:
        chosen = "the only proven row" if proven == 1 else f"the best of {proven} proven rows net of gas (ONC-06)"
        return f"{chosen}, credited with what arrived in simulation (ONC-10)"
    if fill.side == "sell":
        return "the exit cannot be proven, so it is filled at the quote less gas and tagged, and a score is also shown with it at 0 (ONC-11)"
    return "booked on the permissive ledger only: its exit or its arrival cannot be proven (ONC-11)"
