"""The position: liquidity that a run holds on paper in a pool, as a fold over what opened, grew and closed it (ONC-21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chain.pools import Pool
from ledgers.errors import CorruptJournal
from ledgers.events import Event
from ledgers.money import TokenRaw
from referee.onchain.events import WindowLiquidated
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened

COUNTED = ("proven", "unprovable")
"""How a mark says that a position counts; in a liquidation it is then closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One position of one ledger."""

    id: str
    """The order that opened it."""
    venue: str
    pool: str
    token0: str
    """Zero for native ETH."""
    token1: str
    asset0: str
    """`eth`, or the token's address."""
    asset1: str
    fee_ppm: int
    tick_spacing: int
    hooks: str
    tick_lower: int
    tick_upper: int
    liquidity: int
    put_in: tuple[TokenRaw, TokenRaw]
    """What left the book for it of both tokens."""
    opened_block: int
    path_sha256: str
    """The pool at that block, a blob."""
    block: int
    """The last block that its fees are counted of; at first the one it was opened at."""
    block_hash: str
    growth_x128: tuple[int, int] = (0, 0)
    """Fee growth inside the range since the opening."""
    fees: tuple[TokenRaw, TokenRaw] = (TokenRaw(0), TokenRaw(0))
    """Fees up to that block."""

    @property
    def assets(self) -> tuple[str, str]:
        """What both sides are booked as."""
        return self.asset0, self.asset1


def opened_position(event: LiquidityOpened) -> Position:
    """The position that an opening makes."""
    return Position(
        id=event.position, venue=event.venue, pool=event.pool, token0=event.token0, token1=event.token1, asset0=event.asset0,
        asset1=event.asset1, fee_ppm=event.fee_ppm, tick_spacing=event.tick_spacing, hooks=event.hooks, tick_lower=event.tick_lower,
        tick_upper=event.tick_upper, liquidity=int(event.liquidity_raw), put_in=(event.amount0_raw, event.amount1_raw),
        opened_block=event.pin.block, path_sha256=event.path_sha256, block=event.pin.block, block_hash=event.pin.block_hash,
    )  # fmt: skip


def pool_of(position: Position) -> Pool:
    """The pool of a position, from what its opening recorded."""
    return Pool(
        venue=position.venue, key=position.pool, token0=position.token0, token1=position.token1, fee_ppm=position.fee_ppm,
        tick_spacing=position.tick_spacing, hooks=position.hooks, born_block=0,
    )  # fmt: skip


@dataclass(slots=True)
class Accrued:
    """What positions earned up to a block."""

    events: list[LiquidityAccrued] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    fees_of: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By position, since its opening."""
    price_of: dict[str, int] = field(default_factory=dict)
    """Square root price of each pool at the block."""

    def add(self, other: Accrued) -> None:
        """Take in what another pool's positions earned."""
        self.events += other.events
        self.blobs |= other.blobs
        self.fees_of |= other.fees_of
        self.price_of |= other.price_of


@dataclass(slots=True)
class RunPositions:
    """The open positions of one run, by ledger and id."""

    open: dict[tuple[str, str], Position] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Fold one event in. Raises: CorruptJournal when it speaks of a position that is not there."""
        match event:
            case LiquidityOpened():
                self._open(event)
            case LiquidityAccrued():
                for key in self._keys(event.ledgers, event.position):
                    self.open[key] = replace(
                        self.open[key], block=event.to_block, block_hash=event.to_block_hash,
                        growth_x128=(int(event.growth0_x128), int(event.growth1_x128)), fees=(event.fees0_raw, event.fees1_raw),
                    )  # fmt: skip
            case LiquidityClosed():
                for key in self._keys(event.ledgers, event.position):
                    del self.open[key]
            case WindowLiquidated():
                for mark in (mark for mark in event.positions if mark.status in COUNTED):
                    for key in self._keys(event.ledgers, mark.position):
                        del self.open[key]

    def of(self, ledger: str) -> tuple[Position, ...]:
        """Open positions of a ledger, in the order they were opened."""
        return tuple(position for (name, _), position in self.open.items() if name == ledger)

    def _open(self, event: LiquidityOpened) -> None:
        for ledger in event.ledgers:
            if (ledger, event.position) in self.open:
                raise CorruptJournal(f"position {event.position} was opened twice on {ledger}")
            self.open[ledger, event.position] = opened_position(event)

    def _keys(self, ledgers: Sequence[str], position: str) -> list[tuple[str, str]]:
        keys = [(ledger, position) for ledger in ledgers]
        if missing := [key for key in keys if key not in self.open]:
            raise CorruptJournal(f"{missing[0][0]} has no open position {position}")
        return keys
