"""The local EVM: runs a simulation in process on proven state, fetching what it lacks until nothing is missing.

A first guess of what a call will ask for is what calls of the same kind asked for before; what is missing after a run is
fetched together and the run repeated. What it cannot run truly it says.
Source: EIP-1186.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chain.evm.execute import LocalCall, LocalLog, Touched, chain_of, execute
from chain.evm.pinned import Codes, Pinned
from chain.evm.program import Program
from chain.evm.rules import NotCoveredHere
from chain.evm.state import Missing, Word
from chain.evm.witness import Witness, witness_of
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import NATIVE_LOG, CallAnswer, Simulated, Simulation

ROUNDS_MAX = 24
MISSING_MAX = 4_096
"""Accounts, words and codes of one run."""
PINNED_KEPT, HINTS_KEPT, PROGRAMS_KEPT = 8, 1_024, 2_048

Kind = tuple[str, str]
"""Whom a call calls, and with which selector."""


@dataclass(frozen=True, slots=True)
class NotCovered:
    """A simulation whose results are not known here."""

    reason: str


@dataclass(frozen=True, slots=True)
class Executed:
    """A simulation that was run here."""

    calls: list[list[LocalCall]]
    trips: int
    """Questions put to the node for it, each one batch."""
    pinned: Pinned = field(repr=False)
    chain_id: int
    blocks: list[dict[str, Any]] = field(repr=False)
    touched: Touched = field(repr=False)

    def witness(self) -> Witness:
        """Everything that is needed to run it again offline."""
        return witness_of(self.pinned, self.chain_id, self.blocks, self.touched, self.calls)


class LocalEvm:
    """One network's local EVM."""

    def __init__(self, door: RpcDoor, chain_id: int, *, apart: bool = False) -> None:
        """Prepare it; `apart` executes in a thread, for who is in no hurry and runs one simulation after another."""
        self._door, self._chain_id, self._apart = door, chain_id, apart
        self._codes = Codes()
        self._pinned: OrderedDict[str, Pinned] = OrderedDict()
        self._programs: dict[bytes, Program] = {}
        self._hints: OrderedDict[Kind, tuple[frozenset[int], frozenset[Word]]] = OrderedDict()

    async def run(self, simulation: Simulation) -> Executed | NotCovered:
        """Run a simulation. Raises: ChainFault when the node fails, or sends what proves nothing."""
        return await self.run_blocks(simulation.pin.block_hash, simulation.blocks)

    async def run_blocks(self, block_hash: str, blocks: list[dict[str, Any]]) -> Executed | NotCovered:
        """Run the blocks of a request as it was written. Raises: ChainFault as `run` does."""
        try:
            return await self._run(block_hash, blocks)
        except NotCoveredHere as reason:
            return NotCovered(str(reason))
        except RpcRefused as refused:
            return NotCovered(f"the node refused: {refused.message}")

    async def _run(self, block_hash: str, blocks: list[dict[str, Any]]) -> Executed | NotCovered:
        pinned, trips = await self._at(block_hash)
        chain = chain_of(pinned.header, self._chain_id)
        missing = self._guess(pinned, blocks)
        for _ in range(ROUNDS_MAX):
            if missing:
                await pinned.fetch(self._door, missing, self._codes)
                trips += 1
            work = chain, pinned.known, blocks, self._programs
            outcome = await asyncio.to_thread(execute, *work) if self._apart else execute(*work)
            missing = outcome.missing
            if len(missing) > MISSING_MAX:
                return NotCovered(f"it asks for more than {MISSING_MAX} accounts and words at once")
            if not missing:
                if outcome.refused:
                    return NotCovered(outcome.refused)
                self._learn(blocks, outcome.touched)
                return Executed(outcome.calls, trips, pinned, self._chain_id, blocks, outcome.touched)
        return NotCovered(f"after {ROUNDS_MAX} rounds it still asked for more")

    async def _at(self, block_hash: str) -> tuple[Pinned, int]:
        found, trips = self._pinned.get(block_hash), 0
        if found is None:
            found, trips = self._pinned.setdefault(block_hash, await Pinned.at(self._door, block_hash)), 1
            while len(self._pinned) > PINNED_KEPT:
                self._pinned.popitem(last=False)
        self._pinned.move_to_end(block_hash)
        if len(self._programs) > PROGRAMS_KEPT:
            self._programs.clear()
        return found, trips

    # --- guessing -----------------------------------------------------------------------------------------------------

    def _guess(self, pinned: Pinned, blocks: Sequence[dict[str, Any]]) -> Missing:
        """What the calls will surely ask for, and what calls like them asked for before."""
        accounts, words = set[int](), set[Word]()
        for block in blocks:
            accounts |= {int(address, 16) for address in block["stateOverrides"]}
            for call in block["calls"]:
                accounts |= {int(call["from"], 16), int(call["to"], 16)}
                hint = self._hints.get(_kind(call))
                if hint:
                    accounts |= hint[0]
                    words |= hint[1]
        known = pinned.known
        return Missing(accounts - known.accounts.keys(), words - known.words.keys())

    def _learn(self, blocks: Sequence[dict[str, Any]], touched: Touched) -> None:
        for block in blocks:
            for call in block["calls"]:
                self._hints[_kind(call)] = touched.accounts, touched.words
                self._hints.move_to_end(_kind(call))
        while len(self._hints) > HINTS_KEPT:
            self._hints.popitem(last=False)


def _kind(call: dict[str, str]) -> Kind:
    return call["to"], call["data"][:10]


# --- beside the node ----------------------------------------------------------------------------------------------------


def same_as_node(executed: Executed, simulated: Simulated) -> bool:
    """Say whether every call did here what the node says it did: outcome, data, gas and logs."""
    return difference(executed, simulated) == ""


def difference(executed: Executed, simulated: Simulated) -> str:
    """The first thing that a call did otherwise here than the node says; empty where there is none."""
    return difference_of(executed.calls, simulated.rows)


def difference_of(calls: Sequence[Sequence[LocalCall]], rows: Sequence[Sequence[CallAnswer]]) -> str:
    """The same of calls and answers alone."""
    if [len(row) for row in calls] != [len(row) for row in rows]:
        return "another number of calls"
    for block, (row, answers) in enumerate(zip(calls, rows, strict=True)):
        for place, (call, answer) in enumerate(zip(row, answers, strict=True)):
            if found := _different(call, answer):
                return f"call {place} of block {block}: {found}"
    return ""


def _different(call: LocalCall, answer: CallAnswer) -> str:
    if call.ok != answer.ok:
        return f"{'went through' if call.ok else 'failed'} here, not at the node"
    if call.gas_used != answer.gas_used:
        return f"used {call.gas_used} gas here, {answer.gas_used} at the node"
    if call.data != answer.data:
        return f"returned 0x{call.data[:64].hex()} here, 0x{answer.data[:64].hex()} at the node"
    told = [_node_log(log) for log in answer.logs if not (isinstance(log, dict) and log.get("address") == NATIVE_LOG)]
    return "" if list(call.logs) == told else f"logged {len(call.logs)} times here, {len(told)} at the node, or otherwise"


def _node_log(log: Any) -> LocalLog | None:
    try:
        return LocalLog(log["address"].lower(), tuple(topic.lower() for topic in log["topics"]), bytes.fromhex(log["data"][2:]))
    except (TypeError, KeyError, AttributeError, ValueError):
        return None
