"""A program: code read once into steps that can be run, and where it may be jumped to.

Source: the Yellow Paper, section 9.4.
"""

from __future__ import annotations

from typing import Any

PUSH, DUP, SWAP, BINARY, FULL, UNARY, JUMP, JUMPI, NOTHING, POP, PC = range(11)
"""Kinds of steps."""
Step = tuple[int, int, Any, int]
"""Kind, gas, argument, next place."""
JUMPDEST, PUSH1, PUSH32 = 0x5B, 0x60, 0x7F


class Program:
    """Code as steps; each is read when it is first reached."""

    __slots__ = ("code", "steps", "targets")

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.steps: dict[int, Step] = {}
        """By place."""
        self.targets = jump_targets(code)


def jump_targets(code: bytes) -> frozenset[int]:
    """Places that may be jumped to: those marked so that are not data of a push."""
    found, place, size = [], 0, len(code)
    while place < size:
        instruction = code[place]
        if instruction == JUMPDEST:
            found.append(place)
        place += instruction - PUSH1 + 2 if PUSH1 <= instruction <= PUSH32 else 1
    return frozenset(found)
