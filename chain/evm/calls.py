"""Instructions that begin another frame: calls and creations, and the end of a contract.

Source: the Yellow Paper, appendix H.2; EIP-150, 211, 214, 1014, 2929, 3541, 3860, 6780, 7702.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_hash.auto import keccak

from chain.evm import serial
from chain.evm.precompiles import POWERS, PRECOMPILES, RECOVERY, run_precompile
from chain.evm.rules import (
    ADDRESS_MASK,
    BYTES_PER_WORK,
    CODE_BYTES_MAX,
    CODE_EMPTY,
    DELEGATION,
    DELEGATION_BYTES,
    DEPTH_MAX,
    GAS_CALL_VALUE,
    GAS_CODE_BYTE,
    GAS_COLD_ADDRESS,
    GAS_CREATE,
    GAS_HASH_WORD,
    GAS_INIT_WORD,
    GAS_NEW_ACCOUNT,
    GAS_SELFDESTRUCT,
    GAS_STIPEND,
    GAS_WARM,
    HANDED_ON,
    INIT_CODE_BYTES_MAX,
    NONCE_MAX,
    WORK_RECOVERY,
    Halt,
    NotCoveredHere,
    words_of,
)
from chain.evm.state import NONCE_UNTOLD

if TYPE_CHECKING:
    from chain.evm.frame import Frame, Run

OWN_PRECOMPILES = range(0x64, 0x100)
"""Where chains keep precompiled contracts of their own."""
HISTORY = frozenset(
    {
        0x0000F90827F1C53A10CB7A02335B175320002935,  # block hashes, EIP-2935
        0x000F3DF6D732807EF1319FB7B8BB8522D0BEAC02,  # beacon roots, EIP-4788
    }
)
"""Contracts that the chain itself writes to at the start of a block, which a simulation may leave out."""


def known_here(run: Run, address: int) -> int:
    """Pass an address whose code is what it seems. Raises: NotCoveredHere."""
    if run.around.nitro and address in OWN_PRECOMPILES:
        raise NotCoveredHere(f"calls a precompiled contract of this chain, 0x{address:x}")
    if address in HISTORY:
        raise NotCoveredHere("calls a contract that the chain itself writes to")
    return address


def delegate_of(code: bytes) -> int | None:
    """Whose code an account runs instead of its own. Source: EIP-7702."""
    if len(code) == DELEGATION_BYTES and code.startswith(DELEGATION):
        return int.from_bytes(code[3:])
    return None


def touch_gas(run: Run, address: int) -> int:
    return GAS_WARM if run.state.warm_address(address) else GAS_COLD_ADDRESS


# --- calls ------------------------------------------------------------------------------------------------------------


def call(f: Frame) -> None:
    gas, address, value = f.stack.pop(), f.stack.pop() & ADDRESS_MASK, f.stack.pop()
    if value and f.static:
        raise Halt
    _call(f, gas, address, address, f.address, value, moves=True, static=f.static)


def callcode(f: Frame) -> None:
    gas, address, value = f.stack.pop(), f.stack.pop() & ADDRESS_MASK, f.stack.pop()
    _call(f, gas, address, f.address, f.address, value, moves=False, static=f.static, pays=True)


def delegatecall(f: Frame) -> None:
    gas, address = f.stack.pop(), f.stack.pop() & ADDRESS_MASK
    _call(f, gas, address, f.address, f.caller, f.value, moves=False, static=f.static)


def staticcall(f: Frame) -> None:
    gas, address = f.stack.pop(), f.stack.pop() & ADDRESS_MASK
    _call(f, gas, address, address, f.address, 0, moves=False, static=True)


def _call(f: Frame, asked: int, source: int, target: int, caller: int, value: int, *, moves: bool, static: bool, pays: bool = False) -> None:
    state, run = f.state, f.run
    since, size, out, out_size = f.stack.pop(), f.stack.pop(), f.stack.pop(), f.stack.pop()
    _reach_both(f, (since, size), (out, out_size))
    f.charge(touch_gas(run, source))
    pays = (pays or moves) and value > 0
    if pays:
        f.charge(GAS_CALL_VALUE)
        if moves and state.dead(target):
            f.charge(GAS_NEW_ACCOUNT)
    code, precompiled = _code_of(f, source)
    gas = min(asked, f.gas - f.gas // HANDED_ON)
    f.gas -= gas
    gas += GAS_STIPEND if pays else 0
    f.returned = b""
    if f.depth >= DEPTH_MAX or (pays and state.balance(f.address) < value):
        f.gas += gas
        return f.stack.append(0)
    run.spend((size + out_size) // BYTES_PER_WORK)
    data, mark = f.read(since, size), state.mark()
    if moves and value:
        move(run, f.address, target, value)
    if precompiled:
        return _run_precompile(f, source, data, gas, mark, (out, out_size))
    if not code:
        f.gas += gas
        return f.stack.append(1)

    def resume(parent: Frame, child: Frame) -> None:
        parent.gas += child.gas
        parent.returned = child.output
        _tell(parent, child.ok, child.output, (out, out_size))

    child = type(f)(run, code=code, address=target, caller=caller, value=value, data=data, gas=gas, static=static, depth=f.depth + 1, mark=mark)
    f.child, f.resume = child, resume


def _reach_both(f: Frame, read: tuple[int, int], written: tuple[int, int]) -> None:
    (since, size), (out, out_size) = read, written
    if out_size and (not size or out + out_size > since + size):
        f.reach(out, out_size)
    else:
        f.reach(since, size)


def _code_of(f: Frame, source: int) -> tuple[bytes, bool]:
    """The code that a call of an address runs, and whether it is a precompiled contract instead."""
    if known_here(f.run, source) in PRECOMPILES:
        return b"", True
    code = f.state.code(source)
    delegate = delegate_of(code)
    if delegate is None:
        return code, False
    f.charge(touch_gas(f.run, delegate))
    if delegate in PRECOMPILES:
        return b"", False
    return f.state.code(known_here(f.run, delegate)), False


def move(run: Run, sender: int, target: int, value: int) -> None:
    state = run.state
    state.set_balance(sender, state.balance(sender) - value)
    state.set_balance(target, state.balance(target) + value)


def _run_precompile(f: Frame, address: int, data: bytes, gas: int, mark: int, out: tuple[int, int]) -> None:
    left, output = precompiled(f.run, address, data, gas)
    if output is None:
        f.state.revert(mark)
    f.gas += left
    f.returned = output or b""
    _tell(f, output is not None, f.returned, out)


def precompiled(run: Run, address: int, data: bytes, gas: int) -> tuple[int, bytes | None]:
    """Gas that is left, and what it said; None where it failed. Raises: NotCoveredHere."""
    if address == POWERS and run.around.nitro:
        raise NotCoveredHere("calls modexp, whose price is not known on this chain")
    if address == RECOVERY:
        run.spend(WORK_RECOVERY)
    return run_precompile(address, data, gas)


def _tell(f: Frame, ok: bool, output: bytes, out: tuple[int, int]) -> None:
    told = output[: out[1]]
    if told:
        f.memory[out[0] : out[0] + len(told)] = told
    f.stack.append(int(ok))


# --- creations --------------------------------------------------------------------------------------------------------


def create(f: Frame) -> None:
    value, since, size = f.stack.pop(), f.stack.pop(), f.stack.pop()
    _create(f, value, since, size, None)


def create2(f: Frame) -> None:
    value, since, size, salt = f.stack.pop(), f.stack.pop(), f.stack.pop(), f.stack.pop()
    _create(f, value, since, size, salt)


def _create(f: Frame, value: int, since: int, size: int, salt: int | None) -> None:
    if f.static:
        raise Halt
    if size > INIT_CODE_BYTES_MAX:
        raise NotCoveredHere(f"creates a contract by more than {INIT_CODE_BYTES_MAX} bytes, which some chains let pass")
    state, run = f.state, f.run
    f.reach(since, size)
    f.charge(GAS_CREATE + (GAS_INIT_WORD + (0 if salt is None else GAS_HASH_WORD)) * words_of(size))
    code, nonce = f.read(since, size), state.nonce(f.address)
    if nonce == NONCE_UNTOLD:
        raise NotCoveredHere("a contract creates another, and its nonce was not asked for")
    f.returned = b""
    if f.depth >= DEPTH_MAX or state.balance(f.address) < value or nonce >= NONCE_MAX:
        return f.stack.append(0)
    gas = f.gas - f.gas // HANDED_ON
    f.gas -= gas
    state.set_nonce(f.address, nonce + 1)
    address = _created_address(f.address, nonce, code, salt)
    state.warm_address(address)
    if state.nonce(address) or state.code_hash(address) != CODE_EMPTY:
        return f.stack.append(0)
    mark = state.mark()
    state.create(address)
    state.set_nonce(address, 1)
    move(run, f.address, address, value)

    def resume(parent: Frame, child: Frame) -> None:
        parent.gas += child.gas
        parent.returned = b"" if child.ok else child.output
        parent.stack.append(address if child.ok else 0)

    f.child = type(f)(
        run, code=code, address=address, caller=f.address, value=value, data=b"", gas=gas, static=False, depth=f.depth + 1, mark=mark, creates=True
    )
    f.resume = resume


def _created_address(creator: int, nonce: int, code: bytes, salt: int | None) -> int:
    sender = creator.to_bytes(20)
    whole = keccak(serial.encode([sender, nonce])) if salt is None else keccak(b"\xff" + sender + salt.to_bytes(32) + keccak(code))
    return int.from_bytes(whole[12:])


def settle(child: Frame) -> None:
    """Keep what a creation returned as the new contract's code. Raises: Halt."""
    code = child.output
    if code.startswith(b"\xef"):
        raise Halt
    child.charge(GAS_CODE_BYTE * len(code))
    if len(code) > CODE_BYTES_MAX:
        raise NotCoveredHere(f"creates a contract of more than {CODE_BYTES_MAX} bytes, which some chains let pass")
    child.state.set_code(child.address, code)


# --- the end of a contract --------------------------------------------------------------------------------------------


def selfdestruct(f: Frame) -> None:
    if f.static:
        raise Halt
    state, target = f.state, f.stack.pop() & ADDRESS_MASK
    f.charge(GAS_SELFDESTRUCT)
    if not state.warm_address(target):
        f.charge(GAS_COLD_ADDRESS)
    balance = state.balance(f.address)
    if balance and state.dead(target):
        f.charge(GAS_NEW_ACCOUNT)
    fresh = state.created.get(f.address, False)
    if target != f.address:
        move(f.run, f.address, target, balance)
    elif fresh:
        state.set_balance(f.address, 0)
    if fresh:
        state.destroy(f.address)
    f.end()
