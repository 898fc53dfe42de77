"""A lying node: a real HTTP server in front of the real local chain that alters, delays, cuts or drops what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import ClientSession, web

Alter = Callable[[str, list[Any], dict[str, Any]], dict[str, Any] | None]
"""Gets a method, its parameters and the true answer row, to be changed at will; returns the row to pass on (None drops it)."""
DRIP_S = 0.01


def honest(method: str, params: list[Any], row: dict[str, Any]) -> dict[str, Any]:
    """Alter nothing."""
    return row


@dataclass(slots=True)
class Manner:
    """How an answer is sent; the fields may be changed while the server runs."""

    alter: Alter = honest
    rearrange: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    """Gets the rows of a batch, altered already."""
    rewrite: Callable[[bytes], bytes] = bytes
    """Gets the whole body."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    stop: str = ""
    """hang (never answers), hang_up (closes at once), cut (closes in the middle), drip (a byte at a time), or empty."""
    when: Callable[[list[str]], bool] = lambda methods: True
    """Which requests are lied to, by their methods; the others are answered truly."""


class LyingNode:
    """Start with `lying_node`; set `manner` to what it should do."""

    def __init__(self, truth: str, session: ClientSession) -> None:
        self._truth, self._session, self._ended = truth, session, asyncio.Event()
        self.manner = Manner()
        self.url = ""
        self.asked: list[list[str]] = []
        """The methods of every request that arrived."""

    def lie(self, **changes: Any) -> None:
        """Behave in another manner from now on."""
        self.manner = Manner(**changes)

    def by(self, method: str, change: Callable[[list[Any], Any], Any]) -> None:
        """Alter the results of one method: `change` gets its parameters and a result to change or replace."""

        def alter(asked: str, params: list[Any], row: dict[str, Any]) -> dict[str, Any]:
            return {**row, "result": change(params, row["result"])} if asked == method and "result" in row else row

        self.lie(alter=alter)

    def release(self) -> None:
        """Let go of everybody who hangs."""
        self._ended.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = orjson.loads(body)
        methods = [each["method"] for each in asked] if isinstance(asked, list) else [asked["method"]]
        self.asked.append(methods)
        manner = self.manner if self.manner.when(methods) else Manner()
        if manner.stop == "hang":
            await self._ended.wait()
        if manner.stop in ("hang", "hang_up"):
            return self._hung_up(request)
        return await self._sent(request, manner, self._lies(manner, asked, await self._true(body)))

    async def _true(self, body: bytes) -> Any:
        async with self._session.post(self._truth, data=body, headers={"Content-Type": "application/json"}) as answer:
            return orjson.loads(await answer.read())

    def _lies(self, manner: Manner, asked: Any, true: Any) -> bytes:
        if isinstance(asked, dict):
            return manner.rewrite(orjson.dumps(manner.alter(asked["method"], asked["params"], true)))
        by_id = {row["id"]: row for row in true}
        rows = [manner.alter(each["method"], each["params"], by_id[each["id"]]) for each in asked]
        return manner.rewrite(orjson.dumps(manner.rearrange([row for row in rows if row is not None])))

    async def _sent(self, request: web.Request, manner: Manner, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(status=manner.status, headers=dict(manner.headers))
        response.content_length = len(body)
        await response.prepare(request)
        if manner.stop == "cut":
            await response.write(body[: len(body) // 2])
            return self._hung_up(request)
        for piece in (body[at : at + 1] for at in range(len(body))) if manner.stop == "drip" else (body,):
            await response.write(piece)
            if manner.stop == "drip" and (self._ended.is_set() or await self._ends_within(DRIP_S)):
                break
        return response

    async def _ends_within(self, limit_s: float) -> bool:
        try:
            await asyncio.wait_for(self._ended.wait(), limit_s)
        except TimeoutError:
            return False
        return True

    @staticmethod
    def _hung_up(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@asynccontextmanager
async def lying_node(truth: str, path: str = "/") -> AsyncIterator[LyingNode]:
    """Serve a lying node in front of `truth`; `path` becomes part of its address, as keys are."""
    session = ClientSession()
    node = LyingNode(truth, session)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{anything:.*}", node.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    node.url = f"http://127.0.0.1:{port}{path}"
    try:
        yield node
    finally:
        node.release()
        await runner.cleanup()
        await session.close()
