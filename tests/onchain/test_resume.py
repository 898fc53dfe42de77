"""Taking a window up again: nothing is asked twice, filled twice or lost, wherever the process was when it ended."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from ledgers.clock import VirtualClock
from ledgers.errors import StoreFault
from ledgers.journal import MemoryJournal, verify
from referee.onchain.events import (
    FURTHER_LEDGERS, LEDGERS, ClockJumped, DecisionTaken, FillCredited, OrderNotFilled, OrderRefused, ReorgSeen, RunScored, TickMissed, TurnAbandoned,
    TurnPlayed, WindowLiquidated, WindowPaused, WindowResumed, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.opening import Refused
from referee.onchain.run import open_window, play_window, resume
from referee.onchain.state import order_id_of
from tests.onchain.paper import T0, PaperChain, Said, a_buy, again, buying, events_of, live_on, ordering, selling, to_the_end


ALL = (*LEDGERS, *FURTHER_LEDGERS)


class MortalJournal(MemoryJournal):
    """A journal whose process ends before its next append, once it has made so many."""

    def __init__(self, window_id: str, life: int) -> None:
        super().__init__(window_id)
        self.life = life

    async def append(self, *events, blobs=None):
        if self.life == 0:
            raise StoreFault("the process ended")
        self.life -= 1
        return await super().append(*events, blobs=blobs)


def stacks(clock: VirtualClock) -> dict[str, Said]:
    trader = {0: ordering(a_buy(10**16), a_buy(10**15), a_buy(10**18)), 2: selling(), 4: buying(10**15)}
    return {"trader": Said(clock, trader, delay_ms=700), "holder": Said(clock)}


async def lived(life: int, down_ms: int) -> tuple[MortalJournal, list[dict[str, Said]]]:
    """Play a window whose process ends after so many appends, and take it up again that much later."""
    chain = PaperChain(VirtualClock(T0), order_ms=50, follow_ms=30)
    journal, asked = MortalJournal("w1", life), [stacks(chain.clock)]
    live = live_on(chain, asked[0], journal=journal)
    try:
        await open_window(live)
        await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    except* StoreFault:
        pass
    if not events_of(journal, WindowSealed) and journal.head()[0]:
        journal.life = -1
        await chain.clock.advance_to(chain.clock.now_ms() + down_ms)
        asked.append(stacks(chain.clock))
        live = live_on(chain, asked[1], journal=journal)
        await resume(live)
        assert await to_the_end(chain, asyncio.ensure_future(play_window(live)))
        assert again(live) == live.state
    return journal, asked


def check(journal: MemoryJournal) -> None:
    """What must hold however often the process ended."""
    verify(journal.read())
    ticks = Counter((event.run_id, event.tick) for event in events_of(journal, Woken, TickMissed))
    assert set(ticks.values()) == {1} and len(ticks) == 2 * 6
    ended = (FillCredited, OrderRefused, OrderNotFilled, OrderSkipped, DelayedReverted)
    outcomes = Counter((event.order_id, ledger) for event in events_of(journal, *ended) for ledger in event.ledgers)
    decisions = events_of(journal, DecisionTaken)
    owed = {(order_id_of(d.run_id, d.tick, asked.index), ledger) for d in decisions for asked in d.orders for ledger in ALL}
    assert set(outcomes) == owed and set(outcomes.values()) <= {1}
    woken = {(event.run_id, event.tick) for event in events_of(journal, Woken)}
    ended = Counter((event.run_id, event.tick) for event in events_of(journal, TurnPlayed, TurnAbandoned))
    assert set(ended) == woken and set(ended.values()) <= {1}
    sold = Counter((event.run_id, ledger) for event in events_of(journal, WindowLiquidated) for ledger in event.ledgers)
    assert len(sold) == 2 * 4 and set(sold.values()) == {1}
    assert len(events_of(journal, RunScored)) == 2 and len(events_of(journal, WindowSealed)) == 1


@pytest.mark.parametrize("down_ms", [0, 400, 13_000, 90_000])
async def test_a_process_may_end_before_any_append_and_nothing_is_lost_or_doubled(down_ms):
    lives = 0
    for life in range(1, 1_000):
        journal, asked = await lived(life, down_ms)
        check(journal)
        questions = Counter((question.run_id, question.tick) for stack in asked for said in stack.values() for question in said.asked)
        assert set(questions.values()) <= {1}, "a turn was asked twice"
        lives += 1
        if not events_of(journal, WindowResumed):
            break
    assert lives > 40


async def a_broken_window(chain: PaperChain, until_ms: int, providers=None, journal=None):
    """A window whose process ends at a moment, without a word."""
    live = live_on(chain, providers or {"a": Said(chain.clock)}, journal=journal)
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + until_ms)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    return live


async def taken_up(chain: PaperChain, live, providers=None, **options):
    live = live_on(chain, providers or {"a": Said(chain.clock)}, journal=live.journal)
    await resume(live, **options)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    return live


@pytest.fixture
def chain() -> PaperChain:
    return PaperChain(VirtualClock(T0))


async def test_ticks_of_the_time_nobody_ran_are_missed_one_by_one_as_down(chain):
    live = await a_broken_window(chain, 15_000)
    await chain.clock.advance_to(T0 + 45_000)
    live = await taken_up(chain, live)
    assert [(event.tick, event.reason) for event in events_of(live.journal, TickMissed)] == [(2, "down"), (3, "down"), (4, "down")]
    assert [event.tick for event in events_of(live.journal, Woken)] == [0, 1, 5]
    assert [event.down_ms for event in events_of(live.journal, WindowResumed)] == [35_000]


@pytest.mark.parametrize(("back_ms", "played"), [(21_000, True), (21_001, False)])
async def test_a_tick_that_may_still_begin_in_time_is_played_after_a_resume(chain, back_ms, played):
    live = await a_broken_window(chain, 15_000)
    await chain.clock.advance_to(T0 + back_ms)
    live = await taken_up(chain, live)
    assert [event.lag_ms for event in events_of(live.journal, Woken) if event.tick == 2] == ([1_000] if played else [])
    assert [event.reason for event in events_of(live.journal, TickMissed)] == ([] if played else ["down"])


async def test_a_turn_under_way_is_abandoned_and_never_asked_again(chain):
    live = await a_broken_window(chain, 12_000, {"a": Said(chain.clock, delay_ms=5_000)})
    said = Said(chain.clock)
    live = await taken_up(chain, live, {"a": said})
    assert [event.tick for event in events_of(live.journal, TurnAbandoned)] == [1]
    assert [question.tick for question in said.asked] == [2, 3, 4, 5]


async def test_an_order_without_an_observation_is_interrupted_on_both_ledgers_and_never_priced_late(chain):
    chain.order_ms = 1_000
    live = await a_broken_window(chain, 11_500, {"a": Said(chain.clock, {1: ordering(a_buy(10**15), a_buy(10**15))})})
    live = await taken_up(chain, live)
    assert {fill.order_id for fill in events_of(live.journal, FillCredited)} == {"w1-a-1/1/0"}
    interrupted = {event.order_id: (event.reason, event.ledgers) for event in events_of(live.journal, OrderNotFilled)}
    assert interrupted == {"w1-a-1/1/0": ("interrupted", FURTHER_LEDGERS), "w1-a-1/1/1": ("interrupted", ALL)}


@pytest.mark.parametrize(("back_ms", "late"), [(59_999, False), (60_000, True)])
async def test_a_window_resumed_after_its_close_is_liquidated_at_once_and_labelled_late(chain, back_ms, late):
    live = await a_broken_window(chain, 15_000)
    await chain.clock.advance_to(T0 + back_ms)
    live = await taken_up(chain, live)
    (sold,) = events_of(live.journal, WindowLiquidated)
    assert (sold.late, sold.ts_ms - T0) == (late, 60_000)
    assert len(events_of(live.journal, TickMissed)) == 4


async def test_a_paused_window_goes_on(chain):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 12_000)
    live.pausing.set()
    assert await to_the_end(chain, playing) is False
    await chain.clock.advance_to(T0 + 18_000)
    live = await taken_up(chain, live)
    assert not events_of(live.journal, TickMissed)
    assert [event.tick for event in events_of(live.journal, Woken)] == [0, 1, 2, 3, 4, 5]
    assert len(events_of(live.journal, WindowPaused)) == 1


async def test_a_pause_during_the_liquidation_is_taken_up_too(chain):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 55_000)
    chain.down = True
    await chain.clock.advance_to(T0 + 65_000)
    live.pausing.set()
    assert await to_the_end(chain, playing) is False
    chain.down = False
    live = await taken_up(chain, live)
    assert [sold.late for sold in events_of(live.journal, WindowLiquidated)] == [True]


async def test_a_run_that_was_scored_as_unscored_is_not_sold_out_after_a_resume():
    chain = PaperChain(VirtualClock(T0), values_down={"w1-a-1"})
    whole = live_on(chain, {"a": Said(chain.clock)})
    await open_window(whole)
    await to_the_end(chain, asyncio.ensure_future(play_window(whole)))
    unsealed = MemoryJournal("w1")
    await unsealed.append(*events_of(whole.journal)[:-1], blobs=whole.window.blobs)
    chain.values_down = set()
    live = live_on(chain, {"a": Said(chain.clock)}, journal=unsealed)
    await resume(live)
    assert await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    assert [score.status for score in events_of(unsealed, RunScored)] == ["UNSCORED"]
    assert not events_of(unsealed, WindowLiquidated) and len(events_of(unsealed, WindowSealed)) == 1


async def test_another_chain_with_the_same_id_is_refused_by_its_block_0(chain):
    live = await a_broken_window(chain, 15_000)
    chain.block0_hash = "0x" + "99" * 32
    with pytest.raises(Refused, match="block 0"):
        await taken_up(chain, live)
    assert not events_of(live.journal, WindowResumed)


async def test_changed_rules_of_the_code_are_refused_unless_accepted_and_then_named(chain):
    live = await a_broken_window(chain, 15_000)
    other = live_on(chain, {"a": Said(chain.clock)}, journal=live.journal, code="d" * 64)
    with pytest.raises(Refused, match="code tree"):
        await resume(other)
    await resume(other, accept_code_change=True)
    assert events_of(live.journal, WindowResumed)[0].code_sha256 == "d" * 64


async def test_code_that_was_accepted_once_is_not_asked_about_again_and_other_code_is(chain):
    live = await a_broken_window(chain, 15_000)
    await resume(live_on(chain, {"a": Said(chain.clock)}, journal=live.journal, code="d" * 64), accept_code_change=True)
    await resume(live_on(chain, {"a": Said(chain.clock)}, journal=live.journal, code="d" * 64))
    with pytest.raises(Refused, match=f"last played with another code tree: expected {'d' * 64}"):
        await resume(live_on(chain, {"a": Said(chain.clock)}, journal=live.journal, code="e" * 64))
    assert [event.code_sha256 for event in events_of(live.journal, WindowResumed)] == ["d" * 64] * 2


async def test_that_nothing_can_be_sold_after_the_close_is_said_once_with_its_reason(chain):
    live = await a_broken_window(chain, 15_000)
    chain.clock.jump(10_000_000)
    live, said = live_on(chain, {"a": Said(chain.clock)}, journal=live.journal), []
    live.tell = said.append
    await resume(live)
    chain.down = True
    assert await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    assert len(said) == 1 and said[0].startswith("not all could be sold yet (dead); it is tried again for up to ")


async def test_a_block_lost_while_nobody_ran_is_seen_on_resume(chain):
    live = await a_broken_window(chain, 15_000, {"a": Said(chain.clock, {0: buying(10**15)})})
    chain.fork, chain.forked_at = "fork", 900
    live = await taken_up(chain, live)
    assert [event.block for event in events_of(live.journal, ReorgSeen)] == [1_000, 1_002]  # the delayed fill too


async def test_a_clock_behind_the_journal_is_said_on_resume(chain):
    live = await a_broken_window(chain, 15_000)
    chain.clock.jump(-14_000)
    live = await taken_up(chain, live)
    assert events_of(live.journal, ClockJumped)[0].delta_ms == -9_000
    stamps = [event.ts_ms for event in events_of(live.journal)]
    assert stamps == sorted(stamps)
