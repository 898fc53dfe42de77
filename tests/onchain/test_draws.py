"""Chance that resuming cannot fork and anybody can recompute."""

import hashlib
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.onchain.draws import Draws, run_seed

STACK = "5" * 64


def test_the_same_seed_and_tick_draw_the_same_and_any_other_draws_otherwise() -> None:
    def drawn(seed: int, tick: int) -> list[int]:
        draws = Draws(seed, tick)
        return [draws.below(2**64) for _ in range(4)]

    assert drawn(7, 0) == drawn(7, 0)
    assert len({tuple(drawn(seed, tick)) for seed in range(5) for tick in range(5)}) == 25


def test_a_draw_is_the_hash_of_seed_tick_and_place() -> None:
    draws = Draws(7, 3)
    expected = [int(hashlib.sha256(f"draw/7/3/{place}".encode()).hexdigest(), 16) % 1_000 for place in (1, 2)]
    assert [draws.below(1_000), draws.below(1_000)] == expected


def test_window_seed_stack_label_and_copy_all_make_another_run_seed() -> None:
    seeds = {
        run_seed(7, STACK, "random", 1),
        run_seed(8, STACK, "random", 1),
        run_seed(7, "6" * 64, "random", 1),
        run_seed(7, STACK, "other", 1),
        run_seed(7, STACK, "random", 2),
    }
    assert len(seeds) == 5
    assert all(0 <= seed < 2**53 for seed in seeds)


@given(st.integers(0, 2**53), st.integers(0, 1_000), st.integers(1, 2**200))
def test_a_draw_is_below_its_bound(seed: int, tick: int, bound: int) -> None:
    assert 0 <= Draws(seed, tick).below(bound) < bound


@given(st.integers(0, 2**53), st.lists(st.integers(0, 10**30), min_size=1, max_size=20).filter(any))
def test_what_weighs_nothing_is_never_drawn(seed: int, weights: list[int]) -> None:
    assert weights[Draws(seed, 0).weighted(weights)] > 0


def test_places_are_drawn_in_proportion_to_their_weight() -> None:
    draws = Draws(1, 0)
    seen = Counter(draws.weighted([1, 0, 3]) for _ in range(4_000))
    assert seen[1] == 0 and 2_850 < seen[2] < 3_150


def test_nothing_cannot_be_drawn_from() -> None:
    with pytest.raises(AssertionError):
        Draws(1, 0).weighted([0, 0])


def test_log_uniform_sizes_stay_in_their_bounds_and_their_logarithm_is_uniform() -> None:
    draws = Draws(1, 0)
    drawn = [draws.log_uniform_ppm(10_000, 250_000) for _ in range(4_000)]
    assert min(drawn) >= 10_000 and max(drawn) <= 250_000
    below_middle = sum(size < math.isqrt(10_000 * 250_000) for size in drawn)
    assert 1_850 < below_middle < 2_150


def test_equal_bounds_leave_nothing_to_chance() -> None:
    assert Draws(1, 0).log_uniform_ppm(70_000, 70_000) == 70_000


def test_sizes_are_the_same_on_every_machine() -> None:
    draws = Draws(7, 0)
    assert [draws.log_uniform_ppm(10_000, 250_000) for _ in range(4)] == [98_092, 187_384, 79_324, 21_438]


@given(st.integers(0, 2**53), st.integers(1, 1_000_000), st.integers(1, 1_000_000))
def test_a_log_uniform_size_is_what_other_arithmetic_says(seed: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    share = Draws(seed, 0).below(2**128) / 2**128
    assert abs(Draws(seed, 0).log_uniform_ppm(low, high) - low * (high / low) ** share) < 1.01
