"""The clock: the only source of wall time, passed to whoever needs it.

Units: milliseconds of Unix time (UTC). Deadlines are measured on the monotonic side, so that a jump of the wall clock
neither fires nor hides one.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
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

    `advance_to` runs every sleeper that becomes due and lets the event loop settle between steps. It cannot wait for other
    threads: use it with the in-memory journal."""

    SETTLE_ROUNDS = 50
    """How often the loop is yielded to, so that woken tasks run on before time moves again."""

    def __init__(self, now_ms: int = 1_790_000_000_000) -> None:
        self._steady_ms = now_ms
        self._jumped_ms = 0
        self._sleepers: list[_Sleeper] = []
        self._order = 0

    def now_ms(self) -> int:
        return self._steady_ms + self._jumped_ms

    def monotonic_ms(self) -> int:
        return self._steady_ms

    async def sleep_until(self, ts_ms: int) -> None:
        while ts_ms > self.now_ms():
            await self._woken_at(ts_ms - self._jumped_ms, by_wall=True)

    async def within(self, limit_ms: int, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        limit = self._woken_at(self._steady_ms + limit_ms, by_wall=False)
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
        """When the earliest sleeper wakes, in wall time; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0].woken.done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0].steady_ms + self._jumped_ms if self._sleepers else None

    async def advance_to(self, ts_ms: int) -> None:
        """Move time forward to `ts_ms`, waking sleepers on the way."""
        await self._settle()
        while (due_ms := self.next_due_ms) is not None and due_ms <= ts_ms:
            self._steady_ms = max(self._steady_ms, due_ms - self._jumped_ms)
            heapq.heappop(self._sleepers).woken.set_result(None)
            await self._settle()
        self._steady_ms = max(self._steady_ms, ts_ms - self._jumped_ms)
        await self._settle()

    def jump(self, delta_ms: int) -> None:
        """Set the wall clock off by `delta_ms`, as an operator or NTP would; deadlines do not notice, and nobody is woken."""
        self._jumped_ms += delta_ms
        for sleeper in self._sleepers:
            sleeper.steady_ms -= delta_ms if sleeper.by_wall else 0
        heapq.heapify(self._sleepers)

    def _woken_at(self, steady_ms: int, by_wall: bool) -> asyncio.Future[None]:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, _Sleeper(steady_ms, self._order, by_wall, woken))
        return woken

    async def _settle(self) -> None:
        for _ in range(self.SETTLE_ROUNDS):
            await asyncio.sleep(0)


@dataclass(slots=True, order=True)
class _Sleeper:
    steady_ms: int
    order: int
    by_wall: bool = field(compare=False)
    woken: asyncio.Future[None] = field(compare=False)
