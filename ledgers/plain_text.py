"""Plain text: outside words made fit to be recorded and shown.

Whatever a token, a node or a stack wrote may hold terminal codes, text that runs backwards, hidden characters, piled-up
marks or a megabyte of letters. Plain text is one bounded line without any of these. It is still untrusted: it says
whatever its author wanted, and still means something to HTML, a spreadsheet or a terminal's markup; whoever renders it
escapes for that place.
"""

from __future__ import annotations

import re
import unicodedata

ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)
"""Terminal escape sequences, removed whole so that their letters do not stay behind."""

DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Me"})
"""Categories that never pass: controls, formats (bidirectional marks, zero widths, tags), halves, private, unassigned."""

BLANKS = frozenset({"Zs", "Zl", "Zp"})

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffd") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Letters and marks that show nothing (fillers, variation selectors), and the mark of a failed decoding."""

MARKS_MAX = 2
"""Combining marks kept in a row; more only pile up over the neighbouring lines."""

READ_PER_SHOWN = 16
"""How many characters are looked at for each one that may be shown; the rest of a flood is not read."""


def plain_text(text: str, chars_max: int) -> str:
    """Strip what does not print, fold white space to single blanks, cut to `chars_max` characters (… marks a cut)."""
    read = text[: READ_PER_SHOWN * max(chars_max, 1)]
    printed = "".join(_printed(character) for character in ESCAPE_SEQUENCE.sub("", read))
    line = " ".join(_unpiled(unicodedata.normalize("NFC", printed)).split())
    if len(line) <= chars_max and len(read) == len(text):
        return line
    return line[: max(chars_max - 1, 0)].rstrip() + "…"


def _printed(character: str) -> str:
    category = unicodedata.category(character)
    if category in BLANKS or character in "\t\n\r\v\f\x85":
        return " "
    return "" if category in DROPPED or character in INVISIBLE else character


def _unpiled(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) == "Mn" else 0
        if marks <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)
