"""The entrance: a model sits the exam under the exact limits of a live turn (001 §2.3.1; design §10; ONC-13).

    pass                       every check holds on every turn
    fail(check, turn)          the first check that did not hold, turn by turn
    not_sat(reason)            the provider could not be asked: never a failure

Each is a function of what the turns recorded. A turn that ran out of time is a failure within time; whether a
provider's own delays made it an outage, the turn itself says by one rule (harnesses/turn.py).

A pass belongs to one model on one harness identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exam.checks import FIRST, THIRD, Heard, hear
from exam.sheets import Sheet
from harnesses.outcome import Outcome, Turn
from harnesses.provider import Provider
from harnesses.question import Question
from harnesses.stack import Stack
from harnesses.turn import play
from ledgers.clock import Clock
from referee.onchain.decision import reading
from referee.onchain.facts import recorded_prompt

PASS, FAIL, NOT_SAT = "pass", "fail", "not_sat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Who sits: a stack, and what it is told and allowed on a live turn."""

    stack: Stack
    harness: str
    """The manifest's name."""
    prompt: str
    """Verbatim."""
    limits: dict[str, int]
    """The harness's, as a live turn tells them."""
    turn_ms_max: int


@dataclass(frozen=True, slots=True)
class SatTurn:
    """One exam turn, played and heard."""

    sheet: Sheet
    question: Question
    played: Turn
    heard: tuple[Heard, ...]
    """All ten; of a turn that was not sat they say nothing about the stack."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a sitting ended."""

    standing: str
    """pass, fail or not_sat."""
    check: str = ""
    """The first check that failed."""
    turn: int = 0
    """On which turn, from 1; 0 for a pass."""
    reason: str = ""


async def sit(
    candidate: Candidate,
    provider: Provider,
    sheets: Sequence[Sheet],
    clock: Clock,
    sitting: str,
    heard: Callable[[SatTurn], None] = lambda _: None,
) -> tuple[SatTurn, ...]:
    """Play the exam's turns one after another; after one that was not sat, no more are asked.

    Shapes: one entry a turn, in the order of the sheets. `heard` is told each turn as it ends."""
    sat: list[SatTurn] = []
    for place, sheet in enumerate(sheets):
        question = exam_question(candidate, sheet, sitting, place)
        played = await play(candidate.stack, question, provider, clock, reading(sheet.orders_max))
        sat.append(SatTurn(sheet, question, played, hear(played, sheet)))
        heard(sat[-1])
        if outage(played, question.deadline_ms):
            break
    return tuple(sat)


def exam_question(candidate: Candidate, sheet: Sheet, sitting: str, place: int) -> Question:
    """Ask a sheet as a live turn would: verbatim prompt, the captured run's facts, this harness's limits."""
    prompt = recorded_prompt(candidate.prompt, {**sheet.facts, "limits": candidate.limits})
    return Question(sitting, place, prompt, sheet.bundle, sheet.book, candidate.turn_ms_max)


def outage(played: Turn, deadline_ms: int, edition: int = THIRD) -> str:
    """Say why a turn was not sat, or nothing. In the first edition any wait excused a turn that ran out of time."""
    if played.outcome is Outcome.UNAVAILABLE:
        return played.reason or "unavailable"
    if (
        edition == FIRST
        and played.outcome is Outcome.OUT_OF_TIME
        and played.wait_ms
        and played.latency_ms <= deadline_ms
    ):
        return f"waited {played.wait_ms} ms for the provider; {played.reason}"
    return ""


def verdict(sat: Sequence[SatTurn], turns: int, edition: int = THIRD) -> Verdict:
    """Judge a sitting of an exam of so many turns."""
    for place, turn in enumerate(sat, start=1):
        if why := outage(turn.played, turn.question.deadline_ms, edition):
            return Verdict(NOT_SAT, "", place, why)
        for heard in turn.heard:
            if not heard.holds:
                return Verdict(FAIL, heard.check, place, heard.why)
    if len(sat) < turns or not turns:
        return Verdict(NOT_SAT, "", len(sat) + 1, f"{len(sat)} of {turns} turns were played")
    return Verdict(PASS)
