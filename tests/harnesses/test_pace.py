"""The pace: a host's minute is held for all harnesses together."""

import asyncio

from harnesses.asking import Rate
from harnesses.pace import Pace
from ledgers.clock import VirtualClock


async def sent_at(pace: Pace, clock: VirtualClock, sizes: list[int]) -> list[int]:
    begun_ms, times = clock.monotonic_ms(), []

    async def one(tokens: int) -> None:
        await pace.ready(tokens)
        times.append(clock.monotonic_ms() - begun_ms)

    asked = [asyncio.ensure_future(one(tokens)) for tokens in sizes]
    await clock.advance_to(clock.now_ms() + 600_000)
    await asyncio.gather(*asked)
    return times


async def test_requests_of_a_minute_are_let_through_and_the_next_waits_for_the_first_to_be_a_minute_old() -> None:
    clock = VirtualClock()
    assert await sent_at(Pace(clock).tighten(Rate(requests_per_minute=2)), clock, [1, 1, 1, 1, 1]) == [0, 0, 60_000, 60_000, 120_000]


async def test_tokens_of_a_minute_are_held_and_a_request_larger_than_all_goes_alone() -> None:
    clock = VirtualClock()
    assert await sent_at(Pace(clock).tighten(Rate(input_tokens_per_minute=1_000)), clock, [600, 400, 1, 5_000, 1]) == [0, 0, 60_000, 120_000, 180_000]


async def test_the_least_that_any_manifest_declares_holds_and_none_is_no_limit() -> None:
    clock = VirtualClock()
    pace = Pace(clock).tighten(Rate(requests_per_minute=9)).tighten(None).tighten(Rate(requests_per_minute=1))
    assert await sent_at(pace, clock, [1, 1]) == [0, 60_000]
    assert await sent_at(Pace(clock), clock, [1] * 50) == [0] * 50
