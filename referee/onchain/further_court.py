"""The further court: what further ledgers made of orders, computed again from the journal for a replay.

Taken from the record is what the world answered: the rows of each board, its block, and which pools a trade crossed, so
which earlier ones a board had to meet. Computed again: whom a ledger followed, sizes, quotes, bounds, weights, every outcome.
Source: ONC-22, ONC-23.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ledgers.events import Event
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, FillCredited, OrderAsked, OrderNotFilled, OrderRefused
from referee.onchain.further import LIQUIDITY_ORDER, NOT_HELD, felt, least_of, quote_of, settle_further, size_raw, skipped
from referee.onchain.further_events import FurtherBoardTaken, OrderSkipped, RouteRemembered
from referee.onchain.rules import Rules
from referee.onchain.state import WindowState

Same = Callable[[str, object, object], None]
"""Compares a field as recorded with the same computed again."""
Ended = FillCredited | OrderRefused | OrderNotFilled


def is_further(event: Event) -> bool:
    """Whether an event happened on further ledgers only."""
    ledgers = getattr(event, "ledgers", ())
    return bool(ledgers) and set(ledgers) <= set(FURTHER_LEDGERS)


@dataclass(slots=True)
class FurtherCourt:
    """Hears the events of further ledgers against what the rules make of the ones before them."""

    state: WindowState
    same: Same
    headline: dict[str, Event] = field(default_factory=dict)
    """What became of orders on the headline ledger, by order id, as long as a further ledger may follow."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Size of every order of the own-impact ledger, by order id."""
    expected: dict[tuple[str, str], deque[Event]] = field(default_factory=dict)
    """By order id and ledger, what the rules make of its board and is still to be recorded."""

    def ended(self, event: Event) -> None:
        """Take in how an order ended on the headline ledger."""
        if isinstance(event, Ended) and HEADLINE in event.ledgers:
            self.headline[event.order_id] = event

    def board(self, rules: Rules, board: FurtherBoardTaken, asked: OrderAsked) -> None:
        """Check a board's size and bounds, and work out what must come of it."""
        (ledger,) = board.ledgers
        book, fill = self.state.books.of(board.run_id, ledger), self.headline.get(board.order_id)
        self.same("headline outcome", type(fill).__name__, FillCredited.__name__)
        assert isinstance(fill, FillCredited)
        held = book.held(asked.token)
        if asked.spend_wei is not None or (held is not None and not held.shares):
            self.same("size_raw", int(board.size_raw), size_raw(asked, int(held.units_raw) if held else 0))
        if ledger == DELAYED:
            self._delayed(rules, board, fill)
        else:
            self.sizes[board.order_id] = int(board.size_raw)
            self._earlier(rules, board)
        self.expected[board.order_id, ledger] = deque(settle_further(rules, board, book, board.ts_ms))

    def _delayed(self, rules: Rules, board: FurtherBoardTaken, fill: FillCredited) -> None:
        quoted_pin = self.state.runs[board.run_id].pins[board.order_id, HEADLINE]
        assert rules.delay_ms is not None
        delay_ms = (board.pin.block_ts_s - quoted_pin.block_ts_s) * 1_000
        self.same("delay_ms", board.delay_ms, max(delay_ms, rules.delay_ms))
        quote = quote_of(fill, int(board.size_raw))
        self.same("quote_raw", board.quote_raw and int(board.quote_raw), quote)
        self.same("least_raw", board.least_raw and int(board.least_raw), least_of(rules, quote))

    def _earlier(self, rules: Rules, board: FurtherBoardTaken) -> None:
        tick = board.order_id.rpartition("/")[0]
        trades = [trade for trade in self.state.runs[board.run_id].trades if trade.order_id.rpartition("/")[0] != tick]
        weights = {trade.order_id: weight for trade, weight in felt(rules, trades, board.pin.block_ts_s)}
        known = tuple(order_id for order_id in weights if order_id in board.earlier)
        self.same("earlier", board.earlier, known)
        self.same("earlier_weights_ppm", board.earlier_weights_ppm, tuple(weights[order_id] for order_id in known))

    def next(self, event: Event) -> Event | None:
        """What must be recorded next of an order on a further ledger; none when its board is not known or nothing is left."""
        key = (getattr(event, "order_id", ""), getattr(event, "ledgers", ("",))[0])
        left = self.expected.get(key)
        if not left:
            return None
        expected = left.popleft()
        if not left:
            del self.expected[key]
        return expected

    def skip(self, event: OrderSkipped, asked: OrderAsked) -> None:
        """Check why an order was skipped."""
        if event.reason == NOT_HELD:
            for ledger in event.ledgers:
                held = self.state.books.of(event.run_id, ledger).held(asked.token)
                self.same("reason", event.reason, event.reason if held is None or held.shares else "the book holds it")
            return
        outcome = self.headline.get(event.order_id)
        again = skipped(asked, event.order_id, [outcome] if outcome else [], event.ledgers, event.run_id, event.ts_ms)
        self.same("reason", event.reason, again[0].reason if again else "followed")
        if event.reason != LIQUIDITY_ORDER:
            self.same("detail", event.detail, again[0].detail)

    def remembered(self, event: RouteRemembered) -> None:
        """Check that the ways of a fill come to what it spent."""
        self.same("ways", sum(int(way.amount_raw) for way in event.ways), self.sizes.get(event.order_id))

    def left(self, run_id: str) -> list[str]:
        """Orders of a run whose boards have not led to all that they must."""
        return [order_id for order_id, _ in self.expected if order_id.startswith(f"{run_id}/")]
