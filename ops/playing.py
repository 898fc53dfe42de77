"""Playing: a window as a person starts it, watches it, and gets its report."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ledgers.clock import Clock, SystemClock
from ledgers.report import Report
from ledgers.store import Store
from ops.assembly import network_named, seats
from ops.daemon import Played, play_file, play_on
from ops.lines import counted
from ops.local_chain import ProgressLine
from ops.metrics import Metrics, serve
from ops.models import Models
from ops.reporting import write_report
from ops.settings import Settings
from ops.tail import Seen, follow
from ops.view import Screen, screen_for
from referee.onchain.cadence import ticks_in
from referee.onchain.live import LiveWindow
from referee.onchain.window import Window, load_window

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
    with _served(metrics, asked.metrics_port):
        played = asyncio.run(_play(settings, asked, clock, metrics))
    for trouble in played.troubles:
        print(f"referee: beside the window: {trouble}", file=sys.stderr)
    if not played.sealed:
        print(f"{played.window_id} is paused, its clock goes on; `referee run --resume` takes it up again")
        return False
    report, paths = finished(settings, played.window_id)
    print(f"\n{report.text()}")
    print(f"written to {paths[0].parent}: {', '.join(path.name for path in paths)}")
    return True


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
    try:
        with screen_for(live.journal, clock, live.state.resumed_ts_ms or 0, sys.stdout, asked.plain, os.environ) as screen:
            await follow(live.journal, clock, [lambda seen: _tell(live, screen, seen), metrics.see])
    except Exception as error:
        print(f"referee: the view failed ({type(error).__name__}); the window goes on without it", file=sys.stderr)
        raise


def _tell(live: LiveWindow, screen: Screen, seen: Sequence[Seen]) -> None:
    if live.pausing.is_set():
        screen.remark(PAUSING)
    screen.see(seen)


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


def checked(settings: Settings, path: Path) -> tuple[str, dict[str, object]]:
    """Say what a window file would play. Raises: BadWindow."""
    window = load_window(path)
    network = network_named(window.network)
    places = seats(window, "w0", Models(settings, SystemClock()))
    ticks = ticks_in(window.length_ms, window.interval_ms)
    text = (
        f"{path.name} can be played: {counted(len(places), 'run')} of {counted(len(window.stacks), 'stack')} on {network.label}, "
        f"{counted(ticks, 'tick')} every {window.interval_ms // 1_000} s, for {window.length_ms // 1_000} s\nwindow file sha256 {window.sha256}"
    )
    return text, _window_data(window, network.label, ticks, {seat.stack.name: seat.stack.sha256 for seat in places.values()})


def _window_data(window: Window, label: str, ticks: int, stacks: dict[str, str]) -> dict[str, object]:
    return {
        "name": window.name,
        "network": window.network,
        "label": label,
        "length_s": window.length_ms // 1_000,
        "interval_s": window.interval_ms // 1_000,
        "ticks": ticks,
        "board": window.board,
        "rules": window.rules,
        "seed": window.seed,
        "window_file_sha256": window.sha256,
        "stacks": [{"name": stack.name, "copies": stack.copies, "sha256": stacks[stack.name]} for stack in window.stacks],
    }
