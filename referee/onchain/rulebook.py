"""The rule book: every rule of the bench with its value, its source, how far it is in force, and the test that proves it.

Ids are stable. `referee rules` prints these rows. Source: design §5, after 001.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.money import decimal_text
from referee.onchain.rules import DEFAULT, Rules

ENFORCED = "enforced"
"""A window cannot break it."""
RECORDED = "recorded"
"""The journal holds what it needs; nothing acts on it yet."""
PLANNED = "planned"
"""Not built yet: nothing claims it."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as a person reads it."""

    id: str
    status: str
    """enforced, recorded or planned."""
    value: str
    """Its number or choice; – when it has none."""
    source: str
    rule: str

    @property
    def tests(self) -> tuple[str, ...]:
        """Tests that prove it, as pytest names them; none while it is planned."""
        return PROOFS.get(self.id, ())


def rule_rows(rules: Rules) -> tuple[RuleRow, ...]:
    """Write the rule book of one rule set. Shapes: sorted by id."""
    return (*_window(rules), *_board(rules), *_turn(), *_results(), *_further_ledgers(rules), *_orders(rules))


def _window(rules: Rules) -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-01", ENFORCED, "SHA-256", "001 §2.1", "The unit is the stack; harness, prompt and tools are identified by SHA-256, and a change is a new identity."),
        RuleRow("ONC-02", ENFORCED, f"{_usd(rules.stake_micro_usd)} USD", "001 §2.2", "The stake is a sum of dollars in ETH, priced when the window opens."),
        RuleRow("ONC-03", ENFORCED, f"late after min(interval / 10, {_ms(rules.late_ms_max)})", "001 §2.2", "Stacks are woken on a fixed interval that the window pins; a missed tick is recorded and never made up."),
        RuleRow("ONC-04", ENFORCED, f"at most {rules.orders_max} orders a decision", "001 §2.2", "The agent never holds balances; its orders are buy, sell, open-lp and close-lp for an exact size."),
    )


_CLAIMS = "The headline ledger counts proven rows only, the permissive one any row; an unprovable exit is filled at the quote less gas and tagged."
_CLAIMS_OF_LANES = (
    "The headline ledger counts proven rows only, the permissive one any row; an exit that our own lane could not try is filled at the quote less gas and "
    "tagged, one that nobody can tell on the permissive ledger alone."
)


def _board(rules: Rules) -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-05", ENFORCED, rules.board_policy, "001 §2.2", "Every order is quoted live for its exact size on our own router and by rivals, always or only where we have no proven row, as the run pins it; a rival counts only when its own transaction, simulated, is proven."),
        RuleRow("ONC-06", ENFORCED, "–", "001 §2.2", "The best row net of gas fills: buys by arrival ÷ (spend + gas), sells by ETH − gas; approvals not paid yet count; ties go to our router."),
        RuleRow("ONC-07", ENFORCED, f"board {_ms(rules.board_age_ms_max)}, pin {_ms(rules.pin_lag_ms_max)}", "001 §2.2", "A board older than this at the decision to fill is refused, counted from the pinned block's time; the pin is close behind a checked clock."),
        RuleRow("ONC-08", ENFORCED, f"{rules.gate_loss_bps_max:,} bps", "001 §2.2", "A buy whose honeypot check is not CLEAR is refused: FLAGGED where the sale reverts or the round trip loses more than this before gas, UNKNOWN where it cannot be told, a cooldown too; outside sources may only worsen it."),
        RuleRow("ONC-09", ENFORCED, "gas ≤ value", "001 §2.2", "A trade whose gas exceeds its value is refused: the spend of a buy, the gross ETH of a sell; equal passes."),
        RuleRow("ONC-10", ENFORCED, "–", "001 §2.2", "The route's own transaction is simulated on a pinned block; credited is what arrives by balance difference; a revert is no fill."),
        RuleRow("ONC-11", ENFORCED, "–", "001 §2.2, §5.5", _CLAIMS_OF_LANES if rules.lane_claims_only else _CLAIMS),
        RuleRow("ONC-12", ENFORCED, f"every min({_ms(rules.mark_interval_ms_max)}, window / {rules.mark_window_parts}); retried {_ms(rules.liquidation_retry_ms_max)}", "001 §2.2, §4", "Marks after each turn and on the clock; full liquidation by simulation at the end; a fault never counts 0. Hold scores exactly 0."),
    )


def _turn() -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-13", ENFORCED, "ten checks on three turns", "001 §2.3.1", "No model trades without a pass of the entrance exam on that harness identity; stacks without a model are exempt and say so."),
        RuleRow("ONC-14", ENFORCED, "the harness's limit, 1,200 s as shipped", "001 §2.3.2", "One long plan turn without a book; each copy's plan is frozen before the window clock starts, by its hash in public, its text after the seal."),
        RuleRow("ONC-15", ENFORCED, "balanced", "001 §5.9", "Turns of a tick run at once on one bundle block; a seeded, balanced rotation sets who is refereed first; waits are recorded apart."),
    )


def _results() -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-16", ENFORCED, "parts per million, rounded down", "001 §4", "The score is the change of the headline ledger's liquidation value in ETH; n is shown, and one short run is an anecdote."),
        RuleRow("ONC-17", PLANNED, "2 s.e.", "001 §4, design §10", "A finding needs one window, a difference beyond the noise floor, and both stacks above the random trader."),
        RuleRow("ONC-18", RECORDED, "–", "001 §4", "Stacks tried are counted automatically and shown beside every leaderboard."),
        RuleRow("ONC-19", RECORDED, "API list price", "001 §4", "Results also after compute, on five bases labelled with method, source and range."),
        RuleRow("ONC-20", PLANNED, "–", "001 §6", "Hypothesis, window, stacks and decision rule are hashed before the window opens, and reports cite the hash."),
    )


def _further_ledgers(rules: Rules) -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-21", ENFORCED, _liquidity(rules), "001 §5.10", "Paper liquidity earns the true share of real swaps in its range, from the pool's own logs; principal follows the real price path; no hooks that change amounts."),
        RuleRow("ONC-22", ENFORCED, _delay(rules), "001 §5.1", "A ledger of its own sends headline's transaction again after a declared delay: filled with what then arrives if that is at least the quote less a bound, else reverted for its gas."),
        RuleRow("ONC-23", ENFORCED, _impact(rules), "001 §5.2", "A ledger of its own executes the run's earlier fills in the same pools again before every order, mark and liquidation, fading in time; an order in a pool for the first time costs what it costs on headline."),
    )


def _orders(rules: Rules) -> tuple[RuleRow, ...]:
    return (
        RuleRow("ONC-24", ENFORCED, "–", "ours", "Orders of one decision run in order, each simulated after the filled ones before it at one block; splitting never beats one order."),
        RuleRow("ONC-25", RECORDED, "–", "ours", "Each score is shown with its largest pool's share and without its best pool; of every pool that a headline fill went through, age, owners of its liquidity and traders are recorded."),
        RuleRow("ONC-26", ENFORCED, "–", "001 §5.3, §5.7", "No stop, limit or standing orders: refused by name."),
        RuleRow("ONC-27", ENFORCED, f"{rules.exit_reserve_gas_per_holding:,} gas a holding", "001 §2.3.1", "Spend is exact and gas comes on top; a buy leaves gas for every exit; else refused insufficient_eth."),
        RuleRow("ONC-28", ENFORCED, f"within {rules.feed_gap_bps_max} bps of the feed", "001 §2.2", "One stake in wei per window, priced once by the median of pools near the feed; else the window does not open."),
        RuleRow("ONC-29", ENFORCED if rules.lane_claims_only else RECORDED, "seven readings of a shared word", "ours", "The wallet carries every word that its own transactions wrote beside the market's; where others wrote it too, all readings must agree to the wei, else nobody can tell."),
    )


def _liquidity(rules: Rules) -> str:
    return "refused not_yet" if rules.lp_share_ppm_max is None else f"at most {decimal_text(rules.lp_share_ppm_max, 4)} % of others' liquidity in range, {rules.lp_positions_max} positions"


def _delay(rules: Rules) -> str:
    return "not kept" if rules.delay_ms is None else f"{_ms(rules.delay_ms)}, {rules.delay_loss_bps_max} bps"


def _impact(rules: Rules) -> str:
    if rules.impact_full_ms is None or rules.impact_gone_ms is None:
        return "not kept"
    return f"full for {_ms(rules.impact_full_ms)}, gone by {_ms(rules.impact_gone_ms)}, latest {rules.impact_trades_max} trades"


def _usd(micro_usd: int) -> str:
    return decimal_text(micro_usd, 6)


def _ms(ms: int) -> str:
    return f"{ms:,} ms"


PROOFS: dict[str, tuple[str, ...]] = {
    "ONC-01": (
        "tests/harnesses/test_stack.py::test_onc_01_a_change_in_any_part_is_a_new_identity",
        "tests/harnesses/test_stack.py::test_onc_01_one_changed_byte_of_a_manifest_is_a_new_harness",
    ),
    "ONC-02": (
        "tests/onchain/test_run.py::test_the_stake_is_100_dollars_of_eth_on_both_ledgers_ONC_02",
        "tests/onchain/test_score.py::test_the_stake_is_100_dollars_rounded_down_ONC_02",
    ),
    "ONC-03": (
        "tests/onchain/test_run.py::test_ticks_fall_at_open_plus_k_intervals_and_none_at_the_close_ONC_03",
        "tests/onchain/test_window.py::test_a_tick_may_be_a_tenth_of_the_interval_late_but_at_most_ten_seconds_ONC_03",
        "tests/onchain/test_run.py::test_every_tick_is_woken_or_missed_exactly_once_for_every_run",
    ),
    "ONC-04": (
        "tests/onchain/test_decision.py::test_onc_04_buys_and_sells_are_read_for_their_exact_size",
        "tests/onchain/test_board.py::test_onc_04_a_buy_spends_and_a_sale_gives_exactly_the_size",
    ),
    "ONC-05": (
        "tests/onchain/test_window.py::test_onc_05_the_board_policy_is_pinned_in_window_and_rules",
        "tests/onchain/test_rivals.py::test_onc_05_as_a_fallback_they_are_asked_only_where_our_router_has_no_proven_row",
        "tests/onchain/test_rivals.py::test_onc_05_a_rival_that_says_nothing_usable_costs_its_row",
    ),
    "ONC-06": (
        "tests/onchain/test_credit.py::test_onc_06_no_row_of_a_board_beats_the_chosen_one",
        "tests/onchain/test_board.py::test_onc_06_approvals_not_paid_yet_count_against_a_row",
        "tests/onchain/test_rivals.py::test_onc_06_a_better_rival_wins_and_is_credited_what_its_transaction_really_brings",
    ),
    "ONC-07": (
        "tests/onchain/test_credit.py::test_onc_07_a_board_of_30_000_ms_fills_and_one_of_30_001_ms_does_not",
        "tests/onchain/test_board.py::test_onc_07_a_block_too_far_behind_the_clock_is_no_pin",
    ),
    "ONC-08": (
        "tests/onchain/test_board.py::test_onc_08_a_loss_equal_to_the_limit_passes_and_more_is_flagged",
        "tests/onchain/test_board.py::test_onc_08_what_cannot_be_sold_again_or_only_at_a_great_loss_is_not_bought",
        "tests/onchain/test_board.py::test_onc_08_why_a_buyer_cannot_sell_is_looked_at_a_second_time",
        "tests/onchain/test_board.py::test_onc_08_an_outside_word_against_a_token_flags_what_our_own_gate_clears",
    ),
    "ONC-09": (
        "tests/onchain/test_credit.py::test_onc_09_a_buy_whose_gas_equals_its_spend_fills_and_one_wei_more_is_refused",
        "tests/onchain/test_credit.py::test_onc_09_a_sale_whose_gas_equals_what_arrives_fills_and_one_wei_more_is_refused",
    ),
    "ONC-10": (
        "tests/onchain/test_truth.py::test_every_credit_equals_real_execution_to_the_wei",
        "tests/onchain/test_board.py::test_onc_10_a_revert_fills_on_no_ledger_and_keeps_its_evidence",
        "tests/onchain/test_late_taxes.py::test_a_late_sale_on_paper_is_what_a_wallet_that_bought_really_gets",
    ),
    "ONC-11": (
        "tests/onchain/test_board.py::test_onc_11_an_unprovable_exit_is_refused_by_headline_booked_by_permissive_and_sold_on_a_claim",
        "tests/onchain/test_score.py::test_exits_on_a_claim_count_0_in_the_score_beside_ONC_11",
    ),
    "ONC-12": (
        "tests/onchain/test_run.py::test_marks_are_taken_after_each_turn_and_every_sixth_of_the_window_ONC_12",
        "tests/onchain/test_run.py::test_a_liquidation_is_retried_for_15_minutes_and_then_the_run_is_unscored",
    ),
    "ONC-13": (
        "tests/onchain/test_planning.py::test_a_model_without_a_pass_opens_no_run_ONC_13",
        "tests/onchain/test_planning.py::test_a_pass_of_another_model_or_harness_opens_no_run_ONC_13",
        "tests/exam/test_entrance.py::test_all_checks_on_all_turns_make_a_pass_ONC_13",
        "tests/ops/test_exam_cli.py::test_a_model_opens_a_window_after_its_pass_and_not_before_ONC_13",
    ),
    "ONC-14": (
        "tests/onchain/test_planning.py::test_the_window_clock_starts_after_the_last_plan_ONC_14",
        "tests/onchain/test_planning.py::test_the_frozen_plan_stands_in_every_later_prompt_ONC_14",
        "tests/onchain/test_planning.py::test_a_plan_turn_ends_at_its_limit_to_the_millisecond_ONC_14",
    ),
    "ONC-15": (
        "tests/onchain/test_run.py::test_the_stacks_of_a_tick_see_the_same_block_and_bytes_and_run_at_the_same_time_ONC_15",
        "tests/onchain/test_window.py::test_rotation_gives_every_run_every_place_once_a_round_ONC_15",
    ),
    "ONC-16": (
        "tests/onchain/test_run.py::test_holding_scores_exactly_0_ONC_16",
        "tests/onchain/test_score.py::test_a_return_is_rounded_down_ONC_16",
    ),
    "ONC-22": (
        "tests/onchain/test_delayed.py::test_onc_22_at_its_bound_an_order_fills_and_one_unit_below_it_reverts_and_pays_its_gas",
        "tests/onchain/test_delayed.py::test_onc_22_a_delay_on_an_unmoved_chain_changes_nothing",
        "tests/onchain/test_delayed.py::test_onc_22_on_a_driven_path_both_signs_occur_and_equal_really_executing_it_late",
    ),
    "ONC-23": (
        "tests/onchain/test_own_impact.py::test_onc_23_the_impact_of_one_trade_is_zero",
        "tests/onchain/test_own_impact.py::test_onc_23_equal_buys_and_a_full_sale_bring_what_really_executing_them_brings_to_the_wei",
        "tests/onchain/test_own_impact.py::test_onc_23_trades_fade_and_are_gone_in_time",
    ),
    "ONC-21": (
        "tests/onchain/test_liquidity.py::test_onc_21_opening_and_closing_are_booked_as_they_really_happen_to_the_wei",
        "tests/onchain/test_liquidity.py::test_onc_21_principal_follows_the_real_price_path_and_fees_are_the_real_ones_less_the_positions_own_share",
        "tests/onchain/test_liquidity.py::test_onc_21_a_position_is_never_marked_above_what_really_closing_and_selling_everything_brings",
        "tests/onchain/test_liquidity_refusals.py::test_onc_21_a_tenth_of_the_others_liquidity_is_taken_and_more_is_not",
        "tests/onchain/test_liquidity_window.py::test_onc_21_a_window_with_positions_is_replayed_and_recounted_equal_wherever_its_process_ended",
    ),
    "ONC-24": (
        "tests/onchain/test_pieces.py::test_onc_24_a_buy_in_pieces_never_brings_more_than_one_order",
        "tests/onchain/test_pieces.py::test_onc_24_a_sale_in_pieces_never_brings_more_than_one_order",
        "tests/onchain/test_pieces.py::test_onc_24_a_decision_is_credited_what_really_sending_it_brings_to_the_wei",
    ),
    "ONC-25": (
        "tests/chain/test_owners.py::test_onc_25_the_owner_of_a_pools_liquidity_is_told_also_behind_a_position_token",
        "tests/chain/test_owners.py::test_onc_25_volume_is_told_by_who_sent_the_transactions",
    ),
    "ONC-26": (
        "tests/onchain/test_run.py::test_standing_and_liquidity_orders_are_refused_by_name_ONC_26",
    ),
    "ONC-27": (
        "tests/onchain/test_credit.py::test_onc_27_a_buy_leaves_its_exit_reserve_after_gas_to_the_wei",
        "tests/onchain/test_board.py::test_onc_27_spend_gas_and_exit_reserve_must_all_be_there_to_the_wei",
    ),
    "ONC-28": (
        "tests/onchain/test_run.py::test_a_window_does_not_open_when_the_feed_disagrees_ONC_28",
    ),
    "ONC-29": (
        "tests/lives/test_told.py::test_no_life_is_told_more_than_it_lives",
        "tests/lives/test_told.py::test_an_honest_life_is_filled_as_it_is_really_lived",
        "tests/onchain/test_lives.py::test_onc_10_every_order_of_a_life_is_credited_what_really_living_it_brings_to_the_wei",
    ),
}
"""Tests by rule; that they exist is itself tested."""

RULE_ROWS = rule_rows(DEFAULT)
"""The rule book of the rules that are in force."""
