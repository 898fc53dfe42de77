"""Told: what one outside source said at one time, to be shown as untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Told:
    """What one source said at one time."""

    source: str
    tokens: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Numbers as decimal text by what they are, by token."""
    pools: tuple[str, ...] = ()
    """Pools it calls trending, its first one first."""
    told_ts_ms: int = 0
    """When the answer had come; nothing in it is later."""
