"""What can happen on the ledgers beside headline and permissive: delayed and own impact (ONC-22, ONC-23; 001 §5.1, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import Entry
from referee.onchain.events import Pin, Row, WordKept


@dataclass(frozen=True, slots=True, kw_only=True)
class WayTaken:
    """What of a fill went one way."""

    amount_raw: TokenRaw
    """Wei spent (buy) or token units sold (sell)."""
    pools: tuple[str, ...]
    """Pools in the order they were crossed."""


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
    """Orders of earlier decisions whose fills were executed again first, oldest first; empty for delayed."""
    earlier_weights_ppm: tuple[int, ...]
    """How much of each is still felt, by the declared decay."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSkipped(Event):
    """A further ledger has no say in an order: it holds nothing of it, or the order did not fill where it is measured from."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    """headline_refused, headline_not_filled, liquidity_order or not_held."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedReverted(Event):
    """A delayed order brought less than its bound: the transaction reverts, and its gas is paid."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    """below_bound, or reverted when nothing arrived at all."""
    detail: str
    route: str
    arrival_raw: TokenRaw | None
    """What would have arrived; none when the swap itself reverted."""
    gas_wei: Wei
    """Gas of the swap and of approvals not paid yet, as simulated, or the estimate where the swap itself reverted: a revert at the
    bound comes last and saves next to nothing."""
    approvals: tuple[str, ...]
    """Approvals paid on the way, `token>spender`; they stand."""
    evidence_sha256: str
    """Blob with the request and the answer."""
    entry: Entry
    kept: tuple[WordKept, ...] = ()
    """Every word that it wrote beside the market's, set by override in every later simulation (ONC-29)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRemembered(Event):
    """How a fill of the own-impact ledger went through pools, so that it can be run again before later ones; follows the fill."""

    order_id: str
    ledgers: tuple[str, ...]
    """One: impact."""
    route: str
    ways: tuple[WayTaken, ...]
    """One, or those of a split."""


KINDS: tuple[type[Event], ...] = (FurtherBoardTaken, OrderSkipped, DelayedReverted, RouteRemembered)
