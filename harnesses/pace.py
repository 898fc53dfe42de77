"""The pace: what one host takes in a minute, held for all harnesses that ask it.

A minute slides: a request waits until those of the last sixty seconds leave room for it. Waiting is recorded apart from
latency, like waiting for a slot. Where several manifests name one host, the least that any of them declares holds.
"""

from __future__ import annotations

import asyncio
from collections import deque

from harnesses.asking import Rate
from ledgers.clock import Clock

MINUTE_MS = 60_000


class Pace:
    """Lets requests to one host through, in the order in which they came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._requests_max: int | None = None
        self._tokens_max: int | None = None
        self._sent: deque[tuple[int, int]] = deque()
        """When, and how many input tokens; of the last minute."""
        self._turn = asyncio.Lock()

    def tighten(self, rate: Rate | None) -> Pace:
        """Take what one more manifest declares into account."""
        if rate is not None:
            self._requests_max = _least(self._requests_max, rate.requests_per_minute)
            self._tokens_max = _least(self._tokens_max, rate.input_tokens_per_minute)
        return self

    async def ready(self, tokens: int) -> None:
        """Return once a request of so many input tokens may be sent; one larger than a minute's allowance goes alone."""
        if self._requests_max is None and self._tokens_max is None:
            return
        async with self._turn:
            while (wait_ms := self._wait_ms(tokens)) > 0:
                await self._clock.sleep_until(self._clock.now_ms() + wait_ms)
            self._sent.append((self._clock.monotonic_ms(), tokens))

    def _wait_ms(self, tokens: int) -> int:
        now_ms = self._clock.monotonic_ms()
        while self._sent and self._sent[0][0] <= now_ms - MINUTE_MS:
            self._sent.popleft()
        used = sum(sent for _, sent in self._sent)
        full = self._requests_max is not None and len(self._sent) >= self._requests_max
        full |= self._tokens_max is not None and bool(self._sent) and used + tokens > self._tokens_max
        return self._sent[0][0] + MINUTE_MS - now_ms if full else 0


def _least(one: int | None, other: int | None) -> int | None:
    known = [limit for limit in (one, other) if limit is not None]
    return min(known) if known else None
