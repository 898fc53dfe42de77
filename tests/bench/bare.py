"""The bare client: the same request bytes over raw sockets, answers read to their end and thrown away.

One thread, one kept HTTP/1.1 connection a lane of work, no decoding: what is left is the node's own time and the kernel's.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Sequence

HEAD_END = b"\r\n\r\n"
CHUNK = 1 << 20

Work = Sequence[bytes]
"""The request bodies of one order, asked one after another."""


class Bare:
    """A few raw connections to a node on loopback."""

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self._lines = [_Line(port) for _ in range(connections)]

    def play(self, works: Sequence[Work]) -> list[float]:
        """Do every piece of work, as many at once as there are connections; seconds that each took."""
        todo, seconds = iter([_framed(work, self._port) for work in works]), []
        with selectors.DefaultSelector() as selector:
            for line in self._lines:
                if line.begin(todo):
                    selector.register(line.socket, selectors.EVENT_READ, line)
            while selector.get_map():
                for key, _ in selector.select():
                    line = key.data
                    if line.read():
                        seconds.append(time.perf_counter() - line.begun)
                        if not line.begin(todo):
                            selector.unregister(line.socket)
        return seconds

    def close(self) -> None:
        for line in self._lines:
            line.socket.close()


class _Line:
    """One connection, busy with one piece of work."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.begun = 0.0
        self._left: list[bytes] = []
        self._read = bytearray()
        self._wanted = 0

    def begin(self, todo: Iterator[list[bytes]]) -> bool:
        """Take the next piece of work; False when none is left."""
        work = next(todo, None)
        if work is None:
            return False
        self.begun = time.perf_counter()
        self._left = work[::-1]
        self._ask()
        return True

    def _ask(self) -> None:
        self._read.clear()
        self._wanted = 0
        self.socket.sendall(self._left.pop())

    def read(self) -> bool:
        """Take what came; True when the last answer of this work is whole."""
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionError("the node hung up on the bare client")
        self._read += data
        self._wanted = self._wanted or _answer_size(self._read)
        if not self._wanted or len(self._read) < self._wanted:
            return False
        if not self._left:
            return True
        self._ask()
        return False


def _framed(work: Work, port: int) -> list[bytes]:
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: "
    return [f"{head}{len(body)}\r\n\r\n".encode() + body for body in work]


def _answer_size(read: bytearray) -> int:
    """Bytes of the whole answer, head included; 0 while its head is not whole."""
    end = read.find(HEAD_END)
    if end < 0:
        return 0
    head = bytes(read[:end]).lower()
    assert head.startswith(b"http/1.1 200") and b"content-length:" in head, head[:200]
    return end + len(HEAD_END) + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
