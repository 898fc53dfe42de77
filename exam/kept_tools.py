"""The kept tools: a sheet's toolbox, which answers from what was captured and asks nobody.

Arguments are read as on a live turn, and quotes are spent as there. What was asked when the sheet was captured is
answered with the same facts: of a list as many rows as are asked for, of pools those that are. A quote of a size that
was not captured is answered between the captured sizes around it, rounded against the stack, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from exam.sheets import Sheet, ToolRecord, asked_key
from harnesses.tools import ToolAnswer, ToolSpec
from ledgers.identity import canonical_bytes
from ledgers.money import mul_div_floor
from referee.onchain import tool_answers, toolbox
from referee.onchain.toolbox import Asked, PoolsAsked, QuoteAsked, ToolRefused

LISTS = {
    "pools": (50, toolbox.POOLS_USUAL), "candles": (120, toolbox.CANDLES_USUAL),
    "swaps": (50, toolbox.SWAPS_USUAL), "history": (50, toolbox.HISTORY_USUAL),
}  # fmt: skip
"""Tools that answer with a list of their own name: how many rows are captured, and how many are shown when none are named."""
DEFAULTS = {"pools": {"sort": "liquidity"}, "candles": {"span": "1m"}}
BETWEEN = ("arrival_raw", "arrival_wei", "quoted_raw")
NOT_CAPTURED = "not_captured"


class KeptTools:
    """A sheet's tools, under a harness's quote allowance."""

    def __init__(self, sheet: Sheet, specs: Sequence[ToolSpec], quotes_max: int) -> None:
        self.specs = tuple(specs)
        self.quotes_left = quotes_max
        self._sheet = sheet
        self._by_key = {record.key: record for record in sheet.answers}

    async def use(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Use one tool; arguments that do not fit are answered, never raised."""
        try:
            return self._used(name, toolbox.read_arguments(name, arguments))
        except ToolRefused as refused:
            return toolbox.refused(refused.reason, refused.detail)

    def _used(self, name: str, asked: Asked) -> ToolAnswer:
        if name == "book":
            return tool_answers.book_answer(json.loads(self._sheet.book))
        if name == "plan":
            return tool_answers.plan_answer(None)
        if isinstance(asked, QuoteAsked):
            return self._quote(asked)
        if isinstance(asked, PoolsAsked) and (asked.token or asked.search):
            return self._some_pools(asked)
        return _cut(name, self._kept(name, captured_as(name, asked)), asked)

    def _kept(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        kept = self._by_key.get(asked_key(name, arguments))
        if kept is None:
            return ToolAnswer(canonical_bytes({"error": NOT_CAPTURED, "detail": "nobody asked this when the turn was captured"}), False, NOT_CAPTURED)
        return ToolAnswer(canonical_bytes(kept.answer), kept.ok, kept.reason)

    def _some_pools(self, asked: PoolsAsked) -> ToolAnswer:
        whole = self._by_key[asked_key("pools", {"sort": asked.sort or "liquidity"})].answer
        found = [row for row in whole["pools"] if _is_wanted(row, asked)]
        return _cut("pools", ToolAnswer(canonical_bytes({**whole, "found": len(found), "pools": found}), True), asked)

    # --- quotes

    def _quote(self, asked: QuoteAsked) -> ToolAnswer:
        if self.quotes_left <= 0:
            raise ToolRefused("allowance_spent", "no quotes are left this turn; decide on what you know")
        self.quotes_left -= 1
        kept = self._kept("quote", captured_as("quote", asked))
        body = json.loads(kept.text) if kept.ok else self._between(asked) if kept.reason == NOT_CAPTURED else None
        return kept if body is None else ToolAnswer(canonical_bytes({**body, "quotes_left": self.quotes_left}), True)

    def _between(self, asked: QuoteAsked) -> dict[str, Any] | None:
        size, field = (asked.spend_wei, "spend_wei") if asked.side == "buy" else (asked.amount_raw, "amount_raw")
        steps = sorted(_sizes(self._sheet.answers, asked, field), key=lambda step: step[0])
        if not size or not steps:
            return None
        wanted = int(size)
        above = next((step for step in steps if step[0] >= wanted), steps[-1])
        below = next((step for step in reversed(steps) if step[0] <= wanted), (0, above[1]))
        rows = [_row_between(row, _same_route(below, row), below[0], above[0], wanted) for row in above[1]["rows"]]
        cannot = above[1].get("own_book_cannot") if wanted > self._own_most(asked) else None
        return {**above[1], field: size, "own_book_cannot": cannot, "rows": rows, "kept_sizes": [str(below[0]), str(above[0])]}

    def _own_most(self, asked: QuoteAsked) -> int:
        """The largest size of a quote that the own book could carry."""
        book, bundle = json.loads(self._sheet.book), json.loads(self._sheet.bundle)
        held = {holding["token"]: int(holding["amount_raw"]) for holding in book["holdings"]}
        if asked.side == "sell":
            return held.get(asked.token, 0)
        return int(book["eth_wei"]) - int(bundle["exit_reserve_wei_per_holding"]) * len({*held, asked.token})


def captured_as(name: str, asked: Asked) -> dict[str, Any]:
    """The arguments under which an answer to a question is kept: defaults written out, limits left out."""
    return DEFAULTS.get(name, {}) | asked.model_dump(exclude_none=True, exclude={"limit"})


def _cut(name: str, answer: ToolAnswer, asked: Asked) -> ToolAnswer:
    """As many rows as were asked for; what the capture left out for its size stays left out."""
    if name not in LISTS or not answer.ok:
        return answer
    body, most = json.loads(answer.text), getattr(asked, "limit", None) or LISTS[name][1]
    if len(body[name]) > most:
        body.pop("left_out", None)
    return ToolAnswer(canonical_bytes({**body, name: body[name][:most]}), True)


def _is_wanted(row: Mapping[str, Any], asked: PoolsAsked) -> bool:
    if asked.token is not None and row["token"] != asked.token:
        return False
    text = (asked.search or "").lower()
    return row["token"].startswith(text) or text in row["untrusted_symbol"].lower()


def _sizes(answers: Iterable[ToolRecord], asked: QuoteAsked, field: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for record in answers:
        told = record.answer
        if record.name == "quote" and record.ok and (told["side"], told["token"]) == (asked.side, asked.token) and str(told[field]).isdecimal():
            yield int(told[field]), told


def _same_route(step: tuple[int, dict[str, Any]], row: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((other for other in step[1]["rows"] if other["route"] == row["route"]), {})


def _row_between(above: Mapping[str, Any], below: Mapping[str, Any], below_size: int, above_size: int, wanted: int) -> dict[str, Any]:
    """A route's row at a size between two: on the line between them, or in proportion outside them; rounded down, gas up."""
    row = dict(above)
    for field in (name for name in BETWEEN if above.get(name) is not None):
        high = int(above[field])
        if below_size in (0, above_size) or below.get(field) is None:
            row[field] = str(mul_div_floor(high, wanted, above_size))
        else:
            low = int(below[field])
            row[field] = str(low + mul_div_floor(high - low, wanted - below_size, above_size - below_size))
    row["gas_wei"] = str(max(int(above["gas_wei"]), int(below.get("gas_wei", 0))))
    return row
