"""The local EVM: runs a simulation in process, fetching what it lacks of the state until nothing is missing.

A first guess of what a call will ask for is what calls of the same kind asked for before; what is missing after a run is
fetched together and the run repeated. What it cannot run truly it says.
Source: EIP-1186.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from chain.evm.execute import LocalCall, Outcome, Touched, chain_of, execute, least_gas
from chain.evm.l1_gas import Charged, charged, charges_in, with_charges
from chain.evm.pinned import Codes, Pinned
from chain.evm.program import Program
from chain.evm.rules import WORK_MAX, NotCoveredHere
from chain.evm.state import Known, Missing, Word
from chain.evm.witness import Witness, witness_of
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import NATIVE_LOG, CallAnswer, Handle, Simulated, Simulation, log_told
from ledgers.errors import ChainFault

ROUNDS_MAX, ROUNDS_WORK_MAX = 64, 2 * WORK_MAX
PATIENCE, ROUNDS_PATIENT, MISSING_MAX = 24, 4, 4_096
"""Accounts and words that may be missing in one run, twice as many after each four, and how many in any."""
PINNED_KEPT, HINTS_KEPT, PROGRAMS_KEPT = 16, 1_024, 1_024

ETH = -1
"""Stands for a slot where an account's balance is meant."""
Kind = tuple[str, str]
"""Whom a call calls, and with which selector."""


@dataclass(frozen=True, slots=True)
class NotCovered:
    """A simulation whose results are not known here."""

    reason: str


@dataclass(frozen=True, slots=True)
class Executed:
    """A simulation that was run here; a handle of it is the block and place of a call."""

    calls: list[list[LocalCall]]
    trips: int
    """Questions put to the node for it, each one batch."""
    pinned: Pinned = field(repr=False)
    chain_id: int
    blocks: list[dict[str, Any]] = field(repr=False)
    touched: Touched = field(repr=False)
    saw_chance: bool = False
    """Whether any call read a block's random word."""

    def __getitem__(self, handle: Handle) -> LocalCall:
        return self.calls[handle[0]][handle[1]]

    @property
    def charges(self) -> Charged:
        """The L1 part of each call's gas."""
        return charges_in(self.blocks)

    def witness(self) -> Witness:
        """Everything that is needed to run it again offline; only a run on proven state has one."""
        if not self.pinned.proven:
            raise ValueError("a run on state as told has no witness; prove it first")
        return witness_of(self.pinned, self.chain_id, self.blocks, self.touched, self.calls)

    def least_gas(self, handle: Handle) -> int:
        """The gas limit with which a call does what it did, and with less does not.

        It may be more than it used before refunds: a call hands on at most 63 of 64 parts of what is left. At most the limit that it had."""
        return least_gas(chain_of(self.pinned.header, self.chain_id), self.pinned.known, self.blocks, handle)


class LocalEvm:
    """One network's local EVM."""

    def __init__(self, door: RpcDoor, chain_id: int, *, apart: bool = False, codes: Codes | None = None) -> None:
        """Prepare it; `apart` executes in a thread, for who is in no hurry and runs one simulation after another.

        With `codes` it shares the code that another one of the same chain has."""
        self._door, self._chain_id, self._apart = door, chain_id, apart
        self.codes = Codes() if codes is None else codes
        self._pinned: OrderedDict[tuple[str, bool], Pinned] = OrderedDict()
        self._headers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._programs: dict[bytes, Program] = {}
        self._hints: OrderedDict[Kind, tuple[frozenset[int], frozenset[Word]]] = OrderedDict()

    async def run(self, simulation: Simulation, *, proven: bool = True, charges: Charged = ()) -> Executed | NotCovered:
        """Run a simulation on proven state, or on state as the node tells it, which is quicker; `charges` is the L1 part of each call's gas.

        Raises: ChainFault when the node fails, or sends what proves nothing."""
        blocks = deepcopy(simulation.blocks)
        return await self.run_blocks(simulation.pin.block_hash, with_charges(blocks, charges) if charges else blocks, proven=proven)

    async def held_to(self, found: Executed, rows: Sequence[Sequence[CallAnswer]]) -> tuple[Executed, str]:
        """Hold a run to a node's answers, where the chain charges for the one beneath with what the node charged for it.

        Shapes: beside it the first difference, empty where there is none. Raises: ChainFault as `run` does."""
        differs = difference_of(found.calls, rows)
        more = charged(found.calls, rows) if differs and found.pinned.header.nitro else None
        if more is None:
            return found, differs
        again = await self.run_blocks("0x" + found.pinned.header.block_hash.hex(), with_charges(found.blocks, more), proven=found.pinned.proven)
        return (found, differs) if isinstance(again, NotCovered) else (again, difference_of(again.calls, rows))

    async def prove(self, executed: Executed) -> Executed | NotCovered:
        """Run again on proven state what was run on state as told. Raises: ChainFault when it then does something else."""
        found = await self.run_blocks("0x" + executed.pinned.header.block_hash.hex(), executed.blocks, proven=True)
        if isinstance(found, Executed) and found.calls != executed.calls:
            raise ChainFault("state_differs", "the node told of another state than it proves")
        return found

    async def run_blocks(
        self, block_hash: str, blocks: list[dict[str, Any]], *, proven: bool = True
    ) -> Executed | NotCovered:
        """Run the blocks of a request as it was written. Raises: ChainFault as `run` does."""
        try:
            return await self._run(block_hash, blocks, proven)
        except NotCoveredHere as reason:
            return NotCovered(str(reason))
        except RpcRefused as refused:
            return NotCovered(f"the node refused: {refused.message}")

    async def look(self, block_hash: str, places: Iterable[Word]) -> Known:
        """What a block's state holds in some words, as the node tells it; places of slot `ETH` are balances. Raises: ChainFault."""
        wanted = set(places)
        try:
            pinned, _ = await self._at(block_hash, False)
            missing = Missing({address for address, _ in wanted}, {place for place in wanted if place[1] != ETH})
            await pinned.fetch(self._door, missing, self.codes)
        except (NotCoveredHere, RpcRefused) as reason:
            raise ChainFault("node_error", f"the node does not tell what the chain holds: {reason}") from None
        return pinned.known

    async def _run(self, block_hash: str, blocks: list[dict[str, Any]], proven: bool) -> Executed | NotCovered:
        pinned, trips = await self._at(block_hash, proven)
        chain = chain_of(pinned.header, self._chain_id)
        missing, work = self._guess(pinned, blocks), 0
        for turn in range(ROUNDS_MAX):
            if missing:
                await pinned.fetch(self._door, missing, self.codes)
                trips += 1
            job = chain, pinned.known, blocks, self._programs, PATIENCE << turn // ROUNDS_PATIENT
            outcome = await asyncio.to_thread(execute, *job) if self._apart else execute(*job)
            missing, work = outcome.missing, work + outcome.work
            if len(missing) > MISSING_MAX or (missing and work > ROUNDS_WORK_MAX):
                return NotCovered("it asks for more than is fetched here")
            if not missing:
                if outcome.refused:
                    return NotCovered(outcome.refused)
                self._learn(outcome)
                return Executed(outcome.calls, trips, pinned, self._chain_id, blocks, outcome.touched, outcome.saw_chance)
        return NotCovered(f"after {ROUNDS_MAX} rounds it still asked for more")

    def see(self, header: Any) -> None:
        """Keep a header as a node wrote it, so that it need not be asked for again; it is held to its hash when it is used."""
        if isinstance(header, dict) and isinstance(header.get("hash"), str):
            self._headers[header["hash"]] = header
            while len(self._headers) > PINNED_KEPT:
                self._headers.popitem(last=False)

    async def _at(self, block_hash: str, proven: bool) -> tuple[Pinned, int]:
        found, trips = self._pinned.get((block_hash, proven)), 0
        if found is None:
            seen = self._headers.get(block_hash)
            begun = await Pinned.at(self._door, block_hash, proven=proven, header=seen)
            found, trips = self._pinned.setdefault((block_hash, proven), begun), 0 if seen else 1
            while len(self._pinned) > PINNED_KEPT:
                self._pinned.popitem(last=False)
        self._pinned.move_to_end((block_hash, proven))
        if len(self._programs) > PROGRAMS_KEPT:
            self._programs.clear()
        return found, trips

    def forget_blocks(self) -> None:
        """Forget what is known of every block; code and what calls ask for are kept."""
        self._pinned.clear()

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
        set_here = {(int(address, 16), int(slot, 16)) for block in blocks for address, row in block["stateOverrides"].items() for slot in row.get("stateDiff", ())}
        return Missing(accounts - known.accounts.keys(), words - known.words.keys() - set_here)

    def _learn(self, outcome: Outcome) -> None:
        """Keep what each call asked the chain for; what was set by override or made in the run is left out."""
        for call, touched in outcome.per_call:
            self._hints[_kind(call)] = touched.accounts & outcome.touched.accounts, touched.words & outcome.touched.words
            self._hints.move_to_end(_kind(call))
        while len(self._hints) > HINTS_KEPT:
            self._hints.popitem(last=False)


def _kind(call: Mapping[str, str]) -> Kind:
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
    told = [log_told(log) for log in answer.logs if not (isinstance(log, dict) and log.get("address") == NATIVE_LOG)]
    return "" if [(log.address, log.topics, log.data) for log in call.logs] == told else f"logged {len(call.logs)} times here, {len(told)} at the node, or otherwise"
