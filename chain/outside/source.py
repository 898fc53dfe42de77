"""The source: one outside service, asked politely and read with suspicion.

Whatever comes back is bounded, cleaned and marked as untrusted by whoever shows it; a source that is down, slow, wrong or
too talkative says nothing, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Protocol

import aiohttp
import orjson

from chain.address import is_address
from chain.outside.told import Told
from chain.rpc import USER_AGENT

ANSWER_BYTES_MAX = 2 * 1024 * 1024
DEADLINE_MS = 4_000
NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?", re.ASCII)
POOL_KEY = re.compile(r"0x([0-9a-f]{40}|[0-9a-f]{64})", re.ASCII)


class Source(Protocol):
    """One outside service."""

    name: str

    async def ask(self, web: Web, tokens: Sequence[str]) -> Told:
        """Ask about some tokens, the most wanted first. Raises: Silent."""
        ...


class Silent(Exception):
    """An outside source said nothing that can be used."""


class Web:
    """Fetches JSON from outside, within a deadline and a bound."""

    def __init__(self, deadline_ms: int = DEADLINE_MS) -> None:
        self._deadline_ms = deadline_ms
        self._session: aiohttp.ClientSession | None = None

    async def json(self, url: str) -> Any:
        """Fetch one document. Raises: Silent."""
        try:
            async with asyncio.timeout(self._deadline_ms / 1_000), self._opened().get(url, allow_redirects=False) as reply:
                if reply.status != 200:
                    raise Silent(f"HTTP {reply.status}")
                return orjson.loads(await _bounded(reply))
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise Silent(type(error).__name__) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"User-Agent": USER_AGENT, "Accept": "application/json"})
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
            raise Silent(f"more than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)


def number(value: object) -> str | None:
    """A number as decimal text, or none for anything that is not plainly one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    return text if NUMBER.fullmatch(text) else None


def numbers(**values: object) -> dict[str, str]:
    """Those of some values that are numbers."""
    read = {name: number(value) for name, value in values.items()}
    return {name: text for name, text in read.items() if text is not None}


def address(value: object) -> str | None:
    """A token's address in lower case, or none."""
    return value.lower() if isinstance(value, str) and is_address(value) else None


def part(value: object, *names: str) -> Any:
    """Walk into nested objects; none where there is nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def lowered(value: object) -> dict[str, Any]:
    """An object with its names in lower case; empty for anything else."""
    return {name.lower(): item for name, item in value.items() if isinstance(name, str)} if isinstance(value, dict) else {}


def rows(value: object, count_max: int) -> list[Any]:
    """A list, bounded; anything else is none. Raises: Silent."""
    if not isinstance(value, list):
        raise Silent("expected a list")
    return value[:count_max]
