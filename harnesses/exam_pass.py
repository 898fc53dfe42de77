"""The pass: what a sitting of the entrance exam leaves to whoever opens a run (ONC-13; 001 §2.3.1).

A pass belongs to one model on one harness identity: the manifest's bytes and the schemas of its tools. It is dated, and
it keeps what the provider itself called the model, so that a change between exam and run can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamPass:
    """One passed sitting."""

    sitting: str
    """The sitting's id, as a person types it."""
    sitting_sha256: str
    ts_ms: int
    """When it was sat."""
    provider: str
    model: str
    harness_sha256: str
    tools_sha256: str
    model_reported: str
    """What the provider called the model during the sitting; empty when it said nothing."""
    fresh: bool = False
    """Whether turns were sat beside the published ones that nobody had seen before."""
    sittings: int = 0
    """How often this model had sat on this harness by then, however it ended; 0 where that was not counted."""

    def admits(self, stack: Stack) -> bool:
        """Tell whether a stack is the model and harness that passed."""
        passed = self.provider, self.model, self.harness_sha256, self.tools_sha256
        return passed == (stack.provider, stack.model, stack.harness_sha256, stack.tools_sha256)
