"""Values in the domain's words, for tests that need no chain: `wei("0.5 eth")`, `book("1 eth, 300 LEAF")`, a row, a board, a gate."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH
from referee.onchain.book import Book, Holding, Books, asset_of, entry_of, stake_entry
from referee.onchain.events import (
    HEADLINE, LEDGERS, BoardTaken, Entry, FillCredited, GateTaken, OrderAsked, OrderNotFilled, OrderRefused, Pin, Row, RunOpened,
)  # fmt: skip
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.state import OrderOutcome

RUN, ORDER = "w1-a-1", "w1-a-1/3/0"
T0 = 1_790_000_000_000
UNITS = {"eth": 18, "gwei": 9, "wei": 0}
GAS_PRICE = Wei(10_000_000)


def wei(text: str) -> Wei:
    """`0.5 eth`, `20 gwei` or `1 wei`."""
    number, unit = text.replace(",", "").split()
    amount = Decimal(number).scaleb(UNITS[unit])
    assert amount == int(amount), text
    return Wei(int(amount))


def address(symbol: str) -> str:
    """A made-up address that begins with the symbol's letters."""
    return "0x" + symbol.lower().encode().hex().ljust(40, "0")


def book(text: str, ledger: str = HEADLINE, approvals: Iterable[str] = (), cause: str = "", lost: Iterable[str] = ()) -> Book:
    """`1 eth, 300 LEAF, 5 RUNE/shares`: tokens are counted in base units; of those that are `lost` some trade is not told in words."""
    eth, *held = text.split(", ")
    holdings = sorted((_holding(part, cause) for part in held), key=lambda holding: holding.token)
    return Book(ledger, wei(eth), tuple(holdings), frozenset(approvals), lost=frozenset(address(symbol) for symbol in lost))


def _holding(text: str, cause: str) -> Holding:
    number, symbol = text.split()
    name, _, shares = symbol.partition("/")
    return Holding(address(name), TokenRaw(int(number.replace(",", ""))), bool(shares), cause)


def books(text: str) -> dict[str, Book]:
    """The same on both ledgers."""
    return {ledger: book(text, ledger) for ledger in LEDGERS}


def a_pin(block: int = 1_000) -> Pin:
    return Pin(
        block=block, block_hash="0x" + "ab" * 32, block_ts_s=T0 // 1_000, base_fee_wei=GAS_PRICE, head_block=block + 1, lane="devnet"
    )  # fmt: skip


def buying(symbol: str, spend: str, index: int = 0) -> OrderAsked:
    return OrderAsked(index=index, side="buy", token=address(symbol), spend_wei=wei(spend), amount_raw=None, sell_all=False)


def selling(symbol: str, amount: int | None = None, index: int = 0) -> OrderAsked:
    """Sell an amount, or all."""
    raw = None if amount is None else TokenRaw(amount)
    return OrderAsked(index=index, side="sell", token=address(symbol), spend_wei=None, amount_raw=raw, sell_all=amount is None)


def row(route: str = "v3", status: str = "proven", *, brings: int | None = None, quoted: int | None = None, gas: int = 0, reason: str = "", units: int | None = None, approvals: tuple[str, ...] = ()) -> Row:
    """A row: what it brings in simulation, or is quoted; gas in wei."""
    arrival = None if status != "proven" else _raw(brings)
    return Row(
        source="router", route=route, status=status, reason=reason, quoted_raw=_raw(quoted if quoted is not None else brings), arrival_raw=arrival,
        units_raw=_raw(units), logged_raw=None, swap_gas=0, approve_gas=0, gas_wei=Wei(gas), approvals=approvals, flags=(), digest=f"of {route}",
    )  # fmt: skip


def _raw(value: int | None) -> TokenRaw | None:
    return None if value is None else TokenRaw(value)


def board(side: str, size: int, *rows: Row, symbol: str = "LEAF", age_ms: int = 0, reserve: int = 0, shares: bool = False, units: int | None = None, ledgers: tuple[str, ...] = LEDGERS) -> BoardTaken:
    """The board of one order."""
    return BoardTaken(
        run_id=RUN, ts_ms=T0, order_id=ORDER, ledgers=ledgers, side=side, token=address(symbol), size_raw=TokenRaw(size),
        size_units_raw=TokenRaw(size if units is None else units), shares=shares, pin=a_pin(), gas_price_wei=GAS_PRICE, arrived_ts_ms=T0,
        age_ms=age_ms, exit_reserve_wei=Wei(reserve), rows=rows,
    )  # fmt: skip


def gate(verdict: str = "CLEAR", *, route: str = "v3", cause: str = "", exit_cause: str = "", ledgers: tuple[str, ...] = LEDGERS) -> GateTaken:
    """The gate of a buy; its exit is provable unless it has a cause."""
    return GateTaken(
        run_id=RUN, ts_ms=T0, order_id=ORDER, ledgers=ledgers, route=route, verdict=verdict, cause=cause, exit_provable=not exit_cause,
        exit_cause=exit_cause, buy_arrival_raw=TokenRaw(1), loss_bps=0, sell_route=route, own_wei=Wei(1), ghost_wei=Wei(1), digest="of the gate",
    )  # fmt: skip


def opened(stake: Wei, run_id: str = RUN, wallet: str = "0x" + "77" * 20, further: tuple[str, ...] = ()) -> RunOpened:
    """A run with its stake on both ledgers, and on further ones where they are named."""
    return RunOpened(
        run_id=run_id, ts_ms=T0, window_id="w1", stack="a", stack_sha256="", run_sha256="", copy=1, seed=1, wallet=wallet, entry=stake_entry(stake, further)
    )  # fmt: skip


def filled(moves: dict[tuple[str, str], int], *, token: str, ledgers: tuple[str, ...] = LEDGERS, tag: str = "", approvals: tuple[str, ...] = (), entry: Entry | None = None) -> FillCredited:
    """A fill that moves amounts on (account, asset)."""
    return FillCredited(
        run_id=RUN, ts_ms=T0, order_id=ORDER, ledgers=ledgers, proven=not tag, tag=tag, side="buy", token=token, route="v3", spent_raw=TokenRaw(0),
        arrival_raw=TokenRaw(0), gas_wei=Wei(0), approvals=approvals, entry=entry or entry_of(ledgers, moves),
    )  # fmt: skip


def bought(symbol: str, units: int, spend: int, *, shares: bool = False, **more) -> FillCredited:
    """A buy without gas."""
    asset = asset_of(address(symbol), shares)
    moves = {(BOOK, ETH): -spend, ("market", ETH): spend, (BOOK, asset): units, ("market", asset): -units}
    return filled(moves, token=address(symbol), **more)


def sold(symbol: str, units: int, brings: int, *, shares: bool = False, **more) -> FillCredited:
    """A sale without gas."""
    asset = asset_of(address(symbol), shares)
    moves = {(BOOK, ETH): brings, ("market", ETH): -brings, (BOOK, asset): -units, ("market", asset): units}
    return filled(moves, token=address(symbol), **more)


def outcome(events: Iterable, ledger: str = HEADLINE) -> FillCredited | OrderRefused | OrderNotFilled | LiquidityOpened | LiquidityClosed:
    """The one outcome of an order on a ledger."""
    (found,) = [event for event in events if isinstance(event, OrderOutcome) and ledger in event.ledgers]
    return found


def said(events: Iterable, ledger: str = HEADLINE) -> str:
    """How an order ended on a ledger: `filled`, `filled TAG`, `opened`, `closed`, or its reason."""
    event = outcome(events, ledger)
    if isinstance(event, LiquidityOpened | LiquidityClosed):
        return "opened" if isinstance(event, LiquidityOpened) else "closed"
    return f"filled {event.tag}".strip() if isinstance(event, FillCredited) else event.reason


def folded(*events) -> Books:
    """Books as the fold of some events."""
    kept = Books()
    for event in events:
        kept.apply(event)
    return kept
