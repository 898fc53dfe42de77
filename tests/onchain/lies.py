"""Lies: what a node may say instead of its true answer, one thing changed in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import orjson

from chain import calldata
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC
from tests.onchain.ground import WALLET

MUCH = 2**256 - 1
READS_WALLET = calldata.balance_of(WALLET)
READS_ETHER = calldata.eth_balance(WALLET)

Call = dict[str, Any]


def calls(params: list[Any], blocks: list[dict[str, Any]]) -> Iterator[tuple[Call, Call, bool]]:
    """Each simulated call of an answer: what was asked, what was told, and whether a swap of the wallet came before it in its block."""
    for asked, told in zip(params[0]["blockStateCalls"], blocks, strict=True):
        swapped = False
        for question, answer in zip(asked["calls"], told["calls"], strict=True):
            yield question, answer, swapped
            swapped = swapped or (question["from"] == WALLET and not question["data"].startswith("0x" + calldata.APPROVE))


def lie(change: Callable[[Call, Call, bool], None]) -> Callable[[list[Any], Any], Any]:
    """Change every simulated call of an answer."""

    def changed(params: list[Any], blocks: Any) -> Any:
        for question, answer, swapped in calls(params, blocks):
            change(question, answer, swapped)
        return blocks

    return changed


def add(answer: Call, delta: int) -> None:
    answer["returnData"] = "0x" + calldata.word(max(int(answer["returnData"], 16) + delta, 0))


def everything_is_much(question: Call, answer: Call, swapped: bool) -> None:
    answer["returnData"] = "0x" + "ff" * 32


def tokens_are_much(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_WALLET and swapped:
        answer["returnData"] = "0x" + calldata.word(MUCH)


def more_ether(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and swapped:
        add(answer, 10**17)


def a_wei_more(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and swapped:
        add(answer, 1)


def much_ether(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER:
        answer["returnData"] = "0x" + calldata.word(MUCH)


def less_ether_before(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and not swapped:
        add(answer, -(10**15))


def no_native_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = [log for log in answer["logs"] if log["address"] != NATIVE_LOG]


def more_in_native_logs(question: Call, answer: Call, swapped: bool) -> None:
    for log in answer["logs"]:
        if log["address"] == NATIVE_LOG:
            log["data"] = "0x" + calldata.word(10**17)


def no_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = []


def logs_missing(question: Call, answer: Call, swapped: bool) -> None:
    del answer["logs"]


def status_missing(question: Call, answer: Call, swapped: bool) -> None:
    del answer["status"]


def no_gas(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["gasUsed"] = "0x1"


def more_gas(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["gasUsed"] = hex(int(answer["gasUsed"], 16) + 1)


def all_reverted(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["status"] = "0x0"


def no_pool_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = [log for log in answer["logs"] if log["address"] == NATIVE_LOG or log["topics"][0] == TRANSFER_TOPIC]


LIES = {
    each.__name__: lie(each)
    for each in (
        everything_is_much, much_ether, more_ether, a_wei_more, less_ether_before, no_native_logs, more_in_native_logs, no_logs, logs_missing,
        status_missing, no_gas, more_gas, all_reverted, no_pool_logs,
    )
}  # fmt: skip

SHAPES: dict[str, Callable[[list[Any], Any], Any]] = {
    "null": lambda params, blocks: None,
    "no blocks": lambda params, blocks: [],
    "a block short": lambda params, blocks: blocks[:-1],
    "a call short": lambda params, blocks: [{**block, "calls": block["calls"][:-1]} for block in blocks],
    "a call double": lambda params, blocks: [{**block, "calls": [*block["calls"], block["calls"][-1]]} for block in blocks],
    "the block before": lambda params, blocks: [{**block, "number": hex(int(block["number"], 16) - 1)} for block in blocks],
    "an earlier time": lambda params, blocks: [{**block, "timestamp": hex(int(block["timestamp"], 16) - 60)} for block in blocks],
    "another base fee": lambda params, blocks: [{**block, "baseFeePerGas": "0x1"} for block in blocks],
}

MANNERS: dict[str, dict[str, Any]] = {
    "cut JSON": {"rewrite": lambda body: body[:-40]},
    "no JSON": {"rewrite": lambda body: b"<html>"},
    "empty": {"rewrite": lambda body: b""},
    "half the batch": {"rearrange": lambda rows: rows[: len(rows) // 2]},
    "one answer short": {"rearrange": lambda rows: rows[:-1]},
    "an answer twice": {"rearrange": lambda rows: [*rows[:-1], rows[0]]},
    "foreign ids": {"rearrange": lambda rows: [{**row, "id": row["id"] + 1_000_000} for row in rows]},
    "no ids": {"rearrange": lambda rows: [{key: value for key, value in row.items() if key != "id"} for row in rows]},
    "result and error": {"rearrange": lambda rows: [{**row, "error": {"code": 3, "message": "no"}} for row in rows]},
    "server error": {"status": 500},
    "too many requests": {"status": 429},
    "redirect": {"status": 302, "headers": (("Location", "http://127.0.0.1:9/"),)},
    "hang": {"stop": "hang"},
    "hang up": {"stop": "hang_up"},
    "cut in the middle": {"stop": "cut"},
    "drip": {"stop": "drip"},
}


REFUSED = (-38014, -32003, -38011, -38013, -38015, -38026, -32602, -32000, -32603, 12345)
"""Codes with which a node may refuse a whole request."""

# --- any one word ---------------------------------------------------------------------------------------------------

WORDS: list[Any] = [None, "0x", "0x" + "ff" * 32, "0x0", "0x1", "zz", 5, 1.5, True, [], {}]


def places(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of an answer where something stands."""
    for key, value in told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


class OneWord:
    """Changes one word of one answer, anywhere in it: another word, a digit off, or nothing at all."""

    def __init__(self, chance: Random, answer: int) -> None:
        self._chance, self._left = chance, answer

    def __call__(self, body: bytes) -> bytes:
        self._left -= 1
        if self._left:
            return body
        told = orjson.loads(body)
        *way, last = self._chance.choice(list(places(told)))
        here = told
        for key in way:
            here = here[key]
        words = [*WORDS, *self._near(here[last])]
        here[last] = self._chance.choice(words)
        if self._chance.randrange(len(words)) == 0:
            del here[last]
        return orjson.dumps(told)

    def _near(self, word: Any) -> list[str]:
        at = self._chance.randrange(len(word)) if isinstance(word, str) and word else 0
        return [word[:at] + digit + word[at + 1 :] for digit in "01"] * 3 if at else []
