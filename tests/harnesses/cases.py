"""One table of cases for every dialect and door: what a host or a program sends, how the turn ends, whose doing it is.

A reply is said once, in no dialect's words; `written` says it in each. The doors that a program comes in through have
no host between, so what a host refuses is said of the dialects alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from harnesses.outcome import Outcome

MODEL, HOST = "model", "host"
DIALECTS = CHAT, RESPONSES, MESSAGES = ("h1-16k", "h1-responses-16k", "h1-anthropic-16k")
DOORS = ("agent-1", "h2")
DECISION = '{"schema":"decision/1","orders":[]}'


@dataclass(frozen=True)
class Bare:
    """JSON that goes over the wire as it stands, not as text: too deep, or too long a number, for what writes JSON."""

    text: str


@dataclass(frozen=True)
class Said:
    """One answer of a model."""

    text: str = ""
    calls: tuple[tuple[str, object], ...] = ()
    """Name and arguments: text, or an object where the dialect has one."""
    output_tokens: int | Bare = 20
    """As the host counts them; none where it is negative."""
    input_tokens: int = 100
    reasoned: str = ""
    """Reasoning that is shown in the dialect's own part for it."""


@dataclass(frozen=True)
class Refused:
    """One refusal of a host."""

    status: int
    body: object


@dataclass(frozen=True)
class Sent:
    """A stream as one dialect sends it, event by event."""

    events: tuple[object, ...]


@dataclass(frozen=True)
class Case:
    name: str
    replies: tuple[Said | Refused | Sent, ...]
    outcome: Outcome
    doing: str = MODEL
    tools: tuple[str, ...] = ()
    """The word of each tool call, `ok` for one that was carried out."""
    word: str = ""
    """The word that a malformed turn is told by; none where it does not matter."""
    output_tokens: int | None = None
    """Counted over the turn; none where it does not matter."""
    input_tokens: int | None = None
    flags: tuple[str, ...] | None = None
    at: tuple[str, ...] = field(default=(*DIALECTS, *DOORS))

    def __str__(self) -> str:
        return self.name


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def chunk(delta: object, stop: str | None = None, index: int = 0, **more: object) -> dict:
    return {"model": "m-1", "choices": [{"index": index, "delta": delta, "finish_reason": stop}], **more}


def piece(call_id: str, arguments: str, name: str = "quote") -> dict:
    return chunk(
        {
            "tool_calls": [
                {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            ]
        }
    )


ANSWER = Said(DECISION)
LONG = "x" * 200_000
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": DECISION}]}
CASES = (
    Case("an answer", (ANSWER,), Outcome.ANSWERED, output_tokens=20, input_tokens=100, flags=(), at=DIALECTS),
    Case("a call, then an answer", (Said(calls=(("quote", {"a": "1"}),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case("arguments as JSON text", (Said(calls=(("quote", '{"a":"1"}'),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case("no arguments at all", (Said(calls=(("book", ""),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case(
        "two calls of one tool", (Said(calls=(("quote", {"a": "1"}), ("quote", {"a": "2"}))), ANSWER),
        Outcome.ANSWERED, tools=("ok", "ok"),
    ),
    Case(
        "two hundred calls in one step", (Said(calls=(("quote", {"a": "1"}),) * 200), ANSWER), Outcome.ANSWERED,
        tools=("ok",) * 8 + ("too_many_calls",) * 120, at=(*DIALECTS, "agent-1"),
    ),
    Case(
        "arguments that are no JSON", (Said(calls=(("quote", "{a:1}"),)), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_json",),
    ),
    Case(
        "arguments that are a list", (Said(calls=(("quote", "[]"),)), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_object",),
    ),
    Case(
        "arguments at the last level", (Said(calls=(("quote", deep(16)), ("quote", Bare(deep(16))))), ANSWER),
        Outcome.ANSWERED, tools=("ok", "ok"),
    ),
    Case(
        "arguments one level too deep", (Said(calls=(("quote", deep(17)), ("quote", Bare(deep(17))))), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_json",) * 2,
    ),
    Case(
        "arguments nested deep", (Said(calls=(("quote", deep(990)), ("quote", Bare(deep(990))))), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_json",) * 2,
    ),
    Case(
        "arguments without a bottom", (Said(calls=(("quote", deep(9_000)),)), ANSWER),
        Outcome.ANSWERED, tools=("arguments_too_long",),
    ),
    Case(
        "an object without a bottom", (Said(calls=(("quote", Bare(deep(9_000))),)), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_json",),
    ),
    Case(
        "an integer without an end", (Said(calls=(("quote", Bare('{"a":' + "9" * 10_000 + "}")),)), ANSWER),
        Outcome.ANSWERED, tools=("arguments_not_json",),
    ),
    Case(
        "a tool that does not exist", (Said(calls=(("web_search", "{}"),)), ANSWER),
        Outcome.ANSWERED, tools=("unknown_tool",),
    ),
    Case("an answer that is empty", (Said(""),), Outcome.MALFORMED, word="empty", at=(*DIALECTS, "h2")),
    Case(
        "an answer with reasoning before it", (Said(f"<think>hm</think>{DECISION}"),),
        Outcome.MALFORMED, word="text_around",
    ),
    Case(
        "an answer that is too long", (Said("{" + " " * 262_144, output_tokens=16_000),),
        Outcome.MALFORMED, word="too_long", at=("agent-1",),
    ),
    # output, counted before anything is left unread
    Case(
        "more output than is reported", (Said(LONG, output_tokens=1),),
        Outcome.OUT_OF_OUTPUT, output_tokens=25_000, flags=("inconsistent",), at=DIALECTS,
    ),
    Case(
        "an output without a count is counted", (Said(LONG, output_tokens=-1),),
        Outcome.OUT_OF_OUTPUT, output_tokens=50_000, at=DIALECTS,
    ),
    Case(
        "calls beyond those that are read", (Said(calls=(("quote", '{"a": "1"}'),) * 16_000, output_tokens=146),),
        Outcome.OUT_OF_OUTPUT, output_tokens=30_000, at=DIALECTS,
    ),
    Case(
        "uncounted calls beyond those that are read", (Said(calls=(("quote", '{"a": "1"}'),) * 16_000,
            output_tokens=-1),),
        Outcome.OUT_OF_OUTPUT, output_tokens=60_000, at=DIALECTS,
    ),
    Case(
        "arguments beyond those that are read", (Said(calls=(("quote", "x" * 399_995),), output_tokens=1),),
        Outcome.OUT_OF_OUTPUT, output_tokens=50_000, at=DIALECTS,
    ),
    Case(
        "reasoning in a part of its own", (Said(DECISION, reasoned="y" * 199_964, output_tokens=9),),
        Outcome.OUT_OF_OUTPUT, output_tokens=25_000, at=DIALECTS,
    ),
    Case(
        "an answer with little reasoning in a part of its own", (Said(DECISION, reasoned="y" * 70, output_tokens=20),),
        Outcome.ANSWERED, output_tokens=20, at=DIALECTS,
    ),
    Case(
        "a count of ten thousand digits", (Said(DECISION, output_tokens=Bare("9" * 10_000)),),
        Outcome.ANSWERED, output_tokens=9, flags=("estimated",), at=DIALECTS,
    ),
    Case(
        "far less input than was sent", (Said(DECISION, input_tokens=0),),
        Outcome.ANSWERED, output_tokens=20, flags=("input_too_small",), at=DIALECTS,
    ),
    Case(
        "counts that come in several chunks",
        (Sent((chunk({"content": ""}, usage={"prompt_tokens": 10_000, "completion_tokens": 0}),
            chunk({"content": DECISION}, "stop", usage={"prompt_tokens": 0, "completion_tokens": 20}))),),
        Outcome.ANSWERED, input_tokens=10_000, output_tokens=20, flags=(), at=(CHAT,),
    ),
    Case(
        "input and output counted apart",
        (Sent((chunk({"content": DECISION}, "stop", usage={"prompt_tokens": 10_000}),
            {"choices": [], "usage": {"completion_tokens": 20}})),),
        Outcome.ANSWERED, input_tokens=10_000, output_tokens=20, flags=(), at=(CHAT,),
    ),
    Case(
        "counts of messages that come in several events",
        (Sent((
            {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 4_000,
                "cache_read_input_tokens": 6_000, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": DECISION}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20}},
            {"type": "message_stop"},
        )),),
        Outcome.ANSWERED, input_tokens=10_000, output_tokens=20, flags=(), at=(MESSAGES,),
    ),
    Case(
        "counts of a response before its end",
        (Sent((
            {"type": "response.in_progress", "response": {"usage": {"input_tokens": 10_000, "output_tokens": 0}}},
            {"type": "response.completed", "response": {"model": "m-1", "output": [MESSAGE],
                "usage": {"input_tokens": 0, "output_tokens": 20}}},
        )),),
        Outcome.ANSWERED, input_tokens=10_000, output_tokens=20, flags=(), at=(RESPONSES,),
    ),
    # pieces of one call
    *(
        Case(f"one call in pieces with fresh ids: {name}", (Sent((*pieces, chunk({}, "tool_calls"))), ANSWER),
            Outcome.ANSWERED, tools=("ok",), at=(CHAT,))
        for name, pieces in (
            ("the name in the first", (piece("a", ""), piece("b", '{"a"', name=""), piece("c", ':"1"}', name=""))),
            ("the name in each", (piece("a", '{"a"'), piece("b", ':"1'), piece("c", '"}'))),
            ("the first one empty", (piece("a", ""), piece("b", '{"a"'), piece("c", ':"1"}'))),
        )
    ),
    Case(
        "two calls at one index", (Sent((piece("a", '{"a":"1"}'), piece("b", '{"a":'), piece("b", '"2"}'), chunk({},
            "tool_calls"))), ANSWER),
        Outcome.ANSWERED, tools=("ok", "ok"), at=(CHAT,),
    ),
    # an answer without a message
    *(
        Case(f"no message: {name}", (Sent(events),), Outcome.UNAVAILABLE, HOST, at=(place,))
        for place, name, events in (
            (CHAT, "no choice", ({"model": "m-1", "choices": []}, {"choices": [], "usage": {"prompt_tokens": 9,
                "completion_tokens": 0}})),
            (CHAT, "no chunk", ()),
            (CHAT, "a choice at another index", (chunk({"content": DECISION}, index=1), chunk({}, "stop", index=1))),
            (CHAT, "a choice without a message", ({"choices": [{"index": 0, "finish_reason": "stop"}]},)),
            (RESPONSES, "no output", ({"type": "response.completed", "response": {"model": "m-1",
                "status": "completed"}},)),
            (MESSAGES, "no start", ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"})),
        )
    ),
    Case(
        "a message that is empty", (Sent((chunk({}), chunk({}, "stop"))),),
        Outcome.MALFORMED, word="empty", at=(CHAT,),
    ),
    *(
        Case(f"a context that is too small: {text[:40]}", (Refused(status, {"error": {"message": text, "code": code}}),
            ), Outcome.OUT_OF_OUTPUT, at=DIALECTS)
        for status, code, text in (
            (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
            (400, "invalid_request_error", "prompt is too long: 212345 tokens > 200000 maximum"),
            (400, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
            (413, "", "Input is too long for requested model."),
            (500, "", "the prompt exceeds the available context size"),
            (400, "", "The input token count (1200000) exceeds the maximum number of tokens allowed"),
            (400, "", "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
            (400, "", "This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
            (400, "", "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
            (400, "", "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded"
             " with context length of only 4096 tokens"),
        )
    ),
    *(
        Case(f"a context that is too small, as text generation servers say it: {text[:30]}",
            (Refused(422, {"error": f"Input validation error: {text}", "error_type": "validation"}),),
            Outcome.OUT_OF_OUTPUT, at=DIALECTS)
        for text in (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
            "`inputs` must have less than 1024 tokens. Given: 5000",
        )
    ),
    *(
        Case(f"a call that its own host cannot read: {code}",
            (Refused(status, {"error": {"message": text, "code": code}}),), Outcome.MALFORMED, word="call_unreadable",
            at=DIALECTS)
        for status, code, text in (
            (400, "tool_use_failed", "Failed to call a function. Please adjust your prompt."),
            (400, "json_validate_failed", "Failed to generate JSON. Please adjust your prompt."),
            (500, "", "Failed to parse tool call arguments as JSON"),
        )
    ),
    *(
        Case(f"a host's own refusal: {status} {text[:30]}", (Refused(status, {"error": {"message": text}}),),
            Outcome.UNAVAILABLE, HOST, at=DIALECTS)
        for status, text in (
            (400, "unknown field: stream_options"), (401, "bad key"), (404, "no model with maximum context length"),
            (402, "credit"),
            (413, "Request too large for model in organization on tokens per minute (TPM): context length"),
            (429, "rate limit"), (503, "overloaded"),
            (422, "Input validation error: `temperature` must be strictly positive"),
        )
    ),
)  # fmt: skip


_BARE = "what stands here goes bare"


def json_of(said: object) -> str:
    """What goes over the wire, bare parts as they stand."""
    bare: list[str] = []
    text = json.dumps(said, default=lambda part: bare.append(part.text) or _BARE)
    for part in bare:
        text = text.replace(f'"{_BARE}"', part, 1)
    return text


def written(harness: str, said: Said) -> object:
    """One answer in a dialect's words, whole."""
    return {CHAT: _chat, RESPONSES: _responses, MESSAGES: _anthropic, "agent-1": _agent}[harness](said)


def streamed(harness: str, said: Said) -> tuple[object, ...]:
    """One answer in a dialect's words, event by event, what grows in two pieces."""
    return {CHAT: _chat_events, RESPONSES: _responses_events, MESSAGES: _anthropic_events}[harness](said)


def _usage(said: Said, inside: str, outside: str) -> dict | None:
    counted = isinstance(said.output_tokens, Bare) or said.output_tokens >= 0
    return {inside: said.input_tokens, outside: said.output_tokens} if counted else None


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _chat(said: Said) -> object:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(said.calls)
    ]
    message = {"role": "assistant", "content": said.text} | ({"tool_calls": calls} if calls else {})
    if said.reasoned:
        message["reasoning_details"] = [
            {"type": "reasoning.text", "text": said.reasoned, "index": 0, "format": "unknown"}
        ]
    usage = _usage(said, "prompt_tokens", "completion_tokens")
    return {
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": usage,
    }


def _chat_events(said: Said) -> tuple[object, ...]:
    events = [chunk({"role": "assistant", "content": ""})]
    events += [
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": half, "index": 0}]})
        for half in _halves(said.reasoned)
        if half
    ]
    events += [chunk({"content": half}) for half in _halves(said.text) if half]
    for n, (name, args) in enumerate(said.calls):
        first, rest = _halves(args) if isinstance(args, str) else (args, "")
        events.append(
            chunk(
                {
                    "tool_calls": [
                        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": name, "arguments": first}}
                    ]
                }
            )
        )
        events += [chunk({"tool_calls": [{"index": n, "function": {"arguments": rest}}]})] if rest else []
    usage = _usage(said, "prompt_tokens", "completion_tokens")
    return (*events, chunk({}, "tool_calls" if said.calls else "stop"), {"model": "m-1", "choices": [], "usage": usage})


def _responses(said: Said) -> object:
    thought = (
        [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": said.reasoned}]}]
        if said.reasoned
        else []
    )
    text = (
        [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said.text}]}]
        if said.text
        else []
    )
    calls = [
        {"type": "function_call", "call_id": f"c{n}", "name": name, "arguments": args}
        for n, (name, args) in enumerate(said.calls)
    ]
    usage = _usage(said, "input_tokens", "output_tokens")
    return {"model": "m-1", "status": "completed", "output": [*thought, *text, *calls], "usage": usage}


def _responses_events(said: Said) -> tuple[object, ...]:
    whole = _responses(said)
    events: list[object] = []
    for place, item in enumerate(whole["output"]):
        kind = {"reasoning": "reasoning_text", "message": "output_text", "function_call": "function_call_arguments"}[
            item["type"]
        ]
        grown = item["arguments"] if "arguments" in item else item["content"][0]["text"]
        events.append(
            {
                "type": "response.output_item.added",
                "output_index": place,
                "item": {**item, "id": f"i{place}"} | ({"arguments": ""} if "arguments" in item else {"content": []}),
            }
        )
        if isinstance(grown, str):
            events += [
                {"type": f"response.{kind}.delta", "item_id": f"i{place}", "delta": half} for half in _halves(grown)
            ]
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return (*events, {"type": "response.completed", "response": whole})


def _anthropic(said: Said) -> object:
    thought = [{"type": "thinking", "thinking": said.reasoned, "signature": "c2ln"}] if said.reasoned else []
    text = [{"type": "text", "text": said.text}] if said.text else []
    calls = [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": args} for n, (name, args) in enumerate(said.calls)
    ]
    usage = _usage(said, "input_tokens", "output_tokens") or {}
    return {
        "model": "m-1",
        "content": [*thought, *text, *calls],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": usage,
    }


def _anthropic_events(said: Said) -> tuple[object, ...]:
    whole = _anthropic(said)
    counted = whole["usage"]
    events: list[object] = [
        {
            "type": "message_start",
            "message": {
                "model": "m-1",
                "content": [],
                "usage": {"input_tokens": counted["input_tokens"], "output_tokens": 0} if counted else {},
            },
        }
    ]
    for place, block in enumerate(whole["content"]):
        field, delta, part = {
            "thinking": ("thinking", "thinking_delta", "thinking"),
            "text": ("text", "text_delta", "text"),
            "tool_use": ("input", "input_json_delta", "partial_json"),
        }[block["type"]]
        grown = block[field]
        events.append(
            {
                "type": "content_block_start",
                "index": place,
                "content_block": {
                    **block,
                    field: ({} if field == "input" else "") if isinstance(grown, str) else grown,
                },
            }
        )
        if isinstance(grown, str):
            events += [
                {"type": "content_block_delta", "index": place, "delta": {"type": delta, part: half}}
                for half in _halves(grown)
            ]
    last = {"output_tokens": counted["output_tokens"]} if counted else {}
    return (
        *events,
        {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": last},
        {"type": "message_stop"},
    )


def _agent(said: Said) -> object:
    if not said.calls:
        return {"schema": "reply/1", "answer": said.text}
    return {"schema": "reply/1", "calls": [{"name": name, "arguments": args} for name, args in said.calls]}
