"""Tool answers: what each tool of the toolbox says, as bounded canonical JSON (001 §2.1; ONC-07).

Everything is as of one block, which the answer names. What a token says of itself stands in fields called `untrusted_…`.
A quote is what an order would have brought at its block; it never fills. Pure: `ops/live_tools.py` fetches what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chain.gas import APPROVE_GAS_ESTIMATE, fee_wei, swap_gas_estimate
from chain.liquidity.ticks import tick_at
from chain.outside.told import Told
from chain.snapshot import MarketSnapshot, PoolMarket, Swap, TokenMarket
from harnesses.tools import ToolAnswer
from ledgers.events import Event
from ledgers.identity import canonical_bytes
from ledgers.money import MicroUsd, Money, Wei, mul_div_floor
from ledgers.plain_text import plain_text
from referee.onchain.bundle import (
    block_shown, candle_row, detailed, liquidity_told, listed_pool, micro_usd, new_pools, pool_shown, token_shown, traded_pools, trading_shown,
)  # fmt: skip
from referee.onchain.credit import best_row
from referee.onchain.events import BoardTaken, FillCredited, GateTaken, MarkTaken, OrderNotFilled, OrderRefused, Row
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.round_trip import RoundTrip, gate_shown
from referee.onchain.rules import Rules
from referee.onchain.toolbox import (
    CANDLES_USUAL, POOLS_USUAL, SPANS_S, SWAPS_USUAL, CandlesAsked, OfOnePool, PoolAsked, PoolsAsked, QuoteAsked, SwapsAsked, TokenAsked, ToolRefused,
)  # fmt: skip

ANSWER_BYTES_MAX = 16_384
POSITION_IN_SHORT = ("position", "pool", "tick_lower", "tick_upper", "fees0_raw", "fees1_raw", "marked_wei", "mark_status")
"""What is still told of each position where a book is too long."""
SYMBOL_CHARS_MAX = 24


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


def find_pool(snapshot: MarketSnapshot, asked: OfOnePool | PoolAsked) -> tuple[TokenMarket, PoolMarket]:
    """Find a pool by its key, or a token's deepest. Raises: ToolRefused."""
    if isinstance(asked, OfOnePool) and asked.token is not None:
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
        "untrusted_whole_supply_micro_usd": _text(_whole_supply(token, snapshot.eth_usd_micro_usd)),
        "untrusted_outside": {told.source: dict(told.tokens[asked.token]) for told in outside if asked.token in told.tokens},
        "round_trip": trip.shown() if trip else None,
        "pools": [pool_shown(pool) for pool in token.pools],
    }
    return answered("token", body, "pools")


def _whole_supply(token: TokenMarket, eth_usd: MicroUsd | None) -> MicroUsd | None:
    """The claimed supply at the shown price, which nobody could sell it at."""
    if token.total_supply_raw is None:
        return None
    return micro_usd(Wei(mul_div_floor(int(token.total_supply_raw), int(token.price_wei), 10**token.decimals)), eth_usd)


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
        **_grid(pool),
    }
    return answered("pool", body)


def _grid(pool: PoolMarket) -> dict[str, Any]:
    """Where the price stands among the ticks, for who would choose a range; nothing for a pool without ticks."""
    if not pool.sqrt_price_x96:
        return {}
    return {
        "token0": pool.token0, "token1": pool.token1, "tick": tick_at(pool.sqrt_price_x96), "sqrt_price_x96": str(pool.sqrt_price_x96),
        "liquidity_raw": str(pool.liquidity_raw),
    }  # fmt: skip


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
    positions = [{name: row[name] for name in POSITION_IN_SHORT} for row in book.get("positions", ())]
    return answered("book", {**book, "recent": [], **({"positions": positions} if positions else {})}, "holdings")


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
        case LiquidityOpened() | LiquidityClosed():
            return liquidity_told(event) | {"ts_ms": event.ts_ms}
        case OrderRefused():
            about = {"happened": "refused", "ts_ms": event.ts_ms, "order_id": event.order_id, "reason": event.reason, "rule": event.rule}
            return about | detailed(event.detail)
        case OrderNotFilled():
            about = {"happened": "not_filled", "ts_ms": event.ts_ms, "order_id": event.order_id, "reason": event.reason}
            return about | detailed(event.detail)
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
        "gate": gate_shown(gate) if gate else None,
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


def _text(amount: Money | None) -> str | None:
    return None if amount is None else str(amount)
