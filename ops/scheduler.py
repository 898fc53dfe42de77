"""The scheduler: wakes the process at a time, and nothing else.

It hides what it missed when the loop is blocked, so ticks are counted from the window's own schedule and never from
here. The scheduler reckons in wall time, which can be set: so no single wait outlasts its length on the monotonic clock.
A wake that comes early, because the wall clock was set back, waits on; a clock set forward, or set right again, is noticed
within a second.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from ledgers.clock import Clock

NAP_MS_MAX = 1_000
"""Longest single wait, so that a wall clock set forward is noticed."""


class TickAlarm:
    """The alarm of a live window. Needs a running event loop; close it when the window ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()

    async def until(self, ts_ms: int) -> None:
        """Return once wall time has come to `ts_ms`, at once when it is past."""
        while (now_ms := self._clock.now_ms()) < ts_ms:
            await self._nap(min(ts_ms, now_ms + NAP_MS_MAX))

    async def _nap(self, ts_ms: int) -> None:
        rung = asyncio.Event()

        async def ring() -> None:
            rung.set()

        when = DateTrigger(datetime.fromtimestamp(ts_ms / 1_000, UTC))
        job = self._scheduler.add_job(ring, when, misfire_grace_time=None)
        try:
            await self._clock.within(NAP_MS_MAX, rung.wait())
        except TimeoutError:
            pass  # the wall clock was moved meanwhile; whoever waits looks at it again
        finally:
            if not rung.is_set():
                with suppress(JobLookupError):
                    job.remove()

    def close(self) -> None:
        """Forget every wait."""
        self._scheduler.shutdown(wait=False)
