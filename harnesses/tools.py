"""The tools: what a stack may ask while it thinks, behind one small Protocol.

The loop reads the call and its arguments; the toolbox answers with bounded JSON. Nothing a stack asks for is an error
of ours: what cannot be done is said back as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledgers.identity import identity_of

TOOL_BYTES_MAX = 65_536
"""A longer tool answer is not shown; the stack is told so."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as a stack sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments, an object."""


def specs_sha256(specs: Sequence[ToolSpec]) -> str:
    """Identity of a tool list: names, descriptions and schemas, in their order (ONC-01)."""
    return identity_of(
        [{"name": spec.name, "description": spec.description, "parameters": spec.parameters} for spec in specs]
    )


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool said."""

    text: bytes
    """JSON, bounded."""
    ok: bool
    reason: str = ""
    """Machine-readable word for why it is not ok; empty when it is."""


class Toolbox(Protocol):
    """The tools of one turn."""

    specs: tuple[ToolSpec, ...]

    async def use(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Use one tool of `specs`; arguments that do not fit are answered, never raised."""
        ...
