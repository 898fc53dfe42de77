"""What the market shows at one block: tokens with their prices, depth, volume and short history.

A token is shown when our routes reach it, its decimals are known, and a pool of it has a price. Prices are those of the
deepest pool; a price in the dollar token is turned into wei by the median of the deep ETH pools of that token.
Units: wei per whole token, rounded down; liquidity is the ETH side alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from chain.header import Header
from chain.network import Network
from chain.pools import NATIVE, Pool, PoolGraph
from chain.tape import STEPS_MAX, PoolTape, Ratio
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
class PoolMarket:
    """One pool of a token."""

    key: str
    venue: str
    fee_ppm: int
    quote: str
    """ETH or USDG."""
    price_wei: Wei
    liquidity_wei: Wei


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
    """Wei for one whole token in the deepest pool, rounded down."""
    liquidity_wei: Wei
    """ETH side of its pools: an upper bound of what could be taken out of them."""
    volume_5m_wei: Wei
    swaps_5m: int
    born_block: int
    """Creation of its first pool."""
    pools: tuple[PoolMarket, ...]
    """Deepest first."""
    history: tuple[PricePoint, ...]
    """Of the deepest pool, oldest first, in equal steps, at most 60."""


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

    def tokens(self) -> list[TokenMarket]:
        """Every token that can be shown, by descending liquidity, then by address."""
        shown = [market for token in self._graph.tokens() if (market := self.token(token)) is not None]
        return sorted(shown, key=lambda market: (-int(market.liquidity_wei), market.address))

    def token(self, token: str) -> TokenMarket | None:
        """One token, or None when it cannot be shown."""
        facts = self._facts.get(token)
        if facts is None or facts.decimals is None:
            return None
        scale = 10**facts.decimals
        pools = [pool for pool in self._graph.hub_pools_of(token) if reachable(pool, self._network)]
        markets = [market for pool in pools if (market := self._pool(pool, token, scale)) is not None]
        if not markets:
            return None
        markets.sort(key=lambda market: (-int(market.liquidity_wei), market.key))
        volume_wei, swaps = self._volume(pools, token)
        return TokenMarket(
            address=token, symbol=facts.symbol, name=facts.name, decimals=facts.decimals,
            total_supply_raw=None if facts.total_supply_raw is None else TokenRaw(facts.total_supply_raw),
            price_wei=markets[0].price_wei, liquidity_wei=sum((market.liquidity_wei for market in markets), Wei(0)),
            volume_5m_wei=volume_wei, swaps_5m=swaps, born_block=min(pool.born_block for pool in pools),
            pools=tuple(markets), history=self._history(self._graph.pools[markets[0].key], token, scale),
        )  # fmt: skip

    def _pool(self, pool: Pool, token: str, scale: int) -> PoolMarket | None:
        state, hub = self._graph.states.get(pool.key), pool.other(token)
        ratio = state.ratio(pool, token) if state else None
        if state is None or ratio is None:
            return None
        rate = self._rate(hub)
        price_wei, liquidity_wei = _price_wei(scale, ratio, rate), mul_div_floor(state.depth_raw(pool, hub), *rate)
        if not int(price_wei) or not liquidity_wei:
            return None
        quote = "USDG" if hub == self._network.usdg else self._network.native_symbol
        return PoolMarket(key=pool.key, venue=pool.venue, fee_ppm=pool.fee_ppm, quote=quote, price_wei=price_wei, liquidity_wei=Wei(liquidity_wei))

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

    def _volume(self, pools: Sequence[Pool], token: str) -> tuple[Wei, int]:
        total, count = 0, 0
        for pool in pools:
            if pool.key in self._tapes:
                amount, swaps = self._tapes[pool.key].volume(self._header.ts_s)
                total, count = total + mul_div_floor(amount, *self._rate(pool.other(token))), count + swaps
        return Wei(total), count

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
    """Tell whether our routes can use a pool: v2 and v3 through WETH or USDG, hook-less v4 with native ETH."""
    v4_reached = NATIVE in (pool.token0, pool.token1) and network.universal_router is not None
    return not pool.hooked and (pool.venue != "v4" or v4_reached)


def _price_wei(scale: int, ratio: Ratio, rate: Ratio) -> Wei:
    return Wei(mul_div_floor(scale, ratio[0] * rate[0], ratio[1] * rate[1]))
