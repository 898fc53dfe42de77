"""The market: what is traded, at what price and how deep, followed block by block.

New pools, swaps and changes of liquidity come from the chain's own logs; what a pool holds is always read by calls at the
same block, never summed up from logs, and pools that seem quiet are read again in turn. An advance either succeeds whole
or changes nothing. A block that is no longer on the chain, and a gap too long to follow, are healed by reading again.
Nothing shown is later than the block shown with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

from chain.factories import ask_factories
from chain.gone import gone
from chain.header import Header, header_of, header_request
from chain.logs import Log, LogFilter, blocks_of, read_logs
from chain.network import Network
from chain.pools import Pool, PoolGraph, PoolState, creation_emitters, creations, discover, pool_created, read_states
from chain.rpc import RpcDoor, RpcRefused
from chain.snapshot import MarketSnapshot, MarketView, reachable
from chain.swaps import happening, happenings
from chain.tape import HOUR_S, STEPS_MAX, VOLUME_S, PoolTape, Trade
from chain.tokens import TokenFacts, read_facts
from ledgers.errors import ChainFault
from ledgers.money import MicroUsd, Wei

SEEN_BLOCKS_MAX = 64
"""Blocks remembered by hash, to find where a reorganisation began."""
SCAN_BLOCKS_MAX = 500_000
"""Blocks read for pool creations; on a longer chain the factories are asked for the tokens of the window as well."""
REREAD_POOLS = 50
"""Quiet pools read again at each advance."""
FACTS_AT_ONCE = 256
"""Tokens whose facts one advance asks for; further ones wait for the next."""
BACK_BLOCKS_MAX = 1_000
"""Blocks that one reach back reads, so that it never holds up others for long."""
EMITTERS_MAX = 500
"""Up to this many pools are named when asking for logs; beyond, all emitters are asked and strangers dropped."""
MARKET_AHEAD = "market_ahead"
LOOKS_MAX = 16
"""Pins that one look may take, each newer than the block the market had moved on to."""


class Pinned(Protocol):
    """The block an observation is pinned to."""

    block: int
    block_hash: str
    base_fee_wei: Wei


P, T = TypeVar("P"), TypeVar("T")


async def at_newest(pin: Callable[[], Awaitable[P]], look: Callable[[P], Awaitable[T]]) -> tuple[P, T]:
    """Look at the market at a fresh pin, and at a newer one whenever the market, or what the node still has, has moved past the pin by then.

    The market is shared: an order of another run may follow a newer block between the pin and the look.
    Raises: ChainFault of either; these only when they happened at every one of `LOOKS_MAX` pins."""
    for _ in range(LOOKS_MAX - 1):
        pinned = await pin()
        try:
            return pinned, await look(pinned)
        except ChainFault as fault:
            if fault.reason != MARKET_AHEAD and not gone(str(fault)):
                raise
    pinned = await pin()
    return pinned, await look(pinned)


@dataclass(frozen=True, slots=True)
class Reorg:
    """A block that was lost."""

    block: int
    lost_hash: str
    found_hash: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """What an advance brought."""

    header: Header
    pools: int
    """New pools."""
    swaps: int
    reorg: Reorg | None


@dataclass(slots=True)
class _Reading:
    """Everything one advance read; applied only when it is complete."""

    header: Header
    logs: list[Log]
    created: list[Pool]
    afresh: bool
    """True when what was known of prices over time no longer joins up."""
    since: Header | None = None
    """Where reading afresh began."""
    forgotten: list[str] = field(default_factory=list)
    reorg: Reorg | None = None
    states: dict[str, PoolState] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    """Pools whose state was asked."""
    waiting: set[str] = field(default_factory=set)
    """Tokens whose facts were still unknown."""
    facts: dict[str, TokenFacts] = field(default_factory=dict)


class MarketIndex:
    """Follows the market of one network. One advance at a time; readers see whole advances only."""

    def __init__(self, rpc: RpcDoor, network: Network, graph: PoolGraph, *, history_step_s: int = 1, tokens: Collection[str] | None = None) -> None:
        self._rpc, self._network, self.graph = rpc, network, graph
        self._step_s = history_step_s
        self._only = None if tokens is None else frozenset(token.lower() for token in tokens)
        self._seen: deque[Header] = deque(maxlen=SEEN_BLOCKS_MAX)
        self._tapes: dict[str, PoolTape] = {}
        self._facts: dict[str, TokenFacts] = {}
        self._waiting: set[str] = set()
        """Tokens whose facts are still to be asked."""
        self._unread: dict[str, None] = {}
        """Pool keys, the one read longest ago first."""
        self._since: Header | None = None
        """Oldest block whose swaps are on the tapes."""
        self._sound_only = False
        """True after an answer with a bad record: it was refused once, and such records are left out from then on until all is well."""
        self._lock = asyncio.Lock()

    @property
    def block(self) -> int | None:
        """The block everything shown belongs to; None before the first advance."""
        return self._seen[-1].block if self._seen else None

    async def advance(self, to_block: int) -> Advanced | None:
        """Follow the chain to a block; None when the index is there already or further.

        Raises: ChainFault, and then nothing has changed."""
        async with self._lock:
            return await self._advance(to_block)

    async def look(
        self, pin: Pinned, price: Callable[[], Awaitable[MicroUsd | None]], *, tokens_max: int | None = None
    ) -> MarketSnapshot:
        """Follow the chain to a pin and show the market there; nobody moves it in between.

        Raises: ChainFault, `market_ahead` when the market is past the pin already."""
        async with self._lock:
            await self._advance(pin.block)
            self._hold_to(pin)
            return self.snapshot(pin, eth_usd_micro_usd=await price(), tokens_max=tokens_max)

    async def _advance(self, to_block: int) -> Advanced | None:
        if self.block is not None and to_block <= self.block and not await self._lost(to_block):
            return None
        try:
            reading = await self._read(to_block)
        except ChainFault as fault:
            self._sound_only = fault.reason == "bad_answer"
            raise
        await self._read_states(reading)
        self._sound_only = False
        return self._apply(reading)

    async def reach_back(self, blocks_max: int = BACK_BLOCKS_MAX) -> int:
        """Read the swaps of one bounded stretch of older blocks, until the tapes hold an hour.

        Shapes: how many blocks were read; 0 when there is nothing left to read. Raises: ChainFault, and then nothing has changed."""
        async with self._lock:
            since = self._since
            if since is None or since.block <= (oldest := self._hour_ago()):
                return 0
            first = max(oldest, since.block - blocks_max)
            found_since, found_first = await self._rpc.batch([header_request(since.block), header_request(first)])
            if header_of(found_since, since.block).block_hash != since.block_hash:
                raise ChainFault("reorged", f"block {since.block} is no longer the one that was followed")
            logs = await read_logs(self._rpc, self._filter(), first, since.block - 1)
            self._write_earlier(logs, header_of(found_first, first), since)
            return since.block - first

    def _hour_ago(self) -> int:
        return max(self._seen[-1].block - 1_000 * HOUR_S // self._network.block_time_ms, self._network.first_block)

    # --- reading ---

    async def _lost(self, to_block: int) -> bool:
        """Tell whether the chain went back behind what was followed; a node that merely lags shows no other block."""
        last = self._seen[-1]
        answer = await self._rpc.call(*header_request(last.block)) if to_block < last.block else None
        return answer is not None and header_of(answer, last.block).block_hash != last.block_hash

    async def _read(self, to_block: int) -> _Reading:
        if self.block is None:
            return await self._read_first(header_of(await self._rpc.call(*header_request(to_block)), to_block))
        last = self._seen[-1]
        if not 0 < to_block - last.block <= self._span_blocks():
            return await self._read_after_gap(to_block)
        wanted = self._filter()
        asked = [header_request(last.block), header_request(to_block), wanted.request(last.block + 1, to_block)]
        found_last, found, logs = await self._rpc.batch(asked)
        header = header_of(found, to_block)
        if header_of(found_last, last.block).block_hash != last.block_hash:
            return await self._read_after_reorg(header)
        if isinstance(logs, RpcRefused):
            read = await read_logs(self._rpc, wanted, last.block + 1, to_block, sound_only=self._sound_only)
        else:
            read = self._believed(wanted, logs, last.block + 1, to_block)
        return self._reading(header, read, created=[], afresh=False)

    async def _read_first(self, header: Header) -> _Reading:
        since = self._oldest(header)
        known = await ask_factories(self._rpc, self._network, self._only or (), header.block) if since > self._network.first_block else []
        return await self._read_afresh(header, since, known)

    def _oldest(self, header: Header) -> int:
        """The block from which pool creations are read: the first, or on a long chain a recent one."""
        return max(self._network.first_block, header.block - SCAN_BLOCKS_MAX + 1)

    async def _read_after_gap(self, to_block: int) -> _Reading:
        last = self._seen[-1]
        found_last, found = await self._rpc.batch([header_request(last.block), header_request(to_block)])
        header = header_of(found, to_block)
        if header_of(found_last, last.block).block_hash != last.block_hash:
            return await self._read_after_reorg(header)
        return await self._read_afresh(header, max(last.block + 1, self._oldest(header)))

    async def _read_after_reorg(self, header: Header) -> _Reading:
        seen = list(self._seen)
        answers = await self._rpc.batch([header_request(old.block) for old in seen])
        now = {old.block: answer and header_of(answer, old.block).block_hash for old, answer in zip(seen, answers, strict=True)}
        lost = [old for old in seen if now[old.block] != old.block_hash]
        if not lost:
            raise ChainFault("reorged", f"the node changed its mind about block {seen[-1].block} twice")
        common = max((old.block for old in seen if old.block < lost[0].block), default=None)
        since = self._oldest(header) if common is None else min(common + 1, header.block)
        reading = await self._read_afresh(header, since)
        reading.forgotten = [pool.key for pool in self.graph.pools.values() if pool.born_block >= since]
        reading.reorg = Reorg(lost[0].block, lost[0].block_hash, now[lost[0].block] or "")
        return reading

    async def _read_afresh(self, header: Header, since: int, known: Sequence[Pool] = ()) -> _Reading:
        """Read new pools since a block, and swaps only as far back as history goes."""
        recent = max(header.block - self._span_blocks() + 1, 0)
        created = [*known, *await discover(self._rpc, self._network, since, recent - 1)]
        wanted = self._filter(self._wanted(created))
        logs = await read_logs(self._rpc, wanted, recent, header.block, sound_only=self._sound_only)
        reading = self._reading(header, logs, created, afresh=True)
        reading.since = header_of(await self._rpc.call(*header_request(recent)), recent)
        return reading

    def _believed(self, wanted: LogFilter, answer: object, first: int, last: int) -> list[Log]:
        """The logs of an answer: all of them or a fault, and after such a fault those that are sound.

        A log left out costs little: what pools hold is read by calls, and quiet pools are read again in turn."""
        return wanted.sorted_out(answer, first, last)[0] if self._sound_only else wanted.read(answer, first, last)

    def _reading(self, header: Header, logs: list[Log], created: list[Pool], afresh: bool) -> _Reading:
        if self._sound_only:
            logs = _of_one_chain(logs, header)
        if any(block == header.block and found != header.block_hash for block, found in blocks_of(logs)):
            raise ChainFault("bad_answer", f"logs and header of block {header.block} are of two chains")
        born = [pool for log in logs if (pool := pool_created(self._network, log)) is not None]
        return _Reading(header, logs, self._wanted([*created, *born]), afresh)

    def _wanted(self, pools: Iterable[Pool]) -> list[Pool]:
        hubs, known = set(self.graph.hubs), self.graph.pools
        new = [pool for pool in pools if not pool.fork or known.get(pool.key, pool).fork == pool.fork]
        if self._only is None:
            return new
        return [pool for pool in new if {pool.token0, pool.token1} <= self._only | hubs]

    def _filter(self, created: Sequence[Pool] = ()) -> LogFilter:
        emitters = {pool.key for pool in (*self.graph.pools.values(), *created) if pool.venue != "v4"}
        named = emitters | creation_emitters(self._network)
        few = self._only is not None and len(named) <= EMITTERS_MAX
        return LogFilter(creations(self._network) | happenings(self._network), frozenset(named) if few else None)

    def _span_blocks(self) -> int:
        """Blocks worth of logs that history and volume need."""
        span_ms = 1_000 * max(STEPS_MAX * self._step_s, VOLUME_S)
        return min(span_ms // self._network.block_time_ms + 1, 20_000)

    async def _read_states(self, reading: _Reading) -> None:
        pools, block = self._pools_after(reading), reading.header.block
        reading.read = self._due(pools, reading)
        reading.waiting = self._waiting | self._strangers(reading)
        reading.states, reading.facts = await asyncio.gather(
            read_states(self._rpc, self._network, [pools[key] for key in reading.read], block),
            read_facts(self._rpc, sorted(reading.waiting)[:FACTS_AT_ONCE], block),
        )

    def _pools_after(self, reading: _Reading) -> dict[str, Pool]:
        if not reading.created and not reading.forgotten:
            return self.graph.pools
        forgotten = set(reading.forgotten)
        kept = {key: pool for key, pool in self.graph.pools.items() if key not in forgotten}
        return kept | {pool.key: pool for pool in reading.created}

    def _due(self, pools: dict[str, Pool], reading: _Reading) -> list[str]:
        if reading.afresh:
            return list(pools)
        touched = {found.pool.key for log in reading.logs if (found := happening(pools, self._network.v4_pool_manager, log))}
        due = touched | {pool.key for pool in reading.created}
        quiet = (key for key in self._unread if key not in due)
        return [*sorted(due), *islice(quiet, REREAD_POOLS)]

    def _strangers(self, reading: _Reading) -> set[str]:
        """Tokens of new pools whose facts were never asked, or asked on blocks that were lost."""
        hubs = set(self.graph.hubs)
        joined = {pool.other(hub) for pool in reading.created if reachable(pool, self._network) for hub in hubs & {pool.token0, pool.token1}}
        lost = {token for key in reading.forgotten for token in (self.graph.pools[key].token0, self.graph.pools[key].token1)}
        return joined - hubs - (self._facts.keys() - lost)

    # --- applying: no await from here on ---

    def _apply(self, reading: _Reading) -> Advanced:
        before = self._seen[-1] if self._seen else None
        for key in reading.forgotten:
            self.graph.remove(key)
            self._unread.pop(key, None)
        if reading.reorg is not None:
            self._seen = deque((old for old in self._seen if old.block < min(reading.reorg.block, reading.header.block)), maxlen=SEEN_BLOCKS_MAX)
        if reading.afresh:
            self._tapes.clear()
            before, self._since = None, reading.since
        for pool in reading.created:
            self.graph.add(pool)
        swaps = self._write_tapes(self._tapes, reading.logs, before or reading.since, reading.header)
        self._take_states(reading)
        self._facts |= reading.facts
        self._waiting = reading.waiting - reading.facts.keys()
        self._seen.append(reading.header)
        return Advanced(reading.header, len(reading.created), swaps, reading.reorg)

    def _write_earlier(self, logs: Sequence[Log], first: Header, since: Header) -> None:
        earlier: dict[str, PoolTape] = {}
        self._write_tapes(earlier, logs, first, since)
        for key, tape in earlier.items():
            self._tape(self._tapes, key).preceded_by(tape)
        self._since = first

    def _write_tapes(self, tapes: dict[str, PoolTape], logs: Sequence[Log], before: Header | None, header: Header) -> int:
        swaps = 0
        for log in logs:
            found = happening(self.graph.pools, self._network.v4_pool_manager, log)
            quoted = _quote_side(found.pool, self.graph) if found else None
            if found is None or quoted is None:
                continue
            tape = self._tape(tapes, found.pool.key)
            ts_s = _time_of(log, before, header, self._network.block_time_ms)
            if found.ratio0 is not None:
                tape.price(ts_s, found.ratio0)
            amount = found.traded0_raw if quoted == found.pool.token0 else found.traded1_raw
            if amount:
                tape.trade(Trade(log.block, ts_s, found.bought0, found.traded0_raw, found.traded1_raw))
                swaps += 1
        return swaps

    def _take_states(self, reading: _Reading) -> None:
        for key in reading.read:
            self.graph.states.pop(key, None)
        self.graph.states |= reading.states
        for key, state in reading.states.items():
            pool = self.graph.pools[key]
            ratio = state.ratio(pool, pool.token0)
            if ratio is not None and _quote_side(pool, self.graph) is not None:
                self._tape(self._tapes, key).price(reading.header.ts_s, ratio)
        for key in reading.read:
            self._unread.pop(key, None)
            self._unread[key] = None

    def _tape(self, tapes: dict[str, PoolTape], key: str) -> PoolTape:
        return tapes.setdefault(key, PoolTape(self._step_s))

    # --- showing ---

    def snapshot(self, pin: Pinned, *, eth_usd_micro_usd: MicroUsd | None = None, tokens_max: int | None = None) -> MarketSnapshot:
        """Show the market as of the newest block followed, which the pin must not be older than.

        Raises: ChainFault when nothing was followed yet, when it is later than the pin, or on another chain."""
        header = self._hold_to(pin)
        tokens = MarketView(self._network, self.graph, self._tapes, self._facts, header).tokens(tokens_max)
        return MarketSnapshot(
            block=header.block, block_hash=header.block_hash, block_ts_s=header.ts_s, gas_price_wei=pin.base_fee_wei,
            eth_usd_micro_usd=eth_usd_micro_usd, history_step_s=self._step_s, tokens=tuple(tokens),
        )  # fmt: skip

    def _hold_to(self, pin: Pinned) -> Header:
        """The newest block followed, where it may be shown at a pin. Raises: ChainFault."""
        if not self._seen:
            raise ChainFault("no_market", "the market was not followed yet; advance first")
        header = self._seen[-1]
        if header.block > pin.block:
            raise ChainFault(MARKET_AHEAD, f"the market is at block {header.block}, the pin at {pin.block}")
        if header.block == pin.block and header.block_hash != pin.block_hash:
            raise ChainFault("reorged", f"block {pin.block} of the market and of the pin differ")
        return header


def _of_one_chain(logs: Sequence[Log], header: Header) -> list[Log]:
    """Without the logs of blocks that are named by two hashes, or by another than their header's."""
    hashes = {header.block: {header.block_hash}}
    for log in logs:
        hashes.setdefault(log.block, set()).add(log.block_hash)
    return [log for log in logs if len(hashes[log.block]) == 1]


def _quote_side(pool: Pool, graph: PoolGraph) -> str | None:
    return next((hub for hub in graph.hubs if hub in (pool.token0, pool.token1)), None)


def _time_of(log: Log, before: Header | None, header: Header, block_time_ms: int) -> int:
    """The log's block time when the node says it, else between the blocks whose time is known."""
    first_s = before.ts_s if before else 0
    if log.ts_s is not None and first_s <= log.ts_s <= header.ts_s:
        return log.ts_s
    if before is None:
        return max(header.ts_s - (header.block - log.block) * block_time_ms // 1_000, 0)
    return before.ts_s + (header.ts_s - before.ts_s) * (log.block - before.block) // max(header.block - before.block, 1)
