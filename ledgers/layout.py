"""The layout: prose and columns fitted to the width of a terminal or a page, broken at words.

A word is broken only where it is joined (`_`, `:`, `/`), and only where it would not fit; an address or an id never is. A table stays a
table: columns that cannot stand side by side go below their rows, the widest first, the first two never; only where not even
those fit is it told row by row, each cell behind its heading.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

TEXT_WIDTH, TEXT_WIDTH_MIN, TEXT_WIDTH_MAX = 80, 40, 120
"""Columns of a page that nobody chose a width for; the fewest that anything is laid out for; the most that prose takes."""
TEXT_WIDTH_ANY = 10_000
"""Nothing is broken."""
WORDS_CHARS_MIN = 12
"""Narrowest column of words in a table that must fit a width."""
JOINT = re.compile(r"(?<=[_:/])(?=[^\d_:/])")
"""Where a word that is too long may be broken."""
COLUMNS_KEPT = 2
"""Columns that stay beside each other for as long as anything does: who, and what it came to."""
BELOW = "  "
"""Indent of what stands on a line of its own below its row."""


class _Breaker(textwrap.TextWrapper):
    """Breaks at blanks, and a word that is longer than a line at its joints."""

    def _split_chunks(self, text: str) -> list[str]:
        room = self.width - len(self.subsequent_indent)
        return [part for chunk in super()._split_chunks(text) for part in (JOINT.split(chunk) if len(chunk) > room else [chunk])]


def _broken(text: str, width: int, indent: str = "") -> list[str]:
    return _Breaker(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False).wrap(text)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break prose at words so that it fits a width; a word without joints stays whole. Lines after a break are indented."""
    return [line for paragraph in text.split("\n") for line in _broken(paragraph, max(width, WORDS_CHARS_MIN), indent) or [""]]


def labelled(label: str, text: str, label_chars: int, width: int, hanging: str = "") -> list[str]:
    """Put a label before a text, which is broken at words and stays in its own column; `hanging` begins what goes on."""
    indent = " " * (label_chars + 2)
    first, *rest = wrapped(text, width - len(indent), hanging)
    return [f"{label:{label_chars}}  {first}".rstrip(), *(f"{indent}{line}" for line in rest)]


def columns_text(headings: Sequence[str], grid: Sequence[Sequence[str]], right: Sequence[bool], below: Sequence[bool], width: int) -> list[str]:
    """Lay rows out in columns; what is `below`, or does not fit beside the others, stands whole on a line below its row.

    Shapes: one heading, one `right` (numbers) and one `below` a column."""
    below = _with_too_wide(headings, grid, right, below, width)
    beside = [place for place, under in enumerate(below) if not under]
    names, cells = [headings[place] for place in beside], [[row[place] for place in beside] for row in grid]
    widths = fitted(list(zip(names, *cells, strict=True)), [right[place] for place in beside], width)
    if widths is None:
        return _stacked(headings, grid, width)
    rows = [row_text(row, widths, [right[place] for place in beside]) for row in (names, ["─" * chars for chars in widths], *cells)]
    under = [[f"{BELOW}{headings[place]} {row[place]}" for place in range(len(row)) if below[place] and row[place]] for row in grid]
    return [*rows[:2], *("\n".join([row, *(line for text in lines for line in wrapped(text, width, BELOW * 2))]) for row, lines in zip(rows[2:], under, strict=True))]


def _with_too_wide(headings: Sequence[str], grid: Sequence[Sequence[str]], right: Sequence[bool], below: Sequence[bool], width: int) -> list[bool]:
    """What goes below the rows: as asked, and then the widest columns until the others fit; the first two stay."""
    under = list(below)
    columns = list(zip(headings, *grid, strict=True))
    while True:
        beside = [place for place, down in enumerate(under) if not down]
        movable = beside[COLUMNS_KEPT:]
        if not movable or fitted([columns[place] for place in beside], [right[place] for place in beside], width) is not None:
            return under
        least = {place: _least(columns[place], right[place], max(map(len, columns[place]))) for place in movable}
        under[max(movable, key=lambda place: (least[place], place))] = True


def _stacked(headings: Sequence[str], grid: Sequence[Sequence[str]], width: int) -> list[str]:
    chars = max(len(heading) for heading in headings)
    rows = [[line for heading, cell in zip(headings, row, strict=True) if cell for line in labelled(heading, cell, chars, width)] for row in grid]
    return ["\n".join([*(["─" * min(width, chars + 2)] if place else []), *lines]) for place, lines in enumerate(rows)]


def fitted(columns: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> list[int] | None:
    """Narrow the widest columns of words until the whole fits; None when words would have to be cut to pieces.

    Shapes: a column is its heading and then its cells; a heading may be broken above numbers too."""
    chars = [max(map(len, column)) for column in columns]
    least = [_least(column, to_right, most) for column, to_right, most in zip(columns, right, chars, strict=True)]
    while sum(chars) + 2 * (len(chars) - 1) > width:
        places = [place for place, most in enumerate(chars) if most > least[place]]
        if not places:
            return None
        chars[max(places, key=lambda place: chars[place])] -= 1
    return chars


def _least(column: Sequence[str], to_right: bool, chars: int) -> int:
    heading, *cells = column
    words = [part for text in ([heading] if to_right else column) for word in text.split() for part in JOINT.split(word)]
    longest = max(map(len, [*words, *(cells if to_right else [])]), default=0)
    return max(longest, 1) if to_right else max(longest, min(WORDS_CHARS_MIN, chars))


def row_text(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Lay out one row; cells that are too long go on below."""
    columns = [[cell] if len(cell) <= width else _broken(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for place in range(max(len(column) for column in columns)):
        parts = [column[place] if place < len(column) else "" for column in columns]
        padded = [part.rjust(width) if to_right else part.ljust(width) for part, width, to_right in zip(parts, widths, right, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
