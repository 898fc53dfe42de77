"""A turn ends in exactly one outcome, on time, whatever the stack does (001 §2.3.1, §5.6)."""

import asyncio
import sys

import pytest

from harnesses.manifest import load_harness
from harnesses.outcome import Outcome, Turn
from harnesses.provider import Answer, LimitSpent, ProviderFault
from harnesses.question import Question
from harnesses.scripted import FunctionProvider, ScriptedProvider, read_script
from harnesses.stack import NO_MODEL, NO_PROMPT_SHA256, Stack
from harnesses.turn import ANSWER_BYTES_MAX, REASON_CHARS_MAX, play
from ledgers.clock import SystemClock, VirtualClock

HARNESS = load_harness("baseline-1")
STACK = Stack(
    name="s",
    provider="test@1",
    model=NO_MODEL,
    harness_sha256=HARNESS.sha256,
    prompt_sha256=NO_PROMPT_SHA256,
    tools_sha256=HARNESS.tools_sha256,
    params=(),
)


def question(tick: int = 0, deadline_ms: int = 1_000) -> Question:
    return Question("w1-s-1", tick, "", b"{}", b"{}", deadline_ms)


async def turn(provider, clock=None, malformed=lambda _: None, tick=0, deadline_ms=1_000, advance_ms=5_000) -> Turn:
    """Play one turn on a clock that is driven far past its deadline."""
    clock = clock or VirtualClock()
    playing = asyncio.ensure_future(play(STACK, question(tick, deadline_ms), provider, clock, malformed))
    await clock.advance_to(clock.now_ms() + advance_ms)
    assert playing.done(), "the turn did not end by itself"
    return playing.result()


def scripted(clock: VirtualClock, *lines: str) -> ScriptedProvider:
    return ScriptedProvider(read_script("\n".join(lines)), clock)


class Raises:
    """A provider that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def answer(self, question: Question) -> Answer:
        raise self.error


class Says:
    """A provider that returns whatever it was given."""

    def __init__(self, said: object) -> None:
        self.said = said

    async def answer(self, question: Question) -> Answer:
        return self.said  # type: ignore[return-value]


async def test_an_answer_ends_the_turn_answered_with_one_step_recorded() -> None:
    ended = await turn(FunctionProvider(lambda asked: f"tick {asked.tick}"), tick=4)
    assert (ended.outcome, ended.answer, ended.reason) == (Outcome.ANSWERED, "tick 4", "")
    assert [step.answer for step in ended.steps] == [b"tick 4"]
    assert ended.steps[0].request == question(4).request_bytes(STACK.sha256)


async def test_an_answer_the_bench_cannot_read_is_malformed_and_kept() -> None:
    ended = await turn(FunctionProvider(lambda _: "buy!"), malformed=lambda text: f"prose: {text}\x1b")
    assert (ended.outcome, ended.answer, ended.reason) == (Outcome.MALFORMED, "buy!", "prose: buy!")


@pytest.mark.parametrize(
    ("delay_ms", "outcome"), [(0, Outcome.ANSWERED), (1_000, Outcome.ANSWERED), (1_001, Outcome.OUT_OF_TIME)]
)
async def test_an_answer_at_the_deadline_counts_and_one_millisecond_later_does_not(delay_ms: int, outcome: str) -> None:
    clock = VirtualClock()
    line = f'{{"tick": 0, "answer": "x", "delay_ms": {delay_ms}}}'
    ended = await turn(scripted(clock, line), clock)
    assert ended.outcome == outcome
    assert ended.latency_ms == delay_ms
    assert ended.answer == ("x" if outcome == Outcome.ANSWERED else None)


async def test_a_turn_without_time_left_is_out_of_time() -> None:
    clock = VirtualClock()
    ended = await turn(scripted(clock, '{"tick": 0, "answer": "x", "delay_ms": 1}'), clock, deadline_ms=0)
    assert ended.outcome == Outcome.OUT_OF_TIME


async def test_a_stack_that_blocks_past_its_deadline_is_out_of_time_although_it_answered() -> None:
    class Blocked(VirtualClock):
        """Time goes on while the event loop stands still."""

        blocked_ms = 0

        def monotonic_ms(self) -> int:
            return super().monotonic_ms() + self.blocked_ms

    clock = Blocked()

    def slow(_: Question) -> str:
        clock.blocked_ms = 1_001
        return "x"

    ended = await turn(FunctionProvider(slow), clock)
    assert (ended.outcome, ended.answer, ended.steps[0].answer) == (Outcome.OUT_OF_TIME, None, b"")


async def test_a_stack_that_ignores_being_cancelled_still_ends_on_time() -> None:
    class Deaf:
        async def answer(self, question: Question) -> Answer:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue
            return Answer("too late")

    released = asyncio.Event()
    ended = await turn(Deaf())
    released.set()
    assert ended.outcome == Outcome.OUT_OF_TIME


async def test_a_spent_limit_is_its_own_outcome() -> None:
    clock = VirtualClock()
    provider = scripted(clock, '{"tick": 0, "out_of": "steps"}', '{"tick": 1, "out_of": "output"}')
    assert (await turn(provider, clock)).outcome == Outcome.OUT_OF_STEPS
    assert (await turn(provider, clock, tick=1)).outcome == Outcome.OUT_OF_OUTPUT
    assert (await turn(Raises(LimitSpent("output", "16000 tokens")))).reason == "16000 tokens"


async def test_a_fault_of_the_provider_is_unavailable_and_never_a_result() -> None:
    ended = await turn(Raises(ProviderFault("host \x1b[31mdown\n" + "x" * 1_000)))
    assert (ended.outcome, ended.answer) == (Outcome.UNAVAILABLE, None)
    assert ended.reason.startswith("host ") and "\x1b" not in ended.reason and len(ended.reason) == REASON_CHARS_MAX


@pytest.mark.parametrize(
    "error",
    [
        ValueError("https://key@host"),
        TimeoutError("inner"),
        RecursionError(),
        SystemExit(1),
        asyncio.CancelledError(),
        ExceptionGroup("several", [ValueError("a")]),
        GeneratorExit(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_bug_of_a_stack_is_unavailable_and_its_message_is_not_recorded(error: BaseException) -> None:
    ended = await turn(Raises(error))
    assert ended.outcome == Outcome.UNAVAILABLE
    assert "key@host" not in ended.reason and ended.reason


async def test_a_bug_names_its_kind_and_place() -> None:
    ended = await turn(Raises(KeyError("x")))
    assert ended.reason.startswith("unexpected KeyError in test_turn.py:")


@pytest.mark.parametrize("said", [None, "text", 7, Answer(b"bytes"), Answer(None)], ids=repr)  # type: ignore[arg-type]
async def test_something_that_is_not_an_answer_is_unavailable(said: object) -> None:
    assert (await turn(Says(said))).outcome == Outcome.UNAVAILABLE


async def test_an_answer_at_the_bound_is_read_and_one_byte_more_is_malformed_unread() -> None:
    fits = await turn(FunctionProvider(lambda _: "x" * ANSWER_BYTES_MAX))
    longer = await turn(FunctionProvider(lambda _: "x" * (ANSWER_BYTES_MAX - 1) + "é"), malformed=lambda _: None)
    assert fits.outcome == Outcome.ANSWERED
    assert (longer.outcome, longer.answer) == (Outcome.MALFORMED, None)
    assert longer.reason == f"too_long: {ANSWER_BYTES_MAX + 1} bytes, at most {ANSWER_BYTES_MAX}"
    assert len(longer.steps[0].answer) == ANSWER_BYTES_MAX


async def test_half_characters_in_an_answer_are_kept_as_they_came() -> None:
    ended = await turn(FunctionProvider(lambda _: "\ud800"))
    assert (ended.answer, ended.steps[0].answer) == ("\ud800", b"\xed\xa0\x80")


async def test_waiting_for_a_rate_limit_is_recorded_apart_from_latency() -> None:
    class Limited:
        async def answer(self, question: Question) -> Answer:
            await clock.sleep_until(clock.now_ms() + 700)
            return Answer("x", wait_ms=600)

    clock = VirtualClock()
    ended = await turn(Limited(), clock)
    assert (ended.latency_ms, ended.wait_ms, ended.steps[0].latency_ms) == (100, 600, 100)


@pytest.mark.parametrize("claimed_ms", [-1, sys.maxsize])
async def test_a_wait_that_cannot_be_true_is_bounded_by_the_time_that_passed(claimed_ms: int) -> None:
    ended = await turn(Says(Answer("x", wait_ms=claimed_ms)))
    assert (ended.latency_ms, ended.wait_ms) == (0, 0)


async def test_cancelling_a_turn_from_outside_cancels_the_stack_too() -> None:
    class Waits:
        async def answer(self, question: Question) -> Answer:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return Answer("x")

    ended, clock = asyncio.Event(), VirtualClock()
    playing = asyncio.ensure_future(play(STACK, question(), Waits(), clock))
    await clock.advance_to(clock.now_ms() + 1)
    playing.cancel()
    await clock.advance_to(clock.now_ms() + 1)
    assert playing.cancelled() and ended.is_set()


async def test_the_machine_s_clock_ends_a_silent_turn_too() -> None:
    class Silent:
        async def answer(self, question: Question) -> Answer:
            await asyncio.Event().wait()
            return Answer("x")

    ended = await play(STACK, question(deadline_ms=1), Silent(), SystemClock())
    assert ended.outcome == Outcome.OUT_OF_TIME
