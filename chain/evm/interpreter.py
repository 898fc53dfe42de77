"""The interpreter: runs one transaction's frames to their end.

Source: the Yellow Paper, sections 6 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass

from chain.evm.calls import settle
from chain.evm.frame import Frame, Run
from chain.evm.instructions import step_at
from chain.evm.program import BINARY, DUP, FULL, JUMP, JUMPI, PC, POP, PUSH, SWAP, UNARY
from chain.evm.rules import STACK_MAX, Halt


def run_frames(first: Frame) -> Frame:
    """Run a frame and all that it calls. Raises: NotCoveredHere."""
    frames = [first]
    while True:
        frame = frames[-1]
        _run(frame)
        if frame.child is not None:
            frames.append(frame.child)
            frame.child = None
            continue
        frames.pop()
        if not frame.ok:
            _take_back(frame)
        if not frames:
            return frame
        parent = frames[-1]
        resume, parent.resume = parent.resume, None
        assert resume is not None
        resume(parent, frame)


def _run(frame: Frame) -> None:
    """Run a frame until it ends or calls another."""
    try:
        _steps(frame)
        if frame.creates and frame.ok and not frame.running:
            settle(frame)
    except (Halt, IndexError):  # an index error is a stack that holds too little
        frame.gas = 0
        frame.end(ok=False)


def _take_back(frame: Frame) -> None:
    frame.state.revert(frame.mark)
    del frame.run.logs[frame.logs_mark :]
    frame.run.refund = frame.refund_mark


def _steps(frame: Frame) -> None:
    program, stack, pc, gas = frame.program, frame.stack, frame.pc, frame.gas
    steps, targets, code = program.steps, program.targets, program.code
    read, push, pop = steps.get, stack.append, stack.pop
    while True:
        step = read(pc)
        if step is None:
            step = steps[pc] = step_at(code, pc)
        kind, cost, argument, after = step
        gas -= cost
        if gas < 0:
            raise Halt
        if kind == PUSH:
            push(argument)
            if len(stack) > STACK_MAX:
                raise Halt
        elif kind == DUP:
            push(stack[-argument])
            if len(stack) > STACK_MAX:
                raise Halt
        elif kind == SWAP:
            stack[-1], stack[-argument] = stack[-argument], stack[-1]
        elif kind == BINARY:
            first = pop()
            stack[-1] = argument(first, stack[-1])
        elif kind == FULL:
            frame.gas = gas
            argument(frame)
            gas = frame.gas
            if frame.child is not None or not frame.running:
                frame.pc = after
                return
            if len(stack) > STACK_MAX:
                raise Halt
        elif kind == JUMPI:
            target = pop()
            if pop():
                if target not in targets:
                    raise Halt
                after = target
        elif kind == JUMP:
            after = pop()
            if after not in targets:
                raise Halt
        elif kind == UNARY:
            stack[-1] = argument(stack[-1])
        elif kind == POP:
            pop()
        elif kind == PC:
            push(pc)
            if len(stack) > STACK_MAX:
                raise Halt
        pc = after
