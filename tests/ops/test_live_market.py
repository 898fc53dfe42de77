"""The market behind a live run, read from the real local chain."""

from __future__ import annotations

import orjson
import pytest

from chain.devnet.calls import Tx
from chain.market import MarketIndex
from chain.network import load_network
from chain.pools import PoolGraph
from chain.probe import probe
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock
from ledgers.errors import FeedFault
from ledgers.money import Wei
from ops.live_market import LiveMarket
from referee.onchain.board import Desk
from referee.onchain.opening import window_opened
from referee.onchain.rules import DEFAULT
from tests.onchain.paper import PaperChain, Said, live_on

FRESH = "0x" + "5a" * 20


@pytest.fixture
async def market(chain):
    chain.mine(2)  # a chain that was put back knows no state older than its newest block
    clock, network = SystemClock(), load_network("devnet")
    door = RpcDoor([Lane("devnet", chain.url)], clock=clock)
    found = await probe(door, network, clock)
    index = MarketIndex(door, network, PoolGraph(network))
    yield LiveMarket(rpc=door, chain=network, index=index, rules=DEFAULT, found=found)
    await door.close()


async def pin_of(market: LiveMarket):
    desk = Desk(market.rpc, market.chain, market.index.graph, DEFAULT, SystemClock(), market.found.clock_offset_ms)
    return await desk.pin()


async def test_only_addresses_that_nobody_ever_used_may_be_paper_wallets(chain, market):
    paid = "0x" + "5b" * 20
    chain.fund(paid, 10**15)
    chain.mine(2)
    visitor, weth = chain.deployment.cast.visitor, chain.addresses["weth"]
    pin = await pin_of(market)
    assert await market.used_addresses([FRESH, paid, visitor, weth], pin) == {paid, visitor, weth}


async def test_an_emptied_address_is_still_used_by_its_nonce(chain, market):
    spent = "0x" + "5c" * 20
    chain.fund(spent, 10**16)
    left = 10**16 - 21_000 * 10_000_000
    chain.send(Tx(sender=spent, to=FRESH, data="0x", value_wei=left, gas=21_000))
    chain.mine(2)
    assert await market.used_addresses([spent], await pin_of(market)) == {spent}


async def test_hashes_are_those_of_the_chain_and_unknown_blocks_are_left_out(chain, market):
    head = chain.height
    assert await market.hashes([head, head - 1, head + 1_000]) == {head: chain.block_hash(head), head - 1: chain.block_hash(head - 1)}


async def test_the_bundle_shows_the_pinned_block_and_prices(chain, market):
    pin = await pin_of(market)
    paper = PaperChain(SystemClock())
    live = live_on(paper, {"a": Said(paper.clock)})
    opened = window_opened(live, await market.network(), pin, await market.eth_usd(pin), 1_790_000_000_000)
    shown = orjson.loads(await market.bundle(opened, 0, pin))
    assert shown["block"]["hash"] == pin.block_hash and shown["eth_usd_micro_usd"] and len(shown["tokens"]) >= 8
    assert opened.stake_wei > Wei(0) and opened.block0_hash == chain.block_hash(0)


async def test_a_feed_that_died_leaves_the_price_out_and_never_guesses(chain, market):
    pin = await pin_of(market)
    await market.eth_usd(pin)
    chain.node.call("anvil_setCode", [chain.addresses["feed"], "0x"])
    chain.mine(3)
    with pytest.raises(FeedFault):
        await market.eth_usd(await pin_of(market))
