"""What can happen on the ledgers beside headline and permissive: delayed and own impact (ONC-22, ONC-23; 001 §5.1, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import Entry
from referee.onchain.events import Pin, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherBoardTaken(Event):
    """An order simulated again for one further ledger: later, or after the run's own earlier trades."""

    order_id: str
    ledgers: tuple[str, ...]
    """One: delayed or impact."""
    side: str
    token: str
    size_raw: TokenRaw
    """Wei spent (buy) or token units sold (sell)."""
    size_units_raw: TokenRaw
    shares: bool
    pin: Pin
    gas_price_wei: Wei
    delay_ms: int
    """Chain time between the headline's pinned block and this one; 0 for own impact."""
    quote_raw: TokenRaw | None
    """What arrived on the headline's board: the bound of a delayed fill is counted from it; none for own impact."""
    least_raw: TokenRaw | None
    """Least that must arrive, in parts of the quote; none for own impact."""
    earlier: tuple[str, ...]
    """Orders whose fills were executed again first; empty for delayed."""
    earlier_weights_ppm: tuple[int, ...]
    """How much of each is still felt, by the declared decay."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSkipped(Event):
    """A further ledger has no say in an order: it holds nothing of it, or the order did not fill where it is measured from."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedReverted(Event):
    """A delayed order brought less than its bound: the transaction reverts, and its gas is paid."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    gas_wei: Wei
    entry: Entry


KINDS: tuple[type[Event], ...] = (FurtherBoardTaken, OrderSkipped, DelayedReverted)
