"""A frame: one call of a contract while it runs, with its stack, memory and gas, and the surroundings of all calls.

Source: the Yellow Paper, section 9; EIP-150 for what is handed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chain.evm.program import Program
from chain.evm.rules import WORK_MAX, Halt, NotCoveredHere, memory_gas
from chain.evm.state import State


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The block that a call runs in."""

    chain_id: int
    number: int
    time: int
    base_fee: int
    coinbase: int
    gas_limit: int
    first_simulated: int
    """Height of the first block whose hash nobody knows."""
    nitro: bool
    """Whether the chain has precompiled contracts of its own, and its own meaning of a block's number and kin."""
    randao: int | None
    blob_base_fee: int | None
    """None where nodes may differ about it."""


@dataclass(frozen=True, slots=True)
class Log:
    address: int
    topics: tuple[int, ...]
    data: bytes


@dataclass(slots=True)
class Run:
    """What all frames of one transaction share."""

    state: State
    around: Surroundings
    origin: int
    gas_price: int
    logs: list[Log] = field(default_factory=list)
    refund: int = 0
    programs: dict[bytes, Program] = field(default_factory=dict)
    """By code."""
    work: int = 0
    """What took time and little gas so far, in units of gas."""

    def spend(self, work: int) -> None:
        """Count work that is dear here and cheap in gas. Raises: NotCoveredHere when it is too much."""
        self.work += work
        if self.work > WORK_MAX:
            raise NotCoveredHere("is more work than is done here")


class Frame:
    """One call while it runs."""

    __slots__ = (
        "run", "state", "program", "code", "address", "caller", "value", "data", "gas", "static", "depth", "pc", "stack", "memory",
        "returned", "output", "ok", "running", "mark", "logs_mark", "refund_mark", "child", "resume", "creates",
    )  # fmt: skip

    def __init__(
        self, run: Run, *, code: bytes, address: int, caller: int, value: int, data: bytes, gas: int, static: bool, depth: int, mark: int, creates: bool = False
    ) -> None:
        self.run, self.state, self.code = run, run.state, code
        program = run.programs.get(code)
        if program is None:
            program = run.programs[code] = Program(code)
        self.program = program
        self.address, self.caller, self.value, self.data, self.gas = address, caller, value, data, gas
        self.static, self.depth, self.creates = static, depth, creates
        self.pc = 0
        self.stack: list[int] = []
        self.memory = bytearray()
        self.returned, self.output = b"", b""
        self.ok, self.running = True, True
        self.mark, self.logs_mark, self.refund_mark = mark, len(run.logs), run.refund
        self.child: Frame | None = None
        self.resume: Callable[[Frame, Frame], None] | None = None

    def charge(self, gas: int) -> None:
        self.gas -= gas
        if self.gas < 0:
            raise Halt

    def reach(self, offset: int, size: int) -> None:
        """Let memory reach so far, and pay for it."""
        if not size:
            return
        end = offset + size
        have = len(self.memory)
        if end <= have:
            return
        if end > 2**32:
            raise Halt
        words = (end + 31) >> 5
        self.gas -= memory_gas(words) - memory_gas(have >> 5)
        if self.gas < 0:
            raise Halt
        self.memory.extend(bytes((words << 5) - have))

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of memory that is reached."""
        return bytes(self.memory[offset : offset + size]) if size else b""

    def end(self, output: bytes = b"", ok: bool = True) -> None:
        self.output, self.ok, self.running = output, ok, False
