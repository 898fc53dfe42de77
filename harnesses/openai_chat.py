"""OpenAI chat completions: the dialect of most hosts and most local servers.

Source: the API reference, chat completions and its chunks. Read generously where hosts differ: arguments as text or as
an object, content as text or as parts, indexes and ids left out, usage on any chunk or none, the last chunk with or
without `[DONE]`. Written strictly: content is always text, since some local servers refuse null. `reasoning_content`
and `reasoning` are hidden reasoning that a host shows; it is counted, and never part of the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from harnesses.dialect import Dialect
from harnesses.endpoint import StepLimits
from harnesses.http import TransportFault
from harnesses.message import Message, Reply, Stop, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.quirks import DEPTH_MAX, ReasoningTags, joined
from harnesses.reading import (
    CALLS_READ_MAX,
    AnswerReading,
    Record,
    arguments_of,
    bounded_calls,
    read_record,
    refuse_error,
    text_of,
)
from harnesses.shallow import Nesting, shallow
from harnesses.sse import ServerEvent
from harnesses.tools import ToolSpec
from harnesses.usage import Counts, counts_in, text_bytes, with_reasoning, words_in

_STOPS: dict[str, Stop] = {
    "stop": "end", "eos": "end", "end_turn": "end", "tool_calls": "tools", "function_call": "tools", "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length", "model_length": "length",
}  # fmt: skip
BROKEN = ("error", "abort")
"""Stops that are the host's failure, not the model's end."""
SIGNED_FIELDS = ("extra_content",)
"""Parts of a call that Gemini's hosts refuse to be asked again without."""
REASONING_FIELDS = ("reasoning_content", "reasoning")
GIVE_BACK = ("reasoning_details", "extra_content", "thought_signature", "thinking_blocks")
"""Parts of a message that hosts which send them refuse to go on without; a manifest may name more."""
OUTPUT_FIELDS = frozenset("role name content refusal tool_calls function_call".split())
"""Fields of a message that are no form of its reasoning."""
SHOWN_IN = ("reasoning_details", "thinking_blocks")
"""Parts of a message that may hold the reasoning in words."""
ARGUMENTS_READ_MAX = 262_144
"""Characters of one call's arguments that are read; far fewer are kept."""


class OpenAiChat(Dialect):
    """Completes a conversation by chat completions."""

    PATH = "chat/completions"

    def _reading(self) -> AnswerReading:
        return ChatReading(self._manifest.quirks.give_back, self._manifest.quirks.reasoning_tags)

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
        provider, asking, reasoning = self._manifest.provider, self._manifest.asking, self._manifest.reasoning
        written = [_written(message) for message in self._with_roles(messages)]
        if asking.prompt_caching:
            written[:2] = [_marked(message) for message in written[:2]]
        body: Record = {"model": self._model, "messages": written}
        if tools:
            body["tools"] = [{"type": "function", "function": _function(spec)} for spec in tools]
            body["tool_choice"] = asking.tool_choice or "auto"
            if asking.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = asking.parallel_tool_calls
        body[provider.output_limit_field] = limits.output_tokens_max
        body |= self._manifest.sampling.model_dump(exclude_none=True)
        if asking.stop:
            body["stop"] = asking.stop
        if asking.response_format:
            body["response_format"] = {"type": asking.response_format}
        if reasoning and reasoning.effort:
            body["reasoning_effort"] = reasoning.effort
        elif reasoning:
            body["reasoning"] = {"max_tokens": reasoning.budget_within(limits.output_tokens_max)}
        if provider.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def _with_roles(self, messages: Sequence[Message]) -> list[Message]:
        """The messages under the roles that the host knows."""
        role = self._manifest.asking.system_role
        return [replace(message, role=role) if message.role == "system" and role else message for message in messages]


def _function(spec: ToolSpec) -> Record:
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def _marked(message: Record) -> Record:
    """A message marked for a cache; prompt and question open every step of a turn."""
    part = {"type": "text", "text": message["content"], "cache_control": {"type": "ephemeral"}}
    return {**message, "content": [part]}


def _written(message: Message) -> Record:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    native = message.native or {"message": {}, "calls": [{}] * len(message.tool_calls)}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text, **native["message"]}
    calls = [
        {**own, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
        for call, own in zip(message.tool_calls, native["calls"], strict=True)
    ]
    return {"role": message.role, "content": message.text, "tool_calls": calls, **native["message"]}


def _parts(value: object) -> list[Record]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _thought(part: Record) -> str:
    return next((said for name in ("text", "thinking", "summary") if (said := text_of(part.get(name)))), "")


class _Call:
    """One tool call under way."""

    def __init__(self, part: int) -> None:
        self.part = part
        """Which part of the answer began it."""
        self.id = self.name = ""
        self._pieces: list[str] = []
        self._length = 0
        self._nesting, self._told = Nesting(), 0
        self.signed: Record = {}

    @property
    def arguments(self) -> str:
        return "".join((*self._pieces,))

    def closed(self) -> bool:
        """Whether the arguments came to their last bracket."""
        for piece in self._pieces[self._told :]:
            self._nesting.feed(piece)
        self._told = len(self._pieces)
        return self._nesting.closed

    def grow(self, call_id: str, name: str, piece: str) -> int:
        """Take a piece, none beyond what is ever kept; one that says the whole call over again says nothing new.

        Units: bytes of output that were new."""
        if name and self._length and len(piece) == self._length and self.closed() and piece == self.arguments:
            return 0
        size = text_bytes(piece) + (0 if self.name else text_bytes(name))
        self.id, self.name = self.id or call_id, self.name or name
        if self._length <= ARGUMENTS_READ_MAX:
            self._pieces.append(piece)
            self._length += len(piece)
        return size


class ChatReading(AnswerReading):
    """Reads one chat completion, in pieces or whole.

    Where both forms meet in one stream, what comes whole stands for all that came in pieces before it."""

    def __init__(self, give_back: Collection[str] = (), tags: ReasoningTags | None = None) -> None:
        super().__init__()
        self._give_back = (*GIVE_BACK, *give_back)
        self._tags = tags
        self._text: list[str] = []
        self._in_pieces = False
        self._reasoning: dict[str, list[str]] = {}
        self._given: Record = {}
        """What the host attached to its message and may want back, unchanged."""
        self._calls: list[_Call] = []
        self._call_at: dict[int, _Call | None] = {}
        """Which call an index stands for now, some hosts number every call 0; none for one that is not read."""
        self._newest: _Call | None = None
        self._begun = self._parts = 0
        """Calls that were begun, read or not; parts of the answer that came."""
        self._stop = ""
        self._counts = Counts()
        self._model = self._fingerprint = ""
        self._complete = self._spoke = False
        """`_spoke`: whether the first choice said anything, be it nothing in words."""

    def take(self, event: ServerEvent) -> bool:
        """Take one chunk."""
        if event.data.strip() == "[DONE]":
            self._complete = True
            return True
        said = read_record(event.data)
        refuse_error(said)
        self._take(said, whole=False)
        return False

    def take_whole(self, said: Record) -> None:
        """Take a completion that came whole."""
        refuse_error(said)
        self._take(said, whole=True)
        self._complete = True

    def reply(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off, ProviderFault when it holds no message."""
        if not (self._complete or self._stop):
            raise TransportFault("cut_off", "the stream ended before the answer did")
        if not self._spoke:
            raise ProviderFault("the provider's answer has no first choice with a message")
        shown = {name: "".join(parts) for name, parts in self._reasoning.items()}
        text, tagged = ("".join(self._text), "") if self._tags is None else self._tags.taken_out("".join(self._text))
        detailed = ("".join(_thought(part) for part in _parts(self._given.get(name))) for name in SHOWN_IN)
        reasoned = max((*shown.values(), tagged, *detailed), key=len, default="")
        calls = bounded_calls(ToolCall(call.id, call.name, call.arguments) for call in self._calls)
        answered = text + "".join(call.name + call.arguments_text for call in calls)
        usage = self._counts.usage()
        usage = usage and with_reasoning(usage, reasoned, answered)
        stop = _STOPS.get(self._stop.lower(), "other") if self._stop else ("tools" if calls else "end")
        named = f"{self._model} [{self._fingerprint}]" if self._fingerprint else self._model
        return Reply(text, calls, usage, stop, named, self._native(shown, len(calls)), reasoned, self.came.size)

    def so_far(self) -> tuple[Usage | None, str, str]:
        """What was read until now."""
        calls = "".join(call.name + call.arguments for call in (*self._calls,))
        return (
            self._counts.usage(),
            "".join((*self._text,)) + calls,
            max(("".join((*parts,)) for parts in (*self._reasoning.values(),)), key=len, default=""),
        )

    def _native(self, shown: dict[str, str], calls: int) -> Record | None:
        """What the host wants back with this answer: what it attached to it, shown thoughts, and signatures of hidden
        ones."""
        message = dict(self._given)
        if shown.get("reasoning_content"):
            message.setdefault("reasoning_content", shown["reasoning_content"])
        own = [call.signed for call in self._calls[:calls]]
        return {"message": message, "calls": own} if message or any(own) else None

    def _take(self, said: Record, *, whole: bool) -> None:
        self._counts = self._counts.grown(counts_in(said))
        self._model = text_of(said.get("model")) or self._model
        self._fingerprint = text_of(said.get("system_fingerprint")) or self._fingerprint
        choices = said.get("choices")
        if not isinstance(choices, list) or not choices:
            if whole:
                raise ProviderFault("the provider's answer has no choices")
            return
        first, *others = sorted(
            (choice for choice in choices if isinstance(choice, dict)),
            key=lambda choice: choice.get("index") not in (0, None),
        ) or [{"index": 1}]
        if first.get("index") in (0, None):
            self._take_choice(first, whole)
        else:
            others.append(first)
        self.came.add(sum(words_in(other.get(part)) for other in others for part in ("message", "delta", "text")))

    def _take_choice(self, choice: Record, whole: bool) -> None:
        self._parts += 1
        self._stop = text_of(choice.get("finish_reason")) or self._stop
        if self._stop.lower() in BROKEN:
            raise TransportFault("error", f"the provider stopped with {self._stop}")
        delta, message = choice.get("delta"), choice.get("message")
        self._spoke = self._spoke or isinstance(delta, dict) or isinstance(message, dict)
        if isinstance(delta, dict) and delta and not whole:
            self._in_pieces = True
            self._take_part(delta, last=bool(self._stop))
        elif isinstance(message, dict) and self._in_pieces:
            self._take_over(message)
        elif isinstance(part := message or delta, dict):
            self._take_part(part, last=bool(self._stop))

    def _take_over(self, message: Record) -> None:
        """Take a whole message at the end of pieces; what it leaves out stands as it came."""
        self.came.anew()
        if text_of(message.get("content")):
            self._text = []
        if isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
            self._calls, self._call_at, self._newest, self._begun = [], {}, None, 0
        for name in REASONING_FIELDS:
            if text_of(message.get(name)):
                self._reasoning.pop(name, None)
        for name in self._give_back:
            if message.get(name):
                self._given.pop(name, None)
        self._take_part(message, last=False)

    def _take_part(self, said: Record, last: bool) -> None:
        content = said.get("content") or said.get("refusal")
        text = text_of(content)
        if not (
            last and text and text == "".join(self._text)
        ):  # some hosts say the whole once more with their last word
            self._text.append(text)
            self.came.add(words_in(content))
        for name in said.keys() - OUTPUT_FIELDS:
            self.came.add(words_in({name: said[name]}), form=name)
        for name in REASONING_FIELDS:
            if shown := text_of(said.get(name)):
                self._reasoning.setdefault(name, []).append(shown)
        for name in self._give_back:
            if (attached := said.get(name)) not in (None, "", [], {}) and shallow(attached, DEPTH_MAX):
                self._given[name] = joined(self._given.get(name), attached)
        calls = said.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._take_call(call)
        if isinstance(old := said.get("function_call"), dict) and not calls:
            self._take_call({"function": old})

    def _take_call(self, said: Record) -> None:
        """Add a piece of a call to the call it belongs to."""
        function = said.get("function") if isinstance(said.get("function"), dict) else {}
        call_id, name, piece = (
            text_of(said.get("id")),
            text_of(function.get("name")),
            arguments_of(function.get("arguments")),
        )
        call = self._call(said.get("index"), call_id, name)
        if call is None:
            self.came.add(text_bytes(name) + text_bytes(piece))
            return
        self.came.add(call.grow(call_id, name, piece))
        call.signed |= {
            field: said[field] for field in SIGNED_FIELDS if said.get(field) and shallow(said[field], DEPTH_MAX)
        }

    def _call(self, index: object, call_id: str, name: str) -> _Call | None:
        """The call that a piece belongs to; none beyond those that are read.

        Only a name begins a call: ids and indexes are made up anew by some hosts for every piece."""
        numbered = type(index) is int
        bound = index in self._call_at if numbered else self._begun > 0
        known = self._call_at[index] if numbered and bound else self._newest
        if self._begun and not (name and (not bound or self._is_another(known, call_id, name))):
            return known
        self._begun += 1
        self._newest = _Call(self._parts) if len(self._calls) < CALLS_READ_MAX else None
        if self._newest is not None:
            self._calls.append(self._newest)
        if numbered:
            self._call_at[index] = self._newest
        return self._newest

    def _is_another(self, known: _Call | None, call_id: str, name: str) -> bool:
        """Whether a name begins a call after `known`, or is said again with a piece of it."""
        if known is None:
            return True
        if not known.name:
            return False
        if known.part == self._parts or name != known.name:
            return True
        return known.closed() and not (call_id and call_id == known.id)
