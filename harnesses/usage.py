"""Usage: every provider's token counts made into one record (design §10).

    flavour             input billed        cached inside it?   reasoning inside output?
    chat completions    prompt_tokens       yes                 yes; some hosts add it on top (total tells)
    responses           input_tokens        yes                 yes
    Anthropic messages  input_tokens        no: three parts     yes

Where a provider gives a total, output is the total less all input, and must equal the flavour's own rule; where it does
not, the larger is kept and `inconsistent` is flagged. Where it gives nothing, tokens are counted from bytes and
`estimated` is flagged: never zero. Where it gives less than the bytes that came can be made of, the bytes count.
One table of names and places serves every host that speaks chat completions, whatever it calls its counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harnesses.message import Usage

BYTES_PER_TOKEN = 4
"""Of the estimate where a provider counts nothing; rounded up."""
BYTES_PER_TOKEN_MOST = 8
"""No tokenizer in use makes longer tokens out of text on average: fewer tokens than bytes / 8 are not believed."""

TOKENS_MAX = 10**9
"""A larger count is not believed."""

Record = dict[str, Any]
Path = tuple[str, ...]


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path.split(".")) for path in text.split())


PLACES = _paths("usage x_groq.usage usageMetadata usage_metadata meta.tokens meta.billed_units response.usage timings")
"""Where hosts put their counts in an answer or a chunk of it, the first that can be read first; the choice is looked into too."""
INPUT = _paths(
    "prompt_tokens input_tokens promptTokenCount prompt_token_count prompt_eval_count inputTokens tokens.input_tokens"
    " billed_units.input_tokens inputTextTokenCount prompt_n"
)
OUTPUT = _paths(
    "completion_tokens output_tokens candidatesTokenCount candidates_token_count eval_count outputTokens tokens.output_tokens"
    " billed_units.output_tokens generated_tokens predicted_n"
)
CACHED = _paths(
    "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens prompt_cache_hit_tokens cached_tokens cache_read_input_tokens"
    " cachedContentTokenCount cached_content_token_count num_cached_tokens cacheReadInputTokens prompt_tokens_details.cache_read_tokens"
    " prompt_details.cached_tokens cache_n cached_input_tokens prompt_tokens_details.cached_tokens_details.text_tokens"
)
WRITTEN = _paths(
    "prompt_tokens_details.cache_write_tokens input_tokens_details.cache_write_tokens cache_creation_input_tokens cacheWriteInputTokens"
    " prompt_tokens_details.cache_creation_tokens prompt_tokens_details.cache_creation_input_tokens cache_write_tokens"
)
REASONING = _paths(
    "completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens reasoning_tokens thoughtsTokenCount"
    " thoughts_token_count output_tokens_details.thinking_tokens completion_details.reasoning_tokens"
)
TOTAL = _paths("total_tokens totalTokenCount total_token_count totalTokens")
OUTSIDE = frozenset({("prompt_n",)})
"""Names of an input that leaves what was cached out."""


def usage_in(said: Record) -> Usage | None:
    """Read the counts of a chat completion or one of its chunks, wherever its host puts them; none when there are none."""
    choices = said.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    for record in (said, choice, choice.get("message"), choice.get("delta")):
        if isinstance(record, dict):
            for place in PLACES:
                if found := chat_usage(_at(record, place)):
                    return found
    return chat_usage(said)


def chat_usage(said: object) -> Usage | None:
    """Read a `usage` object in which the input holds what was cached, under any host's names; none when there is none that can be read."""
    record = said if isinstance(said, dict) else {}
    name, spent = _first(record, INPUT)
    _, output = _first(record, OUTPUT)
    if spent is None or output is None:
        return None
    cached, written, reasoning = (_most(record, names) for names in (CACHED, WRITTEN, REASONING))
    if name in OUTSIDE:
        spent += cached
    output, wrong = _output(record, spent, output, reasoning)
    wrong |= cached + written > spent
    return Usage(max(spent, cached + written), cached, written, output, reasoning, _flags(wrong))


responses_usage = chat_usage
"""Responses of OpenAI count as chat completions do, under names of their own."""


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
    reasoning = _most(record, REASONING)
    wrong = reasoning > output
    return Usage(plain + cached + written, cached, written, max(output, reasoning), reasoning, _flags(wrong))


def held_to_bytes(usage: Usage, answered: str, reasoned: str) -> Usage:
    """Take no fewer output tokens than the bytes that came can be made of; a host that reports fewer is flagged."""
    least = -(-len((answered + reasoned).encode("utf-8", "replace")) // BYTES_PER_TOKEN_MOST)
    if usage.output_tokens >= least:
        return usage
    return replace(usage, output_tokens=least, flags=tuple(sorted({*usage.flags, "inconsistent"})))


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


def _output(record: Record, spent: int, output: int, reasoning: int) -> tuple[int, bool]:
    """All output, and whether the provider's numbers disagree about it."""
    _, total = _first(record, TOTAL)
    if total in (None, spent + output):
        return (output, False) if reasoning <= output else (output + reasoning, total is not None)
    if total == spent + output + reasoning:
        return output + reasoning, False
    return max(output, reasoning, total - spent), True


def _first(record: Record, names: Sequence[Path]) -> tuple[Path, int | None]:
    """The first of some counts that can be believed, and its name."""
    return next(((name, count) for name in names if (count := _counted(record, name)) is not None), ((), None))


def _most(record: Record, names: Sequence[Path]) -> int:
    """The largest of some counts that can be believed; 0 for none. Hosts say one thing under several names."""
    return max((count for name in names if (count := _counted(record, name)) is not None), default=0)


def _counted(record: Record, name: Path) -> int | None:
    inside = _at(record, name[:-1])
    return _count(inside, name[-1]) if isinstance(inside, dict) else None


def _at(record: object, path: Path) -> object:
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None
    return record


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
