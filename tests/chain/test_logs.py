"""Logs are read whole whatever ranges a node allows, and a range that is gone is said to be gone."""

from __future__ import annotations

from typing import Any

import pytest

from chain.lane import LaneLimits
from chain.logs import BLOCKS_AT_ONCE, LogFilter, read_logs, topic
from chain.rpc import FunctionTransport, Lane, RpcDoor
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault

SWAP = topic("Swap(uint256)")
POOL = "0x" + "11" * 20
LAST = 24_999
WANTED = LogFilter(frozenset({SWAP}))


def log(block: int, index: int = 0) -> dict[str, Any]:
    return {
        "address": POOL, "topics": [SWAP], "data": "0x", "blockNumber": hex(block), "blockHash": f"0x{block:064x}",
        "logIndex": hex(index), "transactionIndex": "0x1", "removed": False,
    }  # fmt: skip


class Node:
    """Has one log in every 500th block, and refuses what its `refuse` says; remembers every range asked for."""

    def __init__(self, refuse=lambda first, last: None, logs_per_block: int = 1) -> None:
        self.refuse, self.logs_per_block = refuse, logs_per_block
        self.asked: list[tuple[int, int]] = []

    def __call__(self, lane: Lane, body: Any) -> Any:
        rows = [self._row(each) for each in (body if isinstance(body, list) else [body])]
        return rows if isinstance(body, list) else rows[0]

    def _row(self, asked: dict) -> dict:
        wanted = asked["params"][0]
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        self.asked.append((first, last))
        refused = self.refuse(first, last)
        if refused == "slow":
            raise ChainFault("slow", "lane node did not answer within 10000 ms")
        if isinstance(refused, tuple):
            return {"id": asked["id"], "error": {"code": refused[0], "message": refused[1]}}
        found = [log(block, index) for block in range(-(-first // 500) * 500, last + 1, 500) for index in range(self.logs_per_block)]
        return {"id": asked["id"], "result": found if refused is None else found[:refused]}

    def door(self, limits: LaneLimits = LaneLimits()) -> RpcDoor:
        return RpcDoor([Lane("node", "http://node", limits)], clock=VirtualClock(), transport=FunctionTransport(self))

    @property
    def spans(self) -> list[int]:
        return [last - first + 1 for first, last in self.asked]


def wider_than(blocks: int, message: str, code: int = -32000):
    return lambda first, last: (code, message) if last - first + 1 > blocks else None


async def blocks_read(node: Node, limits: LaneLimits = LaneLimits()) -> list[int]:
    return [each.block for each in await read_logs(node.door(limits), WANTED, 0, LAST)]


WHOLE = list(range(0, LAST + 1, 500))


async def test_a_node_without_limits_is_asked_for_large_ranges():
    node = Node()
    assert await blocks_read(node) == WHOLE
    assert max(node.spans) == BLOCKS_AT_ONCE and len(node.spans) == 3


REFUSALS = {
    "Alchemy, free": (10, "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. This block range should work: [0x0, 0x9]", -32600),
    "Chainstack, free": (100, "Block range limit exceeded. Maximum allowed is 100 blocks", -32000),
    "dRPC, free": (100, "ranges over 100 blocks are not supported on freetier", 35),
    "QuickNode": (5, "eth_getLogs is limited to a 5 range", -32614),
    "Nitro, timeout": (700, "query timed out", -32602),
    "too many results": (1_000, "query returned more than 10000 results", -32005),
    "wide, without a number": (300, "block range is too wide", -32000),
}


@pytest.mark.parametrize(("blocks", "message", "code"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_node_that_allows_fewer_blocks_is_read_whole(blocks, message, code):
    node = Node(wider_than(blocks, message, code))
    found = await read_logs(node.door(), WANTED, 0, 3_999)
    assert [each.block for each in found] == list(range(0, 4_000, 500))
    assert max(node.spans[-3:]) <= blocks


async def test_a_number_of_blocks_that_is_named_is_taken_at_once():
    node = Node(wider_than(100, "Block range limit exceeded. Maximum allowed is 100 blocks"))
    await blocks_read(node)
    assert set(node.spans[3:]) == {100} and node.spans[0] == BLOCKS_AT_ONCE


async def test_what_a_lane_allows_is_remembered_for_the_next_reading():
    node = Node(wider_than(100, "ranges over 100 blocks are not supported"))
    door = node.door()
    await read_logs(door, WANTED, 0, 999)
    node.asked.clear()
    await read_logs(door, WANTED, 0, 999)
    assert node.spans == [100] * 10


async def test_a_limit_behind_the_address_is_never_exceeded():
    node = Node()
    assert await blocks_read(node, LaneLimits(log_blocks_max=2_000)) == WHOLE
    assert max(node.spans) == 2_000


async def test_an_answer_cut_off_at_a_round_number_is_read_again_in_smaller_ranges():
    node = Node(lambda first, last: 1_000, logs_per_block=100)
    found = await read_logs(node.door(), WANTED, 0, 9_999)
    assert len(found) == 20 * 100
    assert max(node.spans[1:]) <= 5_000


async def test_a_range_too_wide_to_be_answered_in_time_is_asked_for_in_parts():
    node = Node(lambda first, last: "slow" if last - first + 1 > 1_000 else None)
    assert await blocks_read(node) == WHOLE
    assert max(node.spans[1:]) <= 1_000


@pytest.mark.parametrize(("last", "asked"), [(98, 1), (99, 2)])
async def test_a_node_that_is_slow_with_few_blocks_is_slow(last, asked):
    node = Node(lambda first, last: "slow")
    with pytest.raises(ChainFault, match="slow"):
        await read_logs(node.door(), WANTED, 0, last)
    assert len(node.asked) == asked


@pytest.mark.parametrize("message", ["metadata is not found", "pruned history unavailable", "missing trie node 0abc", "historical state not available"])
async def test_a_range_that_the_node_no_longer_has_is_said_at_once(message):
    node = Node(lambda first, last: (-32000, message))
    with pytest.raises(ChainFault, match="no longer has the logs of blocks 0–9999") as fault:
        await blocks_read(node)
    assert fault.value.reason == "pruned" and len(node.asked) == 3


async def test_a_block_that_is_refused_alone_is_a_fault():
    with pytest.raises(ChainFault, match="logs of block"):
        await blocks_read(Node(lambda first, last: (-32000, "no")))


async def test_a_node_without_logs_is_a_fault_at_once():
    node = Node(lambda first, last: (-32601, "the method does not exist"))
    with pytest.raises(ChainFault, match="refused"):
        await blocks_read(node)
    assert len(node.asked) == 3


async def test_the_place_of_a_logs_transaction_is_read():
    (found,) = await read_logs(Node().door(), WANTED, 0, 0)
    assert found.tx_index == 1
