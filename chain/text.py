"""Outside text, made harmless: every name, message or version that a node or a token wrote passes here first."""

from __future__ import annotations

from ledgers.plain_text import READ_PER_SHOWN, plain_text


def clean(text: object, length_max: int) -> str:
    """Bound and strip text of outside origin; bytes are read as UTF-8, anything else that is not text becomes empty."""
    if isinstance(text, bytes | bytearray):
        text = bytes(text[: READ_PER_SHOWN * length_max]).decode("utf-8", "ignore")
    return plain_text(text, length_max) if isinstance(text, str) else ""
