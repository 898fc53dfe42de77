"""The report of a window: what every run came to, why orders did not fill, and the equity curves of its ledgers.

A fold over the journal, like everything that is shown; numbers are those that were recorded and that a replay finds
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ledgers.curve import mdd_ppm
from ledgers.events import Event
from ledgers.journal import Journal
from ledgers.money import Wei, decimal_text
from ledgers.report import ANECDOTE, Basis, Cell, Column, EquityLine, Figure, Report, Said, Table, eth_text, percent_cell
from ledgers.whole_file import write_whole
from ops.drift import Answered
from ops.further_gaps import FurtherGaps
from ops.further_tables import further_tables
from ops.gaps import Gaps
from ops.home_chain import DEVNET
from ops.lines import DECIDED, counted, minutes_text, plain, turn_end
from ops.lists import best_first, short_run
from ops.outcomes import DONE, outcome_of, outcomes_table
from ops.positions_report import PooledAccount, positions_tables
from referee.onchain.events import (
    FURTHER_LEDGERS, HEADLINE, LEDGERS, DecisionTaken, MarkTaken, RunScored, TickMissed, WindowLiquidated, WindowOpened, WindowResumed,
)  # fmt: skip
from referee.onchain.rules import DEFAULT
from referee.onchain.safety import unknown_refusals
from referee.onchain.score import SCORED
from referee.onchain.state import WindowState, decoded

EXACT_COLUMNS = (
    "run_id", "stack", "stack_sha256", "copy", "status", "reason", "stake_wei", "headline_wei", "permissive_wei", "headline_ppm", "permissive_ppm",
    "headline_without_unproven_ppm", "delayed_wei", "impact_wei", "delayed_ppm", "impact_ppm", "close_usd_micro_usd", "turns_answered", "turns_total", "fills", "reorged_fills", "trapped",
    "liquidated_late", "liquidated_after_close_ms",
)  # fmt: skip
CURVE_COLUMNS = ("run_id", "ledger", "ts_ms", "value_wei")
LATE_MS = 10_000
"""A liquidation further after the close than this is said beside the score."""


@dataclass(slots=True)
class Account:
    """What the report needs of a window, as a fold over its events."""

    state: WindowState = field(default_factory=WindowState)
    orders: Counter[str] = field(default_factory=Counter)
    """Orders asked for, by run."""
    missed: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    """Headline fills, by run; positions opened and closed count."""
    unknown: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Buys refused because the gate could not tell, by run and cause."""
    outcomes: dict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Orders by (outcome, reason, rule), for each ledger."""
    turns: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Turns by (outcome, reason), for each run."""
    answered: Answered = field(default_factory=Answered)
    resumed: list[WindowResumed] = field(default_factory=list)
    """Every time a process took the window up again."""
    gaps: Gaps = field(default_factory=Gaps)
    further: FurtherGaps = field(default_factory=FurtherGaps)
    pooled: PooledAccount = field(default_factory=PooledAccount)
    curves: dict[tuple[str, str], list[tuple[int, Wei | None]]] = field(default_factory=lambda: defaultdict(list))
    """(ts_ms, value) by (run, ledger)."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        self.state.apply(event)
        self.gaps.apply(event)
        self.further.apply(event)
        self.answered.apply(event)
        self.pooled.apply(event)
        self.unknown[event.run_id].update(unknown_refusals((event,)))
        if (turn := turn_end(event)) is not None:
            self.turns[turn][event.run_id] += 1
        if (outcome := outcome_of(event)) is not None:
            ledgers = event.ledgers  # type: ignore[attr-defined]
            self.outcomes[outcome].update(ledgers)
            self.filled[event.run_id] += HEADLINE in ledgers and outcome[0] in DONE
        match event:
            case WindowResumed():
                self.resumed.append(event)
            case DecisionTaken():
                self.orders[event.run_id] += len(event.orders)
            case TickMissed():
                self.missed[event.run_id] += 1
            case MarkTaken() | WindowLiquidated():
                for ledger in event.ledgers:
                    self.curves[event.run_id, ledger].append((event.ts_ms, event.value_wei))

    @property
    def further_ledgers(self) -> tuple[str, ...]:
        """Ledgers with simulations of their own that some run keeps."""
        return tuple(ledger for ledger in FURTHER_LEDGERS if any(ledger in run.ledgers for run in self.state.runs.values()))

    @property
    def opened(self) -> WindowOpened:
        """The window's opening."""
        assert self.state.opened is not None, "a report is of a window that opened"
        return self.state.opened

    def ranked(self) -> list[str]:
        """List the runs, best first."""
        return best_first({run_id: run.scored.headline_ppm if run.scored else None for run_id, run in self.state.runs.items()})

    def after_close_ms(self, run_id: str) -> int | None:
        """How long after the close a run was liquidated; none before it was."""
        sold = self.state.runs[run_id].liquidated.values()
        return max((event.ts_ms - self.opened.close_ts_ms for event in sold), default=None)

    def sold_late(self, run_id: str) -> bool:
        """Whether a run was liquidated so long after the close that its score must say so."""
        late = any(event.late for event in self.state.runs[run_id].liquidated.values())
        return late or (self.after_close_ms(run_id) or 0) > LATE_MS


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
        tables=(
            _scores(account, journal.window_id, basis),
            *_exams(account, journal.window_id, basis),
            *positions_tables(account.pooled, journal, basis),
            *further_tables(account, journal.window_id, basis),
            _turns(account, basis),
            outcomes_table(account.outcomes, account.further_ledgers, basis),
        ),
        figure=_figure(account, journal.window_id, basis),
        note=f"Check it: referee verify {journal.window_id} · referee replay {journal.window_id}",
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
    """Give every score and every mark to the last wei; a ledger's marks begin with its stake, so that last over first is its score."""
    runs = tuple(_exact_row(account, run_id) for run_id in account.state.runs)
    start = (account.opened.open_ts_ms, account.opened.stake_wei)
    marks = tuple(
        (run_id, ledger, ts_ms, value)
        for run_id, run in account.state.runs.items() for ledger in run.ledgers
        for ts_ms, value in (start, *account.curves[run_id, ledger])
    )  # fmt: skip
    return _exact("runs", basis, EXACT_COLUMNS, runs), _exact("marks", basis, CURVE_COLUMNS, marks)


def _exact(name: str, basis: Basis, columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]) -> Table:
    return Table(name=name, title=name, basis=basis, columns=tuple(Column(column, column) for column in columns), rows=rows)


def _exact_row(account: Account, run_id: str) -> tuple[Cell, ...]:
    run = account.state.runs[run_id]
    known = {name: getattr(run.scored, name) for name in EXACT_COLUMNS if hasattr(run.scored, name)}
    opened = {"run_id": run_id, "stack": run.opened.stack, "stack_sha256": run.opened.stack_sha256, "copy": run.opened.copy}
    sold = {"liquidated_late": "yes" if account.sold_late(run_id) else "no", "liquidated_after_close_ms": account.after_close_ms(run_id)} if run.liquidated else {}
    return tuple(({"status": "OPEN"} | known | opened | sold).get(name) for name in EXACT_COLUMNS)


def _facts(account: Account, journal: Journal) -> tuple[tuple[str, Cell], ...]:
    opened, (seq, root) = account.opened, journal.head()
    length_s, interval_s = (opened.close_ts_ms - opened.open_ts_ms) // 1_000, opened.interval_ms // 1_000
    at_close = f"{_usd(_close_micro_usd(account))} at the close" if account.state.scored else "the window is not scored yet"
    return (
        ("opened", f"{_utc(opened.open_ts_ms)}, for {length_s} s, woken every {interval_s} s: {counted(opened.ticks, 'tick')}"),
        *(("unmeasured", text) for text in account.gaps.texts(opened)),
        *_late_fact(account),
        ("chain", f"{opened.network}, id {opened.chain_id}{SAME_ID if opened.label == DEVNET else ''}, block 0 {opened.block0_hash}, {opened.client}"),
        ("stake", f"{eth_text(opened.stake_wei, 18)} ETH"),
        ("one ETH", f"{_usd(opened.eth_usd_micro_usd)} at the opening, {at_close}"),
        ("rules", f"{opened.rules_name}, board {opened.board_policy}, hash {opened.rules_sha256}{_rules_differ(opened)}"),
        ("window file", opened.window_file_sha256),
        ("window", opened.window_sha256),
        ("code", opened.code_sha256),
        *_other_code(account),
        ("journal", f"{counted(seq, 'record')}, last link {root}{'' if account.state.sealed else ' (not sealed)'}"),
    )


def _other_code(account: Account) -> tuple[tuple[str, Cell], ...]:
    """Name every other code that played on: a result is of all the code that made it."""
    taken_up = {resumed.code_sha256: resumed.ts_ms for resumed in reversed(account.resumed) if resumed.code_sha256 != account.opened.code_sha256}
    return tuple((f"code {place}", f"{sha256}, accepted by the operator on {_utc(ts_ms)}") for place, (sha256, ts_ms) in enumerate(reversed(taken_up.items()), start=2))


SAME_ID = " (the real chain's id as well: block 0 tells them apart)"


def _rules_differ(opened: WindowOpened) -> str:
    """`referee rules` prints the hash of the rules with the board policy that they come with."""
    return "" if opened.rules_sha256 == DEFAULT.sha256() else f" (not the one that `referee rules` prints, which is with board {DEFAULT.board_policy})"


def _late_fact(account: Account) -> tuple[tuple[str, Cell], ...]:
    late = [run_id for run_id in account.state.runs if account.sold_late(run_id)]
    if not late:
        return ()
    latest_ms = max(account.after_close_ms(run_id) or 0 for run_id in late)
    return (("late", f"{len(late)} of {counted(len(account.state.runs), 'run')} liquidated up to {minutes_text(latest_ms)} after the close, at the prices of that time"),)


def _scores(account: Account, window_id: str, basis: Basis) -> Table:
    runs = account.ranked()
    scored = [run.scored for run in account.state.runs.values() if run.scored]
    ledgers_differ = any(score.permissive_wei != score.headline_wei for score in scored)
    claims = any(score.headline_without_unproven_ppm != score.headline_ppm for score in scored)
    return Table(
        name="scores",
        title="Scores",
        basis=basis,
        columns=_score_columns(ledgers_differ, claims),
        rows=tuple(_score_row(account, window_id, run_id) for run_id in runs),
        note="\n".join(_score_notes(account, window_id, runs, ledgers_differ, claims)),
    )


def _score_columns(ledgers_differ: bool, claims: bool) -> tuple[Column, ...]:
    """Name the columns; people are spared those that would only repeat another."""
    return (
        Column("run_id", "run", people=False),
        Column("run", "run", machines=False),
        Column("headline_percent", "headline"),
        Column("permissive_percent", "permissive", people=ledgers_differ),
        Column("without_unproven_percent", "claims at 0", people=claims),
        Column("headline_eth", "ETH"),
        Column("headline_usd", "USD"),
        Column("mdd_percent", "drawdown"),
        Column("fills", "done", machines=False),
        Column("turns", "answered", machines=False),
        Column("orders", "orders", people=False),
        Column("filled", "filled", people=False),
        Column("turns_answered", "answered", people=False),
        Column("turns_total", "woken", people=False),
        Column("ticks_missed", "missed", people=False),
        Column("ticks", "ticks", people=False),
        Column("trapped", "trapped", people=False),
        Column("unknown_refused", "refused as unknown", people=False),
        Column("note", "note", people=False),
    )


def _score_row(account: Account, window_id: str, run_id: str) -> tuple[Cell, ...]:
    run = account.state.runs[run_id]
    scored = run.scored
    measured = [value for _, value in account.curves[run_id, HEADLINE] if value is not None]
    orders, filled, missed, ticks = account.orders[run_id], account.filled[run_id], account.missed[run_id], account.opened.ticks
    return (
        run_id,
        short_run(run_id, window_id),
        percent_cell(scored.headline_ppm) if scored else None,
        percent_cell(scored.permissive_ppm) if scored else None,
        percent_cell(scored.headline_without_unproven_ppm) if scored else None,
        eth_text(scored.headline_wei, 8) if scored else None,
        _usd_cell(scored),
        _drawdown_cell(account.opened.stake_wei, measured),
        f"{filled}/{orders}",
        f"{run.turns_answered}/{ticks}",
        orders,
        filled,
        run.turns_answered,
        run.turns_total,
        missed,
        ticks,
        scored.trapped if scored else None,
        account.unknown[run_id].total(),
        _note(account, run_id),
    )


def _exams(account: Account, window_id: str, basis: Basis) -> tuple[Table, ...]:
    """What qualifies the results of models: which sitting admitted them, and whether their hosts answered as who had passed."""
    passes = account.answered.passes
    if not passes:
        return ()
    columns = (
        Column("run_id", "run", people=False), Column("run", "run", machines=False), Column("sitting", "sitting"), Column("date", "passed on"),
        Column("turns", "turns"), Column("sittings", "sittings"), Column("sat_as", "sat as"), Column("answered_as", "answered as"), Column("drifted", "drifted"),
    )  # fmt: skip
    rows = tuple(
        (
            run_id, short_run(run_id, window_id), shown.sitting, _utc(shown.sitting_ts_ms)[:10], "published and fresh" if shown.fresh else "published",
            shown.sittings or None, shown.model_reported or None, ", ".join(account.answered.names.get(run_id, ())) or None,
            "yes" if account.answered.drifted(run_id) else "no",
        )
        for run_id, shown in passes.items()
    )  # fmt: skip
    note = "drifted: its host answered as another model than the one that sat; it has to sit again before the next window. sittings: how often it had sat by then."
    return (Table(name="exams", title="Entrance exam", basis=basis, columns=columns, rows=rows, note=note),)


def _drawdown_cell(stake_wei: Wei, measured: list[Wei]) -> Said | None:
    if not measured:
        return None
    percent = decimal_text(mdd_ppm(stake_wei, measured), 4, 4)
    return Said(f"{percent} %", percent)


def _score_notes(account: Account, window_id: str, runs: list[str], ledgers_differ: bool, claims: bool) -> Iterator[str]:
    notes = _notes(account, window_id, runs)
    yield from (*notes, "") if notes else ()
    yield "A score is the change of the value of a full liquidation in ETH against the stake, net of gas, rounded down."
    yield "headline: proven fills." + (" permissive: the best row, proven or not." if ledgers_differ else " The permissive ledger came to the same for every run.")
    if claims:
        yield "claims at 0: headline with every exit that rests on a claim instead of a simulation counted 0."
    price, pooled = _close_micro_usd(account), account.pooled.positions.all()
    if price is not None:
        yield f"USD: ETH at the price of the close, {_usd(price)}."
    yield f"done: orders filled{', or positions opened or closed,' if pooled else ''} of those asked for, on headline. answered: of the window's ticks."
    yield f"A run's story: referee show {window_id}-RUN"


def _notes(account: Account, window_id: str, runs: list[str]) -> list[str]:
    """Say what stands beside the scores; what holds for several runs is said once."""
    by_note: dict[str, list[str]] = {}
    for run_id in runs:
        by_note.setdefault(_note(account, run_id), []).append(short_run(run_id, window_id))
    return [f"{'every run' if len(named) == len(runs) else ', '.join(named)}: {note}." for note, named in by_note.items() if note]


def _note(account: Account, run_id: str) -> str:
    """Say what a reader must know beside a score."""
    run, ticks = account.state.runs[run_id], account.opened.ticks
    scored, missed = run.scored, account.missed[run_id]
    unanswered = run.turns_total - run.turns_answered
    parts = (
        "not scored yet" if scored is None else scored.status if scored.status != SCORED else "",
        scored.reason if scored else "",
        f"answered {run.turns_answered} of {run.turns_total} turns" if unanswered and scored else "",
        f"missed {missed} of {counted(ticks, 'tick')}" if missed else "",
        f"liquidated {minutes_text(account.after_close_ms(run_id) or 0)} after the close" if account.sold_late(run_id) else "",
        f"{counted(scored.trapped, 'holding')} trapped: could be sold when bought, not at the end" if scored and scored.trapped else "",
        _unknown_text(account.unknown[run_id]),
    )
    return ", ".join(part for part in parts if part)


def _unknown_text(causes: Counter[str]) -> str:
    """Say how many buys the gate refused because it could not tell, and why it could not (ONC-08)."""
    if not causes:
        return ""
    told = " · ".join(f"{plain(cause) or 'no cause'} {count}" for cause, count in sorted(causes.items()))
    return f"{counted(causes.total(), 'buy')} refused as unknown ({told})"


def _usd_cell(scored: RunScored | None) -> str | None:
    return None if scored is None or scored.close_usd_micro_usd is None else decimal_text(scored.close_usd_micro_usd, 6, 2)


def _close_micro_usd(account: Account) -> int | None:
    return account.state.scored.close_eth_usd_micro_usd if account.state.scored else None


def _turns(account: Account, basis: Basis) -> Table:
    rows = sorted(account.turns.items(), key=lambda item: (item[0][0] != DECIDED, item[0]))
    return Table(
        name="turns",
        title="What became of turns",
        basis=basis,
        columns=(Column("outcome", "outcome"), Column("reason", "reason"), Column("turns", "turns"), Column("runs", "runs")),
        rows=tuple((outcome, reason or None, by.total(), len(by)) for (outcome, reason), by in rows),
        note=f"{counted(account.opened.ticks, 'tick')} planned for each run; whoever did not answer decided nothing, which is not the same as deciding to hold",
    )


def _figure(account: Account, window_id: str, basis: Basis) -> Figure:
    opened = account.opened
    return Figure(
        title=f"window {window_id}",
        basis=basis,
        open_ts_ms=opened.open_ts_ms,
        stake_wei=opened.stake_wei,
        lines=tuple(line for run_id in account.ranked() for line in _lines(account, window_id, run_id)),
        close_ts_ms=opened.close_ts_ms,
        blind=account.gaps.spans(account.state.ts_ms),
        note="every point is a full liquidation by simulation, net of gas; lines between points only guide the eye",
    )


def _lines(account: Account, window_id: str, run_id: str) -> Iterator[EquityLine]:
    """Draw the permissive ledger only where it differs."""
    run, start = account.state.runs[run_id].opened, (account.opened.open_ts_ms, account.opened.stake_wei)
    stacks = list(dict.fromkeys(each.opened.stack for each in account.state.runs.values()))
    headline, permissive = (account.curves[run_id, ledger] for ledger in LEDGERS)
    for dashed, points in ((False, headline), (True, permissive)):
        if not dashed or permissive != headline:
            yield EquityLine(run=short_run(run_id, window_id), dashed=dashed, look=(stacks.index(run.stack), run.copy - 1), points=(start, *points))


def _usd(micro_usd: int | None) -> str:
    return "not measured" if micro_usd is None else f"{decimal_text(micro_usd, 6, 2)} USD"


def _utc(ts_ms: int) -> str:
    return datetime.fromtimestamp(ts_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
