"""Reading: a pool's path from a node, carried on from its logs and believed only when it ends where the chain says it does.

A node may leave a log out, or its chain may be another one by now. What is missing shows: after every reading the path's price,
tick, liquidity and both fee growths must be what the pool says at that very block. A path that does not hold is read again from
an earlier one, at last from its opening.
Source: 001 §5.10 (ONC-21): a gap or reorganisation is noticed and healed before any mark uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chain.header import Header, header_of, header_request
from chain.liquidity.accrual import GAP, PoolPath
from chain.liquidity.carriers import shape_of
from chain.liquidity.moment import Call, Moment, map_of, moment_of, state_calls, tick_call, ticks_of_words, word_call, word_places
from chain.liquidity.pool_logs import TOPICS, V4
from chain.liquidity.record import log_bytes
from chain.logs import Log, LogFilter, read_logs
from chain.network import Network
from chain.pools import Pool, multicall_answer, multicall_request
from chain.rpc import RpcDoor
from ledgers.errors import ChainFault

T = TypeVar("T")

CALLS_IN_ONE = 500
"""View calls in one multicall."""
MULTICALLS_AT_ONCE = 4
"""In one round trip: some nodes refuse bodies of 2 MB."""
REORGED = "reorged"
BEGUN_GAP, BEGUN_REORG = "gap", "reorg"
"""What a path was healed of."""
HEALABLE = frozenset({GAP, REORGED, "bad_answer"})
"""Faults after which a path is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A path that holds at a block."""

    path: PoolPath
    from_block: int
    """First block that was read for it."""
    swaps: int
    """In the blocks read."""
    crossings: int
    """Of initialised ticks, in the blocks read."""
    healed: str
    """`gap` or `reorg` where something had to be read again; else empty."""
    logs_bytes: bytes
    """The logs read, as evidence: see `record`."""


async def read_path(rpc: RpcDoor, network: Network, pool: Pool, header: Header) -> PoolPath:
    """Read a pool with its whole tick map at a block, in two round trips or a few.

    Raises: ChainFault; `reorged` when the block is no longer the chain's, `bad_answer` when what is told does not fit together."""
    shape = _shape(pool)
    places = list(word_places(pool.tick_spacing))
    calls = [*state_calls(network, pool), *(word_call(network, pool, place) for place in places)]
    answers = await _view(rpc, network, calls, header)
    told, words = answers[: len(calls) - len(places)], answers[len(calls) - len(places) :]
    moment = moment_of(pool, shape, told)
    ticks = ticks_of_words(pool, zip(places, words, strict=True))
    of_ticks = await _view(rpc, network, [tick_call(network, pool, tick) for tick in ticks], header)
    return PoolPath(
        shape=shape,
        fee_ppm=pool.fee_ppm,
        sqrt_price_x96=moment.sqrt_price_x96,
        tick=moment.tick,
        liquidity=moment.liquidity,
        growth0_x128=moment.growth0_x128,
        growth1_x128=moment.growth1_x128,
        cut0=moment.cut0,
        cut1=moment.cut1,
        ticks=map_of(pool, moment, zip(ticks, of_ticks, strict=True)),
        block=header.block,
        block_hash=header.block_hash,
    )


async def follow(rpc: RpcDoor, network: Network, pool: Pool, path: PoolPath, header: Header, earlier: Sequence[PoolPath] = ()) -> Followed:
    """Carry a path on to a block. The path given stays as it is.

    Shapes: `earlier` are former states of the same path to go back to, newest first; its opening is the last.
    Raises: ChainFault; `liquidity_gap` when the logs cannot be made to end where the chain is, `reorged` when the block itself is gone."""
    healed, last = "", ""
    for start in _starts(path, earlier, header):
        try:
            followed = await _carried(rpc, network, pool, start, header)
            return replace(followed, healed=healed)
        except ChainFault as fault:
            if fault.reason not in HEALABLE or fault.message == _gone(header):
                raise
            healed = BEGUN_REORG if BEGUN_REORG in (healed, _begun(fault)) else BEGUN_GAP
            last = fault.message
            if fault.reason != REORGED:
                rpc.distrust()
    return await _reopened(rpc, network, pool, (path, *earlier), header, healed, last)


async def replayed(rpc: RpcDoor, network: Network, pool: Pool, path: PoolPath, header: Header) -> tuple[PoolPath, list[Log]]:
    """Carry a path on to an earlier block by its logs alone, where a node need not know the pool's state any more.

    What a node leaves out shows at the next block that `follow` holds the path to. Raises: ChainFault."""
    logs = await read_logs(rpc, _filter(network, pool, path.shape), path.block + 1, header.block)
    on = path.copy()
    for log in logs:
        if log.block == header.block and log.block_hash != header.block_hash:
            raise ChainFault(REORGED, f"logs of block {log.block} are of another one")
        on.apply(log)
    on.seal(header.block, header.block_hash)
    return on, logs


def _starts(path: PoolPath, earlier: Sequence[PoolPath], header: Header) -> list[PoolPath]:
    """Where to read from: where the path is, there again, then ever earlier."""
    return [start for start in (path, path, *earlier) if start.block <= header.block]


async def _carried(rpc: RpcDoor, network: Network, pool: Pool, start: PoolPath, header: Header) -> Followed:
    (answers,) = await _trip(rpc, network, [state_calls(network, pool)], header, held=start)
    moment = moment_of(pool, start.shape, answers)
    path, logs = await replayed(rpc, network, pool, start, header)
    _agree(path, moment)
    return Followed(
        path=path,
        from_block=start.block + 1,
        swaps=path.swaps - start.swaps,
        crossings=path.crossings - start.crossings,
        healed="",
        logs_bytes=log_bytes(logs),
    )


def _agree(path: PoolPath, moment: Moment) -> None:
    ours = (path.sqrt_price_x96, path.tick, path.liquidity, path.growth0_x128, path.growth1_x128, path.cut0, path.cut1)
    theirs = (moment.sqrt_price_x96, moment.tick, moment.liquidity, moment.growth0_x128, moment.growth1_x128, moment.cut0, moment.cut1)
    if ours != theirs:
        names = ("price", "tick", "liquidity", "fee growth 0", "fee growth 1", "protocol cut 0", "protocol cut 1")
        wrong = ", ".join(name for name, mine, said in zip(names, ours, theirs, strict=True) if mine != said)
        raise ChainFault(GAP, f"at block {path.block} the logs end in another {wrong} than the pool has")


async def _reopened(
    rpc: RpcDoor, network: Network, pool: Pool, paths: Sequence[PoolPath], header: Header, healed: str, last: str
) -> Followed:
    """Heal what no earlier path could: an opening whose own block is gone, or a tick map while nobody earned anything."""
    if paths[-1].block > header.block:
        raise ChainFault("behind", f"block {header.block} is before the opening at block {paths[-1].block}")
    try:
        opening = await _read_anew(rpc, network, pool, paths[-1]) if healed == BEGUN_REORG else None
        if opening is not None:
            return replace(await _carried(rpc, network, pool, opening, header), healed=healed)
        fresh = await read_path(rpc, network, pool, header)
    except ChainFault as fault:
        if fault.reason not in HEALABLE or fault.message == _gone(header):
            raise
        raise ChainFault(GAP, f"{pool.venue} pool {pool.key}: {fault.message}") from None
    for path in paths if healed == BEGUN_GAP else ():
        if path.block <= header.block and (path.growth0_x128, path.growth1_x128) == (fresh.growth0_x128, fresh.growth1_x128):
            return Followed(path=_instead(fresh, path), from_block=header.block + 1, swaps=0, crossings=0, healed=healed, logs_bytes=log_bytes([]))
    raise ChainFault(GAP, f"{pool.venue} pool {pool.key}: {last}")


async def _read_anew(rpc: RpcDoor, network: Network, pool: Pool, opening: PoolPath) -> PoolPath | None:
    """Read the opening's block as the chain has it now, for an opening whose own block is gone."""
    (answer,) = await rpc.batch([header_request(opening.block)])
    header = header_of(answer, opening.block)
    return None if header.block_hash == opening.block_hash else _instead(await read_path(rpc, network, pool, header), opening)


def _instead(fresh: PoolPath, path: PoolPath) -> PoolPath:
    """A pool read anew with what a path has earned and counted."""
    return replace(fresh, positions=path.copy().positions, swaps=path.swaps, crossings=path.crossings)


def _begun(fault: ChainFault) -> str:
    return BEGUN_REORG if fault.reason == REORGED else BEGUN_GAP


def _filter(network: Network, pool: Pool, shape: str) -> LogFilter:
    """The pool's own logs only: v4's pools log at one address, by their ids."""
    if shape == V4:
        assert network.v4_pool_manager, "v4 pools are only known where a PoolManager is configured"
        return LogFilter(TOPICS[V4], frozenset({network.v4_pool_manager}), pool.key)
    return LogFilter(TOPICS[shape], frozenset({pool.key}))


async def _view(rpc: RpcDoor, network: Network, calls: Sequence[Call], header: Header) -> list[bytes | None]:
    """Ask many view calls at a block, as few round trips as they need."""
    chunks = [calls[at : at + CALLS_IN_ONE] for at in range(0, len(calls), CALLS_IN_ONE)]
    answers: list[bytes | None] = []
    for at in range(0, len(chunks), MULTICALLS_AT_ONCE):
        for told in await _trip(rpc, network, chunks[at : at + MULTICALLS_AT_ONCE], header):
            answers += told
    return answers


async def _trip(
    rpc: RpcDoor, network: Network, chunks: Sequence[Sequence[Call]], header: Header, held: PoolPath | None = None
) -> list[list[bytes | None]]:
    """One round trip of multicalls at a block that must still be the chain's, before and after, as must the block of a path held."""
    requests: list[tuple[str, list[Any]]] = [multicall_request(network, chunk, header.block) for chunk in chunks]
    pins = [(header.block, header.block_hash), *([(held.block, held.block_hash)] if held else ())]
    first = [header_request(block) for block, _ in pins]
    answers = await rpc.batch([*first, *requests, header_request(header.block)])
    for answer, (block, expected) in zip((answers[-1], *answers), (pins[0], *pins), strict=False):
        if header_of(answer, block).block_hash != expected:
            raise ChainFault(REORGED, _gone(header) if expected == header.block_hash else f"block {block} is no longer {expected[:10]}…")
    return [multicall_answer(answer, len(chunk)) for answer, chunk in zip(answers[len(first) : -1], chunks, strict=True)]


def _gone(header: Header) -> str:
    return f"block {header.block} is no longer {header.block_hash[:10]}…, which was to be read"


def _shape(pool: Pool) -> str:
    shape = shape_of(pool)
    assert shape is not None, f"{pool.venue} pool {pool.key} may carry no position: ask `refusal` first"
    return shape
