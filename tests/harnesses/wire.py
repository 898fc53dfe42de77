"""Small real servers that speak the wire formats providers document, and misbehave as providers do.

    async with serving(whole({...})) as server:            one answer for every request
    async with serving(status(429, {}), stream(...)):      one answer after another, the last one for all that follow

Each server keeps what it was asked: `server.bodies`, `server.headers`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from harnesses.address import Address
from harnesses.catalog import endpoint_of, http_door
from harnesses.endpoint import StepLimits, Wire
from harnesses.manifest import MANIFESTS, ModelManifest, Retry, read_harness
from harnesses.message import Message, Reply
from harnesses.tools import ToolSpec
from ledgers.clock import SystemClock

KEY = "sk-test-0123456789abcdef"
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]
QUOTE = ToolSpec("quote", "price of a size", {"type": "object", "properties": {"token": {"type": "string"}}})
ASKED = (Message("system", "be brief"), Message("user", '{"schema":"question/1"}'))


@dataclass
class Server:
    """A server under test."""

    url: str
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def address(self) -> Address:
        return Address(f"{self.url}/v1", KEY)


@asynccontextmanager
async def serving(*answers: Answering) -> AsyncIterator[Server]:
    """Serve answers on a loopback port of its own."""
    server = Server("")

    async def handle(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        server.bodies.append(json.loads(raw) if raw else None)
        server.headers.append({name.lower(): value for name, value in request.headers.items()})
        server.paths.append(request.path_qs)
        return await answers[min(len(server.bodies), len(answers)) - 1](request)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def whole(said: object, **headers: str) -> Answering:
    """Answer with one JSON text."""
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return status(200, text, **headers)


def status(code: int, said: object, **headers: str) -> Answering:
    """Answer with a status."""
    text = said if isinstance(said, bytes) else json.dumps(said).encode()

    async def answer(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, body=text, content_type="application/json", headers=named)

    return answer


def stream(*chunks: object, drop: bool = False, hang: bool = False, drip: bool = False) -> Answering:
    """Answer with events, then end; or lose the connection, hang, or send a comment now and then without end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk if isinstance(chunk, bytes) else f"data: {json.dumps(chunk)}\n\n".encode())
        if drop:
            request.transport.close()
        while hang:
            await asyncio.sleep(0.05)
        while drip:
            await asyncio.sleep(0.01)
            await response.write(b": still here\n\n")
        return response

    return answer


def named(kind: str, **data: object) -> bytes:
    """One event with a name, as Anthropic and OpenAI responses send them."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def manifest(name: str, **changes: object) -> ModelManifest:
    """A shipped manifest with quick retries, and changed where asked."""
    read = read_harness((MANIFESTS / f"{name}.toml").read_bytes(), name).model_manifest
    return read.model_copy(update={"retry": Retry(attempts_max=3, backoff_ms=[1, 1]), **changes})


async def complete(
    server: Server, name: str = "h1-16k", wire: Wire | None = None, deadline_ms: int = 5_000, messages=ASKED, tools=(QUOTE,), address=None, **changes
) -> Reply:
    """Complete one step against a server."""
    held, clock = manifest(name, **changes), SystemClock()
    door = http_door(held, address or server.address, clock)
    try:
        endpoint = endpoint_of(held, "m-1", door)
        return await endpoint.complete(messages, tools, StepLimits(4_096, deadline_ms), wire or Wire())
    finally:
        await door.close()
