"""The conversation with a model, in no provider's dialect.

Each endpoint translates messages into its own wire format and its answer back into one Reply; nothing outside an
endpoint knows a provider's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "developer", "user", "assistant", "tool"]

Stop = Literal["end", "tools", "length", "other"]
"""Why a model stopped: it was done, it wants tools, the output limit cut it off, or something else (a filter, a
pause)."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call, as the model wrote it."""

    id: str
    name: str
    arguments_text: str
    """JSON text, not yet read; a provider that sends an object has it written out."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""
    tool_call_id: str = ""
    """Of a tool message: which call it answers."""
    native: Any = None
    """Of an assistant: what its own provider wants back besides text and calls (signed thoughts); opaque to all
    others."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more answers, the same for all providers (design §10)."""

    input_tokens: int = 0
    """All input, cached and cache-written tokens inside."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """All output that is billed and limited, hidden reasoning inside."""
    reasoning_tokens: int = 0
    """The part of the output that was hidden reasoning."""
    flags: tuple[str, ...] = ()
    """Sorted. `inconsistent`: the provider's own numbers disagree and the larger was kept. `estimated`: it reported
    none, these are counted from bytes. `reasoning_estimated`: the hidden part is counted from its shown text. `broken`:
    of an exchange that ended before its answer did. `input_too_small`: it reported far less input than was sent, and
    the least that this can be made of was taken."""

    @property
    def consistent(self) -> bool:
        """False where the provider's own numbers disagree."""
        return "inconsistent" not in self.flags

    @property
    def estimated(self) -> bool:
        """True where the provider reported nothing."""
        return "estimated" in self.flags

    @property
    def plain_input_tokens(self) -> int:
        """Input that was neither read from nor written to a cache."""
        return max(0, self.input_tokens - self.cached_tokens - self.cache_write_tokens)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            tuple(sorted({*self.flags, *other.flags})),
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    """None when the provider counts nothing; the loop then counts from bytes."""
    stop: Stop = "end"
    model_reported: str = ""
    """What the provider calls the model that answered, its fingerprint behind it in brackets; empty when it does not
    say."""
    native: Any = None
    """What its own provider wants back with this answer, opaque to all others."""
    reasoned: str = ""
    """Hidden reasoning, where the provider shows it; never part of the answer."""
    came: int = 0
    """Bytes of output that came, counted before anything was left unread."""
