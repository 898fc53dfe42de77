"""Shallow: how deep JSON may nest, told before anything walks down into it. One way of counting at every door.

A level is one object or list: `7` has none, `{}` has one, `{"a":[]}` has two. Nothing here descends, so that no depth
is too deep to be told, and what comes out never depends on how much stack is left.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

LEVELS_READ_MAX = 64
"""Levels of a text that are read at all: more than any message needs to hold the deepest arguments that are carried
out."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
"""A whole string, or a bracket, or the quote of a string that does not end here."""
_INSIDE = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_DIGITS_MAX = 640
"""An integer with more digits is beyond every count and amount. Python reads so many whatever its settings are, and may
refuse more."""
_BEYOND = float("inf")


class Nesting:
    """How deep brackets nest outside strings, in a text that comes in pieces."""

    def __init__(self) -> None:
        self.depth = self.deepest = 0
        """`depth` is what is open now; closing brackets too many make it negative."""
        self.in_string = False
        self._escaped = False

    @property
    def open(self) -> bool:
        """Whether a string or a bracket is still open."""
        return self.in_string or self.depth > 0

    @property
    def closed(self) -> bool:
        """Whether there was a bracket, and all are closed again."""
        return bool(self.deepest) and not self.open

    def feed(self, text: str) -> Nesting:
        """Take the next piece."""
        for _ in self.brackets(text):
            pass
        return self

    def brackets(self, text: str) -> Iterator[int]:
        """Take the next piece bracket by bracket. Shapes: the place of each, once it is counted."""
        begin = self._rest_of_string(text) if self.in_string else 0
        for token in _TOKEN.finditer(text, begin):
            match token[0]:
                case "{" | "[":
                    self.depth += 1
                    self.deepest = max(self.deepest, self.depth)
                    yield token.start()
                case "}" | "]":
                    self.depth -= 1
                    yield token.start()
                case '"':
                    self.in_string = True
                    self._rest_of_string(text, token.end())
                    return

    def _rest_of_string(self, text: str, begin: int = 0) -> int:
        """Pass over what a string that is open still holds; where the text goes on behind it."""
        if not text:
            return 0
        begin += self._escaped
        end = _INSIDE.match(text, begin).end()  # type: ignore[union-attr]
        self._escaped = text[end : end + 1] == "\\"  # the half of an escape that its next piece ends
        self.in_string = text[end : end + 1] != '"'
        return len(text) if self.in_string else end + 1


def shallow(value: object, levels: int) -> bool:
    """Whether a value has at most so many levels."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [part for part in inside if isinstance(part, (dict, list))]
        if not inside:
            return True
        inside = list(
            itertools.chain.from_iterable(part.values() if isinstance(part, dict) else part for part in inside)
        )
    return False


def text_shallow(text: str, levels: int) -> bool:
    """Whether a JSON text has at most so many levels; told without reading it."""
    if text.count("{") + text.count("[") <= levels:
        return True
    nesting = Nesting()
    return all(nesting.depth <= levels for _ in nesting.brackets(text))


def cut_down(text: str, levels: int = LEVELS_READ_MAX) -> str:
    """A JSON text of at most so many levels: null stands for each object or list that lies deeper.

    One that is nested too deep stays as deep as the bound, so that whoever allows less still sees it."""
    if text_shallow(text, levels):
        return text
    nesting, kept, begin = Nesting(), [], 0
    for place in nesting.brackets(text):
        if nesting.depth == levels + 1 and begin is not None and text[place] in "{[":
            kept.append(text[begin:place])
            begin = None
        elif nesting.depth == levels and begin is None:
            kept.append("null")
            begin = place + 1
    return "".join(kept) + ("" if begin is None else text[begin:])


def beyond_reading(digits: str) -> bool:
    """Whether an integer has more digits than are ever read."""
    return len(digits) > _DIGITS_MAX


def read_json(text: str | bytes, **hooks: Callable[..., Any]) -> Any:
    """Read JSON of any depth and with integers of any length. Raises: ValueError.

    What lies too deep is null, an integer beyond reading is infinite: neither passes for what it was, at no door."""
    said = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
    return json.loads(cut_down(said), parse_int=_integer, **hooks)


def _integer(digits: str) -> int | float:
    return _BEYOND if beyond_reading(digits) else int(digits)
