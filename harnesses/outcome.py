"""Outcomes: how a turn ends, and the record of the way there.

Only ANSWERED can become a decision. None of the other five is ever a trade or a hold, and UNAVAILABLE is not the
stack's result at all (001 §5.6, §5.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harnesses.message import Usage


class Outcome(StrEnum):
    """Every turn ends in exactly one of these."""

    ANSWERED = "ANSWERED"
    MALFORMED = "MALFORMED"
    """It answered, but not with what the bench asked for."""
    OUT_OF_TIME = "OUT_OF_TIME"
    OUT_OF_STEPS = "OUT_OF_STEPS"
    OUT_OF_OUTPUT = "OUT_OF_OUTPUT"
    UNAVAILABLE = "UNAVAILABLE"
    """Whoever answers could not be reached, or broke."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One exchange with a provider that failed."""

    reason: str
    """What failed, e.g. `http 429`, `connection`, `cut_off`; plain and bounded."""
    answer: bytes
    """What came back, as far as it came."""
    latency_ms: int
    wait_ms: int
    """What was waited before trying again; 0 when it was not."""
    usage: Usage | None = None
    """What it cost all the same, where an answer had begun; flagged `broken`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call to whoever answers, as bytes for the journal."""

    request: bytes
    answer: bytes
    """What came back, cut at the answer bound; empty when nothing did."""
    latency_ms: int
    """Waits left out."""
    wait_ms: int = 0
    usage: Usage | None = None
    """None when the step did not end in an answer, or nobody counts tokens."""
    stop: str = ""
    """Why the model stopped: end, tools, length or other; empty when it did not answer."""
    model_reported: str = ""
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of a turn and what was said to it."""

    step: int
    """Which step asked for it, from 0."""
    call: int
    """Place within its step, from 0."""
    id: str
    name: str
    """As the model wrote it, plain and bounded."""
    arguments_text: str
    """As the model wrote it."""
    answer: bytes
    ok: bool
    reason: str
    """Why it is not ok: a word of `ILL_FORMED`, or the tool's own; empty when it is."""
    note: str
    """`repeated`: an identical call of this turn, answered with the first one's bytes. `id_missing`, `id_repeated`: the
    call had no id of its own and was given one. Else empty."""
    latency_ms: int


ILL_FORMED = (
    "unknown_tool",
    "arguments_not_json",
    "arguments_not_object",
    "arguments_too_long",
    "too_many_calls",
    "call_in_text",
)
"""Reasons of the loop itself for which a tool call is not well-formed and was not carried out."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that ended."""

    outcome: Outcome
    answer: str | None
    """The answer's text; none unless ANSWERED, or MALFORMED within the answer bound."""
    reason: str
    """Why it is not ANSWERED, bounded and plain; empty when it is."""
    steps: tuple[Step, ...]
    latency_ms: int
    """Time the stack took, waits left out."""
    wait_ms: int
    """Time spent waiting for a rate limit or for our own slot."""
    tool_uses: tuple[ToolUse, ...] = ()

    @property
    def usage(self) -> Usage:
        """Tokens of all steps together, exchanges that broke among them."""
        spent = (used for step in self.steps for used in (step.usage, *(tried.usage for tried in step.attempts)) if used)
        return sum(spent, Usage())

    @property
    def model_reported(self) -> str:
        """What the provider calls the model, in order of first mention; several names are joined by a comma."""
        return ", ".join(dict.fromkeys(step.model_reported for step in self.steps if step.model_reported))
