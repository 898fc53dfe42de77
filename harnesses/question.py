"""The question: everything one turn shows to a stack (001 §2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.identity import canonical_bytes, sha256_hex


@dataclass(frozen=True, slots=True)
class Question:
    """One turn's question."""

    run_id: str
    tick: int
    prompt: str
    """Verbatim prompt; empty for stacks without a model."""
    bundle: bytes
    """Canonical JSON, the same bytes for every stack of the tick."""
    book: bytes
    """Canonical JSON of the run's own book."""
    deadline_ms: int
    """Time limit of the turn, milliseconds from the moment it is asked."""

    def request_bytes(self, stack_sha256: str) -> bytes:
        """Write what was asked of whom, for the journal; bundle and book by their hashes, being recorded beside it."""
        return canonical_bytes(
            {
                "schema": "question/1",
                "stack_sha256": stack_sha256,
                "run_id": self.run_id,
                "tick": self.tick,
                "prompt": self.prompt,
                "bundle_sha256": sha256_hex(self.bundle),
                "book_sha256": sha256_hex(self.book),
                "deadline_ms": self.deadline_ms,
            }
        )
