"""Proofs: a header by its hash, accounts and words by the nodes of the tries that the header's state root names.

A node's claims are not read at all, only the trie nodes it sends: each is known by its own hash, so that what is found by
walking them from the root is what the chain holds, or nothing.
Source: the Yellow Paper, appendices B and D; EIP-1186.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eth_hash.auto import keccak
from trie import HexaryTrie
from trie.exceptions import InvalidNode, MissingTrieNode

from chain.evm import serial
from chain.evm.rules import CODE_EMPTY
from chain.evm.state import Account
from ledgers.errors import ChainFault

HASH_BYTES = 32
ROOT_EMPTY = keccak(serial.encode(b""))
NOBODY = Account(0, 0, ROOT_EMPTY, CODE_EMPTY)
FIELDS_MIN, FIELDS_MAX = 15, 21
NITRO_FIELDS, NITRO_DIFFICULTY = 16, 1
BAD_PROOF = "bad_proof"

Nodes = dict[bytes, bytes]
"""Trie nodes by hash."""


@dataclass(frozen=True, slots=True)
class ProvenHeader:
    """What a header says that hashes to the block's hash."""

    written: bytes
    """As the chain writes it."""
    block_hash: bytes
    parent: bytes
    state_root: bytes
    coinbase: int
    block: int
    gas_limit: int
    time: int
    base_fee: int
    excess_blob_gas: int | None
    nitro: bool
    """Whether it is written as Nitro writes them."""


def header_by_hash(written: bytes, block_hash: bytes) -> ProvenHeader:
    """Read a header that must have this hash. Raises: ChainFault."""
    if keccak(written) != block_hash:
        raise ChainFault("bad_header", f"the header sent for block 0x{block_hash.hex()} has another hash")
    fields = _decoded(written)
    if not isinstance(fields, list) or not FIELDS_MIN <= len(fields) <= FIELDS_MAX or not all(isinstance(field, bytes) for field in fields):
        raise ChainFault("bad_header", "a header whose fields are not those of a known fork")
    number = [int.from_bytes(field) for field in fields]
    return ProvenHeader(
        written=written,
        block_hash=block_hash,
        parent=fields[0],
        state_root=fields[3],
        coinbase=number[2],
        block=number[8],
        gas_limit=number[9],
        time=number[11],
        base_fee=number[15] if len(fields) > 15 else 0,
        excess_blob_gas=number[18] if len(fields) > 18 else None,
        nitro=number[7] == NITRO_DIFFICULTY and len(fields) <= NITRO_FIELDS,
    )


def nodes_of(written: Iterable[bytes]) -> Nodes:
    """Trie nodes by their own hashes."""
    return {keccak(node): node for node in written}


def account_in(nodes: Mapping[bytes, bytes], state_root: bytes, address: int) -> Account:
    """What the state holds of an address. Raises: ChainFault when the nodes do not tell."""
    found = _found(nodes, state_root, address.to_bytes(20))
    if not found:
        return NOBODY
    fields = _decoded(found)
    if not isinstance(fields, list) or len(fields) != 4 or not all(isinstance(field, bytes) for field in fields):
        raise ChainFault(BAD_PROOF, "an account that is not one")
    nonce, balance, storage_root, code_hash = fields
    return Account(int.from_bytes(nonce), int.from_bytes(balance), storage_root, code_hash)


def word_in(nodes: Mapping[bytes, bytes], storage_root: bytes, slot: int) -> int:
    """What a contract's storage holds. Raises: ChainFault when the nodes do not tell."""
    if storage_root == ROOT_EMPTY:
        return 0
    found = _found(nodes, storage_root, slot.to_bytes(32))
    value = _decoded(found) if found else b""
    if not isinstance(value, bytes) or len(value) > HASH_BYTES:
        raise ChainFault(BAD_PROOF, "a storage word that is not one")
    return int.from_bytes(value)


def _found(nodes: Mapping[bytes, bytes], root: bytes, key: bytes) -> bytes:
    try:
        return HexaryTrie(nodes, root).get(keccak(key))
    except (MissingTrieNode, InvalidNode, serial.NotSerial, KeyError, ValueError, TypeError, IndexError, AssertionError) as error:
        raise ChainFault(BAD_PROOF, f"the nodes sent do not prove 0x{key.hex()}: {type(error).__name__}") from None


def _decoded(written: bytes) -> object:
    try:
        return serial.decode(written)
    except ValueError as error:
        raise ChainFault(BAD_PROOF, str(error)) from None
