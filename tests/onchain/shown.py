"""Markets, books and questions in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping

from chain.pools import NATIVE
from chain.snapshot import MarketSnapshot, PoolMarket, PoolTrades, PricePoint, TokenMarket
from chain.tape import Activity, Minute, TapeView, Trade
from harnesses.question import Question
from ledgers.money import MicroUsd, TokenRaw, Wei
from referee.onchain.book import Book, Holding
from referee.onchain.bundle import own_book, shared_bundle
from referee.onchain.events import Pin, WindowOpened
from referee.onchain.rules import DEFAULT

ETHER = 10**18
GAS_PRICE_WEI = 10**8
RESERVE_WEI = DEFAULT.exit_reserve_gas_per_holding * GAS_PRICE_WEI
STAKE_WEI = 3 * ETHER // 100

PIN = Pin(block=40, block_hash="0x" + "b" * 64, block_ts_s=1_790_000_040, base_fee_wei=Wei(GAS_PRICE_WEI), head_block=41, lane="devnet")
OPENED = WindowOpened(
    run_id="w1", ts_ms=1_790_000_000_000, window_sha256="1" * 64, window_file_sha256="2" * 64, rules_name="onc/default",
    rules_sha256="3" * 64, code_sha256="4" * 64, network="devnet", label="devnet", chain_id=4663, block0_hash="0x" + "0" * 64,
    client="anvil", clock_offset_ms=0, pin=PIN, eth_usd_micro_usd=MicroUsd(3_500_000_000), feed_micro_usd=MicroUsd(3_500_000_000),
    price_pools=(), stake_wei=Wei(STAKE_WEI), open_ts_ms=1_790_000_000_000, close_ts_ms=1_790_000_060_000, interval_ms=6_000,
    mark_interval_ms=10_000, board_policy="always", seed=7, ticks=10,
)  # fmt: skip


def address(letter: str) -> str:
    """A token's address."""
    return "0x" + letter * 40


NOW_S = 1_790_000_040


def trades(price_wei: int, decimals: int) -> PoolTrades:
    """What was traded in a pool: two buys and a sale of 7 wei in one minute, at one price."""
    ratio, minute_s = (price_wei, 10**decimals), NOW_S - NOW_S % 60
    minute = Minute(minute_s, ratio, ratio, ratio, ratio, 50, 7, 2, 1)
    swap = Trade(39, NOW_S - 1, True, 40, 5)
    return PoolTrades(TapeView((minute,), (swap,), Activity(50, 7, 2, 1), Activity(50, 7, 2, 1)), True, 10**decimals, (1, 1))


def token(letter: str, *prices_wei: int, liquidity_wei: int = ETHER, decimals: int = 18, symbol: str = "TOK", name: str = "Token") -> TokenMarket:
    """A token on offer with its price history, the last price being the one now."""
    prices_wei = prices_wei or (10**15,)
    pool = PoolMarket(
        key="0x" + letter * 39 + "0", venue="v3", fee_ppm=3_000, tick_spacing=60, hooks=NATIVE, born_block=2, quote="ETH",
        price_wei=Wei(prices_wei[-1]), liquidity_wei=Wei(liquidity_wei), token_raw=TokenRaw(10**24), trades=trades(prices_wei[-1], decimals),
    )  # fmt: skip
    return TokenMarket(
        address=address(letter), symbol=symbol, name=name, decimals=decimals, total_supply_raw=TokenRaw(10**27),
        price_wei=Wei(prices_wei[-1]), liquidity_wei=Wei(liquidity_wei), short=pool.trades.short, hour=pool.trades.hour,
        change_5m_bps=None, change_1h_bps=None, born_block=2, age_s=38, pools=(pool,),
        history=tuple(PricePoint(ts_s=NOW_S + 1 - len(prices_wei) + at, price_wei=Wei(price_wei)) for at, price_wei in enumerate(prices_wei)),
    )  # fmt: skip


def market(*tokens: TokenMarket) -> MarketSnapshot:
    """A market of tokens, deepest first."""
    return MarketSnapshot(
        block=40, block_hash="0x" + "b" * 64, block_ts_s=NOW_S, gas_price_wei=Wei(GAS_PRICE_WEI),
        eth_usd_micro_usd=MicroUsd(3_500_123_456), history_step_s=1, tokens=tokens,
    )  # fmt: skip


def book(eth_wei: int = STAKE_WEI, held: Mapping[str, int] | None = None, shares: bool = False, ledger: str = "headline") -> Book:
    """A book: ETH, and amounts by the token's letter."""
    holdings = tuple(Holding(address(letter), TokenRaw(amount), shares, "") for letter, amount in sorted((held or {}).items()))
    return Book(ledger, Wei(eth_wei), holdings, frozenset())


def question(snapshot: MarketSnapshot, own: Book, tick: int = 0) -> Question:
    """What a stack is asked."""
    return Question("w1-s-1", tick, "", shared_bundle(snapshot, OPENED, tick, DEFAULT), own_book(OPENED, tick, own), 1_000)
