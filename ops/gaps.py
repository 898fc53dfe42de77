"""The gaps: spans of a window in which nobody was woken and nothing was measured, as a fold over its events.

A window clock never stops: what a pause, a killed process or a dead node cost is said beside every score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledgers.events import Event
from ops.lines import counted, minutes_text
from referee.onchain.events import NetworkFaulted, NetworkRecovered, TickMissed, WindowOpened, WindowPaused, WindowResumed

PAUSED, NO_PROCESS, NO_NODE = "paused", "no process", "no node"


@dataclass(frozen=True, slots=True)
class Gap:
    """One span; `to_ts_ms` is none while it goes on."""

    why: str
    from_ts_ms: int
    to_ts_ms: int | None = None


@dataclass(slots=True)
class Gaps:
    """All gaps of a window, and which ticks were missed when."""

    closed: list[Gap] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)
    """Start of what goes on, by why."""
    missed: dict[int, int] = field(default_factory=dict)
    """Scheduled time of every tick that a run missed, by tick."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case WindowPaused():
                self.open[PAUSED] = event.ts_ms
            case WindowResumed():
                began_ts_ms = self.open.pop(PAUSED, None)
                why = NO_PROCESS if began_ts_ms is None else PAUSED
                self.closed.append(Gap(why, event.ts_ms - event.down_ms if began_ts_ms is None else began_ts_ms, event.ts_ms))
            case NetworkFaulted():
                self.open.setdefault(NO_NODE, event.ts_ms)
            case NetworkRecovered() if NO_NODE in self.open:
                self.closed.append(Gap(NO_NODE, self.open.pop(NO_NODE), event.ts_ms))
            case TickMissed():
                self.missed[event.tick] = event.scheduled_ts_ms

    def all(self) -> list[Gap]:
        """List the gaps in order of time."""
        return sorted([*self.closed, *(Gap(why, ts_ms) for why, ts_ms in self.open.items())], key=lambda gap: gap.from_ts_ms)

    def spans(self, until_ts_ms: int) -> tuple[tuple[int, int], ...]:
        """List the gaps as spans of time, those that go on up to a time."""
        return tuple((gap.from_ts_ms, until_ts_ms if gap.to_ts_ms is None else gap.to_ts_ms) for gap in self.all())

    def texts(self, opened: WindowOpened) -> Iterator[str]:
        """Say every gap with what it cost, e.g. `paused 0:20–0:48; 5 of 10 ticks missed`."""
        for gap in self.all():
            end = "now" if gap.to_ts_ms is None else minutes_text(gap.to_ts_ms - opened.open_ts_ms)
            until_ts_ms = opened.close_ts_ms if gap.to_ts_ms is None else gap.to_ts_ms
            missed = sum(gap.from_ts_ms <= ts_ms <= until_ts_ms for ts_ms in self.missed.values())
            cost = f"; {missed} of {counted(opened.ticks, 'tick')} missed" if missed else "; no tick missed"
            yield f"{gap.why} {minutes_text(gap.from_ts_ms - opened.open_ts_ms)}–{end}{cost}"
