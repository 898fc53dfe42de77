"""The score: rounded down, never measured from what was not, and counted with what rests on claims at 0 (ONC-16)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.money import MicroUsd, TokenRaw, Wei
from ledgers.postings import ETH, Entry, Posting
from referee.onchain.book import entry_of, stake_entry
from referee.onchain.events import LEDGERS, BoardTaken, FillCredited, Pin, RunOpened, WindowLiquidated
from referee.onchain.rules import DEFAULT
from referee.onchain.score import dollars, return_ppm, score_run, score_window, stake_for
from referee.onchain.state import RunState

STAKE = Wei(40_000_000_000_000_000)
PIN = Pin(block=5, block_hash="0x" + "05" * 32, block_ts_s=1, base_fee_wei=Wei(1), head_block=5, lane="a")
TOKEN = "0x" + "11" * 20


def a_run() -> RunState:
    opened = RunOpened(
        run_id="w1-a-1", ts_ms=1, window_id="w1", stack="a", stack_sha256="", run_sha256="", copy=1, seed=1, wallet="", entry=stake_entry(STAKE)
    )
    return RunState(opened)


def sold(value_wei: int, ledgers=LEDGERS, unproven_wei: int = 0) -> WindowLiquidated:
    return WindowLiquidated(
        run_id="w1-a-1", ts_ms=2, ledgers=ledgers, pin=PIN, eth_wei=Wei(value_wei), holdings=(), value_wei=Wei(value_wei),
        unproven_wei=Wei(unproven_wei), late=False, entry=Entry(ledgers=ledgers, postings=()), evidence_sha256="",
    )  # fmt: skip


def an_exit(run: RunState, gross: int, gas: int, tag: str = "EXIT_UNPROVEN:slot", ledgers=LEDGERS, order_id="w1-a-1/0/0", pin=PIN) -> None:
    """Sell a token for so much, tagged or not."""
    run.owed[order_id] = set(ledgers)
    run.apply(
        BoardTaken(
            run_id="w1-a-1", ts_ms=1, order_id=order_id, ledgers=ledgers, side="sell", token=TOKEN, size_raw=TokenRaw(1),
            size_units_raw=TokenRaw(1), shares=False, pin=pin, gas_price_wei=Wei(1), arrived_ts_ms=1, age_ms=0,
            exit_reserve_wei=Wei(0), rows=(),
        )  # fmt: skip
    )
    entry = entry_of(ledgers, {("book", ETH): gross - gas, ("market", ETH): -gross, ("gas", ETH): gas})
    run.apply(
        FillCredited(
            run_id="w1-a-1", ts_ms=1, order_id=order_id, ledgers=ledgers, proven=not tag, tag=tag, side="sell", token=TOKEN, route="r",
            spent_raw=TokenRaw(1), arrival_raw=TokenRaw(gross), gas_wei=Wei(gas), approvals=(), entry=entry,
        )  # fmt: skip
    )


def scored(run: RunState, lost=frozenset(), price=MicroUsd(2_500_000_000), reason="slow"):
    return score_run(run, STAKE, lost, price, DEFAULT, reason, 9)


@pytest.mark.parametrize(("price", "stake"), [(2_500_000_000, 40_000_000_000_000_000), (3_000_000_000, 33_333_333_333_333_333)])
def test_the_stake_is_100_dollars_rounded_down_ONC_02(price, stake):
    assert stake_for(100_000_000, MicroUsd(price)) == Wei(stake)


@pytest.mark.parametrize(
    ("value", "ppm"),
    [(int(STAKE), 0), (int(STAKE) + 1, 0), (int(STAKE) - 1, -1), (int(STAKE) * 2, 1_000_000), (0, -1_000_000), (int(STAKE) + 40_000_000_000, 1)],
)
def test_a_return_is_rounded_down_ONC_16(value, ppm):
    assert return_ppm(Wei(value), STAKE) == ppm


@given(st.integers(0, 10**30), st.integers(1, 10**24))
def test_a_return_never_says_more_than_happened(value, stake):
    assert return_ppm(Wei(value), Wei(stake)) * stake <= (value - stake) * 1_000_000


@given(st.integers(0, 10**30), st.integers(1, 10**13))
def test_dollars_never_say_more_than_there_are(value, price):
    assert int(dollars(Wei(value), MicroUsd(price))) * 10**18 <= value * price


def test_a_run_that_was_not_liquidated_has_no_score_and_says_why():
    run = a_run()
    score = scored(run)
    assert (score.status, score.reason, score.headline_wei, score.headline_ppm, score.close_usd_micro_usd) == ("UNSCORED", "slow", None, None, None)


def test_a_run_sold_on_one_ledger_only_is_unscored():
    run = a_run()
    run.apply(sold(int(STAKE), ("headline",)))
    assert scored(run).status == "UNSCORED"


def test_ledgers_are_scored_apart():
    run = a_run()
    run.apply(sold(int(STAKE) * 2, ("headline",)))
    run.apply(sold(int(STAKE) * 3, ("permissive",)))
    assert (scored(run).headline_ppm, scored(run).permissive_ppm) == (1_000_000, 2_000_000)


def test_a_score_without_a_closing_price_has_no_dollars_but_is_scored():
    run = a_run()
    run.apply(sold(int(STAKE)))
    score = scored(run, price=None)
    assert (score.status, score.headline_ppm, score.close_usd_micro_usd) == ("SCORED", 0, None)


def test_exits_on_a_claim_count_0_in_the_score_beside_ONC_11():
    run = a_run()
    an_exit(run, gross=int(STAKE) // 2, gas=1_000)
    run.apply(sold(int(STAKE)))
    assert scored(run).headline_ppm == 0 and scored(run).headline_without_unproven_ppm == -500_000 + 0


def test_what_the_liquidation_claims_counts_0_in_the_score_beside():
    run = a_run()
    run.apply(sold(int(STAKE), unproven_wei=int(STAKE) // 4))
    assert scored(run).headline_without_unproven_ppm == -250_000


def test_proven_exits_and_claims_of_the_other_ledger_do_not_count_0():
    run = a_run()
    an_exit(run, gross=int(STAKE) // 2, gas=1_000, tag="")
    an_exit(run, gross=int(STAKE) // 2, gas=1_000, ledgers=("permissive",), order_id="w1-a-1/0/1")
    run.apply(sold(int(STAKE)))
    assert scored(run).headline_without_unproven_ppm == 0


def test_the_score_beside_is_never_below_a_total_loss():
    run = a_run()
    an_exit(run, gross=int(STAKE) * 2, gas=0)
    run.apply(sold(int(STAKE)))
    assert scored(run).headline_without_unproven_ppm == -1_000_000


def test_fills_are_counted_on_the_headline_ledger():
    run = a_run()
    an_exit(run, gross=10, gas=1, tag="")
    an_exit(run, gross=10, gas=1, ledgers=("permissive",), order_id="w1-a-1/0/1")
    run.apply(sold(int(STAKE)))
    assert scored(run).fills == 1


@pytest.mark.parametrize(("fills", "reason"), [(100, ""), (99, "reorged")])
def test_a_run_is_marked_above_1_percent_of_fills_on_lost_blocks(fills, reason):
    run, lost = a_run(), "0x" + "66" * 32
    for number in range(fills):
        pin = PIN if number else Pin(block=4, block_hash=lost, block_ts_s=1, base_fee_wei=Wei(1), head_block=5, lane="a")
        an_exit(run, gross=10, gas=1, tag="", order_id=f"w1-a-1/0/{number}", pin=pin)
    run.apply(sold(int(STAKE)))
    score = scored(run, lost={lost})
    assert (score.reorged_fills, score.reason, score.status) == (1, reason, "SCORED")


def test_the_window_counts_its_scores():
    run = a_run()
    run.apply(sold(int(STAKE)))
    window = score_window("w1", [scored(run), scored(a_run())], None, 9)
    assert (window.runs, window.scored, window.close_eth_usd_micro_usd) == (2, 1, None)
