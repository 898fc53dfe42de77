"""The plan turn: one long turn before the window, in which a stack writes the plan that it will be shown (ONC-14; 001 §2.3.2).

Same tools, more time and quotes, no book yet. Each copy writes its own. What it wrote is frozen into the recorded prompt
of every later turn; the window clock starts when all plans are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesses.outcome import Outcome, Turn
from harnesses.question import Question
from ledgers.events import Event
from ledgers.identity import sha256_hex
from referee.onchain.ending import step_blobs, steps_taken
from referee.onchain.events import Pin, PlanWritten, WindowOpened
from referee.onchain.facts import recorded_prompt, run_facts
from referee.onchain.live import Seat
from referee.onchain.opening import Refused, pass_shown, run_opened
from referee.onchain.rules import Rules

PLAN_TICK = -1
"""Tick of what happens before the first one."""
PLAN_CHARS_MAX = 12_000
NO_PLAN = ""


def plan_question(seat: Seat, opened: WindowOpened, rules: Rules, bundle: bytes) -> Question:
    """Ask for a plan. `opened` is the window as it would open now; its clock has not started."""
    facts = run_facts(opened, rules, seat.limits)
    return Question(seat.run_id, PLAN_TICK, recorded_prompt(seat.plan_prompt, facts), bundle, b"", seat.plan_ms_max)


def planning_text(planning: Sequence[Seat]) -> str:
    """Say that plans are being written, for whoever waits."""
    longest_s = max(seat.plan_ms_max for seat in planning) // 1_000
    return f"{len(planning)} plan{'' if len(planning) == 1 else 's'} being written, at most {longest_s:,} s; the window clock starts when all are in"


def plan_reading(text: str) -> str | None:
    """Say why a text is no plan, or nothing."""
    if not text.strip():
        return "empty: the plan has no text"
    if len(text) > PLAN_CHARS_MAX:
        return f"too_long: {len(text)} characters, at most {PLAN_CHARS_MAX}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "lone_surrogate: the plan is not valid Unicode"
    return None


def plan_of(played: Turn) -> str:
    """The plan that a turn brought; empty when it brought none."""
    return (played.answer or NO_PLAN) if played.outcome is Outcome.ANSWERED else NO_PLAN


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan turn that ended."""

    seat: Seat
    question: Question
    played: Turn
    begun_ts_ms: int


def refuse_unavailable(plans: Sequence[Planned]) -> None:
    """Open no window without a plan for which whoever answers is to blame. Raises: Refused naming the first.

    A plan turn that ran out of a limit is the stack's own: it plays without a plan, and the record says so."""
    for planned in plans:
        if planned.played.outcome is Outcome.UNAVAILABLE:
            raise Refused(f"{planned.seat.run_id} could not be asked for its plan ({planned.played.reason}); the window was not opened")


def run_begun(seat: Seat, opened: WindowOpened, planned: Planned | None, shown: Pin, secret: str = "") -> tuple[Event, ...]:
    """Write down all that opens a run: the run itself, the pass that admits it, the plan shown at the block `shown`."""
    plan = plan_of(planned.played) if planned else NO_PLAN
    written = plan_written(planned, shown, opened.ts_ms) if planned else ()
    return (run_opened(seat, opened, plan, secret), *pass_shown(seat, opened.ts_ms), *written)


def plan_written(planned: Planned, pin: Pin, ts_ms: int) -> tuple[Event, ...]:
    """Write down a plan turn. Shapes: its steps and tool calls, then PlanWritten; hashes only, for plans are public later (ONC-26)."""
    seat, question, played = planned.seat, planned.question, planned.played
    written = PlanWritten(
        run_id=seat.run_id,
        ts_ms=ts_ms,
        plan_sha256=sha256_hex(plan_of(played).encode()),
        prompt_sha256=sha256_hex(question.prompt.encode()),
        bundle_sha256=sha256_hex(question.bundle),
        pin=pin,
        outcome=played.outcome.value,
        reason=played.reason,
        begun_ts_ms=planned.begun_ts_ms,
        steps=len(played.steps),
        latency_ms=played.latency_ms,
        wait_ms=played.wait_ms,
    )
    return (*steps_taken(seat.run_id, PLAN_TICK, played, ts_ms), written)


def plan_blobs(planned: Planned) -> dict[str, bytes]:
    """The bytes behind a plan turn, by SHA-256."""
    parts = (planned.question.bundle, planned.question.prompt.encode(), plan_of(planned.played).encode())
    return step_blobs(planned.played) | {sha256_hex(part): part for part in parts}
