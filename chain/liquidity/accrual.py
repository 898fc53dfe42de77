"""Accrual: what a position of concentrated liquidity earns, from the pool's own logs, swap by swap.

A swap's log says where it ended and what came in. The path between is the pool's own: it stops at every initialised tick and
at every edge of a word of its tick map, and each stop has the liquidity that it passed through; so every step's fee is known to
the wei, as is the pool's fee growth. A paper position shares each step by Lp / (L + Lp); where its own bound lies within a
step, by the part of the path inside. Fee growth read at its bounds would be wrong: nobody initialised those ticks.
Source: 001 §2.2, §5.10 (ONC-21); Uniswap v3 core white paper §6.2.2, §6.3, §6.4, and the rounding of its and v4's pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chain.liquidity.amounts import amount0_between, amount1_between, amounts_of, price_after
from chain.liquidity.pool_logs import PANCAKE, V4, CutSet, Gifted, LiquidityChanged, Priced, Swapped, happened
from chain.liquidity.tick_map import TickMap
from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN, TICK_MAX, TICK_MIN, sqrt_price_at
from chain.logs import Log
from ledgers.errors import ChainFault

PPM = 1_000_000
PANCAKE_WHOLE = 10_000
WORD = (1 << 256) - 1
SEALED = 1 << 256
"""After every log of a block."""
GAP = "liquidity_gap"
"""Reason of the fault when logs do not add up to what the chain says: something is missing, or is of another chain."""


@dataclass(slots=True, kw_only=True)
class PaperPosition:
    """Liquidity between two ticks, and its fee growth since it was put on a path.

    Not a twin: it is in no pool, and what it earns is diluted by itself and by the paper positions beside it on the path.
    A twin is: the pool's liquidity holds it already, and its bounds are initialised."""

    lower: int
    upper: int
    liquidity: int
    twin: bool = False
    growth0_x128: int = 0
    growth1_x128: int = 0
    low_x96: int = field(init=False)
    high_x96: int = field(init=False)

    def __post_init__(self) -> None:
        assert TICK_MIN <= self.lower < self.upper <= TICK_MAX and self.liquidity > 0, self
        self.low_x96, self.high_x96 = sqrt_price_at(self.lower), sqrt_price_at(self.upper)

    def fees(self) -> tuple[int, int]:
        """Fees of both tokens so far, in base units, rounded down."""
        return self.growth0_x128 * self.liquidity >> 128, self.growth1_x128 * self.liquidity >> 128

    def principal(self, sqrt_price_x96: int) -> tuple[int, int]:
        """What closing pays of both tokens at a price, fees apart, rounded down."""
        return amounts_of(self.liquidity, sqrt_price_x96, self.lower, self.upper)

    def holds(self, tick: int) -> bool:
        """True while a price at this tick is in range."""
        return self.lower <= tick < self.upper

    def grow(self, first: bool, growth_x128: int) -> None:
        """Earn so much per unit of liquidity, of token 0 (`first`) or token 1."""
        if first:
            self.growth0_x128 += growth_x128
        else:
            self.growth1_x128 += growth_x128


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a swap's path through one liquidity."""

    falls: bool
    """Token 0 came in and the price fell; else token 1 came in."""
    start_x96: int
    end_x96: int
    tick: int
    """At its start."""
    liquidity: int
    amount_in: int
    """Fee apart."""
    fee: int
    """Of the providers: the protocol's cut is off."""


@dataclass(slots=True, kw_only=True)
class PoolPath:
    """One pool as its logs tell it, and the positions that earn there."""

    shape: str
    """v3, pancake or v4."""
    fee_ppm: int
    """The pool's own fee; v4 says each swap's."""
    sqrt_price_x96: int
    tick: int
    """The pool's own word: at a crossed bound it may be one below that of the price."""
    liquidity: int
    """In range."""
    growth0_x128: int
    """The pool's fee growth of token 0 ever, modulo 2²⁵⁶."""
    growth1_x128: int
    cut0: int
    """The protocol's cut of fees in token 0, as the pool's shape counts it."""
    cut1: int
    ticks: TickMap
    block: int
    """Everything of this block and before is in."""
    block_hash: str
    index: int = SEALED
    """Place of the last log that is in, while a block is being read."""
    positions: list[PaperPosition] = field(default_factory=list)
    swaps: int = 0
    """Since the path was read."""
    crossings: int = 0
    """Of initialised ticks."""

    def copy(self) -> PoolPath:
        """A path that goes on apart from this one, positions too."""
        return replace(self, ticks=self.ticks.copy(), positions=[_copied(position) for position in self.positions])

    def apply(self, log: Log) -> None:
        """Take one log in. Raises: ChainFault `liquidity_gap` when it cannot be the next one, `bad_answer` for a wrong form."""
        if (log.block, log.index) <= (self.block, self.index):
            raise _gap(f"log {log.index} of block {log.block} is not after log {self.index} of block {self.block}")
        self.block, self.index = log.block, log.index
        what = happened(self.shape, log)
        if isinstance(what, Swapped):
            self._swap(what)
        elif isinstance(what, LiquidityChanged):
            self._change(what)
        elif isinstance(what, Gifted):
            self._gift(what)
        elif isinstance(what, CutSet):
            self.cut0, self.cut1 = what.cut0, what.cut1
        else:
            self._price(what)

    def seal(self, block: int, block_hash: str) -> None:
        """Say that everything up to a block is in."""
        assert block >= self.block, (block, self.block)
        self.block, self.block_hash, self.index = block, block_hash, SEALED

    def _swap(self, swap: Swapped) -> None:
        falls = self._falls(swap)
        left = swap.amount0 if falls else swap.amount1
        fee_ppm, cut = self.fee_ppm if swap.fee_ppm is None else swap.fee_ppm, 0
        while left or self.sqrt_price_x96 != swap.sqrt_price_x96:
            paid, taken = self._step(falls, swap, left, fee_ppm)
            left, cut = left - paid, cut + taken
        if swap.cut is not None and swap.cut != cut:
            raise _gap(f"the protocol took {swap.cut} of a swap, its cut makes {cut}")
        if (self.tick, self.liquidity) != (swap.tick, swap.liquidity):
            raise _gap(f"a swap ended at tick {swap.tick} in liquidity {swap.liquidity}, its path at {self.tick} in {self.liquidity}")
        self.swaps += 1

    def _falls(self, swap: Swapped) -> bool:
        """Tell a swap's direction by what came in, or by the price where nothing did."""
        if not SQRT_PRICE_MIN < swap.sqrt_price_x96 < SQRT_PRICE_MAX:
            raise _gap(f"no swap ends at the square root price {swap.sqrt_price_x96}")
        moved = swap.sqrt_price_x96 - self.sqrt_price_x96
        falls = swap.amount0 > 0 or (swap.amount1 <= 0 and moved < 0)
        one_in = swap.amount1 <= 0 <= swap.amount0 if falls else swap.amount0 <= 0 <= swap.amount1
        if not one_in or (moved > 0 if falls else moved < 0):
            raise _gap(f"a swap of {swap.amount0} and {swap.amount1} moved the price by {moved}")
        return falls

    def _step(self, falls: bool, swap: Swapped, left: int, fee_ppm: int) -> tuple[int, int]:
        """Go to the next stop or the swap's end; the amount that came in for it, fee included, and the protocol's part of that."""
        stop, initialised = self.ticks.below(self.tick) if falls else self.ticks.above(self.tick)
        stop_x96, end_x96 = sqrt_price_at(stop), swap.sqrt_price_x96
        reached = stop_x96 >= end_x96 if falls else stop_x96 <= end_x96
        goal_x96 = stop_x96 if reached else end_x96
        amount_in = (amount0_between if falls else amount1_between)(self.liquidity, self.sqrt_price_x96, goal_x96, True)
        amount_in, fee = _reached_in(amount_in, fee_ppm) if reached else self._ended_in(falls, end_x96, amount_in, left, fee_ppm)
        if amount_in + fee > left:
            raise _gap(f"a step took {amount_in} and a fee of {fee}, only {left} came in")
        cut = self._cut(falls, amount_in, fee, fee_ppm)
        if fee != cut:
            self._earn(Step(falls, self.sqrt_price_x96, goal_x96, self.tick, self.liquidity, amount_in, fee - cut))
        if reached:
            self._cross(falls, stop, initialised)
        elif goal_x96 != self.sqrt_price_x96:
            self.tick = _confirmed(swap.tick, goal_x96)
        self.sqrt_price_x96 = goal_x96
        return amount_in + fee, cut

    def _ended_in(self, falls: bool, end_x96: int, needed: int, left: int, fee_ppm: int) -> tuple[int, int]:
        """Split what is left at a swap's last step into what the price needed and the fee, and hold one to the other.

        Of an exact amount in, v3 takes as fee what the price did not need, v4 the fee's own part; else the fee comes on top."""
        if not left and self.sqrt_price_x96 != end_x96 and not self.liquidity:
            return 0, 0
        paid = left * (PPM - fee_ppm) // PPM
        if self.liquidity and price_after(self.liquidity, self.sqrt_price_x96, paid, falls) == end_x96:
            paid = paid if self.shape == V4 else needed
        elif not self.liquidity or (needed, left - needed) != _reached_in(needed, fee_ppm):
            raise _gap(f"{left} came in for a swap's last step, which is not what its price says")
        else:
            paid = needed
        return paid, left - paid

    def _cut(self, falls: bool, amount_in: int, fee: int, fee_ppm: int) -> int:
        """The protocol's part of a step's fee, rounded as the pool does."""
        cut = self.cut0 if falls else self.cut1
        if not cut:
            return 0
        if self.shape == V4:
            return fee if fee_ppm == cut else (amount_in + fee) * cut // PPM
        return self._shared(cut, fee)

    def _shared(self, cut: int, fee: int) -> int:
        if not cut:
            return 0
        return fee * cut // PANCAKE_WHOLE if self.shape == PANCAKE else fee // cut

    def _cross(self, falls: bool, stop: int, initialised: bool) -> None:
        if initialised:
            self.liquidity += -self.ticks.net(stop) if falls else self.ticks.net(stop)
            self.crossings += 1
            if self.liquidity < 0:
                raise _gap(f"liquidity falls below zero at tick {stop}")
        self.tick = stop - 1 if falls else stop

    def _earn(self, step: Step) -> None:
        if step.fee < 0 or not step.liquidity:
            raise _gap(f"a step earned {step.fee} in liquidity {step.liquidity}")
        growth_x128 = (step.fee << 128) // step.liquidity
        self._grow(step.falls, growth_x128)
        papers = []
        for position in self.positions:
            if not position.twin:
                papers.append(position)
            elif position.holds(step.tick):
                position.grow(step.falls, growth_x128)
        for fee, sharing in _pieces(step, papers) if papers else ():
            _share(step.falls, fee, step.liquidity, sharing)

    def _grow(self, first: bool, growth_x128: int) -> None:
        if first:
            self.growth0_x128 = (self.growth0_x128 + growth_x128) & WORD
        else:
            self.growth1_x128 = (self.growth1_x128 + growth_x128) & WORD

    def _change(self, change: LiquidityChanged) -> None:
        if not change.delta:
            return
        self.ticks.change(change.lower, change.upper, change.delta)
        if change.lower <= self.tick < change.upper:
            self.liquidity += change.delta
            if self.liquidity < 0:
                raise _gap(f"{-change.delta} of liquidity left, more than was in range")

    def _gift(self, gift: Gifted) -> None:
        for first, amount, cut in ((True, gift.amount0, self.cut0), (False, gift.amount1, self.cut1)):
            fee = amount - self._shared(cut, amount) if gift.shared else amount
            if fee:
                self._earn(Step(first, self.sqrt_price_x96, self.sqrt_price_x96, self.tick, self.liquidity, 0, fee))

    def _price(self, first: Priced) -> None:
        if self.sqrt_price_x96:
            raise _gap("a pool that has a price got its first one")
        self.sqrt_price_x96, self.tick = first.sqrt_price_x96, _confirmed(first.tick, first.sqrt_price_x96)


def _reached_in(amount_in: int, fee_ppm: int) -> tuple[int, int]:
    """What came in to reach a stop: the fee comes on top, rounded up."""
    if fee_ppm >= PPM:
        if amount_in:
            raise _gap("a swap went on although the whole of it was fee")
        return 0, 0
    return amount_in, -(-amount_in * fee_ppm // (PPM - fee_ppm))


def _pieces(step: Step, papers: Sequence[PaperPosition]) -> list[tuple[int, list[PaperPosition]]]:
    """Split a step's fee at the papers' own bounds by the price path; what rounding leaves is nobody's."""
    low, high = sorted((step.start_x96, step.end_x96))
    if low == high:
        return [(step.fee, [paper for paper in papers if paper.holds(step.tick)])]
    cuts = sorted({bound for paper in papers for bound in (paper.low_x96, paper.high_x96) if low < bound < high})
    between = amount0_between if step.falls else amount1_between
    pieces = []
    for a, b in zip([low, *cuts], [*cuts, high], strict=True):
        fee = step.fee * between(step.liquidity, a, b, False) // step.amount_in if cuts else step.fee
        pieces.append((fee, [paper for paper in papers if paper.low_x96 <= a and b <= paper.high_x96]))
    return pieces


def _share(first: bool, fee: int, liquidity: int, sharing: Sequence[PaperPosition]) -> None:
    """Let papers grow as if they were in the pool, all of them."""
    growth_x128 = (fee << 128) // (liquidity + sum(paper.liquidity for paper in sharing))
    for paper in sharing:
        paper.grow(first, growth_x128)


def _confirmed(tick: int, sqrt_price_x96: int) -> int:
    if not TICK_MIN <= tick < TICK_MAX or not sqrt_price_at(tick) <= sqrt_price_x96 < sqrt_price_at(tick + 1):
        raise _gap(f"tick {tick} is not that of the square root price {sqrt_price_x96}")
    return tick


def _copied(position: PaperPosition) -> PaperPosition:
    held = PaperPosition(lower=position.lower, upper=position.upper, liquidity=position.liquidity, twin=position.twin)
    held.growth0_x128, held.growth1_x128 = position.growth0_x128, position.growth1_x128
    return held


def _gap(message: str) -> ChainFault:
    return ChainFault(GAP, message)
