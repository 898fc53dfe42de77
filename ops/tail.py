"""The tail: whoever watches a window reads its journal from behind, so that watching cannot disturb it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ledgers.clock import Clock
from ledgers.events import Event
from ledgers.journal import SEAL, Journal, Record
from referee.onchain.state import decoded

POLL_MS = 250

Seen = tuple[Record, Event]
Watcher = Callable[[Sequence[Seen]], None]
"""Is called with what is new, once, and at every poll with nothing, so that a shown clock goes on."""


async def follow(journal: Journal, clock: Clock, watchers: Sequence[Watcher], after_seq: int = 0) -> None:
    """Tell the watchers what is appended, until the window is sealed or the task is cancelled; the rest is told then.

    Raises: CorruptJournal when a record does not decode; whatever a watcher raises, which is then told nothing again."""
    seq = after_seq
    while True:
        seq, sealed = tell(journal, watchers, seq)
        if sealed:
            return
        try:
            await clock.sleep_until(clock.now_ms() + POLL_MS)
        except asyncio.CancelledError:
            tell(journal, watchers, seq)
            raise


def tell(journal: Journal, watchers: Sequence[Watcher], after_seq: int) -> tuple[int, bool]:
    """Tell the watchers what follows a seq. Returns: the last seq, and whether it is the seal."""
    seen = [(record, decoded(record)) for record in journal.read(after_seq)]
    for watcher in watchers:
        watcher(seen)
    return (seen[-1][0].seq, seen[-1][0].kind == SEAL) if seen else (after_seq, False)
