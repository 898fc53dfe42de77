"""The layout: prose and columns fitted to the width of a terminal or a page, broken at words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

TEXT_WIDTH, TEXT_WIDTH_MIN, TEXT_WIDTH_MAX = 80, 40, 120
"""Columns of a page that nobody chose a width for; the fewest that anything is laid out for; the most that prose takes."""
TEXT_WIDTH_ANY = 10_000
"""Nothing is broken."""
WORDS_CHARS_MIN = 12
"""Narrowest column of words in a table that must fit a width."""


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break prose at words so that it fits a width; a word that is longer stays whole. Lines after a break are indented."""
    return [
        line
        for paragraph in text.split("\n")
        for line in textwrap.wrap(paragraph, max(width, WORDS_CHARS_MIN), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
    ]


def labelled(label: str, text: str, label_chars: int, width: int, hanging: str = "") -> list[str]:
    """Put a label before a text, which is broken at words and stays in its own column; `hanging` begins what goes on."""
    indent = " " * (label_chars + 2)
    first, *rest = wrapped(text, width - len(indent), hanging)
    return [f"{label:{label_chars}}  {first}".rstrip(), *(f"{indent}{line}" for line in rest)]


def fitted(widths: list[int], right: Sequence[bool], width: int) -> list[int]:
    """Narrow the widest column of words until the whole fits, or until words would be cut to pieces."""
    narrowed = list(widths)
    while sum(narrowed) + 2 * (len(narrowed) - 1) > width:
        words = [place for place, to_right in enumerate(right) if not to_right and narrowed[place] > WORDS_CHARS_MIN]
        if not words:
            return narrowed
        narrowed[max(words, key=lambda place: narrowed[place])] -= 1
    return narrowed


def row_text(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Lay out one row; cells that are too long go on below."""
    columns = [[cell] if len(cell) <= width else textwrap.wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for place in range(max(len(column) for column in columns)):
        parts = [column[place] if place < len(column) else "" for column in columns]
        padded = [part.rjust(width) if to_right else part.ljust(width) for part, width, to_right in zip(parts, widths, right, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
