"""Mined swaps are run again on their parent block and equal what the chain did; what differs is said by its cause."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from chain.devnet.devnet import Devnet
from chain.hooked import HOOKED, with_hooks
from chain.mined import first_swaps
from chain.network import load_network
from chain.reenact import reenact
from chain.rpc import Lane, RpcDoor
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from tests.chain.nitro import nitro_node
from tests.chain.street import walk
from tests.onchain.lying import lying_node

NETWORK = load_network("devnet")
SIMULATE = "eth_simulateV1"


@pytest.fixture(scope="module")
def street():
    """A chain of this module's own: a node forgets states when what others did on it is undone."""
    with Devnet.build(7, 25) as chain:
        chain.step(8)
        market = chain.height - 7, chain.height
        yield Street(chain, chain.url, *walk(chain), market)


@dataclass(frozen=True, slots=True)
class Street:
    chain: Devnet
    url: str
    first: int
    last: int
    market: tuple[int, int]
    """First and last block in which the market played."""


@asynccontextmanager
async def door_to(url: str):
    door = RpcDoor([Lane("node", url)], clock=SystemClock())
    try:
        yield door
    finally:
        await door.close()


async def run_again(url: str, first: int, last: int):
    async with door_to(url) as door:
        swaps = await first_swaps(door, NETWORK, first, last)
        return swaps, await reenact(door, swaps), await with_hooks(door, NETWORK, swaps)


def differing(rows) -> list:
    return [(row.swap.kinds, row.differences, row.unread, row.l2_gas, row.l1_gas) for row in rows if not row.equal]


async def test_swaps_of_every_kind_equal_their_simulation(street):
    swaps, rows, labels = await run_again(street.url, street.first, street.last)
    assert len(rows) >= 10 and not differing(rows)
    assert {kind for kinds in labels.values() for kind in kinds} >= {"v2", "v3", "v4", HOOKED, "v3 of griddle"}
    assert all(row.native_compared and row.transfers and row.l1_gas == (0, 0) for row in rows)
    assert street.chain.deployment.annex.rival in {swap.to for swap in swaps} and len({swap.to for swap in swaps}) >= 6


async def test_swaps_equal_their_simulation_on_a_node_in_nitros_shapes(street):
    async with nitro_node(street.url) as node:
        swaps, rows, _ = await run_again(node.url, street.first, street.last)
        plain, true_rows, _ = await run_again(street.url, street.first, street.last)
        assert not differing(rows) and [row.l2_gas for row in rows] == [row.l2_gas for row in true_rows]
        assert all(row.native_compared and row.l1_gas[0] < row.l1_gas[1] for row in rows)
        assert [swap.tx_hash for swap in swaps] == [swap.tx_hash for swap in plain]
        simulated = node.asked(SIMULATE)
    assert all(params[1] == {"blockHash": swap.parent_hash} for swap, params in zip([each for each in swaps for _ in range(2)], simulated, strict=True))
    assert all("balance" not in str(params[0]) and params[0]["validation"] for params in simulated)


async def test_the_markets_own_blocks_equal_their_simulation(street):
    _, rows, _ = await run_again(street.url, *street.market)
    assert rows and not differing(rows)


async def test_only_the_first_user_transaction_of_a_block_is_taken(street):
    swaps, _, _ = await run_again(street.url, *street.market)
    blocks = [street.chain.node.call("eth_getBlockByNumber", [hex(height), True]) for height in range(street.market[0], street.market[1] + 1)]
    first = {int(block["number"], 16): block["transactions"][0]["hash"] for block in blocks if block["transactions"]}
    assert len(swaps) <= len(first)
    assert all(first[swap.header.block] == swap.tx_hash for swap in swaps)


# --- what differs -----------------------------------------------------------------------------------------------------


def one_wei_more(call):
    for log in call["logs"]:
        if log["topics"][0] == TRANSFER_TOPIC and log["address"] != NATIVE_LOG:
            log["data"] = f"0x{int(log['data'], 16) + 1:064x}"
            return


def other_event(call):
    call["logs"][-1]["data"] = "0x" + "11" * 32


def dearer(call):
    call["gasUsed"] = hex(int(call["gasUsed"], 16) + 1)


def native_more(call):
    for log in call["logs"]:
        if log["address"] == NATIVE_LOG:
            log["data"] = "0x" + "00" * 31 + "07"


def failed(call):
    call["status"], call["logs"] = "0x0", []


LIES = {"transfers": one_wei_more, "logs": other_event, "l2_gas": dearer, "native": native_more, "status": failed}


@pytest.mark.parametrize("cause", LIES)
async def test_a_difference_is_said_by_its_cause(street, cause):
    def lie(params, answer):
        for block in answer:
            for call in block["calls"]:
                LIES[cause](call)
        return answer

    async with lying_node(street.url) as node:
        node.by(SIMULATE, lie)
        _, rows, _ = await run_again(node.url, street.first, street.first + 2)
    assert rows and all(cause in row.differences for row in rows)


async def test_an_l1_part_beyond_its_padding_differs(street):
    def twice(params, answer):
        if params[0]["blockStateCalls"][0]["blockOverrides"]["feeRecipient"] != "0x000000000000000000000000000000000000dead":
            for call in answer[0]["calls"]:
                call["gasUsed"] = hex(int(call["gasUsed"], 16) + 30_000)
        return answer

    async with lying_node(street.url) as node:
        node.by(SIMULATE, twice)
        _, rows, _ = await run_again(node.url, street.first, street.first + 2)
    assert rows and all("l1_gas" in row.differences for row in rows)


@pytest.mark.parametrize(("message", "unread", "differences"), [
    ("missing trie node: historical state is not available", "state_gone", ()),
    ("insufficient funds for gas * price + value", "", ("refused: insufficient_funds",)),
])  # fmt: skip
async def test_a_refused_simulation_is_unread_or_a_difference(street, message, unread, differences):
    def refuse(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32000, "message": message}} if method == SIMULATE else row

    async with lying_node(street.url) as node:
        node.lie(alter=refuse)
        _, rows, _ = await run_again(node.url, street.first, street.first)
    assert [(row.unread, row.differences) for row in rows] == [(unread, differences)]


async def test_what_else_was_going_on_is_named_beside_a_difference(street):
    async with lying_node(street.url) as node:
        node.by(SIMULATE, lambda params, answer: [{**block, "calls": [{**call, "status": "0x0"} for call in block["calls"]]} for block in answer])
        async with door_to(node.url) as door:
            (swap,) = await first_swaps(door, NETWORK, street.first, street.first)
            (row,) = await reenact(door, [replace(swap, start_moved=True, call={**swap.call, "accessList": [{"address": swap.sender, "storageKeys": []}]})])
    assert row.differences[0] == "status (start of block, access list)"


# --- what a node may not say ------------------------------------------------------------------------------------------


def of_another_block(params, receipt):
    return {**receipt, "blockHash": "0x" + "cd" * 32}


def of_another_transaction(params, receipt):
    return {**receipt, "transactionHash": "0x" + "cd" * 32}


@pytest.mark.parametrize("change", [of_another_block, of_another_transaction, lambda params, receipt: None, lambda params, receipt: {**receipt, "logs": 5}])
async def test_a_receipt_that_does_not_belong_is_a_fault(street, change):
    async with lying_node(street.url) as node, door_to(node.url) as door:
        node.by("eth_getTransactionReceipt", change)
        with pytest.raises(ChainFault, match="bad_answer"):
            await first_swaps(door, NETWORK, street.first, street.last)


@pytest.mark.parametrize("answer", [None, [], [{}], [{"calls": []}], [{"calls": [{"status": "0x1"}]}], [{"calls": [{"logs": [], "status": "0x1"}]}]])
async def test_a_simulation_of_the_wrong_shape_is_a_fault(street, answer):
    async with lying_node(street.url) as node:
        node.by(SIMULATE, lambda params, told: answer)
        with pytest.raises(ChainFault, match="bad_answer"):
            await run_again(node.url, street.first, street.first)
