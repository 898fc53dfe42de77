"""Two ledgers on one board: what they share, where they part, and that any history of orders keeps both true."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgers.events import Event, encode
from ledgers.money import Wei
from referee.onchain.credit import settle
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, BoardTaken, FillCredited, GateTaken, OrderNotFilled, OrderRefused
from referee.onchain.rules import DEFAULT
from tests.onchain.given import folded, outcome, said
from tests.onchain.ground import Ground, Run, boards


@pytest.fixture
def run(ground) -> Run:
    return Run(ground)


def simulations(ground: Ground) -> list[int]:
    """Simulations of each round trip since the last look."""
    return [trip["eth_simulateV1"] for trip in ground.trips()]


# --- what is shared -----------------------------------------------------------------------------------------------------


async def test_ledgers_with_the_same_size_share_one_simulation_of_each_route(ground, run):
    """And one of what is held; the sale before it leaves nothing of the market to be read."""
    await run.fill(run.buy("LEAF", "0.1 eth"))
    desk = await run.sit_down()
    await run.order(desk, run.sell("LEAF", run.held("LEAF") // 2))
    ground.trips()
    events = await run.order(desk, run.sell("LEAF"))
    (board,) = boards(events)
    assert (board.ledgers, simulations(ground)) == (LEDGERS, [1, len(board.rows)])


async def test_ledgers_with_different_sizes_are_simulated_in_the_same_round_trip(ground, run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    await run.grant("LEAF", 10**18, ledgers=(PERMISSIVE,))
    desk = await run.sit_down()
    await run.order(desk, run.sell("LEAF", run.held("LEAF") // 2))
    ground.trips()
    events = await run.order(desk, run.sell("LEAF"))
    assert ([board.ledgers for board in boards(events)], simulations(ground)) == ([(HEADLINE,), (PERMISSIVE,)], [1, 1, 2 * len(boards(events)[0].rows)])


async def test_ledgers_with_other_holdings_but_the_same_buy_gate_it_in_the_same_round_trip(ground, run):
    await run.grant("LEAF", 10**18, ledgers=(PERMISSIVE,))
    await run.fill(run.buy("FERN", "0.1 eth"))
    desk = await run.sit_down()
    ground.trips()
    events = await run.order(desk, run.buy("FERN", "0.1 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["filled", "filled"] and len(simulations(ground)) == 2


async def test_eth_alone_does_not_part_the_ledgers(ground, run):
    """Unprovable buys cost permissive ETH; a token that neither holds is still simulated once."""
    await run.fill(run.buy("checkpointed", "0.1 eth"), ledger=PERMISSIVE)
    await run.decide(run.sell("checkpointed"))
    (events,) = await run.decide(run.buy("LEAF", "0.1 eth"))
    (board,) = boards(events)
    assert board.ledgers == LEDGERS and run.book(HEADLINE).eth_wei != run.book(PERMISSIVE).eth_wei


async def test_onc_27_each_ledger_leaves_a_reserve_for_its_own_holdings(ground, run):
    """A holding that no override carries counts too: permissive has one more exit to pay."""
    await run.fill(run.buy("checkpointed", "0.1 eth"), ledger=PERMISSIVE)
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    reserves = {board.ledgers: int(board.exit_reserve_wei) for board in boards(events)}
    assert reserves == {(HEADLINE,): 10**13, (PERMISSIVE,): 2 * 10**13}


# --- where they part ----------------------------------------------------------------------------------------------------


async def test_a_ledger_that_does_not_hold_is_skipped_and_the_other_sells(run):
    await run.grant("LEAF", 10**20, ledgers=(PERMISSIVE,))
    (events,) = await run.decide(run.sell("LEAF"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["not_held", "filled"]


async def test_a_ledger_that_holds_too_little_is_skipped_and_the_other_sells(run):
    await run.grant("LEAF", 10**18)
    await run.grant("LEAF", 10**20, ledgers=(HEADLINE,))
    (events,) = await run.decide(run.sell("LEAF", 10**20))
    assert [said(events, ledger) for ledger in LEDGERS] == ["filled", "insufficient_tokens"]


async def test_a_ledger_that_cannot_afford_is_skipped_and_the_other_buys(run):
    await run.fill(run.buy("checkpointed", "0.6 eth"), ledger=PERMISSIVE)
    (events,) = await run.decide(run.buy("LEAF", "0.5 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["filled", "insufficient_eth"]


async def test_sell_all_sells_what_each_ledger_holds(ground, run):
    await run.grant("LEAF", 10**20)
    await run.grant("LEAF", 3 * 10**19, ledgers=(PERMISSIVE,))
    (events,) = await run.decide(run.sell("LEAF"))
    spent = {ledger: int(outcome(events, ledger).spent_raw) for ledger in LEDGERS}
    assert spent == {HEADLINE: 10**20, PERMISSIVE: 13 * 10**19}
    assert [run.held("LEAF", ledger) for ledger in LEDGERS] == [0, 0]


async def test_an_unprovable_token_can_be_bought_sold_and_bought_again_by_permissive_alone(ground, run):
    ground.keep_venue("two_mappings", "v2", "weth")
    for asked in (run.buy("two_mappings", "0.1 eth"), run.sell("two_mappings"), run.buy("two_mappings", "0.05 eth")):
        await run.decide(asked)
    assert run.held("two_mappings", PERMISSIVE) > 0 == run.held("two_mappings", HEADLINE)
    assert run.book(PERMISSIVE).held(run.ground.token("two_mappings")).cause == "not told: where a pool's balance is kept"
    assert run.book(HEADLINE).eth_wei == Wei(10**18)


async def test_a_token_of_which_one_trade_was_not_told_stays_unprovable_where_it_was_bought_and_nowhere_else(ground, run):
    """Bought in a pool whose balance is not found, then sold out and bought in another: what the first buy wrote is known no better."""
    name = "checkpointed"
    ground.keep_venue(name, "v2", "weth")
    assert await run.say(run.buy(name, "0.1 eth"), run.sell(name), ledger=PERMISSIVE) == [
        f"filled {side}_UNPROVEN:not told: where a pool's balance is kept" for side in ("BUY", "EXIT")
    ]  # fmt: skip
    assert run.held(name, PERMISSIVE) == 0
    ground.keep_venue(name, "v3", "weth")
    ends = [[said(events, ledger) for ledger in LEDGERS] for asked in ("buy", "sell") for events in await run.decide(run.buy(name, "0.1 eth") if asked == "buy" else run.sell(name))]
    assert ends == [["filled", "filled BUY_UNPROVEN:words_untold"], ["filled", "filled EXIT_UNPROVEN:words_untold"]]


# --- any history --------------------------------------------------------------------------------------------------------

TOKENS = ("LEAF", "RUNE", "tax_5", "reflection", "gons", "checkpointed", "registered_buyers", "honeypot", "max_wallet", "no_return")
BUYS = st.tuples(st.just("buy"), st.sampled_from(TOKENS), st.sampled_from([10**12, 10**15, 3 * 10**16, 10**17, 45 * 10**16]))
SALES = st.tuples(st.just("sell"), st.sampled_from(TOKENS), st.sampled_from([0, 1, 2, 3, 10**6]))
"""A sale of nothing stands for all; else of one n-th of what headline, or permissive where only it holds any, counts."""
HISTORIES = st.lists(st.lists(BUYS | SALES, min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_any_history_keeps_both_ledgers_true(chain, history):
    """No book below zero, one outcome for each order and ledger, books equal a fold and a recount, boards settle again."""
    mark = chain.snapshot()
    try:
        run = asyncio.run(lived(chain, history))
    finally:
        chain.revert(mark)
    again = folded(*run.events)
    assert {ledger: again.of(run.run_id, ledger) for ledger in LEDGERS} == run.books.both(run.run_id)
    assert {ledger: recounted(run.events, ledger) for ledger in LEDGERS} == {ledger: counted(run, ledger) for ledger in LEDGERS}


async def lived(chain, history: Sequence[Sequence[tuple[str, str, int]]]) -> Run:
    ground = await Ground.on(chain)
    run = Run(ground)
    for decision in history:
        desk = await run.sit_down()
        for index, (side, name, size) in enumerate(decision):
            before = run.books.both(run.run_id)
            asked = replace(run.buy(name, Wei(size)) if side == "buy" else run.sell(name, part_of(run, name, size)), index=index)
            check_order(await run.order(desk, asked), before)
    await ground.close()
    return run


def part_of(run: Run, name: str, size: int) -> int | None:
    held = run.held(name, HEADLINE) or run.held(name, PERMISSIVE)
    return max(held // size, 1) if size and held < 10**40 else None


def check_order(events: Sequence[Event], before) -> None:
    outcomes = [event for event in events if isinstance(event, (FillCredited, OrderRefused, OrderNotFilled))]
    assert sorted(ledger for event in outcomes for ledger in event.ledgers) == sorted(LEDGERS)
    for board in (event for event in events if isinstance(event, BoardTaken)):
        gates = [event for event in events if isinstance(event, GateTaken) and event.ledgers == board.ledgers]
        at = events.index(board) + (1 + len(gates))
        again = settle(DEFAULT, board, gates, before, board.ts_ms)
        assert events[at : at + len(again)] == again


def counted(run: Run, ledger: str) -> dict[str, int]:
    book = run.book(ledger)
    held = {holding.token + ("/shares" if holding.shares else ""): int(holding.units_raw) for holding in book.holdings}
    return {"eth": int(book.eth_wei)} | held


def recounted(events: Iterable[Event], ledger: str) -> dict[str, int]:
    """The same from the events' JSON, by other means."""
    sums: Counter = Counter()
    for event in events:
        body = orjson.loads(encode(event))
        for posting in body.get("entry", {}).get("postings", ()) if ledger in body.get("entry", {}).get("ledgers", ()) else ():
            sums[posting["asset"]] += int(posting["amount"]) * (posting["account"] == "book")
    return {asset: amount for asset, amount in sums.items() if amount or asset == "eth"}
