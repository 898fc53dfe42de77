"""The provider: whoever answers a question, behind one small Protocol.

    ProviderFault (ledgers.errors)   could not be reached, refused, or is scripted to fail → UNAVAILABLE
    ModelFault                       it answered with what its own host could not read → MALFORMED
    LimitSpent                       a limit of the harness ran out inside the provider → OUT_OF_STEPS, OUT_OF_OUTPUT, OUT_OF_TIME
    anything else                    a bug of the provider → UNAVAILABLE, so that it never ends the window
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from harnesses.question import Question
from ledgers.errors import ProviderFault, RefereeError

__all__ = ["Answer", "LimitSpent", "ModelFault", "Provider", "ProviderFault"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider answered."""

    text: str
    wait_ms: int = 0
    """Part of the time that was spent waiting for a rate limit, not thinking."""


class LimitSpent(RefereeError):
    """The stack used up a limit of its harness before it answered."""

    def __init__(self, limit: Literal["steps", "output", "time"], message: str = "") -> None:
        super().__init__(message or f"the {limit} limit was spent before an answer")
        self.limit = limit


class ModelFault(RefereeError):
    """The stack itself answered with what cannot be read, however it came to be known."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class Provider(Protocol):
    """Answers questions."""

    async def answer(self, question: Question) -> Answer:
        """Answer one question. Raises: ProviderFault, LimitSpent."""
        ...
