"""Taking turns: two or more ways of doing the same thing, measured in one run, and the result as a line with its target.

A machine is never quiet. Every round lets each side play once, in rotating order, so that all of them meet the same noise;
a result is the median over all rounds, and its spread is that of the rounds' own ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

Seconds = list[float]
"""How long each piece of work took."""
Side = Callable[[], Awaitable[Seconds]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table."""

    what: str
    ours: str
    against: str
    value: float
    unit: str = "×"
    low: float | None = None
    """Quarter of the rounds lie below."""
    high: float | None = None
    limit: float | None = None
    at_least: bool = False
    """The limit is a floor; else a ceiling."""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def target(self) -> str:
        """The target in words."""
        return "" if self.limit is None else f"{'≥' if self.at_least else '≤'} {_number(self.limit)} {self.unit}"

    @property
    def figure(self) -> str:
        return f"{_number(self.value)} {self.unit}"

    @property
    def spread(self) -> str:
        return "" if self.low is None or self.high is None else f"{_number(self.low)}–{_number(self.high)}"


async def take_turns(rounds: int, sides: Mapping[str, Side]) -> dict[str, list[Seconds]]:
    """Play every side once a round. Shapes: per side one list of seconds a round."""
    names = list(sides)
    taken: dict[str, list[Seconds]] = {name: [] for name in names}
    for number in range(rounds):
        at = number % len(names)
        for name in names[at:] + names[:at]:
            taken[name].append(await sides[name]())
    return taken


def middle(rounds: Sequence[Seconds]) -> float:
    """Median over the rounds of each round's mean: a round is the same mix of work every time."""
    return statistics.median([statistics.fmean(each) for each in rounds])


def quarters(values: Sequence[float]) -> tuple[float, float]:
    """The first and third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def ratio(what: str, ours: Sequence[Seconds], other: Sequence[Seconds], *, against: str, limit: float | None = None) -> Result:
    """Our time over another's: the median of the rounds' own ratios."""
    ratios = [statistics.fmean(mine) / statistics.fmean(its) for mine, its in zip(ours, other, strict=True)]
    low, high = quarters(ratios)
    return Result(
        what=what, ours=milliseconds(middle(ours)), against=f"{milliseconds(middle(other))} {against}",
        value=statistics.median(ratios), low=low, high=high, limit=limit,
    )  # fmt: skip


def milliseconds(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds * 1e3:.2f} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.0f}" if float(value).is_integer() and abs(value) >= 10 else f"{value:.2f}"
