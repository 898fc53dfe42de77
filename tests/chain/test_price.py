"""ETH has a price only where deep pools and a sound feed agree."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.devnet.calls import Tx, encode
from chain.header import Header
from chain.network import load_network
from chain.pools import NATIVE, Pool, PoolGraph, PoolState, discover
from chain.price import DEPTH_WEI_MIN, eth_usd, feed_price, median_price
from ledgers.errors import FeedFault
from ledgers.money import MicroUsd
from tests.chain.lies import door_to

NETWORK = load_network("devnet")
HEADER = Header(block=5, block_hash="0x" + "11" * 32, ts_s=1_790_000_000, base_fee_wei=1)
FEED = MicroUsd(3_000_000_000)
EIGHT = (8).to_bytes(32, "big")


# --- on the real chain ----------------------------------------------------------------------------------------------


async def priced(chain, network=NETWORK):
    door = door_to(chain.url)
    graph = PoolGraph(network)
    try:
        for pool in await discover(door, network, 0, chain.deployment.height):
            graph.add(pool)
        return await eth_usd(door, network, graph, chain.height)
    finally:
        await door.close()


def set_feed(chain, answer: int) -> None:
    chain.send(Tx(sender=chain.deployment.cast.deployer, to=chain.addresses["feed"], data=encode("set(int256)", answer)))


async def test_pools_and_feed_of_the_local_chain_agree(chain):
    chain.step(3)
    price = await priced(chain)
    assert abs(int(price.micro_usd) - int(price.feed_micro_usd)) * 100 <= int(price.feed_micro_usd)
    assert len(price.pools) >= 3


async def test_a_feed_that_left_the_pools_is_a_fault(chain):
    set_feed(chain, 1_000 * 10**8)
    with pytest.raises(FeedFault, match="within 100 bps of the feed"):
        await priced(chain)


async def test_a_feed_at_zero_is_a_fault(chain):
    set_feed(chain, 0)
    with pytest.raises(FeedFault, match="the feed says 0"):
        await priced(chain)


async def test_a_feed_that_nobody_keeps_is_a_fault(chain):
    set_feed(chain, 3_000 * 10**8)
    chain.mine(NETWORK.feed_heartbeat_s + 1)
    with pytest.raises(FeedFault, match="61 s old"):
        await priced(chain)


async def test_something_else_at_the_feeds_address_is_a_fault(chain):
    for address in (NETWORK.weth, "0x" + "77" * 20):
        with pytest.raises(FeedFault, match="no feed in Chainlink's shape"):
            await priced(chain, replace(NETWORK, feed=address))


async def test_a_dollar_of_other_decimals_is_a_fault(chain):
    with pytest.raises(FeedFault, match="dollar token with 6 decimals"):
        await priced(chain, replace(NETWORK, usdg=chain.deployment.token("LEAF").address))


# --- the feed's answer ----------------------------------------------------------------------------------------------


def round_of(answer: int, updated_s: int = HEADER.ts_s) -> bytes:
    return b"".join(value.to_bytes(32, "big") for value in (7, answer % 2**256, updated_s, updated_s, 7))


def test_a_feed_is_read_with_its_own_decimals():
    assert feed_price(NETWORK, HEADER, round_of(3_000 * 10**8), EIGHT) == FEED
    assert feed_price(NETWORK, HEADER, round_of(3_000 * 10**18), (18).to_bytes(32, "big")) == FEED


def test_an_answer_as_old_as_the_heartbeat_passes_and_a_second_more_does_not():
    oldest = HEADER.ts_s - NETWORK.feed_heartbeat_s
    assert feed_price(NETWORK, HEADER, round_of(3_000 * 10**8, oldest), EIGHT) == FEED
    with pytest.raises(FeedFault, match="61 s old"):
        feed_price(NETWORK, HEADER, round_of(3_000 * 10**8, oldest - 1), EIGHT)


@pytest.mark.parametrize(
    ("round_data", "decimals"),
    [
        (round_of(0), EIGHT),
        (round_of(-1), EIGHT),
        (round_of(3_000 * 10**8, HEADER.ts_s + 1), EIGHT),
        (round_of(3_000 * 10**8, 0), EIGHT),
        (round_of(10**6 * 10**8 + 100), EIGHT),
        (round_of(10**8 - 1), EIGHT),
        (round_of(2**255 - 1), EIGHT),
        (round_of(3_000 * 10**8), (37).to_bytes(32, "big")),
        (round_of(3_000 * 10**8), b""),
        (round_of(3_000 * 10**8)[:-1], EIGHT),
        (round_of(3_000 * 10**8) + b"\0", EIGHT),
        (b"", EIGHT),
    ],
)
def test_an_unsound_answer_is_a_fault(round_data, decimals):
    with pytest.raises(FeedFault):
        feed_price(NETWORK, HEADER, round_data, decimals)


# --- the median -----------------------------------------------------------------------------------------------------


def market(prices: list[int], depth_wei: int = 100 * 10**18) -> tuple[list[Pool], dict[str, PoolState]]:
    """Pools of ETH, wrapped and native by turns, at these prices in micro-dollars."""
    pools, states = [], {}
    for place, price in enumerate(prices):
        eth = NETWORK.weth if place % 2 else NATIVE
        token0, token1 = sorted((eth, NETWORK.usdg))
        pool = Pool(venue="v2", key=f"{place:03}", token0=token0, token1=token1, fee_ppm=500, tick_spacing=0, hooks=NATIVE, born_block=0)
        reserves = (depth_wei, depth_wei * price // 10**18)
        states[pool.key] = PoolState(*(reserves if token0 == eth else reserves[::-1]), 0, 1)
        pools.append(pool)
    return pools, states


def median_of(prices: list[int], **options) -> int:
    return int(median_price(NETWORK, *market(prices, **options), FEED, 5).micro_usd)


@pytest.mark.parametrize(
    ("prices", "median"),
    [
        ([3_001_000_000], 3_001_000_000),
        ([2_999_000_000, 3_002_000_000], 3_000_500_000),
        ([3_010_000_000, 2_990_000_000, 3_004_000_000], 3_004_000_000),
        ([2_999_999_999, 3_000_000_000], 2_999_999_999),
    ],
)
def test_the_price_is_the_median_rounded_down(prices, median):
    assert median_of(prices) == median


def test_a_pool_one_percent_off_votes_and_one_micro_dollar_more_does_not():
    assert median_of([3_030_000_000]) == 3_030_000_000
    with pytest.raises(FeedFault, match="none of 1 deep pools"):
        median_of([3_030_000_001])


def test_a_pool_with_less_than_one_eth_does_not_vote():
    assert median_of([3_000_000_000], depth_wei=DEPTH_WEI_MIN) == 3_000_000_000
    with pytest.raises(FeedFault, match="none of 0 deep pools of 1"):
        median_of([3_000_000_000], depth_wei=DEPTH_WEI_MIN - 1)


def test_no_pool_is_no_price():
    with pytest.raises(FeedFault, match="none of 0 deep pools of 0"):
        median_of([])


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_strays_never_move_the_price(strays):
    honest = [2_998_000_000, 3_000_000_000, 3_002_000_000]
    near = [price for price in strays if abs(price - int(FEED)) * 100 <= int(FEED)]
    assert median_of(honest + strays) == median_of(honest + near)
