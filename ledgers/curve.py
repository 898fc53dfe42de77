"""The curve: facts of a marked series, in integers.

A mark that was not measured is None: it is left out and counted, never zero. Rounding is against the agent: returns
down, drawdowns up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledgers.money import Wei, mul_div_ceil, mul_div_floor

WHOLE_PPM = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFacts:
    """What a curve says; each number stands on `n` measured marks."""

    n: int
    """Marks that were measured."""
    missing: int
    """Marks that were not."""
    return_ppm: int | None
    """Last measured mark against the start; None without one."""
    mdd_ppm: int | None
    """Largest fall from the running peak, the start included, as a part of that peak, ≥ 0; None without a mark."""
    turnover_ppm: int
    """Value traded as a part of the start."""


def facts(start_wei: Wei, marks: Sequence[Wei | None], traded_wei: Iterable[Wei] = ()) -> CurveFacts:
    """Sum up a curve. Shapes: marks in order of time, None where unmeasured; the value of each trade, unsigned.

    Raises: ValueError when the start is not positive or an amount is negative."""
    measured = [mark for mark in marks if mark is not None]
    traded = list(traded_wei)
    if start_wei <= Wei(0) or any(amount < Wei(0) for amount in (*measured, *traded)):
        raise ValueError(f"a curve starts above zero and holds no negative amounts; it starts at {start_wei} wei")
    return CurveFacts(
        n=len(measured),
        missing=len(marks) - len(measured),
        return_ppm=return_ppm(start_wei, measured[-1]) if measured else None,
        mdd_ppm=mdd_ppm(start_wei, measured) if measured else None,
        turnover_ppm=mul_div_floor(sum(int(amount) for amount in traded), WHOLE_PPM, start_wei),
    )


def return_ppm(start_wei: Wei, end_wei: Wei) -> int:
    """Compare an end with its start, in parts per million, rounded down. Raises: ZeroDivisionError."""
    return mul_div_floor(end_wei - start_wei, WHOLE_PPM, start_wei)


def mdd_ppm(start_wei: Wei, marks: Iterable[Wei]) -> int:
    """Find the largest fall from the running peak as a part of that peak, in parts per million, rounded up."""
    peak, worst_ppm = start_wei, 0
    for mark in marks:
        peak = max(peak, mark)
        worst_ppm = max(worst_ppm, mul_div_ceil(peak - mark, WHOLE_PPM, peak))
    return worst_ppm
