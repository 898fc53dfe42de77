"""The model's turn: ask, carry out what tools it asks for, ask again, until it answers or a limit is spent (001 §2.1).

    steps     calls to the model; the last allowed one must bring the answer
    output    tokens of the whole turn, hidden reasoning inside: each step may use what the steps before it left
    time      the turn's deadline; each step may use what is left of it
    tools     answered as data, also when they fail or are ill-formed (calls.py)

An answer that the output limit cut off is never read, however complete it looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harnesses.calls import ID_FORM, NotACall, is_call_in_text, read_arguments
from harnesses.endpoint import Endpoint, StepLimits, Wire
from harnesses.manifest import TurnLimits
from harnesses.message import Message, Reply, ToolCall, Usage
from harnesses.provider import Answer, LimitSpent
from harnesses.question import Question
from harnesses.tools import Toolbox
from harnesses.trail import Trail
from harnesses.usage import estimated_usage, held_to_bytes, held_to_sent, text_bytes
from harnesses.using import Using, refusal
from ledgers.clock import Clock

KEPT_ARGUMENTS_CHARS_MAX = 65_536
"""How much of a call's arguments is recorded and sent back; more is cut."""
MARGIN_MS = 20
"""How long before the turn's deadline a step is given up, so that it can still be said why."""
UNREADABLE_CHARS_MAX = 500
"""How much of arguments that cannot be read a model is shown again."""

ToolboxFor = Callable[[Question], Toolbox]


class ModelProvider:
    """Plays turns with a model behind an endpoint."""

    def __init__(self, endpoint: Endpoint, toolbox_for: ToolboxFor, limits: TurnLimits, clock: Clock) -> None:
        self._endpoint = endpoint
        self._toolbox_for = toolbox_for
        self._limits = limits
        self._clock = clock

    async def answer(self, question: Question) -> Answer:
        """Answer one question. Raises: ProviderFault, LimitSpent."""
        return await self.answer_on(question, Trail(self._clock))

    async def answer_on(self, question: Question, trail: Trail) -> Answer:
        """Answer one question and write the way there down. Raises: ProviderFault, LimitSpent."""
        playing = _Playing(question, self._toolbox_for(question), self._limits, trail, self._clock)
        while True:
            reply = await playing.step(self._endpoint)
            if not await playing.carried_out(reply):
                return Answer(reply.text, trail.wait_ms)


class _Playing:
    """One turn under way."""

    def __init__(self, question: Question, toolbox: Toolbox, limits: TurnLimits, trail: Trail, clock: Clock) -> None:
        self._using = Using(toolbox, limits, trail, clock)
        self._limits = limits
        self._trail = trail
        self._clock = clock
        self._ends_ms = (
            trail.begun_ms + question.deadline_ms - (MARGIN_MS if question.deadline_ms > 50 * MARGIN_MS else 0)
        )
        self._messages = list(opening(question, limits))
        self._steps = 0
        self._used = Usage()
        self._ids: set[str] = set()

    async def step(self, endpoint: Endpoint) -> Reply:
        """Call the model once, with what is left of every limit. Raises: ProviderFault, LimitSpent."""
        self._steps += 1
        limits = StepLimits(self._output_left(), max(0, self._ends_ms - self._clock.monotonic_ms()))
        wire, reply = self._trail.begin_step(), None
        try:
            if self._steps > 1:
                self._hold_time()
            reply = self._counted(await endpoint.complete(self._messages, self._using.specs, limits, wire), wire)
        finally:
            self._trail.end_step(reply)
        self._used += reply.usage or Usage()
        self._hold_output(reply)
        return reply

    async def carried_out(self, reply: Reply) -> bool:
        """Carry out the tool calls of a reply and answer them; False when there are none, so that it is the answer."""
        if not reply.tool_calls:
            return self._told_of_call_in_text(reply)
        self._hold_steps()
        calls = list(self._own_ids(reply.tool_calls))
        said = tuple(echoed(call) for call, _ in calls)
        self._messages.append(Message("assistant", _whole_characters(reply.text), said, native=reply.native))
        for place, (call, note) in enumerate(calls):
            used = await self._using.use(self._steps - 1, place, call, note)
            self._messages.append(Message("tool", used.answer.decode("utf-8", "replace"), tool_call_id=call.id))
        return True

    def _hold_steps(self) -> None:
        if self._steps >= self._limits.steps_max:
            raise LimitSpent("steps", f"{self._limits.steps_max} steps were used without an answer")

    def _output_left(self) -> int | None:
        most = self._limits.output_tokens_max
        if most is None:
            return None
        if self._used.output_tokens >= most:
            raise LimitSpent("output", _spent(self._used, most))
        return most - self._used.output_tokens

    def _hold_time(self) -> None:
        if self._clock.monotonic_ms() >= self._ends_ms:
            raise LimitSpent("time", "the turn's time was over before the next step")

    def _counted(self, reply: Reply, wire: Wire) -> Reply:
        """The reply with its usage; counted from bytes where the provider counts nothing, left open at an open door."""
        if self._limits.output_tokens_max is None:
            return reply
        answered = reply.text + "".join(call.name + call.arguments_text for call in reply.tool_calls)
        if reply.usage is None:
            return replace(reply, usage=estimated_usage(wire.request, answered, reply.reasoned, reply.came))
        usage = held_to_bytes(reply.usage, max(reply.came, text_bytes(answered) + text_bytes(reply.reasoned)))
        return replace(reply, usage=held_to_sent(usage, sum(text_bytes(message.text) for message in self._messages)))

    def _hold_output(self, reply: Reply) -> None:
        most = self._limits.output_tokens_max
        if reply.stop == "length" or (most is not None and self._used.output_tokens > most):
            own = "the provider cut the answer off; " if most is None or self._used.output_tokens < most else ""
            raise LimitSpent("output", own + _spent(self._used, most))

    def _told_of_call_in_text(self, reply: Reply) -> bool:
        """Tell a model that it wrote a tool call into its text; it is not carried out."""
        if not is_call_in_text(reply.text, {spec.name for spec in self._using.specs}):
            return False
        self._hold_steps()
        told = refusal("call_in_text", "a tool call stood in the text; call tools by the API's own means, or answer")
        self._using.record(
            self._steps - 1, 0, ToolCall("", "", _whole_characters(reply.text[:KEPT_ARGUMENTS_CHARS_MAX])), told
        )
        self._messages += [
            Message("assistant", _whole_characters(reply.text), native=reply.native),
            Message("user", told.text.decode()),
        ]
        return True

    def _own_ids(self, calls: Sequence[ToolCall]) -> Iterator[tuple[ToolCall, str]]:
        """Every call under an id that no other call of the turn has."""
        for place, call in enumerate(calls):
            note = "id_missing" if not ID_FORM.fullmatch(call.id) else "id_repeated" if call.id in self._ids else ""
            call_id = f"call_{self._steps - 1}_{place}" if note else call.id
            while call_id in self._ids:
                call_id += "_"
            self._ids.add(call_id)
            yield (
                replace(
                    call, id=call_id, arguments_text=_whole_characters(call.arguments_text[:KEPT_ARGUMENTS_CHARS_MAX])
                ),
                note,
            )


def opening(question: Question, limits: TurnLimits) -> tuple[Message, ...]:
    """What a model is shown first: the prompt verbatim, then one JSON object with limits, bundle and book."""
    asked = {
        "steps_max": limits.steps_max,
        "output_tokens_max": limits.output_tokens_max,
        "calls_per_step_max": limits.calls_per_step_max,
        "deadline_ms": question.deadline_ms,
    }
    head = json.dumps({"schema": "question/1", "run_id": question.run_id, "tick": question.tick, "limits": asked})
    parts = [
        head[:-1],
        f'"bundle":{question.bundle.decode()}' if question.bundle else "",
        f'"book":{question.book.decode()}' if question.book else "",
    ]
    shown = ",".join(part for part in parts if part) + "}"
    system = (Message("system", question.prompt),) if question.prompt else ()
    return (*system, Message("user", shown))


def echoed(call: ToolCall) -> ToolCall:
    """A call as it is sent back: providers refuse a conversation that holds a name or arguments they cannot read."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed"
    try:
        read_arguments(call.arguments_text)
        text = call.arguments_text.strip()
    except NotACall:
        text = json.dumps({"unreadable_arguments": call.arguments_text[:UNREADABLE_CHARS_MAX]})
    return ToolCall(call.id, name, "{}" if text in ("", "null") else text)


def _whole_characters(text: str) -> str:
    """Text that UTF-8 can carry: halves of character pairs are written out as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _spent(used: Usage, most: int | None) -> str:
    """Say how much output was used and which share of it was hidden reasoning."""
    share = (
        f", {used.reasoning_tokens * 100 // used.output_tokens} % of it hidden reasoning" if used.output_tokens else ""
    )
    limit = f" of {most}" if most is not None else ""
    return f"{used.output_tokens}{limit} output tokens used{share}"
