"""The story of an order: everything that was recorded about it, and the rule that decided it."""

from __future__ import annotations

from dataclasses import replace

from ledgers.money import Wei
from ops.lines import asked_text
from ops.story import order_data, read_run, run_data, why
from ops.telling import _gate_text, order_text, run_text
from referee.onchain.events import GateTaken, OrderAsked, OrderRefused
from tests.ops.told import ONE, TOKEN, TWO, buy, told
from tests.ops.test_view import unprintable

JOURNAL = told()
RUN = read_run(JOURNAL, ONE)


def test_filled_order_tells_board_rows_gate_entry_and_why():
    text = order_text(RUN, RUN.order("1"), 300)
    for said in (
        "buy 0.010000 ETH of PEPE·abab", "3 ms late, place 1 in the rotation", "2 rows at block 101", "age 1,200 ms",
        "→  router  v3 0.3% weth>token  proven", "reverted", "CLEAR: buys 123.0000", "loses 65 bps",
        "bought 123.0000 PEPE·abab", "book    -0.0100012 ETH", "the only proven row, credited with what arrived",
    ):  # fmt: skip
        assert said in text, said


def test_refused_order_names_the_rule_and_says_it():
    text = order_text(RUN, RUN.order("0/1"), 300)
    assert "refused     gate_flagged (ONC-08)" in text and "ONC-08: A buy whose honeypot check is not CLEAR is refused" in text


def test_order_that_ledgers_took_differently_tells_both():
    data = order_data(RUN, RUN.order(f"{ONE}/0/2"))
    assert data["outcome"] == {"headline": "refused unprovable_exit (ONC-11)", "permissive": "filled unproven (BUY_UNPROVEN:slot)"}


def test_order_as_data_is_what_was_recorded():
    events = order_data(RUN, RUN.order("1"))["events"]
    recorded = {record.seq: record for record in JOURNAL.read()}
    assert [event["kind"] for event in events] == ["Woken", "BundleShown", "TurnPlayed", "DecisionTaken", "BoardTaken", "GateTaken", "RouteSimulated", "FillCredited"]
    assert all(event["link"] == recorded[event["seq"]].link for event in events)


def test_unknown_order_and_run_are_none():
    assert RUN.order("9") is None and RUN.order("1/0") is None and read_run(JOURNAL, "w1-random-2") is None


def test_run_lists_its_orders_and_how_it_ended():
    text = run_text(RUN, 300)
    assert "1  tick 0  buy 0.010000 ETH of PEPE·abab" in text and "1 woken, 1 answered, 0 ticks missed" in text
    assert "1 of 1 holding counted 0" in text and "scores -30.0000 %" in text


def test_run_without_orders_is_told():
    told_run = read_run(JOURNAL, TWO)
    assert "has no score: fault" in run_text(told_run) and run_data(told_run)["orders"] == []


def test_hostile_text_in_a_story_is_only_letters():
    assert unprintable("".join(order_text(RUN, order) for order in RUN.orders)) == set()


def test_turns_without_a_decision_and_missed_ticks_are_listed():
    text = run_text(read_run(JOURNAL, TWO), 300)
    assert "tick 0: answered, but not with a decision: not_json" in text and "missed (late): tick 1" in text


def test_a_story_fits_its_width():
    assert max(len(line) for order in RUN.orders for line in order_text(RUN, order, 80).splitlines()) <= 80


def test_a_gate_whose_sale_brought_nothing_says_so():
    gates = [event for _, event in RUN.order("1").seen if isinstance(event, GateTaken)]
    assert "selling it brings nothing" in _gate_text(RUN, replace(gates[0], own_wei=Wei(0)))
    assert "a later sale cannot be simulated: slot, where the token keeps balances" in _gate_text(RUN, replace(gates[0], exit_provable=False, exit_cause="slot"))
    assert "()" not in _gate_text(RUN, replace(gates[0], exit_provable=False))


def test_an_order_without_an_amount_is_not_told_as_all():
    assert asked_text(OrderAsked(index=0, side="open-lp", token=TOKEN, spend_wei=None, amount_raw=None, sell_all=False), RUN.names) == "open-lp PEPE·abab"
    assert asked_text(buy(0, TOKEN, 1), RUN.names) == "buy 0.000000000000000001 ETH of PEPE·abab"


def test_an_outcome_is_said_once():
    text = order_text(RUN, RUN.order("0/1"), 300)
    assert "refused refused" not in " ".join(text.split()) and text.count("gate_flagged (ONC-08)") == 1


def test_the_same_reason_on_two_ledgers_is_said_once():
    order = RUN.order("0/1")
    refused = next((record, event) for record, event in order.seen if isinstance(event, OrderRefused))
    split = [(refused[0], replace(refused[1], ledgers=(ledger,))) for ledger in ("headline", "permissive")]
    assert list(why(replace(order, seen=split))) == list(why(order))
