"""The second opinion: one order in twenty, the chosen transaction is simulated by another lane too, at the same pinned block.

A node that lies consistently cannot be caught by its own answers. Which orders are compared nobody can know beforehand. Where
the two lanes differ by anything that a transaction did, the order is a fault, and the lane that would have filled it fills
nothing more as long as this process runs. A second lane that is down, behind or slow says nothing.
Source: 001 §2.2; design §9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from ledgers.errors import ChainFault

ONE_IN = 20
SECOND_OPINION_MS = 3_000
LANES_DIFFER = "lanes_differ"


@dataclass(frozen=True, slots=True)
class Compared:
    """What two lanes said of one simulation."""

    lane: str
    other: str
    differs: str
    """Where they differ; empty where they are the same."""


def compare(simulation: Simulation, lane: str, answer: Any, other: str, again: Any) -> Compared | None:
    """Compare what two lanes answered to one simulation; none where one of them answered nothing that can be read."""
    try:
        here, there = answered(simulation, answer), answered(simulation, again)
    except (SimulationRefused, ChainFault):
        return None
    return Compared(lane, other, difference(here, there))


def difference(here: Simulated, there: Simulated) -> str:
    """Say where two answers to one simulation differ; empty where every call did the same."""
    for block, (rows, others) in enumerate(zip(here.rows, there.rows, strict=True)):
        for place, (one, other) in enumerate(zip(rows, others, strict=True)):
            told: tuple[tuple[str, Callable[[Any], Any]], ...] = (
                ("outcome", lambda call: call.ok), ("gas", lambda call: call.gas_used), ("answer", lambda call: call.data), ("logs", _logged),
            )  # fmt: skip
            for name, read in told:
                if read(one) != read(other):
                    return f"block {block}, call {place}: {name}"
    return ""


def _logged(call: Any) -> list[tuple[str, tuple[str, ...], str]]:
    return [(str(log["address"]).lower(), tuple(log["topics"]), str(log.get("data", "0x")).lower()) for log in call.logs]
