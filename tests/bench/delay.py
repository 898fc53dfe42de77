"""The delay proxy: a real TCP proxy on loopback that holds every byte back for half a round trip in each direction."""

from __future__ import annotations

import asyncio
from typing import Self

CHUNK = 1 << 18


class DelayProxy:
    """Stands between a client and a node on loopback; order of bytes is kept, rate is not limited."""

    def __init__(self, node_port: int, round_trip_ms: int) -> None:
        self._node_port, self._one_way_s = node_port, round_trip_ms / 2_000
        self._pumps: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        node, to_node = await asyncio.open_connection("127.0.0.1", self._node_port)
        for source, sink in ((client, to_node), (node, to_client)):
            pump = asyncio.ensure_future(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(CHUNK):
            loop.call_later(self._one_way_s, sink.write, data)
        loop.call_later(self._one_way_s, sink.close)
