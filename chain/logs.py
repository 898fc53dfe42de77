"""Event logs, read in ranges and believed only when every one of them is what was asked for.

A node that caps its answers refuses a range; the range is then halved, or cut to what the node names, and later ranges of
that lane start at the smaller size. A range that the node no longer has is said at once, since no smaller one would do.
A log that is missing from a node's answer cannot be noticed here, but for answers cut off at a round number: whoever keeps
state from logs reads it again by calls.
Source: refusals as nodes and providers word them (geth and Nitro, Alchemy, QuickNode, Chainstack, dRPC).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils import keccak

from chain.calldata import hex_bytes, hex_int
from chain.gone import logs_gone
from chain.header import block_hash
from chain.network import ADDRESS
from chain.rpc import METHOD_MISSING, RpcDoor, RpcRefused
from chain.text import clean
from ledgers.errors import ChainFault

BLOCKS_AT_ONCE = 10_000
"""Blocks in one request, unless the node asks for fewer."""
REQUESTS_AT_ONCE = 8
LOGS_MAX = 200_000
"""Logs in one reading; more is a node gone wild."""
SLOW_SPAN_MIN, SLOW_PART, SLOW_TRIES = 100, 10, 2
"""A range of so many blocks that is not answered in time is asked for in so many parts, at most so often."""
CUT_OFF_AT = frozenset({1_000, 10_000, 20_000})
"""So many logs in one answer, to the last, look like an answer that was cut off without a word."""
PRUNED = "pruned"
BLOCKS_ALLOWED = re.compile(r"(?<![\dx.,])(\d[\d,]{0,12})[ -]blocks?\b|\bblock range:? (\d[\d,]{0,12})\b|\blimited to an? (\d[\d,]{0,12}) range")
"""How refusals name the most blocks they allow."""
RANGE_OFFERED = re.compile(r"\[ ?(0x[0-9a-f]{1,16}), ?(0x[0-9a-f]{1,16}) ?\]")


@dataclass(frozen=True, slots=True)
class Log:
    """One event that a contract emitted."""

    address: str
    topics: tuple[str, ...]
    data: bytes
    block: int
    block_hash: str
    index: int
    """Place in its block."""
    ts_s: int | None
    """Time of its block when the node says it."""
    tx_index: int | None = None
    """Place of its transaction in the block when the node says it."""


def topic(signature: str) -> str:
    """Name an event by the hash of its signature."""
    return "0x" + keccak(text=signature).hex()


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which logs are asked for."""

    topics: frozenset[str]
    """Any of these as the first topic."""
    addresses: frozenset[str] | None = None
    """Any of these emitters; None for every emitter."""
    second: str | None = None
    """The second topic, where only one is wanted."""

    def request(self, from_block: int, to_block: int) -> tuple[str, list[Any]]:
        """Ask for the logs of a range, both ends included."""
        topics = [sorted(self.topics), *([self.second] if self.second else ())]
        wanted: dict[str, Any] = {"fromBlock": hex(from_block), "toBlock": hex(to_block), "topics": topics}
        if self.addresses is not None:
            wanted["address"] = sorted(self.addresses)
        return ("eth_getLogs", [wanted])

    def read(self, answer: object, from_block: int, to_block: int) -> list[Log]:
        """Check a node's answer, sorted by block and place. Raises: ChainFault for anything that was not asked for."""
        logs, faults = self.sorted_out(answer, from_block, to_block)
        if faults:
            raise faults[0]
        return logs

    def sorted_out(self, answer: object, from_block: int, to_block: int) -> tuple[list[Log], list[ChainFault]]:
        """Tell the logs that were asked for, sorted by block and place, from bad records, each as a fault.

        Raises: ChainFault when it is no list of logs at all."""
        if not isinstance(answer, list) or len(answer) > LOGS_MAX:
            raise ChainFault("bad_answer", f"expected at most {LOGS_MAX} logs")
        logs: dict[tuple[int, int], Log] = {}
        faults: list[ChainFault] = []
        for row in answer:
            if _is_taken_back(row):
                continue
            try:
                log = self._asked_for(_log(row), from_block, to_block)
                if logs.setdefault((log.block, log.index), log) is not log:
                    raise ChainFault("bad_answer", "the same log came twice")
            except ChainFault as fault:
                faults.append(fault)
        return [logs[place] for place in sorted(logs)], faults

    def _asked_for(self, log: Log, from_block: int, to_block: int) -> Log:
        if not from_block <= log.block <= to_block or log.topics[0] not in self.topics:
            raise ChainFault("bad_answer", f"a log of block {log.block} was not asked for ({from_block}–{to_block})")
        if self.addresses is not None and log.address not in self.addresses:
            raise ChainFault("bad_answer", f"a log of {log.address} was not asked for")
        if self.second is not None and log.topics[1:2] != (self.second,):
            raise ChainFault("bad_answer", f"a log of {log.address} about something else was not asked for")
        return log


async def read_logs(rpc: RpcDoor, wanted: LogFilter, from_block: int, to_block: int, *, sound_only: bool = False) -> list[Log]:
    """Read the logs of a range of any length, both ends included; with `sound_only`, bad records among them are left out.

    Shapes: sorted by block and place. Raises: ChainFault; `pruned` when the node no longer has some of them."""
    if from_block > to_block:
        return []
    logs: list[Log] = []
    left = [(from_block, to_block)]
    step, slow = rpc.answering.log_blocks_max or BLOCKS_AT_ONCE, 0
    while left:
        ranges, left = _next_ranges(left, step)
        try:
            answers = await rpc.batch([wanted.request(*span) for span in ranges])
        except ChainFault as fault:
            widest, slow = max(last - first + 1 for first, last in ranges), slow + 1
            if fault.reason != "slow" or widest < SLOW_SPAN_MIN or slow > SLOW_TRIES:
                raise
            step, left = widest // SLOW_PART, [*ranges, *left]
            continue
        for span, answer in zip(ranges, answers, strict=True):
            if isinstance(answer, RpcRefused):
                step = min(step, _smaller(span, answer))
                rpc.answering.log_blocks_max = step
                left.append(span)
            elif isinstance(answer, list) and len(answer) in CUT_OFF_AT and span[0] < span[1]:
                step = min(step, (span[1] - span[0] + 2) // 2)
                left.append(span)
            else:
                logs += wanted.sorted_out(answer, *span)[0] if sound_only else wanted.read(answer, *span)
        if len(logs) > LOGS_MAX:
            raise ChainFault("bad_answer", f"more than {LOGS_MAX} logs in blocks {from_block}–{to_block}")
    return sorted(logs, key=lambda log: (log.block, log.index))


def _next_ranges(left: Sequence[tuple[int, int]], step: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    ranges: list[tuple[int, int]] = []
    waiting = list(left)
    while waiting and len(ranges) < REQUESTS_AT_ONCE:
        first, last = waiting.pop(0)
        ranges.append((first, min(first + step - 1, last)))
        if first + step <= last:
            waiting.insert(0, (first + step, last))
    return ranges, waiting


def _smaller(span: tuple[int, int], refused: RpcRefused) -> int:
    """How many blocks to ask for after a refusal. Raises: ChainFault when fewer would not help."""
    blocks = span[1] - span[0] + 1
    said = refused.message.lower()
    if logs_gone(said):
        raise ChainFault(PRUNED, f"the node no longer has the logs of blocks {span[0]}–{span[1]} ({clean(refused.message, 120)}); an archive node is needed")
    if blocks == 1 or refused.code == METHOD_MISSING:
        raise ChainFault("refused", f"logs of block {span[0]}: {clean(refused.message, 120)}")
    return min(_allowed(said) or blocks, (blocks + 1) // 2)


def _allowed(said: str) -> int | None:
    """The number of blocks that a refusal names as allowed, if it does."""
    if offered := RANGE_OFFERED.search(said):
        first, last = (int(end, 16) for end in offered.groups())
        return last - first + 1 if last >= first else None
    numbers = [int(next(filter(None, found.groups())).replace(",", "")) for found in BLOCKS_ALLOWED.finditer(said)]
    return min((number for number in numbers if number), default=None)


def _is_taken_back(row: object) -> bool:
    """Whether the node itself says that a log is of a block no longer on the chain: it says nothing of the blocks that are."""
    return isinstance(row, dict) and row.get("removed") is True


def _log(row: object) -> Log:
    if not isinstance(row, dict):
        raise ChainFault("bad_answer", "expected a log")
    topics = row.get("topics")
    if not isinstance(topics, list) or not 1 <= len(topics) <= 4:
        raise ChainFault("bad_answer", "expected a log with one to four topics")
    ts, place = row.get("blockTimestamp"), row.get("transactionIndex")
    return Log(
        address=address_of(row.get("address")),
        topics=tuple(block_hash(part) for part in topics),
        data=hex_bytes(row.get("data")),
        block=hex_int(row.get("blockNumber")),
        block_hash=block_hash(row.get("blockHash")),
        index=hex_int(row.get("logIndex")),
        ts_s=None if ts is None else hex_int(ts),
        tx_index=None if place is None else hex_int(place),
    )


def address_of(value: object) -> str:
    """Check an address, lower-cased. Raises: ChainFault."""
    if not isinstance(value, str) or not ADDRESS.fullmatch(value.lower()):
        raise ChainFault("bad_answer", "expected an address")
    return value.lower()


def topic_address(log: Log, index: int) -> str:
    """Read an indexed address. Raises: ChainFault."""
    if index >= len(log.topics) or log.topics[index][2:26] != "0" * 24:
        raise ChainFault("bad_answer", f"topic {index} of a log of {log.address} is not an address")
    return "0x" + log.topics[index][26:]


def words(log: Log, count: int) -> tuple[int, ...]:
    """Read a log's data as exactly `count` words. Raises: ChainFault."""
    if len(log.data) != 32 * count:
        raise ChainFault("bad_answer", f"a log of {log.address} has {len(log.data)} bytes, expected {32 * count}")
    return tuple(int.from_bytes(log.data[at : at + 32]) for at in range(0, len(log.data), 32))


def signed(word: int) -> int:
    """Read a word as a two's complement integer."""
    return word - 2**256 if word >> 255 else word


def blocks_of(logs: Collection[Log]) -> Iterator[tuple[int, str]]:
    """Name each block that the logs come from, with its hash. Raises: ChainFault when one block has two hashes."""
    seen: dict[int, str] = {}
    for log in logs:
        if seen.setdefault(log.block, log.block_hash) != log.block_hash:
            raise ChainFault("bad_answer", f"logs of block {log.block} name two hashes")
    yield from seen.items()
