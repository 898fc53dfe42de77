"""The owner: the background process that holds a local chain and lets its market run in real time.

Block k is due at `anchor + k · block time`, so that chain time and wall time stay a constant apart; after a stall the
missed blocks are played at once. When the node dies the owner says so in the standing and ends; nothing is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chain.devnet import standing
from chain.devnet.devnet import Devnet
from chain.devnet.node import Refused
from chain.devnet.prices import read_tape
from chain.devnet.standing import BUILDING, DEAD, LIVE, Standing
from ledgers.clock import Clock, SystemClock
from ledgers.errors import ChainFault

HISTORY_BLOCKS = 60
"""Blocks of market before a fresh chain is ready, so that there is a history to read."""
WRITE_BLOCKS = 10
"""How often the height is written down."""
STALL_BLOCKS_MAX = 7_200
"""A longer stall moves the anchor instead of being made up."""
AHEAD_BLOCKS_MAX = 5
"""Further ahead than this it can only be because the wall clock was set back: the anchor moves."""
WAIT_BLOCKS = 2
"""The longest wait for one block, in block times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which chain is to be held."""

    folder: Path
    seed: int
    block_time_ms: int
    anchor_ms: int | None
    """None: the chain is ready now and its block 0 lies as far back as it must."""
    min_height: int
    tape: Path | None
    of_window: bool


async def own(wanted: Wanted, clock: Clock) -> None:
    """Build the chain and let it run until told to stop. Raises: ChainFault when it cannot be built or dies."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    tape = read_tape(wanted.tape.read_text()) if wanted.tape else None
    with standing.ownership(wanted.folder) as holds:
        standing.write(wanted.folder, announced(wanted))
        chain = Devnet.build(wanted.seed, block_time_ms=wanted.block_time_ms, tape=tape, pid_file=wanted.folder / "node.pid")
        try:
            with chain.rival() as rival:
                held = replace(first_standing(chain, wanted, clock), rival_url=rival.url)
                await live(chain, held, wanted.folder, clock, stopping, holds)
        finally:
            chain.close()
        if holds():
            standing.forget(wanted.folder)


def announced(wanted: Wanted) -> Standing:
    """What is known before the node is up: that it is being built, by whom and for whom."""
    return Standing(
        phase=BUILDING,
        reason="",
        url="",
        owner_pid=os.getpid(),
        node_pid=0,
        seed=wanted.seed,
        block_time_ms=wanted.block_time_ms,
        anchor_ms=wanted.anchor_ms or 0,
        block0_hash="",
        height=0,
        target_block=max(wanted.min_height, HISTORY_BLOCKS),
        of_window=wanted.of_window,
    )


def first_standing(chain: Devnet, wanted: Wanted, clock: Clock) -> Standing:
    """Where the chain will be ready: at the block that is due, but never below the wanted one."""
    due = due_block(clock.now_ms(), wanted.anchor_ms, wanted.block_time_ms) if wanted.anchor_ms is not None else 0
    oldest = max(wanted.min_height, chain.height + HISTORY_BLOCKS)
    target = due if oldest < due <= oldest + STALL_BLOCKS_MAX else oldest
    return replace(
        announced(wanted),
        url=chain.url,
        node_pid=chain.node.pid,
        anchor_ms=wanted.anchor_ms if wanted.anchor_ms is not None and due <= oldest + STALL_BLOCKS_MAX else 0,
        block0_hash=chain.block_hash(0),
        height=chain.height,
        target_block=target,
    )


def due_block(now_ms: int, anchor_ms: int, block_time_ms: int) -> int:
    """The newest block whose time has come."""
    return (now_ms - anchor_ms) // block_time_ms


async def live(chain: Devnet, held: Standing, folder: Path, clock: Clock, stopping: asyncio.Event, holds: Callable[[], bool]) -> None:
    """Play up to the target, then block after block when it is due. Raises: ChainFault when it dies, or its folder is removed."""
    try:
        standing.write(folder, held)
        held = await caught_up(chain, held, folder, clock, stopping, holds)
        if stopping.is_set():
            return
        held = replace(held, phase=LIVE, anchor_ms=held.anchor_ms or clock.now_ms() - chain.height * held.block_time_ms)
        standing.write(folder, replace(held, height=chain.height))
        while not stopping.is_set():
            check_ownership(holds)
            held = await next_block(chain, held, folder, clock, stopping)
    except (ChainFault, Refused) as fault:
        reason = fault.reason if isinstance(fault, ChainFault) else "refused"
        if holds():
            standing.write(folder, replace(held, phase=DEAD, reason=reason, height=chain.height))
        raise


async def caught_up(chain: Devnet, held: Standing, folder: Path, clock: Clock, stopping: asyncio.Event, holds: Callable[[], bool]) -> Standing:
    """Play up to the target, and on to the block that became due meanwhile, as long as the backlog shrinks.

    A chain that lives has none: its clock is measured by its newest block."""
    backlog: int | None = None
    while not stopping.is_set():
        if chain.height < held.target_block:
            check_ownership(holds)
            await play(chain, held, folder)
            continue
        behind = due_block(clock.now_ms(), held.anchor_ms, held.block_time_ms) - chain.height if held.anchor_ms else 0
        if behind <= 0 or backlog is not None and behind >= backlog:
            break
        backlog, held = behind, replace(held, target_block=chain.height + behind)
        standing.write(folder, replace(held, height=chain.height))
    return held


def check_ownership(holds: Callable[[], bool]) -> None:
    """Look whether the folder is still ours; what is written there may be another chain's by now. Raises: ChainFault("owned")."""
    if not holds():
        raise ChainFault("owned", "the folder of this chain was removed")


async def next_block(chain: Devnet, held: Standing, folder: Path, clock: Clock, stopping: asyncio.Event) -> Standing:
    """Wait for the next block's time, and play it; a stop or a clock that was set back ends the wait."""
    moved = anchored(held, chain.height, clock.now_ms())
    if moved != held:
        standing.write(folder, replace(moved, height=chain.height))
    due_ms = moved.anchor_ms + (chain.height + 1) * moved.block_time_ms
    waiting = [asyncio.ensure_future(clock.sleep_until(due_ms)), asyncio.ensure_future(stopping.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_BLOCKS * moved.block_time_ms / 1_000)
    for task in waiting:
        task.cancel()
    if not stopping.is_set() and clock.now_ms() >= due_ms:
        await play(chain, moved, folder)
    return moved


def anchored(held: Standing, height: int, now_ms: int) -> Standing:
    """The standing with its anchor, moved when the chain is too far behind to catch up, or when time went back."""
    behind = due_block(now_ms, held.anchor_ms, held.block_time_ms) - height
    if -AHEAD_BLOCKS_MAX <= behind <= STALL_BLOCKS_MAX:
        return held
    return replace(held, anchor_ms=held.anchor_ms + behind * held.block_time_ms)


async def play(chain: Devnet, held: Standing, folder: Path) -> None:
    """One block of market."""
    chain.step()
    if chain.height % WRITE_BLOCKS == 0:
        standing.write(folder, replace(held, height=chain.height))
    await asyncio.sleep(0)


def main(arguments: list[str]) -> int:
    """Hold one chain; started by `chain.devnet.process`, never by hand."""
    parser = argparse.ArgumentParser(prog="chain.devnet.owner")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--block-time-ms", type=int, required=True)
    parser.add_argument("--anchor-ms", type=int)
    parser.add_argument("--min-height", type=int, default=0)
    parser.add_argument("--tape", type=Path)
    parser.add_argument("--of-window", action="store_true")
    wanted = Wanted(**vars(parser.parse_args(arguments)))
    try:
        asyncio.run(own(wanted, SystemClock()))
    except (ChainFault, Refused, ValueError, OSError) as fault:
        print((fault.message if isinstance(fault, ChainFault) else "") or fault, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
