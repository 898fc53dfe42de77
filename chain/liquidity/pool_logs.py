"""What a pool's own logs say happened to its price, its liquidity and its fees.

v3 pools, forks of theirs whose Swap says the protocol's part too (Pancake's), and v4 pools.
Source: events of UniswapV3Pool, PancakeV3Pool and the v4 PoolManager. Amounts are signed as the pool sees them: what comes in is above zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN, TICK_MAX, TICK_MIN
from chain.logs import Log, signed, topic, words
from chain.swaps import PANCAKE_V3_SWAP, V3_BURN, V3_INITIALIZED, V3_MINT, V3_SWAP, V4_LIQUIDITY_MODIFIED, V4_SWAP
from ledgers.errors import ChainFault

V3, PANCAKE, V4 = "v3", "pancake", "v4"
"""Shapes: how a pool logs and how it takes the protocol's cut."""

PANCAKE_CUT_SET = topic("SetFeeProtocol(uint32,uint32,uint32,uint32)")
V3_CUT_SET = topic("SetFeeProtocol(uint8,uint8,uint8,uint8)")
V3_FLASH = topic("Flash(address,address,uint256,uint256,uint256,uint256)")
V4_DONATION = topic("Donate(bytes32,address,uint256,uint256)")
V4_CUT_SET = topic("ProtocolFeeUpdated(bytes32,uint24)")

TOPICS = {
    V3: frozenset({V3_INITIALIZED, V3_SWAP, V3_MINT, V3_BURN, V3_FLASH, V3_CUT_SET}),
    PANCAKE: frozenset({V3_INITIALIZED, PANCAKE_V3_SWAP, V3_MINT, V3_BURN, V3_FLASH, PANCAKE_CUT_SET}),
    V4: frozenset({V4_SWAP, V4_LIQUIDITY_MODIFIED, V4_DONATION, V4_CUT_SET}),
}
"""Everything that changes price, liquidity, fee growth or the protocol's cut, by shape."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """A swap, and the pool after it."""

    amount0: int
    amount1: int
    sqrt_price_x96: int
    liquidity: int
    tick: int
    fee_ppm: int | None
    """What the swap paid, the protocol's part included; None where the pool's own fee holds."""
    cut: int | None
    """What the protocol took of it; None where the log does not say."""


@dataclass(frozen=True, slots=True)
class LiquidityChanged:
    """A provider came (above zero) or went."""

    lower: int
    upper: int
    delta: int


@dataclass(frozen=True, slots=True)
class Gifted:
    """Fees that came without a swap: of a flash loan, which the protocol shares in, or a donation."""

    amount0: int
    amount1: int
    shared: bool


@dataclass(frozen=True, slots=True)
class CutSet:
    """The protocol takes another part of fees from now on, for each token that comes in."""

    cut0: int
    cut1: int


@dataclass(frozen=True, slots=True)
class Priced:
    """The pool got its first price."""

    sqrt_price_x96: int
    tick: int


def happened(shape: str, log: Log) -> Swapped | LiquidityChanged | Gifted | CutSet | Priced:
    """Read one log of a pool of a shape. Raises: ChainFault for a log that is none of its own or has another form."""
    if log.topics[0] not in TOPICS[shape]:
        raise ChainFault("bad_answer", f"a {shape} pool does not log {log.topics[0]}")
    return _v4(log) if shape == V4 else _v3(log)


def cuts_of(shape: str, packed: int) -> tuple[int, int]:
    """Split the protocol's cuts as a pool packs them: for token 0 coming in, and for token 1."""
    bits = {V3: 4, PANCAKE: 16, V4: 12}[shape]
    return packed & ((1 << bits) - 1), packed >> bits


def _v3(log: Log) -> Swapped | LiquidityChanged | Gifted | CutSet | Priced:
    kind = log.topics[0]
    if kind in (V3_SWAP, PANCAKE_V3_SWAP):
        amount0, amount1, price, liquidity, tick, *cuts = words(log, 5 if kind == V3_SWAP else 7)
        cut = sum(cuts) if cuts else None
        return Swapped(signed(amount0), signed(amount1), _price(price), _uint128(liquidity), _tick(tick), None, cut)
    if kind == V3_MINT:
        return LiquidityChanged(*_ticks_of_topics(log), _uint128(words(log, 4)[1]))
    if kind == V3_BURN:
        return LiquidityChanged(*_ticks_of_topics(log), -_uint128(words(log, 3)[0]))
    if kind == V3_FLASH:
        return Gifted(*(_uint128(paid) for paid in words(log, 4)[2:]), shared=True)
    if kind == V3_INITIALIZED:
        price, tick = words(log, 2)
        return Priced(_price(price), _tick(tick))
    cut0, cut1 = words(log, 4)[2:]
    highest = 10 if kind == V3_CUT_SET else 10_000
    if max(cut0, cut1) > highest:
        raise ChainFault("bad_answer", f"a protocol cut of {cut0} and {cut1}, expected at most {highest}")
    return CutSet(cut0, cut1)


def _v4(log: Log) -> Swapped | LiquidityChanged | Gifted | CutSet:
    kind = log.topics[0]
    if kind == V4_SWAP:
        amount0, amount1, price, liquidity, tick, fee = words(log, 6)
        if fee > 1_000_000:
            raise ChainFault("bad_answer", f"a swap fee of {fee} ppm")
        return Swapped(-signed(amount0), -signed(amount1), _price(price), _uint128(liquidity), _tick(tick), fee, None)
    if kind == V4_LIQUIDITY_MODIFIED:
        lower, upper, delta, _ = words(log, 4)
        return LiquidityChanged(_tick(lower), _tick(upper), signed(delta))
    if kind == V4_DONATION:
        return Gifted(*(_uint128(given) for given in words(log, 2)), shared=False)
    (packed,) = words(log, 1)
    if packed >> 24:
        raise ChainFault("bad_answer", f"a protocol fee of {packed:#x}")
    return CutSet(*cuts_of(V4, packed))


def _ticks_of_topics(log: Log) -> tuple[int, int]:
    if len(log.topics) != 4:
        raise ChainFault("bad_answer", f"a change of liquidity of {log.address} has {len(log.topics)} topics, expected 4")
    return _tick(int(log.topics[2], 16)), _tick(int(log.topics[3], 16))


def _tick(value: int) -> int:
    tick = signed(value)
    if not TICK_MIN - 1 <= tick <= TICK_MAX:
        raise ChainFault("bad_answer", f"no pool can have tick {tick}")
    return tick


def _price(value: int) -> int:
    if not SQRT_PRICE_MIN <= value < SQRT_PRICE_MAX:
        raise ChainFault("bad_answer", f"no pool can have the square root price {value:#x}")
    return value


def _uint128(value: int) -> int:
    if value >> 128:
        raise ChainFault("bad_answer", f"expected at most 128 bits, found {value:#x}")
    return value
