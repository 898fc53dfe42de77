"""A block header, as far as anything here needs one; what orders stand on is held to its own hash.

Source: the Yellow Paper's block header and EIP-1559, 4895, 4844, 4788, 7685 for what was added; Nitro hashes its headers alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eth_hash.auto import keccak

from chain.calldata import hex_bytes, hex_int
from chain.rpc import RpcRefused
from ledgers.errors import ChainFault

HASH = re.compile(r"0x[0-9a-f]{64}")
SEALED = (
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty", "number", "gasLimit",
    "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas",
    "parentBeaconBlockRoot", "requestsHash",
)  # fmt: skip
"""What a block's hash is made of, in order; the later ones only where a chain has them."""
NUMBERS = frozenset({"difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "blobGasUsed", "excessBlobGas"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One block of the chain."""

    block: int
    block_hash: str
    ts_s: int
    """The block's own time, Unix seconds."""
    base_fee_wei: int


def header_request(block: int | str) -> tuple[str, list[Any]]:
    """Ask for the header at a number or tag."""
    return ("eth_getBlockByNumber", [hex(block) if isinstance(block, int) else block, False])


def header_of(answer: object, block: int | None = None) -> Header:
    """Read a node's answer to `header_request`.

    Raises: ChainFault `behind` when the node has no such block, `bad_answer` when the answer is not that block."""
    if isinstance(answer, RpcRefused) or answer is None:
        raise ChainFault("behind", f"the node has no block {block if block is not None else 'of that name'}")
    if not isinstance(answer, dict):
        raise ChainFault("bad_answer", "expected a block")
    header = Header(
        block=hex_int(answer.get("number")),
        block_hash=block_hash(answer.get("hash")),
        ts_s=hex_int(answer.get("timestamp")),
        base_fee_wei=hex_int(answer.get("baseFeePerGas", "0x0")),
    )
    if (block is not None and header.block != block) or max(header.block, header.ts_s) >= 2**53 or header.base_fee_wei >= 2**128:
        raise ChainFault("bad_answer", f"expected block {block}, found {header.block} at {header.ts_s} s")
    return header


def sealed_header_of(answer: object, block: int | None = None) -> Header:
    """Read a header whose number, time and base fee are what its own hash says. Raises: ChainFault, as `header_of`."""
    header = header_of(answer, block)
    assert isinstance(answer, dict)
    if seal_of(answer) != header.block_hash:
        raise ChainFault("bad_answer", f"the header of block {header.block} is not what its hash says")
    return header


def seal_of(block: dict[str, Any]) -> str:
    """Hash a header's fields as the chain does. Raises: ChainFault when one is no hex."""
    return "0x" + keccak(sealed_bytes(block)).hex()


def sealed_bytes(block: dict[str, Any]) -> bytes:
    """A header as the chain writes it before it is hashed. Raises: ChainFault when a field is no hex."""
    return _prefixed(0xC0, b"".join(_item(_content(name, block[name])) for name in SEALED if block.get(name) is not None))


def _content(name: str, value: object) -> bytes:
    if name not in NUMBERS:
        return hex_bytes(value)
    number = hex_int(value)
    return number.to_bytes((number.bit_length() + 7) // 8)


def _item(content: bytes) -> bytes:
    return content if len(content) == 1 and content[0] < 0x80 else _prefixed(0x80, content)


def _prefixed(mark: int, content: bytes) -> bytes:
    if len(content) < 56:
        return bytes([mark + len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8)
    return bytes([mark + 55 + len(size)]) + size + content


def block_hash(value: object) -> str:
    """Check a 32-byte hash. Raises: ChainFault."""
    if not isinstance(value, str) or not HASH.fullmatch(value.lower()):
        raise ChainFault("bad_answer", "expected a 32-byte hash")
    return value.lower()
