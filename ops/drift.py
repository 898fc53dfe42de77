"""Drift: a host that answers under a model's name as another model than the one that passed the exam.

The window goes on, since its turns are what they are; the report says it beside the results, and before the next window the
model has to sit again (ONC-13).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harnesses.stack import Stack
from ledgers.events import Event
from ops.models import sittings_of
from ops.settings import Settings
from referee.onchain.events import PassShown, StepCounted
from referee.onchain.live import Seat

NAMES_MAX = 8


@dataclass(slots=True)
class Answered:
    """Under which names the models of a window's runs answered, as a fold over its events."""

    passes: dict[str, PassShown] = field(default_factory=dict)
    """By run."""
    names: dict[str, list[str]] = field(default_factory=dict)
    """By run, in order of first mention."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        if isinstance(event, PassShown):
            self.passes[event.run_id] = event
        elif isinstance(event, StepCounted) and event.model_reported:
            names = self.names.setdefault(event.run_id, [])
            if event.model_reported not in names and len(names) < NAMES_MAX:
                names.append(event.model_reported)

    def drifted(self, run_id: str) -> list[str]:
        """Names under which a run's model answered and did not sit; none where the sitting had no name to compare with."""
        shown = self.passes.get(run_id)
        if shown is None or not shown.model_reported:
            return []
        sat_as = {name.strip() for name in shown.model_reported.split(",")}
        return [name for name in self.names.get(run_id, ()) if not {part.strip() for part in name.split(",")} <= sat_as]


def answered(events: Iterable[Event]) -> Answered:
    """Fold a window's events."""
    found = Answered()
    for event in events:
        found.apply(event)
    return found


def record_drift(settings: Settings, window_id: str, seats: Iterable[Seat], found: Answered, ts_ms: int) -> list[str]:
    """Write every drift of a window into the record of sittings; say which models have to sit again. Raises: StoreFault, CorruptJournal."""
    said: dict[str, str] = {}
    for seat in seats:
        if names := found.drifted(seat.run_id):
            stack: Stack = seat.stack
            was, now = found.passes[seat.run_id].model_reported, ", ".join(names)
            sittings_of(settings).drift(stack, was, now, window_id, ts_ms)
            said[stack.name] = f"{stack.model} passed the exam as {was} and answered as {now}; before the next window it has to sit again"
    return list(said.values())
