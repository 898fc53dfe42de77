"""The background chain of a home: started, looked at, ended, and brought back at the block where it must be.

`up` leaves a process that owns node and driver; `ensure` gives a run a living chain with its seed, rebuilding a dead
one by playing its seed again: same seed, same block hashes. Source: design §7.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from chain.devnet import standing
from chain.devnet.child import environment
from chain.devnet.devnet import BLOCK_TIME_MS
from chain.devnet.node import Line, end_orphan
from chain.devnet.standing import BUILDING, DEAD, LIVE, OWNER_MODULE, Standing, folder_of
from chain.devnet.toolchain import require
from ledgers.clock import Clock
from ledgers.errors import ChainFault

ROOT = Path(__file__).parents[2]
LOOK_MS = 25
QUIET_MS_MAX = 30_000
"""How long a chain being built may go without a new block before it is given up."""
BEHIND_BLOCKS_MAX = 3
"""A chain that is up and further behind its time than this has a stall to make up."""
END_MS_MAX = 5_000
ANSWER_S_MAX = 2

Progress = Callable[[int, int], None]
"""Told the newest block and the one that is aimed at."""


def nobody(_height: int, _target: int) -> None:
    """No progress is told."""


async def ensure(
    home: Path,
    *,
    clock: Clock,
    seed: int,
    min_height: int = 0,
    anchor_ms: int | None = None,
    block_time_ms: int = BLOCK_TIME_MS,
    tape: Path | None = None,
    of_window: bool = False,
    progress: Progress = nobody,
) -> Standing:
    """Return a living chain with this seed that has reached `min_height`: the one that is up, or one built now.

    A rebuilt chain goes on at the block that `anchor_ms` (else the dead chain's own anchor) says is due, never below
    `min_height`; one that is up is waited for while it makes up a stall. Raises: ChainFault: "seed" when another chain is up in this home, "toolchain", "dead"."""
    found = await _built(home, clock, progress)
    if found and found.alive:
        if (found.seed, found.block_time_ms) != (seed, block_time_ms):
            raise ChainFault(
                "seed",
                f"the local chain that is up has seed {found.seed} and a block every {found.block_time_ms} ms, wanted {seed} and {block_time_ms} ms; end it with `referee devnet down`",
            )
        if found.height >= min_height:
            return await _on_time(home, found, clock, progress)
    same = found is not None and (found.seed, found.block_time_ms) == (seed, block_time_ms)
    await down(home, clock=clock)
    anchor_ms = anchor_ms if anchor_ms is not None else found.anchor_ms or None if found and same else None
    wanted = {
        "--seed": seed,
        "--block-time-ms": block_time_ms,
        "--min-height": min_height,
        "--anchor-ms": anchor_ms,
        "--tape": tape and tape.resolve(),
        "--of-window": of_window or None,
    }
    try:
        return await _start(home, clock, wanted, progress)
    except ChainFault:
        other = await _built(home, clock, progress)  # another process may have begun one at the same moment
        if other and other.alive and (other.seed, other.block_time_ms) == (seed, block_time_ms) and other.height >= min_height:
            return other
        raise


async def up(
    home: Path, *, clock: Clock, seed: int = 7, block_time_ms: int = BLOCK_TIME_MS, tape: Path | None = None, progress: Progress = nobody
) -> Standing:
    """Start a fresh chain in the background, or return the one with this seed that is up. Raises: as `ensure`."""
    found = await _built(home, clock, progress)
    if found and not found.alive:
        await down(home, clock=clock)
    return await ensure(home, clock=clock, seed=seed, block_time_ms=block_time_ms, tape=tape, progress=progress)


def status(home: Path) -> Standing | None:
    """How the chain of this home is now; None when there is none. A dead one tells its reason."""
    folder = folder_of(home).resolve()
    written = standing.read(folder)
    if written is None or written.phase == DEAD:
        return written
    if not standing.owner_runs(written, folder):
        return replace(written, phase=DEAD, reason="its process is gone")
    if written.phase == BUILDING:
        return written
    height = _height(written.url)
    if height is None:
        return replace(written, phase=DEAD, reason="its node does not answer")
    return replace(written, height=height)


async def down(home: Path, *, clock: Clock) -> bool:
    """End the chain of this home with everything that belongs to it; say whether there was one."""
    folder = folder_of(home).resolve()
    written = standing.read(folder)
    running = written is not None and standing.owner_runs(written, folder)
    if written and running:
        os.kill(written.owner_pid, signal.SIGTERM)
        if not await _gone(written, folder, clock):
            os.kill(written.owner_pid, signal.SIGKILL)
    orphan = end_orphan(folder / "node.pid")
    standing.forget(folder)
    return running or orphan


async def _gone(written: Standing, folder: Path, clock: Clock) -> bool:
    for _ in range(END_MS_MAX // LOOK_MS):
        if not standing.owner_runs(written, folder):
            return True
        await clock.sleep_until(clock.now_ms() + LOOK_MS)
    return False


async def _start(home: Path, clock: Clock, wanted: dict[str, int | Path | None], progress: Progress) -> Standing:
    require()
    folder = folder_of(home).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        OWNER_MODULE,
        str(folder),
        *(text for flag, value in wanted.items() if value is not None for text in ((flag,) if value is True else (flag, str(value)))),
    ]
    with (folder / "owner.log").open("w") as log:
        owner = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment(python=True))
    return await _ready(owner, folder, clock, progress)


async def _ready(owner: subprocess.Popen, folder: Path, clock: Clock, progress: Progress) -> Standing:
    """Wait until the new owner says that its chain lives. Raises: ChainFault with what it said instead."""

    def written_by_it() -> Standing | None:
        written = standing.read(folder)
        return written if written and written.owner_pid == owner.pid else None

    try:
        await _until_built(written_by_it, lambda: owner.poll() is None, clock, progress)
        written = written_by_it()
        if written and written.phase == LIVE and owner.poll() is None:
            return written
    except BaseException:  # whoever waited for it was told to stop: nobody would ever end it
        owner.kill()
        owner.wait()
        raise
    gave_up = owner.poll() is None
    owner.kill()
    owner.wait()
    raise ChainFault("dead", f"the local chain did not come up: {_why(owner, folder, written, gave_up)}")


def _why(owner: subprocess.Popen, folder: Path, last: Standing | None, gave_up: bool) -> str:
    if gave_up:
        reached = "its process did not begin" if last is None else f"it stood at block {last.height}" if last.url else "its node did not come up"
        return f"{reached} for {QUIET_MS_MAX // 1_000} s; is the machine out of memory, or busy?"
    if owner.returncode < 0:
        return f"its process was ended by signal {-owner.returncode}"
    said = (folder / "owner.log").read_text(errors="replace").strip().splitlines()
    return said[-1][:300] if said else f"its process ended with code {owner.returncode} and said nothing"


async def _built(home: Path, clock: Clock, progress: Progress) -> Standing | None:
    """The chain of this home, after waiting for one that another process is building."""

    def building() -> bool:
        found = status(home)
        return found is not None and found.phase == BUILDING

    if building():
        await _until_built(lambda: standing.read(folder_of(home).resolve()), building, clock, progress)
    return status(home)


async def _on_time(home: Path, found: Standing, clock: Clock, progress: Progress) -> Standing:
    """The chain once it has made up what it missed while its machine stood still: until then its newest block tells a wrong time.

    Raises: ChainFault("dead") when it stops on the way."""
    seen, since_ms = -1, clock.monotonic_ms()
    while (behind := (clock.now_ms() - found.anchor_ms) // found.block_time_ms - found.height) > BEHIND_BLOCKS_MAX:
        if found.height != seen:
            seen, since_ms = found.height, clock.monotonic_ms()
            progress(found.height, found.height + behind)
        if clock.monotonic_ms() - since_ms >= QUIET_MS_MAX:
            raise ChainFault("dead", f"the local chain stands at block {found.height} and {behind} more are due; end it with `referee devnet down`")
        await clock.sleep_until(clock.now_ms() + LOOK_MS)
        now = await asyncio.to_thread(status, home)
        if now is None or not now.alive:
            raise ChainFault("dead", "the local chain died while it made up what it had missed")
        found = now
    return found


async def _until_built(written: Callable[[], Standing | None], goes_on: Callable[[], bool], clock: Clock, progress: Progress) -> None:
    """Wait while a chain is being built, its builder lives, and blocks keep coming."""
    seen, since_ms = -1, clock.monotonic_ms()
    while goes_on() and clock.monotonic_ms() - since_ms < QUIET_MS_MAX:
        found = written()
        if found and found.phase != BUILDING:
            return
        if found and found.height != seen:
            seen, since_ms = found.height, clock.monotonic_ms()
            if found.url:  # before that only its owner is known
                progress(found.height, found.target_block)
        await clock.sleep_until(clock.now_ms() + LOOK_MS)


def _height(url: str) -> int | None:
    """Ask a node for its newest block; None when it does not answer."""
    try:
        return int(Line(urlsplit(url).port or 0, ANSWER_S_MAX).call("eth_blockNumber", []), 16)
    except ChainFault:
        return None
