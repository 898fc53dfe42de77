"""Who owns a pool's liquidity and who traded in it, as its logs and position tokens tell, against what really happened (ONC-25)."""

from __future__ import annotations

import pytest

from chain import owners as owners_module
from chain.devnet.calls import Tx
from chain.owners import born_ts_s, largest, owners_of, traders_of
from chain.pools import Pool
from chain.router import route_of
from tests.chain.market import MarketStall

SPEND = 10**16
ANN, BEN = "0x" + "a1" * 20, "0x" + "b2" * 20


@pytest.fixture
async def stall(chain):
    opened = await MarketStall.on(chain)
    yield opened
    await opened.door.close()


def pool_of(stall: MarketStall, name: str, venue: str) -> Pool:
    return next(pool for pool in stall.graph.pools_of(stall.token(name)) if pool.venue == venue and not pool.hooked)


@pytest.mark.parametrize("name, venue", [("plain_oz", "v2"), ("plain_oz", "v3"), ("plain_oz", "v4"), ("LEAF", "v2"), ("PINE", "v4")])
async def test_onc_25_the_owner_of_a_pools_liquidity_is_told_also_behind_a_position_token(stall, name, venue):
    cast = stall.chain.deployment.cast
    told = await owners_of(stall.door, stall.network, pool_of(stall, name, venue), stall.pin.block)
    assert told is not None
    owner, ppm = largest(told)
    assert owner in (cast.zookeeper, cast.issuer) and 500_000 < ppm <= 1_000_000


async def test_onc_25_a_second_provider_takes_its_share(stall):
    """Half of the pair's tokens are given away."""
    pool, cast = pool_of(stall, "plain_oz", "v2"), stall.chain.deployment.cast
    held = int(stall.chain.node.call("eth_call", [{"to": pool.key, "data": "0x70a08231" + cast.zookeeper[2:].rjust(64, "0")}, "latest"]), 16)
    stall.chain.send(Tx(sender=cast.zookeeper, to=pool.key, data="0xa9059cbb" + ANN[2:].rjust(64, "0") + f"{held * 3 // 4:064x}"))
    told = await owners_of(stall.door, stall.network, pool, stall.chain.height)
    assert told is not None and largest(told)[0] == ANN and 749_000 < largest(told)[1] <= 750_001


async def test_onc_25_a_pool_with_a_longer_life_than_is_read_is_unknown(stall):
    pool = pool_of(stall, "plain_oz", "v2")
    assert await owners_of(stall.door, stall.network, pool, pool.born_block + owners_module.BLOCKS_MAX + 1) is None


@pytest.mark.parametrize("venue", ["v2", "v3", "v4"])
async def test_onc_25_volume_is_told_by_who_sent_the_transactions(stall, venue):
    pool, first = pool_of(stall, "plain_oz", venue), stall.chain.height + 1
    for trader, times in ((ANN, 3), (BEN, 1)):
        stall.chain.fund(trader, 10**18)
        route = next(route for route in stall.routes("buy", "plain_oz", SPEND) if [hop.pool for hop in route.hops] == [pool])
        for _ in range(times):
            swap = route_of(stall.network, route, trader).swap
            (receipt,) = stall.chain.send(Tx(sender=trader, to=swap.to, data=swap.data, value_wei=swap.value_wei, gas=1_000_000))
            assert receipt["status"] == "0x1"
    told = await traders_of(stall.door, stall.network, pool, first, stall.chain.height)
    assert told is not None and set(told) == {ANN, BEN}
    assert largest(told)[0] == ANN and 740_000 < largest(told)[1] < 760_000
    assert await traders_of(stall.door, stall.network, pool, stall.chain.height + 1, stall.chain.height) == {}


async def test_onc_25_the_age_of_a_pool_runs_from_its_block(stall):
    pool = pool_of(stall, "plain_oz", "v2")
    assert await born_ts_s(stall.door, pool) == int(stall.chain.node.call("eth_getBlockByNumber", [hex(pool.born_block), False])["timestamp"], 16)


def test_the_largest_of_nothing_is_nobody_and_a_share_is_rounded_up():
    assert largest({}) == ("", 0) and largest({"a": 1, "b": 2}) == ("b", 666_667) and largest({"b": 1, "a": 1}) == ("a", 500_000)
