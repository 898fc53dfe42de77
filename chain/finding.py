"""A finding: one line of what a node or a chain was tested for."""

from __future__ import annotations

from dataclasses import dataclass

FINE, NOTED, DIFFERS, UNKNOWN = "ok", "noted", "differs", "unknown"
"""As needed · another way than elsewhere, taken care of · not as needed · could not be asked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    part: str
    """Where it belongs: node, methods, simulation, gas, limits, code, prices, pools, slots."""
    what: str
    verdict: str
    found: str
    """In words, outside words cleaned."""


def verdict(fine: bool, otherwise: str = DIFFERS) -> str:
    """Fine, or the other verdict."""
    return FINE if fine else otherwise
