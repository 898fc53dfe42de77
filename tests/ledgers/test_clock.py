"""Clocks: time is a thing passed in, and a virtual one moves only when told."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.clock import SystemClock, VirtualClock


async def sleeping(clock: VirtualClock, ts_ms: int, woken: list) -> None:
    await clock.sleep_until(ts_ms)
    woken.append((ts_ms, clock.now_ms()))


@given(st.lists(st.integers(1, 1_000), max_size=20))
def test_sleepers_wake_in_order_each_at_its_own_time(delays):
    async def play():
        clock, woken = VirtualClock(0), []
        tasks = [asyncio.ensure_future(sleeping(clock, delay, woken)) for delay in delays]
        await clock.advance_to(1_000)
        await asyncio.gather(*tasks)
        return woken

    assert asyncio.run(play()) == [(delay, delay) for delay in sorted(delays)]


async def test_a_sleeper_that_is_due_later_sleeps_on():
    clock, woken = VirtualClock(0), []
    task = asyncio.ensure_future(sleeping(clock, 100, woken))
    await clock.advance_to(99)
    assert woken == [] and clock.now_ms() == 99
    await clock.advance_to(100)
    assert woken == [(100, 100)] and task.done()


async def test_what_a_sleeper_starts_is_woken_in_the_same_advance():
    clock, woken = VirtualClock(0), []

    async def twice():
        await sleeping(clock, 10, woken)
        await sleeping(clock, 20, woken)

    task = asyncio.ensure_future(twice())
    await clock.advance_to(50)
    assert woken == [(10, 10), (20, 20)] and task.done()


async def test_a_past_time_returns_at_once():
    clock = VirtualClock(1_000)
    await clock.sleep_until(1_000)
    assert clock.next_due_ms is None


async def test_time_never_goes_back_when_advancing():
    clock = VirtualClock(1_000)
    await clock.advance_to(500)
    assert clock.now_ms() == 1_000


async def test_work_within_its_limit_gives_its_result():
    clock = VirtualClock(0)

    async def work():
        await clock.sleep_until(99)
        return "done"

    task = asyncio.ensure_future(clock.within(100, work()))
    await clock.advance_to(99)
    assert task.result() == "done"


async def test_work_beyond_its_limit_is_cancelled():
    clock, ended = VirtualClock(0), []

    async def work():
        try:
            await clock.sleep_until(10_000)
        finally:
            ended.append("cancelled")

    task = asyncio.ensure_future(clock.within(100, work()))
    await clock.advance_to(101)
    assert isinstance(task.exception(), TimeoutError) and ended == ["cancelled"]


async def test_a_cancelled_sleeper_is_forgotten():
    clock = VirtualClock(0)
    task = asyncio.ensure_future(clock.sleep_until(10))
    await clock.advance_to(1)
    task.cancel()
    await clock.advance_to(20)
    assert clock.next_due_ms is None and clock.now_ms() == 20


async def test_a_jump_of_the_wall_clock_moves_no_deadline():
    clock = VirtualClock(0)
    task = asyncio.ensure_future(clock.within(100, asyncio.get_running_loop().create_future()))
    await clock.advance_to(50)
    clock.jump(1_000)
    await clock.advance_to(1_050 + 49)
    assert not task.done()
    await clock.advance_to(1_050 + 50)
    assert isinstance(task.exception(), TimeoutError)


async def test_a_jump_forward_makes_a_wall_sleeper_due_and_time_does_not_go_back():
    clock, woken = VirtualClock(0), []
    task = asyncio.ensure_future(sleeping(clock, 100, woken))
    await clock.advance_to(10)
    clock.jump(500)
    await clock.advance_to(520)
    assert woken == [(100, 510)] and clock.monotonic_ms() == 20 and task.done()


async def test_a_jump_back_makes_a_wall_sleeper_wait_longer():
    clock, woken = VirtualClock(1_000), []
    task = asyncio.ensure_future(sleeping(clock, 1_100, woken))
    await clock.advance_to(1_050)
    clock.jump(-200)
    await clock.advance_to(1_099)
    assert woken == []
    await clock.advance_to(1_100)
    assert woken == [(1_100, 1_100)] and clock.monotonic_ms() == 1_300 and task.done()


async def test_the_system_clock_cancels_what_is_too_slow():
    with pytest.raises(TimeoutError):
        await SystemClock().within(1, asyncio.get_running_loop().create_future())


async def test_the_system_clock_returns_once_the_time_has_come():
    clock = SystemClock()
    due_ms = clock.now_ms() + 5
    await clock.sleep_until(due_ms)
    assert clock.now_ms() >= due_ms and clock.monotonic_ms() <= clock.monotonic_ms()
