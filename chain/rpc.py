"""The JSON-RPC door to a node: few methods, several lanes, one kept connection each.

Only read-and-simulate methods pass; there is no way to send a transaction through here. A lane that fails is left for the
next one, and is asked for its identity again before it is believed again. One batch is answered by one lane, in as many
trips as that lane's own limits ask for; the last lane left is waited for when it asks for fewer requests, within the
deadline. Everything a node answers is checked for shape here: ids, count, and that each answer is either a result or an error.
Source: design §6, §9; why aiohttp: ops/decisions.
"""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import aiohttp
import orjson

from chain.lane import BACK_OFF_MS, Lane, LaneState, RateLimited, retry_after_ms
from chain.line import LineBroken, Lines, LineUnusual
from chain.text import clean
from ledgers.clock import Clock
from ledgers.errors import ChainFault

METHODS = frozenset(
    "eth_chainId eth_blockNumber eth_getBlockByNumber eth_getBlockByHash eth_call eth_simulateV1 eth_createAccessList"
    " eth_getLogs eth_getCode eth_getProof eth_getStorageAt eth_getBalance eth_getTransactionCount eth_getTransactionReceipt eth_getBlockReceipts"
    " eth_gasPrice web3_clientVersion".split()
)
"""Everything that may be asked of a node."""

ANSWER_BYTES_MAX = 64 * 1024 * 1024
MESSAGE_LENGTH_MAX = 300
COOL_DOWN_MS = 5_000
"""How long a lane that failed is tried last."""
RATE_LIMIT_CODES = frozenset({429, -32005})
OTHER_WORDS = ("result", "range", "getlogs", "response size", "max fee", "maxfee")
"""Words that make one of these codes mean that a single answer would be too large, or a fee too low."""
FEWER_WORDS = ("rate limit", "too many requests", "compute units per second")
METHOD_MISSING = -32601
REVERT_CODES = frozenset({3, -32015, -3200})
REVERT_WORD_WITHIN = 24
"""Nodes say `execution reverted` and then the contract's reason."""
TOO_LARGE, BATCH_WORDS = "too_large", ("batch", "too large", "too many")
"""Words by which a node refuses a whole batch for its size."""
REST_WORDS = ("response too large", "request timed out")
"""How geth refuses what is left of a batch, once it has said or worked enough."""
USER_AGENT = "Mozilla/5.0 (compatible; referee/1)"
"""Some public endpoints refuse clients without a usual one."""
HEADERS = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "Accept-Encoding": "identity"}


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
                status, answer, after = await self._exchange(lane, body)
        except TimeoutError:
            raise ChainFault("slow", f"lane {lane.name} did not answer within {deadline_ms} ms") from None
        except (aiohttp.ClientError, LineBroken, OSError, ValueError) as error:
            raise ChainFault("dead", f"lane {lane.name}: {type(error).__name__}") from None
        if status == 429:
            raise RateLimited(f"lane {lane.name} answered HTTP 429", retry_after_ms(after))
        if status != 200:
            raise ChainFault(TOO_LARGE if status == 413 else "bad_status", f"lane {lane.name} answered HTTP {status}")
        return answer

    async def _exchange(self, lane: Lane, body: bytes) -> tuple[int, bytes, str | None]:
        if lines := self._lines_to(lane):
            try:
                answer = await lines.post(body)
                return answer.status, answer.body, answer.retry_after
            except LineUnusual:
                pass  # the general client asks again, and judges
        async with self._opened().post(lane.url, data=body, allow_redirects=False) as reply:
            body = await _read_bounded(reply, lane) if reply.status == 200 else b""
            return reply.status, plain(body, reply.headers.get("Content-Encoding", ""), lane), reply.headers.get("Retry-After")

    def _lines_to(self, lane: Lane) -> Lines | None:
        if lane.url not in self._lines:
            lines = Lines(lane.url, HEADERS, lines_max=self._connections_max, body_bytes_max=ANSWER_BYTES_MAX)
            self._lines[lane.url] = lines if Lines.reach(lane.url) else None
        return self._lines[lane.url]

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections_max, keepalive_timeout=60),
                headers={**HEADERS, "Accept-Encoding": "gzip"},
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


def plain(body: bytes, encoding: str, lane: Lane) -> bytes:
    """Undo what a node packed its answer in, within the bound of any answer. Raises: ChainFault for what cannot be undone."""
    if encoding.strip().lower() in ("", "identity") or not body:
        return body
    if encoding.strip().lower() not in ("gzip", "x-gzip"):
        raise ChainFault("bad_answer", f"lane {lane.name} packed its answer in a way that was not asked for")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(body, ANSWER_BYTES_MAX + 1)
    except zlib.error:
        raise ChainFault("bad_answer", f"lane {lane.name} sent an answer that cannot be unpacked") from None
    if len(unpacked) > ANSWER_BYTES_MAX or not unpacking.eof or unpacking.unused_data:
        raise ChainFault("bad_answer", f"lane {lane.name} sent an answer that is too long unpacked, cut off or followed by something")
    return unpacked


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


class RpcDoor:
    """Asks the first good lane; raises ChainFault only when none is left."""

    def __init__(self, lanes: Sequence[Lane], *, clock: Clock, transport: Transport | None = None, deadline_ms: int = 10_000) -> None:
        if not lanes:
            raise ValueError("a door needs at least one lane")
        self.lanes = [LaneState.of(lane, clock) for lane in lanes]
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
        limit_ms, states = deadline_ms or self.deadline_ms, self._in_order()
        for state in states:
            try:
                await self._check(state, limit_ms)
                return await self._ask_in_parts(state, requests, limit_ms, patient=state is states[-1])
            except ChainFault as error:
                self._cool(state, error)
                fault = error
        assert fault is not None
        raise fault

    def _in_order(self) -> list[LaneState]:
        now_ms = self._clock.monotonic_ms()
        usable = [state for state in self.lanes if not state.barred]
        if not usable:
            raise ChainFault("barred", "every lane told something else than another did; none is believed any more")
        return sorted(usable, key=lambda state: state.cool_until_ms if state.cool_until_ms > now_ms else 0)

    def _cool(self, state: LaneState, fault: ChainFault | None = None) -> None:
        state.faults += 1
        state.checked = False
        asked_ms = fault.retry_after_ms if isinstance(fault, RateLimited) else 0
        state.cool_until_ms = self._clock.monotonic_ms() + max(COOL_DOWN_MS, asked_ms)

    @property
    def answering(self) -> LaneState:
        """The lane that answered last."""
        return next((state for state in self.lanes if state.lane.name == self.lane), self.lanes[0])

    async def elsewhere(self, requests: Sequence[tuple[str, list[Any]]], lane: str, deadline_ms: int) -> tuple[str, list[Any]] | None:
        """Ask a lane other than `lane`; its name and its answers, or none where no other lane answers. Raises: nothing.

        Which lane answered last stays as it is."""
        last = self.lane
        try:
            for state in self.lanes:
                if state.lane.name != lane and not state.barred:
                    with suppress(ChainFault):
                        await self._check(state, deadline_ms)
                        return state.lane.name, await self._ask_in_parts(state, requests, deadline_ms, patient=False)
            return None
        finally:
            self.lane = last

    def bar(self, lane: str) -> None:
        """Believe a lane no more, for as long as this door is open."""
        for state in self.lanes:
            state.barred |= state.lane.name == lane

    def distrust(self) -> None:
        """Leave the lane that answered last for the next one: its answers were well-formed and still not good enough."""
        self._cool(self.answering)

    async def _check(self, state: LaneState, deadline_ms: int) -> None:
        if state.checked or self._identity is None:
            return
        who = [("eth_chainId", []), ("eth_getBlockByNumber", ["0x0", False])]
        chain_id, block0 = await self._ask_in_parts(state, who, deadline_ms, patient=len(self.lanes) == 1)
        found = (chain_id, block0.get("hash") if isinstance(block0, dict) else None)
        wanted_id, wanted_hash = self._identity
        if found != (hex(wanted_id), wanted_hash):
            raise ChainFault("wrong_identity", f"lane {state.lane.name} is another chain: expected id {wanted_id} and block 0 {wanted_hash}")
        state.checked = True

    async def _ask_in_parts(self, state: LaneState, requests: Sequence[tuple[str, list[Any]]], deadline_ms: int, patient: bool) -> list[Any]:
        """Ask one lane in batches that it takes; what it asked to be asked later is asked again, as long as a patient caller may wait."""
        until_ms = self._clock.monotonic_ms() + deadline_ms
        told: dict[int, Any] = {}
        waiting, tries, most = list(range(len(requests))), 0, len(requests)
        while waiting:
            part = waiting[: min(state.batch_max or most, most)]
            await self._hold_back(state, len(part), until_ms)
            try:
                answers = await self._ask(state, [requests[place] for place in part], max(until_ms - self._clock.monotonic_ms(), 1))
            except RateLimited as limited:
                answers = [limited] * len(part)
            except ChainFault as fault:
                if fault.reason != TOO_LARGE or len(part) == 1:
                    raise
                state.takes_no_batch_of(len(part))
                continue
            again = [isinstance(answer, RateLimited) or len(part) > 1 and _is_rest(answer) for answer in answers]
            told |= {place: answer for place, answer, later in zip(part, answers, again, strict=True) if not later}
            waiting = [place for place in waiting if place not in told]
            limits = [answer for answer in answers if isinstance(answer, RateLimited)]
            most = most if sum(again) == len(limits) else len(part) // 2
            tries = tries + 1 if len(limits) == len(part) else 0
            if limits:
                self._back_off(state, limits[0], max(tries, 1), until_ms, patient)
        return [told[place] for place in range(len(requests))]

    async def _hold_back(self, state: LaneState, requests: int, until_ms: int) -> None:
        """Wait for the lane's pace. Raises: RateLimited when that is past the deadline."""
        now_ms = self._clock.monotonic_ms()
        wait_ms = state.pace.take(requests, until_ms - now_ms)
        if wait_ms is None or state.not_before_ms > until_ms:
            raise RateLimited(f"lane {state.lane.name} cannot be asked within the deadline at the pace it allows")
        wait_ms = max(wait_ms, state.not_before_ms - now_ms)
        if wait_ms > 0:
            state.waited_ms_total += wait_ms
            await self._clock.sleep_until(self._clock.now_ms() + wait_ms)

    def _back_off(self, state: LaneState, limited: RateLimited, tries: int, until_ms: int, patient: bool) -> None:
        """Leave a lane alone for a while before it is asked again. Raises: RateLimited when it is better left for the next one."""
        now_ms, most = self._clock.monotonic_ms(), state.lane.limits.tries
        wait_ms = limited.retry_after_ms or BACK_OFF_MS << (tries - 1)
        state.not_before_ms = now_ms + wait_ms if most > 1 else 0
        if not patient or tries >= most or now_ms + wait_ms > until_ms:
            raise limited

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
    if len(ids) > 1:
        _whole_batch_refused(decoded[0] if isinstance(decoded, list) and len(decoded) == 1 else decoded, lane)
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


def _is_rest(answer: Any) -> bool:
    return isinstance(answer, RpcRefused) and answer.message.lower().startswith(REST_WORDS)


def _whole_batch_refused(answer: Any, lane: Lane) -> None:
    """Take one error for a whole batch, alone or in a list. Raises: ChainFault `too_large` when the node wants smaller ones, RateLimited when fewer."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return
    code, message = _code_and_words(error, lane)
    if _wants_fewer(code, message):
        raise RateLimited(f"lane {lane.name} asks for fewer requests")
    if error and any(word in message.lower() for word in BATCH_WORDS):
        raise ChainFault(TOO_LARGE, f"lane {lane.name} asks for smaller batches")


def of_the_contract(code: int, message: str) -> bool:
    """Say whether an error is a contract's own revert, whose reason the contract chose: its words mean nothing."""
    return code in REVERT_CODES or "revert" in message.lower()[:REVERT_WORD_WITHIN]


def _result(row: dict[str, Any], lane: Lane) -> Any:
    if ("result" in row) == (row.get("error") is not None):
        raise ChainFault("bad_answer", f"lane {lane.name} sent neither or both of result and error")
    if "result" in row:
        return row["result"]
    error = row["error"] if isinstance(row["error"], dict) else {}
    code, message = _code_and_words(error, lane)
    if _wants_fewer(code, message):
        return RateLimited(f"lane {lane.name} asks for fewer requests")
    data = error.get("data")
    return RpcRefused(code, message, data if isinstance(data, str) else None)


def _code_and_words(error: dict[str, Any], lane: Lane) -> tuple[int, str]:
    code = error.get("code")
    message = clean(lane.without_key(str(error.get("message", ""))[: 4 * MESSAGE_LENGTH_MAX]), MESSAGE_LENGTH_MAX)
    return code if type(code) is int else 0, message


def _wants_fewer(code: int, message: str) -> bool:
    said = message.lower()
    if code in RATE_LIMIT_CODES:
        return not any(word in said for word in OTHER_WORDS)
    return any(word in said for word in FEWER_WORDS) and not of_the_contract(code, message)
