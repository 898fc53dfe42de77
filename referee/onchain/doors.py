"""The doors a run stands behind: the desk that referees, the market that is shown, the alarm that wakes it.

A run knows these shapes only; `ops/assembly.py` puts the real ones in, tests put in fakes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chain.router import Route
from ledgers.events import Event
from ledgers.money import MicroUsd, Wei
from ledgers.postings import Entry
from referee.onchain.book import Book
from referee.onchain.events import FillCredited, HoldingMark, OrderAsked, Pin, PoolCrossed, PositionMark, WindowOpened
from referee.onchain.liquidity_events import LiquidityAccrued
from referee.onchain.state import Trade


class Refereed(Protocol):
    """What the rules made of one order."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Boards, gates, routes and one outcome for each ledger."""
        ...

    @property
    def blobs(self) -> Mapping[str, bytes]:
        """Evidence by SHA-256."""
        ...


class Valued(Protocol):
    """What a book would bring by full-size sales; one value may stand for several ledgers with equal books."""

    @property
    def ledgers(self) -> tuple[str, ...]: ...
    @property
    def eth_wei(self) -> Wei: ...
    @property
    def holdings(self) -> tuple[HoldingMark, ...]: ...
    @property
    def value_wei(self) -> Wei: ...
    @property
    def unproven_wei(self) -> Wei: ...
    @property
    def entry(self) -> Entry:
        """The sales as an entry, booked when it is a liquidation."""
        ...

    @property
    def positions(self) -> tuple[PositionMark, ...]: ...
    @property
    def accrued(self) -> tuple[LiquidityAccrued, ...]:
        """What positions earned up to the block, recorded before the value."""
        ...

    @property
    def blobs(self) -> Mapping[str, bytes]:
        """Logs behind that, by SHA-256."""
        ...

    @property
    def digest(self) -> str: ...
    @property
    def evidence(self) -> bytes:
        """Requests and answers behind it."""
        ...


class DecisionDesk(Protocol):
    """Takes the orders of one decision, one after another (ONC-24)."""

    @property
    def filled(self) -> Mapping[str, Route]:
        """Routes that headline filled at, by order id."""
        ...

    def order(self, asked: OrderAsked, books: Mapping[str, Book]) -> Awaitable[Refereed]:
        """Referee one order. Raises: nothing of the outside world; a fault becomes an outcome."""
        ...


class FurtherDecision(Protocol):
    """Takes the orders of one decision on one further ledger, one after another."""

    def follow(self, asked: OrderAsked, fill: FillCredited, route: Route | None, quoted_pin: Pin, book: Book) -> Awaitable[Refereed]:
        """Referee an order that headline filled on `route` at `quoted_pin`. Raises: nothing of the outside world."""
        ...


class FurtherDesk(Protocol):
    """The desk of the further ledgers (`further_desk.py`)."""

    def decision(self, ledger: str, run_id: str, wallet: str, tick: int, pin: Pin, book: Book, trades: Sequence[Trade] = ()) -> FurtherDecision:
        """Open the orders of one decision on a further ledger, whose book now is `book`, after the trades of earlier decisions."""
        ...

    def value(self, run_id: str, wallet: str, book: Book, pin: Pin, trades: Sequence[Trade] = ()) -> Awaitable[Sequence[Valued]]:
        """Value a book after earlier trades. Raises: ChainFault."""
        ...


class Desk(Protocol):
    """The referee's desk (`board.py`)."""

    @property
    def clock_offset_ms(self) -> int:
        """Chain time minus wall time, as last measured."""
        ...

    def pin(self) -> Awaitable[Pin]:
        """Choose the block to pin to. Raises: ChainFault."""
        ...

    def decision(self, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, books: Mapping[str, Book]) -> DecisionDesk:
        """Open the orders of one decision, whose books now are `books`."""
        ...

    def value(self, run_id: str, wallet: str, books: Sequence[Book], pin: Pin) -> Awaitable[Sequence[Valued]]:
        """Value books. Raises: ChainFault."""
        ...


class EthPrice(Protocol):
    """What one ETH costs."""

    @property
    def micro_usd(self) -> MicroUsd: ...
    @property
    def feed_micro_usd(self) -> MicroUsd: ...
    @property
    def pools(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSeen:
    """What the node behind the doors is."""

    name: str
    label: str
    chain_id: int
    block0_hash: str
    client: str
    clock_offset_ms: int
    """Chain time minus wall time, measured now."""


class Market(Protocol):
    """The chain as far as it is shown and priced."""

    @property
    def lane(self) -> str:
        """Name of the lane that answered last."""
        ...

    def network(self) -> Awaitable[NetworkSeen]:
        """Say what the node is. Raises: ChainFault."""
        ...

    def eth_usd(self, pin: Pin) -> Awaitable[EthPrice]:
        """Price one ETH. Raises: ChainFault, FeedFault when pools and feed disagree or there is no price."""
        ...

    def follow(self, pin: Pin) -> Awaitable[None]:
        """Know the pools and their states of a block that orders stand on, as far as they can be had."""
        ...

    def used_addresses(self, addresses: Collection[str], pin: Pin) -> Awaitable[Collection[str]]:
        """Name those addresses that have code, a nonce or a balance. Raises: ChainFault."""
        ...

    def hashes(self, blocks: Collection[int]) -> Awaitable[Mapping[int, str]]:
        """Hash of each block that the node still knows. Raises: ChainFault."""
        ...

    def pools_crossed(self, fill: FillCredited, route: Route, block: int) -> Awaitable[tuple[PoolCrossed, ...]]:
        """Say what is known of the pools that a fill at a block went through; none of a route whose pools are not known.

        Raises: nothing of the outside world; what cannot be told is unknown."""
        ...

    def bundle(self, opened: WindowOpened, tick: int, pin: Pin) -> Awaitable[bytes]:
        """Write what every stack of a tick is shown. Raises: ChainFault."""
        ...


class Alarm(Protocol):
    """Wakes the process; what was missed is counted from the schedule, never from it."""

    def until(self, ts_ms: int) -> Awaitable[None]:
        """Return once wall time has come to `ts_ms`, at once when it is past."""
        ...
