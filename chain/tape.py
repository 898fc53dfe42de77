"""The tape of one pool: its price over a short time and what was traded, from the chain's own logs.

A pool's price stands until its next swap, so a price carried forward is a fact, not a guess. Time runs in steps of
`step_s` seconds; a step keeps the last price in it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

STEPS_MAX = 60
"""Steps of price history."""
VOLUME_S = 300
"""Span of the volume."""
VOLUME_STEP_S = 10

Ratio = tuple[int, int]
"""A price as a fraction of base units."""


@dataclass(slots=True)
class _Traded:
    step: int
    amount_raw: int
    swaps: int


class PoolTape:
    """What happened in one pool lately; its size is bounded."""

    def __init__(self, step_s: int) -> None:
        self._step_s = step_s
        self._prices: deque[tuple[int, Ratio]] = deque(maxlen=STEPS_MAX + 1)
        self._traded: deque[_Traded] = deque(maxlen=VOLUME_S // VOLUME_STEP_S + 1)

    def price(self, ts_s: int, ratio: Ratio) -> None:
        """Note the price that holds from `ts_s` on."""
        step = ts_s // self._step_s
        if self._prices and self._prices[-1][0] >= step:
            self._prices[-1] = (self._prices[-1][0], ratio)
        elif not self._prices or self._prices[-1][1] != ratio:
            self._prices.append((step, ratio))

    def trade(self, ts_s: int, amount_raw: int) -> None:
        """Note a swap by what it moved on the quoted side."""
        step = ts_s // VOLUME_STEP_S
        if self._traded and self._traded[-1].step >= step:
            self._traded[-1].amount_raw += amount_raw
            self._traded[-1].swaps += 1
        else:
            self._traded.append(_Traded(step, amount_raw, 1))

    def prices(self, ts_s: int, steps: int) -> list[tuple[int, Ratio]]:
        """Price at the end of each of the last steps up to `ts_s`, oldest first, from the first known one on."""
        last = ts_s // self._step_s
        found: list[tuple[int, Ratio]] = []
        changes = list(self._prices)
        at = -1
        for step in range(max(last - steps + 1, changes[0][0]) if changes else last + 1, last + 1):
            while at + 1 < len(changes) and changes[at + 1][0] <= step:
                at += 1
            found.append((min((step + 1) * self._step_s - 1, ts_s), changes[at][1]))
        return found

    def volume(self, ts_s: int) -> tuple[int, int]:
        """Amount and number of swaps in the last five minutes up to `ts_s`, in whole steps of ten seconds."""
        since = (ts_s - VOLUME_S) // VOLUME_STEP_S
        recent = [traded for traded in self._traded if since < traded.step <= ts_s // VOLUME_STEP_S]
        return sum(traded.amount_raw for traded in recent), sum(traded.swaps for traded in recent)
