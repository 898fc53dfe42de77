"""The toolbox: what a model may ask while it thinks, and how it is answered (001 §2.1, §2.3; ONC-07).

Every tool takes one JSON object of known fields and answers with one JSON object, bounded in size, as of one block. What
a token says of itself stands in fields called `untrusted_…`. A quote is what an order would have brought at its block; it
never fills. Pure: `ops/live_tools.py` fetches what is shown here, a replayed turn brings its own answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from chain.address import checksum_ok, is_address
from chain.gas import APPROVE_GAS_ESTIMATE, fee_wei, swap_gas_estimate
from chain.outside.told import Told
from chain.snapshot import MarketSnapshot, PoolMarket, Swap, TokenMarket
from harnesses.tools import ToolAnswer, ToolSpec
from ledgers.events import Event
from ledgers.identity import canonical_bytes
from ledgers.money import MicroUsd, Money, Wei
from ledgers.plain_text import plain_text
from referee.onchain.bundle import (
    block_shown, candle_row, listed_pool, micro_usd, new_pools, pool_shown, token_shown, traded_pools, trading_shown,
)  # fmt: skip
from referee.onchain.credit import best_row
from referee.onchain.decision import AMOUNT_MAX
from referee.onchain.events import BoardTaken, FillCredited, GateTaken, MarkTaken, OrderNotFilled, OrderRefused, Row
from referee.onchain.rules import Rules

ANSWER_BYTES_MAX = 16_384
DETAIL_CHARS_MAX = 200
SYMBOL_CHARS_MAX = 24
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


Address = Annotated[str, AfterValidator(_address)]
PoolKey = Annotated[str, AfterValidator(_pool_key)]
Amount = Annotated[str, AfterValidator(_amount)]


class Asked(BaseModel):
    """Arguments of a tool: unknown fields refused, nothing converted; null is the same as absent where a field may be."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NothingAsked(Asked):
    """No arguments."""


class QuoteAsked(Asked):
    """Arguments of `quote`."""

    side: Literal["buy", "sell"]
    token: Address
    spend_wei: Amount | None = None
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


class _OfOnePool(Asked):
    token: Address | None = None
    pool: PoolKey | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.token is None) == (self.pool is None):
            raise ValueError("name either a token or a pool")
        return self


class CandlesAsked(_OfOnePool):
    """Arguments of `candles`."""

    span: Literal["1m", "5m", "1h"] | None = None
    limit: Annotated[int, Field(ge=1, le=120)] | None = None


class SwapsAsked(_OfOnePool):
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


# --- answers --------------------------------------------------------------------------------------------------------


def refused(reason: str, detail: str) -> ToolAnswer:
    """Say why a tool does not do what it was asked."""
    assert reason in REASONS, reason
    return ToolAnswer(canonical_bytes({"error": reason, "detail": plain_text(detail, DETAIL_CHARS_MAX)}), False, reason)


def answered(tool: str, body: Mapping[str, Any], rows: str = "") -> ToolAnswer:
    """Write an answer; of the list called `rows` as many as fit are kept, and how many are left out is said."""
    shown = {"tool": tool, **body}
    text = canonical_bytes(shown)
    while len(text) > ANSWER_BYTES_MAX and rows and shown[rows]:
        kept = len(shown[rows]) * 3 // 4
        shown = {**shown, rows: shown[rows][:kept], "left_out": len(body[rows]) - kept}
        text = canonical_bytes(shown)
    assert len(text) <= ANSWER_BYTES_MAX, f"{tool} answers with {len(text)} bytes"
    return ToolAnswer(text, True)


def find_token(snapshot: MarketSnapshot, address: str) -> TokenMarket:
    """Find a token by its address. Raises: ToolRefused."""
    found = next((token for token in snapshot.tokens if token.address == address), None)
    if found is None:
        raise ToolRefused("unknown_token", f"no token {address} has a pool with a price at block {snapshot.block}")
    return found


def find_pool(snapshot: MarketSnapshot, asked: _OfOnePool | PoolAsked) -> tuple[TokenMarket, PoolMarket]:
    """Find a pool by its key, or a token's deepest. Raises: ToolRefused."""
    if isinstance(asked, _OfOnePool) and asked.token is not None:
        token = find_token(snapshot, asked.token)
        return token, token.pools[0]
    for token in snapshot.tokens:
        for pool in token.pools:
            if pool.key == asked.pool:
                return token, pool
    raise ToolRefused("unknown_pool", f"no pool {asked.pool} with a price is known at block {snapshot.block}")


def token_answer(snapshot: MarketSnapshot, asked: TokenAsked, trip: RoundTrip | None, outside: Sequence[Told] = ()) -> ToolAnswer:
    """Tell what is known of a token; `trip` is a round trip that was tried at the same block. Raises: ToolRefused."""
    token = find_token(snapshot, asked.token)
    body = {
        "block": block_shown(snapshot),
        **token_shown(token, snapshot.eth_usd_micro_usd),
        "untrusted_total_supply_raw": _text(token.total_supply_raw),
        "untrusted_outside": {told.source: dict(told.tokens[asked.token]) for told in outside if asked.token in told.tokens},
        "round_trip": trip.shown() if trip else None,
        "pools": [pool_shown(pool) for pool in token.pools],
    }
    return answered("token", body, "pools")


def pool_answer(snapshot: MarketSnapshot, asked: PoolAsked) -> ToolAnswer:
    """Tell what is known of a pool. Raises: ToolRefused."""
    token, pool = find_pool(snapshot, asked)
    body = {
        "block": block_shown(snapshot),
        **listed_pool(token, pool),
        **trading_shown(pool.trades.hour, "1h"),
        "tick_spacing": pool.tick_spacing,
        "token_raw": str(pool.token_raw),
        "decimals": token.decimals,
    }
    return answered("pool", body)


def pools_answer(snapshot: MarketSnapshot, asked: PoolsAsked) -> ToolAnswer:
    """List pools."""
    found = [pair for pair in _SORTED[asked.sort or "liquidity"](snapshot) if _wanted(pair[0], asked)]
    limit = asked.limit or POOLS_USUAL
    body = {"block": block_shown(snapshot), "found": len(found), "pools": [listed_pool(*pair) for pair in found[:limit]]}
    return answered("pools", body, "pools")


def _wanted(token: TokenMarket, asked: PoolsAsked) -> bool:
    if asked.token is not None and token.address != asked.token:
        return False
    text = (asked.search or "").lower()
    return token.address.startswith(text) or text in token.symbol.lower() or text in token.name.lower()


def _deepest(snapshot: MarketSnapshot) -> list[tuple[TokenMarket, PoolMarket]]:
    return sorted(new_pools(snapshot), key=lambda found: (-int(found[1].liquidity_wei), found[1].key))


def _by_volume(snapshot: MarketSnapshot) -> list[tuple[TokenMarket, PoolMarket]]:
    traded = [found for found in new_pools(snapshot) if found[1].trades.hour.volume_wei]
    return sorted(traded, key=lambda found: (-int(found[1].trades.hour.volume_wei), found[1].key))


_SORTED: dict[str, Callable[[MarketSnapshot], list[tuple[TokenMarket, PoolMarket]]]] = {
    "liquidity": _deepest,
    "volume": _by_volume,
    "trending": traded_pools,
    "new": new_pools,
}


def candles_answer(snapshot: MarketSnapshot, asked: CandlesAsked) -> ToolAnswer:
    """Tell the candles of one pool, newest first. Raises: ToolRefused."""
    token, pool = find_pool(snapshot, asked)
    span = asked.span or "1m"
    candles = [candle_row(candle) for candle in reversed(pool.trades.candles(SPANS_S[span], asked.limit or CANDLES_USUAL))]
    return answered("candles", {**_whose(snapshot, token, pool), "span": span, "columns": CANDLE_COLUMNS, "candles": candles}, "candles")


CANDLE_COLUMNS = ["start_s", "open_wei", "high_wei", "low_wei", "close_wei", "volume_wei", "buys", "sells"]


def swaps_answer(snapshot: MarketSnapshot, asked: SwapsAsked) -> ToolAnswer:
    """Tell the latest swaps of one pool, newest first. Raises: ToolRefused."""
    token, pool = find_pool(snapshot, asked)
    swaps = [_swap(swap) for swap in reversed(pool.trades.swaps(asked.limit or SWAPS_USUAL))]
    return answered("swaps", {**_whose(snapshot, token, pool), "swaps": swaps}, "swaps")


def _whose(snapshot: MarketSnapshot, token: TokenMarket, pool: PoolMarket) -> dict[str, Any]:
    symbol = plain_text(token.symbol, SYMBOL_CHARS_MAX)
    return {"block": block_shown(snapshot), "token": token.address, "untrusted_symbol": symbol, "pool": pool.key, "quote": pool.quote}


def _swap(swap: Swap) -> dict[str, Any]:
    return {"block": swap.block, "ts_s": swap.ts_s, "side": swap.side, "token_raw": str(swap.token_raw), "value_wei": str(swap.value_wei)}


def book_answer(book: Mapping[str, Any]) -> ToolAnswer:
    """Show the book again as it was shown with the question."""
    return answered("book", {"book": book}) if len(canonical_bytes(book)) < ANSWER_BYTES_MAX - 100 else _long_book(book)


def _long_book(book: Mapping[str, Any]) -> ToolAnswer:
    return answered("book", {**book, "recent": []}, "holdings")


def history_answer(events: Sequence[Event], limit: int) -> ToolAnswer:
    """Tell a run's own orders and marks of its headline ledger, newest first."""
    told = [line for event in reversed(events) if (line := _told(event)) is not None]
    return answered("history", {"history": told[:limit]}, "history")


def _told(event: Event) -> dict[str, Any] | None:
    match event:
        case FillCredited():
            return {
                "happened": "filled", "ts_ms": event.ts_ms, "order_id": event.order_id, "side": event.side, "token": event.token,
                "route": event.route, "spent_raw": str(event.spent_raw), "arrival_raw": str(event.arrival_raw), "gas_wei": str(event.gas_wei),
            }  # fmt: skip
        case OrderRefused():
            return {"happened": "refused", "ts_ms": event.ts_ms, "order_id": event.order_id, "reason": event.reason, "rule": event.rule}
        case OrderNotFilled():
            return {"happened": "not_filled", "ts_ms": event.ts_ms, "order_id": event.order_id, "reason": event.reason}
        case MarkTaken():
            value = {"value_wei": _text(event.value_wei), "eth_wei": str(event.eth_wei), "holdings": len(event.holdings)}
            return {"happened": "marked", "ts_ms": event.ts_ms, "tick": event.tick, **value}
    return None


def gas_answer(snapshot: MarketSnapshot, rules: Rules) -> ToolAnswer:
    """Tell the gas price and what usual transactions cost."""
    price, eth_usd = snapshot.gas_price_wei, snapshot.eth_usd_micro_usd
    body = {
        "block": block_shown(snapshot),
        "gas_price_wei": str(price),
        "swap": _cost(swap_gas_estimate(1), price, eth_usd),
        "swap_through_dollars": _cost(swap_gas_estimate(2), price, eth_usd),
        "approve": _cost(APPROVE_GAS_ESTIMATE, price, eth_usd),
        "exit_reserve_per_holding": _cost(rules.exit_reserve_gas_per_holding, price, eth_usd),
    }
    return answered("gas", body)


def _cost(gas: int, price: Wei, eth_usd: MicroUsd | None) -> dict[str, Any]:
    cost_wei = fee_wei(gas, price)
    return {"gas": gas, "cost_wei": str(cost_wei), "cost_micro_usd": _text(micro_usd(cost_wei, eth_usd))}


def plan_answer(plan: str | None) -> ToolAnswer:
    """Show a stack its own plan. Raises: ToolRefused when it wrote none."""
    if plan is None:
        raise ToolRefused("no_plan", "no plan was written")
    body = {"plan": plan, "cut": False}
    while len(canonical_bytes(body)) > ANSWER_BYTES_MAX - 100:
        body = {"plan": str(body["plan"])[: len(str(body["plan"])) * 3 // 4], "cut": True}
    return answered("plan", body)


# --- quotes ---------------------------------------------------------------------------------------------------------

TOO_OLD = "board_too_old"
"""Of a quote that says nothing: the block of a turn's quotes is as old as the turn."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """What buying a little of a token and selling it at once came to, by our own simulation."""

    spend_wei: Wei
    board: BoardTaken | None
    gate: GateTaken | None

    def shown(self) -> dict[str, Any]:
        """Verdict, cause and loss."""
        if self.gate is not None:
            return {"spend_wei": str(self.spend_wei), **_gate(self.gate)}
        return {"spend_wei": str(self.spend_wei), "verdict": "UNKNOWN", "cause": "no_buy", "loss_bps": None, "exit_provable": None}


def quote_answer(asked: QuoteAsked, events: Sequence[Event], affordable: str, quotes_left: int) -> ToolAnswer:
    """Tell what an order would have brought: its board, its gate, and what a rule would have said.

    Shapes: `events` are what the desk made of it on one ledger; `affordable` says why the own book cannot carry it, or
    nothing. Raises: ToolRefused when the node could not be asked."""
    if fault := next((event for event in events if isinstance(event, OrderNotFilled) and event.reason == "fault"), None):
        raise ToolRefused("fault", fault.detail)
    board = next((event for event in events if isinstance(event, BoardTaken)), None)
    gate = next((event for event in events if isinstance(event, GateTaken)), None)
    stopped = next((event for event in events if isinstance(event, OrderRefused | OrderNotFilled)), None)
    size = {"spend_wei": asked.spend_wei} if asked.side == "buy" else {"amount_raw": str(board.size_raw) if board else asked.amount_raw}
    body = {
        "side": asked.side,
        "token": asked.token,
        **size,
        "block": {"number": board.pin.block, "hash": board.pin.block_hash, "ts_s": board.pin.block_ts_s} if board else None,
        "gas_price_wei": str(board.gas_price_wei) if board else None,
        "fills": False,
        "would_stop_it": stopped.reason if stopped and stopped.reason != TOO_OLD else None,
        "own_book_cannot": affordable or None,
        "gate": _gate(gate) if gate else None,
        "best_route": _best(board),
        "rows": [_row(row, asked.side) for row in board.rows] if board else [],
        "quotes_left": quotes_left,
    }
    return answered("quote", body, "rows")


def _best(board: BoardTaken | None) -> str | None:
    best = best_row(board, [row for row in board.rows if row.status == "proven"]) if board else None
    return best.route if best else None


def _row(row: Row, side: str) -> dict[str, Any]:
    brings = "arrival_raw" if side == "buy" else "arrival_wei"
    return {
        "route": row.route, "status": row.status, "reason": row.reason, brings: _text(row.arrival_raw),
        "quoted_raw": _text(row.quoted_raw), "gas_wei": str(row.gas_wei),
    }  # fmt: skip


def _gate(gate: GateTaken) -> dict[str, Any]:
    return {
        "verdict": gate.verdict,
        "cause": plain_text(gate.cause, 80),
        "loss_bps": gate.loss_bps if gate.loss_bps >= 0 or gate.own_wei else None,
        "exit_provable": gate.exit_provable,
    }


def _text(amount: Money | None) -> str | None:
    return None if amount is None else str(amount)
