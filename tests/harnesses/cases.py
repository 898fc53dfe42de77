"""One table of cases for every dialect and door: what a host or a program sends, how the turn ends, whose doing it is.

A reply is said once, in no dialect's words; `written` says it in each. The doors that a program comes in through have no
host between, so what a host refuses is said of the dialects alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from harnesses.outcome import Outcome

MODEL, HOST = "model", "host"
DIALECTS = ("h1-16k", "h1-responses-16k", "h1-anthropic-16k")
DOORS = ("agent-1", "h2")
DECISION = '{"schema":"decision/1","orders":[]}'


@dataclass(frozen=True)
class Said:
    """One answer of a model."""

    text: str = ""
    calls: tuple[tuple[str, object], ...] = ()
    """Name and arguments: text, or an object where the dialect has one."""
    output_tokens: int = 20
    """As the host counts them."""


@dataclass(frozen=True)
class Refused:
    """One refusal of a host."""

    status: int
    body: object


@dataclass(frozen=True)
class Case:
    name: str
    replies: tuple[Said | Refused, ...]
    outcome: Outcome
    doing: str = MODEL
    tools: tuple[str, ...] = ()
    """The word of each tool call, `ok` for one that was carried out."""
    output_tokens: int | None = None
    """Counted over the turn; none where it does not matter."""
    at: tuple[str, ...] = field(default=(*DIALECTS, *DOORS))

    def __str__(self) -> str:
        return self.name


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


ANSWER = Said(DECISION)
LONG = "x" * 200_000
CASES = (
    Case("an answer", (ANSWER,), Outcome.ANSWERED, output_tokens=20, at=DIALECTS),
    Case("a call, then an answer", (Said(calls=(("quote", {"a": "1"}),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case("arguments as JSON text", (Said(calls=(("quote", '{"a":"1"}'),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case("no arguments at all", (Said(calls=(("book", ""),)), ANSWER), Outcome.ANSWERED, tools=("ok",)),
    Case("arguments that are no JSON", (Said(calls=(("quote", "{a:1}"),)), ANSWER), Outcome.ANSWERED, tools=("arguments_not_json",)),
    Case("arguments that are a list", (Said(calls=(("quote", "[]"),)), ANSWER), Outcome.ANSWERED, tools=("arguments_not_object",)),
    Case("arguments nested deep", (Said(calls=(("quote", deep(990)),)), ANSWER), Outcome.ANSWERED, tools=("arguments_not_json",)),
    Case("arguments without a bottom", (Said(calls=(("quote", deep(9_000)),)), ANSWER), Outcome.ANSWERED, tools=("arguments_too_long",)),
    Case("a tool that does not exist", (Said(calls=(("web_search", "{}"),)), ANSWER), Outcome.ANSWERED, tools=("unknown_tool",)),
    Case("an answer that is empty", (Said(""),), Outcome.MALFORMED, at=(*DIALECTS, "h2")),
    Case("an answer with reasoning before it", (Said(f"<think>hm</think>{DECISION}"),), Outcome.MALFORMED),
    Case("more output than is reported", (Said(LONG, output_tokens=1),), Outcome.OUT_OF_OUTPUT, output_tokens=25_000, at=DIALECTS),
    Case("an output without a count is counted", (Said(LONG, output_tokens=-1),), Outcome.OUT_OF_OUTPUT, output_tokens=50_000, at=DIALECTS),
    *(
        Case(f"a context that is too small: {text[:40]}", (Refused(status, {"error": {"message": text, "code": code}}),), Outcome.OUT_OF_OUTPUT, at=DIALECTS)
        for status, code, text in (
            (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
            (400, "invalid_request_error", "prompt is too long: 212345 tokens > 200000 maximum"),
            (400, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
            (413, "", "Input is too long for requested model."),
            (500, "", "the prompt exceeds the available context size"),
            (400, "", "The input token count (1200000) exceeds the maximum number of tokens allowed"),
        )
    ),
    *(
        Case(f"a call that its own host cannot read: {code}", (Refused(status, {"error": {"message": text, "code": code}}),), Outcome.MALFORMED, at=DIALECTS)
        for status, code, text in (
            (400, "tool_use_failed", "Failed to call a function. Please adjust your prompt."),
            (400, "json_validate_failed", "Failed to generate JSON. Please adjust your prompt."),
            (500, "", "Failed to parse tool call arguments as JSON"),
        )
    ),
    *(
        Case(f"a host's own refusal: {status} {text[:30]}", (Refused(status, {"error": {"message": text}}),), Outcome.UNAVAILABLE, HOST, at=DIALECTS)
        for status, text in (
            (400, "unknown field: stream_options"), (401, "bad key"), (404, "no model with maximum context length"), (402, "credit"),
            (413, "Request too large for model in organization on tokens per minute (TPM): context length"), (429, "rate limit"), (503, "overloaded"),
        )
    ),
)  # fmt: skip


def written(harness: str, said: Said) -> object:
    """One answer in a dialect's words, whole."""
    return {"h1-16k": _chat, "h1-responses-16k": _responses, "h1-anthropic-16k": _anthropic, "agent-1": _agent}[harness](said)


def _chat(said: Said) -> object:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}} for n, (name, args) in enumerate(said.calls)]
    message = {"role": "assistant", "content": said.text} | ({"tool_calls": calls} if calls else {})
    usage = {"prompt_tokens": 100, "completion_tokens": said.output_tokens} if said.output_tokens >= 0 else None
    return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}], "usage": usage}


def _responses(said: Said) -> object:
    text = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said.text}]}] if said.text else []
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": name, "arguments": args} for n, (name, args) in enumerate(said.calls)]
    usage = {"input_tokens": 100, "output_tokens": said.output_tokens} if said.output_tokens >= 0 else None
    return {"model": "m-1", "status": "completed", "output": [*text, *calls], "usage": usage}


def _anthropic(said: Said) -> object:
    text = [{"type": "text", "text": said.text}] if said.text else []
    calls = [{"type": "tool_use", "id": f"c{n}", "name": name, "input": args} for n, (name, args) in enumerate(said.calls)]
    usage = {"input_tokens": 100, "output_tokens": said.output_tokens} if said.output_tokens >= 0 else {}
    return {"model": "m-1", "content": [*text, *calls], "stop_reason": "tool_use" if calls else "end_turn", "usage": usage}


def _agent(said: Said) -> object:
    if not said.calls:
        return {"schema": "reply/1", "answer": said.text}
    return {"schema": "reply/1", "calls": [{"name": name, "arguments": args} for name, args in said.calls]}


def arguments_as_object(arguments: object) -> object:
    """Arguments as a client that sends objects would send them; text where they are none."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
