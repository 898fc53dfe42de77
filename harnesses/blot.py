"""Blot: secrets taken out of what comes back, in every form in which servers and models give them back.

    as it is, or a beginning of eight characters or more     keys alone; other secrets begin like words too often
    in escapes of JSON, Python, addresses or HTML            also of several of them inside one another
    in base64, plain or safe for addresses                   also inside of something longer, at any of its three places
    in pieces                                                of texts under one name, one after another, as in streams

One mechanism: bytes are looked at as they are and with their escapes undone, layer by layer, and texts of one name also
joined; what is found in any of these views is blotted where it came from. Everything is linear in the length of the
bytes.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

BLOT = b"[secret]"
SECRET_LENGTH_MIN = 8
"""Shorter secrets are words like `none`, which a text may well hold."""
BEGINNING_LENGTH_MIN = 8
"""How much of a key gives it away."""
TAIL_LENGTH_MIN = 6
"""How much of a secret at the very end of cut-off bytes is taken for its beginning."""
LAYERS_MAX = 4
"""How many escapes inside one another are undone."""
NAME_LENGTH_MAX = 60

_ESCAPE = re.compile(
    rb"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|x([2-7][0-9a-fA-F])|(/))"
    rb"|%([2-9a-fA-F][0-9a-fA-F])"
    rb"|&#(?:[xX]0{0,6}([2-7][0-9a-fA-F])|0{0,6}(3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-7])(?![0-9]));?"
    rb"|&(amp|lt|gt|quot|apos|sol|colon|equals|plus|lowbar|period|hyphen|dash);"
)
"""An escape of one printable character; what escapes a backslash or a quote inside a text stays."""
_NAMED = {
    b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'", b"sol": b"/", b"colon": b":", b"equals": b"=",
    b"plus": b"+",
    b"lowbar": b"_", b"period": b".", b"hyphen": b"-", b"dash": b"-",
}  # fmt: skip
_NAMED_TEXT = re.compile(rb'"([^"\\\x00-\x1f]{1,%d})"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"' % NAME_LENGTH_MAX, re.DOTALL)
"""A text of a JSON object, with its name."""

Span = tuple[int, int]
Placing = Callable[[int], int]


class Blotter:
    """Takes some secrets out of bytes and texts."""

    def __init__(self, keys: Iterable[str], others: Iterable[str] = ()) -> None:
        """`keys` are also told by their beginnings, `others` as a whole alone."""
        patterns = [pattern for key in keys for pattern in _patterns(key, BEGINNING_LENGTH_MIN)]
        patterns += [pattern for other in others for pattern in _patterns(other, len(other))]
        self._patterns = tuple(dict.fromkeys(patterns))

    def blotted(self, data: bytes) -> bytes:
        """Bytes without any secret, also without one that is cut off at their end."""
        return self._without(data, self._spans(data, tail=True))

    def _without(self, data: bytes, spans: Iterable[tuple[int, int, int]]) -> bytes:
        """Bytes without some spans; the same bytes where there are none."""
        kept, end = [], 0
        for begin, stop, part in spans:
            kept += [data[end:begin], BLOT if part == 0 else b""]
            end = stop
        return b"".join((*kept, data[end:])) if kept else data

    def blotted_text(self, text: str) -> str:
        """A text without any secret."""
        data = text.encode("utf-8", "surrogatepass")
        blotted = self._without(data, self._spans(data, tail=False))
        return text if blotted is data else blotted.decode("utf-8", "surrogatepass")

    def finds(self, text: str) -> bool:
        """Whether a text holds a secret."""
        return bool(self._spans(text.encode("utf-8", "surrogatepass"), tail=False))

    def _spans(self, data: bytes, *, tail: bool) -> list[tuple[int, int, int]]:
        """Where secrets stand. Shapes: begin, end and which part of it in order, first things first."""
        if not self._patterns:
            return []
        found = [(begin, end, 0) for begin, end in self._seen(data, tail=tail)]
        for text, places in _joined_texts(data):
            for begin, end in self._seen(text, tail=False):
                found += places(begin, end)
        return _merged(found)

    def _seen(self, data: bytes, *, tail: bool) -> Iterator[Span]:
        """Where secrets stand in any view of some bytes."""
        placings: list[Placing] = []
        view = data
        for _ in range(LAYERS_MAX + 1):
            for begin, end in self._in_view(view, tail):
                for placing in reversed(placings):
                    begin, end = placing(begin), placing(end)
                yield begin, end
            undone, placing = _undone(view)
            if placing is None:
                return
            view = undone
            placings.append(placing)

    def _in_view(self, view: bytes, tail: bool) -> Iterator[Span]:
        for pattern, least in self._patterns:
            begin = view.find(pattern[:least])
            while begin >= 0:
                end = begin + least
                while end < len(view) and end - begin < len(pattern) and view[end] == pattern[end - begin]:
                    end += 1
                yield begin, end
                begin = view.find(pattern[:least], begin + 1)
            for length in range(min(len(pattern) - 1, len(view)), TAIL_LENGTH_MIN - 1, -1) if tail else ():
                if view.endswith(pattern[:length]):
                    yield len(view) - length, len(view)
                    break


@lru_cache(maxsize=256)
def blotter_of(keys: tuple[str, ...], others: tuple[str, ...] = ()) -> Blotter:
    """The blotter of some secrets, made once."""
    return Blotter(keys, others)


def _patterns(secret: str, least: int) -> Iterator[tuple[bytes, int]]:
    """What a secret looks like once its escapes are undone, and how much of each gives it away."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(secret) < SECRET_LENGTH_MIN:
        return
    for form in dict.fromkeys((data, json.dumps(secret)[1:-1].encode())):
        yield form, min(least, len(form))
    for shift, skipped in ((0, 0), (1, 2), (2, 3)):
        told = min(least, len(data))
        for coded in (base64.b64encode(bytes(shift) + data), base64.urlsafe_b64encode(bytes(shift) + data)):
            yield coded[skipped : (shift + len(data)) * 8 // 6], (shift + told) * 8 // 6 - skipped


def _undone(view: bytes) -> tuple[bytes, Placing | None]:
    """Bytes with one layer of escapes undone, and how their places are placed before that; none where there are no
    escapes."""
    parts: list[bytes] = []
    places: list[int] = []
    shifts = [0]
    end = 0
    for escape in _ESCAPE.finditer(view):
        places.append(escape.start() - shifts[-1])
        shifts.append(shifts[-1] + escape.end() - escape.start() - 1)
        parts += (view[end : escape.start()], _meant(escape))
        end = escape.end()
    if not places:
        return view, None
    return b"".join((*parts, view[end:])), lambda place: place + shifts[bisect_left(places, place)]


def _meant(escape: re.Match[bytes]) -> bytes:
    group = escape.lastindex
    said = escape[group or 0]
    match group:
        case 3:
            return said
        case 6:
            return bytes((int(said),))
        case 7:
            return _NAMED[said]
    return bytes((int(said, 16),))


def _joined_texts(data: bytes) -> Iterator[tuple[bytes, Callable[[int, int], list[tuple[int, int, int]]]]]:
    """Texts that stand under one name in several places, joined, and how a span of them is placed in the bytes."""
    texts: dict[bytes, list[re.Match[bytes]]] = {}
    for text in _NAMED_TEXT.finditer(data):
        texts.setdefault(text[1], []).append(text)
    for pieces in texts.values():
        if len(pieces) > 1:
            yield b"".join(piece[2] for piece in pieces), _placing(pieces)


def _placing(pieces: list[re.Match[bytes]]) -> Callable[[int, int], list[tuple[int, int, int]]]:
    begins = [0]
    for piece in pieces:
        begins.append(begins[-1] + piece.end(2) - piece.start(2))

    def placed(begin: int, end: int) -> list[tuple[int, int, int]]:
        spans, place = [], bisect_right(begins, begin) - 1
        while begin < end:
            piece, stop = pieces[place], min(end, begins[place + 1])
            if stop > begin:
                shift = piece.start(2) - begins[place]
                spans.append((begin + shift, stop + shift, len(spans)))
            begin, place = stop, place + 1
        return spans

    return placed


def _merged(found: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Spans in order, those that overlap as one."""
    merged: list[tuple[int, int, int]] = []
    for begin, end, part in sorted(found):
        if merged and begin < merged[-1][1]:
            last = merged[-1]
            merged[-1] = last[0], max(last[1], end), min(last[2], part)
        else:
            merged.append((begin, end, part))
    return merged
