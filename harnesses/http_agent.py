"""The HTTP agent: a program of anybody, which we POST each step of a turn to (how to write one: DOORS.md).

    we send      {"schema": "step/1", "step", "prompt", "question", "tools", "said": [calls and answers], "deadline_ms"}
    it answers   its answer, verbatim: the body is the decision
            or   {"schema": "reply/1", "answer": "…"}                         the same, in an envelope
            or   {"schema": "reply/1", "calls": [{"name", "arguments"}]}      to use tools first

An envelope may also say `"model"` and `"usage"` (as OpenAI responses shape it). What does not hold as an envelope is
the answer itself, verbatim, and the bench reads it as such.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from harnesses.endpoint import StepLimits, Wire
from harnesses.http import HttpDoor, TransportFault
from harnesses.message import Message, Reply, ToolCall
from harnesses.reading import Record, arguments_of, bounded_calls, text_of
from harnesses.shallow import read_json
from harnesses.tools import ToolSpec
from harnesses.usage import responses_usage

REQUEST_SCHEMA = "step/1"
REPLY_SCHEMA = "reply/1"
BODY_BYTES_MAX = 1_048_576
"""A longer body is no decision; what came of it is the answer, and malformed."""
REPLY_FIELDS = frozenset({"schema", "answer", "calls", "model", "usage"})


class HttpAgent:
    """Completes a turn's step by posting it to a program."""

    def __init__(self, door: HttpDoor) -> None:
        self._door = door

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits, wire: Wire
    ) -> Reply:
        """Answer once. Raises: ProviderFault, LimitSpent."""
        body = json.dumps(request(messages, tools, limits), ensure_ascii=True, separators=(",", ":")).encode()
        key = self._door.address.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return await self._door.ask(self._door.address.url, headers, body, limits.deadline_ms, wire, AgentReading)


def request(messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
    """Write one step's request. Shapes: `said` holds what the program called so far, and what was answered, in
    order."""
    question = next(message for message in messages if message.role == "user")
    return {
        "schema": REQUEST_SCHEMA,
        "step": sum(message.role == "assistant" for message in messages),
        "deadline_ms": limits.deadline_ms,
        "prompt": "".join(message.text for message in messages if message.role == "system"),
        "question": json.loads(question.text),
        "tools": [
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters} for spec in tools
        ],
        "said": [part for message in messages[messages.index(question) + 1 :] for part in _said(message)],
    }


def _said(message: Message) -> list[Record]:
    if message.role == "tool":
        return [{"id": message.tool_call_id, "answer": _json_or_text(message.text)}]
    if message.role == "user":
        return [{"note": _json_or_text(message.text)}]
    return [
        {"id": call.id, "call": call.name, "arguments": json.loads(call.arguments_text)} for call in message.tool_calls
    ]


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class AgentReading:
    """Reads a program's whole answer."""

    def __init__(self) -> None:
        self._body = bytearray()

    @property
    def held(self) -> int:
        """Nothing: what comes is put by until all of it is there."""
        return 0

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; more than is ever read is not waited for."""
        self._body += chunk
        return len(self._body) > BODY_BYTES_MAX

    def end(self) -> Reply:
        """Say what was read. Raises: TransportFault when nothing came."""
        if not self._body:
            raise TransportFault("cut_off", "the program answered nothing")
        text = self._body.decode("utf-8", "surrogateescape")
        said = _envelope(text)
        if said is None:
            return Reply(text)
        calls = bounded_calls(_call(call) for call in said.get("calls", ()))
        usage, model = responses_usage(said.get("usage")), text_of(said.get("model"))
        return Reply(said.get("answer", ""), calls, usage, "tools" if calls else "end", model)

    def broken(self, request: bytes) -> None:
        """Nothing: what goes on inside a program cannot be counted."""

    def lost(self) -> Reply:
        """Nothing: where verbatim text ends, only the connection says."""
        raise TransportFault("cut_off", "the program's answer was cut off")


def _envelope(text: str) -> Record | None:
    """The envelope that an answer is; none when it is not exactly one."""
    try:
        said = read_json(text)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("schema") != REPLY_SCHEMA or not set(said) <= REPLY_FIELDS:
        return None
    if ("answer" in said) == ("calls" in said):
        return None
    calls = said.get("calls", [{}])
    fine = (
        isinstance(said.get("answer", ""), str)
        and isinstance(calls, list)
        and calls
        and all(isinstance(call, dict) for call in calls)
    )
    return said if fine else None


def _call(said: Record) -> ToolCall:
    return ToolCall(text_of(said.get("id")), text_of(said.get("name")), arguments_of(said.get("arguments")))
