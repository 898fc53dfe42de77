"""The clock: the only source of wall time, passed to whoever needs it.

Units: milliseconds of Unix time (UTC). Deadlines are measured on the monotonic side, so that a jump of the wall clock
neither fires nor hides one.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """What a shell may ask of time."""

    def now_ms(self) -> int:
        """Wall time, Unix milliseconds."""
        ...

    def monotonic_ms(self) -> int:
        """A time that never goes back; only differences mean anything."""
        ...

    async def sleep_until(self, ts_ms: int) -> None:
        """Return once `now_ms() >= ts_ms`; at once when that is past."""
        ...

    async def within(self, limit_ms: int, work: Awaitable[T]) -> T:
        """Await `work`, or cancel it and raise TimeoutError after `limit_ms` milliseconds."""
        ...


class SystemClock:
    """The machine's clock."""

    NAP_MS_MAX = 1_000
    """Longest single sleep, so that a wall clock set forward is noticed within a second."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_until(self, ts_ms: int) -> None:
        while (left_ms := ts_ms - self.now_ms()) > 0:
            await asyncio.sleep(min(left_ms, self.NAP_MS_MAX) / 1_000)

    async def within(self, limit_ms: int, work: Awaitable[T]) -> T:
        return await asyncio.wait_for(work, limit_ms / 1_000)


class VirtualClock:
    """A clock that moves only when told to; sleepers wake in order of their time.

    `advance_to` runs every sleeper that becomes due and lets the event loop settle between steps."""

    SETTLE_ROUNDS = 50
    """How often the loop is yielded to, so that woken tasks run on before time moves again."""

    def __init__(self, now_ms: int = 1_790_000_000_000) -> None:
        self._now_ms = now_ms
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    async def sleep_until(self, ts_ms: int) -> None:
        if ts_ms <= self._now_ms:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (ts_ms, self._order, woken))
        await woken

    async def within(self, limit_ms: int, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        limit = asyncio.ensure_future(self.sleep_until(self._now_ms + limit_ms))
        try:
            await asyncio.wait({task, limit}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise TimeoutError(f"not done within {limit_ms} ms")
        finally:
            for pending in (task, limit):
                pending.cancel()

    @property
    def next_due_ms(self) -> int | None:
        """When the earliest sleeper wakes; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def advance_to(self, ts_ms: int) -> None:
        """Move time forward to `ts_ms`, waking sleepers on the way."""
        await self._settle()
        while (due_ms := self.next_due_ms) is not None and due_ms <= ts_ms:
            self._now_ms = due_ms
            heapq.heappop(self._sleepers)[2].set_result(None)
            await self._settle()
        self._now_ms = max(self._now_ms, ts_ms)
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(self.SETTLE_ROUNDS):
            await asyncio.sleep(0)

    def jump(self, delta_ms: int) -> None:
        """Set the clock off by `delta_ms`, as an operator or NTP would; nobody is woken."""
        self._now_ms += delta_ms
