"""The width: how many columns a text is laid out for."""

from __future__ import annotations

import shutil

from ledgers.layout import TEXT_WIDTH, TEXT_WIDTH_MAX, TEXT_WIDTH_MIN


def text_width() -> int:
    """Give the terminal's columns (or those of `COLUMNS`) within what reads well; those of a page without a terminal."""
    return min(max(shutil.get_terminal_size((TEXT_WIDTH, 24)).columns, TEXT_WIDTH_MIN), TEXT_WIDTH_MAX)
