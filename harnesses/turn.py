"""The turn: ask under the turn's limits, end in exactly one Outcome (001 §2.1, §2.3.1).

A stack cannot hurt the window: it may be slow, broken, endless or deaf to being stopped, and the turn still ends on time.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from harnesses.outcome import Outcome, Step, Turn
from harnesses.provider import Answer, LimitSpent, ModelFault, Provider, ProviderFault
from harnesses.question import Question
from harnesses.stack import Stack
from harnesses.trail import Trail, Trailing
from ledgers.clock import Clock
from ledgers.plain_text import plain_text

ANSWER_BYTES_MAX = 262_144
"""A longer answer is MALFORMED unread, and only this much of it is kept."""

REASON_CHARS_MAX = 200
LOST_PPM_MAX = 500_000
"""From which share of its time lost to others on a turn that ran out of time is UNAVAILABLE, not OUT_OF_TIME. It is a function
of what the trail records: a stack that had more than half of its time cannot blame an early wait for the rest."""

Reading = Callable[[str], str | None]
"""A bench's reading of an answer: why it is malformed, or none when it is what was asked for."""

_LIMITS = {"steps": Outcome.OUT_OF_STEPS, "output": Outcome.OUT_OF_OUTPUT, "time": Outcome.OUT_OF_TIME}


class _Reply(NamedTuple):
    """What came of asking: an answer or whatever was raised, and when."""

    said: object
    ts_ms: int


async def play(
    stack: Stack, question: Question, provider: Provider, clock: Clock, malformed: Reading = lambda _: None
) -> Turn:
    """Play one turn: ask, wait at most the question's deadline, say how it ended.

    An answer at the deadline counts, one a millisecond later does not. Raises: only what cancels it from outside."""
    asked_ms = clock.monotonic_ms()
    trail = Trail(clock)
    task = asyncio.ensure_future(_ask(provider, question, trail, clock))
    await _settle(task, question.deadline_ms, clock)
    reply = _reply(task, clock.monotonic_ms())
    elapsed_ms = reply.ts_ms - asked_ms
    if elapsed_ms > question.deadline_ms:
        reply = reply._replace(said=None)
    outcome, reason = _outcome(reply.said, question, malformed)
    if isinstance(provider, Trailing):
        if outcome is Outcome.OUT_OF_TIME and (lost_ms := trail.lost_ms) * 1_000_000 >= LOST_PPM_MAX * question.deadline_ms:
            outcome = Outcome.UNAVAILABLE
            reason = f"{lost_ms} ms of the turn were lost to faults, rate limits and our own queue; then time ran out"
        return _trailed(trail, reply.said, outcome, reason, elapsed_ms)
    return _single(stack, question, reply.said, outcome, reason, elapsed_ms)


async def _ask(provider: Provider, question: Question, trail: Trail, clock: Clock) -> _Reply:
    try:
        trailing = isinstance(provider, Trailing)
        said: object = await (provider.answer_on(question, trail) if trailing else provider.answer(question))
        if type(said) is not Answer or type(said.text) is not str:
            said = TypeError(f"answered with a {type(said).__name__} instead of an Answer with text")
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a stack that calls exit() ends its turn, not the window
        said = error
    return _Reply(said, clock.monotonic_ms())


async def _settle(task: asyncio.Task[_Reply], limit_ms: int, clock: Clock) -> None:
    """Wait for the task until the limit is past, and no longer even when it ignores being cancelled."""
    try:
        await clock.within(max(limit_ms, 0) + 1, asyncio.wait({task}))
    except TimeoutError:
        pass
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _reply(task: asyncio.Task[_Reply], now_ms: int) -> _Reply:
    if not task.done():
        return _Reply(None, now_ms)
    if task.cancelled():
        return _Reply(ProviderFault("the provider cancelled itself"), now_ms)
    return task.result()


def _outcome(said: object, question: Question, malformed: Reading) -> tuple[Outcome, str]:
    match said:
        case None:
            return Outcome.OUT_OF_TIME, f"no answer within {question.deadline_ms} ms"
        case Answer():
            return _read(said, malformed)
        case LimitSpent():
            return _LIMITS[said.limit], plain_text(str(said), REASON_CHARS_MAX)
        case ModelFault():
            return Outcome.MALFORMED, plain_text(str(said), REASON_CHARS_MAX)
        case ProviderFault():
            return Outcome.UNAVAILABLE, plain_text(str(said), REASON_CHARS_MAX) or "provider fault"
        case _:
            return Outcome.UNAVAILABLE, plain_text(_where(said), REASON_CHARS_MAX)


def _read(answer: Answer, malformed: Reading) -> tuple[Outcome, str]:
    size = len(_bytes(answer.text))
    if size > ANSWER_BYTES_MAX:
        return Outcome.MALFORMED, f"too_long: {size} bytes, at most {ANSWER_BYTES_MAX}"
    reason = malformed(answer.text)
    return (Outcome.ANSWERED, "") if reason is None else (Outcome.MALFORMED, plain_text(reason, REASON_CHARS_MAX))


def _where(error: BaseException) -> str:
    """Name an unexpected error by kind and place only: its message may carry an address with a key."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else f": {error}"
    return f"unexpected {type(error).__name__}{place}"


def _trailed(trail: Trail, said: object, outcome: Outcome, reason: str, elapsed_ms: int) -> Turn:
    """A turn of a provider that wrote its own steps; those of a turn cut off are there as far as they came."""
    wait_ms = min(trail.wait_ms, elapsed_ms)
    return Turn(outcome, _kept(said), reason, trail.steps(), elapsed_ms - wait_ms, wait_ms, tuple(trail.tool_uses))


def _single(stack: Stack, question: Question, said: object, outcome: Outcome, reason: str, elapsed_ms: int) -> Turn:
    raw = _bytes(said.text) if isinstance(said, Answer) else b""
    wait_ms = min(max(said.wait_ms, 0), elapsed_ms) if isinstance(said, Answer) else 0
    step = Step(question.request_bytes(stack.sha256), raw[:ANSWER_BYTES_MAX], elapsed_ms - wait_ms)
    return Turn(outcome, _kept(said), reason, (step,), elapsed_ms - wait_ms, wait_ms)


def _kept(said: object) -> str | None:
    """The answer's text; none where there is none, or it is longer than is read."""
    return said.text if isinstance(said, Answer) and len(_bytes(said.text)) <= ANSWER_BYTES_MAX else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
