"""Server-sent events: a stream of bytes made into events, as it comes.

Source: WHATWG HTML, server-sent events: lines end in CR, LF or both; `data` lines of one event are joined; a line that
begins with a colon is a comment; what is not ended by an empty line was cut off and is no event. Other
than that standard says, bytes that are not UTF-8 are not mended: they stay visible, as halves of character pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event."""

    name: str
    """Empty when the stream does not name it."""
    data: str


class EventReader:
    """Reads events out of chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = ""
        self._data: list[str] = []
        self._data_size = 0
        self._began = False

    @property
    def held(self) -> int:
        """How many bytes came that are no whole event yet."""
        return len(self._rest) + self._data_size

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Take the next bytes; give the events that they complete."""
        self._rest += chunk
        if not self._began and len(self._rest) >= 3:
            self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
            self._began = True
        if b"\n" not in chunk and b"\r" not in chunk:
            return
        *lines, rest = _lines(bytes(self._rest))
        self._rest = bytearray(rest)
        for line in lines:
            if (event := self._line(line)) is not None:
                yield event

    def end(self) -> Iterator[ServerEvent]:
        """Say that the stream ended; gives the last event where only its empty line is missing."""
        for line in (bytes(self._rest).removesuffix(b"\r"), b""):
            if (event := self._line(line)) is not None:
                yield event
        self._rest.clear()

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.decode("utf-8", "surrogateescape").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._data_size += len(value)
        elif field == "event":
            self._name = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._data_size = "", [], 0
        return ServerEvent(name, "\n".join(data)) if data else None


def _lines(text: bytes) -> list[bytes]:
    """Split at CR LF, LF and CR; a CR at the very end may be half of a CR LF and waits."""
    held = b"\r" if text.endswith(b"\r") else b""
    body = text[: len(text) - len(held)]
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    lines[-1] += held
    return lines
