"""The following: what a run's further ledgers make of a decision, once the headline's outcomes are on record.

    follow → own impact, at the headline's own block · delayed, at a block that is late enough → mark

It runs beside the turns: nobody waits for it but the close, which liquidates when the last of it has ended; an order
decided shortly before the close is still delayed in full. A fault costs a further ledger its outcome and nothing else.
Source: 001 §5.1, §5.2; ONC-22, ONC-23.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from chain.router import Route
from ledgers.errors import ChainFault
from referee.onchain.credit import not_filled
from referee.onchain.events import DELAYED, HEADLINE, IMPACT, FillCredited, OrderAsked, Pin
from referee.onchain.live import LiveWindow
from referee.onchain.recording import pinned, record
from referee.onchain.valuing import mark_after, trades_of

FAULT = "fault"
PIN_AGAIN_MS = 250
"""Between looks for a block that is late enough; all who wait look at the same times."""
QUIET_WAIT_MS_MAX = 2_000
"""Longest wait for the orders of others before own impact is simulated all the same."""
PIN_WAIT_MS_MAX = 30_000
"""A chain that has no such block so long after the delay is at fault."""


@dataclass(frozen=True, slots=True)
class Followed:
    """An order that headline filled."""

    asked: OrderAsked
    fill: FillCredited
    route: Route | None
    """What headline filled at."""


async def follow(live: LiveWindow, run_id: str, tick: int, followed: Sequence[Followed]) -> None:
    """Play the filled orders of one decision on every further ledger of their run; then mark those. Counted in `live.following`."""
    try:
        async with asyncio.TaskGroup() as ledgers:
            if IMPACT in live.state.runs[run_id].further:
                ledgers.create_task(own_impact(live, run_id, tick, followed))
            if DELAYED in live.state.runs[run_id].further:
                ledgers.create_task(delayed(live, run_id, tick, followed))
    finally:
        live.following[run_id] -= 1
    await mark_after(live, run_id, tick)


async def own_impact(live: LiveWindow, run_id: str, tick: int, followed: Sequence[Followed]) -> None:
    """Simulate orders again at their own block, after the run's earlier trades (ONC-23)."""
    async with live.felt[run_id]:
        await quiet(live)
        async with live.further_writing[run_id]:
            quoted = _quoted(live, run_id, followed)
            await _orders(live, run_id, IMPACT, tick, quoted, quoted, followed)


async def delayed(live: LiveWindow, run_id: str, tick: int, followed: Sequence[Followed]) -> None:
    """Simulate orders again at a block that is late enough (ONC-22); decisions of a run stay in their order."""
    async with live.delaying[run_id]:
        quoted = _quoted(live, run_id, followed)
        try:
            pin = await _late_enough(live, quoted)
        except ChainFault as fault:
            now_ms = live.clock.now_ms()
            await record(live, *(not_filled(run_id, each.fill.order_id, (DELAYED,), FAULT, str(fault), now_ms) for each in followed))
            return
        async with live.further_writing[run_id]:
            await _orders(live, run_id, DELAYED, tick, quoted, pin, followed)


async def quiet(live: LiveWindow) -> None:
    """Let the orders of others go first, for as long as the block is sure to be there."""
    waits = [asyncio.ensure_future(live.quiet.wait()), asyncio.ensure_future(live.alarm.until(live.clock.now_ms() + QUIET_WAIT_MS_MAX))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _quoted(live: LiveWindow, run_id: str, followed: Sequence[Followed]) -> Pin:
    """The block that headline filled a decision's orders on: one for all of them (ONC-24)."""
    return live.state.runs[run_id].pins[followed[0].fill.order_id, HEADLINE]


async def _late_enough(live: LiveWindow, quoted: Pin) -> Pin:
    """Wait for the delay to pass on the chain's own clock, and pin anew. Raises: ChainFault."""
    assert live.rules.delay_ms is not None
    due_ms = quoted.block_ts_s * 1_000 + live.rules.delay_ms
    await live.alarm.until(due_ms - live.desk.clock_offset_ms)
    give_up_ms = live.clock.monotonic_ms() + PIN_WAIT_MS_MAX
    while True:
        pin = await pinned(live)
        if pin.block_ts_s * 1_000 >= due_ms:
            return pin
        if live.clock.monotonic_ms() >= give_up_ms:
            raise ChainFault("behind", f"block {pin.block} is {due_ms - pin.block_ts_s * 1_000} ms too early for the delay")
        await live.alarm.until((live.clock.now_ms() // PIN_AGAIN_MS + 1) * PIN_AGAIN_MS)


async def _orders(live: LiveWindow, run_id: str, ledger: str, tick: int, quoted: Pin, pin: Pin, followed: Sequence[Followed]) -> None:
    wallet = live.state.runs[run_id].opened.wallet
    desk = live.further.decision(ledger, run_id, wallet, tick, pin, live.state.books.of(run_id, ledger), trades_of(live, run_id, ledger))
    for each in followed:
        refereed = await desk.follow(each.asked, each.fill, each.route, quoted, live.state.books.of(run_id, ledger))
        await record(live, *refereed.events, blobs=refereed.blobs)
