"""Arithmetic (ONC-21): a real position of ours in a real pool, and what our logs-only arithmetic says it is, to the wei."""

from __future__ import annotations

import pytest

from chain.liquidity.accrual import PaperPosition
from chain.liquidity.reading import follow, read_path
from tests.chain.liquidity.twin import LIQUIDITY, TwinPool

SWAPS = 1_000
BLOCKS = 4
"""Of riot between two readings."""
POOLS = [("v3", "LEAF", 500, 10), ("v3", "LEAF", 10_000, 200), ("v4", "native", 3_000, 60), ("v4", "LEAF", 1_234, 7)]
CUTS = {"v3": (4, 7), "v4": (300, 1_000)}


@pytest.mark.parametrize(("venue", "hub", "fee_ppm", "spacing"), POOLS)
async def test_principal_and_fees_of_the_twin_equal_what_closing_really_pays(chain, door, venue, hub, fee_ppm, spacing):
    twin = TwinPool.made(chain, venue, hub, fee_ppm, spacing)
    twin.riot(2)
    twin.open(LIQUIDITY // 3)
    path = await read_path(door, twin.network, twin.pool, await twin.header(door))
    path.positions.append(PaperPosition(lower=twin.bounds[0], upper=twin.bounds[1], liquidity=LIQUIDITY // 3, twin=True))
    while path.swaps < SWAPS:
        twin.riot(BLOCKS)
        followed = await follow(door, twin.network, twin.pool, path, await twin.header(door))
        assert followed.healed == ""
        if path.swaps < SWAPS // 2 <= followed.path.swaps:
            twin.protocol_takes(*CUTS[venue])
        path = followed.path
    path = (await follow(door, twin.network, twin.pool, path, await twin.header(door))).path
    (position,) = path.positions
    closed = twin.close(LIQUIDITY // 3)
    assert (position.principal(path.sqrt_price_x96), position.fees()) == (closed.principal, closed.fees)
    assert min(position.fees()) > 0 and path.crossings > SWAPS // 4
