"""What the market shows at one block: tokens with their prices, depth, volume and short history.

A token is shown when our routes reach it, its decimals are known, and a pool of it has a price. Prices are those of the
deepest pool without a hook, if there is one; a price in the dollar token is turned into wei by the median of the deep ETH pools of that token.
Units: wei per whole token, rounded down; liquidity is the ETH side alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from chain.header import Header
from chain.network import Network
from chain.paths import STEEP_FEE_PPM, Hop, router_of
from chain.pools import Pool, PoolGraph
from chain.tape import HOUR_S, STEPS_MAX, VOLUME_S, Activity, PoolTape, Ratio, TapeView, grouped
from chain.tokens import TokenFacts
from ledgers.money import MicroUsd, TokenRaw, Wei, mul_div_floor

DEEP_PART = 10
"""A dollar pool counts when it holds at least this part of the deepest one's ETH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """A price at a time."""

    ts_s: int
    price_wei: Wei


@dataclass(frozen=True, slots=True, kw_only=True)
class Trading:
    """What was traded over a span: a buy takes the token out of a pool."""

    volume_wei: Wei
    buys: int
    sells: int

    def plus(self, other: Trading) -> Trading:
        return Trading(volume_wei=self.volume_wei + other.volume_wei, buys=self.buys + other.buys, sells=self.sells + other.sells)


NO_TRADING = Trading(volume_wei=Wei(0), buys=0, sells=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candle:
    """Prices and trading of one span in one pool; a span without a swap has none."""

    start_s: int
    open_wei: Wei
    """After the first swap."""
    high_wei: Wei
    low_wei: Wei
    close_wei: Wei
    traded: Trading


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One swap, by the pool's own word; a token may move less."""

    block: int
    ts_s: int
    side: str
    """buy or sell, of the token."""
    token_raw: TokenRaw
    value_wei: Wei


@dataclass(frozen=True, slots=True)
class PoolTrades:
    """What was traded in a pool as of one block, seen from its token's side.

    Units: wei; a dollar pool's amounts and prices are turned into wei at the block's own price of the dollar token."""

    tape: TapeView
    token0: bool
    """The token is the pool's token 0."""
    scale: int
    """Base units in one whole token."""
    rate: Ratio
    """Wei for one base unit of the hub token."""

    @property
    def short(self) -> Trading:
        """Of the last five minutes."""
        return self._trading(self.tape.short)

    @property
    def hour(self) -> Trading:
        """Of the last sixty minutes, as far as logs were read."""
        return self._trading(self.tape.hour)

    def candles(self, span_s: int, count_max: int) -> tuple[Candle, ...]:
        """The latest spans with a swap, oldest first; `span_s` is a whole number of minutes."""
        return tuple(
            Candle(
                start_s=span.start_s, open_wei=self._wei(span.opened), close_wei=self._wei(span.closed),
                high_wei=self._wei(span.highest if self.token0 else span.lowest), low_wei=self._wei(span.lowest if self.token0 else span.highest),
                traded=self._trading(Activity().plus(span)),
            )
            for span in grouped(self.tape.minutes, span_s)[-count_max:]
        )  # fmt: skip

    def swaps(self, count_max: int) -> tuple[Swap, ...]:
        """The latest swaps, oldest first."""
        return tuple(
            Swap(
                block=trade.block, ts_s=trade.ts_s, side="buy" if trade.bought0 == self.token0 else "sell",
                token_raw=TokenRaw(trade.moved(self.token0)), value_wei=Wei(mul_div_floor(trade.moved(not self.token0), *self.rate)),
            )
            for trade in self.tape.trades[-count_max:]
        )  # fmt: skip

    def change_bps(self, price_wei: Wei, since_s: int) -> int | None:
        """How far a price is from what it was at a time, rounded down; None when no swap was seen before that."""
        then = next((minute.closed for minute in reversed(self.tape.minutes) if minute.start_s < since_s), None)
        then_wei = int(self._wei(then)) if then else 0
        return mul_div_floor(int(price_wei) - then_wei, 10_000, then_wei) if then_wei else None

    def _trading(self, done: Activity) -> Trading:
        moved = done.moved1_raw if self.token0 else done.moved0_raw
        buys, sells = (done.bought0, done.sold0) if self.token0 else (done.sold0, done.bought0)
        return Trading(volume_wei=Wei(mul_div_floor(moved, *self.rate)), buys=buys, sells=sells)

    def _wei(self, ratio: Ratio) -> Wei:
        return _price_wei(self.scale, ratio if self.token0 else (ratio[1], ratio[0]), self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMarket:
    """One pool of a token."""

    key: str
    venue: str
    fee_ppm: int
    tick_spacing: int
    hooks: str
    """The hook contract; zero for none."""
    born_block: int
    quote: str
    """ETH or USDG."""
    fork: str = ""
    """The other exchange whose pool it is; empty for Uniswap's own."""
    price_wei: Wei
    liquidity_wei: Wei
    token_raw: TokenRaw
    """What the pool offers of the token."""
    trades: PoolTrades
    token0: str = ""
    token1: str = ""
    sqrt_price_x96: int = 0
    """Square root of the price of token 0 in token 1, times 2⁹⁶; 0 where the pool has no ticks."""
    liquidity_raw: int = 0
    """Liquidity in range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMarket:
    """One token that can be traded."""

    address: str
    symbol: str
    """What the token calls itself, bounded and stripped; copied freely by others."""
    name: str
    decimals: int
    total_supply_raw: TokenRaw | None
    price_wei: Wei
    """Wei for one whole token in the first pool, rounded down."""
    liquidity_wei: Wei
    """ETH side of its pools: an upper bound of what could be taken out of them."""
    short: Trading
    """Of the last five minutes, all its pools together."""
    hour: Trading
    change_5m_bps: int | None
    """Of the deepest pool; None when no swap was seen before that time."""
    change_1h_bps: int | None
    born_block: int
    """Creation of its first pool."""
    age_s: int
    """Since then, by the chain's usual block time."""
    pools: tuple[PoolMarket, ...]
    """Deepest first; those whose price is doubtful last."""
    history: tuple[PricePoint, ...]
    """Of the deepest pool, oldest first, in equal steps, at most 60."""

    @property
    def volume_5m_wei(self) -> Wei:
        return self.short.volume_wei

    @property
    def swaps_5m(self) -> int:
        return self.short.buys + self.short.sells


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSnapshot:
    """The market at one block."""

    block: int
    block_hash: str
    block_ts_s: int
    gas_price_wei: Wei
    eth_usd_micro_usd: MicroUsd | None
    history_step_s: int
    tokens: tuple[TokenMarket, ...]
    """By descending liquidity, then by address."""


class MarketView:
    """Builds a snapshot from what an index holds; made for one look."""

    def __init__(self, network: Network, graph: PoolGraph, tapes: Mapping[str, PoolTape], facts: Mapping[str, TokenFacts], header: Header) -> None:
        self._network, self._graph, self._tapes, self._facts, self._header = network, graph, tapes, facts, header
        self._views: dict[str, PoolTrades] = {}

    def tokens(self, count_max: int | None = None) -> list[TokenMarket]:
        """The deepest tokens that can be shown, by descending liquidity, then by address."""
        found = [(-sum(liquidity.values()), token, liquidity) for token in self._graph.tokens() if (liquidity := self._liquidity(token))]
        return [self._token(token, liquidity) for _, token, liquidity in sorted(found, key=lambda row: row[:2])[:count_max]]

    def _liquidity(self, token: str) -> dict[str, int]:
        """ETH side of each pool of a token that can be shown, by its key; empty when the token cannot."""
        facts = self._facts.get(token)
        if facts is None or facts.decimals is None:
            return {}
        return {pool.key: wei for pool in self._graph.hub_pools_of(token, hooked=True) if (wei := self._depth_wei(pool, token, 10**facts.decimals))}

    def _depth_wei(self, pool: Pool, token: str, scale: int) -> int:
        """ETH side of a pool; 0 when our routes do not reach it or it has no price."""
        state = self._graph.states.get(pool.key)
        ratio = state.ratio(pool, token) if state and reachable(pool, self._network) else None
        if state is None or ratio is None:
            return 0
        rate = self._rate(pool.other(token))
        return mul_div_floor(state.depth_raw(pool, pool.other(token)), *rate) if int(_price_wei(scale, ratio, rate)) else 0

    def _token(self, token: str, liquidity: Mapping[str, int]) -> TokenMarket:
        facts, now_s = self._facts[token], self._header.ts_s
        assert facts.decimals is not None
        scale = 10**facts.decimals
        pools = [pool for pool in self._graph.hub_pools_of(token, hooked=True) if reachable(pool, self._network)]
        shown = sorted((pool for pool in pools if pool.key in liquidity), key=lambda pool: (doubtful(pool), -liquidity[pool.key], pool.key))
        markets = [self._pool(pool, token, scale, liquidity[pool.key]) for pool in shown]
        deepest, born_block = markets[0], min(pool.born_block for pool in pools)
        return TokenMarket(
            address=token, symbol=facts.symbol, name=facts.name, decimals=facts.decimals,
            total_supply_raw=None if facts.total_supply_raw is None else TokenRaw(facts.total_supply_raw),
            price_wei=deepest.price_wei, liquidity_wei=Wei(sum(liquidity.values())),
            short=_total(self._trades(pool, token, scale).short for pool in pools), hour=_total(self._trades(pool, token, scale).hour for pool in pools),
            change_5m_bps=deepest.trades.change_bps(deepest.price_wei, now_s - VOLUME_S),
            change_1h_bps=deepest.trades.change_bps(deepest.price_wei, now_s - HOUR_S),
            born_block=born_block, age_s=max(self._header.block - born_block, 0) * self._network.block_time_ms // 1_000,
            pools=tuple(markets), history=self._history(shown[0], token, scale),
        )  # fmt: skip

    def _pool(self, pool: Pool, token: str, scale: int, liquidity_wei: int) -> PoolMarket:
        state, hub = self._graph.states[pool.key], pool.other(token)
        ratio = state.ratio(pool, token)
        assert ratio is not None
        return PoolMarket(
            key=pool.key, venue=pool.venue, fee_ppm=pool.fee_ppm, tick_spacing=pool.tick_spacing, hooks=pool.hooks, born_block=pool.born_block,
            fork=pool.fork, quote="USDG" if hub == self._network.usdg else self._network.native_symbol, price_wei=_price_wei(scale, ratio, self._rate(hub)),
            liquidity_wei=Wei(liquidity_wei), token_raw=TokenRaw(state.depth_raw(pool, token)), trades=self._trades(pool, token, scale),
            token0=pool.token0, token1=pool.token1, sqrt_price_x96=state.sqrt_price_x96, liquidity_raw=state.liquidity,
        )  # fmt: skip

    def _trades(self, pool: Pool, token: str, scale: int) -> PoolTrades:
        if pool.key not in self._views:
            tape = self._tapes.get(pool.key)
            view = tape.view(self._header.ts_s) if tape else TapeView()
            self._views[pool.key] = PoolTrades(view, token == pool.token0, scale, self._rate(pool.other(token)))
        return self._views[pool.key]

    def _rate(self, hub: str) -> Ratio:
        """Wei for one base unit of a hub token; 0 when there is no price for it."""
        if hub != self._network.usdg:
            return (1, 1)
        return self._dollar[1] if self._dollar else (0, 1)

    @cached_property
    def _dollar(self) -> tuple[Pool, Ratio] | None:
        """The pool whose price of the dollar token is the median of the deep ones, and that price."""
        usdg, deep = self._network.usdg, []
        for pool in self._graph.hub_pools_of(usdg):
            state = self._graph.states.get(pool.key)
            if state is not None and (ratio := state.ratio(pool, usdg)) is not None:
                deep.append((state.depth_raw(pool, pool.other(usdg)), pool, ratio))
        enough = max((depth for depth, _, _ in deep), default=0) // DEEP_PART
        priced = sorted(((pool, ratio) for depth, pool, ratio in deep if depth >= enough), key=lambda found: (Fraction(*found[1]), found[0].key))
        return priced[(len(priced) - 1) // 2] if priced else None

    def _history(self, pool: Pool, token: str, scale: int) -> tuple[PricePoint, ...]:
        prices = self._prices(pool, token)
        if pool.other(token) != self._network.usdg:
            return tuple(PricePoint(ts_s=ts_s, price_wei=_price_wei(scale, ratio, (1, 1))) for ts_s, ratio in prices.items())
        rates = self._prices(self._dollar[0], self._network.usdg) if self._dollar else {}
        return tuple(PricePoint(ts_s=ts_s, price_wei=_price_wei(scale, ratio, rates[ts_s])) for ts_s, ratio in prices.items() if ts_s in rates)

    def _prices(self, pool: Pool, token: str) -> dict[int, Ratio]:
        """Prices of a token of a pool over time, in base units of the other."""
        tape = self._tapes.get(pool.key)
        found = tape.prices(self._header.ts_s, STEPS_MAX) if tape else []
        return {ts_s: ratio if token == pool.token0 else (ratio[1], ratio[0]) for ts_s, ratio in found}


def reachable(pool: Pool, network: Network) -> bool:
    """Tell whether some router that we know trades in a pool."""
    return router_of(network, (Hop(pool, pool.token0, pool.token1),)) is not None


def doubtful(pool: Pool) -> bool:
    """Tell whether a pool's price is taken only where there is no other: a hook may change what it brings, or its own fee takes half."""
    return pool.hooked or pool.fee_ppm >= STEEP_FEE_PPM


def _total(parts: Iterable[Trading]) -> Trading:
    total = NO_TRADING
    for part in parts:
        total = total.plus(part)
    return total


def _price_wei(scale: int, ratio: Ratio, rate: Ratio) -> Wei:
    return Wei(mul_div_floor(scale, ratio[0] * rate[0], ratio[1] * rate[1]))
