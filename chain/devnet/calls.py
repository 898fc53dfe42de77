"""Calls: encoding of what the local chain's owner sends, and the addresses that contracts will have.

Source: the contract ABI specification; EIP-1014 for CREATE2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from eth_abi import decode as abi_decode
from eth_abi import encode as abi_encode
from eth_utils import keccak

GAS = 1_500_000
"""Gas limit where nobody states another; always explicit, since the node's own estimates were seen to be too low."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tx:
    """A transaction to be sent from an unlocked or impersonated address."""

    sender: str
    to: str | None
    """None creates a contract."""
    data: str = "0x"
    value_wei: int = 0
    gas: int = GAS


def encode(signature: str, *values: Any) -> str:
    """Calldata of `name(type,…)` as 0x hex."""
    return "0x" + (selector(signature) + abi_encode(types_of(signature), values)).hex()


def arguments(types: tuple[str, ...], values: tuple) -> str:
    """Encoded constructor arguments as bare hex."""
    return abi_encode(types, values).hex()


def decode(types: tuple[str, ...], data: str) -> tuple:
    """Values of an answer in 0x hex."""
    return abi_decode(types, bytes.fromhex(data[2:]))


@cache
def selector(signature: str) -> bytes:
    return keccak(text=signature)[:4]


@cache
def topic(signature: str) -> str:
    """First topic of an event."""
    return "0x" + keccak(text=signature).hex()


@cache
def types_of(signature: str) -> tuple[str, ...]:
    inner = signature[signature.index("(") + 1 : -1]
    parts, depth, current = [], 0, ""
    for sign in inner:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += sign
    return tuple([*parts, current] if current else parts)


def created_address(sender: str, nonce: int) -> str:
    """Address of the contract that `sender` creates with transaction `nonce`."""
    rank = b"\x80" if nonce == 0 else bytes([nonce]) if nonce < 0x80 else _short(nonce.to_bytes((nonce.bit_length() + 7) // 8, "big"))
    body = _short(bytes.fromhex(sender[2:])) + rank
    return "0x" + keccak(bytes([0xC0 + len(body)]) + body)[12:].hex()


def _short(data: bytes) -> bytes:
    return bytes([0x80 + len(data)]) + data


def create2_address(factory: str, salt: bytes, code_hash: str) -> str:
    """Address of the contract that `factory` creates with `salt`. Source: EIP-1014."""
    return "0x" + keccak(b"\xff" + bytes.fromhex(factory[2:]) + salt + bytes.fromhex(code_hash[2:]))[12:].hex()


def word(value: str) -> bytes:
    """An address as a 32-byte word."""
    return bytes.fromhex(value[2:]).rjust(32, b"\0")
