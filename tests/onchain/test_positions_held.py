"""Positions without a chain: how a book folds them, what they cost, and how one sale is split between them and the book (ONC-21)."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.network import load_network
from ledgers.errors import CorruptJournal
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, imbalance
from referee.onchain.book import Book, Holding
from referee.onchain.bundle import own_book
from referee.onchain.costs import Costs
from referee.onchain.credit import exit_reserve_wei
from referee.onchain.decision import OPEN_LP
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, HoldingMark, OrderAsked
from referee.onchain.liquidity import LP, LP_FEES, closing_entry, opening_entry, pool_objection, range_of, share_objection, share_ppm
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.marks import Sale
from referee.onchain.position import Position, opened_position, pool_of
from referee.onchain.position_marks import COUNTED, Exit, split, with_exits, worth_of
from referee.onchain.rules import DEFAULT
from referee.onchain.tool_answers import book_answer
from tests.onchain.given import RUN, T0, a_pin, address, bought, folded, opened, wei

LEAF, FERN = address("LEAF"), address("FERN")
POOL = "0x" + "50" * 20
PRICE = Wei(10_000_000)
Q96 = 1 << 96


def an_opening(order: str = f"{RUN}/1/0", amounts: tuple[int, int] = (10**16, 500), gas: int = 7, ledgers=LEDGERS, assets=(ETH, LEAF), liquidity: int = 10**12) -> LiquidityOpened:
    return LiquidityOpened(
        run_id=RUN, ts_ms=T0, order_id=order, ledgers=ledgers, position=order, venue="v3", pool=POOL, token0="0x" + "00" * 20, token1=LEAF, asset0=assets[0],
        asset1=assets[1], fee_ppm=3_000, tick_spacing=60, hooks="0x" + "00" * 20, tick_lower=-600, tick_upper=600, liquidity_raw=TokenRaw(liquidity),
        amount0_raw=TokenRaw(amounts[0]), amount1_raw=TokenRaw(amounts[1]), pool_liquidity_raw=TokenRaw(10**15), share_ppm=1_000, gas_wei=Wei(gas),
        approvals=(f"{LEAF}>npm",), pin=a_pin(), path_sha256="p", evidence_sha256="e", entry=opening_entry(ledgers, assets, amounts, gas),
    )  # fmt: skip


def an_accrual(order: str = f"{RUN}/1/0", fees: tuple[int, int] = (3, 5), ledgers=LEDGERS) -> LiquidityAccrued:
    return LiquidityAccrued(
        run_id=RUN, ts_ms=T0, ledgers=ledgers, position=order, pool=POOL, from_block=1_001, to_block=1_010, to_block_hash="0x1", swaps=2, crossings=0,
        growth0_x128=TokenRaw(9), growth1_x128=TokenRaw(8), fees0_raw=TokenRaw(fees[0]), fees1_raw=TokenRaw(fees[1]), healed="", logs_sha256="l",
    )  # fmt: skip


def a_closing(position: Position, principal: tuple[int, int], fees: tuple[int, int], gas: int = 9, ledgers=LEDGERS) -> LiquidityClosed:
    return LiquidityClosed(
        run_id=RUN, ts_ms=T0, order_id=f"{RUN}/5/0", ledgers=ledgers, position=position.id, amount0_raw=TokenRaw(principal[0]),
        amount1_raw=TokenRaw(principal[1]), fees0_raw=TokenRaw(fees[0]), fees1_raw=TokenRaw(fees[1]), gas_wei=Wei(gas), pin=a_pin(), evidence_sha256="e",
        entry=closing_entry(ledgers, position, principal, fees, gas),
    )  # fmt: skip


# --- the book -------------------------------------------------------------------------------------------------------


def test_what_is_put_in_leaves_the_book_and_comes_back_with_fees_on_a_line_of_their_own():
    begun = (opened(wei("1 eth")), bought("LEAF", 600, 10**17))
    books = folded(*begun, an_opening(), an_accrual())
    book = books.of(RUN, HEADLINE)
    assert (int(book.eth_wei), int(book.held(LEAF).units_raw)) == (9 * 10**17 - 10**16 - 7, 100)
    (position,) = book.positions
    assert (position.fees, position.block, position.growth_x128, position.put_in) == ((TokenRaw(3), TokenRaw(5)), 1_010, (9, 8), (TokenRaw(10**16), TokenRaw(500)))
    assert f"{LEAF}>npm" in book.approvals and pool_of(position).key == POOL
    closed = a_closing(position, (2 * 10**16, 220), (3, 5))
    assert imbalance(closed.entry.postings) == {}
    books = folded(*begun, an_opening(), an_accrual(), closed)
    held = {key: int(amount) for key, amount in books.runs[RUN].ledgers[HEADLINE].balances.items() if int(amount)}
    assert (held[BOOK, ETH], held[BOOK, LEAF]) == (9 * 10**17 + 10**16 + 3 - 16, 325)
    assert (held[LP, ETH], held[LP, LEAF], held[LP_FEES, ETH], held[LP_FEES, LEAF]) == (-(10**16), 280, -3, -5)
    assert not books.of(RUN, HEADLINE).positions


def test_a_position_is_on_the_ledgers_that_it_names_only():
    books = folded(opened(wei("1 eth")), bought("LEAF", 600, 10**17), an_opening(ledgers=(PERMISSIVE,)))
    assert (len(books.of(RUN, HEADLINE).positions), len(books.of(RUN, PERMISSIVE).positions)) == (0, 1)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((an_accrual(),), "no open position"),
        ((an_opening(), an_opening()), "opened twice"),
        ((an_opening(), a_closing(opened_position(an_opening()), (1, 1), (0, 0)), a_closing(opened_position(an_opening()), (1, 1), (0, 0))), "no open position"),
        ((an_opening(ledgers=(PERMISSIVE,)), an_accrual()), "no open position"),
        ((replace(an_opening(), ledgers=(HEADLINE,)),), "names ledgers"),
        ((an_opening(amounts=(10**18, 1)),), "below zero"),
    ],
)
def test_a_journal_whose_positions_do_not_follow_is_corrupt(events, said):
    with pytest.raises(CorruptJournal, match=said):
        folded(opened(wei("1 eth")), bought("LEAF", 2_000, 10**17), *events)


def test_onc_27_every_position_keeps_gas_for_its_own_closing_and_for_its_tokens():
    book = Book(HEADLINE, wei("1 eth"), (Holding(FERN, TokenRaw(1), False, ""),), frozenset(), (opened_position(an_opening()),))
    assert [book.exits(), book.exits(LEAF), book.exits(address("MOSS"))] == [3, 3, 4]
    assert int(exit_reserve_wei(DEFAULT, book, LEAF, PRICE)) == 3 * 1_000_000 * int(PRICE)


def test_onc_21_the_share_counts_the_runs_other_positions_of_the_pool_and_is_rounded_up():
    position = opened_position(an_opening(liquidity=50))
    book = Book(HEADLINE, wei("1 eth"), (), frozenset(), (position, replace(position, id="other", pool="elsewhere")))
    assert (share_ppm(50, book, POOL, 900), share_ppm(51, book, POOL, 900), share_ppm(1, book, "fresh", 0)) == (100_000, 100_900, 1_000_000)


@pytest.mark.parametrize(("own", "others", "word"), [(100, 1_000, ""), (101, 1_000, "lp_share"), (10**21, 10**22, ""), (10**21 + 1, 10**22, "lp_share"), (10**21, 10**22 - 1, "lp_share"), (1, 0, "lp_share")])
def test_onc_21_the_limit_is_lp_to_l_to_the_unit(own, others, word):
    assert share_objection(DEFAULT, own, others)[0] == word


def test_the_own_book_shows_positions_where_there_are_any():
    books = folded(opened(wei("1 eth")), bought("LEAF", 600, 10**17), an_opening(), an_accrual())
    window = type("Opened", (), {"stake_wei": wei("1 eth")})
    shown = orjson.loads(own_book(window, 3, books.of(RUN, HEADLINE), None, (an_opening(),)))
    (position,) = shown["positions"]
    assert (position["position"], position["tick_lower"], position["fees1_raw"], position["put_in1_raw"], position["marked_wei"]) == (f"{RUN}/1/0", -600, "5", "500", None)
    assert shown["recent"][0] | {"happened": "opened", "pool": POOL} == shown["recent"][0]
    assert "positions" not in orjson.loads(own_book(window, 3, folded(opened(wei("1 eth"))).of(RUN, HEADLINE)))


def test_a_book_with_as_many_positions_as_may_be_still_fits_an_answer():
    order = f"w1-{'a' * 32}-1/9999/7"
    held = tuple(replace(opened_position(an_opening()), id=order, liquidity=2**127, put_in=(TokenRaw(2**127),) * 2, fees=(TokenRaw(2**127),) * 2, pool="0x" + "ab" * 32) for _ in range(16))
    holdings = tuple(Holding("0x" + f"{at:040x}", TokenRaw(2**127), False, "") for at in range(60))
    book = orjson.loads(own_book(type("Opened", (), {"stake_wei": wei("1 eth")}), 3, Book(HEADLINE, wei("1 eth"), holdings, frozenset(), held)))
    told = orjson.loads(book_answer(book).text)
    assert len(told["positions"]) == 16 and told["positions"][0]["position"] == order and told["left_out"] < 60


# --- costs ----------------------------------------------------------------------------------------------------------


def test_what_a_position_holds_keeps_its_cost_until_it_comes_back():
    costs = Costs()
    for event in (bought("LEAF", 1_000, 10**17), an_opening(gas=0)):
        costs.apply(event)
    assert (costs.of(LEAF), costs.realised_wei, costs.pooled) == (5 * 10**16, 0, {f"{RUN}/1/0": 6 * 10**16})
    costs.apply(a_closing(opened_position(an_opening()), (2 * 10**16, 400), (0, 0), gas=0))
    assert (costs.of(LEAF), costs.held[LEAF][0], costs.realised_wei, costs.pooled) == (9 * 10**16, 900, 0, {})


@pytest.mark.parametrize(("principal", "cost_wei", "realised_wei"), [((9 * 10**16, 0), None, 3 * 10**16), ((5 * 10**16, 0), None, -(10**16)), ((9 * 10**16, 5), 0, 3 * 10**16)])
def test_more_eth_than_a_position_cost_is_realised_and_less_is_where_no_token_returns(principal, cost_wei, realised_wei):
    costs = Costs()
    for event in (bought("LEAF", 500, 5 * 10**16), an_opening(gas=0), a_closing(opened_position(an_opening()), principal, (0, 0), gas=0)):
        costs.apply(event)
    assert (costs.of(LEAF), costs.realised_wei) == (cost_wei, realised_wei)


# --- ranges by price ------------------------------------------------------------------------------------------------

PRICES = st.decimals("0.0001", "10000", places=4)


@given(PRICES, PRICES, st.integers(0, 18), st.integers(0, 18), st.sampled_from([1, 10, 60, 200]))
def test_a_range_by_price_lies_within_the_prices_and_is_the_widest_on_the_grid(low, high, decimals0, decimals1, spacing):
    if low == high:
        return
    low, high = sorted((low, high))
    asked = OrderAsked(index=0, side=OPEN_LP, token="", spend_wei=None, amount_raw=None, sell_all=False, price_lower=str(low), price_upper=str(high))
    pool = replace(pool_of(opened_position(an_opening())), tick_spacing=spacing)
    span = range_of(asked, pool, (decimals0, decimals1))
    scale = 10.0 ** (decimals1 - decimals0)
    assert span.lower % spacing == span.upper % spacing == 0
    for tick, inside, outside in ((span.lower, 1, -1), (span.upper, -1, 1)):
        bound = float(low if inside == 1 else high) * scale
        assert (1.0001**tick - bound) * inside >= -bound * 1e-9
        assert (1.0001 ** (tick + outside * spacing) - bound) * inside <= bound * 1e-9


# --- one sale, split ------------------------------------------------------------------------------------------------


def an_exit(order: str, principal: tuple[int, int], fees: tuple[int, int], gas: int = 100_000, failure: str = "") -> Exit:
    return Exit(opened_position(an_opening(order)), Q96, principal, fees, gas, failure, "why" if failure else "")


def a_sale(holding: Holding, gross: int, status: str) -> tuple[Sale, HoldingMark]:
    sale = Sale(holding, int(holding.units_raw), None, "", (), None)
    value = max(gross - 3_000, 0) if status in COUNTED else 0
    return sale, HoldingMark(
        token=holding.token, amount_raw=holding.units_raw, status=status if value or status not in COUNTED else "below_gas", reason="", route="r",
        gross_wei=Wei(gross if status in COUNTED else 0), gas_wei=Wei(3_000 if status in COUNTED else 0), value_wei=Wei(value),
    )  # fmt: skip


AMOUNTS = st.integers(0, 10**24)
EXITS = st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 10**20), st.integers(0, 10**20), st.sampled_from(["", "", "", "reverted"])), min_size=1, max_size=4)


@given(AMOUNTS, EXITS, st.integers(0, 10**22), st.sampled_from(["proven", "proven", "unprovable", "reverted"]))
def test_a_sale_that_is_split_never_comes_to_more_than_it_brought_and_its_entry_balances(own, exits, gross, status):
    book = Book(HEADLINE, Wei(10**20), (Holding(LEAF, TokenRaw(own), False, ""),) if own else (), frozenset(), ())
    out = [an_exit(f"{RUN}/{at}/0", (raw0, raw1), (fee0, fee1), failure=failure) for at, (raw0, raw1, fee0, fee1, failure) in enumerate(exits)]
    whole = with_exits(book, out)
    marks = [a_sale(holding, gross, status)[1] for holding in whole.holdings]
    parts = split(book, whole, marks, out, PRICE)
    for each, mark in zip(out, parts.positions, strict=True):
        assert mark.value_wei == worth_of(each.position, mark) and (mark.status in COUNTED) == (mark.value_wei > Wei(0))
    sold = sum(int(mark.gross_wei) for mark in (*parts.holdings, *parts.positions))
    assert sold <= sum(int(mark.gross_wei) for mark in marks)
    gas = sum(int(mark.gas_wei) for mark in parts.holdings) + sum(int(mark.sale_gas_wei) for mark in parts.positions)
    if all(mark.status in COUNTED for mark in marks):
        assert gas >= sum(int(mark.gas_wei) for mark in marks if mark.status in COUNTED)
    assert [int(mark.amount_raw) for mark in parts.holdings] == ([own] if own else [])
    assert not any(totals(parts.moves).values())
    gained = parts.moves.get((BOOK, ETH), 0)
    assert gained == sum(int(mark.value_wei) for mark in parts.positions)


def totals(moves: dict[tuple[str, str], int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for (_, asset), amount in moves.items():
        sums[asset] = sums.get(asset, 0) + amount
    return sums


def test_a_position_whose_token_cannot_be_sold_counts_its_eth_and_names_the_token():
    book = Book(HEADLINE, Wei(10**18), (), frozenset(), ())
    out = [an_exit(f"{RUN}/1/0", (10**16, 500), (10, 20))]
    whole = with_exits(book, out)
    (mark,) = split(book, whole, [a_sale(whole.holdings[0], 0, "reverted")[1]], out, PRICE).positions
    assert (mark.status, mark.reason, mark.unsold) == ("proven", f"not sold: {LEAF}", (LEAF,))
    assert int(mark.value_wei) == 10**16 + 10 - 100_000 * int(PRICE)
    moves = split(book, whole, [a_sale(whole.holdings[0], 0, "reverted")[1]], out, PRICE).moves
    assert moves[BOOK, LEAF] == 520 and ("market", LEAF) not in moves


def test_a_position_that_takes_more_gas_than_it_brings_is_left_where_it_is():
    book = Book(HEADLINE, Wei(10**18), (), frozenset(), ())
    out = [an_exit(f"{RUN}/1/0", (10, 5), (0, 0))]
    whole = with_exits(book, out)
    parts = split(book, whole, [a_sale(whole.holdings[0], 4_000, "proven")[1]], out, PRICE)
    assert (parts.positions[0].status, parts.positions[0].value_wei, parts.moves) == ("below_gas", Wei(0), {})


# --- pools ----------------------------------------------------------------------------------------------------------

NETWORK = load_network("devnet")
ZERO = "0x" + "00" * 20


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"venue": "v4", "token0": ZERO, "token1": LEAF}, ""),
        ({"venue": "v4", "token0": ZERO, "token1": NETWORK.weth}, "both sides of the pool are ETH"),
        ({"venue": "v2"}, "v2 pools are not refereed"),
        ({"fork": "thicket"}, "thicket pools are not refereed"),
    ],
)
def test_onc_21_a_pool_carries_positions_or_says_why_not(changes, said):
    pool = replace(pool_of(opened_position(an_opening())), token0=LEAF, token1=NETWORK.weth)
    reason, detail = pool_objection(NETWORK, replace(pool, **changes), "")
    assert (reason, said in detail) == ("lp_pool" if said else "", True)
    assert pool_objection(NETWORK, pool, "its hook may") == ("lp_pool", "its hook may") and pool_objection(NETWORK, None, "")[0] == "lp_pool"
    assert pool_objection(replace(NETWORK, v3_positions=None), pool, "")[0] == "lp_pool"
