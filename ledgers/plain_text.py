"""Plain text: outside words made fit to be recorded and shown.

Whatever a token, a node or a stack wrote may hold terminal codes, text that runs backwards, hidden characters or a
megabyte of letters. Plain text holds none of these. It is still untrusted: it says whatever its author wanted.
"""

from __future__ import annotations

import unicodedata

_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories that never pass: controls, formats (bidirectional marks, zero widths, tags), halves, private, unassigned."""

_BLANKS = frozenset({"Zs", "Zl", "Zp"})


def plain_text(text: str, chars_max: int) -> str:
    """Strip what does not print, fold white space to single blanks, cut to `chars_max` characters (… marks a cut)."""
    words = "".join(_plain_character(character) for character in text[: 4 * chars_max + 64]).split(" ")
    plain = " ".join(word for word in words if word)
    cut = len(plain) > chars_max or len(text) > 4 * chars_max + 64
    return plain[: max(chars_max - 1, 0)] + "…" if cut else plain


def _plain_character(character: str) -> str:
    if character in "\t\n\r\v\f\x85":
        return " "
    category = unicodedata.category(character)
    if category in _BLANKS:
        return " "
    return "" if category in _DROPPED or _is_variation_selector(character) else character


def _is_variation_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
