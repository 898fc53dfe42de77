"""Playing: a window as a person starts it, watches it, and gets its report."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ledgers.clock import Clock, SystemClock
from ledgers.report import Report
from ledgers.store import Store
from ops.assembly import network_named
from ops.daemon import Played, play_file, play_on
from ops.local_chain import ProgressLine
from ops.metrics import Metrics, serve
from ops.reporting import write_report
from ops.rival_routers import LOCAL, strangers_to
from ops.width import text_width
from ops.settings import Settings
from ops.tail import Seen, follow
from ops.view import Screen, screen_for
from referee.onchain.live import LiveWindow
from referee.onchain.window import load_window

OUTPUT_CLOSED = "nobody reads the output any more; the window goes on, and its report is written as ever"
PAUSING = "pausing: nobody is woken any more, orders under way end (Ctrl-C again ends at once)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asked for."""

    file: Path | None
    """The window file; none to go on with an interrupted window."""
    window_id: str | None = None
    """The window to go on with; none for the last one."""
    accept_code_change: bool = False
    plain: bool = False
    metrics_port: int | None = None


def play(settings: Settings, asked: Asked) -> bool:
    """Play what was asked for, show it, and print and write its report; False when it was paused.

    Raises: whatever `play_file` and `play_on` do."""
    clock = SystemClock()
    metrics = Metrics(clock)
    _say_strangers(settings, asked)
    with _served(metrics, asked.metrics_port):
        played = asyncio.run(_play(settings, asked, clock, metrics))
    for trouble in played.troubles:
        print(f"referee: beside the window: {trouble}", file=sys.stderr)
    if not played.sealed:
        print(f"{played.window_id} is paused, its clock goes on; `referee run --resume` takes it up again")
        return False
    report, paths = finished(settings, played.window_id)
    print(f"\n{report.text(text_width())}")
    print(f"written to {paths[0].parent}: {', '.join(path.name for path in paths)}")
    return True


def _say_strangers(settings: Settings, asked: Asked) -> None:
    """Say once which rivals nobody will ask."""
    if asked.file is not None and (strangers := strangers_to(settings, network_named(load_window(asked.file).network))):
        print(f"referee: REFEREE_RIVALS names {', '.join(strangers)}, which the local chain does not know; it has {' and '.join(LOCAL)}", file=sys.stderr)


def finished(settings: Settings, window_id: str) -> tuple[Report, tuple[Path, ...]]:
    """Write the report of a window. Raises: StoreFault, CorruptJournal."""
    with Store(settings.store_path, exclusive=False) as store:
        return write_report(store.journal(window_id), settings.reports_path(window_id))


async def _play(settings: Settings, asked: Asked, clock: Clock, metrics: Metrics) -> Played:
    progress = ProgressLine(sys.stderr)

    async def watch(live: LiveWindow) -> None:
        progress.end()
        await _watch(live, clock, asked, metrics)

    try:
        if asked.file is not None:
            return await play_file(settings, asked.file, clock, besides=(watch,), progress=progress)
        accept = asked.accept_code_change
        return await play_on(settings, clock, window_id=asked.window_id, accept_code_change=accept, besides=(watch,), progress=progress)
    finally:
        progress.end()


async def _watch(live: LiveWindow, clock: Clock, asked: Asked, metrics: Metrics) -> None:
    """Show a window until it ends; a view that fails says so, and the window goes on without it."""
    metrics.lanes = lambda: [(state.lane.name, state) for state in live.desk.rpc.lanes]
    with screen_for(live.journal, clock, live.state.resumed_ts_ms or 0, sys.stdout, asked.plain, os.environ) as screen:
        await follow(live.journal, clock, [Showing(live.pausing, screen), metrics.see])


@dataclass(slots=True)
class Showing:
    """Shows what is new until the screen fails, or until whoever read it has gone; the window goes on either way."""

    pausing: asyncio.Event
    screen: Screen
    over: bool = False

    def __call__(self, seen: Sequence[Seen]) -> None:
        if self.over:
            return
        try:
            if self.pausing.is_set():
                self.screen.remark(PAUSING)
            self.screen.see(seen)
        except BrokenPipeError:
            self.over = True
            silence(sys.stdout)
            print(f"referee: {OUTPUT_CLOSED}", file=sys.stderr)
        except Exception as error:
            self.over = True
            print(f"referee: the view failed ({type(error).__name__}: {error}); the window goes on without it", file=sys.stderr)


def silence(stream: TextIO) -> None:
    """Let everything that is still written to a stream nobody reads any more go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _served(metrics: Metrics, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    stop = serve(metrics, port)
    try:
        yield
    finally:
        stop()
