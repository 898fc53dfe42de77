"""Using tools: every call of one turn carried out, or answered with a word for why not; bounded, and recorded (calls.py)."""

from __future__ import annotations

import json

from harnesses.calls import NotACall, read_arguments, same_call
from harnesses.manifest import TurnLimits
from harnesses.message import ToolCall
from harnesses.outcome import ToolUse
from harnesses.tools import TOOL_BYTES_MAX, ToolAnswer, Toolbox, ToolSpec
from harnesses.trail import Trail
from ledgers.clock import Clock
from ledgers.plain_text import plain_text

NAME_CHARS_MAX = 80
DETAIL_CHARS_MAX = 300


class Using:
    """The tools of one turn, in use."""

    def __init__(self, toolbox: Toolbox, limits: TurnLimits, trail: Trail, clock: Clock) -> None:
        self._toolbox = toolbox
        self._limits = limits
        self._trail = trail
        self._clock = clock
        self._answered: dict[bytes, bytes] = {}
        """First answers, by what was called with what."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that there are."""
        return self._toolbox.specs

    async def use(self, step: int, place: int, call: ToolCall, note: str = "") -> ToolUse:
        """Carry out one call, or say why it is none; never raises for what a stack wrote."""
        begun_ms = self._clock.monotonic_ms()
        repeated = False
        try:
            answer, repeated = await self._answer(place, call)
        except NotACall as error:
            answer = refusal(error.reason, error.detail)
        return self.record(step, place, call, answer, "repeated" if repeated else note, self._clock.monotonic_ms() - begun_ms)

    def record(self, step: int, place: int, call: ToolCall, answer: ToolAnswer, note: str = "", latency_ms: int = 0) -> ToolUse:
        """Write a call and what was said to it onto the turn's trail."""
        name = plain_text(call.name, NAME_CHARS_MAX)
        used = ToolUse(step, place, call.id, name, call.arguments_text, answer.text, answer.ok, answer.reason, note, latency_ms)
        self._trail.tool_uses.append(used)
        return used

    async def _answer(self, place: int, call: ToolCall) -> tuple[ToolAnswer, bool]:
        """Answer one call, and say whether an identical one was answered before. Raises: NotACall."""
        if place >= self._limits.calls_per_step_max:
            raise NotACall("too_many_calls", f"at most {self._limits.calls_per_step_max} calls in one step")
        names = [spec.name for spec in self._toolbox.specs]
        if call.name not in names:
            raise NotACall("unknown_tool", f"there is no such tool; there are: {', '.join(names) or 'none'}")
        arguments = read_arguments(call.arguments_text)
        same = same_call(call.name, arguments)
        if (before := self._answered.get(same)) is not None:
            return ToolAnswer(before, True), True
        answer = _bounded(await self._tried(call.name, arguments))
        if answer.ok:
            self._answered[same] = answer.text
        return answer, False

    async def _tried(self, name: str, arguments: dict[str, object]) -> ToolAnswer:
        try:
            return await self._toolbox.use(name, arguments)
        except Exception as error:  # a broken tool is told to the stack, and named by its kind alone
            return refusal("tool_fault", f"the tool broke ({type(error).__name__})")


def refusal(reason: str, detail: str) -> ToolAnswer:
    """An answer that says why there is none."""
    told = json.dumps({"error": reason, "detail": plain_text(detail, DETAIL_CHARS_MAX)}, ensure_ascii=False)
    return ToolAnswer(told.encode(), False, reason)


def _bounded(answer: ToolAnswer) -> ToolAnswer:
    if len(answer.text) <= TOOL_BYTES_MAX:
        return answer
    return refusal("too_long", f"the answer has {len(answer.text)} bytes, at most {TOOL_BYTES_MAX} are shown; ask for less")
