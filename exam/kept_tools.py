"""The kept tools: a sheet's toolbox, which answers from what was captured and asks nobody.

A question that was asked when the sheet was captured is answered with the same bytes. A quote of another size is
answered from the captured sizes around it. What was never asked is said to be not captured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exam.sheets import Sheet, ToolRecord, asked_key
from harnesses.tools import ToolAnswer, ToolSpec
from ledgers.identity import canonical_bytes

NOT_CAPTURED = "not_captured"
QUOTE, QUOTES_SPENT = "quote", "quotes_spent"

Between = Callable[[Mapping[str, Any], Sequence[ToolRecord]], ToolAnswer | None]
"""Answers a quote of a size that was not captured, from the quotes that were; none when it cannot."""


class KeptTools:
    """A sheet's tools, under a harness's quote allowance."""

    def __init__(self, sheet: Sheet, specs: Sequence[ToolSpec], quotes_max: int, between: Between = lambda _arguments, _quotes: None) -> None:
        self.specs = tuple(specs)
        self._by_key = {record.key: record for record in sheet.answers}
        self._quotes = [record for record in sheet.answers if record.name == QUOTE and record.ok]
        self._quotes_left = quotes_max
        self._between = between

    async def use(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Use one tool; arguments that do not fit are answered, never raised."""
        if name == QUOTE:
            if self._quotes_left < 1:
                return _refused(QUOTES_SPENT)
            self._quotes_left -= 1
        kept = self._by_key.get(asked_key(name, arguments))
        if kept is not None:
            return ToolAnswer(canonical_bytes(kept.answer), kept.ok, kept.reason)
        return (self._between(arguments, self._quotes) if name == QUOTE else None) or _refused(NOT_CAPTURED)


def _refused(reason: str) -> ToolAnswer:
    return ToolAnswer(canonical_bytes({"error": reason}), False, reason)
