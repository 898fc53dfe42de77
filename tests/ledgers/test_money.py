"""Money: typed integers that refuse to mix."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.money import Bps, MicroUsd, TokenAmount, TokenRaw, Wei, decimal_text, mul_div_ceil, mul_div_floor

UNITS = (Wei, TokenRaw, MicroUsd, Bps)
units = st.sampled_from(UNITS)
amounts = st.integers(-(2**256), 2**256)


@given(units, amounts, amounts)
def test_equal_kinds_add_and_subtract_as_integers_and_keep_their_kind(unit, a, b):
    total, rest = unit(a) + unit(b), unit(a) - unit(b)
    assert (type(total), int(total), type(rest), int(rest)) == (unit, a + b, unit, a - b)


@given(units, units, amounts, amounts)
def test_two_kinds_of_money_do_not_mix(left, right, a, b):
    if left is right:
        return
    for act in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x < y, lambda x, y: x >= y):
        with pytest.raises(TypeError):
            act(left(a), right(b))


@given(units, amounts, amounts)
def test_plain_integers_do_not_mix_with_money(unit, a, b):
    for act in (lambda: unit(a) + b, lambda: b + unit(a), lambda: unit(a) - b, lambda: b - unit(a), lambda: unit(a) <= b):
        with pytest.raises(TypeError):
            act()


@pytest.mark.parametrize("act", [
    lambda m: m * 2, lambda m: 2 * m, lambda m: m / 2, lambda m: m // 2, lambda m: 7 // m, lambda m: m % 2, lambda m: m**2,
    lambda m: divmod(m, 2), lambda m: m << 1, lambda m: m & 1, lambda m: Wei(1.0), lambda m: Wei("1"), lambda m: Wei(True),
    lambda m: Wei(TokenRaw(1)),
])  # fmt: skip
def test_money_has_no_operator_that_hides_a_rounding_or_a_unit(act):
    with pytest.raises(TypeError):
        act(Wei(5))


@given(amounts)
def test_equal_numbers_of_different_kinds_are_not_equal(a):
    assert Wei(a) != TokenRaw(a) and Wei(a) != a and Wei(a) == Wei(a)


@given(st.lists(amounts, min_size=1))
def test_sums_start_from_money(values):
    assert sum(map(Wei, values), Wei(0)) == Wei(sum(values))


@given(amounts, amounts, st.integers(-(2**256), 2**256).filter(bool))
def test_mul_div_rounds_the_way_it_says(value, numerator, denominator):
    exact = Fraction(value * numerator, denominator)
    floor, ceil = mul_div_floor(value, numerator, denominator), mul_div_ceil(value, numerator, denominator)
    assert floor <= exact <= ceil and ceil - floor == (0 if exact.denominator == 1 else 1)


@given(amounts, st.integers(0, 30))
def test_decimal_text_without_places_loses_nothing(raw, decimals):
    assert Decimal(decimal_text(raw, decimals)).scaleb(decimals).to_integral_exact() == raw or raw.bit_length() > 90


@given(st.integers(-(2**80), 2**80), st.integers(0, 24), st.integers(0, 24))
def test_decimal_text_with_places_shows_only_true_digits(raw, decimals, places):
    full, shown = decimal_text(raw, decimals, decimals), decimal_text(raw, decimals, places)
    assert full.startswith(shown.rstrip(".")) and len(shown.partition(".")[2]) == min(places, decimals)


@given(amounts, st.integers(0, 18))
def test_decimal_text_takes_money(raw, places):
    assert decimal_text(Wei(raw), 18, places) == decimal_text(raw, 18, places)


def test_token_amounts_of_different_decimals_do_not_mix():
    assert TokenAmount(TokenRaw(1), 6) + TokenAmount(TokenRaw(2), 6) == TokenAmount(TokenRaw(3), 6)
    with pytest.raises(TypeError):
        TokenAmount(TokenRaw(1), 6) - TokenAmount(TokenRaw(1), 18)
