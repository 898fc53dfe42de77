"""The stack: the unit under test, named by its hash (ONC-01; 001 §2.1).

Model × provider × harness × prompt × tools × parameters. A change in any of them is a new identity; the name it has in
a window file is not part of it. The plan is not part of the stack either: a run's hash adds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.identity import identity_of, sha256_hex

NO_MODEL = "none"
"""Model name of a stack without a model."""

NO_PROMPT_SHA256 = sha256_hex(b"")
NO_PLAN_SHA256 = sha256_hex(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One stack."""

    name: str
    """What a window file calls it; a label, not part of the identity."""
    provider: str
    """Who answers and in which version, e.g. `baseline/random@1`."""
    model: str
    """Model name, or `none`."""
    harness_sha256: str
    prompt_sha256: str
    tools_sha256: str
    params: tuple[tuple[str, str], ...]
    """Parameter names and values as text, sorted by name."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.params]
        assert names == sorted(set(names)), f"parameters of {self.name} are not sorted and unique: {names}"

    @property
    def sha256(self) -> str:
        """Identity of the stack, without a plan."""
        return identity_of(
            {
                "schema": "stack/1",
                "provider": self.provider,
                "model": self.model,
                "harness_sha256": self.harness_sha256,
                "prompt_sha256": self.prompt_sha256,
                "tools_sha256": self.tools_sha256,
                "params": dict(self.params),
            }
        )

    def run_sha256(self, plan_sha256: str = NO_PLAN_SHA256) -> str:
        """Identity of the stack together with its frozen plan."""
        return run_identity(self.sha256, plan_sha256)

    @property
    def exempt_from_exam(self) -> bool:
        """True for stacks without a model, and only for them (ONC-13)."""
        return self.model == NO_MODEL


def run_identity(stack_sha256: str, plan_sha256: str) -> str:
    """Identity of a stack together with its frozen plan, by their hashes (ONC-14)."""
    return identity_of({"schema": "run/1", "stack_sha256": stack_sha256, "plan_sha256": plan_sha256})
