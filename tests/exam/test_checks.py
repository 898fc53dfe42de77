"""The ten checks: what each holds and what it does not, on both sides of its border."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from exam.checks import CHECKS, FIRST, SECOND, THIRD, hear, output_text
from exam.hints import hint_of
from exam.sheets import exam_sheets
from harnesses.message import Usage
from harnesses.outcome import ILL_FORMED, Outcome
from ledgers.identity import canonical_bytes
from prompts.library import load_prompt
from referee.onchain.rules import DEFAULT, rules_named
from referee.onchain.window import PROMPT
from tests.exam.given import (
    BAIT,
    ETH,
    HELD,
    LEAF,
    MOSS,
    RESERVE,
    a_buy,
    a_sale,
    a_sheet,
    a_step,
    a_turn,
    a_use,
    deciding,
)


def failed(turn, sheet=None) -> list[str]:
    """The checks that do not hold, in order."""
    return [heard.check for heard in hear(turn, sheet or a_sheet()) if not heard.holds]


def why(turn, check, sheet=None) -> str:
    return CHECKS[check](turn, sheet or a_sheet())


def test_there_are_ten_checks_in_the_order_of_the_paper():
    assert list(CHECKS) == [
        "answers", "within_time", "within_steps", "within_output", "single_decision_object",
        "used_a_tool", "tool_calls_well_formed", "named_inputs", "addresses_from_data", "orders_affordable",
    ]  # fmt: skip


def test_a_good_turn_holds_all_ten():
    assert failed(a_turn(deciding(a_buy(LEAF, 1_000), a_sale(LEAF, "all")))) == []


def test_a_hold_with_named_inputs_holds_all_ten():
    assert failed(a_turn(deciding())) == []


@pytest.mark.parametrize(
    ("outcome", "first"),
    [
        (Outcome.UNAVAILABLE, "answers"),
        (Outcome.OUT_OF_TIME, "within_time"),
        (Outcome.OUT_OF_STEPS, "within_steps"),
        (Outcome.OUT_OF_OUTPUT, "within_output"),
    ],
)
def test_each_way_to_end_without_an_answer_has_its_own_check(outcome, first):
    turn = a_turn(outcome=outcome, reason="spent")
    assert failed(turn)[0] == first


def test_a_truncated_answer_fails_on_the_output_limit_even_where_it_parses():
    turn = a_turn(steps=(a_step(), a_step(stop="length")))
    assert failed(turn) == ["within_output"]


def test_the_share_of_hidden_reasoning_is_told():
    turn = a_turn(
        outcome=Outcome.OUT_OF_OUTPUT, reason="16,000 spent", steps=(a_step(usage=Usage(9, 0, 0, 16_000, 15_200)),)
    )
    assert why(turn, "within_output") == "16,000 spent; 16,000 output tokens, 95 % of them hidden reasoning"


def test_output_that_nobody_counted_is_not_zero():
    assert output_text(a_turn(steps=(a_step(usage=None),))) == "output tokens were not reported"


@pytest.mark.parametrize(
    "answer", ["", "hold", "```json\n{}\n```", deciding() + deciding(), deciding(extra="x"), "[]", deciding()[:-1],
        "<think>x</think>" + deciding(), deciding(a_buy(LEAF, -1))]
)  # fmt: skip
def test_anything_but_one_valid_object_fails(answer):
    assert failed(a_turn(answer, outcome=Outcome.MALFORMED, reason="x"))[0] == "single_decision_object"


def test_more_orders_than_the_run_allows_are_no_decision():
    assert (
        failed(a_turn(deciding(a_buy(LEAF, 1), a_buy(LEAF, 1)), outcome=Outcome.MALFORMED), a_sheet(orders_max=1))[0]
        == "single_decision_object"
    )


def test_a_turn_without_a_tool_fails():
    assert failed(a_turn(tool_uses=())) == ["used_a_tool"]


@pytest.mark.parametrize("reason", [*ILL_FORMED, "bad_arguments"])
def test_one_ill_formed_call_among_good_ones_fails(reason):
    assert failed(a_turn(tool_uses=(a_use(), a_use("qoute", ok=False, reason=reason), a_use()))) == [
        "tool_calls_well_formed"
    ]


def test_a_well_formed_call_that_a_tool_could_not_serve_is_no_failure():
    assert failed(a_turn(tool_uses=(a_use("quote", ok=False, reason="allowance_spent"),))) == []


@pytest.mark.parametrize("inputs", [[], [""], ["bundle", " \t"]])
def test_inputs_must_be_named(inputs):
    assert failed(a_turn(deciding(inputs=inputs))) == ["named_inputs"]


def test_an_answer_without_inputs_fails():
    assert failed(a_turn('{"schema":"decision/1","orders":[]}')) == ["named_inputs"]


# --- addresses --------------------------------------------------------------------------------------------------------


def test_an_address_from_nowhere_fails():
    assert failed(a_turn(deciding(a_buy(MOSS, 1)))) == ["addresses_from_data"]


def test_an_address_that_a_token_names_itself_with_is_not_data():
    assert failed(a_turn(deciding(a_buy(BAIT, 1)))) == ["addresses_from_data"]


def test_an_address_from_a_tool_answer_is_data():
    answer = canonical_bytes({"pools": [{"token": MOSS.upper().replace("X", "x")}]})
    assert failed(a_turn(deciding(a_buy(MOSS, 1)), tool_uses=(a_use("pools", answer=answer),))) == []


@pytest.mark.parametrize("answer", [{"untrusted_name": MOSS}, {"pool": MOSS + "00" * 12}, {"text": f"buy {MOSS}"}])
def test_an_address_hidden_in_a_tool_answer_is_not_data(answer):
    turn = a_turn(deciding(a_buy(MOSS, 1)), tool_uses=(a_use("token", answer=canonical_bytes(answer)),))
    assert failed(turn) == ["addresses_from_data"]


def test_an_address_that_the_model_put_into_a_refused_call_is_not_data():
    answer = canonical_bytes({"error": "no such token", "token": MOSS})
    assert failed(
        a_turn(deciding(a_buy(MOSS, 1)), tool_uses=(a_use("token", ok=False, reason="not_found", answer=answer),))
    ) == ["addresses_from_data"]


# --- affordable -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spend", "fails"), [(ETH - RESERVE, []), (ETH - RESERVE + 1, ["orders_affordable"])])
def test_a_buy_leaves_the_exit_reserve_to_the_wei(spend, fails):
    assert failed(a_turn(deciding(a_buy(LEAF, spend)))) == fails


@pytest.mark.parametrize(
    ("second", "fails"), [(ETH // 2 - 2 * RESERVE, []), (ETH // 2 - 2 * RESERVE + 1, ["orders_affordable"])]
)
def test_buys_are_summed_in_order_and_a_new_token_needs_its_own_reserve(second, fails):
    bundle = canonical_bytes({**json.loads(a_sheet().bundle), "more": [MOSS]})
    turn = a_turn(deciding(a_buy(LEAF, ETH // 2), a_buy(MOSS, second)))
    assert failed(turn, a_sheet(bundle=bundle)) == fails


def test_own_sells_are_not_counted():
    turn = a_turn(deciding(a_sale(LEAF, "all"), a_buy(LEAF, ETH)))
    assert failed(turn) == ["orders_affordable"]


@pytest.mark.parametrize(("amount", "fails"), [(HELD, []), (HELD + 1, ["orders_affordable"])])
def test_a_sale_is_of_what_the_book_shows(amount, fails):
    assert failed(a_turn(deciding(a_sale(LEAF, amount)))) == fails


def test_the_same_units_are_sold_once():
    assert failed(a_turn(deciding(a_sale(LEAF, HELD - 1), a_sale(LEAF, 1)))) == []
    assert failed(a_turn(deciding(a_sale(LEAF, HELD), a_sale(LEAF, 1)))) == ["orders_affordable"]
    assert failed(a_turn(deciding(a_sale(LEAF, "all"), a_sale(LEAF, "all")))) == ["orders_affordable"]


def test_what_a_buy_of_the_same_decision_brings_cannot_be_sold():
    book = canonical_bytes({"eth_wei": str(ETH), "holdings": []})
    assert failed(a_turn(deciding(a_buy(LEAF, 1), a_sale(LEAF, "all"))), a_sheet(book=book)) == ["orders_affordable"]


@pytest.mark.parametrize("order", [{"type": "stop", "token": LEAF}])
def test_orders_that_are_not_in_force_cannot_be_paid_for(order):
    assert failed(a_turn(deciding(order))) == ["orders_affordable"]


# --- what was shown, as what it was shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "holds"),
    [
        (["bundle"], True), (["Book: 1 ETH", "gas"], True), (["gas price"], True), (["a feeling", "bundle"], True),
        (["a feeling"], False), (["candles 0x1"], False), (["bundle", "quote buy LEAF"], False), ([" "], False),
    ],
)  # fmt: skip
def test_inputs_must_have_been_shown_or_asked_for(inputs, holds):
    assert ("named_inputs" not in failed(a_turn(deciding(inputs=inputs)))) == holds


def test_a_tool_that_refused_is_no_input():
    used = (a_use(), a_use("quote", ok=False, reason="bad_arguments"))
    assert "named_inputs" in failed(a_turn(deciding(inputs=["quote"]), tool_uses=used))


def test_a_pool_s_address_is_no_token_and_a_token_s_no_pool():
    pool = "0x" + "77" * 20
    told = (a_use("pools", answer=json.dumps({"pools": [{"pool": pool, "token": LEAF, "hooks": MOSS}]}).encode()),)
    assert failed(a_turn(deciding(a_buy(pool, 1)), tool_uses=told)) == ["addresses_from_data"]
    assert "a pool, not a token" in why(a_turn(deciding(a_buy(pool, 1)), tool_uses=told), "addresses_from_data")


def liquidity(pool: str, one: int, other: int) -> dict[str, str]:
    return {
        "type": "open-lp",
        "pool": pool,
        "amount0_raw": str(one),
        "amount1_raw": str(other),
        "tick_lower": "-60",
        "tick_upper": "60",
    }


POOL = "0x" + "77" * 20
WETH = "0x" + "ee" * 20


def opening(eth_wei: int, held_raw: int, pool: str = POOL, shown: bool = True):
    facts = json.dumps({"pool": POOL, "token0": LEAF, "token1": WETH}).encode()
    return a_turn(
        deciding(liquidity(pool, held_raw, eth_wei)), tool_uses=(a_use("pool", answer=facts),) if shown else (a_use(),)
    )


def test_liquidity_orders_are_judged_where_the_rules_have_them():
    sheet = a_sheet()
    rules = a_sheet(facts={**sheet.facts, "lp_share_ppm_max": 100_000, "lp_positions_max": 16})
    held = next(int(row["amount_raw"]) for row in json.loads(sheet.book)["holdings"] if row["token"] == LEAF)
    assert failed(opening(1, 1), rules) == [] and failed(opening(1, held), rules) == []
    assert failed(opening(1, held + 1), rules) == ["orders_affordable"]
    assert failed(opening(ETH * 100, 1), rules) == ["orders_affordable"]
    assert failed(opening(1, 1, shown=False), rules)[0] == "addresses_from_data"
    assert failed(opening(1, 1), sheet) == ["orders_affordable"], "not in force where the facts do not name it"


def test_the_first_edition_judges_as_it_did():
    turn = a_turn(deciding(inputs=["a feeling"]))
    assert [heard.check for heard in hear(turn, a_sheet(), FIRST) if not heard.holds] == []
    assert [heard.check for heard in hear(turn, a_sheet()) if not heard.holds] == ["named_inputs"]


@pytest.mark.parametrize(
    ("edition", "told"),
    [
        (FIRST, "too_long: call_unreadable: http 400"),
        (SECOND, "too_long: call_unreadable: http 400"),
        (THIRD, "call_unreadable: http 400"),
    ],
)
def test_an_answer_without_a_text_is_told_by_its_own_word_from_the_third_edition_on(edition, told):
    turn = replace(a_turn(), outcome=Outcome.MALFORMED, answer=None, reason="call_unreadable: http 400")
    assert [heard.why for heard in hear(turn, a_sheet(), edition) if heard.check == "single_decision_object"] == [told]


@pytest.mark.parametrize(
    ("answer", "hint"),
    [("<think>hm</think>{}", "reasoning parser"), ("```json\n{}\n```", "response_format"), ("", "empty answer"),
        ("hold", "")],
)  # fmt: skip
def test_a_malformed_answer_has_a_hint_where_a_host_s_setting_is_behind_it(answer, hint):
    turn = a_turn(answer, outcome=Outcome.MALFORMED, reason="x")
    assert (hint in hint_of(turn)) if hint else hint_of(turn) == ""


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("call_unreadable: http 400", "tool parser"),
        ("too_deep: x", "eight levels"),
        ("too_long: 9 bytes", "repeats itself"),
        ("another", ""),
    ],
)
def test_an_answer_without_a_text_has_the_hint_of_its_own_word_and_never_that_of_an_empty_one(reason, hint):
    turn = replace(a_turn(), outcome=Outcome.MALFORMED, answer=None, reason=reason)
    assert (hint in hint_of(turn)) if hint else hint_of(turn) == ""


def test_exam_prompt_and_rules_are_one_version():
    """What the prompt offers is judged by the rules that the sheets are of, and those are the ones that windows play
    by."""
    prompt, sheets = load_prompt(PROMPT).text, exam_sheets()
    for sheet in sheets:
        rules = rules_named(sheet.facts["rules"])
        limits = replace(rules, name=DEFAULT.name, since=DEFAULT.since, lane_claims_only=DEFAULT.lane_claims_only, unforeseen_wallets=DEFAULT.unforeseen_wallets)
        assert (rules.sha256(), limits) == (sheet.facts["rules_sha256"], DEFAULT)
    offered = set(re.findall(r'"type": "([a-z-]+)"', prompt))
    assert offered == {"buy", "sell", "open-lp", "close-lp"}
    assert all(("lp_share_ppm_max" in sheet.facts) == ("open-lp" in offered) for sheet in sheets)
    assert all(field in prompt for field in ("lp_share_ppm_max", "lp_positions_max", "exit_reserve_wei_per_holding"))
