"""The witnessing: every simulation that a fill, a gate or a liquidation stands on is run again on proven state, and what proves it is kept.

It runs beside the window, one after another and when no order is under way. Nobody waits for it but the end of the window,
and nothing rests on it: what cannot be run again truly, or comes out otherwise than the node said, is proven by the node only.
Source: design §5–6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from chain.evm import LocalEvm, NotCovered, NotRecorded, Recorded, Witness, recorded_in, shared
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.plain_text import plain_text
from referee.onchain.events import GateTaken, RouteSimulated, WindowLiquidated, WitnessKept
from referee.onchain.following import quiet
from referee.onchain.live import LiveWindow, Witnessed
from referee.onchain.recording import record

FILL, GATE, LIQUIDATION = "fill", "gate", "liquidation"
WHAT = {RouteSimulated: FILL, GateTaken: GATE, WindowLiquidated: LIQUIDATION}
LAST_S_MAX = 60
"""So long the end of a window waits for the witnesses that are still owed."""
GAS_MAX = 20_000_000
"""What burns more is left to the node: run here it would take seconds."""
REASON_CHARS_MAX = 300


class _Uncovered(Exception):
    """A simulation has no witness; the message tells why."""


@dataclass(frozen=True, slots=True)
class Found:
    """What running evidence again led to."""

    block_hash: str
    kept: tuple[Witness, ...]
    not_covered: str = ""


@asynccontextmanager
async def witnessing(live: LiveWindow) -> AsyncIterator[None]:
    """Keep witnesses while the window is played, and those that are owed at its end."""
    if live.evm is None:
        yield
        return
    keeping = asyncio.create_task(_keep_all(live))
    try:
        yield
        await _last(live, keeping)
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def _last(live: LiveWindow, keeping: asyncio.Task[None]) -> None:
    """Wait until nothing is owed any more, but not for long."""
    kept = asyncio.create_task(live.witnesses_owed.join())
    await asyncio.wait({kept, keeping}, timeout=LAST_S_MAX, return_when=asyncio.FIRST_COMPLETED)
    kept.cancel()


async def _keep_all(live: LiveWindow) -> None:
    seen = set[str]()
    while True:
        event = await live.witnesses_owed.get()
        evidence = evidence_of(event)
        if evidence and evidence not in seen and drawn(event, live.witness_one_in):
            seen.add(evidence)
            await quiet(live)
            await keep(live, event)
        live.witnesses_owed.task_done()


def evidence_of(event: Witnessed) -> str:
    """SHA-256 of the evidence that an event stands on; empty where it has none."""
    return event.digest if isinstance(event, GateTaken) else event.evidence_sha256


def drawn(event: Witnessed, one_in: int) -> bool:
    """Whether an event is among those that are witnessed; all events of an order are, or none."""
    seed = event.run_id if isinstance(event, WindowLiquidated) else event.order_id
    return int(sha256_hex(f"witness/{seed}".encode()), 16) % one_in == 0


async def keep(live: LiveWindow, event: Witnessed) -> None:
    """Run the recorded simulations of an event again and record what proves them, or why nothing does. Raises: StoreFault."""
    assert live.evm is not None
    found = await witnesses_of(live.evm, live.journal.blob(evidence_of(event)) or b"")
    kept, blobs = await asyncio.to_thread(written, event, found, live.clock.now_ms())
    await record(live, kept, blobs=blobs)


def written(event: Witnessed, found: Found, now_ms: int) -> tuple[WitnessKept, dict[str, bytes]]:
    """Write down what proves an event; with the bytes by SHA-256."""
    nodes = [shared(node for witness in found.kept for node in witness.nodes)] if found.kept else []
    codes = sorted({code for witness in found.kept for code in witness.codes})
    packed = [witness.encode(codes=False, nodes=False) for witness in found.kept]
    kept = WitnessKept(
        run_id=event.run_id, ts_ms=now_ms, order_id="" if isinstance(event, WindowLiquidated) else event.order_id,
        what=WHAT[type(event)], evidence_sha256=evidence_of(event), block_hash=found.block_hash, witnesses=tuple(map(sha256_hex, packed)),
        nodes="".join(map(sha256_hex, nodes)), codes=tuple(map(sha256_hex, codes)), not_covered=plain_text(found.not_covered, REASON_CHARS_MAX),
    )  # fmt: skip
    return kept, {sha256_hex(part): part for part in (*packed, *nodes, *codes)}


async def witnesses_of(evm: LocalEvm, evidence: bytes) -> Found:
    """Run recorded simulations again; a witness for each, or none where one of them has none."""
    block_hash, kept = "", list[Witness]()
    try:
        for recorded in recorded_in(evidence):
            block_hash = recorded.block_hash
            kept.append(await _witness(evm, recorded))
    except (_Uncovered, NotRecorded, ChainFault) as reason:
        return Found(block_hash, (), str(reason))
    except Exception as error:  # noqa: BLE001 nothing of it may reach the window
        return Found(block_hash, (), f"it could not be run: {type(error).__name__}")
    return Found(block_hash, tuple(kept))


async def _witness(evm: LocalEvm, recorded: Recorded) -> Witness:
    used = sum(call.gas_used for row in recorded.rows for call in row)
    if used > GAS_MAX:
        raise _Uncovered(f"it used {used} gas, more than {GAS_MAX}")
    found = await evm.run_blocks(recorded.block_hash, recorded.blocks)
    if isinstance(found, NotCovered):
        raise _Uncovered(found.reason)
    found, differs = await evm.held_to(found, recorded.rows)
    if differs:
        raise _Uncovered(f"differs: {differs}")
    return await asyncio.to_thread(found.witness)
