"""Amounts: what liquidity is worth in both tokens between two prices, and what liquidity amounts make.

Units: prices are square roots times 2⁹⁶; amounts are base units. What a pool asks for is rounded up, what it pays down.
Source: Uniswap v3 core white paper §6.2.3, formulas 6.29 and 6.30, with the rounding of its SqrtPriceMath and LiquidityAmounts.
"""

from __future__ import annotations

from chain.liquidity.ticks import Q96, sqrt_price_at


def amount0_between(liquidity: int, price_a: int, price_b: int, round_up: bool) -> int:
    """Token 0 that liquidity holds between two prices, in either order."""
    low, high = (price_a, price_b) if price_a <= price_b else (price_b, price_a)
    worth = (liquidity << 96) * (high - low)
    return -((-worth // high) // low) if round_up else worth // high // low


def amount1_between(liquidity: int, price_a: int, price_b: int, round_up: bool) -> int:
    """Token 1 that liquidity holds between two prices, in either order."""
    worth = liquidity * abs(price_b - price_a)
    return -(-worth >> 96) if round_up else worth >> 96


def amounts_of(liquidity: int, sqrt_price_x96: int, lower: int, upper: int, round_up: bool = False) -> tuple[int, int]:
    """Amounts of both tokens that a position of these ticks holds at a price.

    Rounded down they are what closing pays, rounded up what opening costs."""
    low, high = sqrt_price_at(lower), sqrt_price_at(upper)
    here = min(max(sqrt_price_x96, low), high)
    return amount0_between(liquidity, here, high, round_up), amount1_between(liquidity, low, here, round_up)


def price_after(liquidity: int, sqrt_price_x96: int, amount_in: int, falls: bool) -> int:
    """Price after an amount of token 0 (`falls`) or token 1, fee apart, came into some liquidity; rounded against who pays."""
    if not falls:
        return sqrt_price_x96 + (amount_in << 96) // liquidity
    worth, product = liquidity << 96, amount_in * sqrt_price_x96
    if (worth + product) >> 256 or product >> 256:
        return -(-worth // (worth // sqrt_price_x96 + amount_in))
    return -(-worth * sqrt_price_x96 // (worth + product))


def liquidity_for(sqrt_price_x96: int, lower: int, upper: int, raw0: int, raw1: int) -> int:
    """Most liquidity that amounts make in a range at a price; what is too much of one token stays unused."""
    low, high = sqrt_price_at(lower), sqrt_price_at(upper)
    here = min(max(sqrt_price_x96, low), high)
    made = []
    if here < high:
        made.append(raw0 * (here * high // Q96) // (high - here))
    if here > low:
        made.append(raw1 * Q96 // (here - low))
    return min(made)
