"""The toolbox: what a model may ask while it thinks (001 §2.1, §2.3; ONC-01).

Every tool takes one JSON object of known fields; a changed word of a description is another toolbox and so another
stack. What they answer stands in `tool_answers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from chain.address import checksum_ok, is_address
from harnesses.tools import ToolAnswer, ToolSpec
from ledgers.identity import canonical_bytes
from ledgers.plain_text import plain_text
from referee.onchain.decision import AMOUNT_MAX

DETAIL_CHARS_MAX = 200
QUOTE_WEI_MAX = 10**24
"""A million ETH: more is no quote, and could make a sound node look absurd."""
SPANS_S = {"1m": 60, "5m": 300, "1h": 3_600}

REASONS = ("bad_arguments", "unknown_token", "unknown_pool", "allowance_spent", "no_book", "no_plan", "fault")
"""Every reason why a tool does not do what it was asked."""


class ToolRefused(Exception):
    """A tool cannot do what it was asked; `reason` is one of `REASONS`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


# --- arguments ------------------------------------------------------------------------------------------------------


def _address(text: str) -> str:
    if not is_address(text) or not checksum_ok(text):
        raise ValueError("expected 0x and 40 hex digits, in lower case or with its EIP-55 checksum")
    return text.lower()


def _pool_key(text: str) -> str:
    if not re.fullmatch(r"0x([0-9a-fA-F]{40}|[0-9a-fA-F]{64})", text, re.ASCII):
        raise ValueError("expected 0x and 40 hex digits, or 64 for a v4 pool")
    return text.lower()


def _amount(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,77}", text, re.ASCII) or int(text) > AMOUNT_MAX:
        raise ValueError("expected the digits of a whole number above 0, as a string")
    return text


def _spend(text: str) -> str:
    if int(_amount(text)) > QUOTE_WEI_MAX:
        raise ValueError(f"expected at most {QUOTE_WEI_MAX} wei")
    return text


Address = Annotated[str, AfterValidator(_address)]
PoolKey = Annotated[str, AfterValidator(_pool_key)]
Amount = Annotated[str, AfterValidator(_amount)]
Spend = Annotated[str, AfterValidator(_spend)]


class Asked(BaseModel):
    """Arguments of a tool: unknown fields refused, nothing converted; null is the same as absent where a field may be."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NothingAsked(Asked):
    """No arguments."""


class QuoteAsked(Asked):
    """Arguments of `quote`."""

    side: Literal["buy", "sell"]
    token: Address
    spend_wei: Spend | None = None
    amount_raw: Amount | Literal["all"] | None = None

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if (self.side == "buy") != (self.spend_wei is not None) or (self.side == "sell") != (self.amount_raw is not None):
            raise ValueError("a buy has spend_wei and no amount_raw, a sell has amount_raw and no spend_wei")
        return self


class TokenAsked(Asked):
    """Arguments of `token`."""

    token: Address


class PoolAsked(Asked):
    """Arguments of `pool`."""

    pool: PoolKey


class PoolsAsked(Asked):
    """Arguments of `pools`."""

    sort: Literal["liquidity", "volume", "trending", "new"] | None = None
    token: Address | None = None
    search: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    limit: Annotated[int, Field(ge=1, le=50)] | None = None


class OfOnePool(Asked):
    """Arguments that name either a token or a pool."""

    token: Address | None = None
    pool: PoolKey | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.token is None) == (self.pool is None):
            raise ValueError("name either a token or a pool")
        return self


class CandlesAsked(OfOnePool):
    """Arguments of `candles`."""

    span: Literal["1m", "5m", "1h"] | None = None
    limit: Annotated[int, Field(ge=1, le=120)] | None = None


class SwapsAsked(OfOnePool):
    """Arguments of `swaps`."""

    limit: Annotated[int, Field(ge=1, le=50)] | None = None


class HistoryAsked(Asked):
    """Arguments of `history`."""

    limit: Annotated[int, Field(ge=1, le=50)] | None = None


def read_arguments(name: str, arguments: Mapping[str, Any]) -> Asked:
    """Read a tool's arguments. Raises: ToolRefused naming the first wrong one; KeyError for a tool that does not exist."""
    model = TOOLS[name].asked
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = str(first["loc"][0]) if first["loc"] else "arguments"
        raise ToolRefused("bad_arguments", f"{place}: {first['msg'].removeprefix('Value error, ')}") from None


# --- the tools themselves -------------------------------------------------------------------------------------------

_TOKEN = {"type": "string", "description": "Token address, 0x and 40 hex digits."}
_POOL = {"type": "string", "description": "Pool key as shown: an address, or the 32-byte id of a v4 pool."}
_WEI = {"type": "string", "description": "Wei of ETH to spend, exact, as a decimal string. For a buy."}
_RAW = {"type": "string", "description": "Token base units to sell, exact, as a decimal string, or all. For a sell."}


def _limit(most: int, usual: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most, "description": f"How many, {usual} when left out."}


def _schema(properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the model sees of it, and the form of its arguments."""

    spec: ToolSpec
    asked: type[Asked]


def _tool(name: str, asked: type[Asked], description: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> Tool:
    return Tool(ToolSpec(name, description, _schema(properties, required)), asked)


POOLS_USUAL, CANDLES_USUAL, SWAPS_USUAL, HISTORY_USUAL = 20, 30, 20, 20

_ALL = (
    _tool(
        "quote", QuoteAsked,
        "Quote an order for its exact size on every route, with gas and, for a buy, the honeypot check. Counts against your quote allowance. It never fills: only an order in your decision does.",
        {"side": {"type": "string", "enum": ["buy", "sell"]}, "token": _TOKEN, "spend_wei": _WEI, "amount_raw": _RAW}, ("side", "token"),
    ),
    _tool("token", TokenAsked, "Facts of one token, its pools, and whether a small buy of it could be sold again.", {"token": _TOKEN}, ("token",)),
    _tool("pool", PoolAsked, "Facts of one pool: fee, hooks, price, liquidity, trading.", {"pool": _POOL}, ("pool",)),
    _tool(
        "pools", PoolsAsked, "List pools: the deepest, the most traded in an hour (volume) or in five minutes (trending), or the newest.",
        {
            "sort": {"type": "string", "enum": ["liquidity", "volume", "trending", "new"], "description": "liquidity when left out."},
            "token": _TOKEN | {"description": "Only pools of this token."},
            "search": {"type": "string", "maxLength": 64, "description": "Only tokens whose symbol or name holds this text, or whose address begins with it."},
            "limit": _limit(50, POOLS_USUAL),
        },
    ),
    _tool(
        "candles", CandlesAsked, "Candles of a pool, or of a token's deepest pool: start, open, high, low, close, volume, buys, sells. Spans without a swap are left out.",
        {"token": _TOKEN, "pool": _POOL, "span": {"type": "string", "enum": ["1m", "5m", "1h"], "description": "1m when left out."}, "limit": _limit(120, CANDLES_USUAL)},
    ),
    _tool("swaps", SwapsAsked, "Latest swaps of a pool, or of a token's deepest pool, newest first.", {"token": _TOKEN, "pool": _POOL, "limit": _limit(50, SWAPS_USUAL)}),
    _tool("book", NothingAsked, "Your own book as shown this turn: ETH, holdings, last marks.", {}),
    _tool("history", HistoryAsked, "Your own fills, orders that did not fill, and marks, newest first.", {"limit": _limit(50, HISTORY_USUAL)}),
    _tool("gas", NothingAsked, "The gas price and what usual transactions cost.", {}),
    _tool("plan", NothingAsked, "Your own frozen plan.", {}),
)  # fmt: skip

TOOLS = {tool.spec.name: tool for tool in _ALL}
SPECS = tuple(tool.spec for tool in _ALL)


def specs_of(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Look up tools by their names, in the order asked. Raises: ValueError naming the first that does not exist."""
    found = []
    for name in names:
        if name not in TOOLS:
            raise ValueError(f"no tool named {name[:40]!r}; known: {', '.join(TOOLS)}")
        found.append(TOOLS[name].spec)
    return tuple(found)


SHOWN = ("bundle", "book", "plan")
"""What a turn relies on without a tool."""


def unseen_inputs(inputs: Iterable[str], used: Collection[str]) -> tuple[str, ...]:
    """Name the inputs of a decision that stand for a tool its turn did not use; words of the stack's own are passed over."""
    return tuple(said for said in inputs if (word := said.split()[0].lower() if said.split() else "") in TOOLS and word not in (*SHOWN, *used))


def refused(reason: str, detail: str) -> ToolAnswer:
    """Say why a tool does not do what it was asked."""
    assert reason in REASONS, reason
    return ToolAnswer(canonical_bytes({"error": reason, "detail": plain_text(detail, DETAIL_CHARS_MAX)}), False, reason)
