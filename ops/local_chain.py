"""The local chain alone: `referee devnet up|status|down`."""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO

from chain.devnet import process
from chain.devnet.standing import BUILDING, DEAD, Standing
from ledgers.clock import SystemClock
from ops.settings import Settings

SEED = 7
"""The seed of a chain that is brought up by hand; a window brings its own."""

Answer = tuple[str, dict[str, object], bool]
"""Text, data, and whether a chain that should be there is dead."""


def steer(settings: Settings, action: str) -> Answer:
    """Bring the home's local chain up or down, or look at it. Raises: ChainFault."""
    if action == "up":
        return _described(_up(settings))
    if action == "down":
        ended = asyncio.run(process.down(settings.home, clock=SystemClock()))
        text = "the local chain is down" if ended else "no local chain was running"
        return text, {"phase": "down", "was_running": ended}, False
    return _described(process.status(settings.home))


def _up(settings: Settings) -> Standing:
    progress = ProgressLine(sys.stderr)
    try:
        return asyncio.run(process.up(settings.home, clock=SystemClock(), seed=SEED, progress=progress))
    finally:
        progress.end()


class ProgressLine:
    """One line on stderr that tells how far a chain being built is, and goes away; silent without a terminal."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._shown = False

    def __call__(self, height: int, target: int) -> None:
        if self._file.isatty():
            self._shown = True
            self._file.write(f"\r\x1b[Klocal chain: block {height} of {target}")
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
