"""The writer: one thread that commits many waiting jobs in one transaction.

A job's await returns after the commit that holds it. A job that fails, fails alone: when a shared transaction breaks,
it is rolled back and every job of it is tried again by itself.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ledgers.errors import RefereeError, StoreFault

T = TypeVar("T")
GROUP_MAX = 512
"""Most jobs in one transaction, so that the first of them does not wait for ever."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """Work for the writer thread, and where its outcome goes."""

    work: Callable[[], T]
    """Stages its writes in the transaction that is open in the writer thread."""
    settle: Callable[[Job[T]], None]
    """Called in the writer thread once the outcome is known."""
    result: T | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class Writer:
    """The thread. `commit` runs a group inside one transaction and returns after it is durable, or raises."""

    commit: Callable[[Sequence[Job]], None]
    _jobs: queue.SimpleQueue[Job | None] = field(default_factory=queue.SimpleQueue)
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="journal-writer", daemon=True)
        self._thread.start()

    async def written(self, work: Callable[[], T]) -> T:
        """Hand work over and return its result after the commit. Raises: what the work or the commit raised."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        self._put(Job(work, lambda job: _wake(loop, waiter, job)))
        return await waiter

    def written_now(self, work: Callable[[], T]) -> T:
        """The same for a caller that may block."""
        waiter: Future[T] = Future()
        self._put(Job(work, lambda job: _resolve(waiter, job)))
        return waiter.result()

    def close(self) -> None:
        """Commit what waits, then end the thread."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()

    def _put(self, job: Job) -> None:
        with self._gate:
            if self._closed:
                raise StoreFault("the store is closed; nothing was written")
            self._jobs.put(job)

    def _serve(self) -> None:
        open_ = True
        while open_:
            group, open_ = self._next_group()
            self._run(group)
            for job in group:
                job.settle(job)

    def _next_group(self) -> tuple[list[Job], bool]:
        group: list[Job] = []
        job = self._jobs.get()
        while job is not None:
            group.append(job)
            if len(group) == GROUP_MAX or self._jobs.empty():
                return group, True
            job = self._jobs.get()
        return group, False

    def _run(self, group: Sequence[Job]) -> None:
        if not group:
            return
        try:
            self.commit(group)
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
                return
            for job in group:
                self._run([job])


def run_job(job: Job) -> None:
    """Run one job of an open transaction; a refusal or bad value stays its own."""
    job.result = job.error = None
    try:
        job.result = job.work()
    except (RefereeError, ValueError, TypeError) as error:
        job.error = error


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[T], job: Job[T]) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, waiter, job)
    except RuntimeError:  # the loop closed while we wrote: nobody waits any more
        pass


def _resolve(waiter: asyncio.Future[T] | Future[T], job: Job[T]) -> None:
    if waiter.done():
        return
    if job.error is not None:
        waiter.set_exception(job.error)
    else:
        waiter.set_result(job.result)  # type: ignore[arg-type]
