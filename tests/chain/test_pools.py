"""Pools come from the factories' own words and the state they answer; a node's wrong word is a fault, never a pool."""

from dataclasses import replace

import pytest
from eth_utils import keccak

from chain.calldata import address_word, word
from chain.devnet.devnet import Devnet
from chain.factories import USUAL_V4_TIERS, ask_factories
from chain.logs import LogFilter, read_logs
from chain.network import load_network
from chain.pools import (
    CREATIONS, DYNAMIC_FEE, NATIVE, PAIR_CREATED, POOL_CREATED, V4_INITIALIZED, Pool, PoolGraph, PoolState, discover, pool_created, read_states, v4_id,
)  # fmt: skip
from ledgers.errors import ChainFault
from tests.chain.lies import door_through, door_to, refusal

NETWORK = load_network("devnet")
TOKEN, OTHER, THIRD = "0x" + "ab" * 20, "0x" + "cd" * 20, "0x" + "ef" * 20
HASH = "0x" + "11" * 32


@pytest.fixture
async def door(devnet):
    opened = door_to(devnet.url)
    yield opened
    await opened.close()


def places(devnet) -> dict:
    deployment = devnet.deployment
    return {market.place.key: market.place for market in (*deployment.markets, *deployment.annex.markets)}


def as_dict(place) -> tuple:
    return (place.venue, place.token0, place.token1, place.fee_ppm)


async def test_every_pool_that_was_deployed_is_found(devnet, door):
    found = await discover(door, NETWORK, 0, devnet.deployment.height)
    annex = devnet.deployment.annex
    stalls = {stall.place.key: stall.place for stall in annex.stalls}
    off_path = {market.place.key: market.place for market in annex.off_path}
    forks = {market.place.key: market.place for fork in annex.forks for market in fork.markets}
    wanted = {key: as_dict(place) for key, place in (places(devnet) | stalls | off_path | forks).items()}
    assert {pool.key: as_dict(pool) for pool in found if pool.venue != "curve"} == wanted
    assert {pool.key: (pool.token1, pool.fork) for pool in found if pool.venue == "curve"} == {each.curve: (each.token, "launchpad") for each in annex.launched}


async def test_a_pool_is_told_apart_by_its_exchange(devnet, door):
    found = {pool.key: pool for pool in await discover(door, NETWORK, 0, devnet.deployment.height)}
    for fork in devnet.deployment.annex.forks:
        for market in fork.markets:
            pool = found[market.place.key]
            assert (pool.fork, pool.venue, pool.swap_topic) == (fork.name, fork.shape, fork.swap_topic or "")
    other = {market.place.key for fork in devnet.deployment.annex.forks for market in fork.markets} | {each.curve for each in devnet.deployment.annex.launched}
    assert {pool.fork for key, pool in found.items() if key not in other} == {""}


async def test_what_a_hook_sets_as_fee_is_read_with_the_state(devnet, door):
    found = await discover(door, NETWORK, 0, devnet.deployment.height)
    states = await read_states(door, NETWORK, found, devnet.height)
    told = {pool.key: states[pool.key].fee_ppm for pool in found if pool.venue == "v4"}
    dynamic = {pool.key for pool in found if pool.venue == "v4" and pool.fee_ppm >= DYNAMIC_FEE}
    assert {key for key, fee_ppm in told.items() if fee_ppm is not None} == dynamic and dynamic
    busy = devnet.deployment.annex.stall("busy_rate").place.key
    assert 500 <= (told[busy] or 0) <= 30_000


async def test_states_are_what_the_pools_themselves_answer(devnet, door):
    block = devnet.height
    pools = {pool.key: pool for pool in await discover(door, NETWORK, 0, block)}
    states = await read_states(door, NETWORK, pools.values(), block)
    assert states.keys() == {key for key, pool in pools.items() if pool.venue != "curve"}
    for key, pool in pools.items():
        if pool.venue == "v2":
            answer = bytes.fromhex(devnet.node.call("eth_call", [{"to": key, "data": "0x0902f1ac"}, hex(block)])[2:])
            assert (states[key].reserve0_raw, states[key].reserve1_raw) == (int.from_bytes(answer[:32]), int.from_bytes(answer[32:64]))
        if pool.venue == "v3":
            answer = devnet.node.call("eth_call", [{"to": key, "data": "0x1a686502"}, hex(block)])
            assert states[key].liquidity == int(answer, 16)


async def test_a_full_range_pool_is_as_deep_as_what_it_opened_with():
    with Devnet.build(seed=11) as quiet:
        door = door_to(quiet.url)
        pools = {pool.key: pool for pool in await discover(door, NETWORK, 0, quiet.height)}
        states = await read_states(door, NETWORK, pools.values(), quiet.height)
        await door.close()
    for market in quiet.deployment.markets:
        pool, state = pools[market.place.key], states[market.place.key]
        for token, raw in ((pool.token0, market.raw[0]), (pool.token1, market.raw[1])):
            if market.token is None or token != market.token.address:
                assert abs(state.depth_raw(pool, token) - raw) * 1_000_000 <= raw, market


async def test_a_pool_that_was_not_born_yet_has_no_state(devnet, door):
    pools = await discover(door, NETWORK, 0, devnet.deployment.height)
    late = max(pools, key=lambda pool: pool.born_block)
    absent = replace(late, key="0x" + "ee" * (20 if late.venue != "v4" else 32))
    states = await read_states(door, NETWORK, [absent], devnet.height)
    assert absent.key not in states or states[absent.key].ratio(absent, absent.token0) is None


def usual(pool: Pool) -> bool:
    """Whether a factory can be asked for it: no curve, no hook, and no v4 key that only its log tells."""
    return pool.venue != "curve" and not pool.hooked and (pool.venue != "v4" or (pool.fee_ppm, pool.tick_spacing) in USUAL_V4_TIERS)


async def test_factories_name_the_same_pools_as_the_logs(devnet, door):
    hubs = {NETWORK.weth, NETWORK.usdg, NATIVE}
    wanted = [pool for pool in await discover(door, NETWORK, 0, devnet.height) if hubs & {pool.token0, pool.token1} and usual(pool)]
    tokens = {token for pool in wanted for token in (pool.token0, pool.token1)} - hubs
    asked = await ask_factories(door, NETWORK, tokens, devnet.height)
    assert {pool.key: as_dict(pool) for pool in asked} == {pool.key: as_dict(pool) for pool in wanted}


async def test_a_range_the_node_refuses_is_halved(devnet, door):
    def at_most_three_blocks(method, params, row):
        if method == "eth_getLogs" and int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) >= 3:
            return refusal(row, -32602, "query returned more than 10000 results")
        return row

    stingy = door_through(devnet.url, at_most_three_blocks)
    assert await discover(stingy, NETWORK, 0, devnet.height) == await discover(door, NETWORK, 0, devnet.height)
    await stingy.close()


async def test_a_node_that_refuses_single_blocks_is_a_fault(devnet):
    def never(method, params, row):
        return refusal(row, -32000, "no") if method == "eth_getLogs" else row

    refusing = door_through(devnet.url, never)
    with pytest.raises(ChainFault, match="refused: logs of block"):
        await discover(refusing, NETWORK, 0, devnet.height)
    await refusing.close()


def _with(**changes):
    def change(rows):
        return [{**rows[0], **changes}, *rows[1:]]

    return change


@pytest.mark.parametrize(
    "lie",
    [
        _with(address=OTHER),
        _with(address="0x12"),
        _with(address=None),
        _with(blockNumber="0x7fffffff"),
        _with(blockNumber=7),
        _with(blockHash="0x00"),
        _with(topics=[]),
        _with(topics=["0x" + "99" * 32]),
        _with(topics=None),
        _with(topics=[PAIR_CREATED, HASH, HASH]),
        _with(data="0x"),
        _with(data="0x" + "ff" * 64),
        _with(data="zz"),
        _with(logIndex=None),
        lambda rows: [rows[0], *rows],
        lambda rows: {"logs": rows},
        lambda rows: [None],
        lambda rows: ["0x"],
    ],
)
async def test_a_log_that_was_not_asked_for_is_a_fault(devnet, lie):
    def lying(method, params, row):
        rows = row.get("result")
        return {**row, "result": lie(rows)} if method == "eth_getLogs" and rows else row

    between = door_through(devnet.url, lying)
    with pytest.raises(ChainFault, match="bad_answer"):
        await discover(between, NETWORK, 0, devnet.deployment.height)
    await between.close()


@pytest.mark.parametrize("result", ["0x", "0x" + "00" * 32, "0x" + "ff" * 4096, None, 7, {"a": 1}])
async def test_a_multicall_of_the_wrong_shape_is_a_fault(devnet, door, result):
    pools = await discover(door, NETWORK, 0, devnet.deployment.height)
    between = door_through(devnet.url, lambda method, params, row: {**row, "result": result} if method == "eth_call" else row)
    with pytest.raises(ChainFault, match="bad_answer"):
        await read_states(between, NETWORK, pools, devnet.height)
    await between.close()


# --- creation logs in words, and the graph --------------------------------------------------------------------------


def log_of(address: str, topics: list[str], *data_words: int):
    row = {
        "address": address, "topics": topics, "data": "0x" + "".join(word(value) for value in data_words), "blockNumber": "0x5",
        "blockHash": HASH, "logIndex": "0x0",
    }  # fmt: skip
    return LogFilter(frozenset({topics[0]})).read([row], 5, 5)[0]


def topic_of(address: str) -> str:
    return "0x" + address_word(address)


def v4_log(hooks: str = NATIVE, fee: int = 3_000):
    key = address_word(NATIVE) + address_word(TOKEN) + word(fee) + word(60) + address_word(hooks)
    pool_id = "0x" + keccak(bytes.fromhex(key)).hex()
    return log_of(NETWORK.v4_pool_manager, [V4_INITIALIZED, pool_id, topic_of(NATIVE), topic_of(TOKEN)], fee, 60, int(hooks, 16), 2**96, 0)


def test_a_v4_pool_with_a_hook_is_known_and_flagged():
    assert pool_created(NETWORK, v4_log(hooks=OTHER)).hooked
    assert pool_created(NETWORK, v4_log(fee=0x800000)).hooked
    assert not pool_created(NETWORK, v4_log()).hooked


def test_a_v4_id_that_is_not_its_key_is_a_fault():
    log = v4_log()
    with pytest.raises(ChainFault, match="is not the hash of its key"):
        pool_created(NETWORK, replace(log, topics=(log.topics[0], HASH, *log.topics[2:])))


def test_the_same_words_from_another_factory_are_no_pool():
    fork = log_of(OTHER, [PAIR_CREATED, topic_of(TOKEN), topic_of(NETWORK.weth)], int(OTHER, 16), 1)
    assert pool_created(NETWORK, fork) is None


def test_other_exchanges_and_launchpads_are_read_by_their_factory_and_their_odd_logs_left_alone():
    grove, thicket = (next(fork for fork in NETWORK.forks if fork.shape == shape) for shape in ("v2", "v3"))
    (curve,) = NETWORK.curves
    low, high = sorted((TOKEN, OTHER))
    made = pool_created(NETWORK, log_of(grove.factory, [PAIR_CREATED, topic_of(low), topic_of(high)], int(THIRD, 16), 1))
    assert (made.fork, made.venue, made.key, made.fee_ppm) == (grove.name, "v2", THIRD, grove.fee_ppm)
    started = pool_created(NETWORK, log_of(curve.factory, [curve.launched_topic, topic_of(TOKEN), topic_of(OTHER)], 1, 2, 3))
    assert (started.venue, started.key, started.token0, started.token1) == ("curve", OTHER, NATIVE, TOKEN)
    odd = [
        log_of(grove.factory, [PAIR_CREATED, topic_of(high), topic_of(low)], int(THIRD, 16), 1),
        log_of(grove.factory, [POOL_CREATED, topic_of(low), topic_of(high)], int(THIRD, 16), 1),
        log_of(thicket.factory, [POOL_CREATED, topic_of(low), topic_of(high)], 7),
        log_of(curve.factory, [curve.launched_topic, HASH], 1),
    ]
    assert [pool_created(NETWORK, log) for log in odd] == [None] * 4


def test_another_exchange_cannot_take_over_a_pool_that_is_known():
    graph, own = PoolGraph(NETWORK), pool("a", TOKEN, NETWORK.weth)
    graph.add(own)
    graph.add(pool("a", TOKEN, OTHER, fork="grove"))
    assert (graph.pools["a"], graph.pools_of(OTHER)) == (own, ())


def test_tokens_out_of_order_are_a_fault():
    high, low = sorted((TOKEN, OTHER), reverse=True)
    with pytest.raises(ChainFault, match="is no pool"):
        pool_created(NETWORK, log_of(NETWORK.v3_factory, [POOL_CREATED, topic_of(high), topic_of(low), "0x" + word(500)], 10, 7))


def pool(key: str, a: str, b: str, **changes) -> Pool:
    token0, token1 = sorted((a, b))
    made = Pool(venue="v2", key=key, token0=token0, token1=token1, fee_ppm=3_000, tick_spacing=0, hooks=NATIVE, born_block=0)
    return replace(made, **changes)


def test_tokens_are_those_with_a_pool_against_a_hub():
    graph = PoolGraph(NETWORK)
    graph.add(pool("a", TOKEN, NETWORK.weth))
    graph.add(pool("b", TOKEN, OTHER))
    graph.add(pool("c", THIRD, NATIVE, venue="v4", hooks=TOKEN))
    graph.add(pool("d", NETWORK.weth, NETWORK.usdg))
    assert graph.tokens() == (TOKEN, THIRD)
    graph.add(pool("e", OTHER, NETWORK.usdg))
    assert graph.tokens() == (TOKEN, OTHER, THIRD)
    graph.remove("a")
    assert graph.tokens() == (OTHER, THIRD)


def test_weth_and_native_are_two_tokens():
    graph = PoolGraph(NETWORK)
    graph.add(pool("a", TOKEN, NETWORK.weth))
    graph.add(pool("b", TOKEN, NATIVE, venue="v4"))
    assert [found.key for found in graph.pools_between(TOKEN, NETWORK.weth)] == ["a"]
    assert [found.key for found in graph.pools_between(NATIVE, TOKEN)] == ["b"]


def test_a_narrow_position_is_no_deeper_than_what_it_holds():
    narrow = pool("a", NETWORK.weth, NETWORK.usdg, venue="v3")
    assert PoolState(10**21, 10**13, 2**96, 10**17, held0_raw=5 * 10**18, held1_raw=None).depth_raw(narrow, narrow.token0) == 5 * 10**18


def test_a_price_is_the_same_from_both_sides():
    pair = pool("a", TOKEN, OTHER)
    for state in (PoolState(300, 100, 0, 173), PoolState(0, 0, 2**95, 1)):
        up, down = state.ratio(pair, pair.token0)
        assert state.ratio(pair, pair.token1) == (down, up)
    assert PoolState(0, 100, 0, 0).ratio(pair, pair.token0) is None


def test_the_id_of_a_v4_pool_is_the_hash_of_its_key():
    known = pool_created(NETWORK, v4_log())
    assert v4_id(known) == known.key


async def test_an_empty_range_asks_nothing():
    async def nobody(*_):
        raise AssertionError("asked")

    assert await read_logs(nobody, LogFilter(CREATIONS), 5, 4) == []
