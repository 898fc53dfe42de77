"""The market index shows what the chain shows, no later than its block, and heals gaps and reorganisations by reading again."""

from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

from chain.devnet.calls import Tx, encode
from chain.logs import Log
from chain.market import MarketIndex
from chain.network import load_network
from chain.pools import NATIVE, Pool, PoolGraph
from chain.router import buy_routes
from chain.swaps import Happening, happening
from ledgers.errors import ChainFault
from ledgers.money import Wei
from tests.chain.lies import door_through, door_to, refusal

NETWORK = load_network("devnet")
FOREVER = 2**48
ETH = 10**18


@dataclass(frozen=True)
class Pin:
    """A pinned block as the referee has it."""

    block: int
    block_hash: str
    base_fee_wei: Wei = Wei(10_000_000)


def pin_of(chain) -> Pin:
    return Pin(chain.height, chain.block_hash(chain.height))


@pytest.fixture
async def door(chain):
    opened = door_to(chain.url)
    yield opened
    await opened.close()


def index_of(door, network=NETWORK, **options) -> MarketIndex:
    return MarketIndex(door, network, PoolGraph(network), **options)


async def fresh(chain, door, network=NETWORK, **options):
    """What an index that starts now shows."""
    index = index_of(door, network, **options)
    await index.advance(chain.height)
    return index.snapshot(pin_of(chain))


def market_of(snapshot, chain, symbol: str):
    return next(token for token in snapshot.tokens if token.address == chain.deployment.token(symbol).address)


def bought(chain, symbol: str, spend_wei: int) -> Tx:
    """A real v2 purchase by a stranger to the market."""
    path = [chain.addresses["weth"], chain.deployment.token(symbol).address]
    buyer = chain.deployment.cast.visitor
    data = encode("swapExactETHForTokens(uint256,address[],address,uint256)", 0, path, buyer, FOREVER)
    return Tx(sender=buyer, to=chain.addresses["v2_router"], data=data, value_wei=spend_wei)


def v2_of(token):
    return next(pool for pool in token.pools if pool.venue == "v2" and pool.quote == "ETH")


# --- what is shown --------------------------------------------------------------------------------------------------


async def test_every_honest_token_is_shown_near_its_opening_price(chain, door):
    snapshot = await fresh(chain, door)
    for token in chain.deployment.tokens:
        if token.kind == "honest":
            assert market_of(snapshot, chain, token.symbol).price_wei > Wei(0)


async def test_a_purchase_moves_price_volume_and_count_by_exactly_itself(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    before = market_of(index.snapshot(pin_of(chain)), chain, "LEAF")
    (receipt,) = chain.send(bought(chain, "LEAF", 2 * ETH))
    assert receipt["status"] == "0x1"
    await index.advance(chain.height)
    after = market_of(index.snapshot(pin_of(chain)), chain, "LEAF")
    assert v2_of(after).liquidity_wei - v2_of(before).liquidity_wei == Wei(2 * ETH)
    assert v2_of(after).price_wei > v2_of(before).price_wei
    assert after.swaps_5m - before.swaps_5m == 1


async def test_tokens_come_deepest_first(chain, door):
    snapshot = await fresh(chain, door)
    assert [token.liquidity_wei for token in snapshot.tokens] == sorted((token.liquidity_wei for token in snapshot.tokens), key=int, reverse=True)


async def test_a_price_does_not_depend_on_the_venue_that_shows_it(chain, door):
    for pools in (token.pools for token in (await fresh(chain, door)).tokens if token.symbol in ("LEAF", "BARK", "PINE", "DUSK")):
        prices = [int(pool.price_wei) for pool in pools]
        assert max(prices) * 100 <= min(prices) * 115


async def test_history_ends_in_the_price_shown_and_runs_in_equal_steps(chain, door):
    index = index_of(door)
    for _ in range(6):
        chain.step()
        await index.advance(chain.height)
    snapshot = index.snapshot(pin_of(chain))
    for token in snapshot.tokens:
        times = [point.ts_s for point in token.history]
        assert token.history[-1].price_wei == token.price_wei
        assert times == list(range(times[0], snapshot.block_ts_s + 1)) and len(times) <= 60


async def test_history_followed_equals_history_read_afterwards(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    for _ in range(8):
        chain.step()
        await index.advance(chain.height)
    followed, read = index.snapshot(pin_of(chain)), await fresh(chain, door)
    for one, other in zip(followed.tokens, read.tokens, strict=True):
        assert replace(one, history=()) == replace(other, history=())
        shared = {point.ts_s for point in one.history} & {point.ts_s for point in other.history}
        assert [point for point in one.history if point.ts_s in shared] == [point for point in other.history if point.ts_s in shared]


async def test_several_blocks_at_once_show_the_same_as_one_by_one(chain, door):
    one_by_one, at_once = index_of(door), index_of(door)
    for index in (one_by_one, at_once):
        await index.advance(chain.height)
    for _ in range(7):
        chain.step()
        await one_by_one.advance(chain.height)
    await at_once.advance(chain.height)
    assert one_by_one.snapshot(pin_of(chain)) == at_once.snapshot(pin_of(chain))


async def test_only_asked_tokens_are_shown(chain, door):
    wanted = {chain.deployment.token(symbol).address for symbol in ("LEAF", "BARK")}
    index = index_of(door, tokens=wanted)
    await index.advance(chain.height)
    chain.send(bought(chain, "LEAF", ETH))
    chain.send(bought(chain, "FERN", ETH))
    assert (await index.advance(chain.height)).swaps == 1
    assert {token.address for token in index.snapshot(pin_of(chain)).tokens} == wanted


async def test_a_new_pool_is_shown_from_its_block_on(chain, door):
    index = index_of(door, tokens={chain.deployment.token("LEAF").address})
    await index.advance(chain.height)
    venues, owner, token = chain.deployment.venues, chain.deployment.cast.issuer, chain.deployment.token("LEAF")
    place = venues.place("v3", token.address, chain.addresses["weth"], 10_000)
    assert place.key not in {pool.key for pool in market_of(index.snapshot(pin_of(chain)), chain, "LEAF").pools}
    raw = {token.address: 10_000 * ETH, chain.addresses["weth"]: 3 * ETH}
    receipts = chain.send(*venues.approvals(owner, token.address, "v3"), *venues.open(owner, place, raw[place.token0], raw[place.token1]))
    assert [receipt["status"] for receipt in receipts] == ["0x1"] * len(receipts)
    assert (await index.advance(chain.height)).pools == 1
    assert place.key in {pool.key for pool in market_of(index.snapshot(pin_of(chain)), chain, "LEAF").pools}


# --- no later than the pin ------------------------------------------------------------------------------------------


async def test_a_market_later_than_the_pin_is_not_shown(chain, door):
    index, early = index_of(door), pin_of(chain)
    chain.step()
    await index.advance(chain.height)
    with pytest.raises(ChainFault, match="market_ahead"):
        index.snapshot(early)


async def test_an_older_block_is_nothing_new(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    assert await index.advance(chain.height) is None
    assert await index.advance(chain.height - 1) is None
    assert index.block == chain.height


async def test_a_market_that_was_never_followed_is_not_shown(chain, door):
    with pytest.raises(ChainFault, match="no_market"):
        index_of(door).snapshot(pin_of(chain))


async def test_a_pin_on_another_chain_is_noticed(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    with pytest.raises(ChainFault, match="reorged"):
        index.snapshot(Pin(chain.height, "0x" + "00" * 32))


# --- hooks, copies and other exchanges ------------------------------------------------------------------------------------


async def test_a_token_that_only_has_pools_with_hooks_is_shown_with_its_hook(chain, door):
    stall = chain.deployment.annex.stall("fee_after")
    shown = next(token for token in (await fresh(chain, door)).tokens if token.address == stall.token.address)
    assert [(pool.hooks, pool.price_wei > Wei(0)) for pool in shown.pools] == [(stall.hook.address, True)]


async def test_a_pool_that_keeps_half_of_everything_never_tells_the_price(chain, door):
    for name in ("PINE", "DUSK"):
        market = market_of(await fresh(chain, door), chain, name)
        steep = [pool.fee_ppm >= 500_000 for pool in market.pools]
        assert steep == sorted(steep) and any(steep) and market.price_wei == market.pools[0].price_wei


@pytest.mark.parametrize(("name", "symbol"), [("grove", "MOTE"), ("thicket", "FERN"), ("griddle", "HAZE")])
async def test_a_swap_on_another_exchange_is_told_with_its_side_and_its_price(chain, door, name, symbol):
    index, token = index_of(door), chain.deployment.token(symbol)
    await index.advance(chain.height)
    place = next(market.place for market in chain.deployment.annex.fork(name).markets if market.token == token)
    before = pools_of(index.snapshot(pin_of(chain)))[place.key]
    routes = buy_routes(NETWORK, index.graph, token.address, ETH // 10, chain.deployment.cast.visitor)
    route = next(route for route in routes if route.hops[0].pool.key == place.key)
    (receipt,) = chain.send(Tx(sender=chain.deployment.cast.visitor, to=route.swap.to, data=route.swap.data, value_wei=ETH // 10, gas=1_000_000))
    assert receipt["status"] == "0x1"
    await index.advance(chain.height)
    after = pools_of(index.snapshot(pin_of(chain)))[place.key]
    (swap,) = [swap for swap in after.trades.swaps(50) if swap.block == chain.height]
    assert (after.fork, swap.side, swap.value_wei, after.price_wei > before.price_wei) == (name, "buy", Wei(ETH // 10), True)
    assert after.trades.candles(60, 1)[0].close_wei == after.price_wei


async def test_a_swap_log_of_another_exchange_in_an_unknown_shape_tells_that_something_happened_and_no_more(chain):
    place = chain.deployment.annex.fork("griddle").markets[0].place
    topic = chain.deployment.annex.fork("griddle").swap_topic
    pool = Pool(
        venue="v3", key=place.key, token0=place.token0, token1=place.token1, fee_ppm=2_500, tick_spacing=50, hooks=NATIVE, born_block=0,
        fork="griddle", swap_topic=topic,
    )  # fmt: skip
    log = Log(place.key, (topic,), b"\0" * 160, 5, "0x" + "11" * 32, 0, None)
    assert happening({place.key: pool}, None, log) == Happening(pool, 0, 0, False, None)
    assert happening({place.key: replace(pool, swap_topic="")}, None, log) is None


# --- gaps and reorganisations ---------------------------------------------------------------------------------------


async def test_a_reorganisation_is_told_and_healed(chain, door):
    index = index_of(door)
    chain.step(2)
    await index.advance(chain.height)
    fork = chain.snapshot()
    chain.send(bought(chain, "LEAF", 5 * ETH))
    await index.advance(chain.height)
    lost, lost_hash = chain.height, chain.block_hash(chain.height)
    chain.revert(fork)
    chain.send(bought(chain, "FERN", ETH))
    chain.step()
    told = (await index.advance(chain.height)).reorg
    assert (told.block, told.lost_hash, told.found_hash) == (lost, lost_hash, chain.block_hash(lost))
    assert index.snapshot(pin_of(chain)) == await fresh(chain, door)


async def test_a_pool_of_a_lost_block_is_forgotten(chain, door):
    index, fork = index_of(door), chain.snapshot()
    venues, owner = chain.deployment.venues, chain.deployment.cast.issuer
    place = venues.place("v2", chain.deployment.token("DUSK").address, chain.addresses["usdg"], 3_000)
    chain.send(Tx(sender=owner, to=chain.addresses["v2_factory"], data=encode("createPair(address,address)", place.token0, place.token1), gas=4_000_000))
    await index.advance(chain.height)
    assert place.key in index.graph.pools
    chain.revert(fork)
    chain.mine(2)
    await index.advance(chain.height)
    assert place.key not in index.graph.pools


async def test_a_chain_that_went_back_is_healed_at_the_lower_block(chain, door):
    index, fork = index_of(door), chain.snapshot()
    chain.send(bought(chain, "LEAF", ETH))
    chain.step(3)
    await index.advance(chain.height)
    chain.revert(fork)
    chain.send(bought(chain, "LEAF", 2 * ETH))
    chain.mine(3)
    told = await index.advance(chain.height - 1)
    assert told.reorg is not None and index.block == chain.height - 1


async def test_a_gap_too_long_to_follow_is_read_again(chain, door):
    hasty = replace(NETWORK, block_time_ms=75_000)
    index = index_of(door, hasty)
    await index.advance(chain.height)
    chain.step(12)
    await index.advance(chain.height)
    assert index.snapshot(pin_of(chain)) == await fresh(chain, door, hasty)


# --- a node that fails or lies ----------------------------------------------------------------------------------------


def _refuse(method):
    return lambda asked, params, row: refusal(row, -32000, "no") if asked == method else row


def _other_hash(method, params, row):
    return {**row, "result": [{**log, "blockHash": "0x" + "77" * 32} for log in row["result"]]} if method == "eth_getLogs" else row


def _short_swap(method, params, row):
    return {**row, "result": [{**log, "data": "0x" + "00" * 31} for log in row["result"]]} if method == "eth_getLogs" else row


def _no_head(method, params, row):
    return {**row, "result": None} if method == "eth_getBlockByNumber" else row


def _wrong_block(method, params, row):
    return {**row, "result": {**row["result"], "number": "0x1"}} if method == "eth_getBlockByNumber" else row


@pytest.mark.parametrize("lie", [_refuse("eth_getLogs"), _refuse("eth_call"), _other_hash, _short_swap, _no_head, _wrong_block])
async def test_a_failed_advance_changes_nothing(chain, lie):
    lying = [False]
    between = door_through(chain.url, lambda *asked: lie(*asked) if lying[0] else asked[-1])
    index = index_of(between)
    await index.advance(chain.height)
    early = pin_of(chain)
    before = index.snapshot(early)
    chain.send(bought(chain, "LEAF", ETH))
    lying[0] = True
    with pytest.raises(ChainFault):
        await index.advance(chain.height)
    assert index.snapshot(early) == before
    lying[0] = False
    assert (await index.advance(chain.height)).swaps == 1
    await between.close()


def _with_taken_back(row):
    return [*row, {**row[0], "removed": True, "blockHash": "0x" + "99" * 32, "logIndex": "0x3e7"}]


def _with_two_hashes(row):
    return [*row, {**row[0], "blockHash": "0x" + "99" * 32, "logIndex": "0x3e7"}]


def _with_twice(row):
    return [*row, row[0]]


def _with_nonsense(row):
    return [*row, "a log", {**row[0], "topics": []}, {**row[0], "address": 7, "logIndex": "0x3e8"}]


def _with_a_strangers_block(row):
    return [*row, {**row[0], "blockNumber": "0x7fffffff", "logIndex": "0x3e9"}]


@pytest.mark.parametrize("worsen", [_with_taken_back, _with_two_hashes, _with_twice, _with_nonsense, _with_a_strangers_block])
async def test_a_bad_record_in_a_block_does_not_stop_the_market_behind_it(chain, worsen):
    def lie(method, params, row):
        bad = method == "eth_getLogs" and row.get("result") and row["result"][0]["blockNumber"] == hex(start + 1)
        return {**row, "result": worsen(row["result"])} if bad else row

    start = chain.height
    between = door_through(chain.url, lie)
    index = index_of(between)
    await index.advance(start)
    chain.send(bought(chain, "LEAF", ETH))
    chain.mine()
    with suppress(ChainFault):
        await index.advance(chain.height)
    await index.advance(chain.height)
    honest = door_to(chain.url)
    seen = v2_of(market_of(index.snapshot(pin_of(chain)), chain, "LEAF"))
    assert replace(seen, trades=None) == replace(v2_of(market_of(await fresh(chain, honest), chain, "LEAF")), trades=None)
    await honest.close()
    await between.close()


async def test_a_swap_that_the_node_hides_is_read_again_in_turn(chain):
    def silent(method, params, row):
        return {**row, "result": []} if method == "eth_getLogs" and int(params[0]["fromBlock"], 16) > start else row

    start = chain.height
    between = door_through(chain.url, silent)
    index = index_of(between)
    await index.advance(chain.height)
    chain.send(bought(chain, "LEAF", 9 * ETH))
    for _ in range(len(index.graph.pools) // 50 + 1):
        chain.mine()
        await index.advance(chain.height)
    shown = v2_of(market_of(index.snapshot(pin_of(chain)), chain, "LEAF"))
    honest = door_to(chain.url)
    told = v2_of(market_of(await fresh(chain, honest), chain, "LEAF"))
    assert replace(shown, trades=told.trades) == told and shown.trades != told.trades
    await honest.close()
    await between.close()


# --- trading over time ----------------------------------------------------------------------------------------------


def sold(chain, symbol: str, amount: int) -> list[Tx]:
    """A real v2 sale by the stranger, with the approval it needs."""
    token, seller = chain.deployment.token(symbol).address, chain.deployment.cast.visitor
    data = encode("swapExactTokensForETH(uint256,uint256,address[],address,uint256)", amount, 0, [token, chain.addresses["weth"]], seller, FOREVER)
    approve = encode("approve(address,uint256)", chain.addresses["v2_router"], 2**255)
    return [Tx(sender=seller, to=token, data=approve), Tx(sender=seller, to=chain.addresses["v2_router"], data=data)]


async def test_a_buy_and_a_sale_are_told_apart_in_swaps_candles_and_counts(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    before = market_of(index.snapshot(pin_of(chain)), chain, "LEAF").short
    chain.send(bought(chain, "LEAF", ETH))
    for tx in sold(chain, "LEAF", 10**15):
        chain.send(tx)
    await index.advance(chain.height)
    market = market_of(index.snapshot(pin_of(chain)), chain, "LEAF")
    assert (market.short.buys - before.buys, market.short.sells - before.sells) == (1, 1)
    trades = v2_of(market).trades
    buy, sale = trades.swaps(2)
    assert (buy.side, buy.value_wei, sale.side, int(sale.token_raw)) == ("buy", Wei(ETH), "sell", 10**15)
    last = trades.candles(60, 1)[0]
    assert last.low_wei <= last.close_wei <= last.high_wei and last.close_wei == v2_of(market).price_wei


def pools_of(snapshot) -> dict:
    return {pool.key: pool for token in snapshot.tokens for pool in token.pools}


async def test_on_every_venue_a_buy_raises_the_price_and_a_sale_lowers_it(chain, door):
    index, seen = index_of(door), set()
    await index.advance(chain.height)
    before = pools_of(index.snapshot(pin_of(chain)))
    for _ in range(20):
        chain.step(1)
        await index.advance(chain.height)
        after = pools_of(index.snapshot(pin_of(chain)))
        for key in before.keys() & after.keys():
            swaps = [swap for swap in after[key].trades.swaps(50) if swap.block == chain.height]
            if len(swaps) == 1 and after[key].quote == "ETH" and after[key].price_wei != before[key].price_wei:
                assert (swaps[0].side == "buy") == (after[key].price_wei > before[key].price_wei), after[key]
                seen.add((after[key].venue, swaps[0].side))
        before = after
    assert seen == {(venue, side) for venue in ("v2", "v3", "v4") for side in ("buy", "sell")}


async def test_five_minutes_are_the_minutes_in_them(chain, door):
    trades = v2_of(market_of(await fresh(chain, door), chain, "LEAF")).trades
    minutes, fives = trades.candles(60, 99), trades.candles(300, 99)
    assert sum(int(candle.traded.volume_wei) for candle in minutes) // 10 == sum(int(candle.traded.volume_wei) for candle in fives) // 10
    assert max(candle.high_wei for candle in minutes) == max(candle.high_wei for candle in fives)
    assert (minutes[0].open_wei, minutes[-1].close_wei) == (fives[0].open_wei, fives[-1].close_wei)


async def test_older_swaps_are_read_in_bounded_stretches_until_an_hour_is_known(chain, door):
    slow = replace(NETWORK, block_time_ms=30_000)  # eleven blocks are read at first, an hour is 120
    index = index_of(door, slow)
    await index.advance(chain.height)
    first = v2_of(market_of(index.snapshot(pin_of(chain)), chain, "LEAF")).trades.tape
    stretches = []
    while stretch := await index.reach_back(20):
        stretches.append(stretch)
    whole = v2_of(market_of(await fresh(chain, door), chain, "LEAF")).trades.tape
    known = v2_of(market_of(index.snapshot(pin_of(chain)), chain, "LEAF")).trades.tape
    assert known == whole and len(first.trades) < len(whole.trades)
    assert all(stretch <= 20 for stretch in stretches) and sum(stretches) == chain.height - 10


async def test_a_stretch_of_older_blocks_that_fails_changes_nothing(chain):
    between = door_through(chain.url, lambda method, params, row: refusal(row, -32000, "no") if method == "eth_getLogs" and asked["back"] else row)
    asked, slow = {"back": False}, replace(NETWORK, block_time_ms=30_000)
    index = index_of(between, slow)
    await index.advance(chain.height)
    before = index.snapshot(pin_of(chain))
    asked["back"] = True
    with pytest.raises(ChainFault):
        await index.reach_back()
    assert index.snapshot(pin_of(chain)) == before
    asked["back"] = False
    assert await index.reach_back() > 0
    await between.close()


async def test_what_a_snapshot_shows_stays_when_the_market_goes_on(chain, door):
    index = index_of(door)
    await index.advance(chain.height)
    pool = v2_of(market_of(index.snapshot(pin_of(chain)), chain, "LEAF"))
    before = (pool.trades.swaps(50), pool.trades.candles(60, 120), pool.trades.short)
    chain.step(3)
    chain.send(bought(chain, "LEAF", ETH))
    await index.advance(chain.height)
    assert (pool.trades.swaps(50), pool.trades.candles(60, 120), pool.trades.short) == before
