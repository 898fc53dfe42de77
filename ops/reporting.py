"""The report of a window: what every run came to, why orders did not fill, and the equity curves of both ledgers.

A fold over the journal, like everything that is shown; numbers are those that were recorded and that a replay finds
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ledgers.curve import mdd_ppm
from ledgers.events import Event
from ledgers.journal import Journal
from ledgers.money import Wei, decimal_text
from ledgers.report import ANECDOTE, Basis, Cell, Column, EquityLine, Figure, Report, Table, eth_text, percent_text
from ledgers.whole_file import write_whole
from referee.onchain.events import (
    HEADLINE, LEDGERS, PERMISSIVE, DecisionTaken, FillCredited, MarkTaken, OrderNotFilled, OrderRefused, RunScored, TickMissed,
    WindowLiquidated, WindowOpened,
)  # fmt: skip
from referee.onchain.rulebook import RULE_ROWS
from referee.onchain.state import WindowState, decoded

FILLED, REFUSED, NOT_FILLED = "filled", "refused", "not filled"

SCORE_COLUMNS = (
    Column("run_id", "run"),
    Column("headline_percent", "headline"),
    Column("permissive_percent", "permissive"),
    Column("without_unproven_percent", "unproven at 0"),
    Column("headline_eth", "headline ETH"),
    Column("headline_usd", "in USD"),
    Column("mdd_percent", "max drawdown"),
    Column("orders", "orders"),
    Column("filled", "filled"),
    Column("turns_answered", "turns"),
    Column("turns_total", "of"),
    Column("ticks_missed", "missed"),
    Column("note", "note"),
)
EXACT_COLUMNS = (
    "run_id", "stack", "stack_sha256", "copy", "status", "reason", "stake_wei", "headline_wei", "permissive_wei", "headline_ppm", "permissive_ppm",
    "headline_without_unproven_ppm", "close_usd_micro_usd", "turns_answered", "turns_total", "fills", "reorged_fills",
)  # fmt: skip
CURVE_COLUMNS = ("run_id", "ledger", "ts_ms", "value_wei")
OUTCOME_COLUMNS = (
    Column("outcome", "outcome"),
    Column("reason", "reason"),
    Column("rule", "rule"),
    Column("headline_orders", "headline"),
    Column("permissive_orders", "permissive"),
)
NOTE = (
    "headline: proven fills, with exits that cannot be proven at 0 in the third column; permissive: the best row, proven or not.\n"
    "A score is the change of the value of a full liquidation in ETH, net of gas, rounded down."
)


@dataclass(slots=True)
class Account:
    """What the report needs of a window, as a fold over its events."""

    state: WindowState = field(default_factory=WindowState)
    orders: Counter[str] = field(default_factory=Counter)
    """Orders asked for, by run."""
    missed: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    """Headline fills, by run."""
    outcomes: dict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Orders by (outcome, reason, rule), for each ledger."""
    curves: dict[tuple[str, str], list[tuple[int, Wei | None]]] = field(default_factory=lambda: defaultdict(list))
    """(ts_ms, value) by (run, ledger)."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        self.state.apply(event)
        match event:
            case DecisionTaken():
                self.orders[event.run_id] += len(event.orders)
            case TickMissed():
                self.missed[event.run_id] += 1
            case FillCredited():
                self.filled[event.run_id] += HEADLINE in event.ledgers
                self._outcome(event.ledgers, FILLED, event.tag, "ONC-11" if event.tag else "ONC-10")
            case OrderRefused():
                self._outcome(event.ledgers, REFUSED, event.reason, event.rule)
            case OrderNotFilled():
                self._outcome(event.ledgers, NOT_FILLED, event.reason, "")
            case MarkTaken() | WindowLiquidated():
                for ledger in event.ledgers:
                    self.curves[event.run_id, ledger].append((event.ts_ms, event.value_wei))

    def _outcome(self, ledgers: Iterable[str], outcome: str, reason: str, rule: str) -> None:
        self.outcomes[outcome, reason, rule].update(ledgers)

    @property
    def opened(self) -> WindowOpened:
        """The window's opening."""
        assert self.state.opened is not None, "a report is of a window that opened"
        return self.state.opened


def account_of(journal: Journal) -> Account:
    """Fold a window's journal. Raises: CorruptJournal."""
    account = Account()
    for record in journal.read():
        account.apply(decoded(record))
    return account


def report_of(account: Account, journal: Journal) -> Report:
    """Report a window as far as it has come."""
    opened = account.opened
    basis = Basis(label=opened.label, n=len(account.state.runs), of="runs of one window", claim=ANECDOTE)
    return Report(
        title=f"window {journal.window_id} on {opened.label}",
        basis=basis,
        facts=_facts(account, journal),
        tables=(_scores(account, basis), _outcomes(account, basis)),
        figure=_figure(account, journal.window_id, basis),
        note=f"check it: referee verify {journal.window_id} · referee replay {journal.window_id}",
    )


def write_report(journal: Journal, directory: Path) -> tuple[Report, tuple[Path, ...]]:
    """Report a window and write it as text, JSON, CSV and PNG; the exact numbers behind it as CSV beside it.

    Raises: CorruptJournal, StoreFault."""
    account = account_of(journal)
    report = report_of(account, journal)
    exact = {directory / f"{table.name}.csv": table for table in exact_tables(account, report.basis)}
    paths = report.save(directory)
    for path, table in exact.items():
        write_whole(path, table.csv().encode())
    return report, (*paths, *exact)


def exact_tables(account: Account, basis: Basis) -> tuple[Table, ...]:
    """Give every score and every mark to the last wei."""
    runs = tuple(_exact_row(account, run_id) for run_id in account.state.runs)
    marks = tuple((run_id, ledger, ts_ms, value) for (run_id, ledger), points in account.curves.items() for ts_ms, value in points)
    return _exact("runs", basis, EXACT_COLUMNS, runs), _exact("marks", basis, CURVE_COLUMNS, marks)


def _exact(name: str, basis: Basis, columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]) -> Table:
    return Table(name=name, title=name, basis=basis, columns=tuple(Column(column, column) for column in columns), rows=rows)


def _exact_row(account: Account, run_id: str) -> tuple[Cell, ...]:
    run = account.state.runs[run_id]
    known = {name: getattr(run.scored, name) for name in EXACT_COLUMNS if hasattr(run.scored, name)}
    opened = {"run_id": run_id, "stack": run.opened.stack, "stack_sha256": run.opened.stack_sha256, "copy": run.opened.copy}
    return tuple(({"status": "OPEN"} | known | opened).get(name) for name in EXACT_COLUMNS)


def _facts(account: Account, journal: Journal) -> tuple[tuple[str, Cell], ...]:
    opened, (seq, root) = account.opened, journal.head()
    closing = account.state.scored.close_eth_usd_micro_usd if account.state.scored else None
    length_s, interval_s = (opened.close_ts_ms - opened.open_ts_ms) // 1_000, opened.interval_ms // 1_000
    return (
        ("opened", f"{_utc(opened.open_ts_ms)}, for {length_s} s, woken every {interval_s} s"),
        ("chain", f"{opened.network}, id {opened.chain_id}, block 0 {opened.block0_hash}, {opened.client}"),
        ("stake", f"{eth_text(opened.stake_wei, 18)} ETH"),
        ("one ETH", f"{decimal_text(opened.eth_usd_micro_usd, 6, 2)} USD at the opening, {_usd(closing)} at the close"),
        ("rules", f"{opened.rules_name} {opened.rules_sha256}, board {opened.board_policy}"),
        ("window", opened.window_sha256),
        ("code", opened.code_sha256),
        ("journal", f"{seq} records, root {root}{'' if account.state.sealed else ' (not sealed)'}"),
    )


def _scores(account: Account, basis: Basis) -> Table:
    runs = sorted(account.state.runs, key=lambda run_id: _rank(account, run_id))
    return Table(
        name="scores",
        title="Scores",
        basis=basis,
        columns=SCORE_COLUMNS,
        rows=tuple(_score_row(account, run_id) for run_id in runs),
        note=NOTE,
    )


def _rank(account: Account, run_id: str) -> tuple[int, str]:
    """Best first, unscored last, equal ones by name."""
    scored = account.state.runs[run_id].scored
    headline_ppm = scored.headline_ppm if scored else None
    return (1, run_id) if headline_ppm is None else (-headline_ppm - 10**15, run_id)


def _score_row(account: Account, run_id: str) -> tuple[Cell, ...]:
    run = account.state.runs[run_id]
    scored = run.scored
    measured = [value for _, value in account.curves[run_id, HEADLINE] if value is not None]
    return (
        run_id,
        percent_text(scored.headline_ppm) if scored else None,
        percent_text(scored.permissive_ppm) if scored else None,
        percent_text(scored.headline_without_unproven_ppm) if scored else None,
        eth_text(scored.headline_wei, 8) if scored else None,
        _usd_cell(scored),
        f"{decimal_text(mdd_ppm(account.opened.stake_wei, measured), 4, 4)} %" if measured else None,
        account.orders[run_id],
        account.filled[run_id],
        run.turns_answered,
        run.turns_total,
        account.missed[run_id],
        _note(scored),
    )


def _note(scored: RunScored | None) -> str:
    if scored is None:
        return "not scored yet"
    return " ".join(part for part in (scored.status if scored.status != "SCORED" else "", scored.reason) if part)


def _usd_cell(scored: RunScored | None) -> str | None:
    return None if scored is None or scored.close_usd_micro_usd is None else decimal_text(scored.close_usd_micro_usd, 6, 2)


def _outcomes(account: Account, basis: Basis) -> Table:
    order = {FILLED: 0, REFUSED: 1, NOT_FILLED: 2}
    known = {row.id for row in RULE_ROWS}
    rows = sorted(account.outcomes.items(), key=lambda item: (order[item[0][0]], item[0]))
    return Table(
        name="outcomes",
        title="What became of orders",
        basis=basis,
        columns=OUTCOME_COLUMNS,
        rows=tuple((outcome, reason, rule if rule in known else "", by[HEADLINE], by[PERMISSIVE]) for (outcome, reason, rule), by in rows),
        note="one order counts once on each ledger; `referee show RUN --order N` tells why",
    )


def _figure(account: Account, window_id: str, basis: Basis) -> Figure:
    opened = account.opened
    start = (opened.open_ts_ms, opened.stake_wei)
    lines = tuple(
        EquityLine(run=run_id.removeprefix(f"{window_id}-"), dashed=ledger == PERMISSIVE, points=(start, *account.curves[run_id, ledger]))
        for run_id in account.state.runs
        for ledger in LEDGERS
    )
    note = "every point is a full liquidation by simulation, net of gas; gaps were not measured"
    return Figure(title=f"window {window_id}", basis=basis, open_ts_ms=opened.open_ts_ms, stake_wei=opened.stake_wei, lines=lines, note=note)


def _usd(micro_usd: int | None) -> str:
    return "not measured" if micro_usd is None else f"{decimal_text(micro_usd, 6, 2)} USD"


def _utc(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
