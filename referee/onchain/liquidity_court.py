"""The liquidity court: positions computed again from the journal for a replay (ONC-21).

Taken from the record is what the world answered: what opening and closing took and brought in simulation, the pool's liquidity, and
how far fee growth went (its logs are evidence). Computed again: ranges and sizes against the order, shares, fees, entries, values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chain.liquidity.amounts import amounts_of, liquidity_for
from ledgers.money import TokenRaw, Wei
from referee.onchain.accrual_court import AccrualCourt
from referee.onchain.book import Book
from referee.onchain.events import OrderAsked, Pin, PositionMark
from referee.onchain.liquidity import closing_entry, opening_entry, opening_objection, own_liquidity, share_objection, share_ppm
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.position import Position
from referee.onchain.position_marks import claimed_wei, exit_moves, worth_of
from referee.onchain.rules import Rules
from referee.onchain.state import WindowState

Same = Callable[[str, object, object], None]
"""Compares a field as recorded with the same computed again."""


@dataclass(slots=True)
class LiquidityCourt:
    """Hears what happened to positions against what the rules make of it."""

    state: WindowState
    same: Same
    accrual: AccrualCourt | None = None
    """Where the journal's blobs are at hand."""

    def opened(self, rules: Rules, event: LiquidityOpened, asked: OrderAsked) -> None:
        """Check an opening on every ledger it names."""
        self.same("position", event.position, event.order_id)
        self.same("pool", event.pool, asked.pool)
        if not asked.price_lower:
            self.same("ticks", (event.tick_lower, event.tick_upper), (asked.tick_lower, asked.tick_upper))
        for name, took, most in (("amount0_raw", event.amount0_raw, asked.amount0_raw), ("amount1_raw", event.amount1_raw, asked.amount1_raw)):
            assert most is not None, asked
            self.same(name, took, min(took, most))
        made = liquidity_for(int(event.sqrt_price_x96), event.tick_lower, event.tick_upper, int(asked.amount0_raw or 0), int(asked.amount1_raw or 0))
        if int(event.sqrt_price_x96):
            self.same("liquidity_raw", int(event.liquidity_raw), made)
            owed = amounts_of(made, int(event.sqrt_price_x96), event.tick_lower, event.tick_upper, round_up=True)
            took = int(event.amount0_raw), int(event.amount1_raw)
            self.same("amounts", took, (max(took[0], owed[0]), max(took[1], owed[1])))
        self.same("entry", event.entry, opening_entry(event.ledgers, (event.asset0, event.asset1), (int(event.amount0_raw), int(event.amount1_raw)), int(event.gas_wei)))
        for ledger in event.ledgers:
            book = self._book(event.run_id, ledger)
            self.same("share_ppm", event.share_ppm, share_ppm(int(event.liquidity_raw), book, event.pool, int(event.pool_liquidity_raw)))
            own = own_liquidity(int(event.liquidity_raw), book, event.pool)
            self.same("refusal", "", opening_objection(rules, event, book)[0] or share_objection(rules, own, int(event.pool_liquidity_raw))[0])
        if self.accrual:
            self.accrual.opened(event)

    def accrued(self, event: LiquidityAccrued) -> None:
        """Check that fees follow on those before, and are what their growth makes of the liquidity."""
        for ledger in event.ledgers:
            position = self._position(event.run_id, ledger, event.position)
            growths = (int(event.growth0_x128), int(event.growth1_x128))
            for name, raw, growth in zip(("fees0_raw", "fees1_raw"), (event.fees0_raw, event.fees1_raw), growths, strict=True):
                self.same(name, raw, TokenRaw(growth * position.liquidity >> 128))
            if not event.healed:
                self.same("from_block", event.from_block, position.block + 1)
                self.same("growth", growths, tuple(max(pair) for pair in zip(growths, position.growth_x128, strict=True)))
        if self.accrual:
            self.accrual.accrued(event)

    def closed(self, event: LiquidityClosed, asked: OrderAsked) -> None:
        """Check a closing: the fees that were counted up to its block, and the entry."""
        self.same("position", event.position, asked.position)
        fees, amounts = (int(event.fees0_raw), int(event.fees1_raw)), (int(event.amount0_raw), int(event.amount1_raw))
        for ledger in event.ledgers:
            position = self._position(event.run_id, ledger, event.position)
            self.same("fees", (event.fees0_raw, event.fees1_raw), _at_most((event.fees0_raw, event.fees1_raw), position.fees))
            self.same("pin.block", event.pin.block, min(event.pin.block, position.block))
            self._principal(position, amounts, int(event.sqrt_price_x96), event.pin)
            self.same("entry", event.entry, closing_entry(event.ledgers, position, amounts, fees, int(event.gas_wei)))

    def _principal(self, position: Position, amounts: tuple[int, int], sqrt_price_x96: int, pin: Pin | None) -> None:
        """No closing brings more than the pool's arithmetic at its price."""
        if not sqrt_price_x96:
            return
        most = amounts_of(position.liquidity, sqrt_price_x96, position.tick_lower, position.tick_upper)
        self.same("principal", amounts, _at_most(amounts, most))
        if self.accrual and pin is not None:
            self.accrual.priced(position, pin, sqrt_price_x96)

    def marked(self, run_id: str, ledgers: Sequence[str], marks: Sequence[PositionMark], pin: Pin | None) -> tuple[Wei, Wei, dict[tuple[str, str], int]]:
        """Check the positions in a mark; what they come to, how much of it rests on claims, and what a liquidation of them moves."""
        for ledger in ledgers:
            held = {position.id: position for position in self._book(run_id, ledger).positions}
            self.same("positions", [mark.position for mark in marks], list(held))
            for mark in marks:
                position = held[mark.position]
                fees = (mark.fees0_raw, mark.fees1_raw)
                self.same(f"positions.{position.id}.fees", fees, _at_most(fees, position.fees))
                self._principal(position, (int(mark.amount0_raw), int(mark.amount1_raw)), int(mark.sqrt_price_x96), pin)
                self.same(f"positions.{position.id}.value_wei", mark.value_wei, worth_of(position, mark))
        moves: dict[tuple[str, str], int] = {}
        book = self._book(run_id, ledgers[0])
        for mark in marks:
            position = book.position(mark.position)
            assert position is not None
            for key, amount in exit_moves(position, mark).items():
                moves[key] = moves.get(key, 0) + amount
        return sum((mark.value_wei for mark in marks), Wei(0)), sum((claimed_wei(mark) for mark in marks), Wei(0)), moves

    def _book(self, run_id: str, ledger: str) -> Book:
        return self.state.books.of(run_id, ledger)

    def _position(self, run_id: str, ledger: str, position_id: str) -> Position:
        position = self._book(run_id, ledger).position(position_id)
        if position is None:
            self.same("position", position_id, "none that is open")
        assert position is not None
        return position


def _at_most(told: tuple[TokenRaw, TokenRaw], counted: tuple[TokenRaw, TokenRaw]) -> tuple[TokenRaw, TokenRaw]:
    """Fees as told, unless more than were counted: a token may take its part of what arrives."""
    return min(told[0], counted[0]), min(told[1], counted[1])
