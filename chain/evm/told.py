"""What a node tells of its state without proving it: quick, and as good as the simulation that it answered itself.

One request reads all words and balances that are wanted, by code put in the place of each contract's own for that request
alone. Whoever wants to know rather than to be told proves the run afterwards.
Source: the execution API's `eth_simulateV1`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from chain.address import derived
from chain.calldata import hex_bytes, hex_int
from chain.evm.rules import CODE_EMPTY
from chain.evm.state import NONCE_UNTOLD, Account, Word
from ledgers.errors import ChainFault

if TYPE_CHECKING:
    from chain.evm.pinned import Pinned

READ_WORDS = "0x5f5b36811460135780355481526020016001565b365ff3"
"""Code that returns the words of the slots in its calldata."""
READ_ACCOUNTS = "0x5f5b368114602057803580318260011b523f8160011b602001526020016001565b3660011b5ff3"
"""Code that returns balance and code hash of each address in its calldata."""
READER = derived("reader of accounts")
GAS_PER_WORD, GAS_PER_ACCOUNT, GAS_BESIDE = 2_600, 3_200, 100_000

Request = tuple[str, list[Any]]


class Question:
    """One request for accounts and words; the nonces of contracts are not asked for, since only those that create others need them."""

    def __init__(self, accounts: Sequence[int], words: Sequence[Word], contracts: Collection[int], at: dict[str, str]) -> None:
        self._accounts, self._at = accounts, at
        self._others = [address for address in accounts if address not in contracts]
        self._slots: dict[int, list[int]] = {}
        for address, slot in words:
            self._slots.setdefault(address, []).append(slot)

    def requests(self) -> list[Request]:
        codes = {f"0x{address:040x}": {"code": READ_WORDS} for address in self._slots}
        calls = [_call(f"0x{address:040x}", slots, GAS_PER_WORD) for address, slots in self._slots.items()]
        first = {"stateOverrides": {READER: {"code": READ_ACCOUNTS}}, "calls": [_call(READER, self._accounts, GAS_PER_ACCOUNT)]}
        body = {"blockStateCalls": [first, {"stateOverrides": codes, "calls": calls}], "validation": False}
        nonces: list[Request] = [("eth_getTransactionCount", [f"0x{address:040x}", self._at]) for address in self._others]
        return [("eth_simulateV1", [body, self._at]), *nonces]

    def read(self, answers: Sequence[Any], pinned: Pinned) -> None:
        """Take an answer into what is known. Raises: ChainFault when it is not one."""
        known = pinned.known
        blocks, *nonces = answers
        if not isinstance(blocks, list) or len(blocks) != 2:
            raise ChainFault("bad_answer", "expected two simulated blocks")
        (facts,), words = _returned(blocks[0], [2 * len(self._accounts)]), _returned(blocks[1], [len(slots) for slots in self._slots.values()])
        told = {address: hex_int(nonce) for address, nonce in zip(self._others, nonces, strict=True)}
        for place, address in enumerate(self._accounts):
            balance, code_hash = facts[2 * place : 2 * place + 2]
            known.accounts[address] = Account(told.get(address, NONCE_UNTOLD), balance, b"", code_hash.to_bytes(32) if code_hash else CODE_EMPTY)
        for (address, slots), values in zip(self._slots.items(), words, strict=True):
            known.words |= {(address, slot): value for slot, value in zip(slots, values, strict=True)}


def _call(to: str, words: Sequence[int], gas_each: int) -> dict[str, str]:
    return {"from": READER, "to": to, "data": "0x" + "".join(f"{word:064x}" for word in words), "gas": hex(GAS_BESIDE + (gas_each + 1_300) * len(words))}


def _returned(block: Any, counts: Sequence[int]) -> list[list[int]]:
    """The words that each call of a block returned. Raises: ChainFault."""
    calls = block.get("calls") if isinstance(block, dict) else None
    if not isinstance(calls, list) or len(calls) != len(counts):
        raise ChainFault("bad_answer", f"expected {len(counts)} simulated calls")
    found = []
    for call, count in zip(calls, counts, strict=True):
        data = hex_bytes(call.get("returnData")) if isinstance(call, dict) and call.get("status") == "0x1" else b""
        if len(data) != 32 * count:
            raise ChainFault("bad_answer", f"expected {count} words")
        found.append([int.from_bytes(data[at : at + 32]) for at in range(0, len(data), 32)])
    return found
