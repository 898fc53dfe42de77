"""A wallet with a past trades as one without, or no later fill can be proven (ONC-11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chain.history import Later, Trade, is_without_history

SAME = Later(Trade(1_000, 90_000), Trade(500, 80_000))


def test_the_same_trades_have_no_history():
    assert is_without_history(SAME, SAME)


@pytest.mark.parametrize("brought", [501, 499, None])
def test_a_second_sale_that_brings_another_wei_or_reverts_is_history(brought):
    other = replace(SAME, sale=replace(SAME.sale, brought=brought))
    assert not is_without_history(other, SAME) and not is_without_history(SAME, other)


def test_a_second_sale_of_other_gas_is_history():
    assert not is_without_history(replace(SAME, sale=replace(SAME.sale, gas=80_001)), SAME)


@pytest.mark.parametrize("brought", [1_001, 999, None])
def test_a_second_buy_that_brings_another_unit_or_reverts_is_history(brought):
    other = replace(SAME, buy=replace(SAME.buy, brought=brought))
    assert not is_without_history(other, SAME) and not is_without_history(SAME, other)


def test_shares_may_be_rounded():
    other = replace(SAME, buy=replace(SAME.buy, brought=1_003))
    assert is_without_history(other, SAME, 3) and not is_without_history(other, SAME, 2)


def test_a_past_may_make_a_buy_cheaper_in_gas_but_never_dearer():
    cheaper = replace(SAME, buy=replace(SAME.buy, gas=72_900))
    assert is_without_history(cheaper, SAME) and not is_without_history(SAME, cheaper)


def test_trades_that_nobody_can_make_say_nothing_of_a_past():
    closed = Later(Trade(None, 0), Trade(None, 0))
    assert is_without_history(closed, closed)
