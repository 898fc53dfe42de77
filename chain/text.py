"""Outside text, made harmless: every name, message or version that somebody else wrote passes here first.

What comes out is valid Unicode on one line, at most `length_max` characters, without control, escape, bidirectional,
invisible or private-use characters. It may still say anything and still mean something to HTML, a spreadsheet or a
terminal's markup: whoever renders it escapes for that place.
"""

from __future__ import annotations

import re
import unicodedata

ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)|\x9b[0-?]*[ -/]*[@-~]")
"""Terminal escape sequences, removed whole so that their letters do not stay behind."""

DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Me"})
SPACE_CATEGORIES = frozenset({"Zs", "Zl", "Zp"})
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffd") | {chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
"""Letters and marks that show nothing (fillers, variation selectors), and the mark of a failed decoding."""

MARKS_MAX = 2
"""Combining marks kept in a row; more only pile up over the neighbouring lines."""


def clean(text: object, length_max: int) -> str:
    """Bound and strip text of outside origin; bytes are read as UTF-8, anything else that is not text becomes empty."""
    if isinstance(text, bytes | bytearray):
        text = bytes(text[: 16 * length_max]).decode("utf-8", "ignore")
    if not isinstance(text, str):
        return ""
    shown = unicodedata.normalize("NFC", ESCAPE_SEQUENCE.sub("", text[: 16 * length_max]))
    return _bounded(" ".join(_visible(shown).split()), length_max)


def _visible(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category == "Mn" else 0
        if category in SPACE_CATEGORIES or character in "\t\n\r\v\f\x85":
            kept.append(" ")
        elif category not in DROPPED_CATEGORIES and character not in INVISIBLE and marks <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)


def _bounded(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else text[: max(length_max - 1, 0)].rstrip() + "…"
