"""Ticks: the grid of prices that ranges are made of.

A price is token 1 per token 0, kept as its square root times 2⁹⁶; tick t stands at 1.0001ᵗ.
Source: Uniswap v3 core white paper §6.1, and the rounding of its TickMath; v4's is the same.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import isqrt

TICK_MAX = 887_272
TICK_MIN = -TICK_MAX
Q96 = 1 << 96
Q128 = 1 << 128
FACTOR_COUNT = 20
"""Bits of the greatest tick."""
PRECISION_BITS = 512
PRICES_KEPT = 1 << 17


@lru_cache(maxsize=PRICES_KEPT)
def sqrt_price_at(tick: int) -> int:
    """Square root of the price at a tick, times 2⁹⁶. Raises: ValueError beyond the outermost ticks."""
    if not TICK_MIN <= tick <= TICK_MAX:
        raise ValueError(f"tick {tick} is not within ±{TICK_MAX}")
    ratio = Q128
    for bit, factor in enumerate(_factors()):
        if abs(tick) >> bit & 1:
            ratio = ratio * factor >> 128
    if tick > 0:
        ratio = ((1 << 256) - 1) // ratio
    return (ratio + (1 << 32) - 1) >> 32


SQRT_PRICE_MIN = 4_295_128_739
"""At the lowest tick."""
SQRT_PRICE_MAX = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342
"""At the highest tick; no pool's price reaches it."""


def tick_at(sqrt_price_x96: int) -> int:
    """Greatest tick at or below a price. Raises: ValueError for a price that no pool can have."""
    if not SQRT_PRICE_MIN <= sqrt_price_x96 < SQRT_PRICE_MAX:
        raise ValueError(f"no pool can have the square root price {sqrt_price_x96}")
    low, high = TICK_MIN, TICK_MAX
    while high - low > 1:
        middle = (low + high) // 2
        if sqrt_price_at(middle) <= sqrt_price_x96:
            low = middle
        else:
            high = middle
    return low


def tick_of_ratio(up: int, down: int) -> int:
    """Greatest tick at or below the price `up / down` of one base unit of token 0 in base units of token 1.

    A price beyond the outermost ticks is taken to be there. Raises: ValueError when either is not above zero."""
    if up <= 0 or down <= 0:
        raise ValueError(f"a price is above zero, found {up}/{down}")
    price = isqrt((up << 192) // down)
    if price < SQRT_PRICE_MIN:
        return TICK_MIN
    return TICK_MAX if price >= SQRT_PRICE_MAX else tick_at(price)


@cache
def _factors() -> tuple[int, ...]:
    """1.0001^(−2ⁱ⁻¹) times 2¹²⁸ to the nearest integer, for each bit i of a tick."""
    value, factors = isqrt((10_000 << 2 * PRECISION_BITS) // 10_001), []
    for _ in range(FACTOR_COUNT):
        factors.append((value + (1 << (PRECISION_BITS - 129))) >> (PRECISION_BITS - 128))
        value = value * value >> PRECISION_BITS
    return tuple(factors)
