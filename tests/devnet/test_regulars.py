"""The regulars: their trades leave logs in every corner of the annex, and move forks off and back to the market's price."""

from __future__ import annotations

import pytest

from chain.devnet.calls import Tx, encode, topic
from chain.devnet.devnet import Devnet
from chain.devnet.forks import PANCAKE_SWAP
from chain.devnet.hooks import GRADUATE
from chain.devnet.places import ETH
from chain.devnet.regulars import at_work
from chain.devnet.swaps import call, reads, view, word_at

BLOCKS = 130
V4_SWAP = topic("Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)")
GAS = 3_000_000


@pytest.fixture(scope="module")
def moved():
    with Devnet.build(3) as chain:
        chain.step(BLOCKS)
        yield chain


def logs(chain: Devnet, **wanted) -> list[dict]:
    first = hex(chain.deployment.height + 1)
    return chain.node.call("eth_getLogs", [{"fromBlock": first, "toBlock": "latest", **wanted}])


def test_every_stall_that_serves_plain_buyers_is_traded(moved):
    traded = {log["topics"][1] for log in logs(moved, topics=[V4_SWAP])}
    stalls = [stall for stall in moved.deployment.annex.stalls if stall.name != "hours"]
    assert {stall.name for stall in stalls if stall.place.key in traded} == {stall.name for stall in stalls if at_work(stall, 0)}


def test_forks_and_curve_have_logs_of_trades(moved):
    annex = moved.deployment.annex
    assert {log["address"] for log in logs(moved, topics=[PANCAKE_SWAP])} <= {market.place.key for market in annex.fork("griddle").markets}
    for fork in annex.forks:
        assert logs(moved, address=[market.place.key for market in fork.markets])
    assert len(logs(moved, address=annex.launched[0].curve)) > 10


def test_trades_of_the_annex_succeed(moved):
    assert {kind: moved.driver.tally[kind, False] for kind in ("regular", "fork", "curve")} == {"regular": 0, "fork": 0, "curve": 0}


def test_a_fork_is_better_priced_than_the_main_pools_at_times_only(chain):
    deployment = chain.deployment
    fork = next(market for market in deployment.annex.fork("grove").markets if market.token.symbol == "LEAF")
    main = [market for market in deployment.markets if market.token and market.token.symbol == "LEAF"]
    better = set()
    for _ in range(60):
        chain.step()
        better.add(bought(chain, fork) > max(bought(chain, market) for market in main))
    assert better == {True, False}


def bought(chain: Devnet, market) -> int:
    """What a hundredth of an ETH brings there, fee included."""
    place = market.place
    state = view(place, *chain.node.batch(reads(chain.deployment.venues, place)))
    hub, mine = (state.raw1, state.raw0) if place.token0 == market.token.address else (state.raw0, state.raw1)
    paid = ETH // 100 * (1_000_000 - place.fee_ppm) // 1_000_000
    return mine * paid // (hub + paid)


def test_market_goes_on_in_the_pool_that_the_curve_ended_in(chain):
    launch, buyer = chain.deployment.annex.launched[0], chain.deployment.cast.visitor
    data = encode("buy(uint256,uint256,address)", 5 * ETH, 0, buyer)
    assert chain.send(Tx(sender=buyer, to=launch.curve, data=data, value_wei=5 * ETH, gas=GAS))[0]["status"] == "0x1"
    assert word_at(chain.node.batch([call(launch.curve, encode("graduated()"))])[0], 0) == 1
    failed, height = chain.driver.tally["curve", False], chain.height
    chain.step(12)
    place = chain.deployment.venues.hooked("0x" + "00" * 20, launch.token, 0, 200, GRADUATE.address)
    found = chain.node.call("eth_getLogs", [{"fromBlock": hex(height), "toBlock": "latest", "topics": [V4_SWAP, place.key]}])
    assert len(found) >= 2 and chain.driver.tally["curve", False] == failed
