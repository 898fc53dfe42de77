"""OpenAI responses.

Source: the API reference, responses and their streaming events. Nothing is stored at the provider: hidden reasoning
comes encrypted and goes back as it came. A stream ends with `response.completed`, `.incomplete` or `.failed`; one that
ends without them was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harnesses.dialect import Dialect
from harnesses.endpoint import StepLimits
from harnesses.http import TransportFault
from harnesses.message import Message, Reply, Stop, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.reading import (
    CALLS_READ_MAX,
    AnswerReading,
    Record,
    arguments_of,
    bounded_calls,
    read_record,
    refuse_error,
    text_of,
    with_first_calls,
)
from harnesses.sse import ServerEvent
from harnesses.tools import ToolSpec
from harnesses.usage import Counts, chat_counts, text_bytes, words_in

LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
ITEMS_MAX = 1_024
LENGTH = ("max_output_tokens", "max_tokens", "length")


class OpenAiResponses(Dialect):
    """Completes a conversation by OpenAI responses."""

    PATH = "responses"

    def _reading(self) -> AnswerReading:
        return ResponsesReading()

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
        body: Record = {"model": self._model, "store": False, "max_output_tokens": limits.output_tokens_max}
        asking, role = self._manifest.asking, self._manifest.asking.system_role
        if role:
            messages = [replace(message, role=role) if message.role == "system" else message for message in messages]
        if instructions := "\n\n".join(message.text for message in messages if message.role == "system"):
            body["instructions"] = instructions
        body["input"] = [item for message in messages for item in _items(message)]
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.parameters,
                    "strict": False,
                }
                for spec in tools
            ]
            if asking.tool_choice:
                body["tool_choice"] = asking.tool_choice
            if asking.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = asking.parallel_tool_calls
        if asking.response_format:
            body["text"] = {"format": {"type": asking.response_format}}
        body |= self._manifest.sampling.model_dump(exclude_none=True)
        if self._manifest.reasoning:
            body |= {
                "reasoning": {"effort": self._manifest.reasoning.effort},
                "include": ["reasoning.encrypted_content"],
            }
        if self._manifest.provider.stream:
            body["stream"] = True
        return body


def _items(message: Message) -> list[Record]:
    match message.role:
        case "system":
            return []
        case "tool":
            return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}]
        case "assistant" if message.native:
            calls = iter(message.tool_calls)
            return [
                {**item, **_call_item(next(calls))} if item.get("type") == "function_call" else item
                for item in message.native
            ]
        case _:
            text = [{"role": message.role, "content": message.text}] if message.text else []
            return [*text, *(_call_item(call) for call in message.tool_calls)]


def _call_item(call: ToolCall) -> Record:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments_text}


class ResponsesReading(AnswerReading):
    """Reads one response."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[Record] = []
        """Items as they were done; a last event may come without them."""
        self._texts: dict[object, str] = {}
        """Texts by their item and part, from deltas and then whole; for hosts that send no items."""
        self._pieces: dict[object, list[str]] = {}
        self._calls: dict[object, Record] = {}
        """Calls by their item, for hosts that send no whole items."""
        self._response: Record | None = None
        self._counts = Counts()

    def take(self, event: ServerEvent) -> bool:
        """Take one event."""
        if event.data.strip() == "[DONE]":
            return True
        said = read_record(event.data)
        kind = said.get("type") or event.name
        if kind == "error":
            refuse_error(said if said.get("error") else {"error": said})
        if kind == "response.output_item.done" and isinstance(said.get("item"), dict):
            self.came.add(_size(said["item"]), form="items")
            if len(self._items) < ITEMS_MAX:
                self._items.append(said["item"])
        self._take_piece(str(kind), said)
        if isinstance(response := said.get("response"), dict):
            self._counts = self._counts.grown(chat_counts(response.get("usage")))
            if kind in LAST:
                self._response = response
        return self._response is not None

    def so_far(self) -> tuple[Usage | None, str, str]:
        """What was read until now."""
        pieces = [piece for parts in (*self._pieces.values(),) for piece in (*parts,)]
        return (
            self._counts.usage(),
            "".join(pieces) + "".join(text_of(call.get("arguments")) for call in (*self._calls.values(),)),
            "",
        )

    def _take_piece(self, kind: str, said: Record) -> None:
        """Keep what deltas say, in case that nothing says it whole."""
        place = said.get("item_id") or said.get("output_index") or 0, said.get("content_index") or 0
        if kind.endswith(".delta"):
            self.came.add(words_in(said.get("delta")), form="pieces")
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._pieces.setdefault(place, []).append(text_of(said.get("delta")))
            case "response.output_text.done" | "response.refusal.done":
                self._texts[place] = text_of(said.get("text")) or text_of(said.get("refusal"))
            case "response.output_item.added" if (
                isinstance(said.get("item"), dict) and said["item"].get("type") == "function_call"
            ):
                self.came.add(text_bytes(text_of(said["item"].get("name"))), form="pieces")
                if len(self._calls) < CALLS_READ_MAX:
                    self._calls[said["item"].get("id") or place[0]] = said["item"]
            case "response.function_call_arguments.done" if place[0] in self._calls:
                self._calls[place[0]] = {**self._calls[place[0]], "arguments": said.get("arguments")}

    def _pieced_together(self) -> list[Record]:
        """The items that deltas make, where no event held them whole."""
        places = dict.fromkeys([*self._pieces, *self._texts])
        text = "".join(self._texts.get(place) or "".join(self._pieces.get(place, ())) for place in places)
        message = (
            [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
            if text
            else []
        )
        return [*message, *self._calls.values()]

    def take_whole(self, said: Record) -> None:
        """Take a response that came whole."""
        refuse_error(said)
        if not isinstance(said.get("output"), list):
            raise ProviderFault("the provider's answer has no output")
        self._response = said
        self._counts = chat_counts(said.get("usage"))

    def reply(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off, ProviderFault when it failed."""
        response = self._response
        if response is None:
            raise TransportFault("cut_off", "the stream ended before the answer did")
        refuse_error(response)
        if response.get("status") in ("failed", "cancelled"):
            raise ProviderFault(f"the response {response['status']}")
        output = response.get("output") or self._items or self._pieced_together()
        if not output and not isinstance(response.get("output"), list):
            raise ProviderFault("the provider's answer has no output")
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        self.came.add(sum(map(_size, items)), form="whole")
        text = "".join(_said(item) for item in items if item.get("type") == "message")
        calls = bounded_calls(_call(item) for item in items if item.get("type") == "function_call")
        reasoned = "".join(text_of(item.get("summary")) for item in items if item.get("type") == "reasoning")
        items = with_first_calls(items, "function_call", len(calls))
        native = [
            item for item in items if item.get("type") in ("message", "function_call") or item.get("encrypted_content")
        ]
        thought = any(item.get("type") == "reasoning" for item in native)
        named = text_of(response.get("model"))
        stop = _stop(response, bool(calls))
        return Reply(
            text, calls, self._counts.usage(), stop, named, native if thought else None, reasoned, self.came.size
        )


def _stop(response: Record, calls: bool) -> Stop:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return "length" if reason in LENGTH else "other"
    return "tools" if calls else "end"


def _size(item: Record) -> int:
    """Bytes of output in an item; of reasoning, its words or their summary."""
    match item.get("type"):
        case "function_call":
            return text_bytes(text_of(item.get("name"))) + text_bytes(arguments_of(item.get("arguments")))
        case "reasoning":
            forms = (words_in({name: item.get(name)}) for name in ("content", "summary", "encrypted_content"))
            rest = words_in(
                {name: part for name, part in item.items() if name not in ("content", "summary", "encrypted_content")}
            )
            return rest + max(forms)
        case _:
            return words_in(item)


def _said(item: Record) -> str:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return text_of(content) if isinstance(content, str) else "".join(
        text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts if isinstance(part, dict)
    )


def _call(item: Record) -> ToolCall:
    call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
    return ToolCall(call_id, text_of(item.get("name")), arguments_of(item.get("arguments")))
