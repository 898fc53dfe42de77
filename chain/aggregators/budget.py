"""The pace: how often a rival may be asked, and until when it asked to be left alone.

A budget that is used up is no fault of the rival's: its row says so, and nothing is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from chain.aggregators.ask import Limit
from ledgers.clock import Clock

BACK_OFF_MS = 10_000
"""How long a rival that says `too many` without saying for how long is left alone."""
BACK_OFF_MS_MAX = 3_600_000


class Pace:
    """The budget of one rival."""

    def __init__(self, limits: Sequence[Limit], clock: Clock) -> None:
        self._limits = tuple(limits)
        self._clock = clock
        self._asked: deque[int] = deque(maxlen=max((limit.requests for limit in self._limits), default=1))
        self._alone_until_ms = 0

    def take(self, requests: int) -> bool:
        """Take some requests off the budget, or none of them."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._alone_until_ms or not all(self._fits(limit, requests, now_ms) for limit in self._limits):
            return False
        self._asked.extend([now_ms] * requests)
        return True

    def _fits(self, limit: Limit, requests: int, now_ms: int) -> bool:
        return requests + sum(1 for asked_ms in self._asked if now_ms - asked_ms < limit.per_ms) <= limit.requests

    def back_off(self, wait_ms: int | None) -> None:
        """Leave it alone for as long as it says, within reason."""
        wait_ms = BACK_OFF_MS if wait_ms is None else min(max(wait_ms, 0), BACK_OFF_MS_MAX)
        self._alone_until_ms = max(self._alone_until_ms, self._clock.monotonic_ms() + wait_ms)
