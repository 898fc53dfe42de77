"""Usage: every provider's token counts made into one record (design §10).

    flavour             input billed        cached inside it?   reasoning inside output?
    chat completions    prompt_tokens       yes                 yes; some hosts add it on top (total tells)
    responses           input_tokens        yes                 yes
    Anthropic messages  input_tokens        no: three parts     yes

Where a provider gives a total, output is the total less all input, and must equal the flavour's own rule; where it does
not, the larger is kept and `inconsistent` is flagged. Where it gives nothing, tokens are counted from bytes and
`estimated` is flagged: never zero. Where it gives less than the bytes that came can be made of, the bytes count; where
it gives far less input than the bytes that were sent can be made of, likewise, and `input_too_small` is flagged.
One table of names and places serves every host that speaks chat completions, whatever it calls its counts. Counts that
come in several chunks are put together field by field, the largest of each: some hosts repeat a field as 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harnesses.message import Usage

BYTES_PER_TOKEN = 4
"""Of the estimate where a provider counts nothing; rounded up."""
BYTES_PER_TOKEN_MOST = 8
"""No tokenizer in use makes longer tokens out of text on average: fewer tokens than bytes / 8 are not believed."""

BYTES_PER_TOKEN_SENT = 32
"""Fewer input tokens than bytes / 32 are not believed: a quarter of the least that text is made into, so that no honest
count is doubted."""
BYTES_PER_SEALED_BYTE = 4
"""What a host seals (encrypted reasoning, signatures) is no text: it is longer than what it was made of, so a quarter
of it counts."""
SEALED = frozenset("data signature thought_signature thoughtSignature encrypted_content encrypted".split())
LABELS = frozenset(
    "type id index format role object status call_id tool_call_id annotations citations citation logprobs".split()
)
"""Fields of an answer that no model writes."""

TOKENS_MAX = 10**9
"""A larger count is not believed."""

Record = dict[str, Any]
Path = tuple[str, ...]


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path.split(".")) for path in text.split())


PLACES = _paths("usage x_groq.usage usageMetadata usage_metadata meta.tokens meta.billed_units response.usage timings")
"""Where hosts put their counts in an answer or a chunk of it, the first that can be read first; the choice is looked
into too."""
INPUT = _paths(
    "prompt_tokens input_tokens promptTokenCount prompt_token_count prompt_eval_count inputTokens tokens.input_tokens"
    " billed_units.input_tokens inputTextTokenCount prompt_n"
)
OUTPUT = _paths(
    "completion_tokens output_tokens candidatesTokenCount candidates_token_count eval_count outputTokens "
    "tokens.output_tokens"
    " billed_units.output_tokens generated_tokens predicted_n"
)
CACHED = _paths(
    "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens prompt_cache_hit_tokens cached_tokens "
    "cache_read_input_tokens"
    " cachedContentTokenCount cached_content_token_count num_cached_tokens cacheReadInputTokens "
    "prompt_tokens_details.cache_read_tokens"
    " prompt_details.cached_tokens cache_n cached_input_tokens prompt_tokens_details.cached_tokens_details.text_tokens"
)
WRITTEN = _paths(
    "prompt_tokens_details.cache_write_tokens input_tokens_details.cache_write_tokens cache_creation_input_tokens "
    "cacheWriteInputTokens"
    " prompt_tokens_details.cache_creation_tokens prompt_tokens_details.cache_creation_input_tokens cache_write_tokens"
)
REASONING = _paths(
    "completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens reasoning_tokens "
    "thoughtsTokenCount"
    " thoughts_token_count output_tokens_details.thinking_tokens completion_details.reasoning_tokens"
)
TOTAL = _paths("total_tokens totalTokenCount total_token_count totalTokens")
OUTSIDE = frozenset({("prompt_n",)})
"""Names of an input that leaves what was cached out."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a host has counted so far; none where it has not said."""

    input: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int = 0
    written: int = 0
    reasoning: int = 0

    @property
    def whole(self) -> bool:
        """Whether they make a usage."""
        return self.input is not None and self.output is not None

    def grown(self, other: Counts) -> Counts:
        """These and those of another chunk, field by field the largest."""
        return Counts(
            *(
                max((each for each in pair if each is not None), default=None)
                for pair in zip(_fields(self), _fields(other), strict=True)
            )
        )

    def usage(self) -> Usage | None:
        """The usage that they make; none where input or output is missing."""
        if self.input is None or self.output is None:
            return None
        output, wrong = _output(self.total, self.input, self.output, self.reasoning)
        wrong |= self.cached + self.written > self.input
        return Usage(
            max(self.input, self.cached + self.written),
            self.cached,
            self.written,
            output,
            self.reasoning,
            _flags(wrong),
        )


def counts_in(said: Record) -> Counts:
    """Read the counts of a chat completion or one of its chunks, wherever its host puts them."""
    choices = said.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    records = [
        record for record in (said, choice, choice.get("message"), choice.get("delta")) if isinstance(record, dict)
    ]
    parts = (_at(record, place) for record in records for place in PLACES)
    found = [chat_counts(part) for part in (*parts, said) if isinstance(part, dict)]
    whole = next((counts for counts in found if counts.whole), None)
    return functools.reduce(Counts.grown, found) if whole is None else whole


def usage_in(said: Record) -> Usage | None:
    """Read the usage of a chat completion; none when there is none."""
    return counts_in(said).usage()


def chat_counts(said: object) -> Counts:
    """Read a `usage` object in which the input holds what was cached, under any host's names."""
    record = said if isinstance(said, dict) else {}
    name, spent = _first(record, INPUT)
    _, output = _first(record, OUTPUT)
    _, total = _first(record, TOTAL)
    cached, written, reasoning = (_most(record, names) for names in (CACHED, WRITTEN, REASONING))
    if spent is not None and name in OUTSIDE:
        spent += cached
    return Counts(spent, output, total, cached, written, reasoning)


def chat_usage(said: object) -> Usage | None:
    """The usage that a `usage` object holds; none when there is none that can be read."""
    return chat_counts(said).usage()


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


def largest(counts: Record, other: object) -> Record:
    """Two records of counts as one, field by field the largest that can be believed; after one that cannot be, nothing
    is known."""
    grown = dict(counts)
    for name, count in other.items() if isinstance(other, dict) else ():
        if isinstance(count, dict):
            grown[name] = largest(_part(grown, name), count)
        elif count is not None:
            said = _count(other, name)
            grown[name] = count if said is None else max(said, _count(grown, name) or 0)
    return grown


def held_to_bytes(usage: Usage, came: int) -> Usage:
    """Take no fewer output tokens than the bytes that came can be made of; a host that reports fewer is flagged."""
    return _at_least(usage, "output_tokens", -(-came // BYTES_PER_TOKEN_MOST), "inconsistent")


def held_to_sent(usage: Usage, sent: int) -> Usage:
    """Take no fewer input tokens than the text that was sent can be made of; a host that reports fewer is flagged."""
    return _at_least(usage, "input_tokens", -(-sent // BYTES_PER_TOKEN_SENT), "input_too_small")


def _at_least(usage: Usage, name: str, least: int, flag: str) -> Usage:
    if getattr(usage, name) >= least:
        return usage
    return replace(usage, flags=tuple(sorted({*usage.flags, flag})), **{name: least})


def estimated_usage(sent: bytes, answered: str, reasoned: str = "", came: int = 0) -> Usage:
    """Count tokens from bytes, where a provider counts none; `came` are the bytes of all output, also of what was not
    read."""
    reasoning = _tokens(text_bytes(reasoned))
    output = max(_tokens(text_bytes(answered)) + reasoning, _tokens(came))
    return Usage(_tokens(len(sent)), 0, 0, output, reasoning, ("estimated",))


def text_bytes(text: str) -> int:
    """Length of a text in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def words_in(said: object) -> int:
    """Bytes of output in a part of an answer, whatever its form: every text in it but labels, a part of what is
    sealed."""
    size, inside = 0, [(said, 1)]
    while inside:
        part, share = inside.pop()
        if isinstance(part, str):
            size += text_bytes(part) // share
        elif isinstance(part, list):
            inside += [(item, share) for item in part]
        elif isinstance(part, dict):
            inside += [
                (item, BYTES_PER_SEALED_BYTE if name in SEALED else share)
                for name, item in part.items()
                if name not in LABELS
            ]
    return size


def with_reasoning(usage: Usage, shown: str, answered: str) -> Usage:
    """Share the output out between hidden reasoning and answer by their lengths, where only their sum was counted."""
    if usage.reasoning_tokens or not shown or not usage.output_tokens:
        return usage
    share = usage.output_tokens * len(shown) // (len(shown) + len(answered))
    flags = tuple(sorted({*usage.flags, "reasoning_estimated"}))
    return Usage(usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens, share, flags)


def _fields(counts: Counts) -> tuple[int | None, ...]:
    return counts.input, counts.output, counts.total, counts.cached, counts.written, counts.reasoning


def _output(total: int | None, spent: int, output: int, reasoning: int) -> tuple[int, bool]:
    """All output, and whether the provider's numbers disagree about it."""
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
