"""Mined swaps that were the first user transaction of their block, read with everything that is needed to run them again.

Before the first one nothing but the chain's own start-of-block transaction (Nitro's type 0x6a) has touched the parent's
state, so a simulation on the parent must do what the chain did.
Source: design §6; transactions of EIP-2718, 2930, 1559, 7702; Nitro's internal transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chain.calldata import hex_bytes, hex_int
from chain.header import Header, block_hash, header_of
from chain.logs import LogFilter, address_of, read_logs
from chain.network import Network
from chain.rpc import RpcDoor, RpcRefused
from chain.swaps import V2_SWAP, V3_SWAP, V4_SWAP
from ledgers.errors import ChainFault

INTERNAL = "0x6a"
USER_TYPES = frozenset({"0x0", "0x1", "0x2", "0x4"})
TOKEN_LOGS_MAX = 10_000
PLAIN = ("accessList", "authorizationList")
"""Lists of a transaction that are handed on as they are."""
AMOUNTS = ("nonce", "gas", "value", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas")
DOUBLED = frozenset({"maxFeePerGas", "maxPriorityFeePerGas"})
"""A node tells a paid gasPrice besides these; only one kind of price may be handed on."""

Emitted = tuple[str, tuple[str, ...], bytes]
"""A log as far as it can be compared: emitter, topics, data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedSwap:
    """One transaction as it was mined."""

    header: Header
    parent_hash: str
    coinbase: str
    randao: str
    """What contracts saw as the block's random word, 32 bytes."""
    start_moved: bool
    """The start of the block changed more than usual: the chain beneath had another block than in the parent, or told what posting cost."""
    tx_hash: str
    sender: str
    to: str | None
    call: dict[str, Any]
    """The transaction as a simulation takes it."""
    alone: bool
    """Nobody else's transaction is in its block, so that balances at its ends tell of this one only."""
    gas_used: int
    l1_gas: int
    """Part of the gas that paid for L1; 0 where a chain has none."""
    fee_wei: int
    emitted: tuple[Emitted, ...]
    kinds: tuple[str, ...]
    """Which kinds of pool it crossed: v2, v3, v4, or the name of a fork's Swap log."""


def swap_kinds(network: Network) -> dict[str, str]:
    """Name each Swap log by its topic; forks that log as Uniswap does are told by nothing here."""
    kinds = {V2_SWAP: "v2", V3_SWAP: "v3", V4_SWAP: "v4"}
    return {**{fork.swap_topic: f"{fork.shape} of {fork.name}" for fork in reversed(network.forks) if fork.swap_topic}, **kinds}


async def first_swaps(rpc: RpcDoor, network: Network, from_block: int, to_block: int) -> list[MinedSwap]:
    """Read the swaps of a range that were the first user transaction of their block.

    Shapes: by block, newest last. Raises: ChainFault; `pruned` when the node no longer has them."""
    kinds = swap_kinds(network)
    logs = await read_logs(rpc, LogFilter(frozenset(kinds)), max(from_block, 1), to_block)
    places = {(log.block, log.tx_index) for log in logs}
    blocks = sorted({log.block for log in logs if log.tx_index is not None and log.tx_index <= 1})
    asked = [("eth_getBlockByNumber", [hex(block), True]) for block in blocks]
    parents = [("eth_getBlockByNumber", [hex(block - 1), False]) for block in blocks]
    answers = await rpc.batch([*asked, *parents]) if blocks else []
    wholes, befores = answers[: len(blocks)], answers[len(blocks) :]
    found = [(whole, before, tx) for whole, before in zip(wholes, befores, strict=True) if (tx := _first(whole, places)) is not None]
    receipts = await rpc.batch([("eth_getTransactionReceipt", [tx["hash"]]) for _, _, tx in found]) if found else []
    return [_mined(*each, receipt, kinds) for each, receipt in zip(found, receipts, strict=True)]


def _first(block: object, places: set[tuple[int, int | None]]) -> dict[str, Any] | None:
    """The first user transaction of a block when it swapped."""
    if isinstance(block, RpcRefused) or not isinstance(block, dict) or not isinstance(block.get("transactions"), list):
        raise ChainFault("bad_answer", "expected a block with its transactions")
    number = hex_int(block.get("number"))
    for place, tx in enumerate(block["transactions"]):
        if not isinstance(tx, dict):
            raise ChainFault("bad_answer", "expected whole transactions")
        if tx.get("type") == INTERNAL:
            continue
        return tx if tx.get("type") in USER_TYPES and (number, place) in places else None
    return None


def _mined(block: Any, parent: Any, tx: dict[str, Any], receipt: Any, kinds: dict[str, str]) -> MinedSwap:
    header, before = header_of(block), header_of(parent)
    if block_hash(block.get("parentHash")) != before.block_hash or not isinstance(receipt, dict) or block_hash(receipt.get("blockHash")) != header.block_hash:
        raise ChainFault("bad_answer", f"block {header.block}, its parent and a receipt do not belong together")
    if block_hash(receipt.get("transactionHash")) != block_hash(tx.get("hash")) or receipt.get("status") != "0x1":
        raise ChainFault("bad_answer", f"a swap of block {header.block} has the receipt of something else")
    emitted = _emitted(receipt.get("logs"))
    sender = address_of(tx.get("from"))
    gas_used, difficulty = hex_int(receipt.get("gasUsed")), hex_int(block.get("difficulty", "0x0"))
    return MinedSwap(
        header=header,
        parent_hash=before.block_hash,
        coinbase=address_of(block.get("miner")),
        randao=f"0x{difficulty:064x}" if difficulty else block_hash(block.get("mixHash")),
        start_moved=block.get("l1BlockNumber") != parent.get("l1BlockNumber") or _internal(block) > 1,
        tx_hash=block_hash(tx["hash"]),
        sender=sender,
        to=None if tx.get("to") is None else address_of(tx["to"]),
        call=_call(tx, sender),
        alone=len(block["transactions"]) - _internal(block) == 1,
        gas_used=gas_used,
        l1_gas=hex_int(receipt.get("gasUsedForL1", "0x0")),
        fee_wei=gas_used * hex_int(receipt.get("effectiveGasPrice", "0x0")),
        emitted=emitted,
        kinds=tuple(dict.fromkeys(kinds[topics[0]] for _, topics, _ in emitted if topics and topics[0] in kinds)),
    )


def _internal(block: Any) -> int:
    """How many of a block's transactions are the chain's own."""
    return sum(isinstance(tx, dict) and tx.get("type") == INTERNAL for tx in block["transactions"])


def _call(tx: dict[str, Any], sender: str) -> dict[str, Any]:
    """A mined transaction as a simulation takes it: its own fields, checked, and one kind of price."""
    call: dict[str, Any] = {"from": sender, "input": "0x" + hex_bytes(tx.get("input", tx.get("data"))).hex()}
    if tx.get("to") is not None:
        call["to"] = address_of(tx["to"])
    priced = "gasPrice" if tx.get("maxFeePerGas") is None else None
    for name in AMOUNTS:
        if tx.get(name) is not None and (name != "gasPrice" or priced) and (name not in DOUBLED or not priced):
            call[name] = hex(hex_int(tx[name]))
    return call | {name: tx[name] for name in PLAIN if isinstance(tx.get(name), list) and tx[name]}


def _emitted(logs: object) -> tuple[Emitted, ...]:
    if not isinstance(logs, list) or len(logs) > TOKEN_LOGS_MAX:
        raise ChainFault("bad_answer", "expected the logs of a transaction")
    return tuple(emitted_of(log) for log in logs)


def emitted_of(log: object) -> Emitted:
    """Read a log, mined or simulated, as far as it can be compared. Raises: ChainFault."""
    if not isinstance(log, dict) or not isinstance(log.get("topics"), Sequence) or len(log["topics"]) > 4:
        raise ChainFault("bad_answer", "expected a log")
    return address_of(log.get("address")), tuple(block_hash(topic) for topic in log["topics"]), hex_bytes(log.get("data"))
