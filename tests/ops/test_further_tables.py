"""Delay and own impact beside the score: per run and per order, with the sign, in every form, and nothing of it in an older window."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console

from ledgers.clock import VirtualClock
from ledgers.journal import MemoryJournal
from ledgers.money import TokenRaw, Wei, decimal_text
from ops.further_gaps import gaps_of
from ops.further_tables import sale_gap
from ops.reporting import account_of, exact_tables, report_of, write_report
from ops.story import order_data, read_run, run_data
from ops.telling import order_text, run_text
from ops.view import PlainScreen, render
from ops.tail import tell
from referee.onchain.events import DELAYED, HEADLINE, IMPACT, HoldingMark, WindowLiquidated
from referee.onchain.liquidity_events import LiquidityOpened
from referee.onchain.run import open_window, play_window, resume
from tests.onchain.paper import T0, PaperChain, Said, buying, events_of, live_on, selling, to_the_end
from tests.ops.pooled import pooled
from tests.ops.told import told

RUN = "w1-a-1"


@pytest.fixture(scope="module")
def journal() -> MemoryJournal:
    """Three buys: the price falls by a hundredth after the first, rises by half of one after the second, and runs away after the third."""
    return asyncio.run(lived())


async def lived() -> MemoryJournal:
    chain = PaperChain(VirtualClock(T0))
    said = {0: buying(10**15), 1: buying(10**15), 2: buying(10**15), 3: selling(), 4: buying(10**18)}
    live = live_on(chain, {"a": Said(chain.clock, said)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    for after_ms, wei_per_token in ((1_000, 990), (11_000, 995), (21_000, 1_100)):
        await chain.clock.advance_to(T0 + after_ms)
        chain.wei_per_token = wei_per_token * 10**12
    await to_the_end(chain, playing)
    return live.journal


def test_every_order_has_its_gap_with_its_sign_on_each_further_ledger(journal):
    gaps = gaps_of(events_of(journal))
    assert [(each.order_id, each.ended, each.gap_ppm) for each in gaps.of(RUN, DELAYED)] == [
        (f"{RUN}/0/0", "filled", 10_101), (f"{RUN}/1/0", "filled", -5_025), (f"{RUN}/2/0", "reverted", None), (f"{RUN}/3/0", "filled", 0),
    ]  # fmt: skip
    assert [each.gap_ppm for each in gaps.of(RUN, IMPACT)] == [0, 0, 0, 0]
    assert [each.ledger for each in gaps.orders if each.order_id == f"{RUN}/2/0"] == [IMPACT, DELAYED]


def test_the_report_says_both_in_total_and_by_order(journal):
    report = report_of(account_of(journal), journal)
    text = report.text(200)
    score = account_of(journal).state.runs[RUN].scored
    total = report.data()["tables"]["further"]["rows"][0]
    assert (total["ledger"], total["rule"], total["orders"], total["filled"], total["better"], total["worse"], total["reverted"]) == ("delayed", "ONC-22", 4, 3, 1, 1, 1)
    assert total["gap_eth"] == decimal_text(int(score.delayed_wei) - int(score.headline_wei), 18) != "0"
    assert "Beside the score: delay and own impact" in text and "own impact  ONC-23" in text and "+1.0101 %" in text and "-0.5025 %" in text
    assert "sent again 2.0 s later; it fills where at most 1 % less" in text and "for 10:00 and fading evenly to nothing at 1:00:00" in text
    assert "n = 4 orders that headline filled, on 2 further ledgers" in text


def liquidated(ledger: str, *held: tuple[str, int, int]) -> WindowLiquidated:
    marks = tuple(
        HoldingMark(token=token, amount_raw=TokenRaw(raw), status="proven", reason="", route="", gross_wei=Wei(wei), gas_wei=Wei(0), value_wei=Wei(wei))
        for token, raw, wei in held
    )  # fmt: skip
    return WindowLiquidated(
        run_id=RUN, ts_ms=0, ledgers=(ledger,), pin=None, eth_wei=Wei(0), holdings=marks, value_wei=Wei(0), unproven_wei=Wei(0), late=False, entry=None,  # type: ignore[arg-type]
        evidence_sha256="",
    )  # fmt: skip


@pytest.mark.parametrize("held, there, gap", [
    ((("a", 90, 99),), (("a", 100, 100),), 9), ((("a", 90, 90),), (("a", 100, 100), ("b", 5, 7)), 0), ((("a", 1, 1), ("b", 10, 8)), (("a", 1, 1), ("b", 5, 5)), -2),
    ((("b", 1, 1),), (("a", 1, 1),), None), ((("b", 0, 0),), (), 0),
])  # fmt: skip
def test_the_last_sale_is_told_from_the_orders_by_what_a_unit_brought_on_headline(held, there, gap):
    assert sale_gap(liquidated(DELAYED, *held), liquidated(HEADLINE, *there)) == (None if gap is None else Wei(gap))


def test_both_parts_of_a_gap_come_to_it(journal):
    for row in report_of(account_of(journal), journal).data()["tables"]["further"]["rows"]:
        parts = Decimal(row["gap_orders_percent"]) + Decimal(row["gap_sale_percent"])
        assert abs(parts - Decimal(row["gap_percent"])) <= Decimal("0.0001") and row["positions"] == 0


def test_a_run_with_positions_is_marked_where_they_are_not_kept(journal):
    account, said = account_of(journal), "* the run opened liquidity positions"
    assert said not in report_of(account, journal).text(80)
    account.pooled.apply(replace(next(event for event in events_of(pooled()) if isinstance(event, LiquidityOpened)), run_id=RUN))
    text = report_of(account, journal).text(80)
    assert "own impact *" in text and "delayed *" in text and said in text


def test_machines_get_every_order_and_people_the_largest(journal, tmp_path):
    _, paths = write_report(journal, tmp_path)
    assert {"further.csv", "gaps.csv"} <= {path.name for path in paths}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "gaps.csv").read_text())))
    assert len(rows) == 8 and rows[0]["gap_percent"] == "1.0101" and {row["rule"] for row in rows} == {"ONC-22", "ONC-23"}
    reverted = next(row for row in rows if row["ended"] == "reverted")
    assert (reverted["reason"], reverted["gap_percent"]) == ("below_bound", "")
    runs = next(table for table in exact_tables(account_of(journal), report_of(account_of(journal), journal).basis) if table.name == "runs")
    assert json.loads(json.dumps(runs.data()))["rows"][0]["delayed_wei"] is not None


def test_a_run_and_an_order_tell_their_gaps(journal):
    story = read_run(journal, RUN)
    told_run, told_order = run_text(story, 200), order_text(story, story.order("1"), 200)
    assert "delayed +1.0101 %; own impact 0.0000 %" in told_run and "delayed reverted (below_bound)" in told_run
    assert "delayed +1.0101 % against headline (ONC-22)" in told_order and "[delayed] 1 row at block 1002" in told_order
    assert "2,000 ms after headline's block" in told_order and "no earlier trade of its own is felt" in told_order
    data = order_data(story, story.order("3"))
    assert (data["outcome"]["delayed"], data["gap_ppm"]) == ("reverted: below_bound", {"delayed": None, "impact": 0})
    reverted = order_text(story, story.order("3"), 200)
    assert re.search(r"below_bound: less would arrive than its bound allows; gas \S+ ETH is paid; \S+ .+ would arrive, at least \S+ .+ must", " ".join(reverted.split()))
    assert run_data(story)["orders"][4]["outcome"]["impact"] == "skipped: headline_refused"
    skipped = order_text(story, story.order("5"), 200)
    assert "[delayed and impact] headline_refused: insufficient_eth" in skipped and "only follows what headline filled" in skipped


def drawn(journal: MemoryJournal, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=40, force_terminal=False, markup=False)
    screen = PlainScreen(journal, VirtualClock(T0 + 61_000), 10**15, console)
    tell(journal, [screen.see], 0)
    console.print(render(screen.scene, T0 + 61_000, width, 40))
    return console.file.getvalue()


def test_the_live_view_has_a_column_for_each_and_a_narrow_one_tells_them_at_the_end(journal):
    heading = next(line for line in drawn(journal, 120).splitlines() if "headline" in line and "run" in line)
    assert heading.split()[-5:] == ["headline", "permissive", "delayed", "own", "impact"]
    assert "delayed" not in next(line for line in drawn(journal, 80).splitlines() if "permissive" in line and " run " in line)
    assert "own impact" in drawn(journal, 110)


def test_a_window_of_two_ledgers_has_no_word_of_them():
    older = told()
    text = report_of(account_of(older), older).text(120)
    assert "own impact" not in text and "delayed" not in text and "further" not in report_of(account_of(older), older).data()["tables"]


async def test_orders_cut_off_by_the_end_of_a_process_are_said_beside_their_run():
    """The headline filled, the process ended before the delayed copy was simulated: the gap that is left is not the delay's."""
    chain = PaperChain(VirtualClock(T0))
    live = live_on(chain, {"a": Said(chain.clock, {0: buying(10**15), 1: selling()})})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 1_000)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    live = live_on(chain, {"a": Said(chain.clock, {1: selling()})}, journal=live.journal)
    await resume(live)
    assert await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    table = next(table for table in report_of(account_of(live.journal), live.journal).tables if table.name == "further")
    (said,) = [line for line in table.note.splitlines() if line.startswith("a-1, ")]
    assert said == "a-1, delayed: of 2 orders 1 interrupted by the end of a process, 1 skipped; what they would have changed is in its gap, and is no delay."


def test_nothing_is_said_where_every_order_was_measured(journal):
    table = next(table for table in report_of(account_of(journal), journal).tables if table.name == "further")
    assert "is in its gap, and is no" not in table.note
