"""The market moves: real swaps on every version, liquidity in and out, launches and a rug, prices kept near what they are worth."""

from fractions import Fraction

import pytest

from chain.devnet.assets import ASSETS, USD
from chain.devnet.calls import decode, encode, topic
from chain.devnet.devnet import Devnet
from chain.devnet.driver import Driver
from chain.devnet.prices import read_tape
from chain.devnet.swaps import reads, view
from chain.devnet.traders import side

BLOCKS = 120
SWAPS = {
    "v2": topic("Swap(address,uint256,uint256,uint256,uint256,address)"),
    "v3": topic("Swap(address,address,int256,int256,uint160,uint128,int24)"),
    "v4": topic("Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)"),
}
LIQUIDITY = {
    "v2 in": topic("Mint(address,uint256,uint256)"),
    "v2 out": topic("Burn(address,uint256,uint256,address)"),
    "v3 in": topic("Mint(address,address,int24,int24,uint128,uint256,uint256)"),
    "v3 out": topic("Burn(address,int24,int24,uint128,uint256,uint256)"),
}


@pytest.fixture(scope="module")
def moved():
    """A chain after two minutes of market."""
    with Devnet.build(3) as chain:
        chain.step(BLOCKS)
        yield chain


def logs(chain: Devnet, first_topic: str) -> list[dict]:
    opened = chain.deployment.height + 1
    return chain.node.call("eth_getLogs", [{"fromBlock": hex(opened), "toBlock": "latest", "topics": [first_topic]}])


def price_of(chain: Devnet, market) -> Fraction:
    state = view(market.place, *chain.node.batch(reads(chain.deployment.venues, market.place)))
    return Fraction(state.raw1, state.raw0)


def worth_of(chain: Devnet, market) -> Fraction:
    sides = (*side(chain.deployment, market, market.place.token0), *side(chain.deployment, market, market.place.token1))
    return Fraction(*chain.driver.scene.paths.ratio(*sides))


@pytest.mark.parametrize("venue", SWAPS)
def test_swaps_really_happen(moved, venue):
    assert len(logs(moved, SWAPS[venue])) > BLOCKS // 6


@pytest.mark.parametrize("change", LIQUIDITY)
def test_liquidity_is_added_and_removed(moved, change):
    assert logs(moved, LIQUIDITY[change])


def test_every_kind_of_actor_acts(moved):
    assert {kind for kind, _ in moved.driver.tally} == {
        "arbitrage",
        "noise",
        "momentum",
        "liquidity",
        "feed",
        "launch",
        "sniper",
        "rug",
        "gambler",
        "regular",
        "fork",
        "curve",
    }


def test_transactions_of_the_market_succeed(moved):
    failed = sum(count for (_, success), count in moved.driver.tally.items() if not success)
    assert failed * 100 <= sum(moved.driver.tally.values())


def test_feed_is_within_one_percent_of_every_pool_of_ether(moved):
    answer = decode(
        ("uint80", "int256", "uint256", "uint256", "uint80"),
        moved.node.call("eth_call", [{"to": moved.addresses["feed"], "data": encode("latestRoundData()")}, "latest"]),
    )[1]
    usdg = moved.addresses["usdg"]
    for market in (market for market in moved.deployment.markets if market.token is None):
        price = price_of(moved, market) if market.place.token1 == usdg else 1 / price_of(moved, market)
        assert abs(price * 10**12 / Fraction(answer, 10**8) - 1) < Fraction(1, 100)


def test_deep_pools_follow_what_their_token_is_worth(moved):
    for market in (
        market for market in moved.deployment.markets if market.token and market.token.kind == "honest" and market.depth_wei >= 20 * 10**18
    ):
        slack = Fraction(market.place.fee_ppm + 25_000, 10**6)
        assert abs(price_of(moved, market) / worth_of(moved, market) - 1) < slack, market


def test_launches_appear_with_a_pool(moved):
    opened = moved.deployment.height
    pairs = moved.node.call("eth_getLogs", [{"fromBlock": hex(opened + 1), "toBlock": "latest", "address": moved.addresses["v2_factory"]}])
    pools = moved.node.call("eth_getLogs", [{"fromBlock": hex(opened + 1), "toBlock": "latest", "address": moved.addresses["v3_factory"]}])
    assert (len(pairs), len(pools)) == (2, 1)


def test_a_rug_leaves_its_pool_empty(moved):
    first = moved.node.call(
        "eth_getLogs", [{"fromBlock": hex(moved.deployment.height + 1), "toBlock": "latest", "address": moved.addresses["v2_factory"]}]
    )[0]
    pair = decode(("address", "uint256"), first["data"])[0]
    state = moved.node.call("eth_call", [{"to": pair, "data": encode("getReserves()")}, "latest"])
    assert min(decode(("uint112", "uint112", "uint32"), state)[:2]) < 10**6


def test_pools_follow_a_recorded_tape():
    rises = "\n".join(f'{{"t_ms": {second * 1000}, "symbol": "LEAF", "usd": "0.{85 + second}"}}' for second in range(1, 15))
    with Devnet.build(3, tape=read_tape(rises)) as chain:
        chain.step(20)
        leaf = chain.deployment.token("LEAF")
        assert chain.driver.scene.paths.now["LEAF"] == 99 * USD // 100
        for market in (market for market in chain.deployment.markets if market.token == leaf):
            assert abs(price_of(chain, market) / worth_of(chain, market) - 1) < Fraction(1, 100)


def test_a_driver_of_another_seed_trades_otherwise(chain):
    mark = chain.snapshot()
    chain.step(3)
    first = chain.block_hash(chain.height)
    chain.revert(mark)
    other = Driver(chain.miner, chain.deployment, seed=99)
    other.scene = chain.driver.remember()
    for _ in range(3):
        other.step()
    assert chain.block_hash(chain.height) != first


def test_assets_have_a_way_to_ether_or_dollars():
    assert all(asset.pools for asset in ASSETS)
