"""The local chain alone: `referee devnet up|status|down`."""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO

from chain.devnet import process
from chain.devnet.standing import BUILDING, DEAD, Standing
from ledgers.clock import SystemClock
from ledgers.errors import StoreFault
from ledgers.lock import StoreLock
from ledgers.store import Store
from ops.reading import newest
from ops.settings import Settings

SEED = 7
"""The seed of a chain that is brought up by hand; a window brings its own."""

TOLD_BLOCKS = 250
"""How many blocks a building without a terminal goes on between two lines."""

Answer = tuple[str, dict[str, object], bool]
"""Text, data, and whether a chain that should be there is dead."""


def steer(settings: Settings, action: str) -> Answer:
    """Bring the home's local chain up or down, or look at it. Raises: ChainFault; StoreFault when a window stands on it."""
    if action == "up":
        found = process.status(settings.home)
        if found is None or found.phase == DEAD:
            refuse_in_use(settings, "its chain is built by that window")
        return _described(_up(settings))
    if action == "down":
        refuse_in_use(settings, "its chain was left as it is")
        ended = asyncio.run(process.down(settings.home, clock=SystemClock()))
        text = "the local chain is down" if ended else "no local chain was running"
        return text, {"phase": "down", "was_running": ended}, False
    return _described(process.status(settings.home))


def refuse_in_use(settings: Settings, so: str) -> None:
    """Leave a chain alone while a process plays a window on it. Raises: StoreFault naming both."""
    holder = StoreLock.holder(settings.store_path)
    if holder:
        raise StoreFault(f"this home is in use by {_window_played(settings)}, process {holder}: {so}; pause it with Ctrl-C (kill -INT {holder}) first")


def _window_played(settings: Settings) -> str:
    with Store(settings.store_path, exclusive=False) as store:
        return f"window {newest(names)}" if (names := store.window_ids()) else "a window that is opening"


def _up(settings: Settings) -> Standing:
    progress = ProgressLine(sys.stderr)
    try:
        return asyncio.run(process.up(settings.home, clock=SystemClock(), seed=SEED, progress=progress))
    finally:
        progress.end()


class ProgressLine:
    """One line on stderr that tells how far a chain being built is, and goes away; without a terminal a line now and then, of a long building only."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._shown = False
        self._told: int | None = None
        """The block that was told last without a terminal."""

    def __call__(self, height: int, target: int) -> None:
        if self._file.isatty():
            self._shown = True
            self._file.write(f"\r\x1b[Klocal chain: block {height} of {target}")
            self._file.flush()
        elif target - height >= TOLD_BLOCKS if self._told is None else height - self._told >= TOLD_BLOCKS:
            self._told = height
            self._file.write(f"local chain: block {height} of {target}\n")
            self._file.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._file.write("\r\x1b[K")
            self._file.flush()
            self._shown = False


def _described(found: Standing | None) -> Answer:
    if found is None:
        return "no local chain; `referee devnet up` starts one", {"phase": "none"}, False
    data = {
        "phase": found.phase,
        "reason": found.reason,
        "url": found.url,
        "seed": found.seed,
        "height": found.height,
        "target_block": found.target_block,
        "block_time_ms": found.block_time_ms,
        "block0_hash": found.block0_hash,
        "pid": found.owner_pid,
    }
    if found.alive:
        text = f"the local chain is up: block {found.height}, seed {found.seed}, a block every {found.block_time_ms} ms, at {found.url}"
    elif found.phase == BUILDING:
        text = f"the local chain is being built: block {found.height} of {found.target_block}"
    else:
        text = f"the local chain is dead ({found.reason}); a window that needs it builds it again, `referee devnet up` starts a fresh one"
    return text, data, found.phase == DEAD
