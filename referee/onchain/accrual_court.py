"""The accrual court: what positions earned, walked again from the recorded pool through the recorded logs (ONC-21).

It needs the blobs that the journal names, so it sits where there is a store; an exported journal alone has none. What was read again
after a gap or a reorganisation begins where only the world knew, and is taken as recorded until its next opening.
Source: 001 §5.10; design §4, "restart = replay".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.record import logs_of, path_of
from chain.logs import Log
from ledgers.errors import ChainFault, Corrupt
from referee.onchain.events import Pin
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityOpened
from referee.onchain.position import Position
from referee.onchain.state import WindowState

T = TypeVar("T")
Same = Callable[[str, object, object], None]
"""Compares a field as recorded with the same computed again."""
Recall = Callable[[str], bytes | None]
"""Finds a blob of the journal."""
Walk = tuple[str, str, int, int, str]
"""Run, pool, first and last block, and the logs."""
Growth = tuple[int, int]
PATHS_KEPT = 32
"""Former states of a pool that a ledger may have stayed behind at."""


@dataclass(slots=True)
class AccrualCourt:
    """Hears what positions earned against the pool's own logs."""

    state: WindowState
    same: Same
    recall: Recall
    _pools: dict[tuple[str, str], dict[int, PoolPath]] = field(default_factory=dict)
    """Each run's pools as they are known, without positions, by block."""
    _walk: Walk | None = None
    _walked: dict[str, dict[str, Growth]] = field(default_factory=dict)
    """By ledger, what the last walk made of the positions on it."""

    def opened(self, event: LiquidityOpened) -> None:
        """Take in the pool as it was recorded where a position begins."""
        path = self._recorded("path_sha256", event.path_sha256, path_of)
        self.same("path", (path.block, path.block_hash), (event.pin.block, event.pin.block_hash))
        self._keep(event.run_id, event.pool, path)

    def accrued(self, event: LiquidityAccrued) -> None:
        """Walk the logs behind a growth again, with the positions that are beside it."""
        walk = (event.run_id, event.pool, event.from_block, event.to_block, event.logs_sha256)
        if walk != self._walk:
            self._walk, self._walked = walk, self._begun(event)
        for ledger, grown in self._walked.items():
            if ledger in event.ledgers and event.position in grown:
                self.same("growth", (int(event.growth0_x128), int(event.growth1_x128)), grown[event.position])

    def priced(self, position: Position, pin: Pin, sqrt_price_x96: int) -> None:
        """Hold the price that a position was closed or marked at to the pool's at that block, where it is known."""
        known = self._pools.get((run_of(position), position.pool), {}).get(pin.block)
        if known is not None and known.block_hash == pin.block_hash:
            self.same("sqrt_price_x96", sqrt_price_x96, known.sqrt_price_x96)

    def _begun(self, event: LiquidityAccrued) -> dict[str, dict[str, Growth]]:
        """Carry the pool over a walk's logs, once with the positions of each ledger."""
        if event.healed:
            self._pools.pop((event.run_id, event.pool), None)
            return {}
        known = self._pools.get((event.run_id, event.pool), {}).get(event.from_block - 1)
        first = self.state.books.of(event.run_id, event.ledgers[0]).position(event.position)
        if known is None or first is None or known.block_hash != first.block_hash:
            return {}
        logs = self._recorded("logs_sha256", event.logs_sha256, logs_of)
        return {ledger: self._carried(event, ledger, known.copy(), logs) for ledger in self.state.runs[event.run_id].opened.entry.ledgers}

    def _carried(self, event: LiquidityAccrued, ledger: str, path: PoolPath, logs: Sequence[Log]) -> dict[str, Growth]:
        beside = [position for position in self._open(event.run_id, ledger) if position.pool == event.pool and position.block == path.block]
        path.positions = [_paper(position) for position in beside]
        try:
            for log in logs:
                path.apply(log)
        except ChainFault as fault:
            self.same("logs", event.logs_sha256, fault.message)
        self.same("to_block", event.to_block, max(path.block, event.to_block))
        grown = {position.id: (paper.growth0_x128, paper.growth1_x128) for position, paper in zip(beside, path.positions, strict=True)}
        path.positions = []
        path.seal(event.to_block, event.to_block_hash)
        self._keep(event.run_id, event.pool, path)
        return grown

    def _keep(self, run_id: str, pool: str, path: PoolPath) -> None:
        kept = self._pools.setdefault((run_id, pool), {})
        kept[path.block] = path
        for block in sorted(kept)[:-PATHS_KEPT]:
            del kept[block]

    def _open(self, run_id: str, ledger: str) -> tuple[Position, ...]:
        return self.state.books.of(run_id, ledger).positions

    def _recorded(self, name: str, digest: str, read: Callable[[bytes], T]) -> T:
        record = self.recall(digest)
        if record is None:
            self.same(name, digest, "no such blob")
        assert record is not None
        try:
            return read(record)
        except Corrupt as error:
            self.same(name, digest, str(error))
            raise


def run_of(position: Position) -> str:
    """The run whose order opened a position."""
    return position.id.split("/")[0]


def _paper(position: Position) -> PaperPosition:
    return PaperPosition(
        lower=position.tick_lower, upper=position.tick_upper, liquidity=position.liquidity,
        growth0_x128=position.growth_x128[0], growth1_x128=position.growth_x128[1],
    )  # fmt: skip
