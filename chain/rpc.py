"""The JSON-RPC door to a node: few methods, several lanes, one kept connection each.

Only read-and-simulate methods pass; there is no way to send a transaction through here. A lane is one node endpoint; its
address carries keys and is never shown, only its name is. A lane that fails is left for the next one, and is asked for
its identity again before it is believed again. Everything a node answers is checked for shape here: ids, count, and that
each answer is either a result or an error.
Source: design §6, §9; why aiohttp: ops/decisions.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import orjson

from chain.line import LineBroken, Lines, LineUnusual
from chain.text import clean
from ledgers.clock import Clock
from ledgers.errors import ChainFault

METHODS = frozenset(
    "eth_chainId eth_blockNumber eth_getBlockByNumber eth_getBlockByHash eth_call eth_simulateV1 eth_createAccessList"
    " eth_getLogs eth_getCode eth_getStorageAt eth_getBalance eth_getTransactionCount eth_getTransactionReceipt eth_getBlockReceipts"
    " eth_gasPrice web3_clientVersion".split()
)
"""Everything that may be asked of a node."""

ANSWER_BYTES_MAX = 64 * 1024 * 1024
MESSAGE_LENGTH_MAX = 300
KEY_LENGTH_MIN = 12
"""Parts of a lane's address at least so long are blotted out of what the node says."""
COOL_DOWN_MS = 5_000
"""How long a lane that failed is tried last."""
RATE_LIMIT_CODES = frozenset({429, -32005})
METHOD_MISSING = -32601
REVERT_CODES = frozenset({3, -32015, -3200})
REVERT_WORD_WITHIN = 24
"""Nodes say `execution reverted` and then the contract's reason."""
USER_AGENT = "Mozilla/5.0 (compatible; referee/1)"
"""Some public endpoints refuse clients without a usual one."""
HEADERS = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Lane:
    """One endpoint of a node."""

    name: str
    url: str = field(repr=False)

    def without_key(self, text: str) -> str:
        """Blot out parts of the address in what the node wrote: some nodes repeat the key they were asked with."""
        for part in re.split(r"[/?&=@:#]+", self.url):
            text = text.replace(part, "…") if len(part) >= KEY_LENGTH_MIN else text
        return text


class RpcRefused(Exception):
    """The node understood the request and answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(f"node error {code}: {message}")
        self.code, self.message, self.data = code, message, data


class Transport(Protocol):
    """Carries one request body to a lane and brings the answer's body back."""

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        """Raises: ChainFault when nothing usable comes back in time."""
        ...

    async def close(self) -> None: ...


class HttpTransport:
    """HTTP with kept connections: by lines to a plain-http node that answers as local nodes do, else by aiohttp."""

    def __init__(self, connections_max: int = 32) -> None:
        self._connections_max = connections_max
        self._session: aiohttp.ClientSession | None = None
        self._lines: dict[str, Lines | None] = {}
        """By address; None where lines do not reach."""

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                status, answer = await self._exchange(lane, body)
        except TimeoutError:
            raise ChainFault("slow", f"lane {lane.name} did not answer within {deadline_ms} ms") from None
        except (aiohttp.ClientError, LineBroken, OSError, ValueError) as error:
            raise ChainFault("dead", f"lane {lane.name}: {type(error).__name__}") from None
        if status != 200:
            raise ChainFault("rate_limited" if status == 429 else "bad_status", f"lane {lane.name} answered HTTP {status}")
        return answer

    async def _exchange(self, lane: Lane, body: bytes) -> tuple[int, bytes]:
        if lines := self._lines_to(lane):
            try:
                answer = await lines.post(body)
                return answer.status, answer.body
            except LineUnusual:
                pass  # the general client asks again, and judges
        async with self._opened().post(lane.url, data=body, allow_redirects=False) as reply:
            return reply.status, await _read_bounded(reply, lane) if reply.status == 200 else b""

    def _lines_to(self, lane: Lane) -> Lines | None:
        if lane.url not in self._lines:
            lines = Lines(lane.url, HEADERS, lines_max=self._connections_max, body_bytes_max=ANSWER_BYTES_MAX)
            self._lines[lane.url] = lines if Lines.reach(lane.url) else None
        return self._lines[lane.url]

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections_max, keepalive_timeout=60),
                headers=HEADERS,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
                read_bufsize=2**20,
            )
        return self._session

    async def close(self) -> None:
        for lines in filter(None, self._lines.values()):
            lines.close()
        if self._session is not None:
            await self._session.close()


async def _read_bounded(answer: aiohttp.ClientResponse, lane: Lane) -> bytes:
    if (answer.content_length or 0) <= ANSWER_BYTES_MAX and answer.content_length is not None:
        return await answer.read()
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise ChainFault("bad_answer", f"lane {lane.name} sent more than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)


class FunctionTransport:
    """A node played by a function, for tests: it gets the decoded request and returns the answer or its raw bytes."""

    def __init__(self, answer: Callable[[Lane, Any], Any]) -> None:
        self._answer = answer

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        answer = self._answer(lane, orjson.loads(body))
        if asyncio.iscoroutine(answer):
            answer = await answer
        return answer if isinstance(answer, bytes) else orjson.dumps(answer)

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class LaneState:
    """What the door knows of a lane."""

    lane: Lane
    checked: bool = False
    """True once it showed the expected identity since its last fault."""
    cool_until_ms: int = 0
    trips: int = 0
    faults: int = 0
    latency_ms_total: int = 0


class RpcDoor:
    """Asks the first good lane; raises ChainFault only when none is left."""

    def __init__(self, lanes: Sequence[Lane], *, clock: Clock, transport: Transport | None = None, deadline_ms: int = 10_000) -> None:
        if not lanes:
            raise ValueError("a door needs at least one lane")
        self.lanes = [LaneState(lane) for lane in lanes]
        self.lane = lanes[0].name
        self.deadline_ms = deadline_ms
        self._clock = clock
        self._transport = transport or HttpTransport()
        self._ids = itertools.count(1)
        self._identity: tuple[int, str] | None = None

    def expect_identity(self, chain_id: int, block0_hash: str) -> None:
        """From now on believe only lanes of this chain."""
        self._identity = (chain_id, block0_hash.lower())
        for state in self.lanes:
            state.checked = False

    async def call(self, method: str, params: list[Any], deadline_ms: int | None = None) -> Any:
        """Ask one question. Raises: ChainFault when no lane answers, RpcRefused when the node says no."""
        (answer,) = await self.batch([(method, params)], deadline_ms)
        if isinstance(answer, RpcRefused):
            raise answer
        return answer

    async def batch(self, requests: Sequence[tuple[str, list[Any]]], deadline_ms: int | None = None) -> list[Any]:
        """Ask several questions in one round trip.

        Shapes: one answer per request in the order asked, each a result or an RpcRefused.
        Raises: ChainFault when no lane answers the whole batch properly."""
        if not requests:
            return []
        for method, _ in requests:
            if method not in METHODS:
                raise PermissionError(f"{method} may not be asked of a node; allowed are read and simulate calls only")
        fault: ChainFault | None = None
        for state in self._in_order():
            try:
                await self._check(state, deadline_ms or self.deadline_ms)
                return await self._ask(state, requests, deadline_ms or self.deadline_ms)
            except ChainFault as error:
                self._cool(state)
                fault = error
        assert fault is not None
        raise fault

    def _in_order(self) -> list[LaneState]:
        now_ms = self._clock.monotonic_ms()
        return sorted(self.lanes, key=lambda state: state.cool_until_ms if state.cool_until_ms > now_ms else 0)

    def _cool(self, state: LaneState) -> None:
        state.faults += 1
        state.checked = False
        state.cool_until_ms = self._clock.monotonic_ms() + COOL_DOWN_MS

    def distrust(self) -> None:
        """Leave the lane that answered last for the next one: its answers were well-formed and still not good enough."""
        for state in self.lanes:
            if state.lane.name == self.lane:
                self._cool(state)

    async def _check(self, state: LaneState, deadline_ms: int) -> None:
        if state.checked or self._identity is None:
            return
        chain_id, block0 = await self._ask(state, [("eth_chainId", []), ("eth_getBlockByNumber", ["0x0", False])], deadline_ms)
        found = (chain_id, block0.get("hash") if isinstance(block0, dict) else None)
        wanted_id, wanted_hash = self._identity
        if found != (hex(wanted_id), wanted_hash):
            raise ChainFault("wrong_identity", f"lane {state.lane.name} is another chain: expected id {wanted_id} and block 0 {wanted_hash}")
        state.checked = True

    async def _ask(self, state: LaneState, requests: Sequence[tuple[str, list[Any]]], deadline_ms: int) -> list[Any]:
        ids = [next(self._ids) for _ in requests]
        asked = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in zip(ids, requests, strict=True)
        ]
        begun_ms = self._clock.monotonic_ms()
        body = await self._transport.post(state.lane, orjson.dumps(asked if len(asked) > 1 else asked[0]), deadline_ms)
        state.trips += 1
        state.latency_ms_total += self._clock.monotonic_ms() - begun_ms
        answers = _answers(body, ids, state.lane)
        self.lane = state.lane.name
        return answers

    async def close(self) -> None:
        """Close kept connections."""
        await self._transport.close()


def _answers(body: bytes, ids: list[int], lane: Lane) -> list[Any]:
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ChainFault("bad_answer", f"lane {lane.name} sent {len(body)} bytes that are not JSON") from None
    rows = decoded if len(ids) > 1 else [decoded]
    if not isinstance(rows, list) or len(rows) != len(ids):
        raise ChainFault("bad_answer", f"lane {lane.name} answered {len(rows) if isinstance(rows, list) else 'no list'} for {len(ids)} requests")
    by_id = {}
    for row in rows:
        if not isinstance(row, dict) or type(row.get("id")) is not int:
            raise ChainFault("bad_answer", f"lane {lane.name} sent an answer without a usable id")
        by_id[row["id"]] = row
    if by_id.keys() != set(ids):
        raise ChainFault("bad_answer", f"lane {lane.name} mixed up answer ids: expected each of {len(ids)} once")
    return [_result(by_id[number], lane) for number in ids]


def of_the_contract(code: int, message: str) -> bool:
    """Say whether an error is a contract's own revert, whose reason the contract chose: its words mean nothing."""
    return code in REVERT_CODES or "revert" in message.lower()[:REVERT_WORD_WITHIN]


def _result(row: dict[str, Any], lane: Lane) -> Any:
    if ("result" in row) == (row.get("error") is not None):
        raise ChainFault("bad_answer", f"lane {lane.name} sent neither or both of result and error")
    if "result" in row:
        return row["result"]
    error = row["error"] if isinstance(row["error"], dict) else {}
    code = error.get("code") if type(error.get("code")) is int else 0
    message = clean(lane.without_key(str(error.get("message", ""))[: 4 * MESSAGE_LENGTH_MAX]), MESSAGE_LENGTH_MAX)
    if code in RATE_LIMIT_CODES or "rate limit" in message.lower() and not of_the_contract(code, message):
        raise ChainFault("rate_limited", f"lane {lane.name} asks for fewer requests")
    data = error.get("data")
    return RpcRefused(code, message, data if isinstance(data, str) else None)
