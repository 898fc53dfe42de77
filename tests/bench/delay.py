"""The delay proxy: a real TCP proxy on loopback that holds every byte back for half a round trip in each direction.

Threads, because an event loop's timers are a millisecond coarse and would be counted as the network's.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from typing import Self

CHUNK = 1 << 18
Held = queue.SimpleQueue[tuple[float, bytes]]


class DelayProxy:
    """Stands between a client and a node on loopback; order of bytes is kept, rate is not limited."""

    def __init__(self, node_port: int, round_trip_ms: int) -> None:
        self._node_port, self._one_way_s = node_port, round_trip_ms / 2_000
        self._door = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._door]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._door.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            each.close()

    def _start(self, work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            node = socket.create_connection(("127.0.0.1", self._node_port))
            for source, sink in ((client, node), (node, client)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                held: Held = queue.SimpleQueue()
                self._sockets.append(sink)
                self._start(self._take, source, held)
                self._start(self._give, held, sink)

    def _take(self, source: socket.socket, held: Held) -> None:
        data = b"begun"
        while data:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            held.put((time.perf_counter() + self._one_way_s, data))

    def _give(self, held: Held, sink: socket.socket) -> None:
        while True:
            due, data = held.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            try:
                sink.sendall(data) if data else sink.shutdown(socket.SHUT_WR)
            except OSError:
                return
            if not data:
                return
