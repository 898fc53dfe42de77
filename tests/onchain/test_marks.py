"""ONC-12: a mark and the liquidation are one function, all holdings sold one after another in simulation, net of gas."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from chain.devnet.calls import Tx, encode
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from ledgers.postings import imbalance
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, WindowLiquidated
from referee.onchain.marks import Valued
from referee.onchain.valuation import liquidations
from tests.onchain.attacker import deployed
from tests.onchain.given import T0, a_pin, wei
from tests.onchain.ground import Ground, Run


KEPT_CODE = "0x" + "c0de" * 10


@pytest.fixture
def run(ground) -> Run:
    return Run(ground)


def status(valued: Valued, token: str) -> str:
    return next(mark.status for mark in valued.holdings if mark.token == token)


def values(valued: Valued) -> dict[str, int]:
    return {mark.token: int(mark.value_wei) for mark in valued.holdings}


# --- what a book is worth -----------------------------------------------------------------------------------------------


async def test_onc_12_eth_alone_is_worth_itself_and_asks_nothing(ground, run):
    pin = await ground.desk.pin()
    ground.trips()
    (valued,) = await ground.desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    assert (valued.value_wei, valued.holdings, ground.trips()) == (wei("1 eth"), (), [])


async def test_onc_12_a_holding_is_worth_what_selling_all_of_it_brings_less_gas(run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    valued = await run.worth()
    sale = run.copy()
    (fill,) = await sale.fill(sale.sell("LEAF"))
    (mark,) = valued.holdings
    assert (mark.status, mark.gross_wei, mark.gas_wei) == ("proven", Wei(int(fill.arrival_raw)), fill.gas_wei)
    assert valued.value_wei == sale.book().eth_wei


async def test_onc_12_a_paid_approval_is_not_paid_again_in_a_mark(run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    (before,) = (await run.worth()).holdings
    await run.fill(run.sell("LEAF", 10**18))
    (after,) = (await run.worth()).holdings
    assert after.gas_wei < before.gas_wei


async def test_onc_12_two_holdings_that_share_a_pool_are_worth_less_together_than_apart(ground):
    """Both are sold through one dollar pool."""
    names, spend = ("plain_usdg_v2", "plain_usdg_v3"), "0.4 eth"
    dollars = {ground.network.weth, ground.network.usdg}
    tokens = {ground.token(name) for name in names}
    ground.keep(lambda pool: bool(tokens & {pool.token0, pool.token1}) or ({pool.token0, pool.token1} == dollars and pool.venue == "v2"))
    both, apart = Run(ground), [Run(ground), Run(ground)]
    for name, alone in zip(names, apart, strict=True):
        await both.fill(both.buy(name, spend))
        await alone.fill(alone.buy(name, spend))
    together = sum(values(await both.worth()).values())
    assert together < sum([sum(values(await alone.worth()).values()) for alone in apart])


async def test_onc_12_holdings_are_sold_by_their_last_mark_the_largest_first(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"), run.buy("FERN", "0.05 eth"), run.buy("MOSS", "0.02 eth"))
    first = [mark.token for mark in (await run.worth()).holdings]
    second = [mark.token for mark in (await run.worth()).holdings]
    assert first == sorted(first) and second == [ground.token(name) for name in ("FERN", "MOSS", "LEAF")]


async def test_onc_12_a_desk_that_takes_over_sells_in_the_order_of_the_recorded_marks(ground, run):
    """After a resume the marks come from the journal, not from this process."""
    await run.fill(run.buy("LEAF", "0.01 eth"), run.buy("FERN", "0.05 eth"))
    marks = (await run.worth()).holdings
    ground.desk.last_wei.clear()
    for ledger in LEDGERS:
        ground.desk.remember(run.run_id, ledger, marks)
    assert [mark.token for mark in (await run.worth()).holdings] == [ground.token(name) for name in ("FERN", "LEAF")]


async def test_onc_12_a_sell_out_stays_below_the_nodes_gas_cap(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"), run.buy("FERN", "0.05 eth"))
    whole = await run.worth()
    for gas_cap, most in ((0, 500), (50_000_000, 125), (1, 1), (10**9, 500)):
        ground.desk.fit(gas_cap=gas_cap, headers_sealed=True)
        assert ground.desk.holdings_per_request_max == most or gas_cap == 0
    ground.desk.fit(gas_cap=1, headers_sealed=True)
    assert values(await run.worth()) == values(whole)


async def test_onc_12_an_unmarked_holding_comes_last(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    await run.worth()
    await run.fill(run.buy("FERN", "0.05 eth"))
    assert [mark.token for mark in (await run.worth()).holdings] == [ground.token("LEAF"), ground.token("FERN")]


async def test_onc_12_the_order_is_the_runs_own(ground):
    rich, poor = Run(ground), Run(ground, run_id="w1-b-1")
    await rich.fill(rich.buy("LEAF", "0.01 eth"), rich.buy("FERN", "0.05 eth"))
    await rich.worth()
    await poor.fill(poor.buy("LEAF", "0.05 eth"), poor.buy("FERN", "0.01 eth"))
    tokens = [mark.token for mark in (await poor.worth()).holdings]
    assert tokens == sorted(tokens)


async def test_onc_12_the_order_is_the_ledgers_own(ground, run):
    """Permissive holds more of what headline holds less of: each sells its own largest first, from its own last mark."""
    await run.grant("LEAF", 10**17)
    await run.grant("FERN", 10**20)
    await run.grant("LEAF", 10**22, ledgers=(PERMISSIVE,))
    await run.value()
    firsts = {value.ledgers: value.holdings[0].token for value in await run.value()}
    largest = {value.ledgers: max(value.holdings, key=lambda mark: mark.value_wei).token for value in await run.value()}
    assert firsts == largest and firsts[HEADLINE,] != firsts[PERMISSIVE,]


# --- what counts 0 ------------------------------------------------------------------------------------------------------


async def test_onc_12_a_sale_that_reverts_counts_0_and_is_named(ground, run):
    await run.grant("honeypot", 10**20)
    valued = await run.worth()
    (mark,) = valued.holdings
    assert (mark.status, mark.gross_wei, mark.value_wei, valued.value_wei) == ("reverted", Wei(0), Wei(0), wei("1 eth"))
    assert mark.reason.startswith("reverted")


async def test_onc_12_a_revert_does_not_spoil_the_others(run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    alone = values(await run.worth())
    await run.grant("honeypot", 10**20)
    assert {token: value for token, value in values(await run.worth()).items() if value} == alone


async def test_onc_12_a_sale_below_its_gas_counts_0_and_is_named(ground, run):
    await run.grant("plain_oz", 10**13)
    (mark,) = (await run.worth()).holdings
    assert (mark.status, mark.value_wei) == ("below_gas", Wei(0)) and Wei(0) < mark.gross_wei < mark.gas_wei


async def test_onc_12_the_border_of_gas_in_a_mark(ground):
    """The least amount that brings more than its gas counts, the largest that does not counts 0."""
    ground.keep_venue("plain_oz", "v3", "weth")

    async def mark(units: int):
        run = Run(ground)
        await run.grant("plain_oz", units)
        return (await run.worth()).holdings[0]

    low, high = 10**13, 10**18
    while high - low > 10**9:
        middle = (low + high) // 2
        low, high = (middle, high) if (await mark(middle)).status == "below_gas" else (low, middle)
    below, above = await mark(low), await mark(high)
    assert below.status == "below_gas" and below.gross_wei <= below.gas_wei and above.status == "proven" and above.gross_wei > above.gas_wei


async def test_onc_12_a_token_without_a_pool_counts_0_and_is_named(ground, run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    ground.keep(lambda pool: False)
    valued = await run.worth()
    assert (status(valued, ground.token("LEAF")), valued.value_wei) == ("no_route", run.book().eth_wei)


async def test_onc_11_an_unprovable_exit_counts_its_quote_less_gas_and_is_shown_apart(ground, run):
    ground.keep_venue("checkpointed", "v2", "weth")
    await run.fill(run.buy("checkpointed", "0.1 eth"), ledger=PERMISSIVE)
    valued, plain = await run.worth(PERMISSIVE), await run.worth(HEADLINE)
    (mark,) = valued.holdings
    assert (mark.status, mark.reason, valued.unproven_wei) == ("unprovable", "not told: where a pool's balance is kept", mark.value_wei)
    assert mark.gas_wei == Wei(260_000 * 10_000_000) and mark.value_wei > wei("0.09 eth")
    assert (plain.holdings, plain.unproven_wei, plain.ledgers) == ((), Wei(0), (HEADLINE,))


async def test_onc_11_a_holding_whose_words_are_untold_is_a_claim_on_permissive_and_unknown_on_headline(ground, run):
    await run.grant("LEAF", 10**20, told=False)
    (headline,), (permissive,) = [(await run.worth(ledger)).holdings for ledger in LEDGERS]
    assert (headline.status, headline.reason, headline.gross_wei, headline.value_wei) == ("unknown", "words_untold", Wei(0), Wei(0))
    assert (permissive.status, permissive.reason, permissive.value_wei > Wei(0)) == ("unprovable", "words_untold", True)
    assert ((await run.worth(HEADLINE)).unproven_wei, (await run.worth(PERMISSIVE)).unproven_wei) == (Wei(0), permissive.value_wei)


async def test_onc_11_what_a_token_keeps_of_its_holder_is_in_the_mark(run):
    """A quarter of an early sale is kept."""
    await run.fill(run.buy("early_seller", "0.1 eth"))
    (mark,) = (await run.worth()).holdings
    (sold,) = await run.fill(run.sell("early_seller"))
    assert (mark.status, mark.gross_wei) == ("proven", Wei(int(sold.arrival_raw))) and mark.value_wei < wei("0.08 eth")


async def test_a_route_that_dies_is_left_for_the_next(ground, run):
    """The v3 pool of this token promises as much and takes no taxed sale."""
    ground.keep(lambda pool: ground.token("tax_10") in (pool.token0, pool.token1))
    await run.grant("tax_10", 10**20)
    (mark,) = (await run.worth()).holdings
    assert mark.status == "proven" and ">v2" in mark.route


async def test_a_token_that_moved_its_balances_is_worth_what_it_left_of_them(ground, run):
    """Nothing, to a real wallet as well."""
    ground.keep_venue("plain_oz", "v2", "weth")
    await run.fill(run.buy("plain_oz", "0.1 eth"))
    code = ground.chain.node.call("eth_getCode", [ground.token("plain_solady"), "latest"])
    ground.chain.node.call("anvil_setCode", [ground.token("plain_oz"), code])
    ground.chain.mine(2)
    ground.settle()
    valued = await run.worth()
    (mark,) = valued.holdings
    assert (mark.status, mark.reason, mark.amount_raw) == ("no_route", "the wallet holds none of it any more", TokenRaw(0))
    assert valued.value_wei == run.book().eth_wei


# --- faults -------------------------------------------------------------------------------------------------------------


async def test_onc_12_a_fault_is_never_a_value(ground, run):
    await run.fill(run.buy("LEAF", "0.1 eth"))
    ground.wire.missing = {"eth_simulateV1"}
    with pytest.raises(ChainFault):
        await run.value()


async def test_onc_12_what_one_token_does_leaves_the_others_their_value(ground, run):
    """A token that gives its seller a wei without a trace makes no sense of its own sale; it stands alone with that."""
    await run.fill(run.buy("LEAF", "0.1 eth"), run.buy("FERN", "0.1 eth"), run.buy("plain_oz", "0.1 eth"))
    before = {mark.token: mark for mark in (await run.worth()).holdings}
    given = deployed(ground, "Gift", KEPT_CODE)
    token, node = ground.token("plain_oz"), ground.chain.node
    node.call("anvil_setCode", [KEPT_CODE, node.call("eth_getCode", [token, "latest"])])
    node.call("anvil_setCode", [token, node.call("eth_getCode", [given, "latest"])])
    node.call("anvil_setBalance", [token, hex(10**6)])
    ground.chain.mine(2)
    ground.settle()
    after = {mark.token: mark for mark in (await run.worth()).holdings}
    assert (after[token].status, int(after[token].value_wei)) == ("reverted", 0) and "differ" in after[token].reason
    for name in ("LEAF", "FERN"):
        assert (after[ground.token(name)].status, after[ground.token(name)].gross_wei) == ("proven", before[ground.token(name)].gross_wei)


async def test_onc_12_an_answer_whose_numbers_disagree_is_a_fault(ground, run):
    await run.fill(run.buy("LEAF", "0.1 eth"))

    def without_native_logs(asked: dict, told: dict) -> dict:
        for call in told["result"][0]["calls"] if asked["method"] == "eth_simulateV1" else ():
            call["logs"] = [log for log in call["logs"] if log["address"] != "0x" + "ee" * 20]
        return told

    ground.wire.answer = without_native_logs
    with pytest.raises(ChainFault):
        await run.value()


# --- one request --------------------------------------------------------------------------------------------------------


async def test_onc_12_many_holdings_of_both_ledgers_are_two_round_trips(ground, run):
    names = ("LEAF", "FERN", "MOSS", "BARK", "plain_oz", "tax_5")
    await run.fill(*[run.buy(name, "0.01 eth") for name in names])
    await run.value()
    pin = await ground.desk.pin()
    ground.trips()
    valued = await ground.desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    assert [set(trip) for trip in ground.trips()] == [{"eth_simulateV1"}] * 2
    assert [value.ledgers for value in valued] == [LEDGERS] and len(valued[0].holdings) == len(names)


async def test_amounts_of_any_number_of_tokens_are_asked_in_one_round_trip(ground, run):
    """Then all is sold, by the wallet's own reading and by another random word, beside the quotes."""
    await run.fill(*[run.buy(name, "0.01 eth") for name in ("shares", "gons", "interest", "reflection", "LEAF")])
    await run.value()
    pin = await ground.desk.pin()
    ground.trips()
    await ground.desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    assert ground.trips() == [Counter(eth_simulateV1=1), Counter(eth_simulateV1=3)]


async def test_ledgers_that_hold_different_things_are_valued_apart(run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    await run.fill(run.buy("checkpointed", "0.01 eth"), ledger=PERMISSIVE)
    assert [value.ledgers for value in await run.value()] == [(HEADLINE,), (PERMISSIVE,)]


# --- liquidation --------------------------------------------------------------------------------------------------------


async def test_onc_12_a_liquidation_leaves_its_value_as_eth_and_only_what_could_not_be_sold(ground, run):
    await run.fill(*[run.buy(name, "0.05 eth") for name in ("LEAF", "RUNE", "PINE", "tax_5", "reflection", "shares", "gons")])
    await run.fill(run.buy("checkpointed", "0.05 eth"), ledger=PERMISSIVE)
    await run.grant("honeypot", 10**20)
    await run.grant("plain_oz", 10**12)
    valued = await run.value()
    pin = await ground.desk.pin()
    run.fold(liquidations(run.run_id, pin, valued, False, T0))
    for value in valued:
        for ledger in value.ledgers:
            assert run.book(ledger).eth_wei == value.value_wei
            assert {holding.token for holding in run.book(ledger).holdings} == {ground.token("honeypot"), ground.token("plain_oz")}
        assert not imbalance(value.entry.postings) and sha256_hex(value.evidence) == value.digest


async def test_onc_16_a_run_that_held_only_eth_is_liquidated_to_its_stake_exactly(ground, run):
    (valued,) = await run.value()
    (event,) = liquidations(run.run_id, a_pin(), (valued,), False, T0)
    assert isinstance(event, WindowLiquidated) and (event.value_wei, event.entry.postings) == (wei("1 eth"), ())


# --- shares -------------------------------------------------------------------------------------------------------------

REBASED = ("shares", "gons")


@pytest.mark.parametrize("name", REBASED)
@pytest.mark.parametrize("percent", [50, 93, 130])
async def test_shares_held_over_a_rebase_are_worth_and_bring_what_they_have_become(ground, run, name, percent):
    """The book counts shares and does not change; amount, mark and sale do."""
    (bought,) = await run.fill(run.buy(name, "0.1 eth"))
    units = run.held(name)
    supply = int(ground.chain.node.call("eth_call", [{"to": ground.token(name), "data": "0x18160ddd"}, "latest"]), 16)
    ground.owner(name, "rebase(uint256)", supply * percent // 100)
    sync_pairs(ground, name)
    ground.settle()
    (mark,) = (await run.worth()).holdings
    assert run.held(name) == units
    assert abs(int(mark.amount_raw) - int(bought.arrival_raw) * percent // 100) <= 2
    (sold,) = await run.fill(run.sell(name))
    assert (sold.spent_raw, Wei(int(sold.arrival_raw)), run.held(name) <= 2 * units // int(mark.amount_raw)) == (mark.amount_raw, mark.gross_wei, True)


def sync_pairs(ground: Ground, name: str) -> None:
    """Let the pair take note of its own rebased balance."""
    for pool in ground.graph.pools_of(ground.token(name)):
        ground.chain.send(Tx(sender=ground.chain.deployment.cast.visitor, to=pool.key, data=encode("sync()"), gas=500_000))


async def test_interest_grows_the_amount_and_not_the_book(ground, run):
    (bought,) = await run.fill(run.buy("interest", "0.1 eth"))
    units = run.held("interest")
    ground.chain.mine(600)
    ground.settle()
    (mark,) = (await run.worth()).holdings
    assert run.held("interest") == units and mark.amount_raw > bought.arrival_raw
    (sold,) = await run.fill(run.sell("interest"))
    assert (sold.spent_raw, run.held("interest") <= 1) == (mark.amount_raw, True)


@pytest.mark.parametrize("like", ["plain_oz", "balance_reverts"])
async def test_shares_that_say_nothing_any_more_are_never_taken_for_tokens(ground, run, like):
    """A count of fragments is no amount: it would be worth the whole pool."""
    await run.fill(run.buy("gons", "0.1 eth"))
    code = ground.chain.node.call("eth_getCode", [ground.token(like), "latest"])
    ground.chain.node.call("anvil_setCode", [ground.token("gons"), code])
    ground.chain.mine(2)
    ground.settle()
    valued = await run.worth()
    assert (status(valued, ground.token("gons")), valued.value_wei) == ("no_route", run.book().eth_wei)
    assert await run.say(run.sell("gons"), run.buy("gons", "0.01 eth")) == ["not_held", "reverted"]


@pytest.mark.parametrize("name", ["shares", "gons", "interest", "reflection"])
async def test_a_part_of_shares_is_sold_as_a_part(run, name):
    await run.fill(run.buy(name, "0.1 eth"))
    (mark,), units = (await run.worth()).holdings, run.held(name)
    await run.fill(run.sell(name, int(mark.amount_raw) // 4))
    assert abs(run.held(name) - units * 3 // 4) <= units // 10**15
    assert replace(run.book(), holdings=()).eth_wei > wei("0.92 eth")
