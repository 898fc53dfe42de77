"""The budget: how often a rival may be asked, and until when it asked to be left alone.

A question that comes too early is not sent and its row says so: a budget that is used up is no fault of the rival's. Where a
short wait is allowed it is waited out instead, in the order of asking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from chain.aggregators.ask import Limit
from ledgers.clock import Clock

BACK_OFF_MS = 10_000
"""How long a rival that says `too many` without saying for how long is left alone."""
BACK_OFF_MS_MAX = 3_600_000


class Budget:
    """The requests that one rival bears."""

    def __init__(self, limits: Sequence[Limit], clock: Clock, wait_ms_max: int = 0) -> None:
        self._limits = tuple(limits)
        self._clock = clock
        self._wait_ms_max = wait_ms_max
        self._sent: deque[int] = deque(maxlen=max((limit.requests for limit in self._limits), default=1))
        """When the latest requests were sent, or will be."""
        self._alone_until_ms = 0

    def take(self, requests: int) -> int | None:
        """Reserve some requests, all or none: milliseconds until they may be sent, none where that is too long."""
        now_ms = self._clock.monotonic_ms()
        at_ms = max(now_ms, self._alone_until_ms, self._sent[-1] if self._sent else 0)
        for limit in self._limits:
            if requests > limit.requests:
                return None
            if (place := len(self._sent) + requests - limit.requests) > 0:
                at_ms = max(at_ms, self._sent[place - 1] + limit.per_ms)
        if at_ms - now_ms > self._wait_ms_max:
            return None
        self._sent.extend([at_ms] * requests)
        return at_ms - now_ms

    def back_off(self, wait_ms: int | None) -> None:
        """Leave the rival alone for as long as it says, within reason."""
        wait_ms = BACK_OFF_MS if wait_ms is None else min(max(wait_ms, 0), BACK_OFF_MS_MAX)
        self._alone_until_ms = max(self._alone_until_ms, self._clock.monotonic_ms() + wait_ms)
