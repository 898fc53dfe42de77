"""The board on the real local chain: where it stands, what it asks, what it credits, and what it does when it cannot prove."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from chain.second_look import TELLER
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, BoardTaken, FillCredited, RouteSimulated
from referee.onchain.rules import DEFAULT, FIRST
from tests.onchain.given import outcome, said, wei
from tests.onchain.ground import WALLET, Ground, Run, boards, gates, transactions


@pytest.fixture
def run(ground) -> Run:
    return Run(ground)


# --- ONC-07: the block to stand on --------------------------------------------------------------------------------------


async def test_onc_07_the_pin_is_so_far_behind_the_head_as_the_network_needs(ground):
    pin = await ground.desk.pin()
    assert (pin.head_block, pin.block) == (ground.chain.height, ground.chain.height - ground.network.pin_depth)
    assert pin.block_hash == ground.chain.block_hash(pin.block)


async def test_onc_07_a_pin_follows_the_head_with_one_round_trip_when_nothing_moved(ground):
    await ground.desk.pin()
    ground.trips()
    await ground.desk.pin()
    assert ground.trips() == [Counter(eth_getBlockByNumber=2)]


async def test_onc_07_a_network_without_depth_pins_its_head(ground):
    ground.desk.network = replace(ground.network, pin_depth=0)
    pin = await ground.desk.pin()
    assert pin.block == pin.head_block == ground.chain.height


async def lagging(ground: Ground, lag_ms: int) -> str:
    """Pin with a clock that is so far ahead of the block to be pinned."""
    pin = await ground.desk.pin()
    ground.desk.clock_offset_ms = pin.block_ts_s * 1_000 + lag_ms - ground.clock.now_ms()
    try:
        await ground.desk.pin()
    except ChainFault as fault:
        return fault.reason
    return "pinned"


LAG_MS_MAX = DEFAULT.pin_lag_ms_max + 1_000 + 1_000
"""The rule's lag, one block of depth, and the second that block times are rounded to."""


@pytest.mark.parametrize("lag_ms, end", [
    (LAG_MS_MAX, "pinned"), (LAG_MS_MAX + 1, "behind"), (-DEFAULT.pin_lag_ms_max, "pinned"), (-DEFAULT.pin_lag_ms_max - 1, "ahead"),
])  # fmt: skip
async def test_onc_07_a_block_too_far_behind_the_clock_is_no_pin(ground, lag_ms, end):
    assert await lagging(ground, lag_ms) == end


@pytest.mark.parametrize("age_ms, end", [(30_000, "filled"), (30_001, "board_too_old")])
@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_onc_07_age_runs_from_the_pinned_blocks_time_to_the_fill(ground, run, side, age_ms, end):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    desk = await run.sit_down()
    pin = await ground.desk.pin()
    ground.desk.clock_offset_ms = pin.block_ts_s * 1_000 + age_ms - ground.clock.now_ms()
    events = await run.order(desk, run.buy("LEAF", "0.01 eth") if side == "buy" else run.sell("LEAF"))
    assert (boards(events)[0].age_ms, said(events)) == (age_ms, end)


# --- round trips --------------------------------------------------------------------------------------------------------


async def test_an_order_in_a_known_market_is_two_round_trips(ground, run):
    """A buy is tried and gated; before a sale, the token is asked what is held, once for both ledgers."""
    desk = await run.sit_down()
    await run.order(desk, run.buy("LEAF", "0.01 eth"))
    ground.trips()
    await run.order(desk, run.buy("LEAF", "0.01 eth"))
    buying = ground.trips()
    await run.order(desk, run.sell("LEAF", run.held("LEAF") // 2))
    ground.trips()
    (board,) = boards(await run.order(desk, run.sell("LEAF")))
    assert [set(trip) for trip in buying] == [{"eth_simulateV1"}] * 2
    assert ground.trips() == [Counter(eth_simulateV1=1), Counter(eth_simulateV1=len(board.rows))]


async def test_what_is_known_of_a_block_is_not_asked_for_again(ground, run):
    seen = []
    for twin in (run, Run(ground)):
        ground.trips()
        await twin.fill(twin.buy("LEAF", "0.02 eth"))
        seen.append(sum(map(sum, (trip.values() for trip in ground.trips()))))
    assert seen[1] < seen[0] // 2


async def test_an_order_refused_on_admission_asks_nothing(ground, run):
    desk = await run.sit_down()
    await run.order(desk, run.buy("LEAF", "0.01 eth"))
    ground.trips()
    assert said(await run.order(desk, run.buy("LEAF", "2 eth"))) == "insufficient_eth"
    assert ground.trips() == []


async def test_a_board_has_a_row_for_every_candidate_route_and_each_was_simulated(ground, run):
    (events,) = await run.decide(run.buy("plain_oz", "0.01 eth"))
    rows = boards(events)[0].rows
    assert len(rows) == len({row.route for row in rows}) >= 6
    assert {row.status for row in rows} == {"proven"}


# --- ONC-04, ONC-10: what is credited -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LEAF", "BARK", "MOSS", "RUNE", "PINE", "DUSK"])
async def test_onc_04_a_buy_spends_and_a_sale_gives_exactly_the_size(run, name):
    (bought,) = await run.fill(run.buy(name, wei("12,345,678,901,234,567 wei")))
    assert int(bought.spent_raw) == 12_345_678_901_234_567
    part = run.held(name) // 3
    (fill,) = await run.fill(run.sell(name, part))
    assert int(fill.spent_raw) == part and run.held(name) == int(bought.arrival_raw) - part
    await run.fill(run.sell(name))
    assert run.held(name) == 0


async def test_onc_10_a_token_whose_logs_lie_is_credited_by_balance_and_said(run):
    (events,) = await run.decide(run.buy("event_liar", "0.01 eth"))
    fill, board = outcome(events), boards(events)[0]
    row = next(row for row in board.rows if row.route == fill.route)
    assert int(row.logged_raw) == 4 * int(fill.arrival_raw) and "logs_differ" in row.flags
    assert run.held("event_liar") == int(fill.arrival_raw)


@pytest.mark.parametrize("name, kept_bps", [("tax_5", 9_500), ("tax_10", 9_000), ("tax_buy", 9_000)])
async def test_onc_10_a_tax_is_paid_by_who_buys(ground, run, name, kept_bps):
    ground.keep_venue(name, "v2", "weth")
    (events,) = await run.decide(run.buy(name, "0.01 eth"))
    row = boards(events)[0].rows[0]
    assert int(outcome(events).arrival_raw) in (int(row.quoted_raw) * kept_bps // 10_000, int(row.quoted_raw) * kept_bps // 10_000 + 1)


async def test_onc_10_a_revert_fills_on_no_ledger_and_keeps_its_evidence(ground, run):
    (events,) = await run.decide(run.buy("pausable_paused", "0.01 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["reverted", "reverted"]
    assert run.book() == replace(run.book(), eth_wei=wei("1 eth"), holdings=())


async def test_onc_10_a_fill_keeps_the_request_and_answer_it_stands_on(run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    (refereed,) = run.refereed
    named = {event.evidence_sha256 for event in refereed.events if isinstance(event, RouteSimulated)} | {gate.digest for gate in gates(refereed.events)}
    assert named == set(refereed.blobs) and all(sha256_hex(kept) == digest for digest, kept in refereed.blobs.items())


async def test_onc_06_the_row_that_fills_is_the_best_net_of_gas(run):
    (events,) = await run.decide(run.buy("plain_oz", "0.01 eth"))
    fill, rows = outcome(events), boards(events)[0].rows
    rates = {row.route: int(row.arrival_raw) * 10**18 // (10**16 + int(row.gas_wei)) for row in rows}
    assert rates[fill.route] == max(rates.values()) and len(set(rates.values())) > 1


async def test_onc_06_an_approval_is_paid_by_the_first_sale_only(run):
    await run.fill(run.buy("LEAF", "0.02 eth"))
    first, second = [(await run.fill(run.sell("LEAF", run.held("LEAF") // 3)))[0] for _ in range(2)]
    assert len(first.approvals) == 1 and second.approvals == () and second.gas_wei < first.gas_wei


async def test_onc_06_approvals_not_paid_yet_count_against_a_row(ground, run):
    """Two venues that bring nearly the same: whose approval is paid already costs less."""
    ground.keep(lambda pool: ground.token("plain_oz") in (pool.token0, pool.token1) and pool.venue in ("v2", "v4"))
    await run.fill(run.buy("plain_oz", "0.02 eth"))
    (events,) = await run.decide(run.sell("plain_oz", 1_000_000))
    assert said(events) == "gas_exceeds_value"
    rows = {row.route.split()[1]: row for row in boards(events)[0].rows}
    assert rows[">v4"].approve_gas > rows[">v2"].approve_gas > 0 and len(rows[">v4"].approvals) == 2


# --- ONC-08: the gate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, end",
    [("LEAF", "filled"), ("tax_10", "filled"), ("honeypot", "gate_flagged"), ("sim_aware", "gate_flagged"), ("tax_sell_60", "gate_flagged"),
     ("tax_buy_60", "gate_flagged"), ("cooldown_60s", "gate_unknown"), ("balance_doubles", "gate_flagged"), ("cooldown_1s", "filled")],
)  # fmt: skip
async def test_onc_08_what_cannot_be_sold_again_or_only_at_a_great_loss_is_not_bought(run, name, end):
    (events,) = await run.decide(run.buy(name, "0.01 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == [end, end]


async def test_onc_08_what_cannot_be_read_is_unknown(ground, run):
    ground.keep_venue("balance_reverts", "v3", "weth")
    assert await run.say(run.buy("balance_reverts", "0.01 eth")) == ["gate_unknown"]


async def test_onc_08_a_loss_equal_to_the_limit_passes_and_more_is_flagged(ground, run):
    ground.keep_venue("tax_10", "v2", "weth")
    (events,) = await run.decide(run.buy("tax_10", "0.01 eth"))
    loss_bps = gates(events)[0].loss_bps
    ends = []
    for limit in (loss_bps, loss_bps - 1):
        ground.desk.rules = replace(DEFAULT, gate_loss_bps_max=limit)
        ends += await run.say(run.buy("tax_10", "0.01 eth"))
    assert 1_800 < loss_bps < 2_000 and ends == ["filled", "gate_flagged"]


async def test_onc_08_no_verdict_outlives_its_block(ground, run):
    ground.keep_venue("pausable", "v2", "weth")
    await run.fill(run.buy("pausable", "0.01 eth"))
    ground.owner("pausable", "pause(bool)", True)
    ground.settle()
    assert await run.say(run.buy("pausable", "0.01 eth")) == ["reverted"]


async def test_the_gates_own_buy_is_what_is_credited(run):
    (events,) = await run.decide(run.buy("reflection", "0.01 eth"))
    assert gates(events)[0].buy_arrival_raw == outcome(events).arrival_raw


# --- ONC-09, ONC-27 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("percent, end", [(102, "filled"), (98, "gas_exceeds_value")])
async def test_onc_09_a_buy_of_a_little_less_than_its_gas_is_refused(ground, run, percent, end):
    """The size itself is part of what gas is paid for, so the border to the wei is proven on paper."""
    ground.keep_venue("plain_oz", "v3", "weth")
    (fill,) = await run.fill(run.buy("plain_oz", "0.0001 eth"))
    assert await Run(ground).say(run.buy("plain_oz", Wei(int(fill.gas_wei) * percent // 100))) == [end]


async def bought_with(ground: Ground, eth: Wei, name: str, spend: str) -> str:
    run = Run(ground, stake=f"{eth} wei")
    return (await run.say(run.buy(name, spend)))[0]


async def test_onc_27_spend_gas_and_exit_reserve_must_all_be_there_to_the_wei(ground, run):
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    whole = wei("0.01 eth") + outcome(events).gas_wei + boards(events)[0].exit_reserve_wei
    assert [await bought_with(ground, whole + more, "LEAF", "0.01 eth") for more in (Wei(0), Wei(-1))] == ["filled", "insufficient_eth"]


async def test_onc_27_what_is_left_is_the_exit_reserve(ground, run):
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    reserve = boards(events)[0].exit_reserve_wei
    tight = Run(ground, stake=f"{wei('0.01 eth') + outcome(events).gas_wei + reserve} wei")
    await tight.fill(tight.buy("LEAF", "0.01 eth"))
    assert tight.book().eth_wei == reserve
    assert await tight.say(tight.sell("LEAF")) == ["filled"]


async def test_onc_27_a_sale_without_eth_for_the_gas_that_it_must_be_let_use_is_refused(ground, run):
    """More than it uses in the end, since some of it comes back."""
    (fill,) = await run.fill(run.buy("LEAF", "0.01 eth"))

    async def sold(eth: int) -> tuple[str, BoardTaken]:
        poor = Run(ground, stake=f"{eth} wei")
        await poor.grant("LEAF", int(fill.arrival_raw))
        (events,) = await poor.decide(poor.sell("LEAF"))
        return said(events), boards(events)[0]

    end, board = await sold(1)
    best = max((row for row in board.rows), key=lambda row: int(row.arrival_raw or 0) - int(row.gas_wei))
    needed = (best.approve_gas + best.gas_limit) * int(board.gas_price_wei)
    assert end == "insufficient_eth" and needed > int(best.gas_wei)
    assert [(await sold(needed + more))[0] for more in (0, -1)] == ["filled", "insufficient_eth"]


# --- ONC-11: what cannot be proven --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, venue", [
    *((name, "v2") for name in ("early_seller", "registered_buyers", "stored_elsewhere", "packed_middle")),
    ("checkpointed", "v3"),
])  # fmt: skip
async def test_onc_11_what_a_token_keeps_of_its_holder_is_carried_into_a_sale_with_proof(ground, run, name, venue):
    ground.keep_venue(name, venue, "weth")
    (bought,), (sold,) = await run.fill(run.buy(name, "0.01 eth")), await run.fill(run.sell(name))
    assert (bought.ledgers, bought.proven, sold.ledgers, sold.proven) == (LEDGERS, True, LEDGERS, True)
    assert bought.kept and run.held(name) == 0 < int(sold.arrival_raw) < 10**16


@pytest.mark.parametrize("name", ["checkpointed", "two_mappings", "masked", "packed_high", "packed_sales"])
async def test_onc_11_an_unprovable_exit_is_refused_by_headline_booked_by_permissive_and_sold_on_a_claim(ground, run, name):
    """These keep a pool's balance in several words, under a mask, or beside more that a trade writes, so that none can be told to be the market's."""
    ground.keep_venue(name, "v2", "weth")
    cause = "not told: where a pool's balance is kept"
    (events,) = await run.decide(run.buy(name, "0.01 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["unprovable_exit", f"filled BUY_UNPROVEN:{cause}"]
    (events,) = await run.decide(run.sell(name))
    assert [said(events, ledger) for ledger in LEDGERS] == ["not_held", f"filled EXIT_UNPROVEN:{cause}"]


async def test_onc_11_an_unprovable_sale_brings_its_quote_less_estimated_gas_on_permissive_alone(ground, run):
    ground.keep_venue("plain_oz", "v2", "weth")
    await run.grant("plain_oz", 10**20, told=False)
    (events,) = await run.decide(run.sell("plain_oz"))
    fill, row = outcome(events, PERMISSIVE), boards(events)[0].rows[0]
    assert (outcome(events).reason, outcome(events).detail, outcome(events).ledgers) == ("unprovable", "words_untold", (HEADLINE,))
    assert (fill.ledgers, fill.tag, fill.arrival_raw) == ((PERMISSIVE,), "EXIT_UNPROVEN:words_untold", row.quoted_raw)
    assert (fill.gas_wei, int(fill.spent_raw), run.held("plain_oz", PERMISSIVE)) == (Wei((200_000 + 60_000) * 10_000_000), 10**20, 0)


async def test_onc_11_shares_of_earlier_rules_are_never_taken_for_tokens(ground, run):
    """What they come to is in no word, so that nothing is claimed for them; the book keeps them under their name."""
    await run.grant("LEAF", 10**20, shares=True)
    (events,) = await run.decide(run.sell("LEAF"))
    assert [(said(events, ledger), outcome(events, ledger).detail) for ledger in LEDGERS] == [("unprovable", "words_untold")] * 2
    assert boards(events)[0].shares and run.held("LEAF") == 10**20
    assert [(mark.status, int(mark.value_wei)) for valued in await run.value() for mark in valued.holdings] == [("unknown", 0)] * 2
    assert await run.say(run.buy("LEAF", "0.01 eth"), ledger=PERMISSIVE) == ["filled BUY_UNPROVEN:words_untold"]
    assert [holding.shares for holding in run.book(PERMISSIVE).holdings] == [True]


async def test_onc_11_without_simulation_an_exit_is_claimed_with_the_lane_as_its_cause_and_nothing_is_bought(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    ground.wire.missing = {"eth_simulateV1"}
    assert await run.say(run.sell("LEAF")) == ["filled EXIT_UNPROVEN:lane"]
    assert await run.say(run.buy("LEAF", "0.01 eth")) == ["fault"]
    assert run.held("LEAF") == 0


async def test_onc_11_a_lane_that_loses_simulation_within_a_decision_claims_nothing_behind_its_back(ground, run):
    await run.fill(run.buy("LEAF", "0.02 eth"))
    desk = await run.sit_down()
    half = run.held("LEAF") // 2
    assert said(await run.order(desk, run.sell("LEAF", half))) == "filled"
    ground.wire.missing = {"eth_simulateV1"}
    assert said(await run.order(desk, run.sell("LEAF"))) == "fault"


async def test_onc_11_a_quoter_that_promises_more_eth_than_there_is_is_not_believed(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    ground.wire.missing = {"eth_simulateV1"}
    token = ground.token("LEAF")
    ground.wire.answer = lambda asked, told: (
        told | {"result": "0x" + "ff" * 32 * 4} if asked["method"] == "eth_call" and asked["params"][0]["to"] != token else told
    )
    assert await run.say(run.sell("LEAF")) == ["unprovable_no_quote"]


async def test_a_token_that_moves_its_balances_leaves_the_wallet_with_what_it_leaves_a_real_one(chain):
    """Its code is changed for one that keeps balances elsewhere, under which nobody that bought before holds any."""
    chain.fund(WALLET, 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    ground.keep_venue("plain_oz", "v2", "weth")
    run = Run(ground)
    await run.fill(run.buy("plain_oz", "0.01 eth"))
    change_code(ground, "plain_oz", "plain_solady")
    assert await run.say(run.sell("plain_oz", run.held("plain_oz") // 2), run.sell("plain_oz")) == ["not_held", "not_held"]
    (mark,) = (await run.worth()).holdings
    assert (mark.amount_raw, mark.value_wei) == (TokenRaw(0), Wei(0))
    await ground.close()
    chain.revert(here)
    (receipt,) = chain.send(*transactions(run.refereed[0]))
    bought = ground.tokens_of("plain_oz", WALLET)
    change_code(ground, "plain_oz", "plain_solady")
    assert receipt["status"] == "0x1" and bought > 0 == ground.tokens_of("plain_oz", WALLET)


async def test_onc_10_a_sale_that_reverts_is_no_claim_where_its_words_are_told(run):
    await run.grant("honeypot", 10**20)
    (events,) = await run.decide(run.sell("honeypot"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["reverted", "reverted"]


def change_code(ground: Ground, name: str, like: str) -> None:
    """Let a token become another kind at the same address."""
    code = ground.chain.node.call("eth_getCode", [ground.token(like), "latest"])
    ground.chain.node.call("anvil_setCode", [ground.token(name), code])
    ground.chain.mine(2)
    ground.settle()


# --- limits that hold the whole book ------------------------------------------------------------------------------------


async def test_a_limit_on_holdings_counts_what_the_book_already_holds(ground, run):
    """No holder over 20,000 tokens: what fits alone does not fit beside 19,900."""
    assert await run.say(run.buy("max_wallet", "0.01 eth")) == ["filled"]
    full = Run(ground)
    await full.grant("max_wallet", 19_900 * 10**18)
    assert await full.say(full.buy("max_wallet", "0.01 eth")) == ["reverted"]


async def test_a_limit_on_holdings_counts_what_the_same_decision_bought(ground, run):
    await run.grant("max_wallet", 19_700 * 10**18)
    assert await run.say(run.buy("max_wallet", "0.01 eth"), run.buy("max_wallet", "0.01 eth")) == ["filled", "reverted"]


async def test_a_limit_on_holdings_lets_in_again_what_was_sold_before(ground, run):
    await run.grant("max_wallet", 19_900 * 10**18)
    assert await run.say(run.sell("max_wallet", 500 * 10**18), run.buy("max_wallet", "0.01 eth")) == ["filled", "filled"]


# --- faults -------------------------------------------------------------------------------------------------------------


async def test_a_node_that_is_away_leaves_the_order_unfilled_on_both_ledgers(ground, run):
    desk = await run.sit_down()
    ground.wire.answer = lambda asked, told: {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32005, "message": "rate limit"}}
    events = await run.order(desk, run.buy("LEAF", "0.01 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["fault", "fault"] and len(events) == 1


async def test_a_fault_in_the_gate_fills_nothing(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    desk, seen = await run.sit_down(), []

    def cut_gates(asked: dict, told: dict) -> dict:
        seen.append(len(asked["params"][0].get("blockStateCalls", "?")))
        return told if seen[-1] == 1 else told | {"result": told["result"][:1]}

    ground.wire.answer = cut_gates
    events = await run.order(desk, run.buy("LEAF", "0.01 eth"))
    assert said(events) == "fault" and 2 in seen and not any(isinstance(event, FillCredited) for event in events)


async def test_a_token_without_a_pool_has_no_route(ground, run):
    ground.keep(lambda pool: False)
    await run.grant("LEAF", 5)
    assert await run.say(run.buy("LEAF", "0.01 eth"), run.sell("LEAF")) == ["no_route", "no_route"]


async def test_ledgers_hold_the_same_after_proven_orders(run):
    await run.fill(run.buy("LEAF", "0.01 eth"), run.buy("RUNE", "0.02 eth"), run.sell("LEAF"))
    assert run.book(HEADLINE).holdings == run.book(PERMISSIVE).holdings and run.book(HEADLINE).eth_wei == run.book(PERMISSIVE).eth_wei


# --- ONC-08: what outside sources say, and a second look ----------------------------------------------------------------


async def test_onc_08_an_outside_word_against_a_token_flags_what_our_own_gate_clears(ground, run):
    ground.desk.said_against = lambda tick, token: ("goplus:is_honeypot",)
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    (gate,) = gates(events)
    assert (gate.verdict, gate.cause, gate.outside, gate.exit_provable) == ("FLAGGED", "goplus:is_honeypot", ("goplus:is_honeypot",), True)
    assert [said(events, ledger) for ledger in LEDGERS] == ["gate_flagged", "gate_flagged"]


async def test_onc_08_an_outside_word_betters_no_verdict(ground, run):
    ground.desk.said_against = lambda tick, token: ("goplus:is_honeypot",)
    (events,) = await run.decide(run.buy("cooldown_60s", "0.01 eth"))
    assert (gates(events)[0].verdict, said(events)) == ("UNKNOWN", "gate_unknown")


async def test_onc_08_every_stack_of_a_tick_is_told_the_same(ground, run):
    asked = []
    ground.desk.said_against = lambda tick, token: asked.append((tick, token)) or ()
    await run.decide(run.buy("LEAF", "0.01 eth"))
    assert asked == [(1, ground.token("LEAF"))]


@pytest.mark.parametrize("name, verdict, cause", [
    ("cooldown_60s", "UNKNOWN", "cooldown"), ("max_sell_tight", "FLAGGED", "sale_size_limited"), ("honeypot", "FLAGGED", "sale reverted"),
    ("blacklist_on_buy", "FLAGGED", "sale reverted"),
])  # fmt: skip
async def test_onc_08_why_a_buyer_cannot_sell_is_looked_at_a_second_time(ground, run, name, verdict, cause):
    await run.decide(run.buy(name, "0.01 eth"))
    ground.trips()
    (events,) = await run.decide(run.buy(name, "0.01 eth"))
    (gate,) = gates(events)
    assert gate.verdict == verdict and gate.cause.startswith(cause)
    assert [set(trip) for trip in ground.trips()][-3:] == [{"eth_simulateV1"}] * 3


async def test_onc_08_where_contracts_see_no_simulated_number_a_lock_may_be_a_cooldown(ground, run):
    """As on Nitro, where NUMBER is an estimate that no override moves."""

    def stands_still(asked: dict, told: dict) -> dict:
        if asked["method"] == "eth_simulateV1" and all(call["to"] == TELLER for block in asked["params"][0]["blockStateCalls"] for call in block["calls"]):
            for block in told["result"]:
                block["calls"][0]["returnData"] = "0x" + f"{25_000_000:064x}"
        return told

    ground.wire.answer = stands_still
    (events,) = await run.decide(run.buy("blacklist_on_buy", "0.01 eth"))
    assert (gates(events)[0].verdict, gates(events)[0].cause, said(events)) == ("UNKNOWN", "cooldown_or_lock", "gate_unknown")


async def test_onc_08_a_second_look_that_tells_nothing_changes_nothing(ground, run):
    def gone(asked: dict, told: dict) -> dict:
        last = asked["params"][0]["blockStateCalls"][-1] if asked["method"] == "eth_simulateV1" else {}
        many = "blockOverrides" in last and int(last["blockOverrides"]["number"], 16) > ground.chain.height + 100
        return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -38026, "message": "too many blocks"}} if many else told

    ground.wire.answer = gone
    (events,) = await run.decide(run.buy("cooldown_60s", "0.01 eth"))
    assert (gates(events)[0].verdict, said(events)) == ("FLAGGED", "gate_flagged")


async def test_onc_08_superseded_rules_look_once(ground, run):
    ground.desk.rules = FIRST
    (events,) = await run.decide(run.buy("cooldown_60s", "0.01 eth"))
    assert (gates(events)[0].verdict, gates(events)[0].cause.startswith("sale reverted")) == ("FLAGGED", True)


async def test_a_sale_that_is_too_large_for_the_token_is_named_and_not_split(run):
    await run.grant("max_sell_tight", 100 * 10**18)
    (events,) = await run.decide(run.sell("max_sell_tight"))
    assert said(events) == "reverted" and outcome(events).detail.startswith("sale_size_limited: reverted")
    (events,) = await run.decide(run.sell("max_sell_tight", 40 * 10**18))
    assert said(events) == "filled"


async def test_a_sale_that_is_dead_at_any_size_is_only_called_reverted(run):
    await run.grant("honeypot", 10**20)
    (events,) = await run.decide(run.sell("honeypot"))
    assert said(events) == "reverted" and outcome(events).detail.startswith("reverted")
