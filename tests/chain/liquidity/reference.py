"""A reference pool: the loop of the contracts, v3's and v4's, with the fees of real positions; it logs as they do.

Written apart from the product: it swaps forward from what a trader asks, where the product walks back from what was logged.
Source: Uniswap v3 core white paper §6; UniswapV3Pool.swap and v4's Pool.swap, step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chain.liquidity.pool_logs import PANCAKE, PANCAKE_CUT_SET, V3, V3_CUT_SET, V3_FLASH, V4, V4_CUT_SET, V4_DONATION
from chain.liquidity.ticks import sqrt_price_at, tick_at
from chain.logs import Log
from chain.swaps import PANCAKE_V3_SWAP, V3_BURN, V3_MINT, V3_SWAP, V4_LIQUIDITY_MODIFIED, V4_SWAP

MILLION = 10**6
MOD = 1 << 256
POOL = "0x" + "aa" * 20
ID = "0x" + "bb" * 32
SOMEBODY = "0x" + "00" * 31 + "01"


def ceil_div(a: int, b: int) -> int:
    return a // b + (a % b > 0)


def delta0(low: int, high: int, liquidity: int, up: bool) -> int:
    low, high = min(low, high), max(low, high)
    part = liquidity * 2**96 * (high - low)
    return ceil_div(ceil_div(part, high), low) if up else part // high // low


def delta1(low: int, high: int, liquidity: int, up: bool) -> int:
    part = liquidity * abs(high - low)
    return ceil_div(part, 2**96) if up else part // 2**96


def after_input(price: int, liquidity: int, amount: int, zero: bool) -> int:
    if zero:
        return ceil_div(liquidity * 2**96 * price, liquidity * 2**96 + amount * price)
    return price + amount * 2**96 // liquidity


def after_output(price: int, liquidity: int, amount: int, zero: bool) -> int:
    if zero:
        return price - ceil_div(amount * 2**96, liquidity)
    return ceil_div(liquidity * 2**96 * price, liquidity * 2**96 - amount * price)


@dataclass(slots=True)
class Tick:
    gross: int = 0
    net: int = 0
    outside: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(slots=True)
class Holding:
    liquidity: int = 0
    last: list[int] = field(default_factory=lambda: [0, 0])
    owed: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(slots=True)
class ReferencePool:
    shape: str
    fee: int
    spacing: int
    price: int
    tick: int = 0
    liquidity: int = 0
    growth: list[int] = field(default_factory=lambda: [0, 0])
    cuts: tuple[int, int] = (0, 0)
    ticks: dict[int, Tick] = field(default_factory=dict)
    holdings: dict[tuple[str, int, int], Holding] = field(default_factory=dict)
    logs: list[Log] = field(default_factory=list)
    block: int = 1
    taken: list[int] = field(default_factory=lambda: [0, 0])
    """By the protocol in the last swap."""

    def __post_init__(self) -> None:
        self.tick = tick_at(self.price)

    # --- providers --------------------------------------------------------------------------------------------------

    def change(self, owner: str, lower: int, upper: int, delta: int) -> tuple[int, int]:
        """Add or take liquidity; the amounts that moved, without fees."""
        for tick in (lower, upper):
            info = self.ticks.setdefault(tick, Tick())
            if not info.gross and tick <= self.tick:
                info.outside = list(self.growth)
            info.gross += delta
            info.net += delta if tick == lower else -delta
        self.poke(owner, lower, upper)
        self.holdings[owner, lower, upper].liquidity += delta
        for tick in (lower, upper):
            if not self.ticks[tick].gross:
                del self.ticks[tick]
        if lower <= self.tick < upper:
            self.liquidity += delta
        self._log_change(lower, upper, delta)
        here = min(max(self.price, sqrt_price_at(lower)), sqrt_price_at(upper))
        up = delta > 0
        return delta0(here, sqrt_price_at(upper), abs(delta), up), delta1(sqrt_price_at(lower), here, abs(delta), up)

    def poke(self, owner: str, lower: int, upper: int) -> Holding:
        holding = self.holdings.setdefault((owner, lower, upper), Holding())
        inside = self.inside(lower, upper)
        for side in (0, 1):
            holding.owed[side] += (inside[side] - holding.last[side]) % MOD * holding.liquidity // 2**128
        holding.last = inside
        return holding

    def inside(self, lower: int, upper: int) -> list[int]:
        result = []
        for side in (0, 1):
            low, high = self.ticks[lower].outside[side], self.ticks[upper].outside[side]
            below = low if self.tick >= lower else self.growth[side] - low
            above = high if self.tick < upper else self.growth[side] - high
            result.append((self.growth[side] - below - above) % MOD)
        return result

    # --- traders ----------------------------------------------------------------------------------------------------

    def swap(self, zero: bool, specified: int, limit: int, lp_fee: int | None = None) -> tuple[int, int]:
        """`specified` above zero is exact in, below it exact out; the pool's gain of both tokens."""
        fee, cut = self.fee_of(zero, lp_fee)
        left, other, self.taken = specified, 0, [0, 0]
        while left and self.price != limit:
            stop, initialised = self._next(zero)
            stop_price, start = sqrt_price_at(stop), self.price
            target = max(stop_price, limit) if zero else min(stop_price, limit)
            self.price, paid, out, taken = self._step(target, left, fee, zero)
            if specified > 0:
                left -= paid + taken
                other -= out
            else:
                left += out
                other += paid + taken
            self._collect(0 if zero else 1, paid, taken, fee, cut)
            if self.price == stop_price:
                if initialised:
                    info = self.ticks[stop]
                    info.outside = [(ours - theirs) % MOD for ours, theirs in zip(self.growth, info.outside, strict=True)]
                    self.liquidity += -info.net if zero else info.net
                self.tick = stop - 1 if zero else stop
            elif self.price != start:
                self.tick = tick_at(self.price)
        amounts = (specified - left, other) if zero == (specified > 0) else (other, specified - left)
        self._log_swap(amounts, fee)
        return amounts

    def fee_of(self, zero: bool, lp_fee: int | None) -> tuple[int, int]:
        """What a swap pays and the protocol's cut of it."""
        fee, cut = self.fee if lp_fee is None else lp_fee, self.cuts[0 if zero else 1]
        return (fee + cut - fee * cut // MILLION, cut) if self.shape == V4 else (fee, cut)

    def _next(self, zero: bool) -> tuple[int, bool]:
        """One tick after the other, to the end of the word."""
        place = self.tick // self.spacing + (0 if zero else 1)
        while place * self.spacing not in self.ticks and place % 256 != (0 if zero else 255):
            place += -1 if zero else 1
        stop = place * self.spacing
        return min(max(stop, -887_272), 887_272), stop in self.ticks

    def _step(self, target: int, left: int, fee: int, zero: bool) -> tuple[int, int, int, int]:
        price, liquidity = self.price, self.liquidity
        to_in = (lambda to: delta0(to, price, liquidity, True)) if zero else (lambda to: delta1(price, to, liquidity, True))
        to_out = (lambda to: delta1(to, price, liquidity, False)) if zero else (lambda to: delta0(price, to, liquidity, False))
        if left > 0:
            spendable = left * (MILLION - fee) // MILLION
            if spendable >= to_in(target):
                end, paid, taken = target, to_in(target), None
            elif self.shape == V4:
                end, paid, taken = after_input(price, liquidity, spendable, zero), spendable, left - spendable
            else:
                end = after_input(price, liquidity, spendable, zero)
                paid = to_in(end)
                taken = left - paid
            out = to_out(end)
        else:
            out, taken = to_out(target), None
            end = target if -left >= out else after_output(price, liquidity, -left, zero)
            out = min(out if end == target else to_out(end), -left)
            paid = to_in(end)
        if taken is None:
            taken = ceil_div(paid * fee, MILLION - fee) if fee < MILLION else paid
        return end, paid, out, taken

    def _collect(self, side: int, paid: int, taken: int, fee: int, cut: int) -> None:
        part = 0
        if cut and self.shape == V3:
            part = taken // cut
        elif cut and self.shape == PANCAKE:
            part = taken * cut // 10_000
        elif cut:
            part = taken if fee == cut else (paid + taken) * cut // MILLION
        self.taken[side] += part
        if self.liquidity:
            self.growth[side] = (self.growth[side] + (taken - part) * 2**128 // self.liquidity) % MOD

    # --- the rest ---------------------------------------------------------------------------------------------------

    def gift(self, amount0: int, amount1: int) -> None:
        """A flash loan's fee, or a donation."""
        for side, amount in enumerate((amount0, amount1)):
            cut = self.cuts[side]
            kept = amount
            if cut and self.shape == V3:
                kept -= amount // cut
            elif cut and self.shape == PANCAKE:
                kept -= amount * cut // 10_000
            self.growth[side] = (self.growth[side] + kept * 2**128 // self.liquidity) % MOD
        if self.shape == V4:
            self._log((V4_DONATION, ID, SOMEBODY), amount0, amount1)
        else:
            self._log((V3_FLASH, SOMEBODY, SOMEBODY), 7, 7, amount0, amount1)

    def set_cuts(self, cut0: int, cut1: int) -> None:
        old, self.cuts = self.cuts, (cut0, cut1)
        if self.shape == V4:
            self._log((V4_CUT_SET, ID), cut1 << 12 | cut0)
        else:
            self._log((V3_CUT_SET if self.shape == V3 else PANCAKE_CUT_SET,), *old, cut0, cut1)

    def _log_swap(self, amounts: tuple[int, int], fee: int) -> None:
        if self.shape == V4:
            self._log((V4_SWAP, ID, SOMEBODY), -amounts[0], -amounts[1], self.price, self.liquidity, self.tick, fee)
        elif self.shape == V3:
            self._log((V3_SWAP, SOMEBODY, SOMEBODY), *amounts, self.price, self.liquidity, self.tick)
        else:
            self._log((PANCAKE_V3_SWAP, SOMEBODY, SOMEBODY), *amounts, self.price, self.liquidity, self.tick, *self.taken)

    def _log_change(self, lower: int, upper: int, delta: int) -> None:
        ticks = tuple(f"0x{tick % MOD:064x}" for tick in (lower, upper))
        if self.shape == V4:
            self._log((V4_LIQUIDITY_MODIFIED, ID, SOMEBODY), lower, upper, delta, 9)
        elif delta >= 0:
            self._log((V3_MINT, SOMEBODY, *ticks), 1, delta, 0, 0)
        else:
            self._log((V3_BURN, SOMEBODY, *ticks), -delta, 0, 0)

    def _log(self, topics: tuple[str, ...], *values: int) -> None:
        data = b"".join((value % MOD).to_bytes(32) for value in values)
        self.logs.append(Log(POOL, topics, data, self.block, "0x" + f"{self.block:064x}", len(self.logs), None))
