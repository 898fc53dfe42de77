"""Execution: the calls of a simulation run in order here, each with its gas really charged, and what each of them wrote.

It does what `eth_simulateV1` does with validation on: overrides at the start of a block, base fee and fees real, nonces not
checked, refunds paid back. Units: gas, wei.
Source: the execution API's `eth_simulateV1`; EIP-1559, 2930, 3529, 3651, 7623, 7702, 7825.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chain.evm.calls import delegate_of, known_here, move, precompiled
from chain.evm.frame import Frame, Log, Run, Surroundings
from chain.evm.interpreter import run_frames
from chain.evm.precompiles import PRECOMPILES
from chain.evm.program import Program
from chain.evm.proofs import ProvenHeader
from chain.evm.rules import GAS_TX_MAX, HANDED_ON, REFUND_PART, NotCoveredHere, intrinsic_gas
from chain.evm.state import Known, Missing, State, Word


@dataclass(frozen=True, slots=True)
class Write:
    """A word that a transaction left different."""

    contract: str
    slot: str
    before: int
    after: int
    by: frozenset[bytes] = field(default=frozenset(), compare=False)
    """Selectors that its contract was called with in the frames that wrote it."""


@dataclass(frozen=True, slots=True)
class AccountWrite:
    """An account that a transaction left different, beside its words."""

    address: str
    balance: tuple[int, int]
    """Before and after, in wei."""
    nonce: tuple[int, int]
    code: tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Read:
    """A word that a transaction read or wrote, in any of its frames: what it was before."""

    contract: str
    slot: str
    value: int


@dataclass(frozen=True, slots=True)
class LocalLog:
    address: str
    topics: tuple[str, ...]
    data: bytes


L1_GAS = "l1Gas"
"""What a call is charged for the chain beneath, before it begins."""


@dataclass(frozen=True, slots=True)
class LocalCall:
    """What one call did."""

    ok: bool
    gas_used: int
    """What is charged, after refunds."""
    gas_needed: int
    """What it used before refunds: a transaction with less gas fails."""
    data: bytes
    """What it returned, or why it reverted."""
    logs: tuple[LocalLog, ...]
    writes: tuple[Write, ...]
    """Every word that it left different, in whatever contract, in the order of their first change."""
    accounts: tuple[AccountWrite, ...]
    reads: tuple[Read, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a whole run stood on."""

    accounts: frozenset[int]
    words: frozenset[Word]
    blocks: frozenset[int]
    codes: frozenset[bytes]
    """By hash."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole run; where something is missing its calls mean nothing."""

    calls: list[list[LocalCall]]
    missing: Missing
    touched: Touched
    per_call: list[tuple[Mapping[str, str], Touched]]
    """What each call stood on, in order, with the call."""
    work: int
    """What it took here, in units of gas."""
    refused: str = ""
    """Why it could not be run to its end."""
    saw_chance: bool = False
    """Whether any call read a block's random word."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What is told of a chain and its pinned block beside the state."""

    chain_id: int
    block: int
    gas_limit: int
    coinbase: int
    blob_base_fee: int | None
    nitro: bool


def chain_of(header: ProvenHeader, chain_id: int) -> Chain:
    """What a pinned block's header says of its chain."""
    blob_base_fee = None if header.excess_blob_gas is None or header.excess_blob_gas else 1
    return Chain(chain_id, header.block, header.gas_limit, header.coinbase, blob_base_fee, header.nitro)


def execute(chain: Chain, known: Known, blocks: Sequence[Mapping[str, Any]], programs: dict[bytes, Program], patience: int = 0) -> Outcome:
    """Run blocks of calls, as a `Simulation` describes them, until more than `patience` words and accounts are missing."""
    state, told, per_call, refused, work = State(known, patience), list[list[LocalCall]](), list[tuple[Mapping[str, str], Touched]](), "", 0
    try:
        for block in blocks:
            _override(state, block.get("stateOverrides", {}))
            around = _surroundings(chain, block.get("blockOverrides", {}))
            told.append([])
            for call in block["calls"]:
                done, work = _transact(state, around, call, programs, work)
                told[-1].append(done)
                per_call.append((call, Touched(frozenset(state.warm_addresses), frozenset(state.touched), frozenset(), frozenset())))
    except NotCoveredHere as reason:
        refused = str(reason)
    touched = Touched(frozenset(state.read_accounts), frozenset(state.read_words), frozenset(state.read_blocks), frozenset(state.read_codes))
    return Outcome(told, state.missing, touched, per_call, work, refused, state.saw_chance)


def least_gas(chain: Chain, known: Known, blocks: Sequence[Mapping[str, Any]], handle: tuple[int, int]) -> int:
    """The least gas limit with which a call does what it does with its own, at most that; what is before it is run once."""
    state, programs, (block, place) = State(known, 0), dict[bytes, Program](), handle
    for before in blocks[:block]:
        _run_block(state, chain, before, before["calls"], programs)
    calls = blocks[block]["calls"]
    around = _run_block(state, chain, blocks[block], calls[:place], programs)
    whole, _ = _transact(state.copy(), around, calls[place], programs, 0)

    def suffices(gas: int) -> bool:
        trial = state.copy()
        try:
            found, _ = _transact(trial, around, {**calls[place], "gas": hex(gas)}, programs, 0)
        except NotCoveredHere:
            return False
        return (found.ok, found.data, found.logs, found.writes) == (whole.ok, whole.data, whole.logs, whole.writes)

    least, most = whole.gas_needed, int(calls[place]["gas"], 16)
    if suffices(least):
        return least
    step = least // HANDED_ON
    while least + step < most and not suffices(least + step):
        least, step = least + step, 2 * step
    most = min(least + step, most)
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if suffices(middle) else (middle, most)
    return most


def _run_block(state: State, chain: Chain, block: Mapping[str, Any], calls: Sequence[Mapping[str, str]], programs: dict[bytes, Program]) -> Surroundings:
    _override(state, block["stateOverrides"])
    around = _surroundings(chain, block["blockOverrides"])
    for call in calls:
        _transact(state, around, call, programs, 0)
    return around


def _override(state: State, overrides: Mapping[str, Mapping[str, Any]]) -> None:
    for text, override in overrides.items():
        address = int(text, 16)
        if unknown := override.keys() - {"balance", "nonce", "code", "stateDiff"}:
            raise NotCoveredHere(f"an override of {min(unknown)}")
        balance, nonce = (int(override[name], 16) if name in override else None for name in ("balance", "nonce"))
        state.override(address, balance, nonce, bytes.fromhex(override["code"][2:]) if "code" in override else None)
        for slot, value in override.get("stateDiff", {}).items():
            state.words[address, int(slot, 16)] = int(value, 16)


def _surroundings(chain: Chain, header: Mapping[str, str]) -> Surroundings:
    if unknown := header.keys() - {"number", "time", "baseFeePerGas", "prevRandao", "feeRecipient"}:
        raise NotCoveredHere(f"a block with its own {min(unknown)}")
    told = {name: int(value, 16) for name, value in header.items()}
    return Surroundings(
        chain_id=chain.chain_id,
        number=told["number"],
        time=told["time"],
        base_fee=told["baseFeePerGas"],
        randao=told.get("prevRandao"),
        coinbase=told.get("feeRecipient", chain.coinbase),
        gas_limit=chain.gas_limit,
        blob_base_fee=chain.blob_base_fee,
        first_simulated=chain.block + 1,
        nitro=chain.nitro,
    )


def _transact(state: State, around: Surroundings, call: Mapping[str, str], programs: dict[bytes, Program], work: int) -> tuple[LocalCall, int]:
    """Run one call; also the work of all calls so far."""
    sender, target = int(call["from"], 16), int(call["to"], 16)
    value, limit, data = int(call.get("value", "0x0"), 16), int(call["gas"], 16), bytes.fromhex(call["data"][2:])
    price = int(call["maxFeePerGas"], 16)
    state.begin()
    intrinsic, floor = intrinsic_gas(data)
    beneath = int(call.get(L1_GAS, "0x0"), 16)
    _admit(state, around, sender, limit, price, value, max(intrinsic, floor) + beneath)
    run = Run(state, around, sender, price, programs=programs, work=work)
    state.set_balance(sender, state.balance(sender) - limit * price)
    state.set_nonce(sender, state.nonce(sender) + 1)
    for address in (sender, target, around.coinbase, *PRECOMPILES):
        state.warm_address(address)
    ok, left, output = _run(run, sender, target, value, data, limit - beneath - intrinsic)
    spent = limit - beneath - left
    used = max(spent - min(spent // REFUND_PART, run.refund), floor) + beneath
    state.set_balance(sender, state.balance(sender) + (limit - used) * price)
    state.end()
    run.spend(spent)
    return _call(state, run, ok, used, max(spent, floor) + beneath, output), run.work


def _admit(state: State, around: Surroundings, sender: int, limit: int, price: int, value: int, least: int) -> None:
    if price != around.base_fee:
        raise NotCoveredHere("a fee other than the base fee")
    if limit < least:
        raise NotCoveredHere(f"a call with {limit} gas, which needs {least} before it begins")
    if limit > GAS_TX_MAX:
        raise NotCoveredHere(f"a call with more than {GAS_TX_MAX} gas")
    if not state.missing and state.balance(sender) < limit * price + value:
        raise NotCoveredHere("a call whose sender cannot pay for it")


def _run(run: Run, sender: int, target: int, value: int, data: bytes, gas: int) -> tuple[bool, int, bytes]:
    """Whether it went through, gas left, and what it said."""
    state = run.state
    mark = state.mark()
    known_here(run, target)
    code = state.code(target)
    delegate = delegate_of(code)
    if delegate is not None:
        state.warm_address(delegate)
        code = b"" if delegate in PRECOMPILES else state.code(known_here(run, delegate))
    if value:
        move(run, sender, target, value)
    if target in PRECOMPILES:
        left, output = precompiled(run, target, data, gas)
        if output is None:
            state.revert(mark)
        return output is not None, left, output or b""
    if not code:
        return True, gas, b""
    frame = run_frames(Frame(run, code=code, address=target, caller=sender, value=value, data=data, gas=gas, static=False, depth=0, mark=mark))
    return frame.ok, frame.gas, frame.output


def _call(state: State, run: Run, ok: bool, used: int, needed: int, output: bytes) -> LocalCall:
    return LocalCall(
        ok=ok,
        gas_used=used,
        gas_needed=needed,
        data=output,
        logs=tuple(_log(log) for log in run.logs),
        writes=tuple(
            Write(address_text(word[0]), word_text(word[1]), before, after, frozenset(state.writers.get(word, ())))
            for word, before, after in state.changed_words()
        ),
        accounts=tuple(_accounts(state)),
        reads=tuple(Read(address_text(word[0]), word_text(word[1]), state.original(word)) for word in state.touched),
    )


def _log(log: Log) -> LocalLog:
    return LocalLog(address_text(log.address), tuple(map(word_text, log.topics)), log.data)


def _accounts(state: State) -> list[AccountWrite]:
    found = []
    for address in {**state.first_balances, **state.first_nonces, **state.first_codes}:
        row = AccountWrite(
            address_text(address),
            (state.first_balances.get(address, state.balance(address)), state.balance(address)),
            (state.first_nonces.get(address, state.nonce(address)), state.nonce(address)),
            (state.first_codes.get(address, state.code(address)), state.code(address)),
        )
        if any(before != after for before, after in (row.balance, row.nonce, row.code)):
            found.append(row)
    return found


def address_text(address: int) -> str:
    return f"0x{address:040x}"


def word_text(word: int) -> str:
    return f"0x{word:064x}"
