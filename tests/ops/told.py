"""A short window told by hand: two runs, one fill, one refusal, one order that only the permissive ledger takes."""

from __future__ import annotations

import asyncio
import json

from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.journal import MemoryJournal
from ledgers.money import MicroUsd, TokenRaw, Wei
from ledgers.postings import Entry, Posting
from referee.onchain.book import entry_of, stake_entry
from referee.onchain.events import (
    BoardTaken, BundleShown, DecisionMalformed, DecisionTaken, FillCredited, GateTaken, HoldingMark, MarkTaken, OrderAsked,
    OrderNotFilled, OrderRefused, Pin, RouteSimulated, Row, RunOpened, RunScored, TickMissed, TurnPlayed, WindowLiquidated,
    WindowOpened, WindowScored, WindowSealed, Woken,
)  # fmt: skip

OPEN = 1_790_000_000_000
ETH = 10**18
STAKE = Wei(4 * 10**16)
TOKEN = "0x" + "ab" * 20
HOSTILE = "0x" + "cd" * 20
BOTH = ("headline", "permissive")
ONE, TWO = "w1-random-1", "w1-hold-1"
HOSTILE_SYMBOL = "\x1b[31m[bold]PAY\u202e\x07 me"
HOSTILE_DETAIL = "\x1b]0;owned\x07[link=x]click[/link]\u202eevil\r\nnext"

BUNDLE = json.dumps(
    {
        "tokens": [
            {"address": TOKEN, "untrusted_symbol": "PEPE", "decimals": 18},
            {"address": HOSTILE, "untrusted_symbol": HOSTILE_SYMBOL, "decimals": 0},
        ]
    }
).encode()


def pin(block: int) -> Pin:
    """A pinned block."""
    return Pin(block=block, block_hash="0x" + "11" * 32, block_ts_s=OPEN // 1000, base_fee_wei=Wei(10**7), head_block=block + 1, lane="lane-1")


def buy(index: int, token: str, spend_wei: int) -> OrderAsked:
    """A buy as the parser understood it."""
    return OrderAsked(index=index, side="buy", token=token, spend_wei=Wei(spend_wei), amount_raw=None, sell_all=False)


def row(route: str, status: str, arrival: int | None, reason: str = "") -> Row:
    """A row of our own router."""
    return Row(
        source="router", route=route, status=status, reason=reason, quoted_raw=None if arrival is None else TokenRaw(arrival),
        arrival_raw=None if arrival is None else TokenRaw(arrival), units_raw=None, logged_raw=None, swap_gas=120_000, approve_gas=0,
        gas_wei=Wei(1_200_000_000_000), approvals=(), flags=(), digest="aa" * 32,
    )  # fmt: skip


def opening() -> list[Event]:
    """The window and its two runs open."""
    window = WindowOpened(
        run_id="w1", ts_ms=OPEN, window_sha256="01" * 32, window_file_sha256="02" * 32, rules_name="onc/default", rules_sha256="03" * 32,
        code_sha256="04" * 32, network="devnet", label="devnet", chain_id=4663, block0_hash="0x" + "05" * 32, client="anvil", clock_offset_ms=0,
        pin=pin(100), eth_usd_micro_usd=MicroUsd(2_500_000_000), feed_micro_usd=MicroUsd(2_500_000_000), price_pools=("0xp",), stake_wei=STAKE,
        open_ts_ms=OPEN, close_ts_ms=OPEN + 60_000, interval_ms=10_000, mark_interval_ms=10_000, board_policy="always", seed=7, ticks=6,
    )  # fmt: skip
    runs = [
        RunOpened(run_id=run_id, ts_ms=OPEN, window_id="w1", stack=run_id[3:-2], stack_sha256="06" * 32, run_sha256="07" * 32, copy=1, seed=1, wallet="0x" + "08" * 20, entry=stake_entry(STAKE))
        for run_id in (ONE, TWO)
    ]
    return [window, *runs]


def first_tick() -> list[Event]:
    """One run buys one token, is refused another, and a third is taken by the permissive ledger alone."""
    at = {"run_id": ONE, "ts_ms": OPEN + 1_000}
    orders = (buy(0, TOKEN, 10**16), buy(1, HOSTILE, 10**15), buy(2, HOSTILE, 2 * 10**15))
    ids = [f"{ONE}/0/{index}" for index in range(3)]
    board = {**at, "ledgers": BOTH, "side": "buy", "shares": False, "pin": pin(101), "gas_price_wei": Wei(10**7), "arrived_ts_ms": OPEN + 900, "age_ms": 1_200, "exit_reserve_wei": Wei(10**13)}
    return [
        Woken(**at, tick=0, scheduled_ts_ms=OPEN, lag_ms=3, order_index=0),
        BundleShown(**at, tick=0, pin=pin(101), bundle_sha256=sha256_hex(BUNDLE), book_sha256="09" * 32),
        TurnPlayed(**at, tick=0, outcome="ANSWERED", reason="", steps=1, latency_ms=2, wait_ms=0),
        DecisionTaken(**at, tick=0, decision_sha256="0a" * 32, schema="decision/1", orders=orders),
        BoardTaken(**board, order_id=ids[0], token=TOKEN, size_raw=TokenRaw(10**16), size_units_raw=TokenRaw(10**16), rows=(row("v3 0.3% weth>token", "proven", 123 * ETH), row("v2 weth>token", "reverted", None, HOSTILE_DETAIL))),
        GateTaken(**at, order_id=ids[0], ledgers=BOTH, route="v3 0.3% weth>token", verdict="CLEAR", cause="", exit_provable=True, exit_cause="", buy_arrival_raw=TokenRaw(123 * ETH), loss_bps=65, sell_route="v3 0.3% token>weth", own_wei=Wei(99 * 10**14), ghost_wei=Wei(99 * 10**14), digest="bb" * 32),
        RouteSimulated(**at, order_id=ids[0], ledgers=BOTH, route="v3 0.3% weth>token", evidence_sha256="cc" * 32),
        fill(ids[0], BOTH, TOKEN, 10**16, 123 * ETH, ""),
        OrderRefused(**at, order_id=ids[1], ledgers=BOTH, reason="gate_flagged", rule="ONC-08", detail=HOSTILE_DETAIL),
        BoardTaken(**board, order_id=ids[2], token=HOSTILE, size_raw=TokenRaw(2 * 10**15), size_units_raw=TokenRaw(2 * 10**15), rows=(row("v2 weth>token", "proven", 7),)),
        OrderRefused(**at, order_id=ids[2], ledgers=("headline",), reason="unprovable_exit", rule="ONC-11", detail="slot"),
        fill(ids[2], ("permissive",), HOSTILE, 2 * 10**15, 7, "BUY_UNPROVEN:slot"),
        MarkTaken(**at, clock="turn", tick=0, ledgers=("headline",), pin=pin(102), eth_wei=Wei(3 * 10**16), holdings=(), value_wei=Wei(396 * 10**14), fault="", digest=""),
        MarkTaken(**at, clock="turn", tick=0, ledgers=("permissive",), pin=pin(102), eth_wei=Wei(28 * 10**15), holdings=(), value_wei=None, fault="slow", digest=""),
        DecisionMalformed(run_id=TWO, ts_ms=OPEN + 1_500, tick=0, reason="not_json", detail=HOSTILE_DETAIL, answer_sha256="0b" * 32),
        TickMissed(run_id=TWO, ts_ms=OPEN + 11_000, tick=1, scheduled_ts_ms=OPEN + 10_000, reason="late"),
    ]  # fmt: skip


def fill(order_id: str, ledgers: tuple[str, ...], token: str, spent: int, arrival: int, tag: str) -> FillCredited:
    """A buy credited with what arrived."""
    gas = 1_200_000_000_000
    moves = {("book", "eth"): -spent - gas, ("market", "eth"): spent, ("gas", "eth"): gas, ("book", token): arrival, ("market", token): -arrival}
    return FillCredited(
        run_id=ONE, ts_ms=OPEN + 1_000, order_id=order_id, ledgers=ledgers, proven=not tag, tag=tag, side="buy", token=token,
        route="v3 0.3% weth>token", spent_raw=TokenRaw(spent), arrival_raw=TokenRaw(arrival), gas_wei=Wei(gas), approvals=(), entry=entry_of(ledgers, moves),
    )  # fmt: skip


def ending(events: int, root: str) -> list[Event]:
    """The first run is liquidated and scored; the second has no score."""
    at = {"run_id": ONE, "ts_ms": OPEN + 61_000}
    lost = HoldingMark(token=TOKEN, amount_raw=TokenRaw(123 * ETH), status="reverted", reason="x", route="", gross_wei=Wei(0), gas_wei=Wei(0), value_wei=Wei(0))
    empty = Entry(ledgers=BOTH, postings=(Posting(account="book", asset="eth", amount=TokenRaw(0)),))
    return [
        WindowLiquidated(**at, ledgers=BOTH, pin=pin(200), eth_wei=Wei(28 * 10**15), holdings=(lost,), value_wei=Wei(28 * 10**15), unproven_wei=Wei(0), late=False, entry=empty, evidence_sha256="0c" * 32),
        RunScored(**at, status="SCORED", reason="", stake_wei=STAKE, headline_wei=Wei(28 * 10**15), permissive_wei=Wei(28 * 10**15), headline_ppm=-300_000, permissive_ppm=-300_000, headline_without_unproven_ppm=-300_000, close_usd_micro_usd=None, turns_answered=1, turns_total=1, fills=1, reorged_fills=0),
        RunScored(run_id=TWO, ts_ms=OPEN + 61_000, status="UNSCORED", reason="fault", stake_wei=STAKE, headline_wei=None, permissive_wei=None, headline_ppm=None, permissive_ppm=None, headline_without_unproven_ppm=None, close_usd_micro_usd=None, turns_answered=0, turns_total=1, fills=0, reorged_fills=0),
        WindowScored(run_id="w1", ts_ms=OPEN + 61_000, runs=2, scored=1, close_eth_usd_micro_usd=None),
        WindowSealed(run_id="w1", ts_ms=OPEN + 61_000, events=events, root=root),
    ]  # fmt: skip


def not_filled(reason: str) -> OrderNotFilled:
    """An admitted order that did not fill."""
    return OrderNotFilled(run_id=ONE, ts_ms=OPEN, order_id=f"{ONE}/0/0", ledgers=BOTH, reason=reason, detail="")


def told(*, ended: bool = True) -> MemoryJournal:
    """The whole window in a journal."""
    journal = MemoryJournal("w1")

    async def tell() -> None:
        await journal.append(*opening())
        await journal.append(*first_tick(), blobs={sha256_hex(BUNDLE): BUNDLE})
        if ended:
            await journal.append(*ending(*journal.head())[:-1])
            await journal.append(ending(*journal.head())[-1])

    asyncio.run(tell())
    return journal
