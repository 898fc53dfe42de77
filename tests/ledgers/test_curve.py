"""The curve: return, drawdown and turnover in integers, rounded against the agent."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.curve import facts
from ledgers.money import Wei

wei = st.integers(0, 10**24).map(Wei)
starts = st.integers(1, 10**24).map(Wei)


def test_a_curve_that_stands_still_says_zero():
    found = facts(Wei(100), [Wei(100), Wei(100)])
    assert (found.return_ppm, found.mdd_ppm, found.turnover_ppm, found.n) == (0, 0, 0, 2)


def test_the_start_is_the_first_peak():
    assert facts(Wei(100), [Wei(90)]).mdd_ppm == 100_000


def test_returns_round_down_and_drawdowns_up():
    found = facts(Wei(3), [Wei(2)])
    assert (found.return_ppm, found.mdd_ppm) == (-333_334, 333_334)
    assert facts(Wei(3), [Wei(4)]).return_ppm == 333_333


def test_missing_marks_are_left_out_and_counted_never_zero():
    found = facts(Wei(100), [Wei(110), None, None, Wei(121), None])
    assert (found.n, found.missing, found.return_ppm, found.mdd_ppm) == (2, 3, 210_000, 0)


@pytest.mark.parametrize("marks", [[], [None], [None, None]])
def test_a_curve_without_a_measured_mark_has_no_return_and_no_drawdown(marks):
    found = facts(Wei(100), marks)
    assert (found.return_ppm, found.mdd_ppm, found.n, found.missing) == (None, None, 0, len(marks))


def test_a_mark_of_zero_is_a_mark():
    assert facts(Wei(100), [Wei(0)]).mdd_ppm == 1_000_000


def test_turnover_is_the_value_traded_over_the_start():
    assert facts(Wei(100), [], [Wei(30), Wei(45)]).turnover_ppm == 750_000


@pytest.mark.parametrize(("start", "marks", "traded"), [(0, [], []), (-1, [], []), (1, [-1], []), (1, [1], [-1])])
def test_amounts_that_cannot_be_are_refused(start, marks, traded):
    with pytest.raises(ValueError):
        facts(Wei(start), [Wei(mark) for mark in marks], [Wei(amount) for amount in traded])


@given(starts, st.lists(st.none() | wei, max_size=20))
def test_drawdown_equals_a_recount_over_all_pairs(start, marks):
    measured = [int(start), *(int(mark) for mark in marks if mark is not None)]
    worst = max((Fraction(peak - low, peak) for at, peak in enumerate(measured) if peak for low in measured[at:]), default=Fraction(0))
    found = facts(start, marks)
    assert found.mdd_ppm is None or 0 <= found.mdd_ppm - worst * 10**6 < 1


@given(starts, st.lists(wei, min_size=1, max_size=20))
def test_marks_that_only_rise_have_no_drawdown(start, marks):
    rising = sorted(start + mark for mark in marks)
    assert facts(start, rising).mdd_ppm == 0
