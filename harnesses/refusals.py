"""Refusals: what a host's error says, and whose doing it is.

    the model's    a call or an answer that the host itself could not read: the turn is MALFORMED
    its context    the conversation is longer than the model takes: a limit of the model, the turn is OUT_OF_OUTPUT
    the host's     anything else, and anything unknown: an outage, with the host's words shown

One table for every dialect, for refusals by status and for errors inside an answer. A refusal of the requests or tokens
of a minute speaks of lengths too, and is the host's.
Source: error bodies of OpenAI, Azure, Anthropic, Groq, Mistral, Gemini, Together, Fireworks, OpenRouter, Cohere, xAI,
vLLM, SGLang, TGI, llama.cpp, LM Studio, Ollama.
"""

from __future__ import annotations

import re
from typing import Any

from harnesses.provider import LimitSpent, ModelFault, ProviderFault
from harnesses.shallow import read_json
from ledgers.errors import RefereeError

MODEL = re.compile(
    r"tool_use_failed|json_validate_failed|output_parse_failed|malformed_function_call|invalid_tool_call"
    r"|tool_call_validation_failed"
    r"|fail(?:ed|ure) to (?:call a function|parse (?:the )?(?:tool|function) call|parse tool call arguments"
    r"|generate json)"
    r"|(?:model|assistant) (?:generated|produced|returned|emitted) (?:an? )?(?:invalid|malformed|unparsable)"
    r"|attempted to call (?:a )?tool .{0,80} which was not in request",
    re.IGNORECASE,
)
"""A host could not make anything of what its model wrote."""
CONTEXT = re.compile(
    r"context_length_exceeded|context_window_exceeded|model_context_window|exceed_context_size"
    r"|(?:maximum|max|available|model'?s?) context (?:length|size|window)"
    r"|context (?:length|size|window) (?:is |of |was )?(?:exceeded|too)"
    r"|exceed(?:s|ed|ing)? (?:the |its |this |model'?s? )*(?:maximum |available |limit of )*context"
    r"|prompt is too long|input is too long|input length .{0,60}exceed|too many (?:input )?tokens in"
    r"|input token count .{0,60}exceeds"
    r"|prompt .{0,40}exceeds max(?:imum)?.{0,20}(?:length|model)|maximum (?:prompt|input|sequence) length"
    r"|loaded with context length of only"
    r"|tokens in the prompt cannot exceed|`inputs` tokens \+ `max_new_tokens` must be"
    r"|`inputs` must have (?:less|fewer) than",
    re.IGNORECASE,
)
"""The conversation is longer than the model takes."""
RATE = re.compile(
    r"rate.?limit|per (?:minute|hour|day|second)|\b[rt]p[md]\b|quota|overloaded|credit|billing", re.IGNORECASE
)
"""A host's allowance, whatever else it speaks of."""
TEXT_CHARS_MAX = 4_000


def doing_of(text: str, message: str) -> RefereeError | None:
    """Say whose doing an error is by its body; none where it is the host's, or nobody can tell.

    Shapes: `text` is the error as it came, `message` is what is shown of it."""
    said = text[:TEXT_CHARS_MAX]
    if RATE.search(said):
        return None
    if CONTEXT.search(said):
        return LimitSpent("output", f"context_length: {message}")
    return ModelFault("call_unreadable", message) if MODEL.search(said) else None


def fault_of(text: str, message: str) -> RefereeError:
    """The error that a refusal by status stands for."""
    return doing_of(_inner(text), message) or ProviderFault(message)


def _inner(text: str) -> str:
    """What a body says went wrong, without what it repeats of the request or of the model's own words."""
    try:
        said: Any = read_json(text)
    except ValueError:
        return text
    error = said.get("error", said) if isinstance(said, dict) else said
    if not isinstance(error, dict):
        return str(error)
    return " ".join(str(error[name]) for name in ("type", "code", "status", "message", "detail") if error.get(name))
