"""The trail: the steps and tool calls of a turn, written down as they happen.

A turn may be ended from outside at any moment; what its stack had done until then is here, and goes into the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from harnesses.endpoint import Wire
from harnesses.message import Reply
from harnesses.outcome import Step, ToolUse
from harnesses.provider import Answer
from harnesses.question import Question
from ledgers.clock import Clock
from ledgers.plain_text import plain_text

MODEL_CHARS_MAX = 120


@dataclass(slots=True)
class Trail:
    """What one turn has done so far."""

    clock: Clock
    tool_uses: list[ToolUse] = field(default_factory=list)
    _ended: list[Step] = field(default_factory=list)
    _wire: Wire | None = None
    _step_begun_ms: int = 0
    begun_ms: int = field(init=False)
    """When the turn was asked."""

    def __post_init__(self) -> None:
        self.begun_ms = self.clock.monotonic_ms()

    def begin_step(self) -> Wire:
        """Begin a step; its bytes are kept in the wire that this returns."""
        self._wire, self._step_begun_ms = Wire(), self.clock.monotonic_ms()
        return self._wire

    def end_step(self, reply: Reply | None = None) -> None:
        """End the step under way, with or without a reply."""
        if self._wire is not None:
            self._ended.append(self._step(self._wire, reply))
            self._wire = None

    def hear(self, said: bytes, reply: Reply) -> None:
        """End the step under way with what somebody outside said."""
        if self._wire is not None:
            self._wire.answer += said
        self.end_step(reply)

    def steps(self) -> tuple[Step, ...]:
        """All steps so far, the one under way included."""
        open_step = () if self._wire is None else (self._step(self._wire, None),)
        return (*self._ended, *open_step)

    @property
    def wait_ms(self) -> int:
        """Time spent waiting so far."""
        return sum(step.wait_ms for step in self.steps())

    @property
    def lost_ms(self) -> int:
        """Time that was not the stack's: waits, and exchanges that failed."""
        return self.wait_ms + sum(attempt.latency_ms for step in self.steps() for attempt in step.attempts)

    def _step(self, wire: Wire, reply: Reply | None) -> Step:
        elapsed_ms = self.clock.monotonic_ms() - self._step_begun_ms
        wait_ms = min(max(wire.wait_ms, 0), elapsed_ms)
        return Step(
            request=wire.request,
            answer=wire.kept(),
            latency_ms=elapsed_ms - wait_ms,
            wait_ms=wait_ms,
            usage=reply.usage if reply else wire.spent,
            stop=reply.stop if reply else "",
            model_reported=plain_text(reply.model_reported, MODEL_CHARS_MAX) if reply else "",
            attempts=tuple(wire.attempts),
        )


@runtime_checkable
class Trailing(Protocol):
    """A provider that writes its own trail; one without is a single step."""

    async def answer_on(self, question: Question, trail: Trail) -> Answer:
        """Answer one question. Raises: ProviderFault, LimitSpent."""
        ...
