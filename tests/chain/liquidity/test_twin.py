"""Arithmetic (ONC-21): a real position of ours in a real pool, and what our logs-only arithmetic says it is, to the wei."""

from __future__ import annotations

import pytest

from chain.calldata import quote_v4_single
from chain.devnet.calls import decode, encode
from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.carriers import refusal
from chain.liquidity.reading import follow, read_path
from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN
from chain.pools import DYNAMIC_FEE, v4_key_words
from chain.rpc import RpcDoor
from tests.chain.liquidity.reference import ReferencePool, Tick
from tests.chain.liquidity.twin import LIQUIDITY, TwinPool

SWAPS = 1_000
BLOCKS = 4
"""Of riot between two readings."""
POOLS = [("v3", "LEAF", 500, 10), ("v3", "LEAF", 10_000, 200), ("v4", "native", 3_000, 60), ("v4", "LEAF", 1_234, 7)]
CUTS = {"v3": (4, 7), "v4": (300, 1_000)}


@pytest.mark.parametrize(("venue", "hub", "fee_ppm", "spacing"), POOLS)
async def test_principal_and_fees_of_the_twin_equal_what_closing_really_pays(chain, door, venue, hub, fee_ppm, spacing):
    await proven(TwinPool.made(chain, venue, hub, fee_ppm, spacing), door, SWAPS)


@pytest.mark.parametrize("hook", ["busy_rate", "snipe_rate"])
async def test_a_twin_under_a_fee_that_its_hook_sets_is_proven_too(chain, door, hook):
    """One hook writes the fee after every swap, the other names it before each: 99 % falling to 1 %."""
    twin = TwinPool.made(chain, "v4", "native", DYNAMIC_FEE, 60, hooks=chain.deployment.annex.stall(hook).place.hooks)
    assert refusal(twin.pool) == ""
    await proven(twin, door, SWAPS // 2)


async def proven(twin: TwinPool, door: RpcDoor, swaps: int) -> None:
    """Hold our position to what closing really pays after so many swaps, the protocol's cut switched on half-way."""
    twin.riot(2)
    twin.open(LIQUIDITY // 3)
    path = await read_path(door, twin.network, twin.pool, await twin.header(door))
    path.positions.append(PaperPosition(lower=twin.bounds[0], upper=twin.bounds[1], liquidity=LIQUIDITY // 3, twin=True))
    while path.swaps < swaps:
        twin.riot(BLOCKS)
        followed = await follow(door, twin.network, twin.pool, path, await twin.header(door))
        assert followed.healed == ""
        if path.swaps < swaps // 2 <= followed.path.swaps:
            twin.protocol_takes(*CUTS[twin.pool.venue])
        path = followed.path
    path = (await follow(door, twin.network, twin.pool, path, await twin.header(door))).path
    (position,) = path.positions
    closed = twin.close(LIQUIDITY // 3)
    assert (position.principal(path.sqrt_price_x96), position.fees()) == (closed.principal, closed.fees)
    assert min(position.fees()) > 0 and path.crossings > swaps // 4


@pytest.mark.parametrize(("venue", "hub", "fee_ppm", "spacing"), POOLS)
async def test_the_reference_pool_trades_as_the_chains_quoter_says(chain, door, venue, hub, fee_ppm, spacing):
    """The pool that accrual is tested against swaps forward as the real contracts do."""
    twin = TwinPool.made(chain, venue, hub, fee_ppm, spacing)
    twin.riot(2)
    path = await read_path(door, twin.network, twin.pool, await twin.header(door))
    for amount in (1, 10**9, 10**17, LIQUIDITY // 50, LIQUIDITY):
        for zero in (True, False):
            pool = reference_of(path)
            gained = pool.swap(zero, amount, SQRT_PRICE_MIN + 1 if zero else SQRT_PRICE_MAX - 1)
            assert quoted(twin, zero, amount) == ((-gained[1 if zero else 0], pool.price) if venue == "v3" else (-gained[1 if zero else 0],))


def reference_of(path: PoolPath) -> ReferencePool:
    """A reference pool in a path's state."""
    pool = ReferencePool(path.shape, path.fee_ppm, path.ticks.spacing, path.sqrt_price_x96)
    pool.tick, pool.liquidity, pool.cuts = path.tick, path.liquidity, (path.cut0, path.cut1)
    pool.ticks = {tick: Tick(gross, net) for tick, (gross, net) in path.ticks.ticks.items()}
    return pool


def quoted(twin: TwinPool, zero: bool, amount: int) -> tuple[int, ...]:
    """What the chain's quoter says arrives, and for v3 the price after."""
    pool, at = twin.pool, twin.chain.addresses
    order = ((pool.token0, pool.token1) if zero else (pool.token1, pool.token0)) + (amount, pool.fee_ppm, 0)
    asked = {
        "v3": (at["quoter_v2"], encode("quoteExactInputSingle((address,address,uint256,uint24,uint160))", order)),
        "v4": (at["v4_quoter"], quote_v4_single(v4_key_words(pool), zero, amount)),
    }[pool.venue]
    told = twin.chain.node.call("eth_call", [{"to": asked[0], "data": asked[1]}, "latest"])
    return decode(("uint256", "uint160"), told[:130]) if pool.venue == "v3" else decode(("uint256",), told[:66])
