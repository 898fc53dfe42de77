"""Ticks, amounts and the tick map against their definitions, and against what the chain's own pools say."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chain.calldata import uint_at
from chain.liquidity.amounts import amount0_between, amount1_between, amounts_of, liquidity_for
from chain.liquidity.tick_map import TickMap
from chain.liquidity.ticks import Q96, SQRT_PRICE_MAX, SQRT_PRICE_MIN, TICK_MAX, TICK_MIN, sqrt_price_at, tick_at, tick_of_ratio
from ledgers.errors import ChainFault

TICKS = st.integers(TICK_MIN, TICK_MAX)
PRICES = st.integers(SQRT_PRICE_MIN, SQRT_PRICE_MAX - 1)


# --- ticks ----------------------------------------------------------------------------------------------------------


def test_outermost_ticks_stand_at_the_published_prices():
    assert (sqrt_price_at(TICK_MIN), sqrt_price_at(0), sqrt_price_at(TICK_MAX)) == (SQRT_PRICE_MIN, Q96, SQRT_PRICE_MAX)


@given(TICKS)
def test_price_of_a_tick_is_its_definition_within_the_rounding(tick: int):
    """Each of 20 factors is off by at most half a unit of 2⁻¹²⁸."""
    exact = Fraction(10_001, 10_000) ** tick if abs(tick) < 2_000 else None
    if exact is not None:
        assert abs(Fraction(sqrt_price_at(tick), Q96) ** 2 / exact - 1) < Fraction(1, 2**80)


@given(st.integers(TICK_MIN, TICK_MAX - 1))
def test_prices_rise_with_ticks(tick: int):
    assert sqrt_price_at(tick) < sqrt_price_at(tick + 1)


@given(PRICES)
@example(SQRT_PRICE_MIN)
@example(SQRT_PRICE_MAX - 1)
def test_tick_at_is_the_greatest_at_or_below(price: int):
    tick = tick_at(price)
    assert sqrt_price_at(tick) <= price < sqrt_price_at(tick + 1)


@pytest.mark.parametrize("price", [SQRT_PRICE_MIN - 1, SQRT_PRICE_MAX, 0, -1])
def test_a_price_no_pool_can_have_is_refused(price: int):
    with pytest.raises(ValueError, match="no pool can have"):
        tick_at(price)


@pytest.mark.parametrize("tick", [TICK_MIN - 1, TICK_MAX + 1])
def test_a_tick_beyond_the_outermost_is_refused(tick: int):
    with pytest.raises(ValueError, match="is not within"):
        sqrt_price_at(tick)


@given(st.integers(1, 10**36), st.integers(1, 10**36))
def test_tick_of_a_ratio_is_the_tick_of_its_price(up: int, down: int):
    tick = tick_of_ratio(up, down)
    assert sqrt_price_at(tick) ** 2 <= (up << 192) // down < sqrt_price_at(tick + 1) ** 2


@pytest.mark.parametrize(("up", "down", "tick"), [(1, 10**60, TICK_MIN), (10**60, 1, TICK_MAX), (1, 1, 0), (10_001, 10_000, 0), (10_002, 10_000, 1)])
def test_tick_of_a_ratio_at_its_edges(up: int, down: int, tick: int):
    assert tick_of_ratio(up, down) == tick


def test_a_ratio_without_a_side_is_refused():
    with pytest.raises(ValueError, match="above zero"):
        tick_of_ratio(0, 1)


def test_pools_of_the_chain_say_the_same_tick_for_their_price(devnet):
    calls = [("eth_call", [{"to": market.place.key, "data": "0x3850c7bd"}, "latest"]) for market in devnet.deployment.markets if market.place.venue == "v3"]
    told = [bytes.fromhex(answer[2:]) for answer in devnet.node.batch(calls)]
    assert len(told) > 3
    assert [tick_at(uint_at(slot0, 0)) for slot0 in told] == [int.from_bytes(slot0[32:64], signed=True) for slot0 in told]


# --- amounts --------------------------------------------------------------------------------------------------------

RANGES = st.tuples(TICKS, TICKS).filter(lambda pair: pair[0] != pair[1]).map(sorted)
LIQUIDITY = st.integers(0, 2**127)


@given(LIQUIDITY, PRICES, PRICES)
def test_amounts_between_prices_are_the_formulas(liquidity: int, a: int, b: int):
    exact0, exact1 = abs(Fraction(liquidity * Q96, a) - Fraction(liquidity * Q96, b)), Fraction(liquidity * abs(a - b), Q96)
    assert exact0 - 2 < amount0_between(liquidity, a, b, False) <= exact0 <= amount0_between(liquidity, a, b, True) < exact0 + 1
    assert exact1 - 1 < amount1_between(liquidity, a, b, False) <= exact1 <= amount1_between(liquidity, a, b, True) < exact1 + 1


@given(LIQUIDITY, PRICES, RANGES)
def test_closing_never_pays_more_than_opening_costs(liquidity: int, price: int, ticks: list[int]):
    paid, cost = amounts_of(liquidity, price, *ticks), amounts_of(liquidity, price, *ticks, round_up=True)
    assert all(0 <= up - down <= 2 for down, up in zip(paid, cost, strict=True))


@given(PRICES, RANGES, st.integers(0, 2**120), st.integers(0, 2**120))
def test_liquidity_never_costs_more_than_the_amounts_it_is_for(price: int, ticks: list[int], raw0: int, raw1: int):
    liquidity = liquidity_for(price, *ticks, raw0, raw1)
    cost0, cost1 = amounts_of(liquidity, price, *ticks, round_up=True)
    assert cost0 <= raw0 and cost1 <= raw1


def test_a_position_out_of_range_holds_one_token():
    assert amounts_of(10**18, sqrt_price_at(-100), -60, 60)[1] == 0 == amounts_of(10**18, sqrt_price_at(100), -60, 60)[0]
    assert amounts_of(10**18, sqrt_price_at(-60), -60, 60) == amounts_of(10**18, sqrt_price_at(-100), -60, 60)


# --- the tick map ---------------------------------------------------------------------------------------------------

SPACINGS = st.sampled_from([1, 10, 60, 200, 32_767])


@st.composite
def maps(draw) -> tuple[TickMap, list[int]]:
    spacing = draw(SPACINGS)
    edge = TICK_MAX // spacing
    places = draw(st.lists(st.integers(-edge, edge) | st.integers(-min(edge, 600), min(edge, 600)), max_size=12, unique=True))
    return TickMap(spacing, [(place * spacing, 1, 0) for place in places]), sorted(place * spacing for place in places)


@given(maps(), TICKS)
def test_next_stops_are_the_nearest_tick_or_the_words_edge(given_map: tuple[TickMap, list[int]], tick: int):
    tick_map, ticks = given_map
    spacing = tick_map.spacing
    place = tick // spacing
    first = (place >> 8 << 8) * spacing
    below = [each for each in ticks if first <= each <= tick]
    assert tick_map.below(tick) == ((below[-1], True) if below else (max(first, TICK_MIN), False))
    last = ((place + 1 >> 8 << 8) + 255) * spacing
    above = [each for each in ticks if tick < each <= last]
    assert tick_map.above(tick) == ((above[0], True) if above else (min(last, TICK_MAX), False))


@given(st.lists(st.tuples(st.integers(-40, 39), st.integers(1, 40), st.integers(1, 10**9)), max_size=20))
def test_what_is_taken_away_again_leaves_no_trace(changes: list[tuple[int, int, int]]):
    tick_map = TickMap(60)
    for low, width, delta in changes:
        tick_map.change(low * 60, (low + width) * 60, delta)
    held = tick_map.copy()
    for low, width, delta in changes:
        tick_map.change(low * 60, (low + width) * 60, -delta)
    assert (tick_map.ticks, tick_map.below(0)[1]) == ({}, False)
    assert held.liquidity_at(0) == sum(delta for low, width, delta in changes if low <= 0 < low + width)


@pytest.mark.parametrize("change", [(0, 60, -1), (0, 61, 1), (60, 60, 1), (60, 0, 1), (-60, 887_280, 1)])
def test_an_impossible_change_is_a_gap(change: tuple[int, int, int]):
    with pytest.raises(ChainFault, match="liquidity_gap"):
        TickMap(60).change(*change)
