"""OpenAI chat completions: the dialect of most hosts and most local servers.

Source: the API reference, chat completions and its chunks. Read generously where hosts differ: arguments as text or as an
object, content as text or as parts, indexes and ids left out, usage on any chunk or none, the last chunk with or
without `[DONE]`. Written strictly: content is always text, since some local servers refuse null. `reasoning_content` and
`reasoning` are hidden reasoning that a host shows; it is counted, and never part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnesses.dialect import Dialect
from harnesses.endpoint import StepLimits
from harnesses.http import TransportFault
from harnesses.message import Message, Reply, Stop, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.reading import AnswerReading, Record, arguments_of, read_record, refuse_error, text_of
from harnesses.sse import ServerEvent
from harnesses.tools import ToolSpec
from harnesses.usage import chat_usage, with_reasoning

_STOPS: dict[str, Stop] = {
    "stop": "end", "eos": "end", "end_turn": "end", "tool_calls": "tools", "function_call": "tools", "length": "length", "max_tokens": "length",
    "max_output_tokens": "length", "model_length": "length",
}  # fmt: skip
BROKEN = ("error", "abort")
"""Stops that are the host's failure, not the model's end."""
SIGNED_FIELDS = ("extra_content",)
"""Parts of a call that Gemini's hosts refuse to be asked again without."""
REASONING_FIELDS = ("reasoning_content", "reasoning")


class OpenAiChat(Dialect):
    """Completes a conversation by chat completions."""

    PATH = "chat/completions"

    def _reading(self) -> AnswerReading:
        return ChatReading()

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
        provider, sampling, reasoning = self._manifest.provider, self._manifest.sampling, self._manifest.reasoning
        body: Record = {"model": self._model, "messages": [_written(message) for message in messages]}
        if tools:
            body["tools"] = [{"type": "function", "function": _function(spec)} for spec in tools]
            body["tool_choice"] = "auto"
        body[provider.output_limit_field] = limits.output_tokens_max
        body |= sampling.model_dump(exclude_none=True)
        if reasoning and reasoning.effort:
            body["reasoning_effort"] = reasoning.effort
        elif reasoning:
            body["reasoning"] = {"max_tokens": reasoning.budget_tokens}
        if provider.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


def _function(spec: ToolSpec) -> Record:
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def _written(message: Message) -> Record:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    native = message.native or {"message": {}, "calls": [{}] * len(message.tool_calls)}
    calls = [
        {**own, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
        for call, own in zip(message.tool_calls, native["calls"], strict=True)
    ]
    return {"role": message.role, "content": message.text, "tool_calls": calls, **native["message"]}


class ChatReading(AnswerReading):
    """Reads one chat completion."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._calls: dict[object, Record] = {}
        self._key_of: dict[int, object] = {}
        """Which call an index stands for now; some hosts number every call 0."""
        self._stop = ""
        self._usage: Usage | None = None
        self._model = ""
        self._complete = False

    def take(self, event: ServerEvent) -> bool:
        """Take one chunk."""
        if event.data.strip() == "[DONE]":
            self._complete = True
            return True
        said = read_record(event.data)
        refuse_error(said)
        self._take(said, "delta")
        return False

    def take_whole(self, said: Record) -> None:
        """Take a completion that came whole."""
        refuse_error(said)
        self._take(said, "message")
        self._complete = True

    def reply(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off."""
        if not (self._complete or self._stop):
            raise TransportFault("cut_off", "the stream ended before the answer did")
        text = "".join(self._text)
        shown = {name: "".join(parts) for name, parts in self._reasoning.items()}
        reasoned = max(shown.values(), key=len, default="")
        calls = tuple(ToolCall(*(str(call[part]) for part in ("id", "name", "arguments"))) for call in self._calls.values())
        answered = text + "".join(call.name + call.arguments_text for call in calls)
        usage = self._usage and with_reasoning(self._usage, reasoned, answered)
        stop = _STOPS.get(self._stop.lower(), "other") if self._stop else ("tools" if calls else "end")
        return Reply(text, calls, usage, stop, self._model, self._native(shown), reasoned)

    def _native(self, shown: dict[str, str]) -> Record | None:
        """What some hosts want back with the calls that they asked for: shown thoughts, and signatures of hidden ones."""
        message = {"reasoning_content": shown["reasoning_content"]} if shown.get("reasoning_content") else {}
        own = [{name: call[name] for name in SIGNED_FIELDS if name in call} for call in self._calls.values()]
        return {"message": message, "calls": own} if message or any(own) else None

    def _take(self, said: Record, part: str) -> None:
        self._usage = chat_usage(said.get("usage")) or self._usage
        self._model = text_of(said.get("model")) or self._model
        choices = said.get("choices")
        if not isinstance(choices, list) or not choices:
            if part == "message":
                raise ProviderFault("the provider's answer has no choices")
            return
        for choice in choices[:1]:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._take_choice(choice, choice.get(part) or choice.get("message") or choice.get("delta"))

    def _take_choice(self, choice: Record, said: Any) -> None:
        self._stop = text_of(choice.get("finish_reason")) or self._stop
        if self._stop.lower() in BROKEN:
            raise TransportFault("error", f"the provider stopped with {self._stop}")
        if not isinstance(said, dict):
            return
        self._text.append(text_of(said.get("content")) or text_of(said.get("refusal")))
        for name in REASONING_FIELDS:
            if shown := text_of(said.get(name)):
                self._reasoning.setdefault(name, []).append(shown)
        calls = said.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._take_call(call, place)
        if isinstance(old := said.get("function_call"), dict) and not calls:
            self._take_call({"function": old}, 0)

    def _take_call(self, said: Record, place: int) -> None:
        """Add a piece of a call to the call it belongs to: that of its index, else that of its id, else the newest."""
        function = said.get("function") if isinstance(said.get("function"), dict) else {}
        index, call_id, name = said.get("index"), text_of(said.get("id")), text_of(function.get("name"))
        if type(index) is int:
            key = self._key_of.setdefault(index, index)
            known = self._calls.get(key, {"id": ""})["id"]
            if known and call_id and known != call_id:
                key = self._key_of[index] = (len(self._calls), place)
        else:
            newest = next(reversed(self._calls), None)
            key = (len(self._calls), place) if name or newest is None else newest
        call = self._calls.setdefault(key, {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or call_id
        call["name"] = call["name"] or name
        call["arguments"] += arguments_of(function.get("arguments"))
        call |= {name: said[name] for name in SIGNED_FIELDS if said.get(name)}
