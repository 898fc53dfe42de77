"""A window with positions on the real local chain: opened, marked, closed and liquidated, killed and taken up again, and replayed equal (ONC-21)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace

import pytest

from chain.liquidity.record import log_bytes, logs_of, path_of
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import StoreFault
from ledgers.journal import MemoryJournal, verify
from ledgers.money import TokenRaw, Wei
from ledgers.seal import export
from referee.onchain.board import Desk
from referee.onchain.cadence import tick_ts_ms
from referee.onchain.events import HEADLINE, LEDGERS, MarkTaken, OrderRefused, Pin, RunScored, WindowLiquidated, WindowResumed
from referee.onchain.further_desk import FurtherDesk
from referee.onchain.further_events import OrderSkipped
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.live import LiveWindow
from referee.onchain.replay import replay
from referee.onchain.run import liquidate, open_window, resume, score, seal, tick
from tests.onchain import recount
from tests.onchain.ground import Ground
from tests.onchain.paper import T0, PaperChain, Said, a_window, events_of, live_on, ordering
from tests.onchain.pooling import around, churn, pool_of
from tests.onchain.test_replay import once, retold

STACKS = ("closer", "keeper")
TICKS = 6
WAIT_S, STEP_MS = 0.02, 500
"""How long real answers may take before the clock moves on a little, for whoever sleeps."""


class WalkingDesk(Desk):
    """A desk whose chain goes a block further with every look at it."""

    ground: Ground

    async def pin(self) -> Pin:
        self.ground.chain.step(1)
        self.ground.settle()
        self.clock_offset_ms = self.ground.desk.clock_offset_ms
        return await super().pin()


class PaperMarket(PaperChain):
    """Paper but for the blocks, which are real and stay."""

    async def hashes(self, blocks):
        return {}


class Mortal(MemoryJournal):
    """A journal whose process ends before its next append, once it has made so many."""

    life = -1

    async def append(self, *events, blobs=None):
        if self.life == 0:
            raise StoreFault("the process ended")
        self.life -= 1
        return await super().append(*events, blobs=blobs)


def decisions(ground: Ground, run_id: str, closes: bool) -> dict[int, str]:
    """Buy, open, wait, and close or keep."""
    pool = pool_of(ground, "v3 weth LEAF")
    low, high = around(ground, pool)
    buy = f'{{"type":"buy","token":"{ground.token("LEAF")}","spend_wei":"{10**16}"}}'
    amounts = f'"amount0_raw":"{5 * 10**15}","amount1_raw":"{10**19}"'
    opens = f'{{"type":"open-lp","pool":"{pool.key}",{amounts},"tick_lower":"{low}","tick_upper":"{high}"}}'
    wide = f'{{"type":"open-lp","pool":"{pool.key}",{amounts},"tick_lower":"{low}","tick_upper":"{high + 1}"}}'
    closing = f'{{"type":"close-lp","position":"{run_id}/1/0"}}'
    return {0: ordering(buy), 1: ordering(opens, wide)} | ({4: ordering(closing)} if closes else {})


def seated(ground: Ground, clock: VirtualClock, journal: Mortal) -> LiveWindow:
    """A window over the real desk, fresh or as its journal left it."""
    said = {name: Said(clock, decisions(ground, f"w1-{name}-1", name == "closer")) for name in STACKS}
    live = live_on(PaperMarket(clock), said, a_window(STACKS, length_s=3_600, interval_s=600), journal)
    desk = ground.desk
    walking = WalkingDesk(desk.rpc, desk.network, desk.graph, desk.rules, clock, desk.clock_offset_ms)
    walking.ground, walking.liquidity.follower.recall = ground, journal.blob
    live.desk, live.further = walking, FurtherDesk(walking)
    return live


async def through(clock: VirtualClock, work: Coroutine) -> None:
    """See some work through: real answers take the time they take, and whoever sleeps is woken when nothing else is left to do."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=WAIT_S)
        if not task.done():
            await clock.advance_to(clock.now_ms() + STEP_MS)
    await task


async def played(live: LiveWindow, ground: Ground, clock: VirtualClock) -> None:
    """Every tick that is not played yet, then the end; the market moves between them."""
    for number in range(TICKS):
        if all(number in run.ticks for run in live.state.runs.values()):
            continue
        if clock.now_ms() < (due_ms := tick_ts_ms(live.opened, number)):
            await clock.advance_to(due_ms)
        churn(ground, pool_of(ground, "v3 weth LEAF"), 10**17)
        await through(clock, one_tick(live, number))
    await clock.advance_to(live.opened.close_ts_ms)
    await through(clock, ended(live))


async def one_tick(live: LiveWindow, number: int) -> None:
    async with asyncio.TaskGroup() as turns:
        await tick(live, number, turns)


async def ended(live: LiveWindow) -> None:
    await score(live, await liquidate(live) or {})
    await seal(live)


async def lived(chain, life: int) -> Mortal:
    """Play a window whose process ends after so many appends, and take it up again with a desk that knows nothing."""
    ground, clock = await Ground.on(chain), VirtualClock(T0)
    ground.clock = ground.desk.clock = clock
    ground.desk.rpc = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    ground.settle()
    journal = Mortal("w1")
    live = seated(ground, clock, journal)
    await through(clock, open_window(live))
    journal.life = life
    try:
        await played(live, ground, clock)
    except* StoreFault:
        journal.life = -1
        live = seated(ground, clock, journal)
        await through(clock, resume(live))
        await played(live, ground, clock)
    await ground.close()
    return journal


@pytest.mark.parametrize("life", [-1, 26, 30, 38])
async def test_onc_21_a_window_with_positions_is_replayed_and_recounted_equal_wherever_its_process_ended(chain, tmp_path, life):
    journal = await lived(chain, life)
    verify(journal.read())
    found = replay(journal.read(), journal.blob)
    assert found.difference is None and found.records == journal.head()[0]
    export(journal, tmp_path / "w1.jsonl")
    assert recount.recount(str(tmp_path / "w1.jsonl")).keys() == found.state.runs.keys()
    opened, closed = (events_of(journal, kind) for kind in (LiquidityOpened, LiquidityClosed))
    assert all(event.ledgers == LEDGERS for event in (*opened, *closed))
    assert not any(found.state.books.of(run_id, ledger).positions for run_id in found.state.runs for ledger in LEDGERS)
    if life == -1:
        whole(journal, opened, closed)
    else:
        assert len(events_of(journal, WindowResumed)) == 1 and opened
    for event in opened:
        assert path_of(journal.blob(event.path_sha256)).block == event.pin.block
    for event in events_of(journal, LiquidityAccrued):
        assert all(event.from_block <= log.block <= event.to_block for log in logs_of(journal.blob(event.logs_sha256)))


def whole(journal: Mortal, opened: list, closed: list) -> None:
    """What a window that nobody disturbed must hold."""
    assert sorted(event.run_id for event in opened) == ["w1-closer-1", "w1-keeper-1"]
    (closing,) = closed
    assert closing.run_id == "w1-closer-1" and closing.order_id == "w1-closer-1/4/0" and any((closing.fees0_raw, closing.fees1_raw))
    assert [refused.reason for refused in events_of(journal, OrderRefused)] == ["lp_range", "lp_range"]
    skipped = [event for event in events_of(journal, OrderSkipped) if event.reason == "liquidity_order"]
    assert {event.order_id for event in skipped} == {"w1-closer-1/1/0", "w1-keeper-1/1/0", "w1-closer-1/4/0"}
    marked = [event for event in events_of(journal, MarkTaken) if event.positions and HEADLINE in event.ledgers]
    assert all(event.value_wei is not None for event in marked) and len(marked) >= 6
    (sold,) = [event for event in events_of(journal, WindowLiquidated) if HEADLINE in event.ledgers and event.run_id == "w1-keeper-1"]
    (mark,) = sold.positions
    assert mark.status == "proven" and mark.value_wei > Wei(0) and mark.fees_wei > Wei(0)
    assert all(event.status == "SCORED" for event in events_of(journal, RunScored))


TOLD_OTHERWISE = (
    (LiquidityOpened, {"share_ppm": lambda was: was - 1}, "share_ppm"),
    (LiquidityOpened, {"tick_upper": lambda was: was + 60}, "ticks"),
    (LiquidityOpened, {"amount1_raw": lambda was: was + TokenRaw(10**30)}, "amount1_raw"),
    (LiquidityAccrued, {"fees0_raw": lambda was: was + TokenRaw(1)}, "fees0_raw"),
    (LiquidityAccrued, {"from_block": lambda was: was + 1}, "from_block"),
    (LiquidityClosed, {"fees1_raw": lambda was: was + TokenRaw(1)}, "fees"),
    (LiquidityClosed, {"gas_wei": lambda was: was - Wei(1)}, "entry"),
)


async def test_onc_21_a_journal_that_tells_positions_otherwise_differs_where_it_does(chain):
    told = await lived(chain, -1)
    for kind, changes, field in TOLD_OTHERWISE:
        found = replay(retold(told, once(kind, **changes)))
        assert found.difference is not None and (found.difference.kind, found.difference.field) == (kind.__name__, field)
    found = replay(retold(told, richer()))
    assert found.difference is not None and found.difference.field.endswith(".value_wei")


async def test_onc_21_growth_that_the_recorded_logs_do_not_make_is_found_where_the_blobs_are(chain):
    told = await lived(chain, -1)
    opened = events_of(told, LiquidityOpened)[0]
    logs = next(event.logs_sha256 for event in events_of(told, LiquidityAccrued) if event.swaps)
    forged = retold(told, once(LiquidityAccrued, growth1_x128=lambda was: was + TokenRaw(1)))
    assert replay(forged).difference.field == "root"  # the seal alone tells
    assert replay(forged, told.blob).difference.field == "growth"
    priced = retold(told, once(LiquidityClosed, sqrt_price_x96=lambda was: was + TokenRaw(1)))
    assert replay(priced, told.blob).difference.field == "sqrt_price_x96"
    fewer = log_bytes(logs_of(told.blob(logs))[1:])
    for lost, found, field in ((logs, None, "logs_sha256"), (logs, fewer, "logs"), (logs, b"[]", "growth"), (opened.path_sha256, None, "path_sha256"), (opened.path_sha256, b"{}", "path_sha256")):
        difference = replay(told.read(), lambda digest, lost=lost, found=found: found if digest == lost else told.blob(digest)).difference
        assert difference is not None and difference.field in (field, "growth"), (field, difference)


def richer():
    """The first mark of a position is a wei higher."""
    done = []

    def change(event):
        if isinstance(event, MarkTaken) and event.positions and not done:
            done.append(event)
            return [replace(event, positions=tuple(replace(mark, value_wei=mark.value_wei + Wei(1)) for mark in event.positions))]
        return [event]

    return change
