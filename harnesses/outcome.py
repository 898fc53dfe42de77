"""Outcomes: how a turn ends, and the record of the way there.

Only ANSWERED can become a decision. None of the other five is ever a trade or a hold, and UNAVAILABLE is not the
stack's result at all (001 §5.6, §5.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Every turn ends in exactly one of these."""

    ANSWERED = "ANSWERED"
    MALFORMED = "MALFORMED"
    """It answered, but not with what the bench asked for."""
    OUT_OF_TIME = "OUT_OF_TIME"
    OUT_OF_STEPS = "OUT_OF_STEPS"
    OUT_OF_OUTPUT = "OUT_OF_OUTPUT"
    UNAVAILABLE = "UNAVAILABLE"
    """Whoever answers could not be reached, or broke."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call to whoever answers, as bytes for the journal."""

    request: bytes
    answer: bytes
    """What came back, cut at the answer bound; empty when nothing did."""
    latency_ms: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that ended."""

    outcome: Outcome
    answer: str | None
    """The answer's text; none unless ANSWERED, or MALFORMED within the answer bound."""
    reason: str
    """Why it is not ANSWERED, bounded and plain; empty when it is."""
    steps: tuple[Step, ...]
    latency_ms: int
    """Time the stack took, waits left out."""
    wait_ms: int
    """Time spent waiting for a rate limit or for our own slot."""
