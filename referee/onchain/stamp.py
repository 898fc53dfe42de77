"""The time stamp of events: never below the one before it, and a clock that jumped is said (design §9)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ledgers.events import Event
from referee.onchain.events import ClockJumped

JUMP_MS_MAX = 1_000
"""How far wall time may leave monotonic time between two events before it counts as a jump."""


@dataclass(slots=True)
class Stamp:
    """What the last stamp was, and both clocks at that moment."""

    window_id: str
    ts_ms: int = 0
    """Time of the last event."""
    wall_ms: int = 0
    monotonic_ms: int | None = None
    """None before the first reading of this process."""

    def stamped(self, events: tuple[Event, ...], now_ms: int, monotonic_ms: int) -> tuple[Event, ...]:
        """Give events their time: max(the last one, now); a jump of the clock is put before them."""
        delta_ms = self._jump_ms(now_ms, monotonic_ms)
        self.wall_ms, self.monotonic_ms = now_ms, monotonic_ms
        self.ts_ms = max(self.ts_ms, now_ms)
        jumped = (ClockJumped(run_id=self.window_id, ts_ms=self.ts_ms, delta_ms=delta_ms),) if delta_ms else ()
        return jumped + tuple(event if event.ts_ms == self.ts_ms else replace(event, ts_ms=self.ts_ms) for event in events)

    def _jump_ms(self, now_ms: int, monotonic_ms: int) -> int:
        if self.monotonic_ms is None:
            return min(0, now_ms - self.wall_ms)
        drift_ms = (now_ms - self.wall_ms) - (monotonic_ms - self.monotonic_ms)
        if now_ms < self.wall_ms or abs(drift_ms) > JUMP_MS_MAX:
            return drift_ms or now_ms - self.wall_ms
        return 0
