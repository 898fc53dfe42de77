"""The view: a window on a terminal, live where there is one, line by line where there is none.

Nothing outside is ever read as markup: every cell is a Text of plain characters. `NO_COLOR` takes the colours away;
without a terminal, or with `--plain`, each event is one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ledgers.clock import Clock
from ledgers.journal import Journal
from ledgers.money import mul_div_floor
from ledgers.report import UNMEASURED, eth_text, percent_text
from ops.further_gaps import NAMES
from ops.lines import BAD, GOOD, LOUD, QUIET, Line, counted, minutes_text
from ops.names import amount_text, token_text
from ops.position_view import position_rows
from ops.scene import FILLED, MISSED, NOT_FILLED, REFUSED, RunScene, Scene
from ops.tail import Seen
from referee.onchain.book import Book
from referee.onchain.events import FURTHER_LEDGERS, HEADLINE, PERMISSIVE

STYLES = {GOOD: "green", BAD: "yellow", QUIET: "dim", LOUD: "bold"}
FEED_ROWS_MIN, FEED_ROWS_MAX = 3, 12
FEED_PART = 4
"""Where not all runs have a row, events keep one part in so many."""
FRAME_ROWS = 5
"""Rows of a terminal that neither runs nor events have: head, heading, a blank, and the cursor's."""
NARROW, WIDE = 90, 130
"""Columns of a terminal from which decisions, and from which results too, get columns of their own."""
HOLDINGS_SHOWN = 3
BAR_CELLS = 24


class Screen:
    """What a window is shown on, events before `since_ts_ms` silently. As a context manager it gives the terminal back."""

    def __init__(self, journal: Journal, clock: Clock, since_ts_ms: int, console: Console) -> None:
        self.scene = Scene(journal.window_id)
        self._blob = journal.blob
        self._clock = clock
        self._since_ts_ms = since_ts_ms
        self._remark = ""
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def see(self, seen: Sequence[Seen]) -> None:
        """Take in what is new in the journal; what happened before the watching began is not said again."""
        for _, event in seen:
            line = self.scene.apply(event, self._blob)
            if line is not None and line.ts_ms >= self._since_ts_ms:
                self.say(line)
        self.draw()

    def remark(self, text: str) -> None:
        """Say something that is not in the journal, once."""
        if text != self._remark:
            self._remark = text
            self.say(Line(self._clock.now_ms(), self.scene.window_id, text, LOUD))

    def say(self, line: Line) -> None:
        """Say one new line."""

    def draw(self) -> None:
        """Bring the screen up to date."""


class PlainScreen(Screen):
    """One line of text an event."""

    def say(self, line: Line) -> None:
        # not through the console: lines that a log or a pipe takes are neither wrapped nor cut
        self._console.file.write(f"{plain_line(self.scene, line)}\n")
        self._console.file.flush()


class LiveScreen(Screen):
    """A table that stays in its place."""

    def __init__(self, journal: Journal, clock: Clock, since_ts_ms: int, console: Console) -> None:
        super().__init__(journal, clock, since_ts_ms, console)
        self._live = Live(console=console, auto_refresh=False, transient=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.__exit__(kind, error, trace)

    def draw(self) -> None:
        self._live.update(render(self.scene, self._clock.now_ms(), self._console.width, self._console.height, self._remark), refresh=True)


def screen_for(journal: Journal, clock: Clock, since_ts_ms: int, file: TextIO, plain: bool, environment: Mapping[str, str]) -> Screen:
    """Choose the live screen on a terminal, else the plain one; `TERM` and `NO_COLOR` of the environment count."""
    console = Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False, _environ=environment)
    kind = LiveScreen if console.is_terminal and not console.is_dumb_terminal and not plain else PlainScreen
    return kind(journal, clock, since_ts_ms, console)


def plain_line(scene: Scene, line: Line) -> str:
    """Write a line with its time of day (UTC) and its place in the window."""
    who = "" if line.who == scene.window_id else f"{line.who.removeprefix(scene.window_id + '-')}: "
    return f"{_time_of_day(line.ts_ms)} {_since_open(scene, line.ts_ms):>7}  {scene.window_id}  {who}{line.text}"


def render(scene: Scene, now_ms: int, width: int, height: int, remark: str = "") -> Group:
    """Draw a scene for a terminal of a size."""
    remarked = [Text(remark, "bold yellow", no_wrap=True, overflow="ellipsis")] if remark else []
    left = height - FRAME_ROWS - len(remarked)
    shown = len(scene.runs) if len(scene.runs) <= left - FEED_ROWS_MIN else max(left - max(height // FEED_PART, FEED_ROWS_MIN) - 1, 1)
    hidden = _hidden(len(scene.runs) - shown)
    rows = position_rows(scene, list(scene.runs)[:shown], width, left - shown - len(hidden) - FEED_ROWS_MIN)
    pooled = [Text(f" {text}", STYLES[mood], no_wrap=True, overflow="ellipsis") for text, mood in rows]
    feed_rows = min(max(left - shown - len(hidden) - len(pooled), FEED_ROWS_MIN), FEED_ROWS_MAX)
    return Group(_head(scene, now_ms, width), *remarked, _runs_table(scene, width, shown), *hidden, *pooled, _feed(scene, feed_rows))


def _hidden(runs: int) -> list[Text]:
    """Say how many runs this terminal has no rows for."""
    return [Text(f" … and {counted(runs, 'more run')}: a higher terminal shows them, `referee runs` lists all", "dim", no_wrap=True, overflow="ellipsis")] if runs else []


def _head(scene: Scene, now_ms: int, width: int) -> Text:
    opened = scene.state.opened
    if opened is None:
        return Text(f"{scene.window_id}  opening", "bold")
    head = Text(f"{scene.window_id} ", "bold", no_wrap=True, overflow="ellipsis")
    head.append(f" {opened.label} ", "bold reverse")
    head.append(f"  {_phase(scene, now_ms)}  ", "bold")
    head.append(_bar(opened.open_ts_ms, opened.close_ts_ms, now_ms))
    head.append(f"  {_progress(scene, now_ms)}")
    head.append(f"\nstake {eth_text(opened.stake_wei, 8)} ETH · rules {opened.rules_name} · board {opened.board_policy} · {_chain(scene)}", "dim")
    return head


def _phase(scene: Scene, now_ms: int) -> str:
    state = scene.state
    assert state.opened is not None
    if state.sealed or state.scored:
        return "sealed" if state.sealed else "scored"
    if state.faulted:
        return "no node answers"
    if state.paused:
        return "paused"
    return "running" if now_ms < state.opened.close_ts_ms else "selling everything"


def _bar(open_ts_ms: int, close_ts_ms: int, now_ms: int) -> str:
    done = mul_div_floor(min(max(now_ms - open_ts_ms, 0), close_ts_ms - open_ts_ms), BAR_CELLS, max(close_ts_ms - open_ts_ms, 1))
    return "━" * done + "╌" * (BAR_CELLS - done)


def _progress(scene: Scene, now_ms: int) -> str:
    opened = scene.state.opened
    assert opened is not None
    length_s = (opened.close_ts_ms - opened.open_ts_ms) // 1_000
    gone_s = min(max(now_ms - opened.open_ts_ms, 0) // 1_000, length_s)
    tick = max((run.last_tick for run in scene.state.runs.values()), default=-1) + 1
    return f"{minutes_text(gone_s * 1_000)} of {minutes_text(length_s * 1_000)} · tick {tick} of {opened.ticks}"


def _chain(scene: Scene) -> str:
    pin = scene.pin or (scene.state.opened.pin if scene.state.opened else None)
    return f"block {pin.block} by {pin.lane} · {scene.events} events" if pin else f"{scene.events} events"


def _runs_table(scene: Scene, width: int, shown: int) -> Table:
    table = Table(box=None, padding=(0, 1), expand=True, header_style="bold", show_edge=False)
    table.add_column("run", no_wrap=True)
    table.add_column("ETH", justify="right", no_wrap=True)
    table.add_column("holds", overflow="ellipsis", no_wrap=True, ratio=3)
    if width >= NARROW:
        table.add_column("last decision", overflow="ellipsis", no_wrap=True, ratio=3)
    if width >= NARROW and _models_play(scene):
        table.add_column("last turn", overflow="ellipsis", no_wrap=True, ratio=4)
    if width >= WIDE:
        table.add_column("outcome", overflow="ellipsis", no_wrap=True, ratio=5)
    table.add_column("filled", justify="right", no_wrap=True)
    table.add_column("not", justify="right", no_wrap=True)
    if _missing(scene):
        table.add_column("missed", justify="right", no_wrap=True)
    table.add_column("headline", justify="right", no_wrap=True)
    table.add_column("permissive", justify="right", no_wrap=True)
    for ledger in _further(scene, width):
        table.add_column(NAMES[ledger], justify="right", no_wrap=True)
    for run in list(scene.runs.values())[:shown]:
        table.add_row(*_run_row(scene, run, width))
    return table


def _models_play(scene: Scene) -> bool:
    return any(run.turn for run in scene.runs.values())


def _run_row(scene: Scene, run: RunScene, width: int) -> list[Text]:
    book = scene.state.books.of(run.run_id, HEADLINE)
    not_filled, missed = run.counts[REFUSED] + run.counts[NOT_FILLED], run.counts[MISSED]
    cells = [
        Text(run.run_id.removeprefix(f"{scene.window_id}-")),
        Text(eth_text(book.eth_wei) or ""),
        Text(_holdings(scene, book)),
    ]
    if width >= NARROW:
        cells.append(Text(run.decision or "–", "" if run.decision else "dim"))
    if width >= NARROW and _models_play(scene):
        cells.append(Text(run.turn or "–", "" if run.turn else "dim"))
    if width >= WIDE:
        cells.append(Text(run.result.text, STYLES[run.result.mood]) if run.result else Text(""))
    filled = Text(str(run.counts[FILLED]), "green" if run.counts[FILLED] else "dim")
    cells += [filled, Text(str(not_filled), "yellow" if not_filled else "dim")]
    if _missing(scene):
        cells.append(Text(str(missed), "yellow" if missed else "dim"))
    return [*cells, *(_change(scene, run, ledger) for ledger in (HEADLINE, PERMISSIVE, *_further(scene, width)))]


def _further(scene: Scene, width: int) -> list[str]:
    """Ledgers with simulations of their own that have a column; a narrow terminal has none for them, and the lines tell."""
    kept = {ledger for run in scene.state.runs.values() for ledger in run.further}
    return [ledger for ledger in FURTHER_LEDGERS if ledger in kept and width >= NARROW]


def _missing(scene: Scene) -> bool:
    """Whether ticks were missed: they are no orders, and have a column of their own as soon as there is one."""
    return any(run.counts[MISSED] for run in scene.runs.values())


def _holdings(scene: Scene, book: Book) -> str:
    shown = [f"{_units(scene, holding.token, holding.units_raw, holding.shares)}{token_text(holding.token, scene.names)}" for holding in book.holdings[:HOLDINGS_SHOWN]]
    more = len(book.holdings) - len(shown)
    pooled = [counted(len(book.positions), "position")] if book.positions else []
    return ", ".join([*shown, *([f"{more} more"] if more else []), *pooled]) or "–"


def _units(scene: Scene, token: str, units_raw: int, shares: bool) -> str:
    """A holding kept in shares has an amount of its own only when it is sold."""
    return "" if shares or token not in scene.names else f"{amount_text(units_raw, token, scene.names)} "


def _change(scene: Scene, run: RunScene, ledger: str) -> Text:
    opened, value = scene.state.opened, run.values.get(ledger)
    if opened is None or value is None:
        return Text(UNMEASURED, "dim")
    ppm = mul_div_floor(value - opened.stake_wei, 1_000_000, opened.stake_wei)
    mark = "*" if ledger == HEADLINE and run.tagged else ""
    style = "green" if value > opened.stake_wei else "red" if value < opened.stake_wei else ""
    return Text(f"{percent_text(ppm)}{mark}", style)


def _feed(scene: Scene, rows: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for line in [line for line in scene.feed if line.mood != QUIET][-rows:]:
        who = line.who.removeprefix(f"{scene.window_id}-")
        text.append(f"\n{_since_open(scene, line.ts_ms):>6}  ", "dim").append(f"{who}  ").append(line.text, STYLES[line.mood])
    return text


def _since_open(scene: Scene, ts_ms: int) -> str:
    opened = scene.state.opened
    return f"+{minutes_text(ts_ms - opened.open_ts_ms)}" if opened else ""


def _time_of_day(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms // 1_000, UTC).strftime("%H:%M:%S")
