"""The web door to rivals: one kept session, and every answer bounded before it is read.

No redirect is followed, no cookie is kept, nothing is unpacked; a body past the bound is left where it is. An answer is
bytes first, then JSON; a page is named as one. What an answer says about an error is shown only after every word that
could hold a key has been looked for in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
import orjson

from chain.aggregators.ask import Limit, Silence
from chain.aggregators.budget import Budget
from chain.rpc import USER_AGENT
from chain.text import clean
from ledgers.clock import Clock

ANSWER_BYTES_MAX = 1024 * 1024
REQUEST_MS_MAX = 8_000
"""Longest single request; the ask's own deadline is usually shorter."""
DETAIL_LENGTH_MAX = 160
KEY_PART_LENGTH = 6
"""So many letters of a key in a row make a text unfit to be shown."""
HEADERS = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"}
TOO_MANY = (429,)
SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
WITHHELD = "(its words are withheld: they hold part of a key)"


@dataclass(frozen=True, slots=True)
class Request:
    """One question as HTTP."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status, and the document if the body is one."""

    status: int
    document: Any
    wait_ms: int | None = None
    """How long it asks to be left alone."""


class Web:
    """Carries requests to rivals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: Request) -> Answer:
        """Ask once. Raises: Silence when nothing that is JSON comes back in time."""
        try:
            return await self._clock.within(REQUEST_MS_MAX, self._exchange(request))
        except TimeoutError:
            raise Silence("slow", f"no answer within {REQUEST_MS_MAX} ms") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Silence("dead", type(error).__name__) from None

    async def _exchange(self, request: Request) -> Answer:
        headers = {**request.headers, **({"Content-Type": "application/json"} if request.body is not None else {})}
        async with self._opened().request(
            request.method, request.url, headers=headers, data=request.body, allow_redirects=False
        ) as reply:
            if 300 <= reply.status < 400:
                raise Silence("redirect", f"HTTP {reply.status}")
            if reply.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
                raise Silence("bad_answer", "packed although unpacked was asked for")
            body = await _bounded(reply)
            return Answer(reply.status, _document(reply.status, body), _wait_ms(reply.headers))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                headers=HEADERS, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
            )
        return self._session

    async def close(self) -> None:
        """Close kept connections."""
        if self._session is not None:
            await self._session.close()


async def _bounded(reply: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise Silence("too_long", f"more than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)


def _document(status: int, body: bytes) -> Any:
    """Read JSON; of an answer that is an error anyway, nothing is needed. Raises: Silence."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if status != 200:
            return None
        if body.lstrip()[:1] == b"<":
            raise Silence("html", "a page instead of JSON") from None
        raise Silence("bad_answer", f"{len(body)} bytes that are not JSON") from None


def _wait_ms(headers: Mapping[str, str]) -> int | None:
    for name in ("Retry-After", "RateLimit-Reset"):
        text = headers.get(name, "")
        if SECONDS.fullmatch(text):
            return int(text) * 1_000
    return None


class RivalDoor:
    """The way to one rival: its address, its budget, and its keys kept out of what is told."""

    def __init__(self, web: Web, base_url: str, limits: Sequence[Limit], secrets: Sequence[str], clock: Clock, wait_ms_max: int = 0) -> None:
        self._web = web
        self._base_url = base_url.rstrip("/")
        self._budget = Budget(limits, clock, wait_ms_max)
        self._secrets = tuple(secret for secret in secrets if secret)
        self._clock = clock

    def now_ms(self) -> int:
        """Wall time, for interfaces that want their requests dated."""
        return self._clock.now_ms()

    async def take(self, requests: int = 1) -> None:
        """Take requests off the budget before the first is sent, and wait for their moment where that is allowed. Raises: Silence."""
        wait_ms = self._budget.take(requests)
        if wait_ms is None:
            raise Silence("rate_limited", "not asked: its budget is used up or it asked for a pause")
        if wait_ms:
            await self._clock.sleep_until(self._clock.now_ms() + wait_ms)

    async def get(self, path: str, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask with GET. Raises: Silence."""
        return await self._sent(Request("GET", f"{self._base_url}{with_query(path, query)}", headers or {}))

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask with POST. Raises: Silence."""
        try:
            sent = orjson.dumps(body)
        except orjson.JSONEncodeError:
            raise Silence("bad_answer", "what it asks to be sent back cannot be written") from None
        return await self._sent(Request("POST", f"{self._base_url}{path}", headers or {}, sent))

    async def _sent(self, request: Request) -> Answer:
        answer = await self._web.ask(request)
        if answer.status in TOO_MANY:
            self.back_off(answer.wait_ms)
            raise Silence("rate_limited", f"HTTP {answer.status}")
        return answer

    def back_off(self, wait_ms: int | None = None) -> None:
        """Leave it alone for a while: it said that it was asked too often."""
        self._budget.back_off(wait_ms)

    def shown(self, text: object) -> str:
        """Make a rival's own words fit to be recorded: plain, bounded, and none at all when they hold part of a key."""
        words = clean(text, DETAIL_LENGTH_MAX)
        return WITHHELD if self._tells(words) else words

    def _tells(self, words: str) -> bool:
        squashed = _squashed(words)
        return any(part in squashed for secret in self._secrets for part in _parts(_squashed(secret)))


def with_query(path: str, query: Mapping[str, object] | None) -> str:
    """A path and its query, as they are sent."""
    return f"{path}?{urlencode(query)}" if query else path


def _squashed(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _parts(secret: str) -> list[str]:
    length = min(KEY_PART_LENGTH, len(secret))
    return [secret[at : at + length] for at in range(len(secret) - length + 1)] if secret else []
