"""The market behind a live run, read from the real local chain."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import orjson
import pytest

from chain.devnet.calls import Tx
from chain.market import MarketIndex, at_newest
from chain.network import load_network
from chain.outside.told import Told
from chain.outside.view import OutsideView
from chain.pools import PoolGraph
from chain.probe import probe
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault, FeedFault
from ledgers.money import Wei
from ops.assembly import outside_view
from ops.live_market import LiveMarket
from ops.settings import BadSettings, Settings
from referee.onchain.board import Desk
from referee.onchain.opening import window_opened
from referee.onchain.rules import DEFAULT
from tests.chain.lies import door_through, refusal
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


async def test_a_pool_made_since_the_last_look_is_known_to_the_next_order(chain, market):
    venues, owner, token = chain.deployment.venues, chain.deployment.cast.issuer, chain.deployment.token("LEAF")
    await market.follow(await pin_of(market))
    place = venues.place("v3", token.address, chain.addresses["weth"], 10_000)
    raw = {token.address: 10_000 * 10**18, chain.addresses["weth"]: 3 * 10**18}
    chain.send(*venues.approvals(owner, token.address, "v3"), *venues.open(owner, place, raw[place.token0], raw[place.token1]))
    chain.mine()
    await market.follow(await pin_of(market))
    assert place.key in market.index.graph.states


async def test_orders_go_on_with_what_is_known_while_logs_cannot_be_had(chain, market):
    await market.follow(await pin_of(market))
    lying = door_through(chain.url, lambda method, params, row: refusal(row, -32000, "no") if method == "eth_getLogs" else row)
    index = MarketIndex(lying, market.chain, market.index.graph)
    before = dict(market.index.graph.states)
    chain.mine()
    await replace(market, index=index).follow(await pin_of(market))
    assert market.index.graph.states == before and index.block is None
    await lying.close()


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


async def opened_on(market: LiveMarket, pin):
    live = live_on(PaperChain(SystemClock()), {"a": Said(SystemClock())})
    return window_opened(live, await market.network(), pin, await market.eth_usd(pin), 1_790_000_000_000)


def another(market: LiveMarket) -> LiveMarket:
    """A market that has followed nothing yet."""
    return replace(market, index=MarketIndex(market.rpc, market.chain, PoolGraph(market.chain)), looks={})


async def test_a_bundle_shows_nothing_later_than_its_block_for_it_is_the_same_whatever_came_after(chain, market):
    chain.step(3)
    desk = Desk(market.rpc, market.chain, market.index.graph, DEFAULT, SystemClock(), market.found.clock_offset_ms + 3_000)
    pin = await desk.pin()
    opened = await opened_on(market, pin)
    at_once = await market.bundle(opened, 0, pin)
    chain.step(5)
    assert await another(market).bundle(opened, 0, pin) == at_once
    assert market.looks[0].pin == pin


async def test_every_time_and_block_in_a_bundle_is_its_own_or_earlier_and_its_sums_are_those_of_the_logs(chain, market):
    pin = await pin_of(market)
    shown = orjson.loads(await market.bundle(await opened_on(market, pin), 0, pin))
    for token in shown["tokens"]:
        assert token["born_block"] <= pin.block and all(ts_s <= pin.block_ts_s for ts_s, _ in token["history"])
        assert all(row[0] <= pin.block_ts_s for row in token.get("candles_1m", []) + token.get("candles_5m", []))
        swaps, wei = swaps_of(chain, token, pin.block)
        if len(token["pools"]) == 1 and token["pools"][0]["dex"] == "uniswap-v2" and token["pools"][0]["quote"] == "ETH":
            assert (token["buys_1h"] + token["sells_1h"], token["volume_1h_wei"]) == (swaps, str(wei)), token
    assert all(pool["born_block"] <= pin.block for pool in shown["new_pools"] + shown["most_traded_pools"])


def swaps_of(chain, token: dict, block: int) -> tuple[int, int]:
    """Swaps of a token's first pool and the ETH they moved, counted from the node's raw logs."""
    topic = "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822"
    logs = chain.node.call("eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(block), "topics": [topic]}])
    first = token["address"] < chain.addresses["weth"]
    moved = [[int(log["data"][2 + 64 * at : 66 + 64 * at], 16) for at in range(4)] for log in logs if log["address"] == token["pools"][0]["pool"]]
    return len(moved), sum(max(words[1 if first else 0], words[3 if first else 2]) for words in moved)


async def test_the_bundle_of_the_whole_local_market_is_small(chain, market):
    chain.step(20)
    desk = Desk(market.rpc, market.chain, market.index.graph, DEFAULT, SystemClock(), market.found.clock_offset_ms + 20_000)
    pin = await desk.pin()
    bundle = await market.bundle(await opened_on(market, pin), 0, pin)
    tokens = len(orjson.loads(bundle)["tokens"])
    assert tokens > 100 and len(bundle) < 800 * tokens


async def test_older_logs_that_cannot_be_read_spoil_no_bundle(chain, market):
    slow = replace(market.chain, block_time_ms=30_000)
    between = door_through(chain.url, lambda method, params, row: refusal(row, -32000, "no") if _old(method, params, chain.height) else row)
    index = MarketIndex(between, slow, PoolGraph(slow))
    shut = replace(market, rpc=between, index=index, looks={})
    pin = await pin_of(market)
    assert orjson.loads(await shut.bundle(await opened_on(market, pin), 0, pin))["tokens"]
    with pytest.raises(ChainFault):
        await index.reach_back()
    await between.close()


def _old(method: str, params: list, height: int) -> bool:
    """Whether logs of swaps, older than what is read at first, are asked for."""
    return method == "eth_getLogs" and "address" not in params[0] and int(params[0]["toBlock"], 16) < height - 9


class OneSource:
    name = "one"

    async def ask(self, net, tokens):
        return Told("one", {token: {"holders": "7"} for token in tokens})


async def test_outside_sources_are_shown_from_the_next_look_on_and_only_from_before_its_block(chain, market):
    view = OutsideView([OneSource()], SystemClock())
    market = replace(market, outside=view)
    desk = Desk(market.rpc, market.chain, market.index.graph, DEFAULT, SystemClock(), market.found.clock_offset_ms)
    first = await desk.pin()
    opened = await opened_on(market, first)
    assert orjson.loads(await market.bundle(opened, 0, first))["outside"] == []
    await view.settled()
    chain.step(3)
    desk.clock_offset_ms += 3_000
    (said,) = orjson.loads(await market.bundle(opened, 1, await desk.pin()))["outside"]
    assert said["source"] == "one" and len(said["untrusted_tokens"]) == 30
    await view.close()


async def test_a_feed_that_died_leaves_the_price_out_and_never_guesses(chain, market):
    pin = await pin_of(market)
    await market.eth_usd(pin)
    chain.node.call("anvil_setCode", [chain.addresses["feed"], "0x"])
    chain.mine(3)
    with pytest.raises(FeedFault):
        await market.eth_usd(await pin_of(market))


async def test_outside_sources_are_asked_for_by_name_and_never_about_a_local_chain():
    clock, real, local = SystemClock(), load_network("robinhood"), load_network("devnet")
    said = Settings(outside=" dexscreener, blockscout ")
    view = outside_view(said, real, clock)
    assert view is not None and list(view.failures) == ["dexscreener", "blockscout"]
    assert outside_view(said, local, clock) is None and outside_view(Settings(), real, clock) is None
    with pytest.raises(BadSettings, match="REFEREE_OUTSIDE: no outside source named 'x'"):
        outside_view(Settings(outside="x"), real, clock)
    await view.close()


# --- one look while others go on --------------------------------------------------------------------------------------


async def pin_now(market: LiveMarket, chain):
    """Pin the newest block however fast the chain runs ahead of the wall clock."""
    clock = SystemClock()
    head = chain.node.call("eth_getBlockByNumber", ["latest", False])
    offset_ms = int(head["timestamp"], 16) * 1_000 - clock.now_ms()
    rules = replace(DEFAULT, pin_lag_ms_max=10**9)
    return await Desk(market.rpc, market.chain, market.index.graph, rules, clock, offset_ms).pin()


async def test_a_look_is_whole_while_another_runs_order_follows_a_newer_block(chain, market):
    await market.look(await pin_now(market, chain))
    chain.mine(3)
    shown = await pin_now(market, chain)
    chain.mine()
    newer = await pin_now(market, chain)
    look, _ = await asyncio.gather(market.look(shown), market.follow(newer))
    assert look.snapshot.block == shown.block and market.index.block == newer.block


async def test_a_look_behind_the_market_is_taken_again_at_a_newer_block(chain, market):
    early = await pin_now(market, chain)
    chain.mine()
    await market.follow(await pin_now(market, chain))
    pins = iter([early])

    async def pin():
        return next(pins, None) or await pin_now(market, chain)

    taken, look = await at_newest(pin, market.look)
    assert taken.block == look.snapshot.block == early.block + 1


async def test_no_look_is_lost_beside_many_orders_on_a_fast_chain(chain, market):
    """Looks and orders in a random order, a block mined before each."""
    rng = Random(5)

    async def act() -> int:
        chain.mine()
        if rng.random() < 0.5:
            await market.follow(await pin_now(market, chain))
            return 0
        pin, look = await at_newest(lambda: pin_now(market, chain), market.look)
        return int(look.snapshot.block == pin.block)

    done = await asyncio.gather(*(act() for _ in range(40)))
    assert sum(done) > 10


async def test_a_market_that_stays_ahead_of_every_pin_is_a_fault(chain, market):
    early = await pin_now(market, chain)
    chain.mine()
    await market.follow(await pin_now(market, chain))

    async def pin():
        return early

    with pytest.raises(ChainFault, match="market_ahead"):
        await at_newest(pin, market.look)
