"""A lane is asked no faster and no more at once than it allows; what it puts off is asked again, within the deadline."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chain.lane import REMOTE_TRIES, LaneLimits, Pace, RateLimited, limits_of, retry_after_ms
from chain.rpc import FunctionTransport, Lane, RpcDoor, RpcRefused
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault

FEWER = {"code": 429, "message": "slow down"}
SEVEN = [("eth_getCode", [f"0x{number:040x}", "0x5"]) for number in range(7)]
PATIENT = LaneLimits(tries=REMOTE_TRIES)


def row(asked: dict, result: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked["id"], "result": asked["params"][0] if result is None else result}


def limited(asked: dict) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked["id"], "error": FEWER}


class Played:
    """A door to nodes played by a function that sees the questions of each trip; time moves by `run` only."""

    def __init__(self, answer, *limits: LaneLimits, deadline_ms: int = 10_000) -> None:
        self.clock, self.trips = VirtualClock(), []
        lanes = [Lane("abc"[place], f"http://node/{place}", each) for place, each in enumerate(limits)]

        def played(lane: Lane, body: Any) -> Any:
            rows = body if isinstance(body, list) else [body]
            self.trips.append((lane.name, self.clock.now_ms(), [each["params"][0] for each in rows]))
            told = answer(lane, rows, len(self.trips))
            return told if isinstance(told, (dict, bytes)) or len(rows) > 1 else told[0]

        self.door = RpcDoor(lanes, clock=self.clock, transport=FunctionTransport(played), deadline_ms=deadline_ms)
        self.begun_ms = self.clock.now_ms()

    async def run(self, requests=SEVEN, for_ms: int = 60_000) -> Any:
        asking = asyncio.ensure_future(self.door.batch(requests))
        await self.clock.advance_to(self.clock.now_ms() + for_ms)
        return await asking

    @property
    def sizes(self) -> list[int]:
        return [len(asked) for _, _, asked in self.trips]

    @property
    def times_ms(self) -> list[int]:
        return [at_ms - self.begun_ms for _, at_ms, _ in self.trips]


def honest(lane, rows, trip):
    return [row(each) for each in rows]


# --- what stands behind an address ------------------------------------------------------------------------------------


def test_limits_stand_behind_an_address():
    assert limits_of("rps=25 | batch=10|logs=100") == LaneLimits(requests_per_s=25, batch_max=10, log_blocks_max=100, tries=REMOTE_TRIES)


@pytest.mark.parametrize("options", ["rps", "rps=", "rps=0", "rps=-1", "rps=2.5", "rps=9999999999", "speed=5", "rps=5|rps=6", "key=0123456789abcdef"])
def test_a_limit_that_is_none_is_refused_without_its_text(options):
    with pytest.raises(ValueError, match="rps, batch, logs") as refused:
        limits_of(options)
    assert "0123456789abcdef" not in str(refused.value)


# --- pace -------------------------------------------------------------------------------------------------------------


async def test_a_pace_lets_a_second_of_questions_go_and_then_spreads_them():
    clock = VirtualClock()
    pace = Pace(10, clock)
    assert [pace.take(5, 10_000) for _ in range(4)] == [0, 0, 500, 1_000]
    await clock.advance_to(clock.now_ms() + 60_000)
    assert pace.take(10, 0) == 0


def test_a_pace_that_would_take_too_long_reserves_nothing():
    pace = Pace(10, VirtualClock())
    assert (pace.take(10, 0), pace.take(10, 999), pace.take(10, 1_000)) == (0, None, 1_000)


async def test_questions_are_held_back_for_the_lanes_pace_and_that_is_recorded():
    played = Played(honest, LaneLimits(requests_per_s=4, batch_max=4))
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert (played.sizes, played.times_ms) == ([4, 3], [0, 750])
    assert played.door.lanes[0].waited_ms_total == 750 and played.door.lanes[0].faults == 0


async def test_a_wait_past_the_deadline_leaves_the_lane_for_the_next():
    played = Played(honest, LaneLimits(requests_per_s=1), LaneLimits(), deadline_ms=1_000)
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert [name for name, _, _ in played.trips] == ["b"]


async def test_no_lane_within_the_deadline_is_a_fault():
    played = Played(honest, LaneLimits(requests_per_s=1), deadline_ms=1_000)
    with pytest.raises(RateLimited, match="within the deadline"):
        await played.run()


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (6, [6, 1]), (7, [7]), (8, [7])])
async def test_a_batch_is_split_to_what_the_lane_takes_and_keeps_its_order(size, sizes):
    played = Played(lambda lane, rows, trip: [row(each) for each in reversed(rows)], LaneLimits(batch_max=size))
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert played.sizes == sizes


REFUSED_WHOLE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batch too large"}}


@pytest.mark.parametrize("refusal", [REFUSED_WHOLE, [REFUSED_WHOLE]], ids=["alone", "in a list"])
async def test_a_batch_refused_as_a_whole_is_asked_in_smaller_ones_from_then_on(refusal):
    def at_most_two(lane, rows, trip):
        return refusal if len(rows) > 2 else honest(lane, rows, trip)

    played = Played(at_most_two, LaneLimits())
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert played.sizes == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    played.trips.clear()
    await played.run(SEVEN[:2])
    assert played.sizes == [1, 1]


@pytest.mark.parametrize("message", ["response too large", "request timed out"])
async def test_what_is_left_of_a_batch_that_said_too_much_is_asked_in_smaller_ones(message):
    def after_two(lane, rows, trip):
        rest = [{"jsonrpc": "2.0", "id": each["id"], "error": {"code": -32003, "message": message}} for each in rows[2:]]
        return [{**row(rows[0]), "result": None}, *(row(each) for each in rows[1:2]), *rest]

    played = Played(after_two, LaneLimits())
    answers = await played.run()
    assert [params[0] for _, params in SEVEN if params[0] in answers] and len(answers) == 7
    assert played.sizes == [7, 3, 1, 1, 1] and answers[0] is None and played.door.answering.batch_max == 0


async def test_one_question_that_is_answered_with_too_much_is_refused():
    (refused,) = await Played(lambda lane, rows, trip: [{"id": rows[0]["id"], "error": {"code": -32003, "message": "response too large"}}], LaneLimits()).run(SEVEN[:1])
    assert isinstance(refused, RpcRefused)


async def test_a_body_that_is_too_large_is_asked_in_smaller_batches():
    def at_most_four(lane, rows, trip):
        if len(rows) > 4:
            raise ChainFault("too_large", "lane a answered HTTP 413")
        return honest(lane, rows, trip)

    assert await Played(at_most_four, LaneLimits()).run() == [params[0] for _, params in SEVEN]


async def test_a_single_question_that_is_too_large_is_a_fault():
    def never(lane, rows, trip):
        raise ChainFault("too_large", "lane a answered HTTP 413")

    with pytest.raises(ChainFault, match="too_large"):
        await Played(never, LaneLimits()).run()


async def test_a_batch_that_fails_in_its_second_part_is_asked_whole_of_the_next_lane():
    def second_dies(lane, rows, trip):
        if lane.name == "a" and trip == 2:
            raise ChainFault("dead", "lane a")
        return [row(each, lane.name) for each in rows]

    played = Played(second_dies, LaneLimits(batch_max=4), LaneLimits(batch_max=7))
    assert await played.run() == ["b"] * 7


# --- fewer requests ---------------------------------------------------------------------------------------------------


async def test_only_what_was_put_off_is_asked_again_later():
    def every_other(lane, rows, trip):
        return [limited(each) if trip == 1 and place % 2 else row(each) for place, each in enumerate(rows)]

    played = Played(every_other, PATIENT)
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert (played.sizes, played.times_ms) == ([7, 3], [0, 250])


async def test_a_refusal_beside_what_was_put_off_keeps_its_place():
    def mixed(lane, rows, trip):
        refused = {"jsonrpc": "2.0", "id": rows[0]["id"], "error": {"code": 3, "message": "execution reverted"}}
        return [refused, limited(rows[1])] if trip == 1 else honest(lane, rows, trip)

    refused, answer = await Played(mixed, PATIENT).run(SEVEN[:2])
    assert isinstance(refused, RpcRefused) and answer == SEVEN[1][1][0]


async def test_a_lane_is_left_alone_longer_each_time_and_given_up_in_the_end():
    played = Played(lambda lane, rows, trip: [limited(each) for each in rows], PATIENT)
    with pytest.raises(RateLimited):
        await played.run()
    assert played.times_ms == [0, 250, 750, 1_750]


async def test_the_lanes_own_word_for_how_long_is_kept():
    def later(lane, rows, trip):
        if trip == 1:
            raise RateLimited("lane a answered HTTP 429", retry_after_ms=3_000)
        return honest(lane, rows, trip)

    played = Played(later, PATIENT)
    await played.run()
    assert played.times_ms == [0, 3_000]


async def test_a_lane_that_asks_for_longer_than_the_deadline_is_not_asked_before():
    def much_later(lane, rows, trip):
        if trip == 1:
            raise RateLimited("lane a answered HTTP 429", retry_after_ms=30_000)
        return honest(lane, rows, trip)

    played = Played(much_later, PATIENT)
    for _ in range(2):
        with pytest.raises(RateLimited):
            await played.run(for_ms=5_000)
    assert len(played.trips) == 1
    await played.clock.advance_to(played.begun_ms + 30_000)
    assert len(await played.run()) == 7


async def test_another_lane_is_better_than_waiting():
    played = Played(lambda lane, rows, trip: [limited(each) if lane.name == "a" else row(each) for each in rows], PATIENT, PATIENT)
    await played.run()
    assert ([name for name, _, _ in played.trips], played.times_ms) == (["a", "b"], [0, 0])


async def test_the_last_lane_is_waited_for():
    def only_b_later(lane, rows, trip):
        return honest(lane, rows, trip) if lane.name == "b" and trip > 2 else [limited(each) for each in rows]

    played = Played(only_b_later, PATIENT, PATIENT)
    assert await played.run() == [params[0] for _, params in SEVEN]
    assert [name for name, _, _ in played.trips] == ["a", "b", "b"]


async def test_a_local_lane_is_never_waited_for():
    played = Played(lambda lane, rows, trip: [limited(each) for each in rows], LaneLimits())
    with pytest.raises(RateLimited):
        await played.run(for_ms=0)
    assert len(played.trips) == 1


@pytest.mark.parametrize(("text", "found"), [("3", 3_000), (" 0 ", 0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0), ("-5", 0), ("99999", 3_600_000), ("9" * 50, 0), (None, 0), ("²", 0)])
def test_how_long_to_wait_is_read_in_seconds_only(text, found):
    assert retry_after_ms(text) == found
