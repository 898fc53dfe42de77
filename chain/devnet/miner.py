"""The miner: puts transactions into the next block and seals it, one request for the whole block.

Block k has time `GENESIS_S + k · block time` and a fixed base fee; senders' nonces are counted here, so that the order
of transactions, and with it the block's hash, is a function of what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chain.devnet.calls import Tx
from chain.devnet.node import BASE_FEE_WEI, GENESIS_S, Node
from ledgers.errors import ChainFault

TOGETHER_MAX = 48
"""Requests in one batch: past about 120 the node lets later ones of a batch overtake, sealing before the last are in."""


class Miner:
    """Seals blocks on one node."""

    def __init__(self, node: Node, block_time_ms: int) -> None:
        self.node = node
        self.block_time_ms = block_time_ms
        self.height = 0
        self.nonces: dict[str, int] = {}

    def time_of(self, block: int) -> int:
        """Chain time of a block, Unix seconds."""
        return GENESIS_S + block * self.block_time_ms // 1_000

    def mine(self, txs: Sequence[Tx] = ()) -> None:
        """Seal one block with `txs` in this order. Raises: Refused, ChainFault."""
        sends = [("eth_sendTransaction", [self._request(tx)]) for tx in txs]
        last = max(0, len(sends) - 1) // TOGETHER_MAX * TOGETHER_MAX
        for start in range(0, last, TOGETHER_MAX):
            self.node.batch(sends[start : start + TOGETHER_MAX])
        fee = ("anvil_setNextBlockBaseFeePerGas", [hex(BASE_FEE_WEI)])
        time = ("evm_setNextBlockTimestamp", [self.time_of(self.height + 1)])
        self.node.batch([fee, time, *sends[last:], ("evm_mine", [])])
        self.height += 1

    def mine_all(self, txs: Sequence[Tx]) -> list[dict]:
        """Seal one block in which every transaction must succeed. Raises: ChainFault("reverted") naming the first that did not."""
        self.mine(txs)
        receipts = self.receipts()
        if len(receipts) != len(txs):
            raise ChainFault("bug", f"block {self.height} of the local chain: {len(txs)} transactions sent, {len(receipts)} mined")
        for index, (tx, receipt) in enumerate(zip(txs, receipts, strict=True)):
            if receipt["status"] != "0x1":
                raise ChainFault(
                    "reverted",
                    f"block {self.height} of the local chain: transaction {index} to {tx.to} ({tx.data[:10]}) reverted, gas used {int(receipt['gasUsed'], 16)} of {tx.gas}",
                )
        return receipts

    def receipts(self) -> list[dict[str, Any]]:
        """Receipts of the newest block, in order."""
        return self.node.call("eth_getBlockReceipts", [hex(self.height)])

    def nonce(self, sender: str) -> int:
        """How many transactions `sender` has sent."""
        if sender not in self.nonces:
            self.nonces[sender] = int(self.node.call("eth_getTransactionCount", [sender, "latest"]), 16)
        return self.nonces[sender]

    def _request(self, tx: Tx) -> dict[str, Any]:
        nonce = self.nonce(tx.sender)
        self.nonces[tx.sender] = nonce + 1
        request = {
            "from": tx.sender,
            "data": tx.data,
            "value": hex(tx.value_wei),
            "gas": hex(tx.gas),
            "nonce": hex(nonce),
            "maxFeePerGas": hex(BASE_FEE_WEI),
            "maxPriorityFeePerGas": "0x0",
        }
        return request | ({"to": tx.to} if tx.to else {})
