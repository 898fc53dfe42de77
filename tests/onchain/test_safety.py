"""Safety counts what is trapped at the end and what nobody could tell at the gate (ONC-08)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgers.money import TokenRaw, Wei
from referee.onchain.book import entry_of
from referee.onchain.credit import refusal
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, HoldingMark, WindowLiquidated
from referee.onchain.rules import DEFAULT, FIRST
from referee.onchain.safety import trapped, unknown_refusals
from referee.onchain.score import score_run
from referee.onchain.state import RunState
from tests.onchain.given import RUN, T0, a_pin, address, opened, wei

STAKE = wei("1 eth")


def sold(*statuses: str) -> WindowLiquidated:
    marks = tuple(
        HoldingMark(token=address(f"T{at}"), amount_raw=TokenRaw(5), status=status, reason="", route="", gross_wei=Wei(0), gas_wei=Wei(0), value_wei=Wei(0))
        for at, status in enumerate(statuses)
    )
    return WindowLiquidated(
        run_id=RUN, ts_ms=T0, ledgers=LEDGERS, pin=a_pin(), eth_wei=STAKE, holdings=marks, value_wei=STAKE, unproven_wei=Wei(0), late=False,
        entry=entry_of(LEDGERS, {}), evidence_sha256="",
    )  # fmt: skip


def test_onc_08_what_no_sale_gets_rid_of_is_trapped():
    assert trapped(sold("proven", "reverted", "no_route", "below_gas", "unprovable")) == 2
    assert trapped(sold()) == trapped(None) == 0


@pytest.mark.parametrize("rules, count", [(DEFAULT, 1), (FIRST, 0)])
def test_a_score_says_how_many_where_the_rules_count_them(rules, count):
    run = RunState(opened(STAKE))
    run.apply(sold("reverted"))
    assert score_run(run, STAKE, set(), None, rules, "", T0).trapped == count


def test_onc_08_refusals_of_what_nobody_could_tell_are_counted_by_cause():
    one = refusal(RUN, "w1-a-1/0/0", LEDGERS, "gate_unknown", "cooldown", T0)
    others = [replace(one, ledgers=(PERMISSIVE,)), replace(one, ledgers=(HEADLINE,)), refusal(RUN, "w1-a-1/0/1", LEDGERS, "gate_flagged", "cooldown", T0)]
    assert unknown_refusals([one, *others]) == {"cooldown": 2}
