"""Carriers: which pools may carry a paper position."""

from __future__ import annotations

import pytest

from chain.liquidity.carriers import refusal, shape_of
from chain.swaps import PANCAKE_V3_SWAP
from chain.pools import DYNAMIC_FEE, NATIVE, Pool


def pool(venue: str = "v4", flags: int = 0, fee_ppm: int = 3_000, swap_topic: str = "") -> Pool:
    hooks = f"0x{(0xC0FFEE << 20) | flags:040x}" if flags else NATIVE
    key = "0x" + ("ab" * 32 if venue == "v4" else "ab" * 20)
    return Pool(
        venue=venue, key=key, token0="0x" + "01" * 20, token1="0x" + "02" * 20, fee_ppm=fee_ppm, tick_spacing=60, hooks=hooks,
        born_block=1, swap_topic=swap_topic,
    )  # fmt: skip


@pytest.mark.parametrize("bit", range(4))
def test_a_hook_that_may_change_amounts_carries_no_position(bit: int):
    assert "its hook may change" in refusal(pool(flags=1 << bit | 1 << 7))


@pytest.mark.parametrize("bit", range(4, 14))
def test_a_hook_that_may_not_change_amounts_carries_one(bit: int):
    assert refusal(pool(flags=1 << bit)) == ""


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (pool("v2"), "v2 pools have no ranges"),
        (pool("curve"), "curve pools have no ranges"),
        (pool("v3", swap_topic="0x" + "12" * 32), "in a form of their own"),
    ],
)
def test_what_has_no_ranges_or_unknown_logs_carries_no_position(of: Pool, says: str):
    assert says in refusal(of)


@pytest.mark.parametrize(("of", "shape"), [(pool("v3"), "v3"), (pool("v3", swap_topic=PANCAKE_V3_SWAP), "pancake"), (pool("v4", fee_ppm=DYNAMIC_FEE), "v4")])
def test_shapes_are_told_by_venue_and_swap_log(of: Pool, shape: str):
    assert (shape_of(of), refusal(of)) == (shape, "")
