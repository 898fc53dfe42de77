"""Liquidity positions as people see them: whole tokens, true digits, fees and impermanent loss apart (ONC-21)."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.liquidity.ticks import TICK_MAX, sqrt_price_at
from ledgers.money import TokenRaw, Wei
from ops.names import TokenName, network_names
from ops.position_lines import _digits, asked_liquidity_text, range_text, share_text, signed_eth_text, small_eth_text
from ops.position_telling import position_chapters
from ops.positions import ABOVE, BELOW, CLOSED, INSIDE, LOST, OPEN
from ops.reporting import account_of, report_of
from ops.story import order_data, read_run, run_data
from ops.telling import order_text, run_text
from ops.turn_story import read_turn, turn_text
from tests.ops.pooled import CLOSING, KEPT, ODD, POOL, closed, mark, marked, opened, pooled
from tests.ops.test_view import drawn, plain_text_of, unprintable
from tests.ops.told import ONE, TOKEN, told

JOURNAL, OPENED = pooled(), pooled(ticks=1, ended=False)
RUN = read_run(JOURNAL, ONE)
NAMES = {TOKEN: TokenName("PEPE", 18)}


def one_line(text: str) -> str:
    return " ".join(text.split())


def table_rows(journal, name: str) -> list[dict[str, str]]:
    tables = {table.name: table for table in report_of(account_of(journal), journal).tables}
    return list(csv.DictReader(io.StringIO(tables[name].csv())))


# --- the fold -------------------------------------------------------------------------------------------------------


def test_positions_that_ledgers_keep_alike_are_told_once():
    assert [(kept.id, kept.ledgers, kept.state) for kept in RUN.positions.all()] == [(KEPT, ("headline", "permissive"), CLOSED), (ODD, ("permissive",), LOST)]


def test_impermanent_loss_and_fees_are_valued_at_the_price_of_the_closing():
    (kept,) = RUN.positions.of(KEPT)
    price = Fraction(sqrt_price_at(94_300) ** 2, 1 << 192)
    held, principal, fees = (10**16 + int(20 * 10**18 / price), 8 * 10**15 + int(23 * 10**18 / price), 10**12 + int(10**16 / price))
    assert (kept.worth.held_wei, kept.worth.principal_wei, kept.worth.fees_wei, kept.worth.block) == (Wei(held), Wei(principal), Wei(fees), 115)
    assert kept.worth.impermanent_wei == Wei(principal - held) and kept.net_wei == Wei(fees + principal - held - 10**13)


def test_an_open_position_is_valued_at_its_last_mark():
    (kept,) = read_run(OPENED, ONE).positions.of(KEPT)
    assert (kept.state, kept.worth.impermanent_wei, kept.worth.fees_wei, kept.net_wei) == (OPEN, Wei(-3 * 10**15), Wei(10**15), Wei(-2 * 10**15 - 5 * 10**12))


def test_what_was_not_marked_is_unknown_and_never_zero():
    story = read_run(OPENED, ONE)
    kept = replace(story.positions.of(KEPT)[0], mark=None, mark_block=None)
    assert (kept.worth, kept.net_wei, kept.principal, kept.data()["impermanent_loss_wei"]) == (None, None, None, None)


def test_blocks_that_are_read_again_count_once():
    assert (RUN.positions.of(KEPT)[0].swaps, RUN.positions.of(KEPT)[0].crossings) == (2, 1)


@pytest.mark.parametrize(("tick", "where"), [(92_999, BELOW), (93_000, INSIDE), (95_399, INSIDE), (95_400, ABOVE)])
def test_a_price_is_in_range_from_the_lower_bound_up_to_the_upper(tick, where):
    story = read_run(OPENED, ONE)
    story.positions.apply(marked("headline", mark(KEPT, sqrt_price_x96=TokenRaw(sqrt_price_at(tick)))))
    assert story.positions.kept["headline", KEPT].where == where


# --- words ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**60), st.integers(1, 10**60))
def test_a_price_is_cut_and_never_rounded_up(up, down):
    shown, exact = Fraction(_digits(up, down)), Fraction(up, down)
    assert shown <= exact < shown * Fraction(100_001, 100_000) and len(_digits(up, down)) <= 24


def test_a_range_is_told_by_ticks_and_whole_tokens():
    assert range_text(opened(), NAMES) == "ticks 93000 to 95400 (10932.9 to 13898.3 PEPE·abab per ETH)"


def test_a_range_of_unknown_decimals_is_told_in_base_units():
    assert range_text(opened(), {}) == "ticks 93000 to 95400 (10932.9 to 13898.3 token·abab per ETH in base units)"


def test_a_share_out_of_range_says_what_it_would_come_to_in_it():
    below = replace(opened(), sqrt_price_x96=TokenRaw(sqrt_price_at(92_999)))
    assert share_text(opened()) == "10.0000 % of the liquidity in range" and share_text(below) == "out of range when it was opened (10.0000 % of the liquidity in range if the price were in it)"


def test_a_range_of_all_prices_is_called_that():
    edge = TICK_MAX // 60 * 60
    assert range_text(replace(opened(), tick_lower=-edge, tick_upper=edge), NAMES).endswith("(all prices)")


def test_what_rounding_leaves_of_a_difference_is_about_nothing():
    assert [signed_eth_text(Wei(wei)) for wei in (-1, 10, 0, 15 * 10**17, -(10**16))] == ["≈ 0", "≈ 0", "0", "+1.50000000", "-0.01000000"]


@pytest.mark.parametrize(("wei", "text"), [(0, "0"), (-2_906_442_171, "-0.0000000029"), (10**10, "0.000000010"), (1, "0.000000000000000001"), (15 * 10**17, "1.50000000")])
def test_ether_is_told_in_few_digits_that_are_true(wei, text):
    assert small_eth_text(Wei(wei)) == text


def test_liquidity_orders_are_told_as_they_were_asked():
    told = [asked_liquidity_text(order.asked) for order in RUN.orders if order.asked.side.endswith("-lp")]
    assert told == ["open-lp in pool 0x1c1c1c1c, ticks 93000 to 95400", "open-lp in pool 0x2d2d2d2d, prices 0.5 to 2", f"close-lp of position {KEPT}"]


def test_the_dollar_of_a_network_has_a_name_and_an_unknown_network_none():
    assert [name.symbol for name in network_names("devnet").values()] == ["USDG"] and network_names("nowhere") == {} == network_names("../x")


# --- show -----------------------------------------------------------------------------------------------------------


def test_a_run_tells_its_positions_with_fees_and_impermanent_loss_on_lines_of_their_own():
    lines = run_text(RUN, 300).splitlines()
    start = lines.index(f"position    {KEPT}, closed by order {CLOSING} at block 115")
    assert [line.split("  ")[0].strip() for line in lines[start : start + 10]] == ["position", "pool", "range", "", "put in", "fees", "principal", "imp. loss", "gas", "net"]
    assert "0.000001 ETH" not in lines[start + 7] and "impermanent" not in lines[start + 5]


def test_a_position_of_which_nothing_came_back_is_not_netted_by_its_price():
    (kept,) = RUN.positions.of(ODD)
    assert kept.net_wei == Wei(-12 * 10**15 - 5 * 10**12) and "nothing came back, against holding" in one_line(run_text(RUN, 300))


def test_many_positions_are_told_in_a_line_each_the_open_ones_first():
    story = read_run(OPENED, ONE)
    for number in range(9):
        story.positions.apply(replace(opened(), position=f"{ONE}/4/{number}"))
    lines = run_text(story, 300).splitlines()
    assert sum(line.startswith("position ") for line in lines) == 6 and sum("not marked yet" in line and "v3 0.3 %" in line for line in lines) == 5


def test_a_position_that_counted_nothing_says_why():
    text = one_line(run_text(RUN, 300))
    assert f"[permissive] {ODD}, counted 0 at the liquidation: reverted" in text and "1 of 1 position counted 0" in text
    assert "below its range, all of it" in text


def test_an_opening_tells_its_share_its_entry_and_what_it_earned():
    text = one_line(order_text(RUN, RUN.order(KEPT), 300))
    for said in (
        f"pool {POOL}", "at most 0.01000000 ETH and ", "Lp/(L+Lp) = 10.0000 % of the liquidity in range: liquidity Lp 1000000000000000000 of its own, L 9000000000000000000",
        "lp (in the pool) +0.01 ETH", "lp (in the pool) +20.0000 PEPE·abab", "3 swaps across 1 tick in blocks 103–110; fees so far 0.00000100 ETH",
        "2 swaps across 1 tick in blocks 108–115, after its logs were read again (reorg); fees so far", "within the rule (ONC-21)",
    ):  # fmt: skip
        assert said in text, said


def test_a_share_that_counts_other_positions_says_so():
    story = read_run(JOURNAL, ONE)
    order = story.order(KEPT)
    order.seen = [(record, replace(event, share_ppm=150_000) if hasattr(event, "share_ppm") else event) for record, event in order.seen]
    assert "15.0000 % of the liquidity in range, the run's other positions in the pool counted in" in one_line(order_text(story, order, 300))


def test_a_closing_tells_principal_and_fees_from_accounts_of_their_own():
    text = one_line(order_text(RUN, RUN.order(CLOSING), 300))
    assert "principal 0.00800000 ETH and 23.0000 PEPE·abab, fees 0.00000100 ETH and 0.01000 PEPE·abab" in text
    assert "lp (in the pool) -0.008 ETH" in text and "lp_fees (from swaps) -0.000001 ETH" in text and "fees are computed from the pool's own logs" in text


def test_orders_of_liquidity_have_their_outcome_and_their_position_in_json():
    data = order_data(RUN, RUN.order(KEPT))
    assert data["outcome"]["headline"] == "opened" and [event["kind"] for event in data["events"]][-2:] == ["LiquidityAccrued", "LiquidityAccrued"]
    assert data["positions"][0]["fees_raw"] == [str(10**12), str(10**16)] and run_data(RUN)["positions"][1]["state"] == LOST
    assert order_data(RUN, RUN.order(CLOSING))["outcome"] == {"headline": "closed", "permissive": "closed"}


def test_an_order_without_liquidity_tells_no_position():
    assert "position" not in order_text(RUN, RUN.order("1"), 300) and order_data(RUN, RUN.order("1"))["positions"] == []


def test_hostile_names_and_reasons_of_positions_are_only_letters_and_fit():
    texts = [run_text(RUN, 80), *(order_text(RUN, order, 80) for order in RUN.orders)]
    assert unprintable("".join(texts)) == set() and max(len(line) for text in texts for line in text.splitlines()) <= 80


def test_the_turn_that_opened_and_closed_positions_tells_it():
    assert f"opened position {KEPT}: 0.01000000 ETH" in one_line(turn_text(read_turn(JOURNAL, ONE, 1), JOURNAL))
    assert f"closed position {KEPT}: principal" in one_line(turn_text(read_turn(JOURNAL, ONE, 2), JOURNAL))


def test_fees_of_a_closing_are_never_given_the_value_that_others_had_at_a_mark():
    story = read_run(JOURNAL, ONE)
    kept = replace(story.positions.of(KEPT)[0], closed=replace(closed(), sqrt_price_x96=TokenRaw(0)))
    told = dict(position_chapters(kept, story.names))
    assert told["fees"].startswith("0.00000100 ETH and 0.01000 PEPE·abab, 0.00100000 ETH at the mark of block 110;") and "both at the price of block 110" in told["imp. loss"]


# --- live -----------------------------------------------------------------------------------------------------------


def test_a_wide_terminal_shows_every_position_in_a_line():
    text = drawn(160, journal=OPENED)
    assert " random-1  1/0  v3 0.3 % ETH/PEPE·abab 0x1c1c1c1c  in range  worth 0.01000000 ETH · fees 0.00100000 ETH · imp. loss -0.00300000 ETH" in text


def test_a_narrow_terminal_shows_how_many_positions_and_their_value():
    text = drawn(80, journal=OPENED)
    assert "random-1  1 position, 1 in range, worth 0.01000000 ETH" in text and "imp. loss" not in text


def test_a_low_terminal_is_not_filled_with_positions():
    for height in (8, 10, 12):
        assert len(drawn(160, height, journal=OPENED).splitlines()) <= max(height, 9)


def test_a_position_that_is_closed_leaves_the_screen():
    assert "worth" in drawn(160, journal=OPENED) and "worth" not in drawn(160, journal=pooled(ended=False))


def test_plain_lines_tell_openings_accruals_and_closings():
    text = plain_text_of(JOURNAL)
    assert f"random-1: opened position {KEPT}: 0.01000000 ETH and 20.0000 PEPE·abab into v3 0.3 % ETH/PEPE·abab 0x1c1c1c1c" in text
    assert f"random-1: position {KEPT}: 3 swaps across 1 tick in blocks 103–110; fees so far 0.00000100 ETH" in text
    assert f"random-1: closed position {KEPT}: principal" in text and f"[permissive] opened position {ODD}" in text
    assert unprintable(text) == set()


# --- the report -----------------------------------------------------------------------------------------------------


def test_the_report_has_positions_with_fees_and_loss_in_columns_of_their_own():
    first, second = table_rows(JOURNAL, "positions")
    assert (first["position"], first["ledgers"], first["state"], first["fees0_raw"], first["fees1_raw"]) == (KEPT, "headline+permissive", CLOSED, str(10**12), str(10**16))
    assert Fraction(first["impermanent_loss_eth"]) == Fraction(first["principal_eth"]) - Fraction(first["held_eth"])
    assert Fraction(first["net_eth"]) == Fraction(first["fees_eth"]) + Fraction(first["impermanent_loss_eth"]) - Fraction(first["gas_eth"])
    assert (second["ledgers"], second["state"], second["closed_block"]) == ("permissive", LOST, "")


def test_the_report_counts_openings_and_closings_as_orders_that_did_what_they_asked_for():
    outcomes = {row["outcome"]: row for row in table_rows(JOURNAL, "outcomes") if row["rule"] == "ONC-21"}
    assert [(name, row["headline_orders"], row["permissive_orders"]) for name, row in outcomes.items()] == [("opened", "1", "2"), ("closed", "1", "1")]
    assert next(row for row in table_rows(JOURNAL, "scores") if row["run_id"] == ONE)["filled"] == "3"


def test_a_report_without_positions_says_nothing_of_them():
    journal = told()
    assert "iquidity position" not in report_of(account_of(journal), journal).text()


def test_the_positions_of_a_report_fit_a_page_and_hostile_names_are_only_letters():
    text = report_of(account_of(JOURNAL), JOURNAL).text(80)
    part = text[text.index("Liquidity positions\n") : text.index("What became of turns")]
    assert max(map(len, part.splitlines())) <= 80 and unprintable(text) == set()
