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

from chain.simulate import CallAnswer, Simulated, Simulation, SimulationRefused, answered, log_told
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
    """Compare what two lanes answered to one simulation; none where the other lane answered nothing that can be read.

    A part of the lane's own answer that cannot be read is a difference: nobody avoids a comparison by writing badly."""
    try:
        here, there = _told(answered(simulation, answer)), _told(answered(simulation, again))
    except (SimulationRefused, ChainFault):
        return None
    if any(part is None for part in there.values()):
        return None
    return Compared(lane, other, next((place for place, part in here.items() if part != there[place]), ""))


def _told(done: Simulated) -> dict[str, object]:
    """What every call did, part by part; None for a part that cannot be read."""
    return {
        f"block {block}, call {place}: {name}": _part(read, call)
        for block, row in enumerate(done.rows) for place, call in enumerate(row) for name, read in PARTS.items()
    }  # fmt: skip


def _part(read: Callable[[CallAnswer], object], call: CallAnswer) -> object:
    try:
        return read(call)
    except ChainFault:
        return None


def _logged(call: CallAnswer) -> list[tuple[str, tuple[str, ...], bytes]]:
    logs = [log_told(log) for log in call.logs]
    if None in logs:
        raise ChainFault("bad_answer", "a log that is none")
    return [log for log in logs if log is not None]


PARTS: dict[str, Callable[[CallAnswer], object]] = {
    "outcome": lambda call: call.ok, "gas": lambda call: call.gas_used, "answer": lambda call: call.data, "logs": _logged,
}  # fmt: skip
"""What a call did, in the order in which it is compared."""
