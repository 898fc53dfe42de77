"""The valuing: marks and liquidation of every ledger of a run, by full-size sales in simulation (ONC-12).

The ledgers that share boards come first and never wait for a further one, which has its own sales, its own events and its own
faults; a ledger that holds nothing but ETH needs no sale and is valued with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from chain.trade import UNREPEATABLE
from ledgers.errors import ChainFault
from referee.onchain.book import Book
from referee.onchain.doors import Valued
from referee.onchain.events import HEADLINE, IMPACT, Pin
from referee.onchain.live import LiveWindow
from referee.onchain.recording import pinned, record
from referee.onchain.state import Trade
from referee.onchain.valuation import TURN, liquidations, logs_of, marks, unmeasured

SELL_OUT_TRIES = 3
"""A further ledger that cannot be liquidated after so many tries at later blocks has no value; the score does not wait longer."""
SELL_OUT_AGAIN_MS = 2_000


async def mark(live: LiveWindow, run_ids: Sequence[str], clock: str) -> None:
    """Value runs by full-size sales, all at one block; a fault leaves a mark without a value (ONC-12)."""
    pin: Pin | None = None
    fault = ""
    try:
        pin = await pinned(live)
    except ChainFault as error:
        fault = error.reason
    await asyncio.gather(*(mark_run(live, run_id, clock, pin, fault) for run_id in run_ids))


async def mark_run(live: LiveWindow, run_id: str, clock: str, pin: Pin | None, fault: str) -> None:
    """Mark one run; its further ledgers after the others, unless they follow orders: then they are marked when that is done."""
    further = () if live.following[run_id] else live.state.runs[run_id].further
    async with AsyncExitStack() as held:
        if further:
            await held.enter_async_context(live.further_writing[run_id])
        await held.enter_async_context(live.marking)
        of = {ledger: live.state.books.of(run_id, ledger) for ledger in further}
        apart = [ledger for ledger, book in of.items() if book.holdings and pin is not None]
        async with live.writing[run_id]:
            books = live.state.books.both(run_id) | {ledger: book for ledger, book in of.items() if ledger not in apart}
            await mark_together(live, run_id, clock, pin, books, fault)
        if pin is not None:
            await mark_apart(live, run_id, clock, live.state.runs[run_id].last_tick, pin, apart)


async def mark_together(live: LiveWindow, run_id: str, clock: str, pin: Pin | None, books: Mapping[str, Book], fault: str) -> None:
    """Mark the ledgers that share boards, and those that hold nothing but ETH."""
    run = live.state.runs[run_id]
    if pin is not None:
        try:
            valued = await live.desk.value(run_id, run.opened.wallet, tuple(books.values()), pin)
            await record(live, *marks(run_id, clock, run.last_tick, pin, valued, live.clock.now_ms()), blobs=logs_of(valued))
            return
        except ChainFault as error:
            fault = error.reason
    await record(live, *unmeasured(run_id, clock, run.last_tick, pin, books, fault, live.clock.now_ms()))


async def mark_after(live: LiveWindow, run_id: str, tick: int) -> None:
    """Mark the further ledgers of a run after a turn whose orders they followed."""
    async with live.further_writing[run_id], live.marking:
        try:
            pin = await pinned(live)
        except ChainFault as fault:
            books = {ledger: live.state.books.of(run_id, ledger) for ledger in live.state.runs[run_id].further}
            await record(live, *unmeasured(run_id, TURN, tick, None, books, fault.reason, live.clock.now_ms()))
            return
        await mark_apart(live, run_id, TURN, tick, pin, live.state.runs[run_id].further)


async def mark_apart(live: LiveWindow, run_id: str, clock: str, tick: int, pin: Pin, ledgers: Sequence[str]) -> None:
    """Mark further ledgers one by one; a fault leaves that one without a value."""
    for ledger in ledgers:
        try:
            valued = await _valued(live, run_id, ledger, pin)
        except ChainFault as fault:
            books = {ledger: live.state.books.of(run_id, ledger)}
            await record(live, *unmeasured(run_id, clock, tick, pin, books, fault.reason, live.clock.now_ms()))
            continue
        await record(live, *marks(run_id, clock, tick, pin, valued, live.clock.now_ms()))


# --- liquidation ----------------------------------------------------------------------------------------------------


async def sell_out(live: LiveWindow, run_ids: Sequence[str]) -> dict[str, str]:
    """Try to sell runs out at one block; return the fault of each that could not be."""
    try:
        pin = await pinned(live)
    except ChainFault as fault:
        return dict.fromkeys(run_ids, fault.reason)
    faults = await asyncio.gather(*(sell_out_run(live, run_id, pin) for run_id in run_ids))
    return {run_id: fault for run_id, fault in zip(run_ids, faults, strict=True) if fault}


async def sell_out_run(live: LiveWindow, run_id: str, pin: Pin) -> str:
    """Sell one run out in full on the ledgers that share boards, in one append, and on further ones after; return the fault that hindered it."""
    async with live.marking, live.writing[run_id]:
        further = (live.state.books.of(run_id, ledger) for ledger in live.state.runs[run_id].further)
        books = (*live.state.books.both(run_id).values(), *(book for book in further if not book.holdings))
        try:
            valued = await live.desk.value(run_id, live.state.runs[run_id].opened.wallet, books, pin)
        except ChainFault as fault:
            return fault.reason
        blobs = logs_of(valued) | {value.digest: value.evidence for value in valued}
        await record(live, *liquidations(run_id, pin, valued, live.state.closed_late, live.clock.now_ms()), blobs=blobs)
        await liquidate_apart(live, run_id, pin)
    return ""


async def liquidate_apart(live: LiveWindow, run_id: str, pin: Pin) -> None:
    """Try to sell out those further ledgers of a run that have not been, each in an append of its own."""
    run = live.state.runs[run_id]
    for ledger in (ledger for ledger in run.further if ledger not in run.liquidated and (run_id, ledger) not in live.worthless):
        try:
            valued = await _valued(live, run_id, ledger, pin)
        except ChainFault as fault:
            if fault.reason == UNREPEATABLE:
                live.worthless.add((run_id, ledger))
            continue
        blobs = {value.digest: value.evidence for value in valued}
        await record(live, *liquidations(run_id, pin, valued, live.state.closed_late, live.clock.now_ms()), blobs=blobs)


async def liquidate_left(live: LiveWindow) -> None:
    """Sell out the further ledgers that were left, at later blocks and a few times only; what cannot be sold stays without a value."""
    for _ in range(SELL_OUT_TRIES):
        left = [run_id for run_id, run in live.state.runs.items() if _left(live, run_id) and HEADLINE in run.liquidated]
        if not left:
            return
        try:
            pin = await pinned(live)
            for run_id in left:
                await liquidate_apart(live, run_id, pin)
        except ChainFault:
            pass
        if any(_left(live, run_id) for run_id in left):
            await live.alarm.until(live.clock.now_ms() + SELL_OUT_AGAIN_MS)


def _left(live: LiveWindow, run_id: str) -> list[str]:
    run = live.state.runs[run_id]
    return [ledger for ledger in run.further if ledger not in run.liquidated and (run_id, ledger) not in live.worthless]


async def _valued(live: LiveWindow, run_id: str, ledger: str, pin: Pin) -> Sequence[Valued]:
    wallet, book = live.state.runs[run_id].opened.wallet, live.state.books.of(run_id, ledger)
    return await live.further.value(run_id, wallet, book, pin, trades_of(live, run_id, ledger))


def trades_of(live: LiveWindow, run_id: str, ledger: str) -> tuple[Trade, ...]:
    """The trades that a further ledger meets again: its own, on the one of own impact."""
    return tuple(live.state.runs[run_id].trades) if ledger == IMPACT else ()
