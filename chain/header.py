"""A block header, as far as anything here needs one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from chain.calldata import hex_int
from chain.rpc import RpcRefused
from ledgers.errors import ChainFault

HASH = re.compile(r"0x[0-9a-f]{64}")


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


def block_hash(value: object) -> str:
    """Check a 32-byte hash. Raises: ChainFault."""
    if not isinstance(value, str) or not HASH.fullmatch(value.lower()):
        raise ChainFault("bad_answer", "expected a 32-byte hash")
    return value.lower()
