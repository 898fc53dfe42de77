"""Compute: what the tokens of a turn cost at list price (ONC-19; 001 §4; design §10).

List prices are frozen, dated data (`prices/`); nothing is fetched. A model that no list prices is unpriced, which is
never zero. The price is that of the model's own lab, else of the first host that lists it; free offers are left out.
Units: prices in micro-dollars per million tokens; a request's cost is rounded up, against the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from ledgers.money import MicroUsd

PRICES = Path(__file__).parent / "prices" / "genai-prices-0.2.3.json"
MILLION = 1_000_000

Steps = tuple[tuple[int, int], ...]
"""Prices by size of the request: from so many input tokens on, so many micro-dollars per million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensUsed:
    """Tokens of one request."""

    input_tokens: int
    """All input, cached and cache-written tokens inside."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """All output, hidden reasoning inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrice:
    """What one model costs at one provider."""

    source: str
    """Where the price is from, e.g. `genai-prices 0.2.3`."""
    as_of: str
    """Date of the list."""
    provider: str
    model: str
    """As the list calls it."""
    input: Steps
    output: Steps
    cache_read: Steps
    cache_write: Steps

    def cost(self, used: TokensUsed) -> MicroUsd:
        """Price one request. A tier counts for the whole request once its input is above where the tier starts."""
        plain_tokens = max(0, used.input_tokens - used.cached_tokens - used.cache_write_tokens)
        parts = (
            (plain_tokens, self.input), (used.cached_tokens, self.cache_read),
            (used.cache_write_tokens, self.cache_write), (used.output_tokens, self.output),
        )  # fmt: skip
        whole = sum(tokens * _price(steps, used.input_tokens) for tokens, steps in parts)
        return MicroUsd(-(-whole // MILLION))


def cost_of(model: str, requests: Iterable[TokensUsed | None]) -> MicroUsd | None:
    """Price all requests of a turn. None when the model is unpriced, or a request's tokens are not known: never 0 for that."""
    price = list_price(model)
    costs = [None if price is None or used is None else price.cost(used) for used in requests]
    known = [cost for cost in costs if cost is not None]
    return None if price is None or len(known) < len(costs) else sum(known, MicroUsd(0))


@cache
def list_price(model: str) -> ListPrice | None:
    """Find a model's list price by the name a window file or a provider gives it, with or without `maker/` before it."""
    book = _book(PRICES)
    for provider in sorted(book["providers"], key=lambda provider: not provider["lab"]):
        for name in dict.fromkeys((model, model.rpartition("/")[2])):
            for row in provider["models"]:
                if row["id"] == name or _matches(row["match"], name.lower()):
                    return _listed(book, provider["id"], row)
    return None


def _listed(book: Mapping[str, Any], provider: str, row: Mapping[str, Any]) -> ListPrice:
    def steps(name: str) -> Steps:
        return tuple((start, price) for start, price in row.get(name, row["input"]))

    return ListPrice(
        source=book["source"], as_of=book["as_of"], provider=provider, model=row["id"], input=steps("input"),
        output=steps("output"), cache_read=steps("cache_read"), cache_write=steps("cache_write"),
    )  # fmt: skip


def _price(steps: Steps, input_tokens: int) -> int:
    return [price for start, price in steps if not start or input_tokens > start][-1]


def _matches(clause: Mapping[str, Any], name: str) -> bool:
    (kind, value), *_ = clause.items()
    match kind:
        case "or":
            return any(_matches(part, name) for part in value)
        case "and":
            return all(_matches(part, name) for part in value)
        case "equals":
            return name == value.lower()
        case "starts_with":
            return name.startswith(value.lower())
        case "ends_with":
            return name.endswith(value.lower())
        case "contains":
            return value.lower() in name
        case "regex":
            return re.search(value, name) is not None
    raise AssertionError(f"the price list has a clause {kind!r} that nobody reads")


@cache
def _book(path: Path) -> Mapping[str, Any]:
    return orjson.loads(path.read_bytes())
