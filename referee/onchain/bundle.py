"""The bundle: what a stack is shown on a turn (001 §2.2).

Two parts, each canonical JSON. The shared part is the same bytes for every stack of a tick and shows nothing later than
its block; the own book is the run's. Amounts are decimal strings: `_wei` in wei of ETH, `_raw` in a token's base units,
`_micro_usd` in millionths of a dollar rounded down, prices for one whole token. Whatever a token says of itself stands in
fields called `untrusted_…`: bounded, stripped of control and hidden characters, and to be believed by nobody. What was not
seen is none, never 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from chain.gas import fee_wei
from chain.outside.told import Told
from chain.pools import DYNAMIC_FEE, NATIVE
from chain.snapshot import Candle, MarketSnapshot, PoolMarket, TokenMarket, Trading
from ledgers.events import Event
from ledgers.identity import canonical_bytes
from ledgers.money import MicroUsd, Money, Wei, mul_div_floor
from ledgers.plain_text import plain_text
from referee.onchain.book import Book, Holding
from referee.onchain.costs import Costs
from referee.onchain.events import (
    DecisionMalformed, FillCredited, HoldingMark, MarkTaken, OrderNotFilled, OrderRefused, PositionMark, TickMissed, TurnUnavailable, WindowOpened,
)  # fmt: skip
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.position import Position
from referee.onchain.round_trip import RoundTrip
from referee.onchain.rules import Rules

BUNDLE_SCHEMA = "bundle/1"
BOOK_SCHEMA = "book/1"
DEX = "uniswap"
ONE_ETH = 10**18

TOKENS_MAX = 200
POOLS_MAX = 8
HISTORY_MAX = 60
LISTED_POOLS_MAX = 8
"""Newest and most traded pools that are named."""
CANDLE_TOKENS_MAX = 6
"""Tokens whose candles are shown, the most traded ones; a tool shows those of any other."""
CANDLES_1M_MAX, CANDLES_5M_MAX = 10, 6
ONE_MINUTE_S, FIVE_MINUTES_S = 60, 300
OUTSIDE_POOLS_MAX = 10
RECENT_MAX = 16
"""Latest happenings of the run that its book tells."""
SYMBOL_CHARS_MAX = 24
NAME_CHARS_MAX = 48
DETAIL_CHARS_MAX = 160


def shared_bundle(
    snapshot: MarketSnapshot, opened: WindowOpened, tick: int, rules: Rules, outside: Sequence[Told] = (), trips: Mapping[str, RoundTrip] | None = None
) -> bytes:
    """Write the part that every stack of a tick is shown; outside words and round trips are none later than its block.

    Shapes: tokens by descending liquidity, pools deepest first, history [Unix seconds, wei] where the price changed and
    candles [start in Unix seconds, open, high, low, close, volume in wei, buys, sells], both oldest first."""
    shown = snapshot.tokens[:TOKENS_MAX]
    candles = set(most_traded(shown, CANDLE_TOKENS_MAX))
    return canonical_bytes(
        {
            "schema": BUNDLE_SCHEMA,
            "network": opened.label,
            "chain_id": opened.chain_id,
            "block": block_shown(snapshot),
            "window": _window(opened, tick),
            "eth_usd_micro_usd": _text_or_none(snapshot.eth_usd_micro_usd),
            "gas_price_wei": str(snapshot.gas_price_wei),
            "exit_reserve_wei_per_holding": str(fee_wei(rules.exit_reserve_gas_per_holding, snapshot.gas_price_wei)),
            "orders_max": rules.orders_max,
            "history_step_s": snapshot.history_step_s,
            "tokens_known": len(snapshot.tokens),
            "tokens": [_token(token, snapshot, token.address in candles) | _trip((trips or {}).get(token.address)) for token in shown],
            "new_pools": [listed_pool(*found) for found in new_pools(snapshot)[:LISTED_POOLS_MAX]],
            "most_traded_pools": [listed_pool(*found) for found in traded_pools(snapshot)[:LISTED_POOLS_MAX]],
            "outside": [_outside(told, {token.address for token in shown}) for told in outside],
        }
    )


def own_book(
    opened: WindowOpened, tick: int, book: Book, mark: MarkTaken | None = None, recent: Sequence[Event] = (), costs: Costs | None = None
) -> bytes:
    """Write the run's own book, with its last mark, what it cost and its latest happenings.

    Shapes: holdings sorted by address, positions as they were opened and only where there are any; `recent` in the order they
    happened, the newest kept, other ledgers' left out."""
    marks = {holding.token: holding for holding in mark.holdings} if mark else {}
    pooled = {position.position: position for position in mark.positions} if mark else {}
    positions = {"positions": [_position(position, pooled.get(position.id)) for position in book.positions]} if book.positions else {}
    told = [told for event in recent if (told := _told(event, book.ledger)) is not None]
    return canonical_bytes(
        {
            "schema": BOOK_SCHEMA,
            "tick": tick,
            "ledger": book.ledger,
            "stake_wei": str(opened.stake_wei),
            "eth_wei": str(book.eth_wei),
            "holdings": [_holding(holding, marks.get(holding.token), costs.of(holding.token) if costs else None) for holding in book.holdings],
            "marked_wei": _text_or_none(mark.value_wei if mark else None),
            "realised_wei": str(costs.realised_wei) if costs else None,
            "recent": told[-RECENT_MAX:],
            **positions,
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


def _outside(told: Told, shown: Collection[str]) -> dict[str, object]:
    """What one outside source said of tokens that are shown, and which pools it calls trending."""
    return {
        "source": told.source,
        "told_ts_ms": told.told_ts_ms,
        "untrusted_tokens": {token: dict(said) for token, said in told.tokens.items() if token in shown},
        "untrusted_trending_pools": list(told.pools[:OUTSIDE_POOLS_MAX]),
    }


def _trip(trip: RoundTrip | None) -> dict[str, object]:
    """Whether a little of a token could be bought and sold again, where it was tried."""
    return {"round_trip": trip.shown()} if trip else {}


def _token(token: TokenMarket, snapshot: MarketSnapshot, with_candles: bool) -> dict[str, object]:
    history = [[point.ts_s, str(point.price_wei)] for point in token.history[-HISTORY_MAX:]]
    candles: dict[str, object] = {}
    if with_candles:
        trades = token.pools[0].trades
        candles = {
            "candles_1m": [candle_row(candle) for candle in trades.candles(ONE_MINUTE_S, CANDLES_1M_MAX)],
            "candles_5m": [candle_row(candle) for candle in trades.candles(FIVE_MINUTES_S, CANDLES_5M_MAX)],
        }
    return token_shown(token, snapshot.eth_usd_micro_usd) | candles | {
        "pools": [pool_shown(pool) for pool in token.pools[:POOLS_MAX]],
        "history": [point for at, point in enumerate(history) if not at or point[1] != history[at - 1][1]],
    }  # fmt: skip


def block_shown(snapshot: MarketSnapshot) -> dict[str, object]:
    """The block that everything belongs to."""
    return {"number": snapshot.block, "hash": snapshot.block_hash, "ts_s": snapshot.block_ts_s}


def token_shown(token: TokenMarket, eth_usd: MicroUsd | None) -> dict[str, object]:
    """One token without its pools."""
    return {
        "address": token.address,
        "untrusted_symbol": plain_text(token.symbol, SYMBOL_CHARS_MAX),
        "untrusted_name": plain_text(token.name, NAME_CHARS_MAX),
        "decimals": token.decimals,
        "price_wei": str(token.price_wei),
        "price_micro_usd": _text_or_none(micro_usd(token.price_wei, eth_usd)),
        "liquidity_wei": str(token.liquidity_wei),
        **trading_shown(token.short, "5m"),
        **trading_shown(token.hour, "1h"),
        "change_5m_bps": token.change_5m_bps,
        "change_1h_bps": token.change_1h_bps,
        "born_block": token.born_block,
        "age_s": token.age_s,
    }


def pool_shown(pool: PoolMarket) -> dict[str, object]:
    """One pool of a token."""
    return {
        "pool": pool.key,
        "dex": pool.fork or f"{DEX}-{pool.venue}",
        "fee_ppm": None if pool.fee_ppm >= DYNAMIC_FEE else pool.fee_ppm,
        "hooks": None if pool.hooks == NATIVE else pool.hooks,
        "quote": pool.quote,
        "price_wei": str(pool.price_wei),
        "liquidity_wei": str(pool.liquidity_wei),
    }


def listed_pool(token: TokenMarket, pool: PoolMarket) -> dict[str, object]:
    """One pool in a list of pools of many tokens."""
    return pool_shown(pool) | trading_shown(pool.trades.short, "5m") | {
        "token": token.address,
        "untrusted_symbol": plain_text(token.symbol, SYMBOL_CHARS_MAX),
        "born_block": pool.born_block,
    }  # fmt: skip


def trading_shown(traded: Trading, span: str) -> dict[str, object]:
    """What was traded over a span."""
    return {f"volume_{span}_wei": str(traded.volume_wei), f"buys_{span}": traded.buys, f"sells_{span}": traded.sells}


def candle_row(candle: Candle) -> list[object]:
    """One candle: start, open, high, low, close, volume, buys, sells."""
    prices = (candle.open_wei, candle.high_wei, candle.low_wei, candle.close_wei, candle.traded.volume_wei)
    return [candle.start_s, *map(str, prices), candle.traded.buys, candle.traded.sells]


def most_traded(tokens: Sequence[TokenMarket], count: int) -> tuple[str, ...]:
    """Addresses of the tokens with the most volume in the last hour, most first; those without any left out."""
    traded = sorted((token for token in tokens if token.hour.volume_wei), key=lambda token: (-int(token.hour.volume_wei), token.address))
    return tuple(token.address for token in traded[:count])


def new_pools(snapshot: MarketSnapshot) -> list[tuple[TokenMarket, PoolMarket]]:
    """Every pool, the newest first."""
    return sorted(_pools(snapshot), key=lambda found: (-found[1].born_block, found[1].key))


def traded_pools(snapshot: MarketSnapshot) -> list[tuple[TokenMarket, PoolMarket]]:
    """Pools with a swap in the last five minutes, the most volume first."""
    traded = [found for found in _pools(snapshot) if found[1].trades.short.volume_wei]
    return sorted(traded, key=lambda found: (-int(found[1].trades.short.volume_wei), found[1].key))


def _pools(snapshot: MarketSnapshot) -> list[tuple[TokenMarket, PoolMarket]]:
    return [(token, pool) for token in snapshot.tokens for pool in token.pools]


def micro_usd(amount: Wei, eth_usd: MicroUsd | None) -> MicroUsd | None:
    """Wei in millionths of a dollar, rounded down; none without a price of ETH."""
    return None if eth_usd is None else MicroUsd(mul_div_floor(int(amount), int(eth_usd), ONE_ETH))


def _holding(holding: Holding, mark: HoldingMark | None, cost_wei: int | None) -> dict[str, object]:
    """A token that keeps shares is shown with the amount its last mark read, for its shares are not what is sold."""
    return {
        "token": holding.token,
        "amount_raw": str(mark.amount_raw if holding.shares and mark else holding.units_raw),
        "keeps_shares": holding.shares,
        "marked_wei": _text_or_none(mark.value_wei if mark else None),
        "mark_status": mark.status if mark else None,
        "cost_wei": None if cost_wei is None else str(cost_wei),
        "unrealised_wei": str(int(mark.value_wei) - cost_wei) if mark and cost_wei is not None else None,
    }


def _position(position: Position, mark: PositionMark | None) -> dict[str, object]:
    """A liquidity position: what went in, what of it was there at the last mark, and its fees so far, apart."""
    return {
        "position": position.id,
        "pool": position.pool,
        "dex": f"{DEX}-{position.venue}",
        "fee_ppm": position.fee_ppm,
        "token0": position.token0,
        "token1": position.token1,
        "tick_lower": position.tick_lower,
        "tick_upper": position.tick_upper,
        "liquidity_raw": str(position.liquidity),
        "put_in0_raw": str(position.put_in[0]),
        "put_in1_raw": str(position.put_in[1]),
        "amount0_raw": _text_or_none(mark.amount0_raw if mark else None),
        "amount1_raw": _text_or_none(mark.amount1_raw if mark else None),
        "fees0_raw": str(position.fees[0]),
        "fees1_raw": str(position.fees[1]),
        "counted_block": position.block,
        "marked_wei": _text_or_none(mark.value_wei if mark else None),
        "mark_status": mark.status if mark else None,
        "principal_wei": _text_or_none(mark.principal_wei if mark else None),
        "fees_wei": _text_or_none(mark.fees_wei if mark else None),
        "held_wei": _text_or_none(mark.held_wei if mark else None),
    }


def liquidity_told(event: LiquidityOpened | LiquidityClosed) -> dict[str, object]:
    """What a position opened or closed moved."""
    amounts = {"amount0_raw": str(event.amount0_raw), "amount1_raw": str(event.amount1_raw), "gas_wei": str(event.gas_wei)}
    about = {"order_id": event.order_id, "position": event.position}
    if isinstance(event, LiquidityOpened):
        return {"happened": "opened", **about, "pool": event.pool, **amounts}
    return {"happened": "closed", **about, **amounts, "fees0_raw": str(event.fees0_raw), "fees1_raw": str(event.fees1_raw)}


def _told(event: Event, ledger: str) -> dict[str, object] | None:
    match event:
        case FillCredited() | OrderRefused() | OrderNotFilled() | LiquidityOpened() | LiquidityClosed() if ledger not in event.ledgers:
            return None
        case LiquidityOpened() | LiquidityClosed():
            return liquidity_told(event)
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
            refused = {"happened": "refused", "order_id": event.order_id, "reason": event.reason, "rule": event.rule}
            return refused | detailed(event.detail)
        case OrderNotFilled():
            return {"happened": "not_filled", "order_id": event.order_id, "reason": event.reason} | detailed(event.detail)
        case DecisionMalformed():
            return {"happened": "malformed", "tick": event.tick, "reason": event.reason} | detailed(event.detail)
        case TurnUnavailable():
            return {"happened": "unavailable", "tick": event.tick}
        case TickMissed():
            return {"happened": "missed", "tick": event.tick, "reason": event.reason}
    return None


def detailed(detail: str) -> dict[str, str]:
    """The numbers and fields behind a refusal, for whoever has to act on them; a token's own words may stand among them."""
    return {"untrusted_detail": plain_text(detail, DETAIL_CHARS_MAX)} if detail else {}


def _text_or_none(amount: Money | None) -> str | None:
    return None if amount is None else str(amount)
