"""Lines: kept connections to a node nearby, for the one shape of answer that a local node gives.

A local node answers an order in hardly more time than a general HTTP client takes to ask it. A line asks over plain http and
reads HTTP/1.1 answers of a stated length; it knows no redirects, codings, chunks or TLS. A node that answers in any other
shape is left to the general client from then on. A kept line that the node closed meanwhile is replaced once: everything
asked is a read.
Source: RFC 9112; what it saves: ops/decisions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"
HEAD_BYTES_MAX = 65_536
LINE_START = b"HTTP/1.1 "
UNUSUAL = (b"transfer-encoding:", b"content-encoding:", b"connection: close")
LENGTH = b"\r\ncontent-length:"
RETRY_AFTER = b"\r\nretry-after:"


class LineBroken(Exception):
    """The node hung up within an answer, or on a new line before it."""


class LineUnusual(Exception):
    """The node answered in a shape that lines do not read."""


class LineStale(Exception):
    """The node hung up on a kept line before it answered anything."""


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """What came back; the body is empty unless the status is 200."""

    status: int
    body: bytes
    retry_after: str = ""
    """What the header of that name says, where the status is not 200."""


class Lines:
    """The lines to one address."""

    def __init__(self, url: str, headers: dict[str, str], *, lines_max: int, body_bytes_max: int) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._body_bytes_max = parts.hostname, parts.port or 80, body_bytes_max
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        said = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **headers}.items())
        self._head = f"POST {target} HTTP/1.1\r\n{said}Content-Length: ".encode()
        self._free: list[_Line] = []
        self._room = asyncio.Semaphore(lines_max)
        self._unusual = False

    @staticmethod
    def reach(url: str) -> bool:
        """Whether lines can be used for an address at all."""
        return url.startswith("http://") and url.isascii() and "@" not in url

    async def post(self, body: bytes) -> LineAnswer:
        """Ask one thing. Raises: LineBroken, OSError; LineUnusual, from then on at once. A question given up ends its line."""
        if self._unusual:
            raise LineUnusual
        question = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        async with self._room:
            while self._free:
                try:
                    return await self._on(self._free.pop(), question)
                except LineStale:
                    continue
            return await self._on(await _Line.to(self._host, self._port, self._body_bytes_max), question)

    async def _on(self, line: _Line, question: bytes) -> LineAnswer:
        try:
            answer = await line.ask(question)
        except BaseException as error:
            self._unusual |= isinstance(error, LineUnusual)
            line.end()
            raise
        if not line.ended:
            self._free.append(line)
        return answer

    def close(self) -> None:
        """End the lines that are not in use."""
        while self._free:
            self._free.pop().end()


class _Line(asyncio.Protocol):
    """One connection, which carries one question at a time."""

    def __init__(self, body_bytes_max: int) -> None:
        self.ended, self._asked, self._body_bytes_max = False, 0, body_bytes_max
        self._came, self._body_at, self._whole = bytearray(), 0, 0
        self._waiting: asyncio.Future[LineAnswer] | None = None

    @classmethod
    async def to(cls, host: str | None, port: int, body_bytes_max: int) -> Self:
        _, line = await asyncio.get_running_loop().create_connection(lambda: cls(body_bytes_max), host, port, happy_eyeballs_delay=0.25)
        return line

    async def ask(self, question: bytes) -> LineAnswer:
        if self.ended:
            raise LineStale if self._asked else LineBroken("hung up at once")
        self._asked += 1
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(question)
        return await self._waiting

    def end(self) -> None:
        self.ended = True
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = True
        self._fail(LineStale() if self._asked > 1 and not self._came else LineBroken("hung up"))

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            return self.end()
        self._came += data
        try:
            status = 0 if self._whole else self._read_head()
        except (LineUnusual, LineBroken) as unusual:
            return self._fail(unusual)
        if status:
            _, _, after = bytes(self._came).lower().partition(RETRY_AFTER)
            self._finish(LineAnswer(status, b"", after.split(b"\r\n")[0].decode("ascii", "replace").strip()))
            self.end()
        elif self._whole and len(self._came) >= self._whole:
            self._take_body()

    def _read_head(self) -> int:
        """Learn where the body ends; a status other than 200 is an answer by itself. Raises: LineUnusual, LineBroken."""
        end = self._came.find(HEAD_END)
        if end < 0:
            if len(self._came) > HEAD_BYTES_MAX:
                raise LineBroken("a head without end")
            return 0
        head = bytes(self._came[:end]).lower()
        status, (_, *lengths) = head[len(LINE_START) :][:3], head.split(LENGTH)
        if not self._came.startswith(LINE_START) or not status.isdigit() or any(word in head for word in UNUSUAL):
            raise LineUnusual
        if status != b"200":
            return int(status)
        length = lengths[0].split(b"\r\n")[0].strip() if len(lengths) == 1 else b""
        if not length.isdigit() or len(length) > 15 or int(length) > self._body_bytes_max:
            raise LineUnusual
        self._body_at, self._whole = end + len(HEAD_END), end + len(HEAD_END) + int(length)
        return 0

    def _take_body(self) -> None:
        body, over = bytes(memoryview(self._came)[self._body_at : self._whole]), len(self._came) > self._whole
        self._came, self._whole = bytearray(), 0
        self._finish(LineAnswer(200, body))
        if over:
            self.end()

    def _finish(self, answer: LineAnswer) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        self.end()
