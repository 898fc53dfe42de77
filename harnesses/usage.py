"""Usage: every provider's token counts made into one record (design §10).

    flavour             input billed        cached inside it?   reasoning inside output?
    chat completions    prompt_tokens       yes                 yes; some hosts add it on top (total tells)
    responses           input_tokens        yes                 yes
    Anthropic messages  input_tokens        no: three parts     yes

Where a provider gives a total, output is the total less all input, and must equal the flavour's own rule; where it does
not, the larger is kept and `inconsistent` is flagged. Where it gives nothing, tokens are counted from bytes and
`estimated` is flagged: never zero.
"""

from __future__ import annotations

from typing import Any

from harnesses.message import Usage

BYTES_PER_TOKEN = 4
"""Of the estimate where a provider counts nothing; rounded up."""

TOKENS_MAX = 10**9
"""A larger count is not believed."""

Record = dict[str, Any]


def chat_usage(said: object) -> Usage | None:
    """Read a `usage` object of chat completions; none when there is none that can be read."""
    return _inclusive(said, "prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details")


def responses_usage(said: object) -> Usage | None:
    """Read a `usage` object of OpenAI responses; none when there is none that can be read."""
    return _inclusive(said, "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")


def anthropic_usage(said: object) -> Usage | None:
    """Read a `usage` object of Anthropic messages; none when there is none that can be read."""
    record = said if isinstance(said, dict) else {}
    plain, output = _count(record, "input_tokens"), _count(record, "output_tokens")
    if plain is None or output is None:
        return None
    cached = _count(record, "cache_read_input_tokens") or 0
    written = _count(record, "cache_creation_input_tokens")
    if written is None:
        written = sum(_count(_part(record, "cache_creation"), name) or 0 for name in _part(record, "cache_creation"))
    reasoning = _count(_part(record, "output_tokens_details"), "thinking_tokens") or 0
    wrong = reasoning > output
    return Usage(plain + cached + written, cached, written, max(output, reasoning), reasoning, _flags(wrong))


def estimated_usage(sent: bytes, answered: str, reasoned: str = "") -> Usage:
    """Count tokens from bytes, where a provider counts none."""
    reasoning = _tokens(len(reasoned.encode("utf-8", "replace")))
    output = _tokens(len(answered.encode("utf-8", "replace"))) + reasoning
    return Usage(_tokens(len(sent)), 0, 0, output, reasoning, ("estimated",))


def with_reasoning(usage: Usage, shown: str, answered: str) -> Usage:
    """Share the output out between hidden reasoning and answer by their lengths, where only their sum was counted."""
    if usage.reasoning_tokens or not shown or not usage.output_tokens:
        return usage
    share = usage.output_tokens * len(shown) // (len(shown) + len(answered))
    flags = tuple(sorted({*usage.flags, "reasoning_estimated"}))
    return Usage(usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens, share, flags)


def _inclusive(said: object, input_name: str, output_name: str, input_part: str, output_part: str) -> Usage | None:
    record = said if isinstance(said, dict) else {}
    spent, output = _count(record, input_name), _count(record, output_name)
    if spent is None or output is None:
        return None
    cached = _count(_part(record, input_part), "cached_tokens") or 0
    written = _count(_part(record, input_part), "cache_write_tokens") or 0
    reasoning = _count(_part(record, output_part), "reasoning_tokens") or _count(record, "reasoning_tokens") or 0
    output, wrong = _output(record, spent, output, reasoning)
    wrong |= cached + written > spent
    return Usage(max(spent, cached + written), cached, written, output, reasoning, _flags(wrong))


def _output(record: Record, spent: int, output: int, reasoning: int) -> tuple[int, bool]:
    """All output, and whether the provider's numbers disagree about it."""
    total = _count(record, "total_tokens")
    if total in (None, spent + output):
        return (output, False) if reasoning <= output else (output + reasoning, total is not None)
    if total == spent + output + reasoning:
        return output + reasoning, False
    return max(output, reasoning, total - spent), True


def _flags(wrong: bool) -> tuple[str, ...]:
    return ("inconsistent",) if wrong else ()


def _part(record: Record, name: str) -> Record:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _count(record: Record, name: str) -> int | None:
    """A count that can be believed: a whole number, not negative, not absurd."""
    value = record.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else None


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
