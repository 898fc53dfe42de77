"""A witness: everything that a stranger needs to run a simulation again offline, and nothing else.

Header, trie nodes and code are known by their hashes, so that the block's hash is all that has to be believed. What is not
used has no place in it. Code may be kept beside it, since many witnesses share it.
Source: EIP-1186; RFC 1951 for the packing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from eth_hash.auto import keccak

from chain.evm import serial
from chain.evm.execute import L1_GAS, LocalCall, Touched, chain_of, execute
from chain.evm.pinned import Codes, Pinned
from chain.evm.proofs import account_in, header_by_hash, nodes_of, word_in
from ledgers.errors import ChainFault

VERSION = 1
PLAIN_BYTES_MAX = 64 * 1024 * 1024
LEVEL = 9


class WitnessWrong(Exception):
    """A witness does not prove what it says; the message tells why."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a witness that holds was run on, and what it did."""

    block_hash: str
    chain_id: int
    blocks: list[dict[str, Any]]
    """As the request had them: whoever reads a witness compares them with what was to be proven."""
    calls: list[list[LocalCall]]
    block: int
    """The block's number, by its header."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A run that can be repeated."""

    chain_id: int
    header: bytes
    ancestors: tuple[bytes, ...]
    accounts: tuple[int, ...]
    words: tuple[tuple[int, int], ...]
    nodes: tuple[bytes, ...]
    codes: tuple[bytes, ...]
    blocks: bytes
    """JSON, keys sorted."""
    results: bytes
    """Hash of what every call did."""

    def code_hashes(self) -> list[bytes]:
        return [keccak(code) for code in self.codes]

    def encode(self, *, codes: bool = True, nodes: bool = True) -> bytes:
        """Write it as one packed blob, with the code and the trie nodes or without, where many witnesses share them."""
        plain = serial.encode(
            [
                VERSION, self.chain_id, self.header, list(self.ancestors), [_address(address) for address in self.accounts],
                [[_address(address), slot.to_bytes(32)] for address, slot in self.words], list(self.nodes) if nodes else [],
                list(self.codes) if codes else [],
                self.blocks, self.results,
            ]
        )  # fmt: skip
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return packer.compress(plain) + packer.flush()


def witness_of(pinned: Pinned, chain_id: int, blocks: Sequence[dict[str, Any]], touched: Touched, calls: Sequence[Sequence[LocalCall]]) -> Witness:
    """Write down what a run stood on."""
    used = _Used(pinned.nodes)
    accounts, words = tuple(sorted({*touched.accounts, *(address for address, _ in touched.words)})), tuple(sorted(touched.words))
    for address in accounts:
        account_in(used, pinned.header.state_root, address)
    for address, slot in words:
        word_in(used, pinned.known.accounts[address].storage_root, slot)
    oldest = min(touched.blocks, default=pinned.header.block)
    return Witness(
        chain_id=chain_id,
        header=pinned.header.written,
        ancestors=tuple(pinned.ancestors[: max(pinned.header.block - 1 - oldest, 0)]),
        accounts=accounts,
        words=words,
        nodes=tuple(used[key] for key in sorted(used.seen)),
        codes=tuple(pinned.known.codes[code_hash] for code_hash in sorted(touched.codes)),
        blocks=orjson.dumps(blocks, option=orjson.OPT_SORT_KEYS),
        results=results_hash(calls),
    )


def verify(blob: bytes, block_hash: str, codes: Iterable[bytes] = (), nodes: Iterable[bytes] = ()) -> Verified:
    """Run a witness again and hold it to what it says; `codes` and `nodes` are those that were kept beside it. Raises: WitnessWrong."""
    witness = _read(blob)
    try:
        pinned = Pinned(header_by_hash(witness.header, bytes.fromhex(block_hash[2:])), nodes=nodes_of((*witness.nodes, *nodes)), ancestors=list(witness.ancestors))
        store = Codes()
        for code in (*witness.codes, *codes):
            store.keep(keccak(code), code)
        pinned.prove(witness.accounts, witness.words)
        pinned.take_codes(witness.accounts, store)
    except (ChainFault, KeyError) as error:
        raise WitnessWrong(f"its header, nodes or accounts do not hold: {error}") from None
    blocks = _blocks(witness.blocks)
    if L1_GAS.encode() in witness.blocks and not pinned.header.nitro:
        raise WitnessWrong("it charges for a chain beneath, which this chain does not")
    try:
        outcome = execute(chain_of(pinned.header, witness.chain_id), pinned.known, blocks, {})
    except (LookupError, ArithmeticError, ValueError, TypeError, AttributeError) as error:
        raise WitnessWrong(f"its calls are not those of a simulation: {error!r}") from None
    if outcome.refused or outcome.missing:
        raise WitnessWrong(outcome.refused or f"it lacks {len(outcome.missing)} accounts, words, codes or headers that its calls ask for")
    if results_hash(outcome.calls) != witness.results:
        raise WitnessWrong("its calls do something else than it says")
    again = witness_of(pinned, witness.chain_id, blocks, outcome.touched, outcome.calls)
    if again != _whole(witness, again):
        raise WitnessWrong("it holds what its calls do not ask for")
    return Verified(block_hash, witness.chain_id, blocks, outcome.calls, pinned.header.block)


def results_hash(calls: Sequence[Sequence[LocalCall]]) -> bytes:
    """Hash what every call did, as a node tells it: whether it went through, gas, data and logs."""
    return keccak(serial.encode([[_told(call) for call in row] for row in calls]))


def _told(call: LocalCall) -> list[Any]:
    logs = [[bytes.fromhex(log.address[2:]), [bytes.fromhex(topic[2:]) for topic in log.topics], log.data] for log in call.logs]
    return [int(call.ok), call.gas_used, call.data, logs]


def _whole(witness: Witness, again: Witness) -> Witness:
    """The witness as it was read, with the code and the nodes that were kept beside it."""
    return replace(witness, codes=witness.codes or again.codes, nodes=witness.nodes or again.nodes)


def shared(nodes: Iterable[bytes]) -> bytes:
    """Write trie nodes as one blob, in the order of their hashes."""
    return serial.encode([node for _, node in sorted(nodes_of(nodes).items())])


def read_shared(blob: bytes) -> list[bytes]:
    """Read what `shared` wrote. Raises: WitnessWrong."""
    try:
        nodes = serial.decode(blob)
    except ValueError as error:
        raise WitnessWrong(f"its nodes are not written as such: {error}") from None
    if not isinstance(nodes, list) or not all(isinstance(node, bytes) for node in nodes):
        raise WitnessWrong("its nodes are not written as such")
    return [node for node in nodes if isinstance(node, bytes)]


class _Used(dict[bytes, bytes]):
    """Nodes, of which it is noted which were asked for."""

    def __init__(self, nodes: dict[bytes, bytes]) -> None:
        super().__init__(nodes)
        self.seen: set[bytes] = set()

    def __getitem__(self, key: bytes) -> bytes:
        self.seen.add(key)
        return super().__getitem__(key)


def _read(blob: bytes) -> Witness:
    try:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        plain = unpacker.decompress(blob, PLAIN_BYTES_MAX)
        if unpacker.unconsumed_tail or unpacker.unused_data or not unpacker.eof:
            raise ValueError("packed otherwise")
        version, chain_id, header, ancestors, accounts, words, nodes, codes, blocks, results = serial.decode(plain)
        if int.from_bytes(version) != VERSION or any(isinstance(part, list) for part in (chain_id, header, blocks, results, *ancestors, *nodes, *codes)):
            raise ValueError(f"of a version other than {VERSION}")
        return Witness(
            chain_id=int.from_bytes(chain_id),
            header=header,
            ancestors=tuple(ancestors),
            accounts=tuple(_sized(address, 20) for address in accounts),
            words=tuple((_sized(address, 20), _sized(slot, 32)) for address, slot in words),
            nodes=tuple(nodes),
            codes=tuple(codes),
            blocks=blocks,
            results=results,
        )
    except (zlib.error, ValueError, TypeError) as error:
        raise WitnessWrong(f"it is not written as a witness: {error}") from None


def _blocks(written: bytes) -> list[dict[str, Any]]:
    try:
        blocks = orjson.loads(written)
    except orjson.JSONDecodeError:
        raise WitnessWrong("its calls are not JSON") from None
    if not isinstance(blocks, list):
        raise WitnessWrong("its calls are not a list of blocks")
    return blocks


def _address(address: int) -> bytes:
    return address.to_bytes(20)


def _sized(value: object, size: int) -> int:
    if not isinstance(value, bytes) or len(value) != size:
        raise ValueError(f"expected {size} bytes")
    return int.from_bytes(value)
