"""Credit: what the rules make of a board and a gate, pure, each on both sides of its border."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, imbalance
from referee.onchain.credit import HOOKED, NOT_FILLED, REFUSALS, best_row, carried, chosen_row, considered, exit_reserve_wei, settle
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, FillCredited, OrderNotFilled, OrderRefused, RouteReverted, RouteSimulated, RouteUnprovable
from referee.onchain.rules import DEFAULT, SECOND
from tests.onchain.given import GAS_PRICE, T0, address, board, book, books, buying, gate, outcome, row, said, selling

ETH1 = 10**18


def settled(taken, gated=None, held=None) -> tuple[Event, ...]:
    return settle(DEFAULT, taken, [gated] if gated else [], held or books("1 eth, 1,000 LEAF"), T0)


def moved(fill: FillCredited) -> dict[tuple[str, str], int]:
    return {(posting.account, posting.asset): int(posting.amount) for posting in fill.entry.postings}


# --- ONC-06: which row --------------------------------------------------------------------------------------------------


def the_best(side: str, size: int, *rows) -> str | None:
    best = best_row(board(side, size, *rows), rows)
    return best.route if best else None


def test_onc_06_a_buy_takes_the_most_tokens_for_spend_and_gas():
    assert the_best("buy", 100, row("dear", brings=1_010, gas=2), row("cheap", brings=1_000, gas=0)) == "cheap"


def test_onc_06_a_buy_takes_more_tokens_where_they_outweigh_their_gas():
    assert the_best("buy", 100, row("cheap", brings=1_000, gas=0), row("dear", brings=1_021, gas=2)) == "dear"


def test_onc_06_a_buy_at_exactly_the_same_rate_takes_the_earlier_row():
    rows = row("first", brings=1_020, gas=2), row("second", brings=1_000, gas=0)
    assert the_best("buy", 100, *rows) == "first" and the_best("buy", 100, *rows[::-1]) == "second"


@pytest.mark.parametrize("gas, best", [(9, "second"), (10, "first"), (11, "first")])
def test_onc_06_a_sale_takes_the_most_eth_after_gas_and_a_tie_goes_to_the_earlier_row(gas, best):
    assert the_best("sell", 5, row("first", brings=100, gas=0), row("second", brings=110, gas=gas)) == best


@given(st.lists(st.tuples(st.integers(1, 10**30), st.integers(0, 10**18)), min_size=1, max_size=6), st.integers(1, 10**20))
def test_onc_06_no_row_of_a_board_beats_the_chosen_one(quotes, spend):
    rows = [row(str(at), brings=brings, gas=gas) for at, (brings, gas) in enumerate(quotes)]
    buy, sale = best_row(board("buy", spend, *rows), rows), best_row(board("sell", spend, *rows), rows)
    assert buy and all(int(buy.arrival_raw) * (spend + int(other.gas_wei)) >= int(other.arrival_raw) * (spend + int(buy.gas_wei)) for other in rows)
    assert sale and all(int(sale.arrival_raw) - int(sale.gas_wei) >= int(other.arrival_raw) - int(other.gas_wei) for other in rows)


# --- ONC-11: which rows count on which ledger ---------------------------------------------------------------------------


def chosen(side: str, ledger: str, *rows) -> str | None:
    best = chosen_row(board(side, 100, *rows), ledger)
    return best.route if best else None


CLAIM = row("claim", "unprovable", quoted=900, reason="slot")
PROOF = row("proof", brings=500)


def test_onc_11_headline_sells_at_a_proven_row_though_a_claim_is_better():
    assert chosen("sell", HEADLINE, CLAIM, PROOF) == "proof"


def test_onc_11_permissive_sells_at_the_best_row_proven_or_not():
    assert chosen("sell", PERMISSIVE, CLAIM, PROOF) == "claim"
    assert chosen("sell", PERMISSIVE, replace(CLAIM, quoted_raw=TokenRaw(499)), PROOF) == "proof"


def test_onc_11_headline_sells_at_a_claim_only_when_nothing_is_proven():
    assert chosen("sell", HEADLINE, CLAIM) == "claim"


@pytest.mark.parametrize("reason, route", [("lane", "claim"), ("words_untold", None), ("shared_state", None), ("chance", None), ("slot", None)])
def test_onc_11_headline_sells_at_a_claim_only_where_the_lane_is_why_nothing_is_proven(reason, route):
    taken = board("sell", 100, replace(CLAIM, reason=reason))
    best = [chosen_row(taken, ledger, lane_only=True) for ledger in LEDGERS]
    assert [each.route if each else None for each in best] == [route, "claim"]


@pytest.mark.parametrize("ledger", LEDGERS)
def test_onc_11_no_ledger_buys_at_a_row_that_could_not_be_read(ledger):
    assert chosen("buy", ledger, CLAIM) is None
    assert chosen("buy", ledger, CLAIM, PROOF) == "proof"


@pytest.mark.parametrize("ledger", LEDGERS)
@pytest.mark.parametrize("side", ["buy", "sell"])
def test_onc_10_a_row_that_reverted_fills_on_no_ledger_whatever_it_was_quoted(side, ledger):
    assert chosen(side, ledger, row("v3", "reverted", quoted=10**6, reason="reverted")) is None


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_claim_of_nothing_is_no_row(ledger):
    assert chosen("sell", ledger, replace(CLAIM, quoted_raw=TokenRaw(0)), replace(CLAIM, quoted_raw=None)) is None


# --- ONC-27: what a book carries --------------------------------------------------------------------------------------------------

RESERVE = int(exit_reserve_wei(DEFAULT, book("1 eth"), address("LEAF"), GAS_PRICE))


def admitted(asked, held, amount: int = 0) -> str:
    return carried(DEFAULT, asked, held, TokenRaw(amount), GAS_PRICE)[0]


@pytest.mark.parametrize("more_wei, word", [(0, ""), (-1, "insufficient_eth"), (1, "")])
def test_onc_27_a_buy_leaves_its_exit_reserve_to_the_wei(more_wei, word):
    assert admitted(buying("LEAF", "0.1 eth"), book(f"{10**17 + RESERVE + more_wei} wei")) == word


def test_onc_27_the_exit_reserve_is_for_every_holding_and_the_new_one():
    reserves = [int(exit_reserve_wei(DEFAULT, book(text), address("LEAF"), GAS_PRICE)) for text in ("1 eth", "1 eth, 3 LEAF", "1 eth, 3 LEAF, 4 MOSS")]
    assert reserves == [RESERVE, RESERVE, 2 * RESERVE] and RESERVE == DEFAULT.exit_reserve_gas_per_holding * int(GAS_PRICE)


def test_onc_04_a_token_that_is_not_held_cannot_be_sold():
    assert admitted(selling("LEAF"), book("1 eth"), 0) == "not_held"


@pytest.mark.parametrize("amount, word", [(299, ""), (300, ""), (301, "insufficient_tokens")])
def test_onc_04_no_more_can_be_sold_than_is_held(amount, word):
    assert admitted(selling("LEAF", amount), book("1 eth, 300 LEAF"), 300) == word


def test_a_sale_needs_no_reserve():
    assert admitted(selling("LEAF"), book("0 eth, 300 LEAF"), 300) == ""


# --- ONC-07: age --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("age_ms, end", [(30_000, "filled"), (30_001, "board_too_old")])
@pytest.mark.parametrize("side", ["buy", "sell"])
def test_onc_07_a_board_of_30_000_ms_fills_and_one_of_30_001_ms_does_not(side, age_ms, end):
    assert said(settled(board(side, 100, row(brings=100), age_ms=age_ms), gate())) == end


# --- ONC-08: the gate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict, end", [("CLEAR", "filled"), ("FLAGGED", "gate_flagged"), ("UNKNOWN", "gate_unknown")])
@pytest.mark.parametrize("ledger", LEDGERS)
def test_onc_08_a_buy_that_is_not_clear_is_refused_on_every_ledger(verdict, end, ledger):
    assert said(settled(board("buy", 100, row(brings=100)), gate(verdict, cause="why")), ledger) == end


def test_onc_08_a_buy_without_a_gate_is_refused():
    assert said(settled(board("buy", 100, row(brings=100)), None)) == "gate_unknown"


def test_onc_08_a_gate_of_another_route_clears_nothing():
    assert said(settled(board("buy", 100, row("v3", brings=100)), gate(route="v2"))) == "gate_unknown"


def test_onc_08_a_sale_needs_no_gate():
    assert said(settled(board("sell", 100, row(brings=100)), None)) == "filled"


# --- ONC-09: gas against value ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gas, end", [(100, "filled"), (101, "gas_exceeds_value")])
def test_onc_09_a_buy_whose_gas_equals_its_spend_fills_and_one_wei_more_is_refused(gas, end):
    assert said(settled(board("buy", 100, row(brings=7, gas=gas)), gate())) == end


@pytest.mark.parametrize("gas, end", [(100, "filled"), (101, "gas_exceeds_value")])
def test_onc_09_a_sale_whose_gas_equals_what_arrives_fills_and_one_wei_more_is_refused(gas, end):
    assert said(settled(board("sell", 7, row(brings=100, gas=gas)))) == end


@pytest.mark.parametrize("gas, end", [(100, "filled EXIT_UNPROVEN:lane"), (101, "gas_exceeds_value")])
def test_onc_09_a_claimed_sale_is_held_to_its_quote(gas, end):
    events = settled(board("sell", 7, row(status="unprovable", quoted=100, gas=gas, reason="lane")))
    assert [said(events, ledger) for ledger in LEDGERS] == [end, end]


# --- ONC-27 after gas ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more_wei, end", [(0, "filled"), (-1, "insufficient_eth")])
def test_onc_27_a_buy_leaves_its_exit_reserve_after_gas_to_the_wei(more_wei, end):
    held = {HEADLINE: book(f"{100 + 30 + 11 + more_wei} wei")}
    assert said(settled(board("buy", 100, row(brings=7, gas=11), reserve=30, ledgers=(HEADLINE,)), gate(), held)) == end


@pytest.mark.parametrize("eth, end", [(11, "filled"), (10, "insufficient_eth")])
def test_onc_27_a_sale_needs_the_eth_for_its_gas_first(eth, end):
    held = {HEADLINE: book(f"{eth} wei, 7 LEAF")}
    assert said(settled(board("sell", 7, row(brings=1_000, gas=11), ledgers=(HEADLINE,)), None, held)) == end


@pytest.mark.parametrize("eth, end", [(0, "filled"), (-1, "insufficient_eth")])
def test_onc_27_a_sale_needs_the_gas_that_it_must_be_let_use_though_some_of_it_comes_back(eth, end):
    limited = replace(row(brings=10**15, gas=70_000 * int(GAS_PRICE)), swap_gas=60_000, approve_gas=10_000, gas_limit=80_000)
    needed = 90_000 * int(GAS_PRICE)
    events = settled(board("sell", 7, limited, ledgers=(HEADLINE,)), None, {HEADLINE: book(f"{needed + eth} wei, 7 LEAF")})
    assert said(events) == end
    assert end != "filled" or moved(outcome(events))[("gas", ETH)] == 70_000 * int(GAS_PRICE)


def test_onc_27_spend_is_exact_and_gas_comes_on_top():
    assert moved(outcome(settled(board("buy", 100, row(brings=7, gas=11)), gate()))) == {
        (BOOK, ETH): -111, ("market", ETH): 100, ("gas", ETH): 11, (BOOK, address("LEAF")): 7, ("market", address("LEAF")): -7,
    }  # fmt: skip


def test_a_sale_brings_what_arrives_less_gas():
    assert moved(outcome(settled(board("sell", 7, row(brings=100, gas=11))))) == {
        (BOOK, ETH): 89, ("market", ETH): -100, ("gas", ETH): 11, (BOOK, address("LEAF")): -7, ("market", address("LEAF")): 7,
    }  # fmt: skip


def test_a_fill_carries_the_approvals_it_paid():
    fill = outcome(settled(board("sell", 7, row(brings=100, approvals=("LEAF>router",)))))
    assert fill.approvals == ("LEAF>router",)


def test_a_fill_carries_no_approval_that_its_sale_used_up():
    used = replace(row(brings=100, approvals=("LEAF>router",)), flags=("approval_used_up",))
    assert outcome(settled(board("sell", 7, used))).approvals == ()


# --- ONC-11: what cannot be proven --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["words_untold", "not told: it creates or ends a contract"])
def test_onc_11_a_buy_with_an_unprovable_exit_is_refused_by_headline_and_booked_by_permissive(cause):
    events = settled(board("buy", 100, row(brings=7)), gate(exit_cause=cause))
    assert (said(events, HEADLINE), said(events, PERMISSIVE)) == ("unprovable_exit", f"filled BUY_UNPROVEN:{cause}")


@pytest.mark.parametrize("cause, ledgers", [("words_untold", (PERMISSIVE,)), ("shared_state", (PERMISSIVE,)), ("chance", (PERMISSIVE,)), ("lane", LEDGERS)])
def test_onc_11_an_unprovable_sale_fills_at_the_quote_less_gas_on_permissive_and_on_headline_for_want_of_a_lane_alone(cause, ledgers):
    events = settled(board("sell", 7, row(status="unprovable", quoted=100, gas=11, reason=cause)))
    fill = outcome(events, PERMISSIVE)
    assert (fill.ledgers, fill.proven, fill.tag, moved(fill)[BOOK, ETH]) == (ledgers, False, f"EXIT_UNPROVEN:{cause}", 89)
    if HEADLINE not in ledgers:
        assert (outcome(events).reason, outcome(events).detail, outcome(events).ledgers) == ("unprovable", cause, (HEADLINE,))


@pytest.mark.parametrize("cause, end", [("lane", "unprovable_no_quote"), ("words_untold", "unprovable")])
def test_onc_11_an_unprovable_sale_without_a_quote_is_not_filled(cause, end):
    events = settled(board("sell", 7, row(status="unprovable", reason=cause)))
    assert [(said(events, ledger), outcome(events, ledger).detail) for ledger in LEDGERS] == [(end, cause)] * 2


@pytest.mark.parametrize("cause", ["slot", "holder_state", "lane"])
def test_onc_11_windows_of_the_rules_before_keep_their_claims_on_both_ledgers(cause):
    def ruled(taken):
        return settle(SECOND, taken, (), books("1 eth, 1,000 LEAF"), T0)

    fill = outcome(ruled(board("sell", 7, row(status="unprovable", quoted=100, gas=11, reason=cause))))
    assert (fill.ledgers, fill.tag, moved(fill)[BOOK, ETH]) == (LEDGERS, f"EXIT_UNPROVEN:{cause}", 89)
    assert said(ruled(board("sell", 7, row(status="unprovable", reason=cause)))) == "unprovable_no_quote"


def test_onc_11_a_proof_on_one_ledger_and_a_claim_on_the_other_are_told_apart():
    events = settled(board("sell", 7, replace(PROOF, gas_wei=Wei(0)), CLAIM))
    fills = {fill.ledgers: (fill.proven, int(fill.arrival_raw)) for fill in events if isinstance(fill, FillCredited)}
    assert fills == {(HEADLINE,): (True, 500), (PERMISSIVE,): (False, 900)}


def test_a_buy_that_cannot_be_read_is_unknown():
    assert said(settled(board("buy", 7, row(status="unprovable", quoted=7, reason="balance_unreadable"), row("v2", "reverted")))) == "gate_unknown"


# --- no row -------------------------------------------------------------------------------------------------------------


def test_without_a_pool_there_is_no_route():
    assert said(settled(board("buy", 7))) == "no_route"


@pytest.mark.parametrize("side", ["buy", "sell"])
def test_onc_10_a_revert_is_no_fill_and_keeps_its_evidence(side):
    events = settled(board(side, 7, row("v3", "reverted", reason="reverted: STF")))
    assert [type(event) for event in events] == [RouteReverted, OrderNotFilled]
    assert (events[0].evidence_sha256, events[1].reason, events[1].ledgers) == ("of v3", "reverted", LEDGERS)


def test_a_row_that_a_fault_spoiled_leaves_the_order_unfilled_and_never_called_reverted():
    assert said(settled(board("sell", 7, row("v3", "reverted"), row("v2", "failed", reason="node_error")))) == "fault"


# --- shape --------------------------------------------------------------------------------------------------------------


def test_ledgers_of_equal_outcome_share_their_events_and_routes_come_first():
    events = settled(board("buy", 100, row(brings=7, gas=1)), gate())
    assert [(type(event), event.ledgers) for event in events] == [(RouteSimulated, LEDGERS), (FillCredited, LEDGERS)]


def test_ledgers_of_different_outcome_have_their_own():
    events = settled(board("buy", 100, row(brings=7, gas=1)), gate(exit_cause="slot"))
    assert [(type(event), event.ledgers) for event in events] == [(RouteUnprovable, LEDGERS), (OrderRefused, (HEADLINE,)), (FillCredited, (PERMISSIVE,))]


def test_a_ledger_that_is_poorer_is_refused_and_the_other_fills():
    events = settled(board("sell", 7, row(brings=100, gas=11)), None, {HEADLINE: book("10 wei, 7 LEAF"), PERMISSIVE: book("11 wei, 7 LEAF", PERMISSIVE)})
    assert (said(events, HEADLINE), said(events, PERMISSIVE)) == ("insufficient_eth", "filled")


def test_shares_are_booked_in_storage_units():
    bought = outcome(settled(board("buy", 100, row(brings=7, units=5), shares=True), gate()))
    sold = outcome(settled(board("sell", 7, row(brings=100, units=5), shares=True, units=6), None, books("1 eth, 9 LEAF/shares")))
    assert (moved(bought)[BOOK, address("LEAF") + "/shares"], moved(sold)[BOOK, address("LEAF") + "/shares"]) == (5, -5)


def test_a_claimed_sale_of_shares_takes_the_storage_units_behind_its_size():
    sold = outcome(settled(board("sell", 7, row(status="unprovable", quoted=100, reason="lane"), shares=True, units=6), None, books("1 eth, 9 LEAF/shares")))
    assert moved(sold)[BOOK, address("LEAF") + "/shares"] == -6


def test_a_token_that_takes_more_than_was_sold_never_brings_the_book_below_zero():
    sold = outcome(settled(board("sell", 7, row(brings=100, units=8)), None, books("1 eth, 7 LEAF")))
    assert moved(sold)[BOOK, address("LEAF")] == -7


ROWS = st.builds(
    row, st.sampled_from(["v2", "v3", "v4"]), st.sampled_from(["proven", "reverted", "unprovable", "failed"]), brings=st.integers(1, 10**20),
    gas=st.integers(0, 10**16), reason=st.sampled_from(["lane", "words_untold"]),
)  # fmt: skip
GATES = st.none() | st.builds(gate, st.sampled_from(["CLEAR", "FLAGGED", "UNKNOWN"]), route=st.sampled_from(["v2", "v3"]), exit_cause=st.sampled_from(["", "slot"]))


@given(st.sampled_from(["buy", "sell"]), st.lists(ROWS, max_size=4), GATES, st.integers(29_999, 30_002), st.integers(0, 3 * 10**17))
def test_every_ledger_has_exactly_one_outcome_with_a_known_reason_and_entries_balance(side, rows, gated, age_ms, eth):
    held = {HEADLINE: book(f"{eth} wei, 1,000 LEAF"), PERMISSIVE: book("1 eth, 1,000 LEAF", PERMISSIVE)}
    events = settled(board(side, 10**17 if side == "buy" else 1_000, *rows, age_ms=age_ms), gated, held)
    assert events == settled(board(side, 10**17 if side == "buy" else 1_000, *rows, age_ms=age_ms), gated, held)
    for ledger in LEDGERS:
        event = outcome(events, ledger)
        if isinstance(event, FillCredited):
            assert not imbalance(event.entry.postings) and moved(event).get((BOOK, ETH), 0) + int(held[ledger].eth_wei) >= 0
        else:
            assert event.reason in (REFUSALS if isinstance(event, OrderRefused) else NOT_FILLED)


# --- rivals: a row of theirs costs nothing but itself -------------------------------------------------------------------


def rival(route: str = "kyberswap", status: str = "proven", **more):
    return replace(row(route, status, **more), source="kyberswap")


def several(taken, *gates, held=None) -> tuple[Event, ...]:
    return settle(DEFAULT, taken, gates, held or books("1 eth, 1,000 LEAF"), T0)


@pytest.mark.parametrize("side", ["buy", "sell"])
def test_onc_06_a_better_rival_fills_and_a_tie_goes_to_our_own_router(side):
    taken = [board(side, 100, row("v3", brings=1_000), rival(brings=brings)) for brings in (1_001, 1_000, 999)]
    assert [outcome(several(each, gate(route="v3"), gate(route="kyberswap"))).route for each in taken] == ["kyberswap", "v3", "v3"]


@pytest.mark.parametrize("gated", [gate("FLAGGED", route="kyberswap"), gate("UNKNOWN", route="kyberswap"), gate(route="other")])
def test_onc_08_where_a_rivals_gate_does_not_pass_our_own_best_row_fills(gated):
    taken = board("buy", 100, row("v3", brings=900), row("v2", brings=800), rival(brings=1_000))
    assert outcome(several(taken, gated, gate(route="v3"))).route == "v3"


def test_onc_08_where_no_gate_passes_the_refusal_is_what_our_own_row_says():
    taken = board("buy", 100, row("v3", brings=900), rival(brings=1_000))
    assert said(several(taken, gate("UNKNOWN", route="kyberswap", cause="x"), gate("FLAGGED", route="v3"))) == "gate_flagged"
    assert said(several(board("buy", 100, rival(brings=1_000)), gate("UNKNOWN", route="kyberswap"))) == "gate_unknown"


def test_onc_08_behind_our_own_best_row_no_other_is_tried():
    taken = board("buy", 100, row("v3", brings=900), rival(brings=800))
    assert said(several(taken, gate("FLAGGED", route="v3"), gate(route="kyberswap"))) == "gate_flagged"


def hooked(route: str = "v4 hook", **more):
    return replace(row(route, **more), flags=(HOOKED,))


def test_onc_08_behind_our_own_best_row_over_a_hook_our_best_without_one_is_tried():
    taken = board("buy", 100, row("v3", brings=900), hooked(brings=1_000), hooked("v4 other hook", brings=950), row("v2", brings=800))
    gates = [gate(route=each.route) for each in taken.rows]
    assert [each.route for each in considered(taken, HEADLINE)] == ["v4 hook", "v3"]
    assert outcome(several(taken, *gates)).route == "v4 hook"
    for bad in (gate("FLAGGED", route="v4 hook"), gate(route="v4 hook", exit_cause="holder_state")):
        assert outcome(several(taken, bad, *(good for good in gates if good.route != "v4 hook"))).route == "v3"
    assert said(several(board("buy", 100, hooked(brings=1_000)), gate("FLAGGED", route="v4 hook"))) == "gate_flagged"


def test_onc_11_headline_passes_over_a_rival_whose_exit_it_cannot_prove_and_permissive_takes_it():
    events = several(board("buy", 100, row("v3", brings=900), rival(brings=1_000)), gate(route="kyberswap", exit_cause="holder_state"), gate(route="v3"))
    assert [outcome(events, ledger).route for ledger in LEDGERS] == ["v3", "kyberswap"]


@pytest.mark.parametrize("side", ["buy", "sell"])
def test_onc_27_a_rival_that_the_book_cannot_pay_the_gas_of_is_passed_over(side):
    held = {ledger: book("150 wei, 1,000 LEAF", ledger) for ledger in LEDGERS}
    taken = board(side, 100, row("v3", brings=900, gas=10), rival(brings=10**6, gas=151 if side == "sell" else 60))
    assert outcome(several(taken, gate(route="kyberswap"), gate(route="v3"), held=held)).route == "v3"


@pytest.mark.parametrize("status", ["failed", "reverted", "unprovable"])
@pytest.mark.parametrize("side", ["buy", "sell"])
def test_a_rivals_row_that_is_not_proven_changes_no_outcome(side, status):
    lost = rival(status=status, quoted=10**30, reason="why")
    for rows, end in (((), "no_route"), ((row("v3", "reverted", reason="no"),), "reverted"), ((row("v3", "failed", reason="node_error"),), "fault")):
        assert said(several(board(side, 100, *rows, lost))) == end
    claimed = board("sell", 100, row("v3", "unprovable", quoted=7, reason="lane"), lost)
    assert [outcome(several(claimed), ledger).arrival_raw for ledger in LEDGERS] == [TokenRaw(7), TokenRaw(7)]


def test_an_exit_that_only_a_rival_proves_is_proven_on_headline():
    taken = board("sell", 100, row("v3", "unprovable", quoted=900, reason="slot"), rival(brings=500))
    assert [outcome(several(taken), ledger).route for ledger in LEDGERS] == ["kyberswap", "v3"]


def test_a_sale_of_which_a_part_goes_through_is_named():
    limited = replace(row("v3", "reverted", reason="reverted: too much"), flags=("sale_size_limited",))
    event = outcome(several(board("sell", 100, row("v2", "reverted", reason="reverted: x"), limited)))
    assert (event.reason, event.detail) == ("reverted", "sale_size_limited: reverted: x")
