"""Instructions: what each does to the frame that runs it.

Those that only reckon are in `arithmetic`, those that begin another frame in `calls`.
Source: the Yellow Paper, appendix H.2; EIP-1153, 2200, 2929, 3529, 5656.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor
from typing import Any

from eth_hash.auto import keccak

from chain.evm import arithmetic, calls
from chain.evm.frame import Frame, Log
from chain.evm.program import BINARY, DUP, FULL, JUMP, JUMPI, NOTHING, PC, POP, PUSH, SWAP, UNARY, Step
from chain.evm.rules import (
    ADDRESS_MASK,
    BLOCK_HASHES,
    GAS_COLD_WORD,
    GAS_COPY_WORD,
    GAS_EXP_BYTE,
    GAS_HASH_WORD,
    GAS_LOG,
    GAS_LOG_BYTE,
    GAS_WARM,
    GAS_WORD_CHANGE,
    GAS_WORD_SET,
    GAS_WORD_STIPEND,
    REFUND_CLEAR,
    Halt,
    NotCoveredHere,
    words_of,
)


def step_at(code: bytes, place: int) -> Step:
    """Read the step at a place; past the end of the code it stops."""
    if place >= len(code):
        return (*STEPS[0], place)
    instruction = code[place]
    if 0x60 <= instruction <= 0x7F:
        size = instruction - 0x5F
        data = code[place + 1 : place + 1 + size]
        return PUSH, 3, int.from_bytes(data.ljust(size, b"\0")), min(place + 1 + size, len(code))
    return (*STEPS.get(instruction, UNKNOWN), place + 1)


# --- reckoning that costs by size -------------------------------------------------------------------------------------


def _exp(f: Frame) -> None:
    base, power = f.stack.pop(), f.stack.pop()
    f.charge(GAS_EXP_BYTE * ((power.bit_length() + 7) >> 3))
    f.stack.append(arithmetic.exp(base, power))


def _addmod(f: Frame) -> None:
    f.stack.append(arithmetic.addmod(f.stack.pop(), f.stack.pop(), f.stack.pop()))


def _mulmod(f: Frame) -> None:
    f.stack.append(arithmetic.mulmod(f.stack.pop(), f.stack.pop(), f.stack.pop()))


def _keccak(f: Frame) -> None:
    offset, size = f.stack.pop(), f.stack.pop()
    f.charge(GAS_HASH_WORD * words_of(size))
    f.reach(offset, size)
    f.stack.append(int.from_bytes(keccak(f.read(offset, size))))


# --- memory -----------------------------------------------------------------------------------------------------------


def _mload(f: Frame) -> None:
    offset = f.stack[-1]
    if offset + 32 > len(f.memory):
        f.reach(offset, 32)
    f.stack[-1] = int.from_bytes(f.memory[offset : offset + 32])


def _mstore(f: Frame) -> None:
    offset, value = f.stack.pop(), f.stack.pop()
    if offset + 32 > len(f.memory):
        f.reach(offset, 32)
    f.memory[offset : offset + 32] = value.to_bytes(32)


def _mstore8(f: Frame) -> None:
    offset, value = f.stack.pop(), f.stack.pop()
    f.reach(offset, 1)
    f.memory[offset] = value & 0xFF


def _mcopy(f: Frame) -> None:
    to, since, size = f.stack.pop(), f.stack.pop(), f.stack.pop()
    f.charge(GAS_COPY_WORD * words_of(size))
    f.reach(max(to, since), size)
    if size:
        f.memory[to : to + size] = f.memory[since : since + size]


def _copy(f: Frame, source: bytes) -> None:
    to, since, size = f.stack.pop(), f.stack.pop(), f.stack.pop()
    f.charge(GAS_COPY_WORD * words_of(size))
    f.reach(to, size)
    if size:
        f.memory[to : to + size] = source[since : since + size].ljust(size, b"\0")


def _returndatacopy(f: Frame) -> None:
    if f.stack[-2] + f.stack[-3] > len(f.returned):
        raise Halt
    _copy(f, f.returned)


def _calldataload(f: Frame) -> None:
    offset = f.stack[-1]
    f.stack[-1] = int.from_bytes(f.data[offset : offset + 32].ljust(32, b"\0"))


# --- surroundings -----------------------------------------------------------------------------------------------------


def _gives(what: Callable[[Frame], int]) -> Callable[[Frame], None]:
    def step(f: Frame) -> None:
        f.stack.append(what(f))

    return step


def _touch(f: Frame, address: int) -> None:
    f.charge(calls.touch_gas(f.run, address))


def _balance(f: Frame) -> None:
    address = f.stack.pop() & ADDRESS_MASK
    _touch(f, address)
    f.stack.append(f.state.balance(address))


def _extcodesize(f: Frame) -> None:
    address = f.stack.pop() & ADDRESS_MASK
    _touch(f, address)
    f.stack.append(len(f.state.code(calls.known_here(f.run, address))))


def _extcodecopy(f: Frame) -> None:
    address = f.stack.pop() & ADDRESS_MASK
    _touch(f, address)
    _copy(f, f.state.code(calls.known_here(f.run, address)))


def _extcodehash(f: Frame) -> None:
    address = f.stack.pop() & ADDRESS_MASK
    _touch(f, address)
    code_hash = f.state.code_hash(calls.known_here(f.run, address))
    f.stack.append(0 if f.state.dead(address) else int.from_bytes(code_hash))


def _blockhash(f: Frame) -> None:
    height, here = f.stack.pop(), f.run.around.number
    _own_meaning(f, "the hash of a block")
    if not here - BLOCK_HASHES <= height < here:
        return f.stack.append(0)
    if height >= f.run.around.first_simulated:
        raise NotCoveredHere("asks for the hash of a simulated block")
    f.stack.append(f.state.block_hash(height))


def _own_meaning(f: Frame, name: str) -> None:
    if f.run.around.nitro:
        raise NotCoveredHere(f"asks for {name}, which has its own meaning on this chain")


def _of_block(name: str, what: Callable[[Frame], int]) -> Callable[[Frame], None]:
    """A step that tells something of the block that some chains take otherwise."""

    def step(f: Frame) -> None:
        _own_meaning(f, name)
        f.stack.append(what(f))

    return step


def _random_word(f: Frame) -> int | None:
    f.state.saw_chance = True
    return f.run.around.randao


def _unsure(name: str, what: Callable[[Frame], int | None]) -> Callable[[Frame], None]:
    """A step that tells something of the block which is not always known."""

    def step(f: Frame) -> None:
        _own_meaning(f, name)
        value = what(f)
        if value is None:
            raise NotCoveredHere(f"asks for {name}, which is not known here")
        f.stack.append(value)

    return step


def _clz(f: Frame) -> None:
    if f.run.around.nitro:
        raise NotCoveredHere("counts leading zeros, which this chain may not know")
    f.stack[-1] = arithmetic.clz(f.stack[-1])


def _blobhash(f: Frame) -> None:
    f.stack[-1] = 0


# --- storage ----------------------------------------------------------------------------------------------------------


def _sload(f: Frame) -> None:
    word = (f.address, f.stack.pop())
    f.charge(GAS_WARM if f.state.warm_word(word) else GAS_COLD_WORD)
    f.stack.append(f.state.word(word))


def _sstore(f: Frame) -> None:
    if f.static or f.gas <= GAS_WORD_STIPEND:
        raise Halt
    word, new = (f.address, f.stack.pop()), f.stack.pop()
    state = f.state
    if not state.warm_word(word):
        f.charge(GAS_COLD_WORD)
    current, original = state.word(word), state.original(word)
    if current == new or original != current:
        f.charge(GAS_WARM)
    else:
        f.charge(GAS_WORD_CHANGE if original else GAS_WORD_SET)
    if current != new:
        f.run.refund += _refund(original, current, new)
        state.set_word(word, new)
        state.writers.setdefault(word, set()).add(bytes(f.data[:4]))


def _refund(original: int, current: int, new: int) -> int:
    """What changing a word adds to the refund. Source: EIP-3529."""
    if original == current:
        return REFUND_CLEAR if original and not new else 0
    refund = 0
    if original:
        refund = -REFUND_CLEAR if not current else REFUND_CLEAR if not new else 0
    if original == new:
        refund += GAS_WORD_CHANGE - GAS_WARM if original else GAS_WORD_SET - GAS_WARM
    return refund


def _tload(f: Frame) -> None:
    f.stack[-1] = f.state.transient.get((f.address, f.stack[-1]), 0)


def _tstore(f: Frame) -> None:
    if f.static:
        raise Halt
    slot, value = f.stack.pop(), f.stack.pop()
    f.state.set_transient((f.address, slot), value)


# --- logs and ends ----------------------------------------------------------------------------------------------------


def _log(topics: int) -> Callable[[Frame], None]:
    def step(f: Frame) -> None:
        if f.static:
            raise Halt
        offset, size = f.stack.pop(), f.stack.pop()
        told = tuple(f.stack.pop() for _ in range(topics))
        f.charge(GAS_LOG * topics + GAS_LOG_BYTE * size)
        f.reach(offset, size)
        f.run.logs.append(Log(f.address, told, f.read(offset, size)))

    return step


def _stop(f: Frame) -> None:
    f.end()


def _return(f: Frame, ok: bool = True) -> None:
    offset, size = f.stack.pop(), f.stack.pop()
    f.reach(offset, size)
    f.end(f.read(offset, size), ok)


def _revert(f: Frame) -> None:
    _return(f, ok=False)


def _unknown(_f: Frame) -> None:
    raise Halt


UNKNOWN: tuple[int, int, Any] = (FULL, 0, _unknown)
_REST: dict[int, tuple[int, int, Any]] = {
    0x00: (FULL, 0, _stop),
    0x01: (BINARY, 3, arithmetic.add), 0x02: (BINARY, 5, arithmetic.mul), 0x03: (BINARY, 3, arithmetic.sub),
    0x04: (BINARY, 5, arithmetic.div), 0x05: (BINARY, 5, arithmetic.sdiv), 0x06: (BINARY, 5, arithmetic.mod),
    0x07: (BINARY, 5, arithmetic.smod), 0x08: (FULL, 8, _addmod), 0x09: (FULL, 8, _mulmod), 0x0A: (FULL, 10, _exp),
    0x0B: (BINARY, 5, arithmetic.signextend), 0x10: (BINARY, 3, arithmetic.lt), 0x11: (BINARY, 3, arithmetic.gt),
    0x12: (BINARY, 3, arithmetic.slt), 0x13: (BINARY, 3, arithmetic.sgt), 0x14: (BINARY, 3, arithmetic.eq),
    0x15: (UNARY, 3, arithmetic.iszero), 0x16: (BINARY, 3, and_), 0x17: (BINARY, 3, or_), 0x18: (BINARY, 3, xor),
    0x19: (UNARY, 3, arithmetic.not_), 0x1A: (BINARY, 3, arithmetic.byte), 0x1B: (BINARY, 3, arithmetic.shl),
    0x1C: (BINARY, 3, arithmetic.shr), 0x1D: (BINARY, 3, arithmetic.sar), 0x1E: (FULL, 5, _clz),
    0x20: (FULL, 30, _keccak),
    0x30: (FULL, 2, _gives(lambda f: f.address)), 0x31: (FULL, 0, _balance), 0x32: (FULL, 2, _gives(lambda f: f.run.origin)),
    0x33: (FULL, 2, _gives(lambda f: f.caller)), 0x34: (FULL, 2, _gives(lambda f: f.value)), 0x35: (FULL, 3, _calldataload),
    0x36: (FULL, 2, _gives(lambda f: len(f.data))), 0x37: (FULL, 3, lambda f: _copy(f, f.data)),
    0x38: (FULL, 2, _gives(lambda f: len(f.code))), 0x39: (FULL, 3, lambda f: _copy(f, f.code)),
    0x3A: (FULL, 2, _gives(lambda f: f.run.gas_price)), 0x3B: (FULL, 0, _extcodesize), 0x3C: (FULL, 0, _extcodecopy),
    0x3D: (FULL, 2, _gives(lambda f: len(f.returned))), 0x3E: (FULL, 3, _returndatacopy), 0x3F: (FULL, 0, _extcodehash),
    0x40: (FULL, 20, _blockhash), 0x41: (FULL, 2, _of_block("who is paid for a block", lambda f: f.run.around.coinbase)),
    0x42: (FULL, 2, _gives(lambda f: f.run.around.time)), 0x43: (FULL, 2, _of_block("a block's number", lambda f: f.run.around.number)),
    0x44: (FULL, 2, _unsure("the block's random word", _random_word)),
    0x45: (FULL, 2, _of_block("a block's gas limit", lambda f: f.run.around.gas_limit)),
    0x46: (FULL, 2, _gives(lambda f: f.run.around.chain_id)), 0x47: (FULL, 5, _gives(lambda f: f.state.balance(f.address))),
    0x48: (FULL, 2, _gives(lambda f: f.run.around.base_fee)), 0x49: (FULL, 3, _blobhash),
    0x4A: (FULL, 2, _unsure("the price of blobs", lambda f: f.run.around.blob_base_fee)),
    0x50: (POP, 2, None), 0x51: (FULL, 3, _mload), 0x52: (FULL, 3, _mstore), 0x53: (FULL, 3, _mstore8),
    0x54: (FULL, 0, _sload), 0x55: (FULL, 0, _sstore), 0x56: (JUMP, 8, None), 0x57: (JUMPI, 10, None), 0x58: (PC, 2, None),
    0x59: (FULL, 2, _gives(lambda f: len(f.memory))), 0x5A: (FULL, 2, _gives(lambda f: f.gas)), 0x5B: (NOTHING, 1, None),
    0x5C: (FULL, 100, _tload), 0x5D: (FULL, 100, _tstore), 0x5E: (FULL, 3, _mcopy), 0x5F: (PUSH, 2, 0),
    0xF0: (FULL, 0, calls.create), 0xF1: (FULL, 0, calls.call), 0xF2: (FULL, 0, calls.callcode), 0xF3: (FULL, 0, _return),
    0xF4: (FULL, 0, calls.delegatecall), 0xF5: (FULL, 0, calls.create2), 0xFA: (FULL, 0, calls.staticcall),
    0xFD: (FULL, 0, _revert), 0xFF: (FULL, 0, calls.selfdestruct),
}  # fmt: skip
STEPS: dict[int, tuple[int, int, Any]] = (
    _REST
    | {0x80 + n: (DUP, 3, n + 1) for n in range(16)}
    | {0x90 + n: (SWAP, 3, n + 2) for n in range(16)}
    | {0xA0 + n: (FULL, GAS_LOG, _log(n)) for n in range(5)}
)
"""Kind, gas and argument by instruction; pushes are read with their data."""
