"""The bundle: what a stack is shown on a turn (001 §2.2).

Two parts, each canonical JSON. The shared part is the same bytes for every stack of a tick and shows nothing later than
its block; the own book is the run's. Amounts are decimal strings: `_wei` in wei of ETH, `_raw` in a token's base units,
prices in wei for one whole token. Whatever a token says of itself stands in fields called `untrusted_…`: bounded,
stripped of control and hidden characters, and to be believed by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.gas import fee_wei
from chain.snapshot import MarketSnapshot, PoolMarket, TokenMarket
from ledgers.events import Event
from ledgers.identity import canonical_bytes
from ledgers.money import Money
from ledgers.plain_text import plain_text
from referee.onchain.book import Book, Holding
from referee.onchain.events import (
    DecisionMalformed, FillCredited, HoldingMark, MarkTaken, OrderNotFilled, OrderRefused, TickMissed, TurnUnavailable, WindowOpened,
)  # fmt: skip
from referee.onchain.rules import Rules

BUNDLE_SCHEMA = "bundle/1-min"
BOOK_SCHEMA = "book/1-min"

TOKENS_MAX = 200
POOLS_MAX = 8
HISTORY_MAX = 60
RECENT_MAX = 16
"""Latest happenings of the run that its book tells."""
SYMBOL_CHARS_MAX = 24
NAME_CHARS_MAX = 48


def shared_bundle(snapshot: MarketSnapshot, opened: WindowOpened, tick: int, rules: Rules) -> bytes:
    """Write the part that every stack of a tick is shown.

    Shapes: tokens by descending liquidity, pools deepest first, history [Unix seconds, wei], oldest first."""
    return canonical_bytes(
        {
            "schema": BUNDLE_SCHEMA,
            "network": opened.label,
            "chain_id": opened.chain_id,
            "block": {"number": snapshot.block, "hash": snapshot.block_hash, "ts_s": snapshot.block_ts_s},
            "window": _window(opened, tick),
            "eth_usd_micro_usd": _text_or_none(snapshot.eth_usd_micro_usd),
            "gas_price_wei": str(snapshot.gas_price_wei),
            "exit_reserve_wei_per_holding": str(fee_wei(rules.exit_reserve_gas_per_holding, snapshot.gas_price_wei)),
            "orders_max": rules.orders_max,
            "history_step_s": snapshot.history_step_s,
            "tokens": [_token(token) for token in snapshot.tokens[:TOKENS_MAX]],
        }
    )


def own_book(opened: WindowOpened, tick: int, book: Book, mark: MarkTaken | None = None, recent: Sequence[Event] = ()) -> bytes:
    """Write the run's own book, with its last mark and its latest happenings.

    Shapes: holdings sorted by address; `recent` in the order they happened, the newest kept, other ledgers' left out."""
    marks = {holding.token: holding for holding in mark.holdings} if mark else {}
    told = [told for event in recent if (told := _told(event, book.ledger)) is not None]
    return canonical_bytes(
        {
            "schema": BOOK_SCHEMA,
            "tick": tick,
            "ledger": book.ledger,
            "stake_wei": str(opened.stake_wei),
            "eth_wei": str(book.eth_wei),
            "holdings": [_holding(holding, marks.get(holding.token)) for holding in book.holdings],
            "marked_wei": _text_or_none(mark.value_wei if mark else None),
            "recent": told[-RECENT_MAX:],
        }
    )


def _window(opened: WindowOpened, tick: int) -> dict[str, object]:
    return {
        "tick": tick,
        "ticks": opened.ticks,
        "interval_ms": opened.interval_ms,
        "open_ts_ms": opened.open_ts_ms,
        "close_ts_ms": opened.close_ts_ms,
    }


def _token(token: TokenMarket) -> dict[str, object]:
    return {
        "address": token.address,
        "untrusted_symbol": plain_text(token.symbol, SYMBOL_CHARS_MAX),
        "untrusted_name": plain_text(token.name, NAME_CHARS_MAX),
        "decimals": token.decimals,
        "untrusted_total_supply_raw": _text_or_none(token.total_supply_raw),
        "price_wei": str(token.price_wei),
        "liquidity_wei": str(token.liquidity_wei),
        "volume_5m_wei": str(token.volume_5m_wei),
        "swaps_5m": token.swaps_5m,
        "born_block": token.born_block,
        "pools": [_pool(pool) for pool in token.pools[:POOLS_MAX]],
        "history": [[point.ts_s, str(point.price_wei)] for point in token.history[-HISTORY_MAX:]],
    }


def _pool(pool: PoolMarket) -> dict[str, object]:
    return {
        "pool": pool.key,
        "venue": pool.venue,
        "fee_ppm": pool.fee_ppm,
        "quote": pool.quote,
        "price_wei": str(pool.price_wei),
        "liquidity_wei": str(pool.liquidity_wei),
    }


def _holding(holding: Holding, mark: HoldingMark | None) -> dict[str, object]:
    """A token that keeps shares is shown with the amount its last mark read, for its shares are not what is sold."""
    return {
        "token": holding.token,
        "amount_raw": str(mark.amount_raw if holding.shares and mark else holding.units_raw),
        "keeps_shares": holding.shares,
        "marked_wei": _text_or_none(mark.value_wei if mark else None),
        "mark_status": mark.status if mark else None,
    }


def _told(event: Event, ledger: str) -> dict[str, object] | None:
    match event:
        case FillCredited() | OrderRefused() | OrderNotFilled() if ledger not in event.ledgers:
            return None
        case FillCredited():
            return {
                "happened": "filled",
                "order_id": event.order_id,
                "side": event.side,
                "token": event.token,
                "spent_raw": str(event.spent_raw),
                "arrival_raw": str(event.arrival_raw),
                "gas_wei": str(event.gas_wei),
            }
        case OrderRefused():
            return {"happened": "refused", "order_id": event.order_id, "reason": event.reason, "rule": event.rule}
        case OrderNotFilled():
            return {"happened": "not_filled", "order_id": event.order_id, "reason": event.reason}
        case DecisionMalformed():
            return {"happened": "malformed", "tick": event.tick, "reason": event.reason}
        case TurnUnavailable():
            return {"happened": "unavailable", "tick": event.tick}
        case TickMissed():
            return {"happened": "missed", "tick": event.tick, "reason": event.reason}
    return None


def _text_or_none(amount: Money | None) -> str | None:
    return None if amount is None else str(amount)
