"""The local chain under a window: brought up with the window's seed, watched while it runs, built again when it dies.

Equal seeds give equal blocks, so a chain that died, or was never kept, is played again to the newest block that the
journal knows; fills then stand on the same hashes. Source: design §7.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from chain.devnet import process
from chain.devnet.process import Progress, nobody
from chain.devnet.standing import Standing
from chain.rpc import Lane
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from referee.onchain.board import Desk
from referee.onchain.state import WindowState

DEVNET = "devnet"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LOOK_MS = 1_000
"""How often a running window looks whether its chain lives."""


@dataclass(slots=True, kw_only=True)
class HomeChain:
    """The local chain of one home, for one window."""

    home: Path
    seed: int
    clock: Clock
    progress: Progress = nobody
    anchor_ms: int | None = field(default=None, init=False)
    """Wall time of block 0, as it was when the chain's clock was last measured."""

    async def up(self, state: WindowState) -> Lane:
        """Bring the chain up, at least as far as the journal knows it. Raises: ChainFault."""
        before = await self._standing()
        anchor_ms = None if before and before.seed == self.seed and before.anchor_ms else anchor_of(state, before)
        standing = await process.ensure(
            self.home, clock=self.clock, seed=self.seed, min_height=state.head_block + 1, anchor_ms=anchor_ms, of_window=True, progress=self.progress
        )
        self.anchor_ms = self.anchor_ms or standing.anchor_ms
        return Lane(DEVNET, standing.url)

    async def watch(self, desk: Desk, state: WindowState) -> None:
        """Look after the chain until cancelled: one that died is built again, and the desk is told where, and when its clock moved."""
        while True:
            await self.clock.sleep_until(self.clock.now_ms() + LOOK_MS)
            standing = await self._standing()
            try:
                if standing is None or not standing.alive:
                    desk.rpc.lanes[0].lane = await self.up(state)
                    desk.rpc.distrust()
                    standing = await self._standing()
            except ChainFault:
                continue
            if standing is not None and standing.alive:
                self.follow_clock(desk, standing)

    def follow_clock(self, desk: Desk, standing: Standing) -> None:
        """After a gap too long to be made up, or a wall clock set back, block 0 lies elsewhere in wall time: the desk's clock moves with it."""
        if self.anchor_ms is not None:
            desk.clock_offset_ms -= standing.anchor_ms - self.anchor_ms
        self.anchor_ms = standing.anchor_ms

    async def down(self) -> None:
        """End the chain if a window brought it up; one that a person brought up stays."""
        standing = await self._standing()
        if standing is not None and standing.of_window:
            await process.down(self.home, clock=self.clock)

    async def _standing(self) -> Standing | None:
        return await asyncio.to_thread(process.status, self.home)


def network_of(home: Path, url: str) -> str | None:
    """The local chain's network where an address is that of this home's own chain; else none."""
    parts, standing = urlsplit(url), process.status(home)
    own = standing is not None and standing.alive and parts.hostname in LOOPBACK and _port(parts) == urlsplit(standing.url).port
    return DEVNET if own else None


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None


def anchor_of(state: WindowState, found: Standing | None) -> int | None:
    """Wall time of block 0 as the window knew it, so that a rebuilt chain keeps its distance to wall time; none before."""
    opened = state.opened
    if opened is None:
        return None
    block_time_ms = found.block_time_ms if found else process.BLOCK_TIME_MS
    return opened.pin.block_ts_s * 1_000 - opened.clock_offset_ms - opened.pin.block * block_time_ms
