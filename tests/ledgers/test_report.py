"""The report: nothing travels without its basis, nothing unmeasured reads as zero, nothing hostile gets through."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.money import TokenRaw, Wei
from ledgers.report import ANECDOTE, Basis, Column, EquityLine, Figure, Report, Table, _legend_runs, broken, eth_text, percent_cell, percent_text

BASIS = Basis(label="devnet", n=2, of="runs of one window", claim=ANECDOTE)
OPEN_TS_MS = 1_790_000_000_000
STAKE = Wei(36 * 10**15)


def table(*rows: tuple) -> Table:
    """A table of two columns."""
    return Table(name="runs", title="Runs", basis=BASIS, columns=(Column("run_id", "run"), Column("value_wei", "value, wei")), rows=rows)


def figure(*runs: str) -> Figure:
    """Curves of some runs, one mark missing."""
    marks = [STAKE, STAKE + Wei(10**14), None, STAKE - Wei(10**14)]
    points = tuple((OPEN_TS_MS + 1_000 * at, mark) for at, mark in enumerate(marks))
    lines = tuple(EquityLine(run=run, dashed=dashed, points=points) for run in runs for dashed in (False, True))
    return Figure(title="Window w1", basis=BASIS, open_ts_ms=OPEN_TS_MS, stake_wei=STAKE, lines=lines)


def read_csv(text: str) -> list[list[str]]:
    """Read it as a spreadsheet would."""
    return list(csv.reader(io.StringIO(text)))


def test_text_aligns_numbers_right_and_words_left():
    assert table(("hold", Wei(5)), ("random-walker", Wei(-1_000))).text().splitlines()[3:] == [
        "run            value, wei", "─────────────  ──────────", "hold                    5", "random-walker       -1000",
    ]  # fmt: skip


@pytest.mark.parametrize("form", [lambda t: t.text(), lambda t: t.csv(), lambda t: json.dumps(t.data())])
def test_every_form_carries_label_n_and_claim(form):
    assert all(said in form(table(("hold", Wei(5)))) for said in ("devnet", "2", "runs of one window", "anecdote"))


def test_every_csv_row_carries_its_basis():
    rows = read_csv(table(("hold", Wei(5)), ("random", Wei(6))).csv())
    assert rows[0] == ["run_id", "value_wei", "label", "basis_n", "basis_of", "claim"]
    assert [row[2:] for row in rows[1:]] == [["devnet", "2", "runs of one window", "anecdote"]] * 2


def test_unmeasured_is_never_zero():
    unmeasured = table(("hold", None))
    assert unmeasured.text().splitlines()[-1].split() == ["hold", "–"]
    assert unmeasured.data()["rows"] == [{"run_id": "hold", "value_wei": None}]
    assert read_csv(unmeasured.csv())[1][1] == ""


def test_money_and_large_integers_are_decimal_strings_in_json():
    rows = table(("a", Wei(10**18)), ("b", 2**60), ("c", 7), ("d", TokenRaw(-1))).data()["rows"]
    assert [row["value_wei"] for row in rows] == [str(10**18), str(2**60), 7, "-1"]


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u200b=1", "＝1", "|x", "%0A", "-", "+"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(cell):
    assert read_csv(table((cell, Wei(1))).csv())[1][0].startswith("'")


@pytest.mark.parametrize("cell", ["-5", "+1.25 %", "-0.036", "12", "0.0000 %"])
def test_numbers_stay_numbers_in_csv(cell):
    assert read_csv(table((cell, Wei(1))).csv())[1][0] == cell


@given(st.text(max_size=600))
def test_no_cell_breaks_the_layout(text):
    shown = table((text, Wei(1)))
    assert len(shown.text().splitlines()) == 6 and len(read_csv(shown.csv())) == 2
    assert all(character.isprintable() for character in shown.text().replace("\n", ""))


def test_rows_that_do_not_fit_their_columns_are_a_bug():
    with pytest.raises(ValueError):
        table(("hold",)).text()


def test_a_table_without_rows_says_none():
    assert table().text().splitlines()[3] == "(none)"


@pytest.mark.parametrize(("ppm", "said"), [(0, "0.0000 %"), (12_345, "+1.2345 %"), (-1, "-0.0001 %"), (None, None)])
def test_percentages_show_every_digit(ppm, said):
    assert percent_text(ppm) == said


@pytest.mark.parametrize(("wei", "said"), [(Wei(36 * 10**15), "0.036000"), (Wei(-1_500_000_000_000), "-0.000001"), (None, None)])
def test_ether_is_cut_never_rounded_up(wei, said):
    assert eth_text(wei) == said


@pytest.mark.parametrize(("wei", "said"), [(Wei(1), "0.000000000000000001"), (Wei(-1), "-0.000000000000000001"), (Wei(0), "0.000000")])
def test_ether_that_is_not_nothing_never_reads_as_zero(wei, said):
    assert eth_text(wei) == said


WORDS = "a turn that ended because the host which answers was down and stayed down until the window closed"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_report_fits_its_width_and_breaks_at_words(width):
    report = Report(title="w1", basis=BASIS, facts=(("why", WORDS),), tables=(table((WORDS, Wei(10**18))),), note=WORDS)
    text = report.text(width)
    assert max(map(len, text.splitlines())) <= max(width, len(BASIS.text()))
    assert " ".join(text.split()).count("because the host") == 3 or width < 120
    assert all(word in WORDS.split() for word in re.findall(r"[a-z]+", table((WORDS, Wei(1))).text(width).split("─\n")[-1]))


def test_a_cell_for_people_and_machines_reads_as_each_needs_it():
    told = table((percent_cell(12_345), None))
    assert "+1.2345 %" in told.text() and told.data()["rows"][0]["run_id"] == "1.2345" and read_csv(told.csv())[1][0] == "1.2345"


def test_a_column_shows_only_to_whom_it_is_for():
    columns = (Column("turns", "turns", machines=False), Column("answered", "answered", people=False))
    both = Table(name="t", title="t", basis=BASIS, columns=columns, rows=(("3/8", 3),))
    assert "3/8" in both.text() and "answered" not in both.text()
    assert both.data()["rows"] == [{"answered": 3}] and read_csv(both.csv())[0][0] == "answered"


def test_no_line_is_drawn_through_a_span_that_was_not_measured():
    assert broken([(1, STAKE), (9, STAKE)], [(3, 7)]) == [(1, STAKE), (3, None), (9, STAKE)]


@pytest.mark.filterwarnings("error")
def test_unmeasured_spans_and_the_close_are_drawn():
    plain = figure("hold-1")
    marked = replace(plain, blind=((OPEN_TS_MS + 500, OPEN_TS_MS + 1_500),), close_ts_ms=OPEN_TS_MS + 2_500)
    assert marked.png() != plain.png()


def test_a_run_keeps_its_look_whatever_its_place():
    one, two = (EquityLine(run=run, dashed=False, look=look, points=()) for run, look in (("a-1", (0, 0)), ("b-1", (1, 0))))
    assert _legend_runs(replace(figure(), lines=(one, two)))[0][1].get_color() == _legend_runs(replace(figure(), lines=(two, one)))[0][0].get_color()


def test_a_legend_of_many_runs_names_the_first_and_the_last():
    labels = _legend_runs(figure(*(f"run-{at}" for at in range(40))))[1]
    assert labels[0].startswith("run-0 ") and labels[-1].startswith("run-39 ") and "… 16 more …" in labels


def test_a_figure_is_a_png_and_the_same_figure_the_same_bytes():
    drawn = figure("hold-1", "random-1").png()
    assert drawn.startswith(b"\x89PNG") and drawn == figure("hold-1", "random-1").png()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("runs", [(), ("$x_{1}$", "_hidden", "a$b", "\\frac"), tuple(f"run-{at}" for at in range(40))])
def test_a_figure_draws_whatever_the_runs_are_called(runs):
    assert figure(*runs).png().startswith(b"\x89PNG")


def test_a_figure_draws_runs_that_were_never_measured():
    line = EquityLine(run="down", dashed=False, points=((OPEN_TS_MS, None),))
    assert replace(figure("hold-1"), lines=(*figure("hold-1").lines, line)).runs() == ["hold-1", "down"]


def test_a_report_is_saved_whole_in_all_forms(tmp_path):
    report = Report(title="Window w1", basis=BASIS, facts=(("stake, ETH", eth_text(STAKE)),), tables=(table(("hold", Wei(5))),), figure=figure("hold-1"))
    saved = report.save(tmp_path / "report")
    assert [path.name for path in saved] == ["report.txt", "report.json", "runs.csv", "equity.png"]
    assert json.loads(saved[1].read_text())["tables"]["runs"]["rows"] == [{"run_id": "hold", "value_wei": "5"}]
    assert sorted(tmp_path.joinpath("report").iterdir()) == sorted(saved)


def test_a_report_opens_with_its_basis():
    report = Report(title="Window w1", basis=BASIS, facts=(("stake, ETH", eth_text(STAKE)),), tables=())
    assert report.text().splitlines()[:5] == ["Window w1", "═════════", "devnet · n = 2 runs of one window · anecdote", "", "stake, ETH  0.036000"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_word_is_cut_and_what_is_copied_stands_whole_on_one_line(width):
    address, reason = "0x" + "ab" * 20, "buy_gate:cooldown_or_lock:sale_size_limited"
    columns = (Column("why", "why not"), Column("pool", "pool", below=True), Column("arrives", "what arrives"))
    text = Table(name="t", title="t", basis=BASIS, columns=columns, rows=((reason, address, 12_345), ("gate", None, 1)), note="").text(width)
    assert text.count("pool") == 1 and sum(line.endswith(f" {address}") for line in text.splitlines()) == 1
    assert max(map(len, text.splitlines())) <= max(width, len(address) + 4)
    assert set(re.findall(r"[a-z]{3,}", text)) >= {"cooldown", "limited", "size", "arrives"}


def test_a_table_stays_a_table_and_what_does_not_fit_goes_below_its_row():
    columns = tuple(Column(f"c{at}", f"column {at}") for at in range(6))
    text = Table(name="t", title="t", basis=BASIS, columns=columns, rows=(("abcdefghijkl",) * 6, ("other",) * 6)).text(40)
    assert "column 0      column 1      column 2" in text and text.count("column 5 abcdefghijkl") == 1 and max(map(len, text.splitlines())) <= 40


@pytest.mark.parametrize("width", [60, 120])
def test_one_wide_value_leaves_a_ranking_a_ranking(width):
    columns = tuple(Column(name, name) for name in ("run", "headline", "ETH", "USD", "drawdown", "why"))
    rows = (("hold-1", "0.0000 %", "0.03660000", "100.00", "0.0000 %", "x" * 50), ("random-1", "+1.0000 %", "9" * 40, "1.00", "0.1000 %", "–"))
    lines = Table(name="t", title="t", basis=BASIS, columns=columns, rows=rows).text(width).splitlines()
    head = next(line for line in lines if line.startswith("run"))
    assert head.split()[:2] == ["run", "headline"] and max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if line.startswith(("hold-1", "random-1"))] == ["hold-1", "random-1"]
    assert any("9" * 40 in line for line in lines) and any("x" * 50 in line for line in lines)


def test_columns_of_which_not_even_two_fit_are_told_row_by_row():
    columns = (Column("a", "first"), Column("b", "second"))
    text = Table(name="t", title="t", basis=BASIS, columns=columns, rows=(("a" * 30, "b" * 30),)).text(40)
    assert f"first   {'a' * 30}" in text and f"second  {'b' * 30}" in text


def test_a_note_stands_under_rows_only():
    empty = Table(name="t", title="t", basis=BASIS, columns=(Column("a", "a"),), rows=(), note="about the rows")
    assert empty.text().endswith("(none)\n")


@pytest.mark.parametrize(("n", "of", "said"), [(1, "runs of one window", "n = 1 run of one window"), (1, "liquidity positions", "n = 1 liquidity position"), (2, "runs", "n = 2 runs")])
def test_one_is_not_many(n, of, said):
    assert said in Basis(label="devnet", n=n, of=of, claim="anecdote").text().split(" · ")
