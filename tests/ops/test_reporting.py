"""The report of a window: gaps, late sales and turns without an answer stand beside the scores; every form agrees."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ledgers.events import Event
from ledgers.journal import MemoryJournal
from ledgers.money import Wei, mul_div_floor
from ops.lists import best_first
from ops.reporting import account_of, exact_tables, report_of
from referee.onchain.credit import refusal
from referee.onchain.events import (
    DecisionTaken, NetworkFaulted, NetworkRecovered, RunScored, TickMissed, TurnPlayed, TurnUnavailable, WindowLiquidated, WindowPaused, WindowResumed, Woken,
)  # fmt: skip
from tests.ops.told import BOTH, HOSTILE, ONE, OPEN, TWO, buy, ending, first_tick, opening

PAUSE = (
    WindowPaused(run_id="w1", ts_ms=OPEN + 20_000, reason="operator"),
    WindowResumed(run_id="w1", ts_ms=OPEN + 48_000, clock_offset_ms=0, down_ms=28_000, code_sha256="04" * 32),
)
KILL = WindowResumed(run_id="w1", ts_ms=OPEN + 48_000, clock_offset_ms=0, down_ms=27_000, code_sha256="04" * 32)


def missed(tick: int) -> TickMissed:
    return TickMissed(run_id=ONE, ts_ms=OPEN + 48_000, tick=tick, scheduled_ts_ms=OPEN + tick * 10_000, reason="down")


def journal_of(*between: Event, after: tuple[Event, ...] | None = None) -> MemoryJournal:
    journal = MemoryJournal("w1")

    async def tell() -> None:
        await journal.append(*opening(), *first_tick(), *between)
        await journal.append(*(ending(*journal.head())[:-1] if after is None else after))

    asyncio.run(tell())
    return journal


def text_of(*between: Event, after: tuple[Event, ...] | None = None, width: int = 120) -> str:
    journal = journal_of(*between, after=after)
    return report_of(account_of(journal), journal).text(width)


def test_a_pause_is_told_with_its_span_and_what_it_cost():
    assert "unmeasured   paused 0:20–0:48; 3 of 6 ticks missed" in text_of(*PAUSE, missed(2), missed(3), missed(4))


def test_a_killed_process_and_a_dead_node_are_told_as_what_they_were():
    dead = (NetworkFaulted(run_id="w1", ts_ms=OPEN + 50_000, lane="lane-1", reason="dead"), NetworkRecovered(run_id="w1", ts_ms=OPEN + 52_000, lane="lane-1", down_ms=2_000))
    text = text_of(KILL, *dead)
    assert "no process 0:21–0:48" in text and "no node 0:50–0:52; no tick missed" in text


def test_a_gap_breaks_the_figure_and_the_close_is_drawn():
    journal = journal_of(*PAUSE)
    figure = report_of(account_of(journal), journal).figure
    assert figure.blind == ((OPEN + 20_000, OPEN + 48_000),) and figure.close_ts_ms == OPEN + 60_000


def late_ending() -> tuple[Event, ...]:
    events = ending(0, "")[:-1]
    sold = [replace(event, ts_ms=OPEN + 179_000, late=True) if isinstance(event, WindowLiquidated) else event for event in events]
    return tuple(sold)


def test_a_late_liquidation_stands_beside_the_score_and_in_the_exact_numbers():
    journal = journal_of(after=late_ending())
    account = account_of(journal)
    report = report_of(account, journal)
    assert "late         1 of 2 runs liquidated up to 1:59 after the close" in report.text(120)
    assert "random-1: liquidated 1:59 after the close." in report.text(120)
    runs = {row["run_id"]: row for row in exact_tables(account, report.basis)[0].data()["rows"]}
    assert (runs[ONE]["liquidated_late"], runs[ONE]["liquidated_after_close_ms"]) == ("yes", 119_000) and runs[TWO]["liquidated_late"] is None


def unanswered(tick: int) -> tuple[Event, ...]:
    at = {"run_id": TWO, "ts_ms": OPEN + 30_000, "tick": tick}
    return (
        Woken(**at, scheduled_ts_ms=OPEN + 30_000, lag_ms=0, order_index=0),
        TurnPlayed(**at, outcome="UNAVAILABLE", reason="host is down", steps=0, latency_ms=1, wait_ms=0),
        TurnUnavailable(**at, reason="UNAVAILABLE: host is down"),
    )


def test_a_stack_that_never_answered_has_no_clean_score():
    text = text_of(*unanswered(3), *unanswered(4))
    assert "hold-1: UNSCORED, fault, answered 0 of 2 turns, missed 1 of 6 ticks." in text
    assert [line.split() for line in text.splitlines() if line.startswith("no answer")] == [["no", "answer:", "UNAVAILABLE", "host", "is", "down", "2", "1"]]


def test_turns_are_counted_of_the_planned_ticks():
    assert "1/6" in text_of()


def test_columns_that_would_only_repeat_another_are_left_out_and_said():
    text = text_of()
    assert "claims at 0" not in text and "The permissive ledger came to the same for every run." in text
    journal = journal_of()
    assert "without_unproven_percent" in report_of(account_of(journal), journal).tables[0].data()["rows"][0]


def test_a_report_fits_80_columns():
    assert max(map(len, text_of(*PAUSE, missed(2), after=late_ending(), width=80).splitlines())) <= 80


def test_percentages_are_plain_numbers_for_machines():
    journal = journal_of()
    assert report_of(account_of(journal), journal).tables[0].data()["rows"][0]["headline_percent"] == "-30.0000"


def test_the_last_link_is_the_root_that_is_printed():
    journal = journal_of()
    assert f"last link {journal.head()[1]}" in report_of(account_of(journal), journal).text(120)


def test_runs_have_one_order_best_first_unscored_last():
    assert best_first({"b": 5, "a": None, "d": -1, "c": 5}) == ["b", "c", "d", "a"]


def test_trapped_holdings_and_buys_refused_as_unknown_stand_beside_the_score_ONC_08():
    trapped = tuple(replace(event, trapped=1) if isinstance(event, RunScored) and event.run_id == ONE else event for event in ending(0, "")[:-1])
    decided = DecisionTaken(run_id=ONE, ts_ms=OPEN + 20_000, tick=2, decision_sha256="0a" * 32, schema="decision/1", orders=(buy(0, HOSTILE, 10**15),))
    journal = journal_of(decided, refusal(ONE, f"{ONE}/2/0", BOTH, "gate_unknown", "cooldown", OPEN + 20_000), after=trapped)
    account = account_of(journal)
    text, row = report_of(account, journal).text(120), exact_tables(account, report_of(account, journal).basis)[0].data()["rows"][0]
    assert "random-1: 1 holding trapped: could be sold when bought, not at the end, 1 buy refused as unknown (cooldown 1)." in text
    assert (row["run_id"], row["trapped"]) == (ONE, 1)


def test_every_code_that_made_a_result_is_named():
    other = replace(KILL, code_sha256="05" * 32)
    text = text_of(KILL, other, replace(other, ts_ms=OPEN + 49_000))
    assert f"code         {'04' * 32}" in text and f"code 2       {'05' * 32}, accepted by the operator" in text
    assert "code 2" not in text_of(KILL)


def change_ppm(rows: list[dict], run_id: str, ledger: str) -> int:
    values = [int(row["value_wei"]) for row in rows if (row["run_id"], row["ledger"]) == (run_id, ledger) and row["value_wei"] is not None]
    return mul_div_floor(Wei(values[-1] - values[0]), 10**6, Wei(values[0]))


def test_each_exported_file_alone_gives_the_published_score():
    account = account_of(journal := journal_of())
    runs, marks = (table.data()["rows"] for table in exact_tables(account, report_of(account, journal).basis))
    for run in (run for run in runs if run["headline_wei"] is not None):
        assert run["headline_ppm"] == mul_div_floor(Wei(int(run["headline_wei"]) - int(run["stake_wei"])), 10**6, Wei(int(run["stake_wei"])))
        for ledger in ("headline", "permissive"):
            assert change_ppm(marks, run["run_id"], ledger) == run[f"{ledger}_ppm"]
    assert all(row["ts_ms"] == OPEN and row["value_wei"] == str(account.opened.stake_wei) for row in marks[:1])
