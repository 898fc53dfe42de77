"""Precompiled contracts of every chain; those that are not known here say so.

Source: the Yellow Paper, appendix E; EIP-152, 196, 197, 2565, 4844, 2537, 7823, 7883, 7951.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from Crypto.Hash import RIPEMD160
from eth_hash.auto import keccak

from chain.evm.recovery import recover
from chain.evm.rules import NotCoveredHere, words_of

NAMES = {
    1: "ecrecover", 2: "sha256", 3: "ripemd160", 4: "identity", 5: "modexp", 6: "bn256 add", 7: "bn256 mul", 8: "bn256 pairing", 9: "blake2f",
    10: "point evaluation", 11: "bls12 g1 add", 12: "bls12 g1 msm", 13: "bls12 g2 add", 14: "bls12 g2 msm", 15: "bls12 pairing",
    16: "bls12 map g1", 17: "bls12 map g2", 0x100: "p256verify",
}  # fmt: skip
PRECOMPILES, RECOVERY, POWERS = frozenset(NAMES), 1, 5
MODEXP_BYTES_MAX = 1_024


def run_precompile(address: int, data: bytes, gas: int) -> tuple[int, bytes | None]:
    """Gas that is left, and what it said; None where it failed, which takes all gas. Raises: NotCoveredHere."""
    known = KNOWN.get(address)
    if known is None:
        raise NotCoveredHere(f"calls the precompiled contract {NAMES[address]}")
    price, work = known
    left = gas - price(data)
    if left < 0:
        return 0, None
    output = work(data)
    return (0, None) if output is None else (left, output)


def _ecrecover(data: bytes) -> bytes:
    padded = data[:128].ljust(128, b"\0")
    digest, v, r, s = padded[:32], *(int.from_bytes(padded[at : at + 32]) for at in (32, 64, 96))
    key = recover(digest, v - 27, r, s) if v in (27, 28) else None
    return b"" if key is None else keccak(key)[12:].rjust(32, b"\0")


def _modexp_sizes(data: bytes) -> tuple[int, int, int]:
    padded = data[:96].ljust(96, b"\0")
    return int.from_bytes(padded[:32]), int.from_bytes(padded[32:64]), int.from_bytes(padded[64:96])


def _modexp_gas(data: bytes) -> int:
    """Source: EIP-7883."""
    base, power, modulus = _modexp_sizes(data)
    if max(base, power, modulus) > MODEXP_BYTES_MAX:
        return 2**64
    head = int.from_bytes(data[96 + base : 96 + base + min(power, 32)].ljust(min(power, 32), b"\0"))
    longest = max(base, modulus)
    work = 16 if longest <= 32 else 2 * ((longest + 7) // 8) ** 2
    rounds = max(head.bit_length() - 1, 0) if power <= 32 else 16 * (power - 32) + max(head.bit_length() - 1, 0)
    return max(500, work * max(rounds, 1))


def _modexp(data: bytes) -> bytes:
    base, power, modulus = _modexp_sizes(data)
    rest = data[96:].ljust(base + power + modulus, b"\0")
    b, e, m = (int.from_bytes(part) for part in (rest[:base], rest[base : base + power], rest[base + power : base + power + modulus]))
    return (pow(b, e, m) if m else 0).to_bytes(modulus) if modulus else b""


def _linear(fixed: int, per_word: int) -> Callable[[bytes], int]:
    return lambda data: fixed + per_word * words_of(len(data))


KNOWN: dict[int, tuple[Callable[[bytes], int], Callable[[bytes], bytes | None]]] = {
    1: (lambda _data: 3_000, _ecrecover),
    2: (_linear(60, 12), lambda data: sha256(data).digest()),
    3: (_linear(600, 120), lambda data: RIPEMD160.new(data).digest().rjust(32, b"\0")),
    4: (_linear(15, 3), bytes),
    5: (_modexp_gas, _modexp),
}
