"""Addresses: their form, and the mixed-case checksum of EIP-55."""

from __future__ import annotations

import re
from hashlib import sha256

from eth_hash.auto import keccak

_FORM = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)


def derived(words: str) -> str:
    """The address that some words stand for; nobody holds its key, and who does not know the words cannot tell it."""
    return "0x" + sha256(words.encode()).hexdigest()[24:]


def is_address(text: str) -> bool:
    """Say whether text is `0x` and 40 hex digits, in any case."""
    return _FORM.fullmatch(text) is not None


def checksum_ok(address: str) -> bool:
    """Say whether an address is written in lower case or in its correct mixed case. Source: EIP-55.

    Digits alone have no case; all letters in upper case is not the checksum of any address with letters, but by chance."""
    return is_address(address) and (address == address.lower() or address == checksummed(address))


def checksummed(address: str) -> str:
    """Write an address in its EIP-55 mixed case."""
    digits = address[2:].lower()
    nibbles = keccak(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(nibble, 16) >= 8 else digit for digit, nibble in zip(digits, nibbles, strict=False)
    )
