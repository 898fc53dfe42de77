"""Anthropic messages.

Source: the API reference, messages and streaming messages. Thinking blocks are signed and go back exactly as they came,
in their place, or the provider refuses the next step. All answers to the calls of one step stand in one user message.
"""

from __future__ import annotations

from collections.abc import Sequence

from harnesses.calls import NotACall, read_arguments
from harnesses.dialect import Dialect
from harnesses.endpoint import StepLimits
from harnesses.http import TransportFault
from harnesses.message import Message, Reply, Stop, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.reading import (
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
from harnesses.usage import anthropic_usage, largest, text_bytes, with_reasoning, words_in

VERSION = "2023-06-01"
BLOCKS_MAX = 1_024
"""Blocks of one answer that are read; later ones are passed over."""
THINKING_TOKENS_MIN = 1_024
"""The least thinking budget that the provider takes."""

_STOPS: dict[str, Stop] = {
    "end_turn": "end", "stop_sequence": "end", "tool_use": "tools", "max_tokens": "length",
    "model_context_window_exceeded": "length",
}  # fmt: skip


class Anthropic(Dialect):
    """Completes a conversation by Anthropic messages."""

    PATH = "messages"

    def _reading(self) -> AnswerReading:
        return AnthropicReading()

    def _headers(self, key: str) -> Record:
        return {"anthropic-version": VERSION, "x-api-key": key}

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
        assert limits.output_tokens_max is not None, "a manifest of this kind has an output limit"
        body: Record = {
            "model": self._model,
            "max_tokens": limits.output_tokens_max,
            "messages": conversation(messages),
        }
        if system := "\n\n".join(message.text for message in messages if message.role == "system"):
            body["system"] = system
        asking = self._manifest.asking
        if tools:
            body["tools"] = [
                {"name": spec.name, "description": spec.description, "input_schema": spec.parameters} for spec in tools
            ]
            if asking.tool_choice or asking.parallel_tool_calls is not None:
                choice = {"type": "any" if asking.tool_choice == "required" else "auto"}
                body["tool_choice"] = (
                    choice
                    if asking.parallel_tool_calls is None
                    else {**choice, "disable_parallel_tool_use": not asking.parallel_tool_calls}
                )
        if asking.stop:
            body["stop_sequences"] = asking.stop
        if asking.prompt_caching:
            _mark(body)
        body |= self._manifest.sampling.model_dump(exclude_none=True)
        body |= self._thinking(limits.output_tokens_max)
        if self._manifest.provider.stream:
            body["stream"] = True
        return body

    def _thinking(self, output_left: int) -> Record:
        reasoning = self._manifest.reasoning
        if reasoning is None:
            return {}
        if reasoning.effort == "none":
            return {"thinking": {"type": "disabled"}}
        if reasoning.effort:
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": reasoning.effort}}
        return {
            "thinking": {"type": "enabled", "budget_tokens": reasoning.budget_within(output_left, THINKING_TOKENS_MIN)}
        }


def _mark(body: Record) -> None:
    """Mark prompt, tools and conversation so far for the host's cache: three of the four marks that it takes."""
    mark = {"cache_control": {"type": "ephemeral"}}
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], **mark}]
    if body.get("tools"):
        body["tools"][-1] |= mark
    blocks = body["messages"][-1]["content"]
    if blocks and blocks[-1].get("type") in ("text", "tool_result"):
        blocks[-1] = {**blocks[-1], **mark}


def conversation(messages: Sequence[Message]) -> list[Record]:
    """Write a conversation: roles alternate, neighbours of one role become one message."""
    written: list[Record] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if not written or written[-1]["role"] != role:
            written.append({"role": role, "content": []})
        written[-1]["content"] += _blocks(message)
    return written


def _blocks(message: Message) -> list[Record]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text}]
    if message.native:
        return list(_own_blocks(message))
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*text, *(_tool_use(call) for call in message.tool_calls)]


def _own_blocks(message: Message) -> list[Record]:
    """The provider's own blocks in their order, calls under the ids that they were answered with."""
    calls = iter(message.tool_calls)
    return [_tool_use(next(calls)) if block.get("type") == "tool_use" else block for block in message.native]


def _tool_use(call: ToolCall) -> Record:
    try:
        arguments = read_arguments(call.arguments_text)
    except NotACall:
        arguments = {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


class AnthropicReading(AnswerReading):
    """Reads one message."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Record] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        """What grows in a block, by the block and the field of it."""
        self._stop = ""
        self._usage: Record = {}
        self._model = ""
        self._complete = self._spoke = False
        """`_spoke`: whether a message was begun, be it an empty one."""

    def take(self, event: ServerEvent) -> bool:
        """Take one event."""
        said = read_record(event.data)
        kind = said.get("type") or event.name
        if kind == "error":
            refuse_error(said)
            raise ProviderFault("the provider reported an error that cannot be read")
        match kind:
            case "message_start":
                self._start(_record(said.get("message")))
            case "content_block_start":
                self._begin_block(_index(said), _record(said.get("content_block")))
            case "content_block_delta":
                self.came.add(words_in(said.get("delta")))
                self._grow(_index(said), _record(said.get("delta")))
            case "message_delta":
                self._stop = text_of(_record(said.get("delta")).get("stop_reason")) or self._stop
                self._usage = largest(self._usage, said.get("usage"))
            case "message_stop":
                self._complete = True
        return self._complete

    def take_whole(self, said: Record) -> None:
        """Take a message that came whole."""
        refuse_error(said)
        if not isinstance(said.get("content"), list):
            raise ProviderFault("the provider's answer has no content")
        self._start(said)
        self._stop = text_of(said.get("stop_reason"))
        for place, block in enumerate(said["content"]):
            self._begin_block(place, _record(block))
        self._complete = True

    def reply(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off, ProviderFault when it holds no message."""
        if not (self._complete or self._stop):
            raise TransportFault("cut_off", "the stream ended before the answer did")
        if not self._spoke:
            raise ProviderFault("the provider's answer has no message")
        blocks = [self._finished(place, block) for place, block in self._blocks.items()]
        text = "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")
        reasoned = "".join(text_of(block.get("thinking")) for block in blocks if block.get("type") == "thinking")
        calls = bounded_calls(_call(block) for block in blocks if block.get("type") == "tool_use")
        usage = anthropic_usage(self._usage)
        answered = text + "".join(call.name + call.arguments_text for call in calls)
        usage = usage and with_reasoning(usage, reasoned, answered)
        stop = _STOPS.get(self._stop, "other") if self._stop else ("tools" if calls else "end")
        native = [
            block
            for block in with_first_calls(blocks, "tool_use", len(calls))
            if block.get("type") != "text" or text_of(block.get("text")).strip()
        ]
        thought = any(block.get("type") not in ("text", "tool_use") for block in native)
        return Reply(text, calls, usage, stop, self._model, native if thought else None, reasoned, self.came.size)

    def so_far(self) -> tuple[Usage | None, str, str]:
        """What was read until now."""
        blocks = [self._finished(place, block) for place, block in (*self._blocks.items(),)]
        text = "".join(
            text_of(block.get("text")) + (arguments_of(block["input"]) if block.get("input") else "")
            for block in blocks
        )
        return anthropic_usage(self._usage), text, "".join(text_of(block.get("thinking")) for block in blocks)

    def _start(self, message: Record) -> None:
        self._spoke = True
        self._model = text_of(message.get("model")) or self._model
        self._usage = largest(self._usage, message.get("usage"))

    def _begin_block(self, index: int, block: Record) -> None:
        """Begin a block, counted whether it is read or not."""
        self._spoke = True
        given = block.get("input")
        self.came.add(
            words_in({name: part for name, part in block.items() if name != "input"})
            + (text_bytes(arguments_of(given)) if given else 0)
        )
        if len(self._blocks) < BLOCKS_MAX:
            self._blocks[index] = dict(block)

    def _grow(self, index: int, delta: Record) -> None:
        self._spoke = True
        if index not in self._blocks and len(self._blocks) >= BLOCKS_MAX:
            return
        self._blocks.setdefault(index, {"type": "text"})
        match delta.get("type"):
            case "text_delta":
                self._add(index, "text", delta.get("text"))
            case "thinking_delta":
                self._add(index, "thinking", delta.get("thinking"))
            case "signature_delta":
                self._add(index, "signature", delta.get("signature"))
            case "input_json_delta":
                self._add(index, "input", delta.get("partial_json"))

    def _add(self, index: int, field: str, piece: object) -> None:
        self._pieces.setdefault((index, field), []).append(text_of(piece))

    def _finished(self, index: int, block: Record) -> Record:
        """A block with its pieces put together; a call's are its whole input, others go on where the block began."""
        grown = {}
        for field in ("text", "thinking", "signature", "input"):
            if pieces := "".join((*self._pieces.get((index, field), ()),)):
                grown[field] = pieces if field == "input" else text_of(block.get(field)) + pieces
        return {**block, **grown}


def _call(block: Record) -> ToolCall:
    return ToolCall(text_of(block.get("id")), text_of(block.get("name")), arguments_of(block.get("input")))


def _index(said: Record) -> int:
    index = said.get("index")
    return index if type(index) is int else 0


def _record(value: object) -> Record:
    return value if isinstance(value, dict) else {}
