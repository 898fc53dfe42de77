"""The cadence: when a window's ticks and marks fall, whose turn comes first, and what counts as late.

Everything is counted from the opening time, never from what a scheduler did (ONC-03, ONC-12, ONC-15; design §4, §9).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ledgers.identity import sha256_hex
from referee.onchain.events import WindowOpened
from referee.onchain.rules import Rules


@dataclass(frozen=True, slots=True, order=True)
class Beat:
    """Something the schedule asks for; sorts by time, ticks before marks."""

    ts_ms: int
    place: int
    """0 for a tick, 1 for a mark."""
    number: int
    """The tick, from 0, or the mark, from 1."""

    @property
    def kind(self) -> Literal["tick", "mark"]:
        """What is due."""
        return "tick" if self.place == 0 else "mark"


def ticks_in(length_ms: int, interval_ms: int) -> int:
    """Count the ticks of a window: every k with k × interval before the close, the first at the opening."""
    return -(-length_ms // interval_ms)


def mark_interval_ms(rules: Rules, length_ms: int) -> int:
    """Time between marks on the clock: min(the rule's most, a sixth of the window) (ONC-12)."""
    return max(1, min(rules.mark_interval_ms_max, length_ms // rules.mark_window_parts))


def late_ms_max(rules: Rules, interval_ms: int) -> int:
    """How late a tick may begin and still be played (ONC-03)."""
    return min(interval_ms // 10, rules.late_ms_max)


def tick_ts_ms(opened: WindowOpened, tick: int) -> int:
    """When a tick falls."""
    return opened.open_ts_ms + tick * opened.interval_ms


def beats(opened: WindowOpened) -> Iterator[Beat]:
    """List every tick and every mark on the clock. Shapes: in order of time, all before the close."""
    tick, mark = 0, 1
    while True:
        due = min(
            Beat(tick_ts_ms(opened, tick), 0, tick),
            Beat(opened.open_ts_ms + mark * opened.mark_interval_ms, 1, mark),
        )
        if due.ts_ms >= opened.close_ts_ms:
            return
        yield due
        tick, mark = (tick + 1, mark) if due.kind == "tick" else (tick, mark + 1)


def rotation(run_ids: Sequence[str], seed: int, tick: int) -> tuple[str, ...]:
    """Order the runs of a tick (ONC-15; 001 §5.9).

    Shapes: a permutation of the runs. Over every len(run_ids) ticks each run has each place once; who follows whom is
    drawn anew for each such round."""
    around, place = divmod(tick, max(1, len(run_ids)))
    drawn = sorted(run_ids, key=lambda run_id: sha256_hex(f"{seed}/{around}/{run_id}".encode()))
    return tuple(drawn[place:] + drawn[:place])
