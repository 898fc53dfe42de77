"""The price of one ETH in dollars: the median of pools, cross-checked with the feed.

Pools of WETH or native ETH against the dollar token give the price; those that stray from the feed are left out. The feed
alone never makes a price, and pools without a sound feed do not either.
Source: rule ONC-28; feed in Chainlink's aggregator shape. Units: MicroUsd, rounded down; the dollar token counts as one dollar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chain.calldata import uint_at
from chain.header import Header, header_of, header_request
from chain.logs import signed
from chain.network import Network
from chain.pools import Pool, PoolGraph, PoolState, multicall_answer, multicall_request, read_states
from chain.rpc import RpcDoor
from ledgers.errors import FeedFault
from ledgers.money import MicroUsd, mul_div_floor

DECIMALS = "0x313ce567"
LATEST_ROUND_DATA = "0xfeaf968c"
USDG_DECIMALS = 6
"""With six decimals, base units of the dollar token are MicroUsd."""
ONE_ETH = 10**18
DEPTH_WEI_MIN = 10**18
"""A pool with less ETH than this does not vote."""
GAP_BPS_MAX = 100
SANE_MICRO_USD = range(1_000_000, 1_000_000_000_001)
"""One dollar to one million dollars."""
FEED_DECIMALS_MAX = 36


@dataclass(frozen=True, slots=True)
class EthUsd:
    """The price of one ETH at one block."""

    micro_usd: MicroUsd
    feed_micro_usd: MicroUsd
    pools: tuple[str, ...]
    """Keys of the pools that voted, by ascending price."""
    block: int


async def eth_usd(rpc: RpcDoor, network: Network, graph: PoolGraph, block: int, *, gap_bps_max: int = GAP_BPS_MAX) -> EthUsd:
    """Read the price of one ETH at a block.

    Raises: FeedFault when the feed is not sound or no deep pool is near it; ChainFault for the node."""
    feed = await read_feed(rpc, network, block)
    pools = dollar_pools(network, graph)
    states = await read_states(rpc, network, pools, block)
    return median_price(network, pools, states, feed, block, gap_bps_max)


def dollar_pools(network: Network, graph: PoolGraph) -> list[Pool]:
    """Hook-less pools of ETH, wrapped or native, against the dollar token."""
    return [pool for pool in graph.hub_pools_of(network.usdg) if pool.other(network.usdg) != network.usdg]


async def read_feed(rpc: RpcDoor, network: Network, block: int) -> MicroUsd:
    """Read the feed at a block. Raises: FeedFault when it is absent, stale, not positive or absurd; ChainFault for the node."""
    calls = [(network.feed, LATEST_ROUND_DATA), (network.feed, DECIMALS), (network.usdg, DECIMALS)]
    header, answer = await rpc.batch([header_request(block), multicall_request(network, calls, block)])
    round_data, decimals, usdg_decimals = multicall_answer(answer, len(calls))
    if usdg_decimals is None or uint_at(usdg_decimals, 0) != USDG_DECIMALS:
        raise FeedFault(f"expected a dollar token with {USDG_DECIMALS} decimals at {network.usdg}")
    return feed_price(network, header_of(header, block), round_data or b"", decimals or b"")


def feed_price(network: Network, header: Header, round_data: bytes, decimals: bytes) -> MicroUsd:
    """Judge what a feed answered at a block. Raises: FeedFault."""
    scale, answer, updated_s = uint_at(decimals, 0), uint_at(round_data, 1), uint_at(round_data, 3)
    if scale is None or answer is None or updated_s is None or len(round_data) != 160 or scale > FEED_DECIMALS_MAX:
        raise FeedFault(f"no feed in Chainlink's shape at {network.feed}")
    if signed(answer) <= 0:
        raise FeedFault(f"the feed says {signed(answer)}, expected a positive price")
    age_s = header.ts_s - updated_s
    if not 0 <= age_s <= network.feed_heartbeat_s:
        raise FeedFault(f"the feed's answer is {age_s} s old at block {header.block}, allowed are 0 to {network.feed_heartbeat_s} s")
    micro_usd = mul_div_floor(answer, 10**6, 10**scale)
    if micro_usd not in SANE_MICRO_USD:
        raise FeedFault(f"the feed says {micro_usd} micro-dollars for one ETH, expected {SANE_MICRO_USD.start} to {SANE_MICRO_USD.stop - 1}")
    return MicroUsd(micro_usd)


def median_price(
    network: Network, pools: list[Pool], states: Mapping[str, PoolState], feed: MicroUsd, block: int, gap_bps_max: int = GAP_BPS_MAX
) -> EthUsd:
    """Take the median price of the deep pools within `gap_bps_max` of the feed; of an even number the mean of the middle two.

    Raises: FeedFault when there is none."""
    deep = [(price, pool.key) for pool in pools if (price := _pool_price(network, pool, states.get(pool.key))) is not None]
    near = sorted((price, key) for price, key in deep if abs(price - int(feed)) * 10_000 <= gap_bps_max * int(feed))
    if not near:
        raise FeedFault(f"none of {len(deep)} deep pools of {len(pools)} is within {gap_bps_max} bps of the feed ({feed} micro-dollars) at block {block}")
    middle = near[(len(near) - 1) // 2][0] + near[len(near) // 2][0]
    return EthUsd(MicroUsd(mul_div_floor(middle, 1, 2)), feed, tuple(key for _, key in near), block)


def _pool_price(network: Network, pool: Pool, state: PoolState | None) -> int | None:
    eth = pool.other(network.usdg)
    if state is None or state.depth_raw(pool, eth) < DEPTH_WEI_MIN:
        return None
    ratio = state.ratio(pool, eth)
    return mul_div_floor(ONE_ETH, *ratio) if ratio else None
