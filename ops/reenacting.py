"""The truth of a real chain: `referee truth URL`, mined swaps run again by simulation, and what differs, by cause.

Only swaps that were the first user transaction of their block: what stood before them is known. Walks back from the newest
block as far as the node keeps states, or forward from a block that is named, and may follow new blocks for a while.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chain.calldata import hex_int
from chain.header import header_of, header_request
from chain.hooked import with_hooks
from chain.logs import PRUNED
from chain.mined import first_swaps
from chain.network import Network
from chain.reenact import STATE_GONE, Reenacted, reenact
from chain.rpc import RpcDoor
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.layout import TEXT_WIDTH
from ledgers.report import Basis, Column, Table
from ops.assembly import network_named
from ops.settings import Settings, lane_of

LANE = "node"
SPAN_BLOCKS = 20
"""Blocks that are read and run again at once: a node may keep few states, and forgets while it is asked."""
BARREN_BLOCKS_MAX = 5_000
"""So many blocks on end without a swap that fits end the walk."""
LOOK_MS = 1_000
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
    wait_s: int = 0
    """How long to follow new blocks when those at hand are not enough."""


async def truth_of_chain(settings: Settings, url: str, network_name: str, wanted: Wanted, clock: Clock, width: int = TEXT_WIDTH) -> Told:
    """Run mined swaps again on a node. Raises: BadSettings, BadWindow; ChainFault when it fails."""
    network, lane = network_named(network_name), lane_of(url, LANE, "the URL that was named")
    async with AsyncExitStack() as closing:
        door = RpcDoor([lane], clock=clock)
        closing.push_async_callback(door.close)
        if (found := hex_int(await door.call("eth_chainId", []))) != network.chain_id:
            raise ChainFault("wrong_identity", f"expected chain id {network.chain_id} for {network.name}, found {found}")
        rows = [row async for row in reenacted(door, network, wanted, clock)]
        labels = await with_hooks(door, network, [row.swap for row in rows])
    return told_of(network, wanted, rows, labels, width)


async def reenacted(rpc: RpcDoor, network: Network, wanted: Wanted, clock: Clock) -> AsyncIterator[Reenacted]:
    """Swaps run again until there are enough, the node has no more, or the time is over. Raises: ChainFault."""
    left, head = wanted.swaps, await _head(rpc, network)
    until_ms = clock.monotonic_ms() + wanted.wait_s * 1_000
    async for row in _walked(rpc, network, _spans(wanted.from_block, head)):
        yield row
        left -= 1
        if not left:
            return
    while clock.monotonic_ms() < until_ms:
        await clock.sleep_until(clock.now_ms() + LOOK_MS)
        newest = await _head(rpc, network)
        async for row in _walked(rpc, network, _spans(head + 1, newest)):
            yield row
            left -= 1
            if not left:
                return
        head = max(head, newest)


async def _head(rpc: RpcDoor, network: Network) -> int:
    return max(header_of(await rpc.call(*header_request("latest"))).block - network.pin_depth, 0)


def _spans(from_block: int | None, head: int) -> Iterable[tuple[int, int]]:
    """Ranges of blocks: forward from a block, or back from the head."""
    if from_block is not None:
        return ((first, min(first + SPAN_BLOCKS - 1, head)) for first in range(from_block, head + 1, SPAN_BLOCKS))
    return ((max(last - SPAN_BLOCKS + 1, 1), last) for last in range(head, 0, -SPAN_BLOCKS))


async def _walked(rpc: RpcDoor, network: Network, spans: Iterable[tuple[int, int]]) -> AsyncIterator[Reenacted]:
    barren = 0
    for first, last in spans:
        try:
            swaps = await first_swaps(rpc, network, first, last)
        except ChainFault as fault:
            if fault.reason == PRUNED:
                return
            raise
        rows = await reenact(rpc, swaps)
        for row in rows:
            if row.unread != STATE_GONE:
                yield row
        barren = barren + last - first + 1 if not rows else 0
        if barren >= BARREN_BLOCKS_MAX or rows and all(row.unread == STATE_GONE for row in rows):
            return


# --- what is told -----------------------------------------------------------------------------------------------------


def told_of(network: Network, wanted: Wanted, rows: list[Reenacted], labels: dict[str, tuple[str, ...]], width: int = TEXT_WIDTH) -> Told:
    """Tell what was compared, by kind of pool, by router, and by what differs."""
    compared = [row for row in rows if not row.unread]
    different = [row for row in compared if row.differences]
    enough = len(compared) >= wanted.swaps
    basis = Basis(label=network.label, n=len(compared), of="mined swaps, each the first user transaction of its block", claim=_claim(compared, different))
    kinds = _kinds(compared, labels)
    routers = _grouped(compared, {row.swap.tx_hash: (router_name(network, row.swap.to),) for row in compared})
    tables = [
        Table(name="kinds", title="Run again by simulation, by kind of pool", basis=basis, columns=KIND_COLUMNS, rows=kinds, note=KIND_NOTE),
        Table(name="routers", title="By router", basis=basis, columns=KIND_COLUMNS, rows=routers),
        Table(name="causes", title="What differs", basis=basis, columns=CAUSE_COLUMNS, rows=_causes(compared), note=_note(wanted, compared)),
    ]
    data = {table.name: table.data() for table in tables}
    data |= {"swaps": [_row_data(row, labels) for row in compared], "wanted": wanted.swaps, "compared": len(compared), "equal": len(compared) - len(different)}
    return "\n".join(table.text(width) for table in tables), data, enough and not different


def _claim(compared: list[Reenacted], different: list[Reenacted]) -> str:
    if not compared:
        return "nothing was compared"
    return f"{len(different)} differ" if different else "all equal: transfers to the wei, L2 gas to the unit, L1 part within its padding"


def _note(wanted: Wanted, compared: list[Reenacted]) -> str:
    if len(compared) >= wanted.swaps:
        return ""
    return (
        f"{len(compared)} of the {wanted.swaps} swaps asked for could be run again: the node keeps states of too few blocks, or nothing more was mined. "
        "An archive node has more; --wait SECONDS follows new blocks."
    )


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
