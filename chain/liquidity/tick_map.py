"""A pool's tick map: which ticks are initialised, and how liquidity changes where one is crossed.

A swap looks for the next initialised tick within one word of 256 multiples of the spacing; where there is none it stops at
the word's edge and goes on. Each stop rounds the fee once, so the words are part of what a swap earns.
Source: Uniswap v3 core white paper §6.2 and 6.3.1; v4 does the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from chain.liquidity.ticks import TICK_MAX, TICK_MIN
from ledgers.errors import ChainFault

WORD = (1 << 256) - 1


class TickMap:
    """The initialised ticks of one pool."""

    __slots__ = ("_words", "spacing", "ticks")

    def __init__(self, spacing: int, ticks: Iterable[tuple[int, int, int]] = ()) -> None:
        """`ticks`: tick, gross liquidity, net liquidity."""
        self.spacing = spacing
        self.ticks: dict[int, tuple[int, int]] = {}
        """Gross and net liquidity by tick."""
        self._words: dict[int, int] = {}
        for tick, gross, net in ticks:
            self._put(tick, gross, net)

    def copy(self) -> TickMap:
        """A map that changes apart from this one."""
        other = TickMap(self.spacing)
        other.ticks, other._words = dict(self.ticks), dict(self._words)
        return other

    def net(self, tick: int) -> int:
        """Liquidity that comes in where a tick is crossed upwards."""
        return self.ticks[tick][1]

    def liquidity_at(self, tick: int) -> int:
        """Liquidity in range when the price is at a tick, as the map tells it."""
        return sum(net for at, (_, net) in self.ticks.items() if at <= tick)

    def change(self, lower: int, upper: int, delta: int) -> None:
        """Add liquidity to a range, or take it away. Raises: ChainFault `liquidity_gap` for what the map cannot hold."""
        if not TICK_MIN <= lower < upper <= TICK_MAX or lower % self.spacing or upper % self.spacing:
            raise ChainFault("liquidity_gap", f"no position can reach from tick {lower} to {upper} at spacing {self.spacing}")
        for tick, net_delta in ((lower, delta), (upper, -delta)):
            gross, net = self.ticks.get(tick, (0, 0))
            if gross + delta < 0:
                raise ChainFault("liquidity_gap", f"tick {tick} has {gross} of liquidity, {-delta} left it")
            self._put(tick, gross + delta, net + net_delta)

    def below(self, tick: int) -> tuple[int, bool]:
        """Next stop of a falling price, and whether it is initialised."""
        place = tick // self.spacing
        word, bit = place >> 8, place & 255
        found = self._words.get(word, 0) & ((2 << bit) - 1)
        stop = (word << 8) + (found.bit_length() - 1 if found else 0)
        return max(stop * self.spacing, TICK_MIN), bool(found)

    def above(self, tick: int) -> tuple[int, bool]:
        """Next stop of a rising price, and whether it is initialised."""
        place = tick // self.spacing + 1
        word, bit = place >> 8, place & 255
        found = self._words.get(word, 0) & (WORD << bit) & WORD
        stop = (word << 8) + ((found & -found).bit_length() - 1 if found else 255)
        return min(stop * self.spacing, TICK_MAX), bool(found)

    def _put(self, tick: int, gross: int, net: int) -> None:
        place = tick // self.spacing
        word, bit = place >> 8, 1 << (place & 255)
        if gross:
            self.ticks[tick] = (gross, net)
            self._words[word] = self._words.get(word, 0) | bit
        elif tick in self.ticks:
            del self.ticks[tick]
            self._words[word] &= ~bit
