"""The report: tables and figures as text, JSON, CSV and PNG.

Every one of them says on what it stands: the network's label, n, and the claim it may make. What was not measured is
`–`, null or an empty cell, never zero. Cells may hold outside words; they are made plain, and a spreadsheet never takes
one for a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ledgers.identity import INTEGER_MAX, canonical_bytes
from ledgers.money import Money, Wei, decimal_text, mul_div_floor
from ledgers.plain_text import plain_text
from ledgers.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ANECDOTE = "anecdote"
"""The claim of one short window: what happened, with nothing said about why or what comes next."""

Cell = str | int | Money | None
CELL_CHARS_MAX = 400
UNMEASURED = "–"
NUMBER = re.compile(r"[+-]?\d[\d,_ ]*(\.\d+)?( ?%)?")
FORMULA_STARTS = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")
COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf",
    "#8c564b", "#e377c2", "#bcbd22", "#000000", "#7f7f7f", "#004d40",
)  # fmt: skip
MARKERS = "os^D"
"""Tell runs apart that share a colour, past the twelfth."""
LEGEND_RUNS_MAX = 24
SOLID: dict[str, object] = {"linewidth": 1.9, "markersize": 3.5}
DASHED: dict[str, object] = {"linewidth": 1.1, "linestyle": (0, (4, 2.5)), "alpha": 0.75}


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What numbers stand on."""

    label: str
    """Network label, e.g. devnet; results of different labels are never mixed."""
    n: int
    of: str
    """What n counts, e.g. runs of one window."""
    claim: str
    """What may be claimed, e.g. anecdote."""

    def text(self) -> str:
        """Say it in one line."""
        return f"{self.label} · n = {self.n} {self.of} · {self.claim}"

    def data(self) -> dict[str, object]:
        """Say it as a JSON object."""
        return {"label": self.label, "n": self.n, "of": self.of, "claim": self.claim}


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    """Key in JSON and CSV; carries the unit."""
    heading: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under columns. A cell of a kind of money is written as a decimal string."""

    name: str
    """File name stem and JSON key."""
    title: str
    basis: Basis
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def text(self) -> str:
        """Lay it out for a terminal: numbers to the right, words to the left."""
        grid = [[_shown(cell) for cell in row] for row in self.rows]
        headings = [column.heading for column in self.columns]
        widths = [max(map(len, column)) for column in zip(headings, *grid, strict=True)]
        right = [all(_is_number(cell) for cell in column) for column in zip(*grid, strict=True)] or [False] * len(widths)
        lines = [_line(cells, widths, right) for cells in (headings, ["─" * width for width in widths], *grid)]
        head = [self.title, self.basis.text(), ""]
        return "\n".join([*head, *(lines if grid else ["(none)"]), *([""] + [self.note] if self.note else [])]) + "\n"

    def data(self) -> dict[str, object]:
        """Give it as a JSON object."""
        names = [column.name for column in self.columns]
        rows = [dict(zip(names, map(_json_cell, row), strict=True)) for row in self.rows]
        return {"title": self.title, **self.basis.data(), "rows": rows, "note": self.note}

    def csv(self) -> str:
        """Give it as CSV; every row repeats the basis, so that no number travels alone."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in self.columns] + ["label", "basis_n", "basis_of", "claim"])
        for row in self.rows:
            writer.writerow([_csv_cell(cell) for cell in (*row, self.basis.label, self.basis.n, self.basis.of, self.basis.claim)])
        return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityLine:
    """The marks of one run in one ledger."""

    run: str
    dashed: bool
    """False for the headline ledger, True for the permissive one."""
    points: tuple[tuple[int, Wei | None], ...]
    """(ts_ms, value), in order of time; None leaves a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Equity curves of the runs of a window, as changes on the stake."""

    title: str
    basis: Basis
    open_ts_ms: int
    stake_wei: Wei
    lines: tuple[EquityLine, ...]
    note: str = ""

    def png(self) -> bytes:
        """Draw it."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and most commands draw nothing
        from matplotlib.figure import Figure as Sheet

        sheet = Sheet(figsize=(11, 6), dpi=120, layout="constrained")
        sheet.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        canvas = FigureCanvasAgg(sheet)
        axes = sheet.add_subplot()
        _draw_lines(axes, self)
        _draw_frame(axes, self)
        _draw_legends(axes, self)
        out = io.BytesIO()
        canvas.print_png(out, metadata={"Software": None, "Title": f"{self.title} ({self.basis.label})"})
        return out.getvalue()

    def runs(self) -> list[str]:
        """List the runs, best last headline mark first, unmeasured ones last."""
        last = {line.run: _last_value(line) for line in self.lines if not line.dashed}
        names = dict.fromkeys(line.run for line in self.lines)
        return sorted(names, key=lambda name: -1 if last.get(name) is None else int(last[name]), reverse=True)  # type: ignore[arg-type]

    def headline(self, run: str) -> EquityLine | None:
        """Return a run's headline curve."""
        return next((line for line in self.lines if line.run == run and not line.dashed), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a window came to."""

    title: str
    basis: Basis
    facts: tuple[tuple[str, Cell], ...]
    """Name and value, in reading order."""
    tables: tuple[Table, ...]
    figure: Figure | None = None
    note: str = ""

    def text(self) -> str:
        """Lay it out for a terminal."""
        width = max((len(name) for name, _ in self.facts), default=0)
        facts = "".join(f"{name.ljust(width)}  {_shown(value)}\n" for name, value in self.facts)
        head = f"{self.title}\n{'═' * len(self.title)}\n{self.basis.text()}\n"
        return "\n".join([head, *([facts] if facts else []), *(table.text() for table in self.tables), *([self.note + "\n"] if self.note else [])])

    def data(self) -> dict[str, object]:
        """Give it as a JSON object."""
        facts = {name: _json_cell(value) for name, value in self.facts}
        tables = {table.name: table.data() for table in self.tables}
        return {"title": self.title, **self.basis.data(), "facts": facts, "tables": tables, "note": self.note}

    def save(self, directory: Path) -> tuple[Path, ...]:
        """Write report.txt, report.json, one CSV per table and equity.png; return their paths. Raises: StoreFault."""
        files = {"report.txt": self.text().encode(), "report.json": canonical_bytes(self.data()) + b"\n"}
        files |= {f"{table.name}.csv": table.csv().encode() for table in self.tables}
        if self.figure is not None:
            files["equity.png"] = self.figure.png()
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_whole(directory / name, data)
        return tuple(directory / name for name in files)


def percent_text(ppm: int | None) -> str | None:
    """Write parts per million as a signed percentage for people, every digit true: `+1.2345 %`."""
    return None if ppm is None else f"{'+' if ppm > 0 else ''}{decimal_text(ppm, 4, 4)} %"


def eth_text(amount_wei: Wei | None, places: int = 6) -> str | None:
    """Write wei as ether for people, cut to `places`."""
    return None if amount_wei is None else decimal_text(amount_wei, 18, places)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(cells, widths, right, strict=True)]
    return "  ".join(padded).rstrip()


def _shown(cell: Cell) -> str:
    return UNMEASURED if cell is None else plain_text(str(cell), CELL_CHARS_MAX)


def _is_number(text: str) -> bool:
    return text == UNMEASURED or NUMBER.fullmatch(text) is not None


def _json_cell(cell: Cell) -> object:
    if cell is None or (type(cell) is int and abs(cell) <= INTEGER_MAX):
        return cell
    return plain_text(str(cell), CELL_CHARS_MAX)


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    text = plain_text(str(cell), CELL_CHARS_MAX)
    return "'" + text if text.startswith(FORMULA_STARTS) and not _is_number(text) else text


def _last_value(line: EquityLine) -> Wei | None:
    return next((value for _, value in reversed(line.points) if value is not None), None)


def _percent(value_wei: Wei | None, stake_wei: Wei) -> float:
    """Change on the stake for the eye only."""
    return float("nan") if value_wei is None else mul_div_floor(value_wei - stake_wei, 10**9, stake_wei) / 1e7


def _time_unit(figure: Figure) -> tuple[int, str]:
    last_ts_ms = max((ts_ms for line in figure.lines for ts_ms, _ in line.points), default=figure.open_ts_ms)
    span_s = (last_ts_ms - figure.open_ts_ms) // 1_000
    return (1_000, "seconds") if span_s <= 300 else (60_000, "minutes") if span_s <= 14_400 else (3_600_000, "hours")


def _draw_lines(axes: Axes, figure: Figure) -> None:
    unit_ms, _ = _time_unit(figure)
    runs = figure.runs()
    for line in sorted(figure.lines, key=lambda line: (not line.dashed, -runs.index(line.run))):
        moments = [(ts_ms - figure.open_ts_ms) / unit_ms for ts_ms, _ in line.points]
        changes = [_percent(value, figure.stake_wei) for _, value in line.points]
        colour, marker = _look(runs.index(line.run))
        axes.plot(moments, changes, color=colour, marker="" if line.dashed else marker, **(DASHED if line.dashed else SOLID))


def _look(place: int) -> tuple[str, str]:
    return COLOURS[place % len(COLOURS)], MARKERS[place // len(COLOURS) % len(MARKERS)]


def _draw_frame(axes: Axes, figure: Figure) -> None:
    title = f"{plain_text(figure.title, 80)}  [{figure.basis.label}]"
    axes.set_title(title, loc="left", fontsize=14, fontweight="bold", pad=26, parse_math=False)
    axes.text(0, 1.02, figure.basis.text(), transform=axes.transAxes, fontsize=9.5, color="#555555", parse_math=False)
    axes.set_xlabel(f"{_time_unit(figure)[1]} since the window opened")
    axes.set_ylabel(f"liquidation value, change on the stake of {eth_text(figure.stake_wei)} ETH")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.6g} %" if value else "0 %")
    axes.axhline(0, color="#888888", linewidth=0.8, zorder=0)
    axes.grid(color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if figure.note:
        axes.figure.supxlabel(plain_text(figure.note, 160), x=0.01, ha="left", fontsize=8.5, color="#555555", parse_math=False)


def _draw_legends(axes: Axes, figure: Figure) -> None:
    from matplotlib.lines import Line2D

    runs = figure.runs()
    shown = runs[:LEGEND_RUNS_MAX]
    looks = [_look(place) for place in range(len(shown))]
    handles = [Line2D([], [], color=colour, marker=marker, linewidth=2.4, markersize=5) for colour, marker in looks]
    labels = [_legend_label(figure, run) for run in shown]
    if len(runs) > len(shown):
        handles.append(Line2D([], [], linestyle="none"))
        labels.append(f"… and {len(runs) - len(shown)} more")
    handles += [Line2D([], [], color="#333333", **style) for style in (SOLID, DASHED)]
    labels += ["headline ledger (proven)", "permissive ledger"]
    title = "run, last headline mark"
    legend = axes.figure.legend(handles, labels, title=title, loc="outside right upper", fontsize=9, frameon=False, handlelength=2.2)
    legend.set_alignment("left")
    for text in legend.get_texts():
        text.set_parse_math(False)


def _legend_label(figure: Figure, run: str) -> str:
    line = figure.headline(run)
    value = _last_value(line) if line else None
    change = None if value is None else percent_text(mul_div_floor(value - figure.stake_wei, 10**6, figure.stake_wei))
    return f"{_short(plain_text(run, 80).lstrip('_'))}  {change or UNMEASURED}"


def _short(name: str) -> str:
    """Cut the middle: copies differ at the end of their names."""
    return name if len(name) <= 28 else f"{name[:14]}…{name[-13:]}"
