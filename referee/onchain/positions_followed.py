"""The positions followed: what real swaps left them, block by block, as the pool's own logs tell (ONC-21).

Positions that one ledger of a run has in one pool earn side by side and dilute each other. They are carried on from the block that
the journal counted them up to, so that a process that takes a window up again goes on where it ended: from a path it still knows,
else from the pool as the journal recorded it at the opening, since a node need not know old states. Source: 001 §5.10; design §4, "restart = replay".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from chain.header import Header, header_of, header_request
from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.reading import BEGUN_REORG, HEALABLE, REORGED, Followed, follow, read_path, replayed
from chain.liquidity.record import log_bytes, path_of
from chain.network import Network
from chain.pools import Pool
from chain.rpc import RpcDoor
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw
from referee.onchain.liquidity_events import LiquidityAccrued
from referee.onchain.position import Accrued, Position, pool_of

UNTOLD = ("refused", "pruned")
"""Faults of a node that does not know a block's state any more."""
PATHS_KEPT = 8
"""Former states of a pool's path, to go back to when a block is lost."""


def nothing(digest: str) -> bytes | None:
    """Recall nothing."""


@dataclass(frozen=True, slots=True)
class Track:
    """A pool's path and whose positions are on it, in their order."""

    who: tuple[tuple[str, int], ...]
    """Position and liquidity, which may differ between ledgers."""
    path: PoolPath


@dataclass(slots=True)
class Follower:
    """Carries paper positions along the real swaps of their pools."""

    rpc: RpcDoor
    network: Network
    recall: Callable[[str], bytes | None] = nothing
    """Finds a blob of the journal."""
    _tracks: dict[tuple[str, str], list[Track]] = field(default_factory=dict)
    """Newest first, by run and pool."""

    async def begin(self, run_id: str, pool: Pool, header: Header) -> PoolPath:
        """Read a pool as it is at a block, so that a position opened there can be followed. Raises: ChainFault."""
        walk = self._walk(run_id, (), pool, 0)
        path = await walk.now(header)
        walk.keep(Track((), path))
        return path

    async def to(self, run_id: str, ledgers: tuple[str, ...], positions: Sequence[Position], header: Header, ts_ms: int) -> Accrued:
        """Carry one ledger's positions of one pool on to a block.

        Raises: ChainFault; `behind` when they are already counted beyond it and it is no longer known how far they were there, and
        what the logs cannot be healed of."""
        walk = self._walk(run_id, ledgers, pool_of(positions[0]), ts_ms)
        return await (walk.back(positions, header) if any(position.block > header.block for position in positions) else walk.over(positions, header))

    def _walk(self, run_id: str, ledgers: tuple[str, ...], pool: Pool, ts_ms: int) -> _Walk:
        return _Walk(self, pool, run_id, ledgers, ts_ms, self._tracks.setdefault((run_id, pool.key), []))


class _Walk:
    """One carrying on: from the earliest block that any of the positions is counted up to, taking the others in where theirs come."""

    def __init__(self, follower: Follower, pool: Pool, run_id: str, ledgers: tuple[str, ...], ts_ms: int, tracks: list[Track]) -> None:
        self._rpc, self._network, self._recall = follower.rpc, follower.network, follower.recall
        self._pool, self._run_id, self._ledgers, self._ts_ms, self._tracks = pool, run_id, ledgers, ts_ms, tracks
        self._accrued = Accrued()
        self._counted: dict[str, int] = {}
        """Last block that each position's events count in."""
        self._lost: set[str] = set()
        """Positions that begin anew, since the block they were counted up to is gone."""
        self._unheld = False
        """Whether the path was carried on by logs alone since it was last held to what the pool says."""

    async def over(self, positions: Sequence[Position], header: Header) -> Accrued:
        """Carry positions on to a block; where the chain has lost blocks, from where they still stand on it."""
        try:
            return await self._walked(sorted(positions, key=lambda position: position.block), header, sure=False)
        except _Unsure:
            self._accrued, self._counted, self._unheld = Accrued(), {}, False
        return await self._walked(await self._on_this_chain(positions, header), header, sure=True)

    async def _walked(self, left: Sequence[Position], header: Header, sure: bool) -> Accrued:
        """From the earliest block on; `sure` when every block that is begun at has been found on the chain."""
        path = self._here(left[0])
        if path is None:
            if not sure:
                raise _Unsure
            left, path = await self._begun(left, header)
        track = Track((), path)
        for position in left:
            if position.block > track.path.block:
                track = await self._replayed(track, await self._header(position.block, header))
            if position.block_hash != track.path.block_hash:
                raise ChainFault(REORGED, f"block {position.block} of position {position.id} went while it was followed") if sure else _Unsure
            track = self._joined(track, position)
        joined, fresh = track, all(known.who != track.who for known in self._tracks)
        if track.path.block < header.block or self._unheld:
            track = await self._carried(track, header, sure)
        if fresh and not any(event.healed for event in self._accrued.events):
            self.keep(joined)  # an order of a decision may stand on the block of an opening after a mark stood on a later one
        self._begin_lost(track)
        self.keep(track)
        return self._read(track)

    async def _begun(self, left: Sequence[Position], header: Header) -> tuple[Sequence[Position], PoolPath]:
        """The pool where the earliest position begins. What is lost begins later where nobody tells the pool's state at its opening any
        more: at the next position, at last at the block that is asked for; what it earned until then is not known and not counted."""
        while True:
            first, *others = left
            try:
                return left, await self._then(await self._header(first.block, header), first.path_sha256)
            except ChainFault as fault:
                if fault.reason not in UNTOLD or first.id not in self._lost or first.block == header.block:
                    raise
            then = await self._header(others[0].block if others and others[0].block > first.block else header.block, header)
            left = sorted([replace(first, block=then.block, block_hash=then.block_hash), *others], key=lambda position: position.block)

    def _begin_lost(self, track: Track) -> None:
        """Record where a lost position begins again when nothing has been counted since."""
        begun = Followed(path=track.path, from_block=track.path.block + 1, swaps=0, crossings=0, healed=BEGUN_REORG, logs_bytes=log_bytes([]))
        for (name, _), paper in zip(track.who, track.path.positions, strict=True):
            if name in self._lost:
                self._record(name, paper, begun)

    def _read(self, track: Track) -> Accrued:
        self._accrued.fees_of = {name: paper.fees() for (name, _), paper in zip(track.who, track.path.positions, strict=True)}
        self._accrued.price_of = {self._pool.key: track.path.sqrt_price_x96}
        return self._accrued

    async def back(self, positions: Sequence[Position], header: Header) -> Accrued:
        """How far positions were at a block that they are already counted beyond: a pin may be older than one that came first."""
        who = sorted((position.id, position.liquidity) for position in positions)
        for track in self._tracks:
            if sorted(track.who) != who:
                continue
            if (track.path.block, track.path.block_hash) == (header.block, header.block_hash):
                return self._read(track)
            if track.path.block < header.block:
                followed = await follow(self._rpc, self._network, self._pool, track.path, header)
                if followed.healed != BEGUN_REORG:
                    return self._read(Track(track.who, followed.path))
        raise ChainFault("behind", f"position {who[0][0]} is counted beyond block {header.block}")

    async def now(self, header: Header) -> PoolPath:
        """The pool at the pinned block without any position: carried on from what is known of it, else read."""
        known = max((track.path for track in self._tracks if track.path.block <= header.block), key=lambda path: path.block, default=None)
        if known is not None:
            with suppress(ChainFault):
                return (await follow(self._rpc, self._network, self._pool, bare(known), header)).path
        return await read_path(self._rpc, self._network, self._pool, header)

    async def _then(self, header: Header, path_sha256: str) -> PoolPath:
        """The pool at an earlier block without any position: by logs from what is known or recorded of it on this chain, else read."""
        record = self._recall(path_sha256)
        known = [track.path for track in self._tracks] + ([path_of(record)] if record is not None else [])
        known = [path for path in known if path.block <= header.block]
        blocks = list({path.block for path in known})
        answers = dict(zip(blocks, await self._rpc.batch([header_request(block) for block in blocks]) if blocks else [], strict=True))
        here = [path for path in known if header_of(answers[path.block], path.block).block_hash == path.block_hash]
        if not here:
            return await read_path(self._rpc, self._network, self._pool, header)
        newest = bare(max(here, key=lambda path: path.block))
        if newest.block == header.block:
            return newest
        self._unheld = True
        return (await replayed(self._rpc, self._network, self._pool, newest, header))[0]

    def keep(self, track: Track) -> None:
        """Remember a path, so that the next walk begins there."""
        self._tracks.insert(0, track)
        del self._tracks[PATHS_KEPT:]

    def _here(self, position: Position) -> PoolPath | None:
        """A known path at the very block that a position is counted up to."""
        for track in self._tracks:
            if (track.path.block, track.path.block_hash) == (position.block, position.block_hash):
                return bare(track.path)
        return None

    async def _on_this_chain(self, positions: Sequence[Position], header: Header) -> list[Position]:
        """Positions as the chain now has them, by block: one whose counted block is gone begins again at its opening."""
        found = []
        for position in positions:
            if (await self._header(position.block, header)).block_hash != position.block_hash:
                self._lost.add(position.id)
                opening = await self._header(position.opened_block, header)
                position = replace(position, block=opening.block, block_hash=opening.block_hash, growth_x128=(0, 0))
            found.append(position)
        return sorted(found, key=lambda position: position.block)

    async def _header(self, block: int, header: Header) -> Header:
        if block == header.block:
            return header
        (answer,) = await self._rpc.batch([header_request(block)])
        return header_of(answer, block)

    async def _carried(self, track: Track, header: Header, sure: bool) -> Track:
        """On to the block that is asked for, held to what the pool says there."""
        earlier = [known.path for known in self._tracks if known.who == track.who and known.path.block < track.path.block]
        try:
            followed = await follow(self._rpc, self._network, self._pool, track.path, header, earlier)
        except ChainFault as fault:
            if sure or fault.reason not in (*HEALABLE, *UNTOLD):
                raise
            raise _Unsure from None
        if followed.healed == BEGUN_REORG and not sure:
            raise _Unsure
        self._count(track, followed)
        return Track(track.who, followed.path)

    async def _replayed(self, track: Track, header: Header) -> Track:
        """On to where another position comes in; what is missing shows at the end."""
        self._unheld = True
        path, logs = await replayed(self._rpc, self._network, self._pool, track.path, header)
        self._count(track, Followed(
            path=path, from_block=track.path.block + 1, swaps=path.swaps - track.path.swaps,
            crossings=path.crossings - track.path.crossings, healed="", logs_bytes=log_bytes(logs),
        ))  # fmt: skip
        return Track(track.who, path)

    def _count(self, track: Track, followed: Followed) -> None:
        for (name, _), paper in zip(track.who, followed.path.positions, strict=True):
            if followed.path.block > self._counted[name] or followed.healed:
                self._record(name, paper, followed)

    def _record(self, name: str, paper: PaperPosition, followed: Followed) -> None:
        digest = sha256_hex(followed.logs_bytes)
        self._accrued.blobs[digest] = followed.logs_bytes
        self._accrued.events.append(self._event(name, paper, followed, digest))
        self._counted[name] = followed.path.block
        self._lost.discard(name)

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

    def _joined(self, track: Track, position: Position) -> Track:
        path = track.path.copy()
        path.positions.append(_paper(position))
        self._counted[position.id] = path.block
        return Track((*track.who, (position.id, position.liquidity)), path)


class _Unsure(Exception):
    """What was begun at may be of another chain."""


def bare(path: PoolPath) -> PoolPath:
    """The same path without positions, going on apart from it."""
    copied = path.copy()
    copied.positions = []
    return copied


def _paper(position: Position) -> PaperPosition:
    return PaperPosition(
        lower=position.tick_lower, upper=position.tick_upper, liquidity=position.liquidity,
        growth0_x128=position.growth_x128[0], growth1_x128=position.growth_x128[1],
    )  # fmt: skip
