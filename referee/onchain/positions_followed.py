"""The positions followed: what real swaps left them, block by block, as the pool's own logs tell (ONC-21).

Positions that one ledger of a run has in one pool earn side by side and dilute each other. They are carried on from the block that
the journal counted them up to, so that a process that takes a window up again goes on where it ended: from the paths it still
knows, else from the pool as it was at that block, else from the opening. Source: 001 §5.10; design §4, "restart = replay".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chain.header import Header, header_of, header_request
from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.reading import BEGUN_REORG, Followed, follow, read_path
from chain.network import Network
from chain.pools import Pool
from chain.rpc import RpcDoor
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw
from referee.onchain.liquidity_events import LiquidityAccrued
from referee.onchain.position import Accrued, Position, pool_of

PATHS_KEPT = 8
"""Former states of a pool's path, to go back to when a block is lost."""


@dataclass(frozen=True, slots=True)
class Track:
    """A pool's path and whose positions are on it, in their order."""

    ids: tuple[str, ...]
    path: PoolPath

    def papers(self, positions: Sequence[Position]) -> list[PaperPosition] | None:
        """These positions as they are on the path; None unless it has all of them exactly as the journal counted them."""
        known = dict(zip(self.ids, self.path.positions, strict=True))
        found = [known[position.id] for position in positions if position.id in known]
        exact = len(found) == len(positions) and all(_paper(position) == paper for position, paper in zip(positions, found, strict=True))
        return found if exact and all(position.block == self.path.block for position in positions) else None


@dataclass(slots=True)
class Follower:
    """Carries paper positions along the real swaps of their pools."""

    rpc: RpcDoor
    network: Network
    _tracks: dict[tuple[str, str], list[Track]] = field(default_factory=dict)
    """Newest first, by run and pool."""

    async def to(self, run_id: str, ledgers: tuple[str, ...], positions: Sequence[Position], header: Header, ts_ms: int) -> Accrued:
        """Carry one ledger's positions of one pool on to a block.

        Raises: ChainFault; `behind` when they are already counted beyond it, and what the logs cannot be healed of."""
        pool = pool_of(positions[0])
        if beyond := [position for position in positions if position.block > header.block]:
            raise ChainFault("behind", f"position {beyond[0].id} is counted up to block {beyond[0].block}, asked was block {header.block}")
        walk = _Walk(self.rpc, self.network, pool, run_id, ledgers, ts_ms, self._tracks.setdefault((run_id, pool.key), []))
        return await walk.over(positions, header)


class _Walk:
    """One carrying on: from the earliest block that any of the positions is counted up to, taking the others in where theirs come."""

    def __init__(self, rpc: RpcDoor, network: Network, pool: Pool, run_id: str, ledgers: tuple[str, ...], ts_ms: int, tracks: list[Track]) -> None:
        self._rpc, self._network, self._pool, self._run_id, self._ledgers, self._ts_ms, self._tracks = rpc, network, pool, run_id, ledgers, ts_ms, tracks
        self._accrued = Accrued()
        self._counted: dict[str, int] = {}
        """Last block that each position's events count in."""
        self._lost: set[str] = set()
        """Positions that begin anew, since the block they were counted up to is gone."""

    async def over(self, positions: Sequence[Position], header: Header) -> Accrued:
        left = sorted(positions, key=lambda position: position.block)
        first = [position for position in left if position.block == left[0].block]
        track = self._known(first)
        if track is None:
            left = await self._on_this_chain(left)
            first = [position for position in left if position.block == left[0].block]
            track = Track((), await read_path(self._rpc, self._network, self._pool, await self._header(first[0].block, header)))
            track = self._joined(track, first)
        self._counted |= {position.id: position.block for position in first}
        for position in left[len(first) :]:
            if position.block > track.path.block:
                track = await self._carried(track, await self._header(position.block, header))
            track = self._joined(track, [position])
            self._counted[position.id] = track.path.block
        if track.path.block < header.block:
            track = await self._carried(track, header)
        self._keep(track)
        self._accrued.fees_of = {name: paper.fees() for name, paper in zip(track.ids, track.path.positions, strict=True)}
        self._accrued.price_of = {self._pool.key: track.path.sqrt_price_x96}
        return self._accrued

    def _known(self, positions: Sequence[Position]) -> Track | None:
        for track in self._tracks:
            if papers := track.papers(positions):
                path = track.path.copy()
                path.positions = [replace(paper) for paper in papers]
                return Track(tuple(position.id for position in positions), path)
        return None

    async def _on_this_chain(self, positions: Sequence[Position]) -> list[Position]:
        """Positions as the chain now has them: one whose counted block is gone begins again at its opening. Sorted by block."""
        found = []
        for position in positions:
            (answer,) = await self._rpc.batch([header_request(position.block)])
            if header_of(answer, position.block).block_hash != position.block_hash:
                self._lost.add(position.id)
                position = replace(position, block=position.opened_block, growth_x128=(0, 0))
            found.append(position)
        return sorted(found, key=lambda position: position.block)

    async def _header(self, block: int, header: Header) -> Header:
        if block == header.block:
            return header
        (answer,) = await self._rpc.batch([header_request(block)])
        return header_of(answer, block)

    async def _carried(self, track: Track, header: Header) -> Track:
        earlier = [known.path for known in self._tracks if known.ids == track.ids and known.path.block < track.path.block]
        followed = await follow(self._rpc, self._network, self._pool, track.path, header, earlier)
        digest = sha256_hex(followed.logs_bytes)
        self._accrued.blobs[digest] = followed.logs_bytes
        done = Track(track.ids, followed.path)
        for name, paper in zip(done.ids, followed.path.positions, strict=True):
            self._accrued.events.append(self._event(name, paper, followed, digest))
            self._counted[name] = header.block
        self._lost.clear()
        return done

    def _event(self, name: str, paper: PaperPosition, followed: Followed, digest: str) -> LiquidityAccrued:
        fees = paper.fees()
        healed = followed.healed or (BEGUN_REORG if name in self._lost else "")
        return LiquidityAccrued(
            run_id=self._run_id, ts_ms=self._ts_ms, ledgers=self._ledgers, position=name, pool=self._pool.key,
            from_block=followed.from_block if healed else self._counted[name] + 1, to_block=followed.path.block,
            to_block_hash=followed.path.block_hash, swaps=followed.swaps, crossings=followed.crossings,
            growth0_x128=TokenRaw(paper.growth0_x128), growth1_x128=TokenRaw(paper.growth1_x128), fees0_raw=TokenRaw(fees[0]),
            fees1_raw=TokenRaw(fees[1]), healed=healed, logs_sha256=digest,
        )  # fmt: skip

    def _joined(self, track: Track, positions: Sequence[Position]) -> Track:
        path = track.path.copy()
        path.positions += [_paper(position) for position in positions]
        return Track((*track.ids, *(position.id for position in positions)), path)

    def _keep(self, track: Track) -> None:
        self._tracks.insert(0, track)
        del self._tracks[PATHS_KEPT:]


def _paper(position: Position) -> PaperPosition:
    return PaperPosition(
        lower=position.tick_lower, upper=position.tick_upper, liquidity=position.liquidity,
        growth0_x128=position.growth_x128[0], growth1_x128=position.growth_x128[1],
    )  # fmt: skip
