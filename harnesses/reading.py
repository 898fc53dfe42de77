"""Reading a provider's answer as it comes, whether it is one JSON object or a stream of events.

Which of the two it is, its first letter says: a server may ignore what it was asked for.
"""

from __future__ import annotations

import itertools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from harnesses.http import TransportFault
from harnesses.message import Reply, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.refusals import doing_of
from harnesses.shallow import read_json
from harnesses.sse import EventReader, ServerEvent
from harnesses.usage import estimated_usage

TRANSIENT_TYPES = frozenset(
    "rate_limit_error overloaded_error api_error timeout_error server_error rate_limit_exceeded "
    "service_unavailable".split()
)
"""Error types, said inside an answer, that another attempt may not meet."""

CALLS_READ_MAX = 128
"""Calls of one answer that are read at all; a harness lets through 64 at most."""

Record = dict[str, Any]


class Came:
    """Bytes of output that came, counted as they come and before anything is left unread.

    Output that is said in several forms (in pieces and then whole, as text and as details) counts once, in its longest
    form."""

    def __init__(self) -> None:
        self._plain = self._before = 0
        self._forms: dict[str, int] = {}

    @property
    def size(self) -> int:
        """All output until now."""
        return max(self._before, self._plain + max((*self._forms.values(),), default=0))

    def add(self, size: int, form: str = "") -> None:
        """Count what came, as one of several forms of the same output where one is named."""
        if form:
            self._forms[form] = self._forms.get(form, 0) + size
        else:
            self._plain += size

    def anew(self) -> None:
        """Begin again: what comes now says over what came before."""
        self._before, self._plain, self._forms = self.size, 0, {}


class AnswerReading(ABC):
    """Reads one answer; each dialect says what its objects and events mean."""

    def __init__(self) -> None:
        self.came = Came()
        self._begin: bytes | None = b""
        """Bytes before it is known which of the two the answer is; none after."""
        self._whole: bytearray | None = None
        self._events = EventReader()
        self._events_read = 0

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; True when nothing more is needed. Raises: ProviderFault."""
        if self._begin is not None:
            self._begin += chunk
            if not (begun := self._begin.removeprefix(b"\xef\xbb\xbf").lstrip()):
                return False
            chunk, self._begin = self._begin, None
            if begun[:1] in (b"{", b"[", b'"', b"<"):
                self._whole, chunk = bytearray(), begun
        if self._whole is not None:
            self._whole += chunk
            return False
        return any([self._taken(event) for event in self._events.feed(chunk)])

    @property
    def held(self) -> int:
        """How many bytes wait to be read with those that come next."""
        return self._events.held

    def end(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off, ProviderFault when it makes no sense."""
        if self._whole is not None:
            self.take_whole(read_record(bytes(self._whole)))
            return self.reply()
        for event in self._events.end():
            self._taken(event)
        if not self._events_read:
            raise TransportFault("cut_off", "the provider ended its answer before it began")
        return self.reply()

    def lost(self) -> Reply:
        """Say what was read although the connection broke: an answer whose own end had come is whole."""
        return self.end()

    def broken(self, request: bytes) -> Usage:
        """What an exchange cost that broke after it was sent: as reported until then, at least what came of the
        answer."""
        usage, answered, reasoned = self.so_far()
        least = estimated_usage(request, answered, reasoned, self.came.size)
        if usage is None:
            return replace(least, flags=tuple(sorted({*least.flags, "broken"})))
        output = max(usage.output_tokens, least.output_tokens)
        return replace(usage, output_tokens=output, flags=tuple(sorted({*usage.flags, "broken"})))

    def so_far(self) -> tuple[Usage | None, str, str]:
        """The counts, the text and the shown reasoning of an answer that is not whole; a thread may still be reading
        it."""
        return None, "", ""

    def _taken(self, event: ServerEvent) -> bool:
        self._events_read += 1
        return self.take(event)

    @abstractmethod
    def take(self, event: ServerEvent) -> bool:
        """Take one event of a stream; True when it is the last that matters."""

    @abstractmethod
    def take_whole(self, said: Record) -> None:
        """Take an answer that came as one object."""

    @abstractmethod
    def reply(self) -> Reply:
        """Say what was read."""


def read_record(data: bytes | str) -> Record:
    """Read a JSON object.

    Raises: TransportFault when it ends before it should, ProviderFault when it is none."""
    if data.lstrip()[:1] not in (b"{", "{"):
        raise ProviderFault("the provider's answer is not a JSON object")
    try:
        said = read_json(data)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and _ends_early(error):
            raise TransportFault("cut_off", "the provider's answer ends inside itself") from None
        raise ProviderFault("the provider's answer is not JSON") from None
    return said


def _ends_early(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip())


def refuse_error(said: Record) -> None:
    """Raise what an answer says went wrong. Raises: TransportFault, ProviderFault; ModelFault, LimitSpent where it is
    the model's doing."""
    error = said.get("error") or (said if said.get("object") == "error" else None)
    if not error:
        return
    record = error if isinstance(error, dict) else {"message": str(error)}
    kind, code = (str(record.get(name) or "")[:1_000] for name in ("type", "code"))
    message = str(record.get("message") or kind or "error")[:1_000]
    if doing := doing_of(f"{kind} {code} {message}", f"error {code or kind}: {message}"):
        raise doing
    number = int(code) if re.fullmatch(r"[0-9]{3}", code) else 0
    if number in (408, 429) or number >= 500 or TRANSIENT_TYPES & {kind, code}:
        raise TransportFault(f"error {code or kind}", message)
    raise ProviderFault(f"error {code or kind}: {message}")


def text_of(value: object) -> str:
    """A text field that may be absent, null, or a list of parts with text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(text_of(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def arguments_of(value: object) -> str:
    """Arguments as JSON text, whether they came as text or as an object."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def with_first_calls(items: Iterable[Record], kind: str, count: int) -> list[Record]:
    """Items of an answer with no more calls, which are those of type `kind`, than were read: each that goes back has
    its answer."""
    left = itertools.count(count, -1)
    return [item for item in items if item.get("type") != kind or next(left) > 0]


def bounded_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The first calls of an answer: more than any limit takes are not even read, so that none of them costs anybody
    time."""
    return tuple(itertools.islice(calls, CALLS_READ_MAX))
