"""The positions: what became of every liquidity position of a window, as a fold over its journal (ONC-21).

Fees and impermanent loss are never one number: fees are what real swaps left, computed from the pool's logs; impermanent loss is
what the principal is worth less what the amounts put in would be worth unpooled, both at the same price of the pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from chain.liquidity.ticks import sqrt_price_at
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import ETH
from referee.onchain.events import HEADLINE, MarkTaken, PositionMark, WindowLiquidated
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.position import COUNTED
from referee.onchain.position_marks import at_pool_price

OPEN, CLOSED, LIQUIDATED, LOST = "open", "closed", "liquidated", "counted 0"
"""How a position stands: by an order, by the window's end, or not to be closed at its end."""
INSIDE, BELOW, ABOVE = "in range", "below its range", "above its range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Parts of a position in ETH, at one price of its pool."""

    block: int
    principal_wei: Wei
    fees_wei: Wei
    held_wei: Wei
    """What was put in, unpooled."""

    @property
    def impermanent_wei(self) -> Wei:
        """Impermanent loss, below zero where the range lost."""
        return self.principal_wei - self.held_wei


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One position on the ledgers that keep it alike."""

    opened: LiquidityOpened
    ledgers: tuple[str, ...]
    accruals: tuple[LiquidityAccrued, ...] = ()
    mark: PositionMark | None = None
    """The last one."""
    mark_block: int | None = None
    state: str = OPEN
    closed: LiquidityClosed | None = None

    @property
    def id(self) -> str:
        """The order that opened it."""
        return self.opened.position

    @property
    def told(self) -> tuple[object, ...]:
        """Everything that ledgers may differ in."""
        counted = [(event.to_block, event.swaps, event.fees0_raw, event.fees1_raw) for event in self.accruals]
        sold = (self.mark.value_wei, self.mark.status) if self.mark else None
        return self.id, self.opened.liquidity_raw, self.put_in, counted, self.principal, sold, self.state, self.fees, self.gas_wei

    @property
    def assets(self) -> tuple[str, str]:
        """What both sides are booked as."""
        return self.opened.asset0, self.opened.asset1

    @property
    def put_in(self) -> tuple[TokenRaw, TokenRaw]:
        """What left the book for it."""
        return self.opened.amount0_raw, self.opened.amount1_raw

    @property
    def principal(self) -> tuple[TokenRaw, TokenRaw] | None:
        """What came back at the closing, else what was there at the last mark; none before the first."""
        told = self.closed or self.mark
        return (told.amount0_raw, told.amount1_raw) if told else None

    @property
    def fees(self) -> tuple[TokenRaw, TokenRaw]:
        """Fees of both sides as far as they are counted."""
        told = self.closed or (self.accruals[-1] if self.accruals else None)
        return (told.fees0_raw, told.fees1_raw) if told else (TokenRaw(0), TokenRaw(0))

    @property
    def end_block(self) -> int | None:
        """Block at which it was closed, if it was."""
        return self.closed.pin.block if self.closed else self.mark_block if self.state == LIQUIDATED else None

    @property
    def swaps(self) -> int:
        """Swaps of the pool that were counted."""
        return sum(event.swaps for event in self.accruals)

    @property
    def crossings(self) -> int:
        """Initialised ticks that they crossed."""
        return sum(event.crossings for event in self.accruals)

    @property
    def gas_wei(self) -> Wei:
        """Gas of its opening, and of its closing once it is closed."""
        if self.closed:
            return self.opened.gas_wei + self.closed.gas_wei
        return self.opened.gas_wei + self.mark.close_gas_wei if self.mark and self.state == LIQUIDATED else self.opened.gas_wei

    @property
    def sqrt_price_x96(self) -> int:
        """The pool's last known price; 0 when none was recorded."""
        return int((self.closed or self.mark or self.opened).sqrt_price_x96)

    @property
    def where(self) -> str:
        """Where that price is against the range; empty when it is not known."""
        price = self.sqrt_price_x96
        if not price:
            return ""
        if price < sqrt_price_at(self.opened.tick_lower):
            return BELOW
        return INSIDE if price < sqrt_price_at(self.opened.tick_upper) else ABOVE

    @property
    def worth(self) -> Worth | None:
        """Its parts in ETH at the closing, else at the last mark; none where neither says a price in ETH."""
        if self.closed and self.sqrt_price_x96 and ETH in self.assets:
            principal, fees, held = (
                at_pool_price(self.assets, self.sqrt_price_x96, (int(pair[0]), int(pair[1]))) for pair in (self.principal or self.put_in, self.fees, self.put_in)
            )
            return Worth(block=self.closed.pin.block, principal_wei=Wei(principal), fees_wei=Wei(fees), held_wei=Wei(held))
        if self.mark and self.mark_block is not None:
            return Worth(block=self.mark_block, principal_wei=self.mark.principal_wei, fees_wei=self.mark.fees_wei, held_wei=self.mark.held_wei)
        return None

    @property
    def net_wei(self) -> Wei | None:
        """Fees and impermanent loss less its gas: what it brought beyond holding what was put in; all of that is gone where nothing came back."""
        worth = self.worth
        if worth is None:
            return None
        return Wei(0) - worth.held_wei - self.gas_wei if self.state == LOST else worth.fees_wei + worth.impermanent_wei - self.gas_wei

    def data(self) -> dict[str, object]:
        """Give it as a JSON object, amounts as decimal strings."""
        opened, worth, principal = self.opened, self.worth, self.principal
        known = {"principal_wei": worth.principal_wei, "held_wei": worth.held_wei, "impermanent_loss_wei": worth.impermanent_wei, "fees_wei": worth.fees_wei, "net_wei": self.net_wei} if worth else {}
        return {
            "position": self.id, "ledgers": list(self.ledgers), "state": self.state, "venue": opened.venue, "pool": opened.pool,
            "token0": opened.token0, "token1": opened.token1, "fee_ppm": opened.fee_ppm, "tick_lower": opened.tick_lower, "tick_upper": opened.tick_upper,
            "where": self.where or None, "share_ppm": opened.share_ppm, "opened_block": opened.pin.block, "closed_block": self.end_block,
            "put_in_raw": [str(raw) for raw in self.put_in], "principal_raw": [str(raw) for raw in principal] if principal else None,
            "fees_raw": [str(raw) for raw in self.fees], "swaps": self.swaps, "crossings": self.crossings, "valued_block": worth.block if worth else None,
            **{name: None if name not in known else str(known[name]) for name in ("principal_wei", "held_wei", "impermanent_loss_wei", "fees_wei", "net_wei")},
            "marked_wei": str(self.mark.value_wei) if self.mark and not self.closed else None, "gas_wei": str(self.gas_wei),
        }  # fmt: skip


@dataclass(slots=True)
class Positions:
    """The positions of a window or of a run, on every ledger."""

    kept: dict[tuple[str, str], Kept] = field(default_factory=dict)
    """By ledger and position, in the order they were opened."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case LiquidityOpened():
                self.kept |= {(ledger, event.position): Kept(opened=event, ledgers=(ledger,)) for ledger in event.ledgers}
            case LiquidityAccrued():
                for kept in self._of(event.ledgers, event.position):
                    before = tuple(each for each in kept.accruals if each.to_block < event.from_block)
                    self._put(replace(kept, accruals=(*before, event)))
            case LiquidityClosed():
                for kept in self._of(event.ledgers, event.position):
                    self._put(replace(kept, closed=event, state=CLOSED))
            case MarkTaken() | WindowLiquidated() if event.pin is not None:
                self._mark(event, event.pin.block)

    def _mark(self, event: MarkTaken | WindowLiquidated, block: int) -> None:
        for mark in event.positions:
            ended = LIQUIDATED if mark.status in COUNTED else LOST
            for kept in self._of(event.ledgers, mark.position):
                self._put(replace(kept, mark=mark, mark_block=block, state=ended if isinstance(event, WindowLiquidated) else kept.state))

    def all(self) -> list[Kept]:
        """Every position, once for all ledgers that keep it alike, in the order they were opened."""
        found: list[Kept] = []
        for kept in self.kept.values():
            place = next((place for place, other in enumerate(found) if other.told == kept.told), None)
            if place is None:
                found.append(kept)
            else:
                found[place] = replace(found[place], ledgers=(*found[place].ledgers, *kept.ledgers))
        return found

    def of(self, position: str) -> list[Kept]:
        """One position, once for all ledgers that keep it alike."""
        return [kept for kept in self.all() if kept.id == position]

    def open_on_headline(self, run_id: str) -> list[Kept]:
        """A run's open positions on the ledger that is scored."""
        return [kept for (ledger, _), kept in self.kept.items() if ledger == HEADLINE and kept.opened.run_id == run_id and kept.state == OPEN]

    def _of(self, ledgers: Iterable[str], position: str) -> list[Kept]:
        return [self.kept[ledger, position] for ledger in ledgers if (ledger, position) in self.kept]

    def _put(self, kept: Kept) -> None:
        self.kept[kept.ledgers[0], kept.id] = kept
