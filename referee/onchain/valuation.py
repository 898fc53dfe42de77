"""The valuation of a run as events: marks, the liquidation, and what a fault left unmeasured (ONC-12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ledgers.events import Event
from ledgers.money import Wei
from referee.onchain.book import Book
from referee.onchain.doors import Valued
from referee.onchain.events import MarkTaken, Pin, WindowLiquidated

TURN = "turn"
CLOCK = "clock"


def marks(run_id: str, clock: str, tick: int, pin: Pin, valued: Sequence[Valued], ts_ms: int) -> tuple[Event, ...]:
    """Write down measured marks, one for each distinct book, after what their positions earned."""
    return (*accrued(valued), *(
        MarkTaken(
            run_id=run_id,
            ts_ms=ts_ms,
            clock=clock,
            tick=tick,
            ledgers=value.ledgers,
            pin=pin,
            eth_wei=value.eth_wei,
            holdings=value.holdings,
            value_wei=value.value_wei,
            fault="",
            digest=value.digest,
            positions=value.positions,
        )
        for value in valued
    ))


def unmeasured(run_id: str, clock: str, tick: int, pin: Pin | None, books: Mapping[str, Book], fault: str, ts_ms: int) -> tuple[MarkTaken, ...]:
    """Write down marks that a fault left without a value: none, never 0. Shapes: one for each distinct amount of ETH."""
    by_eth: dict[Wei, list[str]] = {}
    for ledger, book in books.items():
        by_eth.setdefault(book.eth_wei, []).append(ledger)
    return tuple(
        MarkTaken(
            run_id=run_id,
            ts_ms=ts_ms,
            clock=clock,
            tick=tick,
            ledgers=tuple(ledgers),
            pin=pin,
            eth_wei=eth_wei,
            holdings=(),
            value_wei=None,
            fault=fault,
            digest="",
        )
        for eth_wei, ledgers in by_eth.items()
    )


def liquidations(run_id: str, pin: Pin, valued: Sequence[Valued], late: bool, ts_ms: int) -> tuple[Event, ...]:
    """Write down a full liquidation, one for each distinct book, after what their positions earned; it closes them."""
    return (*accrued(valued), *(
        WindowLiquidated(
            run_id=run_id,
            ts_ms=ts_ms,
            ledgers=value.ledgers,
            pin=pin,
            eth_wei=value.eth_wei,
            holdings=value.holdings,
            value_wei=value.value_wei,
            unproven_wei=value.unproven_wei,
            late=late,
            entry=value.entry,
            evidence_sha256=value.digest,
            positions=value.positions,
        )
        for value in valued
    ))


def accrued(valued: Sequence[Valued]) -> Iterator[Event]:
    """What positions earned up to the valued block."""
    return (event for value in valued for event in value.accrued)


def logs_of(valued: Sequence[Valued]) -> dict[str, bytes]:
    """The logs behind that, by SHA-256."""
    return {digest: logs for value in valued for digest, logs in value.blobs.items()}
