"""Price paths: integers from the seed, pulled back to where they began, or as recorded."""

from random import Random

import pytest

from chain.devnet.assets import USD
from chain.devnet.prices import Paths, dollars, read_tape


def walked(seed: int, blocks: int, tape=None) -> Paths:
    paths = Paths({"LEAF": USD}, {"LEAF": 2_500}, tape)
    for age in range(1, blocks + 1):
        paths.advance(Random(f"{seed}/{age}"), age, age * 1_000)
    return paths


def test_same_seed_walks_the_same_path():
    assert walked(1, 200).now == walked(1, 200).now != walked(2, 200).now


def test_a_long_walk_stays_within_reach_of_its_opening():
    assert USD // 4 < walked(5, 5_000).now["LEAF"] < 4 * USD


def test_tape_holds_its_last_price_until_the_next_row():
    tape = read_tape("t_ms,symbol,usd\n2000,LEAF,0.5\n5000,LEAF,2\n")
    assert [tape.at("LEAF", at) for at in (0, 2_000, 4_999, 5_000, 9_000)] == [USD // 2, USD // 2, USD // 2, 2 * USD, 2 * USD]


def test_a_symbol_that_was_not_recorded_walks_on_its_own():
    assert walked(1, 50, read_tape('{"t_ms": 1, "symbol": "ACRN", "usd": "12.4"}')).now == walked(1, 50).now


@pytest.mark.parametrize(
    "row",
    [
        '{"t_ms": 1, "symbol": "A"}',
        '{"t_ms": 1, "symbol": "A", "usd": "-1"}',
        '{"t_ms": 1, "symbol": "A", "usd": "1e3"}',
        '{"t_ms": "x", "symbol": "A", "usd": "1"}',
    ],
)
def test_a_bad_row_of_a_tape_is_named(row):
    with pytest.raises(ValueError, match="tape row 1: expected t_ms, symbol and usd"):
        read_tape(row)


def test_dollars_are_read_to_the_last_digit():
    assert dollars("0.000000000000000001") == 1 and dollars("61000") == 61_000 * USD
