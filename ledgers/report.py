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
from ledgers.layout import TEXT_WIDTH, TEXT_WIDTH_ANY, TEXT_WIDTH_MIN, columns_text, labelled, wrapped
from ledgers.money import Money, Wei, decimal_text, mul_div_floor
from ledgers.plain_text import plain_text
from ledgers.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

ANECDOTE = "anecdote"
"""The claim of one short window: what happened, with nothing said about why or what comes next."""


@dataclass(frozen=True, slots=True)
class Said:
    """A cell that people read otherwise than machines do."""

    text: str
    """For people, e.g. `+1.2345 %`."""
    value: str | int
    """For JSON and CSV: a plain number, e.g. `1.2345`."""


Cell = str | int | Money | Said | None
CELL_CHARS_MAX = 400
UNMEASURED = "–"
NUMBER = re.compile(r"[+-]?\d[\d,_ ]*(\.\d+)?( ?%)?|\d+/\d+")
PLURAL = re.compile(r"(\w+)s\b")
FORMULA_STARTS = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")
COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf",
    "#8c564b", "#e377c2", "#bcbd22", "#000000", "#7f7f7f", "#004d40",
)  # fmt: skip
MARKERS = "os^DvP*X<>"
"""Tell the copies of a stack apart, which share its colour."""
LEGEND_RUNS_MAX = 24
"""With more runs the legend names the first and the last."""
SOLID: dict[str, object] = {"linewidth": 1.9, "markersize": 3.5}
BLIND: dict[str, object] = {"color": "#d0d0d0", "alpha": 0.6, "linewidth": 0, "zorder": 0}
CLOSE: dict[str, object] = {"color": "#444444", "linewidth": 1.0, "linestyle": ":"}
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
        of = PLURAL.sub(r"\1", self.of, count=1) if self.n == 1 else self.of
        return f"{self.label} · n = {self.n} {of} · {self.claim}"

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
    people: bool = True
    """False for a column that only machines need."""
    machines: bool = True
    """False for a column that says in words what others say in numbers."""
    below: bool = False
    """True for what people copy, such as an address: it stands whole on a line of its own below its row; an empty one is left out."""


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
    people_rows_max: int | None = None
    """Most rows that people are shown; machines have all of them."""

    def text(self, width: int = TEXT_WIDTH_ANY) -> str:
        """Lay it out for a terminal: numbers to the right, words to the left and broken where they would not fit."""
        shown = [column for column in self.columns if column.people]
        cells = self._cells(people=True)[: self.people_rows_max]
        grid = [["" if cell is None and column.below else _shown(cell) for cell, column in zip(row, shown, strict=True)] for row in cells]
        right = [all(_is_number(cell) for cell in column) for column in zip(*grid, strict=True)] or [False] * len(shown)
        rows = columns_text([column.heading for column in shown], grid, right, [column.below for column in shown], width)
        head = [*wrapped(self.title, width), *wrapped(self.basis.text(), width), ""]
        left = len(self.rows) - len(grid)
        rows += [f"… and {left} more in {self.name}.csv"] if left else []
        note = ["", *wrapped(self.note, width)] if self.note and grid else []
        return "\n".join([*head, *(rows if grid else ["(none)"]), *note]) + "\n"

    def data(self) -> dict[str, object]:
        """Give it as a JSON object."""
        names = [column.name for column in self.columns if column.machines]
        rows = [dict(zip(names, map(_json_cell, row), strict=True)) for row in self._cells(people=False)]
        return {"title": self.title, **self.basis.data(), "rows": rows, "note": self.note}

    def csv(self) -> str:
        """Give it as CSV; every row repeats the basis, so that no number travels alone."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in self.columns if column.machines] + ["label", "basis_n", "basis_of", "claim"])
        for row in self._cells(people=False):
            writer.writerow([_csv_cell(cell) for cell in (*row, self.basis.label, self.basis.n, self.basis.of, self.basis.claim)])
        return out.getvalue()

    def _cells(self, people: bool) -> list[list[Cell]]:
        kept = [column.people if people else column.machines for column in self.columns]
        return [[cell for cell, keep in zip(row, kept, strict=True) if keep] for row in self.rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityLine:
    """The marks of one run in one ledger."""

    run: str
    dashed: bool
    """False for the headline ledger, True for the permissive one."""
    look: tuple[int, int] = (0, 0)
    """Which stack of the window, and which copy of it, from 0: its colour and its marker."""
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
    """Runs in the order of the legend."""
    close_ts_ms: int | None = None
    """When the window closed; drawn as a line."""
    blind: tuple[tuple[int, int], ...] = ()
    """Spans (from_ts_ms, to_ts_ms) in which nothing was measured: greyed, and no line is drawn through them."""
    note: str = ""

    def png(self) -> bytes:
        """Draw it."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and most commands draw nothing
        from matplotlib.figure import Figure as Sheet

        sheet = Sheet(figsize=(11, 6), dpi=120, layout="constrained")
        sheet.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        canvas = FigureCanvasAgg(sheet)
        axes = sheet.add_subplot()
        _draw_spans(axes, self)
        _draw_lines(axes, self)
        _draw_frame(axes, self)
        _draw_legends(axes, self)
        out = io.BytesIO()
        canvas.print_png(out, metadata={"Software": None, "Title": f"{self.title} ({self.basis.label})"})
        return out.getvalue()

    def runs(self) -> list[str]:
        """List the runs in the order in which they were given."""
        return list(dict.fromkeys(line.run for line in self.lines))

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

    def text(self, width: int = TEXT_WIDTH) -> str:
        """Lay it out for a terminal of a width."""
        width = max(width, TEXT_WIDTH_MIN)
        names = max((len(name) for name, _ in self.facts), default=0)
        facts = "".join(f"{line}\n" for name, value in self.facts for line in labelled(name, _shown(value), names, width))
        head = "\n".join([*wrapped(self.title, width), "═" * min(len(self.title), width), *wrapped(self.basis.text(), width), ""])
        note = ["\n".join(wrapped(self.note, width)) + "\n"] if self.note else []
        return "\n".join([head, *([facts] if facts else []), *(table.text(width) for table in self.tables), *note])

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


def percent_cell(ppm: int | None) -> Said | None:
    """Give parts per million as a percentage: with sign and % for people, a plain number for machines."""
    return None if ppm is None else Said(percent_text(ppm) or "", decimal_text(ppm, 4, 4))


def eth_text(amount_wei: Wei | None, places: int = 6) -> str | None:
    """Write wei as ether for people, cut to `places`; an amount of which these would show only zeros is written out."""
    if amount_wei is None:
        return None
    cut = decimal_text(amount_wei, 18, places)
    return cut if not int(amount_wei) or cut.strip("-0.") else decimal_text(amount_wei, 18)


def _shown(cell: Cell) -> str:
    if isinstance(cell, Said):
        return plain_text(cell.text, CELL_CHARS_MAX)
    return UNMEASURED if cell is None else plain_text(str(cell), CELL_CHARS_MAX)


def _is_number(text: str) -> bool:
    return text == UNMEASURED or NUMBER.fullmatch(text) is not None


def _json_cell(cell: Cell) -> object:
    if isinstance(cell, Said):
        return cell.value
    if cell is None or (type(cell) is int and abs(cell) <= INTEGER_MAX):
        return cell
    return plain_text(str(cell), CELL_CHARS_MAX)


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    text = plain_text(str(cell.value if isinstance(cell, Said) else cell), CELL_CHARS_MAX)
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


def _draw_spans(axes: Axes, figure: Figure) -> None:
    """Grey what was not measured, and draw the close."""
    unit_ms, _ = _time_unit(figure)
    for from_ts_ms, to_ts_ms in figure.blind:
        axes.axvspan((from_ts_ms - figure.open_ts_ms) / unit_ms, (to_ts_ms - figure.open_ts_ms) / unit_ms, **BLIND)
    if figure.close_ts_ms is not None:
        axes.axvline((figure.close_ts_ms - figure.open_ts_ms) / unit_ms, **CLOSE)


def _draw_lines(axes: Axes, figure: Figure) -> None:
    unit_ms, _ = _time_unit(figure)
    runs = figure.runs()
    for line in sorted(figure.lines, key=lambda line: (not line.dashed, -runs.index(line.run))):
        points = broken(line.points, figure.blind)
        moments = [(ts_ms - figure.open_ts_ms) / unit_ms for ts_ms, _ in points]
        changes = [_percent(value, figure.stake_wei) for _, value in points]
        colour, marker = _look(line.look)
        axes.plot(moments, changes, color=colour, marker="" if line.dashed else marker, **(DASHED if line.dashed else SOLID))


def broken(points: Sequence[tuple[int, Wei | None]], blind: Sequence[tuple[int, int]]) -> list[tuple[int, Wei | None]]:
    """Break a curve wherever a span without measurements begins."""
    gaps: list[tuple[int, Wei | None]] = [(from_ts_ms, None) for from_ts_ms, _ in blind]
    return sorted([*points, *gaps], key=lambda point: (point[0], point[1] is None))


def _look(look: tuple[int, int]) -> tuple[str, str]:
    stack, copy = look
    return COLOURS[stack % len(COLOURS)], MARKERS[copy % len(MARKERS)]


def _draw_frame(axes: Axes, figure: Figure) -> None:
    title = f"{plain_text(figure.title, 80)}  [{figure.basis.label}]"
    axes.set_title(title, loc="left", fontsize=14, fontweight="bold", pad=26, parse_math=False)
    axes.text(0, 1.02, figure.basis.text(), transform=axes.transAxes, fontsize=9.5, color="#555555", parse_math=False)
    axes.set_xlabel(f"{_time_unit(figure)[1]} since the window opened")
    axes.set_ylabel(f"liquidation value, change on the stake of {eth_text(figure.stake_wei, 8)} ETH")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.6g} %" if value else "0 %")
    axes.axhline(0, color="#888888", linewidth=0.8, zorder=0)
    axes.grid(color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if figure.note:
        axes.figure.supxlabel(plain_text(figure.note, 160), x=0.01, ha="left", fontsize=8.5, color="#555555", parse_math=False)


def _draw_legends(axes: Axes, figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, labels = _legend_runs(figure)
    handles += [Line2D([], [], color="#333333", **SOLID)]
    labels += ["headline ledger (proven)"]
    if any(line.dashed for line in figure.lines):
        handles += [Line2D([], [], color="#333333", **DASHED)]
        labels += ["permissive ledger, where it differs"]
    if figure.close_ts_ms is not None:
        handles += [Line2D([], [], **CLOSE)]
        labels += ["close of the window"]
    if figure.blind:
        handles += [Patch(**BLIND)]
        labels += ["not measured"]
    title = "run, last headline mark"
    legend = axes.figure.legend(handles, labels, title=title, loc="outside right upper", fontsize=9, frameon=False, handlelength=2.2)
    legend.set_alignment("left")
    for text in legend.get_texts():
        text.set_parse_math(False)


def _legend_runs(figure: Figure) -> tuple[list[Artist], list[str]]:
    """Name the runs; of too many the first and the last, with how many are between."""
    from matplotlib.lines import Line2D

    runs = figure.runs()
    looks = {line.run: _look(line.look) for line in figure.lines}
    half = LEGEND_RUNS_MAX // 2
    named = [runs] if len(runs) <= LEGEND_RUNS_MAX else [runs[:half], runs[-half:]]
    handles: list[Artist] = []
    labels: list[str] = []
    for part in named:
        if handles:
            handles.append(Line2D([], [], linestyle="none"))
            labels.append(f"… {len(runs) - LEGEND_RUNS_MAX} more …")
        handles += [Line2D([], [], color=looks[run][0], marker=looks[run][1], linewidth=2.4, markersize=5) for run in part]
        labels += [_legend_label(figure, run) for run in part]
    return handles, labels


def _legend_label(figure: Figure, run: str) -> str:
    line = figure.headline(run)
    value = _last_value(line) if line else None
    change = None if value is None else percent_text(mul_div_floor(value - figure.stake_wei, 10**6, figure.stake_wei))
    return f"{_short(plain_text(run, 80).lstrip('_'))}  {change or UNMEASURED}"


def _short(name: str) -> str:
    """Cut the middle: copies differ at the end of their names."""
    return name if len(name) <= 28 else f"{name[:14]}…{name[-13:]}"
