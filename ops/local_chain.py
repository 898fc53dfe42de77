"""The local chain alone: `referee devnet up|status|down`."""

from __future__ import annotations

import asyncio
import sys

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
        return _described(asyncio.run(process.up(settings.home, clock=SystemClock(), seed=SEED, progress=show_progress)))
    if action == "down":
        ended = asyncio.run(process.down(settings.home, clock=SystemClock()))
        text = "the local chain is down" if ended else "no local chain was running"
        return text, {"phase": "down", "was_running": ended}, False
    return _described(process.status(settings.home))


def show_progress(height: int, target: int) -> None:
    """Show on a terminal how far a chain being built is."""
    if sys.stderr.isatty():
        print(f"\rlocal chain: block {height} of {target}", end="\n" if height >= target else "", file=sys.stderr, flush=True)


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
