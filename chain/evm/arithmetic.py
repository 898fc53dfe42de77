"""Arithmetic of 256-bit words.

Source: the Yellow Paper, appendix H.2; EIP-145, EIP-7939.
"""

from __future__ import annotations

from chain.evm.rules import SIGN_BIT, WORD_MASK

MOD = 2**256


def signed(word: int) -> int:
    return word - MOD if word & SIGN_BIT else word


def add(a: int, b: int) -> int:
    return (a + b) & WORD_MASK


def mul(a: int, b: int) -> int:
    return (a * b) & WORD_MASK


def sub(a: int, b: int) -> int:
    return (a - b) & WORD_MASK


def div(a: int, b: int) -> int:
    return a // b if b else 0


def sdiv(a: int, b: int) -> int:
    if not b:
        return 0
    x, y = signed(a), signed(b)
    whole = abs(x) // abs(y)
    return (-whole if (x < 0) != (y < 0) else whole) & WORD_MASK


def mod(a: int, b: int) -> int:
    return a % b if b else 0


def smod(a: int, b: int) -> int:
    if not b:
        return 0
    x = signed(a)
    rest = abs(x) % abs(signed(b))
    return (-rest if x < 0 else rest) & WORD_MASK


def addmod(a: int, b: int, n: int) -> int:
    return (a + b) % n if n else 0


def mulmod(a: int, b: int, n: int) -> int:
    return (a * b) % n if n else 0


def exp(a: int, b: int) -> int:
    return pow(a, b, MOD)


def signextend(k: int, x: int) -> int:
    if k > 30:
        return x
    bit = 8 * k + 7
    low = (1 << (bit + 1)) - 1
    return (x | (WORD_MASK ^ low)) if x >> bit & 1 else x & low


def lt(a: int, b: int) -> int:
    return 1 if a < b else 0


def gt(a: int, b: int) -> int:
    return 1 if a > b else 0


def slt(a: int, b: int) -> int:
    return 1 if a ^ SIGN_BIT < b ^ SIGN_BIT else 0


def sgt(a: int, b: int) -> int:
    return 1 if a ^ SIGN_BIT > b ^ SIGN_BIT else 0


def eq(a: int, b: int) -> int:
    return 1 if a == b else 0


def iszero(a: int) -> int:
    return 0 if a else 1


def not_(a: int) -> int:
    return a ^ WORD_MASK


def byte(i: int, x: int) -> int:
    return x >> (248 - 8 * i) & 0xFF if i < 32 else 0


def shl(n: int, x: int) -> int:
    return (x << n) & WORD_MASK if n < 256 else 0


def shr(n: int, x: int) -> int:
    return x >> n if n < 256 else 0


def sar(n: int, x: int) -> int:
    return (signed(x) >> min(n, 256)) & WORD_MASK


def clz(x: int) -> int:
    return 256 - x.bit_length()
