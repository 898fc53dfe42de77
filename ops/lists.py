"""The lists: the runs of a home, and the rules."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ledgers.journal import Journal
from ledgers.report import ANECDOTE, Basis, Column, Table, eth_text, percent_text
from ledgers.store import Store
from ops.settings import Settings
from referee.onchain.events import HEADLINE, PERMISSIVE, WindowOpened
from referee.onchain.rulebook import RULE_ROWS
from referee.onchain.rules import DEFAULT
from referee.onchain.state import RunState, WindowState, folded

RUN_COLUMNS = (
    Column("run_id", "run"),
    Column("stack", "stack"),
    Column("status", "status"),
    Column("headline_wei", "headline ETH"),
    Column("headline_ppm", "headline"),
    Column("permissive_ppm", "permissive"),
    Column("turns_answered", "answered"),
    Column("turns_total", "of turns"),
    Column("fills", "fills"),
)
TEXT_WIDTH = 110


def runs_list(settings: Settings) -> tuple[str, dict[str, object]]:
    """List every window of a home with its runs. Raises: StoreFault, CorruptJournal."""
    if not settings.store_path.exists():
        return f"no windows yet in {settings.home}; `referee run ops/windows/first.toml` plays one", {"windows": []}
    with Store(settings.store_path, exclusive=False) as store:
        windows = [_window(store.journal(window_id)) for window_id in store.window_ids()]
    text = "\n".join(text for text, _ in windows) or f"no windows yet in {settings.home}"
    return text, {"windows": [data for _, data in windows]}


def _window(journal: Journal) -> tuple[str, dict[str, object]]:
    state = folded(journal.read())
    opened = state.opened
    if opened is None:
        return f"{journal.window_id}  not opened", {"window_id": journal.window_id, "status": "not opened", "runs": []}
    table = _runs_table(journal.window_id, state, opened)
    data = {
        "window_id": journal.window_id,
        "label": opened.label,
        "status": status_of(state),
        "open_ts_ms": opened.open_ts_ms,
        "close_ts_ms": opened.close_ts_ms,
        "events": journal.head()[0],
        "root": journal.head()[1],
        "runs": [_run_data(run) for run in state.runs.values()],
    }
    return table.text(), data


def _runs_table(window_id: str, state: WindowState, opened: WindowOpened) -> Table:
    return Table(
        name=window_id,
        title=f"{window_id} · {status_of(state)}",
        basis=Basis(label=opened.label, n=len(state.runs), of="runs of one window", claim=ANECDOTE),
        columns=RUN_COLUMNS,
        rows=tuple(_run_row(run) for run in state.runs.values()),
    )


def _run_row(run: RunState) -> tuple[str | int | None, ...]:
    scored = run.scored
    return (
        run.opened.run_id,
        run.opened.stack,
        scored.status if scored else "open",
        eth_text(scored.headline_wei if scored else None),
        percent_text(scored.headline_ppm if scored else None),
        percent_text(scored.permissive_ppm if scored else None),
        run.turns_answered,
        run.turns_total,
        len(run.headline_fills),
    )


def _run_data(run: RunState) -> dict[str, object]:
    scored = run.scored
    marks = {ledger: run.marks[ledger].value_wei for ledger in (HEADLINE, PERMISSIVE) if ledger in run.marks}
    return {
        "run_id": run.opened.run_id,
        "stack": run.opened.stack,
        "stack_sha256": run.opened.stack_sha256,
        "copy": run.opened.copy,
        "status": scored.status if scored else "open",
        "reason": scored.reason if scored else "",
        "headline_wei": _text(scored.headline_wei if scored else None),
        "permissive_wei": _text(scored.permissive_wei if scored else None),
        "headline_ppm": scored.headline_ppm if scored else None,
        "permissive_ppm": scored.permissive_ppm if scored else None,
        "last_marks_wei": {ledger: _text(value) for ledger, value in marks.items()},
        "turns_answered": run.turns_answered,
        "turns_total": run.turns_total,
        "fills": len(run.headline_fills),
    }


def _text(amount: object) -> str | None:
    return None if amount is None else str(amount)


def status_of(state: WindowState) -> str:
    """Say in a word how far a window is."""
    if state.sealed:
        return "sealed"
    return "scored" if state.scored else "paused" if state.paused else "running or interrupted"


def rules_list() -> tuple[str, dict[str, object]]:
    """List the rules that are in force with source, value, status and proving tests."""
    data = {
        "name": DEFAULT.name,
        "since": DEFAULT.since,
        "sha256": DEFAULT.sha256(),
        "rules": [
            {"id": row.id, "rule": row.rule, "value": row.value, "source": row.source, "status": row.status, "tests": list(row.tests)}
            for row in RULE_ROWS
        ],
    }
    return "\n".join(_rules_text()) + "\n", data


def _rules_text() -> Iterator[str]:
    yield f"{DEFAULT.name}, in force since {DEFAULT.since}, sha256 {DEFAULT.sha256()}"
    for row in RULE_ROWS:
        yield f"\n{row.id}  {row.status:8}  {row.value}  [{row.source}]"
        yield from textwrap.wrap(row.rule, TEXT_WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
        yield from (f"        proof: {test}" for test in row.tests)
