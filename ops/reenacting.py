"""The truth of a real chain: `referee truth URL`, mined swaps run again by simulation, and what differs, by cause.

Only swaps that were the first user transaction of their block: what stood before them is known. Walks back from the newest
block as far as the node keeps states, or forward from a block that is named, and may follow new blocks for a while. The
local chain keeps few states and has a block a second: there new blocks are followed until there are enough swaps.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from chain.calldata import hex_int
from chain.header import header_of, header_request
from chain.hooked import with_hooks
from chain.logs import PRUNED
from chain.mined import first_swaps
from chain.network import Network
from chain.probe import LOCAL_CHAIN, client_of, code_missing, refuse_local_node, refuse_missing_code
from chain.reenact import STATE_GONE, Reenacted, reenact
from chain.rpc import RpcDoor
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.layout import TEXT_WIDTH, wrapped
from ledgers.report import Basis, Column, Table
from ops.assembly import network_named
from ops.settings import Settings, lane_of

LANE = "node"
SPAN_BLOCKS = 20
"""Blocks that are read and run again at once: a node may keep few states, and forgets while it is asked."""
BARREN_BLOCKS_MAX = 5_000
"""So many blocks on end without a swap that fits end the walk."""
LOOK_MS = 1_000
STILL_MS_MAX = 10_000
"""Without a new block for so long, a local chain that is followed for as long as it takes stands still."""
ARCHIVE = "one that keeps more, an archive node, has more swaps"
SHOWN_MAX = 20
ROUTERS = ("swap_router_02", "universal_router", "v2_router")
KIND_COLUMNS = (
    Column("of", "of"), Column("swaps", "swaps"), Column("equal", "equal"), Column("differ", "differ"), Column("transfers", "transfers"),
    Column("native", "ETH"), Column("l2_gas", "L2 gas"), Column("l1_off_percent", "L1 off %"),
)  # fmt: skip
KIND_NOTE = "ETH: swaps after which the sender's own balance could be held to the trace too; elsewhere others moved it in the same block."
CAUSE_COLUMNS = (Column("cause", "difference"), Column("swaps", "swaps"), Column("first", "first seen in"))

Told = tuple[str, dict[str, object], bool]
"""Text, data, and whether enough swaps were found and all are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to run again."""

    swaps: int
    from_block: int | None = None
    """Walk forward from here; back from the newest block when not given."""
    wait_s: int | None = None
    """How long to follow new blocks when those at hand are not enough; none: not at all, on the local chain until there are enough."""


@dataclass(slots=True)
class Walk:
    """How the walk over a chain's blocks went."""

    rows: list[Reenacted] = field(default_factory=list)
    ended: str = ""
    """Why it ended before there were enough swaps."""

    @property
    def compared(self) -> int:
        """How many swaps could be run again."""
        return sum(not row.unread for row in self.rows)


def nobody(_text: str) -> None:
    """Nothing is told on the way."""


async def truth_of_chain(
    settings: Settings, url: str, network_name: str, wanted: Wanted, clock: Clock, width: int = TEXT_WIDTH, tell: Callable[[str], None] = nobody
) -> Told:
    """Run mined swaps again on a node. Raises: BadSettings, BadWindow; ChainFault when it fails, or is not that network's."""
    network, lane = network_named(network_name), lane_of(url, LANE, "the URL that was named")
    async with AsyncExitStack() as closing:
        door = RpcDoor([lane], clock=clock)
        closing.push_async_callback(door.close)
        if (found := hex_int(await door.call("eth_chainId", []))) != network.chain_id:
            raise ChainFault("wrong_identity", f"expected chain id {network.chain_id} for {network.name}, found {found}")
        refuse_local_node(await client_of(door), network)
        refuse_missing_code(await code_missing(door, network), network)
        walk = await reenacted(door, network, wanted, clock, tell)
        labels = await with_hooks(door, network, [row.swap for row in walk.rows])
    return told_of(network, wanted, walk, labels, width)


async def reenacted(rpc: RpcDoor, network: Network, wanted: Wanted, clock: Clock, tell: Callable[[str], None] = nobody) -> Walk:
    """Run swaps again until there are enough, the node has no more, or the time is over. Raises: ChainFault."""
    walk, head = Walk(), await _head(rpc, network)
    await _walk(rpc, network, _spans(wanted.from_block, head), wanted, walk)
    if walk.compared < wanted.swaps and (wanted.wait_s or wanted.wait_s is None and network.name == LOCAL_CHAIN):
        tell(f"{walk.compared} of {wanted.swaps} swaps in the blocks at hand; new blocks are followed")
        await _follow(rpc, network, wanted, clock, walk, head)
    return walk


async def _follow(rpc: RpcDoor, network: Network, wanted: Wanted, clock: Clock, walk: Walk, head: int) -> None:
    """Run the swaps of new blocks again, until the time is over; where none was set, until the chain stands still."""
    moved_ms = begun_ms = clock.monotonic_ms()
    while walk.compared < wanted.swaps:
        now_ms = clock.monotonic_ms()
        if wanted.wait_s is not None and now_ms - begun_ms >= wanted.wait_s * 1_000:
            walk.ended += f"; new blocks were followed for {wanted.wait_s} s, up to block {head}"
            return
        if wanted.wait_s is None and now_ms - moved_ms >= STILL_MS_MAX:
            walk.ended += f"; no block came after block {head} for {STILL_MS_MAX // 1_000} s"
            return
        await clock.sleep_until(clock.now_ms() + LOOK_MS)
        newest = await _head(rpc, network)
        if newest > head:
            before = walk.ended
            await _walk(rpc, network, _spans(head + 1, newest), wanted, walk)
            walk.ended, head, moved_ms = before, newest, clock.monotonic_ms()


async def _head(rpc: RpcDoor, network: Network) -> int:
    return max(header_of(await rpc.call(*header_request("latest"))).block - network.pin_depth, 0)


def _spans(from_block: int | None, head: int) -> Iterable[tuple[int, int]]:
    """Ranges of blocks: forward from a block, or back from the head."""
    if from_block is not None:
        return ((first, min(first + SPAN_BLOCKS - 1, head)) for first in range(from_block, head + 1, SPAN_BLOCKS))
    return ((max(last - SPAN_BLOCKS + 1, 1), last) for last in range(head, 0, -SPAN_BLOCKS))


async def _walk(rpc: RpcDoor, network: Network, spans: Iterable[tuple[int, int]], wanted: Wanted, walk: Walk) -> None:
    """Run the swaps of stretches of blocks again until there are enough; say why it ended where there are not."""
    barren, seen = 0, 0
    for first, last in spans:
        try:
            swaps = await first_swaps(rpc, network, first, last)
        except ChainFault as fault:
            if fault.reason == PRUNED:
                walk.ended = f"the node no longer has the blocks {first}–{last}: {ARCHIVE}"
                return
            raise
        rows, seen = await reenact(rpc, swaps), seen + last - first + 1
        for row in rows:
            if row.unread != STATE_GONE:
                walk.rows.append(row)
                if walk.compared >= wanted.swaps:
                    return
        barren = barren + last - first + 1 if not rows else 0
        if barren >= BARREN_BLOCKS_MAX:
            walk.ended = f"no swap that fits was mined in {barren} blocks on end"
            return
        if rows and all(row.unread == STATE_GONE for row in rows):
            walk.ended = f"the node no longer has the states of blocks {first}–{last}: {ARCHIVE}"
            return
    walk.ended = f"no more was mined: all {seen} blocks {'from the one that was named on' if wanted.from_block is not None else 'of the chain'} were read"


# --- what is told -----------------------------------------------------------------------------------------------------


def told_of(network: Network, wanted: Wanted, walk: Walk, labels: dict[str, tuple[str, ...]], width: int = TEXT_WIDTH) -> Told:
    """Tell what was compared, by kind of pool, by router, and by what differs; fewer swaps than asked for are not enough, whatever the chain."""
    compared = [row for row in walk.rows if not row.unread]
    different = [row for row in compared if row.differences]
    enough = len(compared) >= wanted.swaps
    basis = Basis(label=network.label, n=len(compared), of="mined swaps, each the first user transaction of its block", claim=_claim(compared, different))
    kinds = _kinds(compared, labels)
    routers = _grouped(compared, {row.swap.tx_hash: (router_name(network, row.swap.to),) for row in compared})
    tables = [
        Table(name="kinds", title="Run again by simulation, by kind of pool", basis=basis, columns=KIND_COLUMNS, rows=kinds, note=KIND_NOTE),
        Table(name="routers", title="By router", basis=basis, columns=KIND_COLUMNS, rows=routers),
        Table(name="causes", title="What differs", basis=basis, columns=CAUSE_COLUMNS, rows=_causes(compared)),
    ]
    data = {table.name: table.data() for table in tables}
    data |= {"swaps": [_row_data(row, labels) for row in compared], "wanted": wanted.swaps, "compared": len(compared), "equal": len(compared) - len(different)}
    data["ended"] = "" if enough else walk.ended
    text = "\n".join([*(table.text(width) for table in tables), *wrapped(_too_few(wanted, walk), width)])
    return text.rstrip() + "\n", data, enough and not different


def _claim(compared: list[Reenacted], different: list[Reenacted]) -> str:
    if not compared:
        return "nothing was compared"
    return f"{len(different)} differ" if different else "all equal: transfers to the wei, L2 gas to the unit, L1 part within its padding"


def _too_few(wanted: Wanted, walk: Walk) -> str:
    if walk.compared >= wanted.swaps:
        return ""
    unread = len(walk.rows) - walk.compared
    left_out = f" {unread} more could not be compared." if unread else ""
    return f"Not enough: {walk.compared} of the {wanted.swaps} swaps asked for could be run again; {walk.ended}.{left_out} `--wait SECONDS` follows new blocks."


def _kinds(rows: list[Reenacted], labels: dict[str, tuple[str, ...]]) -> tuple[tuple[object, ...], ...]:
    return (*_grouped(rows, {row.swap.tx_hash: labels[row.swap.tx_hash] for row in rows}), *_grouped(rows, {row.swap.tx_hash: ("all",) for row in rows}))


def _grouped(rows: list[Reenacted], named: dict[str, tuple[str, ...]]) -> tuple[tuple[object, ...], ...]:
    names = sorted({name for row in rows for name in named[row.swap.tx_hash]})
    return tuple(_group(name, [row for row in rows if name in named[row.swap.tx_hash]]) for name in names)


def _group(name: str, rows: list[Reenacted]) -> tuple[object, ...]:
    mined_l1, simulated_l1 = sum(row.l1_gas[0] for row in rows), sum(row.l1_gas[1] for row in rows)
    equal = sum(row.equal for row in rows)
    off = None if not mined_l1 else f"{(simulated_l1 - mined_l1) * 100 // mined_l1:+}"
    native, transfers = sum(row.native_compared for row in rows), sum(row.transfers for row in rows)
    return name, len(rows), equal, len(rows) - equal, transfers, native, sum(row.l2_gas[0] for row in rows), off


def _causes(rows: list[Reenacted]) -> tuple[tuple[object, ...], ...]:
    counted = Counter(cause for row in rows for cause in row.differences)
    first = {cause: row.swap.tx_hash for row in reversed(rows) for cause in row.differences}
    return tuple((cause, count, first[cause]) for cause, count in counted.most_common(SHOWN_MAX))


def router_name(network: Network, to: str | None) -> str:
    """Name whom a swap was sent to, as far as the network file knows."""
    own = {getattr(network, name): name for name in ROUTERS}
    forks = {fork.router: f"{fork.name} router" for fork in network.forks if fork.router}
    known = {place.address: place.name for place in network.places if place.kind == "router"}
    return {**known, **forks, **own}.get(to, "another contract")


def _row_data(row: Reenacted, labels: dict[str, tuple[str, ...]]) -> dict[str, object]:
    swap = row.swap
    return {
        "block": swap.header.block, "tx": swap.tx_hash, "to": swap.to, "kinds": list(labels[swap.tx_hash]), "equal": row.equal,
        "differences": list(row.differences), "transfers": row.transfers, "native_compared": row.native_compared,
        "l2_gas_mined": row.l2_gas[0], "l2_gas_simulated": row.l2_gas[1], "l1_gas_mined": row.l1_gas[0], "l1_gas_simulated": row.l1_gas[1],
    }  # fmt: skip
