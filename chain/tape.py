"""The tape of one pool: its price over a short time, its minutes and its latest swaps, from the chain's own logs.

A pool's price stands until its next swap, so a price carried forward is a fact, not a guess. Steps of `step_s` seconds
keep the last price in them; minutes hold only what was traded in them. Its size is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

STEPS_MAX = 60
"""Steps of price history."""
VOLUME_S = 300
"""Span of the short volume."""
VOLUME_STEP_S = 10
MINUTE_S = 60
HOUR_S = 3_600
"""How far back logs are read."""
MINUTES_MAX = 120
TRADES_MAX = 50

Ratio = tuple[int, int]
"""A price as a fraction of base units: of token 0 in token 1."""


@dataclass(frozen=True, slots=True)
class Trade:
    """One swap, by the pool's own word."""

    block: int
    ts_s: int
    bought0: bool
    """Token 0 was taken out of the pool."""
    moved0_raw: int
    moved1_raw: int

    def moved(self, side0: bool) -> int:
        """What moved of token 0, or of token 1."""
        return self.moved0_raw if side0 else self.moved1_raw


@dataclass(frozen=True, slots=True)
class Minute:
    """What was traded in one minute."""

    start_s: int
    opened: Ratio
    """After the first swap."""
    highest: Ratio
    lowest: Ratio
    closed: Ratio
    moved0_raw: int
    moved1_raw: int
    bought0: int
    """Swaps that took token 0 out."""
    sold0: int

    def then(self, later: Minute) -> Minute:
        """The minute together with what came after it."""
        return Minute(
            self.start_s, self.opened, max_ratio(self.highest, later.highest), min_ratio(self.lowest, later.lowest), later.closed,
            self.moved0_raw + later.moved0_raw, self.moved1_raw + later.moved1_raw,
            self.bought0 + later.bought0, self.sold0 + later.sold0,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Activity:
    """What was traded over a span, by swaps that took token 0 out and those that put it in."""

    moved0_raw: int = 0
    moved1_raw: int = 0
    bought0: int = 0
    sold0: int = 0

    def plus(self, part: Minute | Activity) -> Activity:
        return Activity(
            self.moved0_raw + part.moved0_raw, self.moved1_raw + part.moved1_raw, self.bought0 + part.bought0, self.sold0 + part.sold0
        )


@dataclass(frozen=True, slots=True)
class TapeView:
    """A tape as it stood at one block; what is written later does not change it."""

    minutes: tuple[Minute, ...] = ()
    """Oldest first; minutes without a swap are left out."""
    trades: tuple[Trade, ...] = ()
    """The latest ones, oldest first."""
    short: Activity = Activity()
    """Of the last five minutes."""
    hour: Activity = Activity()
    """Of the last sixty minutes."""


class PoolTape:
    """What happened in one pool lately."""

    def __init__(self, step_s: int) -> None:
        self._step_s = step_s
        self._prices: deque[tuple[int, Ratio]] = deque(maxlen=STEPS_MAX + 1)
        self._short: deque[tuple[int, Activity]] = deque(maxlen=VOLUME_S // VOLUME_STEP_S + 1)
        """By step of ten seconds."""
        self._minutes: deque[Minute] = deque(maxlen=MINUTES_MAX)
        self._trades: deque[Trade] = deque(maxlen=TRADES_MAX)

    def price(self, ts_s: int, ratio: Ratio) -> None:
        """Note the price that holds from `ts_s` on."""
        step = ts_s // self._step_s
        if self._prices and self._prices[-1][0] >= step:
            self._prices[-1] = (self._prices[-1][0], ratio)
        elif not self._prices or self._prices[-1][1] != ratio:
            self._prices.append((step, ratio))

    def trade(self, trade: Trade) -> None:
        """Note a swap, after the price it left behind."""
        self._trades.append(trade)
        bought, sold = int(trade.bought0), int(not trade.bought0)
        self._add_short(trade.ts_s // VOLUME_STEP_S, Activity(trade.moved0_raw, trade.moved1_raw, bought, sold))
        if self._prices:
            now = self._prices[-1][1]
            start_s = trade.ts_s - trade.ts_s % MINUTE_S
            self._add_minute(Minute(start_s, now, now, now, now, trade.moved0_raw, trade.moved1_raw, bought, sold))

    def _add_short(self, step: int, done: Activity) -> None:
        if self._short and self._short[-1][0] >= step:
            self._short[-1] = (self._short[-1][0], self._short[-1][1].plus(done))
        else:
            self._short.append((step, done))

    def _add_minute(self, minute: Minute) -> None:
        if self._minutes and self._minutes[-1].start_s >= minute.start_s:
            self._minutes[-1] = self._minutes[-1].then(minute)
        else:
            self._minutes.append(minute)

    def preceded_by(self, earlier: PoolTape) -> None:
        """Put an earlier stretch of the same pool before what is known."""
        prices, minutes = earlier._prices, earlier._minutes
        known, self._prices = self._prices, prices.copy()
        for step, ratio in known:
            self.price(step * self._step_s, ratio)
        later, self._minutes = self._minutes, minutes.copy()
        for minute in later:
            self._add_minute(minute)
        short, self._short = self._short, earlier._short.copy()
        for step, done in short:
            self._add_short(step, done)
        self._trades = deque((*earlier._trades, *self._trades), maxlen=TRADES_MAX)

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

    def view(self, ts_s: int) -> TapeView:
        """The tape as of `ts_s`, in whole steps of ten seconds and whole minutes."""
        since, until = (ts_s - VOLUME_S) // VOLUME_STEP_S, ts_s // VOLUME_STEP_S
        recent = (done for step, done in self._short if since < step <= until)
        hour = (minute for minute in self._minutes if ts_s - HOUR_S < minute.start_s <= ts_s)
        return TapeView(tuple(self._minutes), tuple(self._trades), _sum(recent), _sum(hour))


def _sum(parts: Iterable[Minute | Activity]) -> Activity:
    total = Activity()
    for part in parts:
        total = total.plus(part)
    return total


def grouped(minutes: Iterable[Minute], span_s: int) -> list[Minute]:
    """Minutes put together into spans of a whole number of minutes, oldest first."""
    spans: list[Minute] = []
    for minute in minutes:
        start_s = minute.start_s - minute.start_s % span_s
        part = Minute(
            start_s, minute.opened, minute.highest, minute.lowest, minute.closed, minute.moved0_raw, minute.moved1_raw, minute.bought0, minute.sold0
        )
        if spans and spans[-1].start_s == start_s:
            spans[-1] = spans[-1].then(part)
        else:
            spans.append(part)
    return spans


def max_ratio(one: Ratio, other: Ratio) -> Ratio:
    """The higher of two prices."""
    return one if one[0] * other[1] >= other[0] * one[1] else other


def min_ratio(one: Ratio, other: Ratio) -> Ratio:
    """The lower of two prices."""
    return one if one[0] * other[1] <= other[0] * one[1] else other
