"""ONC-22: the same order simulated again after a delay: both signs, both sides of its bound, and what it is skipped for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chain import calldata
from chain.devnet.calls import Tx
from chain.gas import fee_wei
from ledgers.clock import SystemClock
from ledgers.money import TokenRaw, Wei
from referee.onchain.book import Books
from referee.onchain.credit import exit_reserve_wei
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT, FillCredited, OrderRefused
from referee.onchain.further import least_of, settle_further
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped
from referee.onchain.rules import DEFAULT
from referee.onchain.state import OrderOutcome
from tests.onchain.followed import FollowedRun, further_board, headline_moves, moved
from tests.onchain.given import folded, outcome
from tests.onchain.ground import WALLET, Ground, Run, transactions
from tests.onchain.rival import ROUTER, Call, RivalServer, Told, Wanted, listed, moves, rival_server

SPEND = Wei(3 * 10**16)


@pytest.fixture
def run(ground) -> FollowedRun:
    return FollowedRun(ground)


async def test_onc_22_a_delay_on_an_unmoved_chain_changes_nothing(run):
    await run.play(run.buy("LEAF", SPEND), run.buy("FERN", SPEND), run.sell("LEAF"), ledgers=[DELAYED])
    await run.play(run.sell("FERN"), ledgers=[DELAYED])
    assert [moved(fill) for fill in run.fills(DELAYED)] == headline_moves(run) and len(headline_moves(run)) == 4
    assert all(board.delay_ms >= 2_000 and board.quote_raw == board.rows[0].arrival_raw for board in run.boards(DELAYED))


STRANGER = "0x7c0ffee000000000000000000000000000000b0b"


async def stranger_buys(ground: Ground, name: str, spend: str) -> list[Tx]:
    """What somebody else would send to buy the same token."""
    other = Run(ground, run_id="w1-other-1", wallet=STRANGER)
    await other.fill(other.buy(name, spend))
    return transactions(other.refereed[-1], STRANGER)


async def test_onc_22_on_a_driven_path_both_signs_occur_and_equal_really_executing_it_late(chain):
    """The market moves between the quote and the landing; what is credited is what a real transaction then brings."""
    signs = set()
    for round_ in range(12):
        here = chain.snapshot()
        chain.fund(WALLET, 2 * 10**18)
        ground = await Ground.on(chain)
        run = FollowedRun(ground)
        name = ("LEAF", "FERN", "MOSS", "BARK")[round_ % 4]
        await run.play(run.buy(name, SPEND), meanwhile=lambda blocks=1 + round_: chain.step(blocks), ledgers=[DELAYED])
        ended = outcome_of(run)
        await ground.close()
        if isinstance(ended, FillCredited):
            before = ground.tokens_of(name, WALLET)
            (sent,) = run.sent(DELAYED)
            chain.node.call("anvil_rollback", [1])
            chain.miner.height -= 1
            (receipt,) = chain.send(*sent)
            assert receipt["status"] == "0x1" and ground.tokens_of(name, WALLET) - before == int(ended.arrival_raw)
            headline = outcome(run.events, HEADLINE)
            signs.add((ended.arrival_raw > headline.arrival_raw) - (ended.arrival_raw < headline.arrival_raw))
        chain.revert(here)
    assert {-1, 1} <= signs


def outcome_of(run: FollowedRun, ledger: str = DELAYED):
    (found,) = [event for event in run.events if isinstance(event, FillCredited | OrderRefused | DelayedReverted | OrderSkipped) and ledger in event.ledgers]
    return found


async def a_board(run: FollowedRun):
    """The board of a delayed buy, and the book before it."""
    book = run.book(DELAYED)
    await run.play(run.buy("LEAF", SPEND), ledgers=[DELAYED])
    return run.boards(DELAYED)[0], book


@pytest.mark.parametrize(("less", "filled"), [(0, True), (1, False)])
async def test_onc_22_at_its_bound_an_order_fills_and_one_unit_below_it_reverts_and_pays_its_gas(run, less, filled):
    board, book = await a_board(run)
    least = least_of(DEFAULT, int(board.quote_raw))
    assert least * 10_000 >= int(board.quote_raw) * 9_900 > (least - 1) * 10_000
    row = replace(board.rows[0], gas_limit=0, arrival_raw=TokenRaw(least - less))
    *_, ended = settle_further(DEFAULT, replace(board, rows=(row,)), book, 0)
    assert isinstance(ended, FillCredited if filled else DelayedReverted)
    if not filled:
        assert [(post.account, int(post.amount)) for post in ended.entry.postings] == [("book", -int(row.gas_wei)), ("gas", int(row.gas_wei))]
        assert (ended.reason, ended.gas_wei, ended.evidence_sha256) == ("below_bound", row.gas_wei, row.digest)


async def test_onc_22_a_market_that_runs_away_reverts_the_order_for_its_gas(ground, run):
    ground.keep_venue("plain_oz", "v2", "weth")
    ground.chain.fund(STRANGER, 2 * 10**18)
    ground.settle()
    theirs = await stranger_buys(ground, "plain_oz", "0.5 eth")
    await run.play(run.buy("plain_oz", SPEND), meanwhile=lambda: ground.chain.send(*theirs), ledgers=[DELAYED])
    ended = outcome_of(run)
    assert isinstance(ended, DelayedReverted) and ended.arrival_raw < run.boards(DELAYED)[0].least_raw
    assert run.book(DELAYED).eth_wei == Wei(10**18) - ended.gas_wei and run.held("plain_oz", DELAYED) == 0 < run.held("plain_oz", HEADLINE)
    await run.play(run.sell("plain_oz"), ledgers=[DELAYED])
    skip = run.followed[DELAYED][-1].events[-1]
    assert isinstance(skip, OrderSkipped) and (skip.reason, skip.ledgers) == ("not_held", (DELAYED,))


async def test_onc_22_a_sale_of_another_size_is_bound_to_its_part_of_the_quote_rounded_down(ground, run):
    await run.grant("LEAF", 3 * 10**20)
    await run.grant("LEAF", 10**20, ledgers=(DELAYED,))
    await run.play(run.sell("LEAF"), ledgers=[DELAYED])
    (board,), headline = run.boards(DELAYED), run.fills(HEADLINE)[-1]
    assert (int(board.size_raw), int(board.quote_raw)) == (10**20, int(headline.arrival_raw) // 3)
    assert isinstance(outcome(run.followed[DELAYED][0].events, DELAYED), FillCredited) and run.held("LEAF", DELAYED) == 0


async def test_onc_22_a_sale_of_more_than_it_holds_sells_what_it_holds(run):
    await run.grant("LEAF", 3 * 10**20)
    await run.grant("LEAF", 10**20, ledgers=(DELAYED,))
    await run.play(run.sell("LEAF", 2 * 10**20), ledgers=[DELAYED])
    assert int(run.boards(DELAYED)[0].size_raw) == 10**20 and run.held("LEAF", DELAYED) == 0 < run.held("LEAF", HEADLINE)


@pytest.mark.parametrize("ledger", [DELAYED, IMPACT])
async def test_a_buy_that_a_further_ledger_cannot_afford_is_refused_by_its_own_arithmetic(run, ledger):
    run.fold([run.spent(Wei(8 * 10**17), ledger)])
    await run.play(run.buy("LEAF", "0.5 eth"), ledgers=[ledger])
    assert outcome(run.followed[ledger][0].events, ledger).reason == "insufficient_eth"


@pytest.mark.parametrize("ledger", [DELAYED, IMPACT])
async def test_a_further_ledger_skips_what_it_does_not_hold(run, ledger):
    await run.grant("LEAF", 10**20)
    await run.play(run.sell("LEAF"), ledgers=[ledger])
    (skip,) = run.followed[ledger][0].events
    assert (type(skip), skip.reason, run.book(ledger).eth_wei) == (OrderSkipped, "not_held", Wei(10**18))


@pytest.mark.parametrize("ledger", [DELAYED, IMPACT])
async def test_a_node_that_fails_leaves_no_fill_on_a_further_ledger(ground, run, ledger):
    real = ground.wire.missing

    def lose() -> None:
        ground.chain.mine(3)
        ground.wire.missing = {"eth_simulateV1"}

    if ledger == IMPACT:
        ground.wire.answer = fail_after_headline(ground)
    await run.play(run.buy("LEAF", SPEND), meanwhile=lose, ledgers=[ledger])
    ground.wire.missing, ground.wire.answer = real, None
    ended = outcome(run.followed[ledger][0].events, ledger)
    assert (ended.reason, run.book(ledger).eth_wei) == ("fault", Wei(10**18))


def fail_after_headline(ground: Ground):
    """Answer headline's board and gate, but no simulation that leaves a block for earlier trades, as own impact does."""
    def answer(asked: dict, told: dict) -> dict:
        if asked["method"] == "eth_simulateV1" and not asked["params"][0]["blockStateCalls"][0]["calls"]:
            return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "gone"}}
        return told

    return answer


async def test_decisions_orders_are_delayed_together_and_later_ones_after_the_filled_earlier_ones(ground, run):
    """The second buy of one decision meets the first at the later block, as at the first one."""
    ground.keep_venue("plain_oz", "v2", "weth")
    await run.play(run.buy("plain_oz", SPEND), run.buy("plain_oz", SPEND), ledgers=[DELAYED])
    first, second = run.fills(DELAYED)
    assert second.arrival_raw < first.arrival_raw
    assert len({board.pin.block for board in run.boards(DELAYED)}) == 1
    assert further_board(run.followed[DELAYED][0].events).pin.block > 0


async def test_a_rivals_own_transaction_is_what_is_delayed_and_own_impact_goes_over_our_router(ground):
    """A sale of another size than the rival's calldata names goes over our router too."""
    run = FollowedRun(ground)
    async with rival_server(ground, lambda wanted: a_good_answer(rival, wanted)) as rival:
        ground.keep_venue("ACRN", "v2", "weth")
        ground.settle()
        await played(run, rival, run.buy("ACRN", "0.5 eth"))
        headline, late, felt = (run.fills(ledger)[0] for ledger in (HEADLINE, DELAYED, IMPACT))
        await run.grant("ACRN", 10**18, ledgers=(DELAYED,))
        await played(run, rival, run.sell("ACRN"))
    assert (headline.route.split()[0], moved(late)) == ("kyberswap", moved(headline))
    assert (run.boards(DELAYED)[0].rows[0].source, felt.route.split()[0]) == ("kyberswap", "eth")
    assert (run.fills(HEADLINE)[1].route.split()[0], run.boards(DELAYED)[1].rows[0].source) == ("kyberswap", "router")


async def played(run: FollowedRun, rival: RivalServer, asked) -> None:
    """Play an order with the rival's answers beside our own rows."""
    asking = run.ground.desk.rivals = rival.rivals(SystemClock())
    await run.play(asked)
    await asking.close()


def a_good_answer(rival: RivalServer, wanted: Wanted) -> Told:
    """Trade over the whole market, paying the wallet."""
    way = next(route for route in rival.ways(wanted) if [hop.pool.venue for hop in route.hops] == ["v3"])
    swap = Call(way.swap.to, way.swap.data, way.swap.value_wei)
    given = [moves(wanted.token, wanted.wallet, ROUTER, wanted.amount), Call(wanted.token, calldata.approve(way.swap.to))] if wanted.side == "sell" else []
    return Told(1, listed([*given, swap]), ROUTER)


@pytest.mark.parametrize(("short_wei", "ended"), [(0, FillCredited), (1, OrderRefused)])
async def test_a_further_ledger_keeps_its_own_exit_reserve_to_the_wei(run, short_wei, ended):
    board, book = await a_board(run)
    reserve = exit_reserve_wei(DEFAULT, book, board.token, board.gas_price_wei)
    needed = Wei(int(board.size_raw)) + board.rows[0].gas_wei + reserve
    *_, event = settle_further(DEFAULT, board, replace(book, eth_wei=needed - Wei(short_wei)), 0)
    assert isinstance(event, ended) and getattr(event, "reason", "insufficient_eth") == "insufficient_eth"


@pytest.mark.parametrize(("held_wei", "ended"), [(0, DelayedReverted), (1, OrderRefused)])
async def test_a_revert_that_the_book_cannot_pay_for_is_refused(run, held_wei, ended):
    """Of a sale: a buy that could not be paid was refused before."""
    await run.grant("LEAF", 10**20)
    await run.grant("LEAF", 10**20, ledgers=(DELAYED,))
    await run.play(run.sell("LEAF"), ledgers=[DELAYED])
    board = run.boards(DELAYED)[-1]
    row = replace(board.rows[0], gas_limit=0, arrival_raw=board.least_raw - TokenRaw(1))
    book = replace(run.book(DELAYED), eth_wei=max(row.gas_wei, fee_wei(row.swap_gas + row.approve_gas, board.gas_price_wei)) - Wei(held_wei))
    *_, event = settle_further(DEFAULT, replace(board, rows=(row,)), book, 0)
    assert isinstance(event, ended)


TOKENS = ("LEAF", "FERN", "tax_5", "shares", "gons", "max_wallet", "honeypot", "plain_usdg_v2")
ORDERS = st.tuples(st.sampled_from(["buy", "buy", "sell"]), st.sampled_from(TOKENS), st.sampled_from([10**14, 10**16, 10**17, 4 * 10**17]))
HISTORIES = st.lists(st.tuples(st.lists(ORDERS, min_size=1, max_size=3), st.integers(0, 4)), min_size=2, max_size=5)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_any_history_keeps_further_ledgers_true(chain, history):
    """One outcome for each order that headline filled, no book below zero, and boards settle again to the same events."""
    mark = chain.snapshot()
    try:
        run = asyncio.run(lived(chain, history))
    finally:
        chain.revert(mark)
    filled = [fill.order_id for fill in run.fills(HEADLINE)]
    for ledger in FURTHER_LEDGERS:
        assert [ended_of(refereed.events, ledger).order_id for refereed in run.followed[ledger]] == filled
    again = folded(*run.events)
    assert {ledger: again.of(run.run_id, ledger) for ledger in FURTHER_LEDGERS} == {ledger: run.book(ledger) for ledger in FURTHER_LEDGERS}


async def lived(chain, history) -> FollowedRun:
    ground = await Ground.on(chain)
    run = FollowedRun(ground)
    for orders, blocks in history:
        asked = [run.buy(name, Wei(size)) if side == "buy" else run.sell(name) for side, name, size in orders]
        await run.play(*asked, meanwhile=lambda blocks=blocks: (chain.step(blocks), chain.mine(3)))
    books = Books()
    for event in run.events:
        if isinstance(event, FurtherBoardTaken):
            again = settle_further(DEFAULT, event, books.of(run.run_id, event.ledgers[0]), event.ts_ms)
            at = run.events.index(event) + 1
            assert tuple(run.events[at : at + len(again)]) == again
        books.apply(event)
    await ground.close()
    return run


def ended_of(events, ledger: str):
    (found,) = [event for event in events if isinstance(event, OrderOutcome) and ledger in event.ledgers]
    return found


async def test_a_rival_whose_transaction_does_something_else_by_then_is_a_fault_and_no_missing_route(run):
    board, book = await a_board(run)
    row = replace(board.rows[0], source="kyberswap", status="failed", reason="moves_other_tokens", arrival_raw=None)
    (ended,) = settle_further(DEFAULT, replace(board, rows=(row,)), book, 0)
    assert (ended.reason, ended.detail) == ("fault", "moves_other_tokens")


async def test_a_rivals_transaction_that_reverts_by_then_is_paid_for(run):
    board, book = await a_board(run)
    row = replace(board.rows[0], source="kyberswap", status="reverted", reason="reverted: expired", arrival_raw=None)
    (ended,) = settle_further(DEFAULT, replace(board, rows=(row,)), book, 0)
    assert (type(ended), ended.reason, ended.detail, ended.arrival_raw, ended.gas_wei) == (DelayedReverted, "reverted", "reverted: expired", None, row.gas_wei)
