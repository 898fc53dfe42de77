"""Swaps and other happenings in pools, read from their logs: what moved, and the price after it.

Source: events of Uniswap v2 pairs, v3 pools and the v4 PoolManager. Amounts are the pool's own word; a token may move less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chain.logs import Log, signed, topic, words
from chain.network import Network
from chain.pools import V4_INITIALIZED, Pool, PoolState
from chain.tape import Ratio
from ledgers.errors import ChainFault

V2_SYNC = topic("Sync(uint112,uint112)")
V2_SWAP = topic("Swap(address,uint256,uint256,uint256,uint256,address)")
V3_SWAP = topic("Swap(address,address,int256,int256,uint160,uint128,int24)")
PANCAKE_V3_SWAP = topic("Swap(address,address,int256,int256,uint160,uint128,int24,uint128,uint128)")
V3_INITIALIZED = topic("Initialize(uint160,int24)")
V3_MINT = topic("Mint(address,address,int24,int24,uint128,uint256,uint256)")
V3_BURN = topic("Burn(address,int24,int24,uint128,uint256,uint256)")
V4_SWAP = topic("Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)")
V4_LIQUIDITY_MODIFIED = topic("ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)")

OF_V2 = frozenset({V2_SYNC, V2_SWAP})
OF_V3 = frozenset({V3_SWAP, V3_INITIALIZED, V3_MINT, V3_BURN})
SWAP_WORDS = {PANCAKE_V3_SWAP: 7}
"""Words of a Swap log of v3's shape where it has more than five: the first five mean the same."""
OF_V4 = frozenset({V4_SWAP, V4_LIQUIDITY_MODIFIED, V4_INITIALIZED})
HAPPENINGS = OF_V2 | OF_V3 | OF_V4
V3_SWAP_WORDS = 5


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened in a known pool."""

    pool: Pool
    traded0_raw: int
    """Moved on each side by a swap; 0 for anything else."""
    traded1_raw: int
    bought0: bool
    """A swap took token 0 out of the pool."""
    ratio0: Ratio | None
    """Price of token 0 in token 1 afterwards, in base units, when the log tells."""


def happening(pools: Mapping[str, Pool], manager: str | None, log: Log) -> Happening | None:
    """Read a log of a known pool; None for strangers and other events. Raises: ChainFault for a wrong shape."""
    kind = log.topics[0]
    if kind in OF_V4:
        pool = pools.get(log.topics[1]) if log.address == manager and len(log.topics) > 1 else None
        return _v4(pool, log) if pool is not None and pool.venue == "v4" else None
    pool = pools.get(log.address)
    if pool is not None and pool.venue == "v2" and kind in OF_V2:
        return _v2(pool, log)
    if pool is not None and pool.venue == "v3" and (kind in OF_V3 or kind == pool.swap_topic):
        return _v3(pool, log)
    return None


def happenings(network: Network) -> frozenset[str]:
    """Topics of everything that is read of a network's pools."""
    return HAPPENINGS | {fork.swap_topic for fork in network.forks if fork.swap_topic}


def swap_topic(pool: Pool) -> str:
    """Topic of a v3 pool's Swap log."""
    return pool.swap_topic or V3_SWAP


def _v2(pool: Pool, log: Log) -> Happening:
    if log.topics[0] == V2_SYNC:
        reserve0, reserve1 = words(log, 2)
        _bound(log, (reserve0, 112), (reserve1, 112))
        return Happening(pool, 0, 0, False, (reserve1, reserve0) if reserve0 and reserve1 else None)
    in0, in1, out0, out1 = words(log, 4)
    _bound(log, (in0, 112), (in1, 112), (out0, 112), (out1, 112))
    return Happening(pool, max(in0, out0), max(in1, out1), out0 > in0, None)


def _v3(pool: Pool, log: Log) -> Happening:
    if log.topics[0] == V3_INITIALIZED:
        price, _ = words(log, 2)
        return _concentrated(pool, log, 0, 0, price, 1)
    if log.topics[0] != swap_topic(pool):
        return Happening(pool, 0, 0, False, None)
    count = SWAP_WORDS.get(log.topics[0], V3_SWAP_WORDS)
    if pool.fork and len(log.data) != 32 * count:
        return Happening(pool, 0, 0, False, None)
    amount0, amount1, price, liquidity, *_ = words(log, count)
    return _concentrated(pool, log, amount0, amount1, price, liquidity, out=-1)


def _v4(pool: Pool, log: Log) -> Happening:
    if log.topics[0] == V4_INITIALIZED:
        return _concentrated(pool, log, 0, 0, words(log, 5)[3], 1)
    if log.topics[0] != V4_SWAP:
        return Happening(pool, 0, 0, False, None)
    amount0, amount1, price, liquidity, _, _ = words(log, 6)
    return _concentrated(pool, log, amount0, amount1, price, liquidity, out=1)


def _concentrated(pool: Pool, log: Log, amount0: int, amount1: int, price: int, liquidity: int, out: int = 1) -> Happening:
    """`out` is the sign of what leaves the pool: v3 logs the pool's own balance, v4 the swapper's."""
    moved0, moved1 = signed(amount0), signed(amount1)
    _bound(log, (price, 160), (liquidity, 128))
    return Happening(pool, abs(moved0), abs(moved1), moved0 * out > 0, PoolState(0, 0, price, liquidity).ratio(pool, pool.token0))


def _bound(log: Log, *values: tuple[int, int]) -> None:
    for value, bits in values:
        if value >> bits:
            raise ChainFault("bad_answer", f"a swap of {log.address} in block {log.block} cannot be {value:#x}")
