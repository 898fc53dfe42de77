"""A pinned block: what is known of its state so far, and what fetches more of it.

Everything goes through the product's own door, in batches of bounded size. Where the block is proven nothing that a node says
is believed: the header must have the pinned hash, accounts and words are walked for in the trie nodes it sends, code must
have the account's hash. Where it is only told, accounts and words are taken as the node says them.
Source: EIP-1186; EIP-1898 for asking by hash.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eth_hash.auto import keccak

from chain.calldata import hex_bytes
from chain.evm.proofs import Nodes, ProvenHeader, account_in, header_by_hash, nodes_of, word_in
from chain.evm.rules import BLOCK_HASHES, CODE_EMPTY, NotCoveredHere
from chain.evm.state import Known, Missing, Word
from chain.evm.told import Question, Request
from chain.header import sealed_bytes
from chain.rpc import RpcDoor, RpcRefused
from ledgers.errors import ChainFault

WORDS_PER_PROOF = 64
NODES_MAX, NODE_BYTES_MAX = 64, 1_024
"""Nodes of one proof and bytes of a node: a branch with sixteen hashes has 532."""
CODE_BYTES_READ_MAX = 256 * 1024
CODES_BYTES_MAX = 64 * 1024 * 1024


class Codes:
    """Code by hash, the least lately used left out first, and which code an address had when it was last seen."""

    def __init__(self, bytes_max: int = CODES_BYTES_MAX) -> None:
        self._codes: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes, self._bytes_max = 0, bytes_max
        self.seen: dict[int, bytes] = {}
        """Code hashes by address; only a guess for another block."""

    def had_code(self, address: int) -> bool:
        """Whether an address had code when it was last seen."""
        return self.seen.get(address, CODE_EMPTY) != CODE_EMPTY

    def get(self, code_hash: bytes) -> bytes | None:
        found = self._codes.get(code_hash)
        if found is not None:
            self._codes.move_to_end(code_hash)
        return found

    def keep(self, code_hash: bytes, code: bytes) -> None:
        if code_hash in self._codes:
            return
        self._codes[code_hash] = code
        self._bytes += len(code)
        while self._bytes > self._bytes_max:
            self._bytes -= len(self._codes.popitem(last=False)[1])


@dataclass(slots=True)
class Pinned:
    """One block: its header, what is known of its state, and the nodes that prove it."""

    header: ProvenHeader
    known: Known = field(default_factory=Known)
    nodes: Nodes = field(default_factory=dict)
    ancestors: list[bytes] = field(default_factory=list)
    """Headers before it as written, its parent first."""
    proven: bool = True
    """Whether its state is proven, or only told by the node."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def at(cls, door: RpcDoor, block_hash: str, *, proven: bool, header: Any = None) -> Pinned:
        """Begin with the header alone, as a node wrote it where that was seen already.

        Raises: ChainFault, NotCoveredHere where a header is written in a way unknown here."""
        answer = header or await door.call("eth_getBlockByHash", [block_hash, False])
        if not isinstance(answer, dict):
            raise ChainFault("behind", "the node does not know the pinned block")
        return cls(_header_of(answer, bytes.fromhex(block_hash[2:]), proven=proven), proven=proven)

    def __post_init__(self) -> None:
        known, self.ancestors = self.ancestors, []
        self.known.blocks[self.header.block] = int.from_bytes(self.header.block_hash)
        self.known.blocks[self.header.block - 1] = int.from_bytes(self.header.parent)
        self.know_blocks(known)

    def know_blocks(self, above: Iterable[bytes]) -> None:
        """Know the hashes that further headers name, each of which the header after it names. Raises: ChainFault."""
        for written in above:
            height = self.header.block - 1 - len(self.ancestors)
            header = header_by_hash(written, self.known.blocks[height].to_bytes(32))
            self.ancestors.append(written)
            self.known.blocks[height - 1] = int.from_bytes(header.parent)

    async def fetch(self, door: RpcDoor, missing: Missing, codes: Codes) -> None:
        """Fetch what is missing in one batch, and prove it where this block is proven; one at a time.

        Raises: ChainFault, NotCoveredHere where the node will not tell."""
        async with self._one_at_a_time:
            missing = self._still(missing)
            if missing:
                await self._fetch(door, missing, codes)

    def _still(self, missing: Missing) -> Missing:
        known = self.known
        codes = {address: code_hash for address, code_hash in missing.codes.items() if code_hash not in known.codes}
        return Missing(missing.accounts - known.accounts.keys(), missing.words - known.words.keys(), codes, missing.blocks - known.blocks.keys())

    async def _fetch(self, door: RpcDoor, missing: Missing, codes: Codes) -> None:
        accounts = [*missing.accounts, *sorted({address for address, _ in missing.words} - missing.accounts - self.known.accounts.keys())]
        unread = list(dict.fromkeys([*missing.codes, *(address for address in accounts if self._unseen(address, codes))]))
        at = {"blockHash": "0x" + self.header.block_hash.hex()}
        words = sorted(missing.words)
        question = Proofs(accounts, words, at) if self.proven else Question(accounts, words, {address for address in accounts if codes.had_code(address)}, at)
        asked = question.requests()
        code_asked: list[Request] = [("eth_getCode", [f"0x{address:040x}", at]) for address in unread]
        blocks_asked: list[Request] = [("eth_getBlockByNumber", [hex(height), False]) for height in self._blocks_to(missing.blocks)]
        answers = await door.batch([*asked, *code_asked, *blocks_asked])
        for refused in answers:
            if isinstance(refused, RpcRefused):
                raise NotCoveredHere(f"the node does not {'prove' if self.proven else 'tell'} its state: {refused.message}")
        read, blocks = answers[len(asked) : len(asked) + len(unread)], answers[len(asked) + len(unread) :]
        for code in map(_code, read):
            codes.keep(keccak(code), code)
        self.know_blocks(map(_sealed, blocks))
        question.read(answers[: len(asked)], self)
        self.take_codes([*accounts, *missing.codes], codes)
        for address in unread:
            if self.known.accounts[address].code_hash not in (CODE_EMPTY, *self.known.codes):
                raise ChainFault("bad_code", f"the code sent for 0x{address:040x} has another hash")

    def take_codes(self, accounts: Iterable[int], codes: Codes) -> None:
        """Know what code is at hand of accounts that are known."""
        for address in accounts:
            code_hash = self.known.accounts[address].code_hash
            codes.seen[address] = code_hash
            code = b"" if code_hash == CODE_EMPTY else codes.get(code_hash)
            if code is not None:
                self.known.codes[code_hash] = code

    def prove(self, accounts: Iterable[int], words: Iterable[Word]) -> None:
        """Know accounts and words by the nodes that are here. Raises: ChainFault."""
        known = self.known
        for address in accounts:
            known.accounts[address] = account_in(self.nodes, self.header.state_root, address)
        for address, slot in words:
            known.words[address, slot] = word_in(self.nodes, known.accounts[address].storage_root, slot)

    def _unseen(self, address: int, codes: Codes) -> bool:
        seen = codes.seen.get(address)
        return seen is None or (seen != CODE_EMPTY and codes.get(seen) is None)

    def _blocks_to(self, heights: set[int]) -> list[int]:
        """Heights of the further headers that name the hashes asked for, the highest first."""
        if not heights:
            return []
        newest = self.header.block - 1 - len(self.ancestors)
        return list(range(newest, max(min(heights), newest - BLOCK_HASHES), -1))


def _header_of(answer: dict[str, Any], block_hash: bytes, *, proven: bool) -> ProvenHeader:
    written = _sealed(answer)
    sealed = keccak(written)
    if sealed == block_hash:
        return header_by_hash(written, block_hash)
    if proven:
        raise NotCoveredHere("the pinned block's header does not have its hash: it is not what it says, or has fields unknown here")
    return replace(header_by_hash(written, sealed), block_hash=block_hash)


def _sealed(answer: object) -> bytes:
    if not isinstance(answer, dict):
        raise ChainFault("bad_answer", "expected a block")
    try:
        return sealed_bytes(answer)
    except KeyError as error:
        raise ChainFault("bad_answer", f"a block without {error.args[0]}") from None


class Proofs:
    """A question for accounts and words with their proofs, one request an account or more."""

    def __init__(self, accounts: Sequence[int], words: Sequence[Word], at: dict[str, str]) -> None:
        self._accounts, self._words, self._at = accounts, words, at

    def requests(self) -> list[Request]:
        slots: dict[int, list[int]] = {address: [] for address in self._accounts}
        for address, slot in self._words:
            slots.setdefault(address, []).append(slot)
        parts = [(address, some[at : at + WORDS_PER_PROOF]) for address, some in slots.items() for at in range(0, max(len(some), 1), WORDS_PER_PROOF)]
        return [("eth_getProof", [f"0x{address:040x}", [f"0x{slot:064x}" for slot in some], self._at]) for address, some in parts]

    def read(self, answers: Sequence[Any], pinned: Pinned) -> None:
        for answer in answers:
            pinned.nodes |= nodes_of(_proof_nodes(answer))
        pinned.prove(self._accounts, self._words)


def _proof_nodes(answer: object) -> Sequence[bytes]:
    if not isinstance(answer, dict) or not isinstance(answer.get("storageProof"), list):
        raise ChainFault("bad_answer", "expected a proof of an account and its words")
    parts = [answer.get("accountProof"), *(row.get("proof") if isinstance(row, dict) else None for row in answer["storageProof"])]
    if len(parts) > WORDS_PER_PROOF + 1 or not all(isinstance(part, list) and len(part) <= NODES_MAX for part in parts):
        raise ChainFault("bad_answer", "expected a list of nodes for the account and for each word")
    nodes = [hex_bytes(node) for part in parts if isinstance(part, list) for node in part]
    if any(len(node) > NODE_BYTES_MAX for node in nodes):
        raise ChainFault("bad_answer", f"a trie node of more than {NODE_BYTES_MAX} bytes")
    return nodes


def _code(answer: object) -> bytes:
    code = hex_bytes(answer)
    if len(code) > CODE_BYTES_READ_MAX:
        raise ChainFault("bad_answer", f"code of {len(code)} bytes, more than {CODE_BYTES_READ_MAX}")
    return code
