"""The real chain, through a node of yours: `REFEREE_LIVE_URL='https://…|rps=10' make test ARGS="-m live"`.

Limits may stand behind the address, as in REFEREE_RPC_URLS. The address is never shown. Each test prints its table.
"""

from __future__ import annotations

import os

import pytest

from chain.factories import ask_factories
from chain.header import header_of, header_request
from chain.lane import limits_of
from chain.network import load_network
from chain.pools import PoolGraph, read_states
from chain.probe import check_identity, probe
from chain.router import buy_routes
from chain.rpc import Lane, RpcDoor
from chain.simulate import answered
from chain.trade import PROVEN, Held, Purse, TradeSimulation
from ledgers.clock import SystemClock
from ops.probing import probed_node
from ops.reenacting import Wanted, truth_of_chain
from ops.settings import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(1_800)]
NETWORK = load_network("robinhood")
WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
SPEND_WEI = 10**16


@pytest.fixture
def url() -> str:
    said = os.environ.get("REFEREE_LIVE_URL", "").strip()
    return said or pytest.skip("REFEREE_LIVE_URL names no node of the real chain")


@pytest.fixture
async def door(url):
    address, _, options = url.partition("|")
    opened = RpcDoor([Lane("node", address, limits_of(options))], clock=SystemClock())
    yield opened
    await opened.close()


async def test_the_node_and_its_chain_are_what_is_needed(url):
    text, _, holds = await probed_node(Settings(), url, "robinhood", "", SystemClock())
    print(text)
    assert holds


async def test_rivals_answer_or_say_why_not(url):
    text, data, _ = await probed_node(Settings(), url, "robinhood", "all", SystemClock())
    print(text)
    assert any(row["part"] == "rivals" for row in data["rows"])


async def test_a_hundred_mined_swaps_equal_their_simulation(url):
    text, _, holds = await truth_of_chain(Settings(), url, "robinhood", Wanted(swaps=100), SystemClock())
    print(text)
    assert holds


async def test_a_buy_of_dollars_is_proven(door):
    check_identity(await probe(door, NETWORK, SystemClock()), NETWORK)
    pin = header_of(await door.call(*header_request("latest")))
    graph = PoolGraph(NETWORK)
    for pool in await ask_factories(door, NETWORK, [NETWORK.usdg], pin.block):
        graph.add(pool)
    graph.states.update(await read_states(door, NETWORK, graph.pools.values(), pin.block))
    routes = buy_routes(NETWORK, graph, NETWORK.usdg, SPEND_WEI, WALLET)
    trades = [TradeSimulation(NETWORK, pin, Purse(WALLET, 10**18, ()), route, Held(0, 0)) for route in routes]
    told = await door.batch([trade.simulation.request() for trade in trades])
    outcomes = [trade.outcome(answered(trade.simulation, answer)) for trade, answer in zip(trades, told, strict=True)]
    print(*((route.label, outcome) for route, outcome in zip(routes, outcomes, strict=True)), sep="\n")
    assert any(outcome.status == PROVEN for outcome in outcomes)
