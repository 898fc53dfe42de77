"""A moment of a pool, as the chain says it: price, liquidity, fee growth, the protocol's cut, and the whole tick map.

Source: calls of UniswapV3Pool (forks keep their names) and v4's StateView, at one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chain.calldata import uint_at, word
from chain.liquidity.pool_logs import V4, cuts_of
from chain.liquidity.tick_map import TickMap
from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN, TICK_MAX, TICK_MIN, sqrt_price_at
from chain.logs import signed, topic
from chain.network import Network
from chain.pools import LIQUIDITY, SLOT0, V4_LIQUIDITY, V4_SLOT0, Pool
from ledgers.errors import ChainFault

Call = tuple[str, str]
"""Target and calldata."""
TICKS_MAX = 50_000
"""Initialised ticks of one pool; more is a node gone wild."""
V3_STATE = (SLOT0, LIQUIDITY, topic("feeGrowthGlobal0X128()")[:10], topic("feeGrowthGlobal1X128()")[:10])
V4_STATE = (V4_SLOT0, V4_LIQUIDITY, topic("getFeeGrowthGlobals(bytes32)")[:10])
V3_WORD, V4_WORD = topic("tickBitmap(int16)")[:10], topic("getTickBitmap(bytes32,int16)")[:10]
V3_TICK, V4_TICK = topic("ticks(int24)")[:10], topic("getTickLiquidity(bytes32,int24)")[:10]
CUT_WORD = {"v3": 5, "v4": 2}
"""Which word of slot 0 packs the protocol's cuts, by venue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A pool's state at one block."""

    sqrt_price_x96: int
    tick: int
    liquidity: int
    growth0_x128: int
    growth1_x128: int
    cut0: int
    cut1: int


def state_calls(network: Network, pool: Pool) -> list[Call]:
    """Ask for a pool's state."""
    return [_call(network, pool, selector) for selector in (V4_STATE if pool.venue == "v4" else V3_STATE)]


def moment_of(pool: Pool, shape: str, answers: Sequence[bytes | None]) -> Moment:
    """Read the answers to `state_calls`. Raises: ChainFault when a pool cannot be so."""
    slot0, held = answers[0] or b"", answers[1] or b""
    grown = answers[2] or b"" if shape == V4 else (answers[2] or b"") + (answers[3] or b"")
    price, tick, packed = uint_at(slot0, 0), uint_at(slot0, 1), uint_at(slot0, CUT_WORD[pool.venue])
    liquidity, growth0, growth1 = uint_at(held, 0), uint_at(grown, 0), uint_at(grown, 1)
    if price is None or tick is None or packed is None or liquidity is None or growth0 is None or growth1 is None:
        raise ChainFault("bad_answer", f"{pool.venue} pool {pool.key} does not say its state")
    at = signed(tick)
    if not SQRT_PRICE_MIN <= price < SQRT_PRICE_MAX or not TICK_MIN <= at < TICK_MAX or liquidity >> 128 or packed >> 32:
        raise ChainFault("bad_answer", f"{pool.venue} pool {pool.key} cannot be at {price:#x}, tick {at}, with {liquidity:#x}")
    if not sqrt_price_at(at) <= price <= sqrt_price_at(at + 1):
        raise ChainFault("bad_answer", f"{pool.venue} pool {pool.key} cannot be at {price:#x} and tick {at}")
    cut0, cut1 = cuts_of(shape, packed)
    return Moment(sqrt_price_x96=price, tick=at, liquidity=liquidity, growth0_x128=growth0, growth1_x128=growth1, cut0=cut0, cut1=cut1)


def word_places(spacing: int) -> range:
    """Places of all words of a tick map."""
    return range(TICK_MIN // spacing >> 8, (TICK_MAX // spacing >> 8) + 1)


def word_call(network: Network, pool: Pool, place: int) -> Call:
    """Ask for one word of a pool's tick map."""
    return _call(network, pool, V4_WORD if pool.venue == "v4" else V3_WORD, place)


def ticks_of_words(pool: Pool, words: Iterable[tuple[int, bytes | None]]) -> list[int]:
    """Ticks that are set in words of the map, given with their places. Raises: ChainFault."""
    ticks: list[int] = []
    for place, answer in words:
        bits = uint_at(answer or b"", 0)
        if bits is None or bits.bit_count() + len(ticks) > TICKS_MAX:
            raise ChainFault("bad_answer", f"the tick map of {pool.venue} pool {pool.key} is not told, or has more than {TICKS_MAX} ticks")
        while bits:
            ticks.append(((place << 8) + (bits & -bits).bit_length() - 1) * pool.tick_spacing)
            bits &= bits - 1
    return ticks


def tick_call(network: Network, pool: Pool, tick: int) -> Call:
    """Ask how much liquidity begins and ends at a tick."""
    return _call(network, pool, V4_TICK if pool.venue == "v4" else V3_TICK, tick)


def map_of(pool: Pool, moment: Moment, told: Iterable[tuple[int, bytes | None]]) -> TickMap:
    """Put ticks and what is told of them together, held to the liquidity in range. Raises: ChainFault."""
    rows = []
    for tick, answer in told:
        gross, net = uint_at(answer or b"", 0), uint_at(answer or b"", 1)
        if gross is None or net is None or not 0 < gross < 2**128 or abs(signed(net)) > gross or not TICK_MIN <= tick <= TICK_MAX:
            raise ChainFault("bad_answer", f"tick {tick} of {pool.venue} pool {pool.key} cannot be as told")
        rows.append((tick, gross, signed(net)))
    ticks = TickMap(pool.tick_spacing, rows)
    if ticks.liquidity_at(moment.tick) != moment.liquidity or ticks.liquidity_at(TICK_MAX):
        raise ChainFault("bad_answer", f"the tick map of {pool.venue} pool {pool.key} does not add up to the liquidity in range")
    return ticks


def _call(network: Network, pool: Pool, selector: str, *values: int) -> Call:
    packed = selector + (pool.key[2:] if pool.venue == "v4" else "") + "".join(word(value % 2**256) for value in values)
    if pool.venue != "v4":
        return pool.key, packed
    assert network.v4_state_view, "v4 pools are only known where a StateView is configured"
    return network.v4_state_view, packed
