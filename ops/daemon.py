"""The daemon: plays one window of a home to its end, or to a pause.

The first Ctrl-C, SIGTERM or lost terminal pauses: nobody is woken any more, questions are given up, orders under way end,
and the pause is recorded. The second ends the process at once, as a kill would; a resume settles what is owed either way.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chain.devnet.process import Progress, nobody
from ledgers.clock import Clock
from ledgers.errors import RefereeError
from ledgers.journal import Journal, is_sealed
from ledgers.store import Store
from ops.assembly import code_sha256, held_store, live_window
from ops.checking import playable
from ops.collector import rest
from ops.drift import answered, record_drift
from ops.home_chain import HomeChain
from ops.settings import Settings
from referee.onchain.live import LiveWindow
from referee.onchain.opening import refuse_other_code
from referee.onchain.run import open_window, play_window, resume
from referee.onchain.state import WindowState, decoded, folded
from referee.onchain.tables import rows
from referee.onchain.window import Window, next_window_id, restored

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Beside = Callable[[LiveWindow], Awaitable[None]]
"""Runs beside a window and is cancelled when it ends."""


class NothingToResume(RefereeError):
    """There is no window that could be taken up again."""


@dataclass(frozen=True, slots=True)
class Played:
    """How playing ended."""

    window_id: str
    sealed: bool
    """False when an operator paused the window."""
    troubles: tuple[str, ...]
    """What went wrong beside the window; it never ends one."""


async def play_file(settings: Settings, path: Path, clock: Clock, *, besides: tuple[Beside, ...] = (), progress: Progress = nobody) -> Played:
    """Open a window from its file and play it. Raises: BadWindow, BadSettings, Fault, Refused; KeyboardInterrupt when ended at once."""
    window, _ = playable(settings, path, clock)
    with held_store(settings) as store:
        for text in left_alone(store, clock.now_ms()):
            print(f"referee: {text}", file=sys.stderr, flush=True)
        journal = store.journal(next_window_id(store.window_ids()))
        return await _play(settings, store, journal, window, clock, besides, progress, open_window)


async def play_on(
    settings: Settings, clock: Clock, *, window_id: str | None = None, accept_code_change: bool = False, besides: tuple[Beside, ...] = (), progress: Progress = nobody
) -> Played:
    """Take up the named window, else the last one that was not sealed. Raises: as `play_file`, and NothingToResume.

    A change of the code that nobody accepted is refused before anything is built."""
    if not settings.store_path.exists():
        raise NothingToResume(f"nothing has been run in {settings.home} yet; name a window file to play")
    with held_store(settings) as store:
        journal, state = unfinished(store, window_id)
        refuse_other_code(state, code_sha256(), accept_code_change)

        async def take_up(live: LiveWindow) -> None:
            await resume(live, accept_code_change=accept_code_change)

        return await _play(settings, store, journal, window_of(journal, state), clock, besides, progress, take_up)


def left_alone(store: Store, now_ms: int) -> Iterator[str]:
    """Name every window of a home that was begun and is not sealed, and what becomes of it while another is played."""
    for name in store.window_ids():
        journal = store.journal(name)
        if is_sealed(journal):
            continue
        state = folded(journal.read())
        if state.opened is None:
            continue
        left_s = (state.opened.close_ts_ms - now_ms) // 1_000
        when = f"its clock goes on and it closes in {left_s} s" if left_s > 0 else f"its window closed {-left_s} s ago and its runs are not liquidated"
        yield f"{name} is {'paused' if state.paused else 'not sealed'}: {when}; `referee run --resume {name}` takes it up, and it is left alone meanwhile"


def unfinished(store: Store, window_id: str | None) -> tuple[Journal, WindowState]:
    """Find the window to take up. Raises: NothingToResume, CorruptJournal."""
    known = store.window_ids()
    if not known:
        raise NothingToResume("nothing has been run in this home yet; name a window file to play")
    if window_id is not None and window_id not in known:
        raise NothingToResume(f"no window named {window_id[:80]!r} in this home")
    for name in [window_id] if window_id else sorted(known, key=lambda name: (len(name), name), reverse=True):
        journal = store.journal(name)
        state = folded(journal.read())
        if state.sealed is None:
            return journal, state
    raise NothingToResume(f"{window_id or 'every window of this home'} is sealed; there is nothing to resume, `referee report WINDOW` writes a report again")


def window_of(journal: Journal, state: WindowState) -> Window:
    """Rebuild a window from its journal. Raises: CorruptJournal."""
    assert state.opened is not None, f"{journal.window_id} has records but no opening"
    return restored(journal.blob(state.opened.window_file_sha256) or b"", journal.blob)


async def _play(
    settings: Settings, store: Store, journal: Journal, window: Window, clock: Clock, besides: tuple[Beside, ...], progress: Progress, begin: Beside
) -> Played:
    with heeding_signals() as signals:
        async with live_window(settings, window, journal, clock, progress) as (live, home_chain):
            live.tell = lambda text: print(f"referee: {text}", file=sys.stderr, flush=True)
            try:
                await begin(live)
                rest()
                await asyncio.to_thread(_write_tables, store, live)
                signals.pausing = live.pausing
                sealed, troubles = await _beside(live, home_chain, besides)
            finally:
                signals.ending = True
                if live.state.opened is not None:
                    _write_tables(store, live)
            if examined := [seat for seat in live.seats.values() if not seat.stack.exempt_from_exam]:
                found = answered(decoded(record) for record in journal.read())
                troubles += tuple(record_drift(settings, journal.window_id, examined, found, clock.now_ms()))
    return Played(journal.window_id, sealed, troubles)


async def _beside(live: LiveWindow, home_chain: HomeChain | None, besides: tuple[Beside, ...]) -> tuple[bool, tuple[str, ...]]:
    """Play, with everything that runs beside; what fails there is told at the end and never ends the window."""
    watch = [home_chain.watch(live.desk, live.state)] if home_chain else []
    tasks = [asyncio.ensure_future(work) for work in (*watch, *(beside(live) for beside in besides))]
    try:
        sealed = await play_window(live)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    return sealed, tuple(f"{type(end).__name__}: {end}" for end in ends if isinstance(end, Exception))


def _write_tables(store: Store, live: LiveWindow) -> None:
    events, root = live.journal.head()
    store.rebuild(live.window_id, rows(live.state, events, root))


@dataclass(slots=True)
class Signals:
    """What an operator's signals do: end the preparation, pause the play, end it at the second; the ending is left alone."""

    task: asyncio.Task
    pausing: asyncio.Event | None = None
    """Set by the first signal once the window plays."""
    ended: bool = False
    """A signal asked for the end at once."""
    ending: bool = False
    """What was begun is being taken down, within a bound."""

    def heard(self) -> None:
        if self.ended or self.ending:
            return
        if self.pausing is None or self.pausing.is_set():
            self.ended = True
            self.task.cancel()
        else:
            self.pausing.set()


@contextmanager
def heeding_signals() -> Iterator[Signals]:
    """Heed signals while a window is prepared, played and left. Raises: KeyboardInterrupt when one asked for the end at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    signals = Signals(task)
    heeded = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]  # nohup means it
    for number in heeded:
        loop.add_signal_handler(number, signals.heard)
    try:
        yield signals
    except asyncio.CancelledError:
        if signals.ended:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
