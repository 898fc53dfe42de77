"""Draws: chance that can be recomputed by anybody, on any machine.

A decision's draws come from SHA-256 of the window's seed, the stack, the copy and the tick, so that a window that is
resumed draws the same again and cannot fork.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal

_EXACT = Context(prec=50, rounding=ROUND_FLOOR)
"""Decimal's exp and ln are correctly rounded at any precision, so every machine draws the same."""

_UNIT = 2**128


def run_seed(window_seed: int, stack_sha256: str, label: str, copy: int) -> int:
    """Derive a run's seed, below 2^53 so that an event can carry it."""
    return _number(f"run/{window_seed}/{stack_sha256}/{label}/{copy}") % 2**53


class Draws:
    """The draws of one decision, in the order they are taken."""

    def __init__(self, seed: int, tick: int) -> None:
        self._root = f"draw/{seed}/{tick}"
        self._taken = 0

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to bound − 1. The bias of the remainder is below bound ÷ 2^256."""
        assert bound > 0, f"nothing to draw below {bound}"
        self._taken += 1
        return _number(f"{self._root}/{self._taken}") % bound

    def weighted(self, weights: Sequence[int]) -> int:
        """Draw a place in proportion to its weight. Raises: AssertionError when all weigh nothing."""
        left = self.below(sum(weights))
        for place, weight in enumerate(weights):
            if left < weight:
                return place
            left -= weight
        raise AssertionError(f"weights {weights} end before their own sum")

    def log_uniform_ppm(self, low_ppm: int, high_ppm: int) -> int:
        """Draw millionths whose logarithm is uniform between two bounds, rounded down: low × (high ÷ low)^u."""
        share = _EXACT.divide(Decimal(self.below(_UNIT)), Decimal(_UNIT))
        span = _EXACT.ln(_EXACT.divide(Decimal(high_ppm), Decimal(low_ppm)))
        drawn = _EXACT.multiply(Decimal(low_ppm), _EXACT.exp(_EXACT.multiply(share, span)))
        return min(max(int(drawn), low_ppm), high_ppm)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest())
