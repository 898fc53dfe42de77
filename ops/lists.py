"""The lists: the windows of a home and their runs, from the read tables where these are up to the journal."""

from __future__ import annotations

from collections.abc import Mapping

from ledgers.layout import TEXT_WIDTH
from ledgers.money import Wei
from ledgers.report import ANECDOTE, Basis, Column, Table, eth_text, percent_text
from ledgers.store import EmptyStore, RunRow, Store, WindowRow
from ops.settings import Settings
from referee.onchain.state import folded
from referee.onchain.tables import rows

RUN_COLUMNS = (
    Column("run_id", "run"),
    Column("status", "status"),
    Column("headline_wei", "headline ETH"),
    Column("headline_ppm", "headline"),
    Column("permissive_ppm", "permissive"),
    Column("turns", "answered"),
    Column("fills", "fills"),
)

Listed = tuple[WindowRow, list[RunRow]]


def runs_list(settings: Settings, width: int = TEXT_WIDTH) -> tuple[str, dict[str, object]]:
    """List every window of a home with its runs. Raises: StoreFault, CorruptJournal."""
    try:
        with Store(settings.store_path, exclusive=False) as store:
            windows = listed(store)
    except EmptyStore:
        windows = []
    text = "\n".join(_table(window, runs).text(width) for window, runs in windows)
    return text or f"no windows yet in {settings.home}; `referee run ops/windows/first.toml` plays one", {"windows": [_data(window, runs) for window, runs in windows]}


def listed(store: Store) -> list[Listed]:
    """Collect the windows of a store, oldest first. Raises: StoreFault, CorruptJournal."""
    kept = {window.window_id: window for window in store.rows(WindowRow)}
    runs = store.rows(RunRow)
    found = []
    for window_id in sorted(store.window_ids(), key=lambda name: (len(name), name)):
        window = kept.get(window_id)
        if window is not None and (window.events, window.root) == store.journal(window_id).head():
            found.append((window, _ranked([run for run in runs if run.window_id == window_id])))
        else:
            found.append(_computed(store, window_id))
    return found


def best_first(headline_ppm: Mapping[str, int | None]) -> list[str]:
    """Order runs as every list does: best headline first, equal ones by name, those without a score last."""
    return sorted(headline_ppm, key=lambda run_id: (-(ppm if (ppm := headline_ppm[run_id]) is not None else -(10**15)), run_id))


def short_run(run_id: str, window_id: str) -> str:
    """Name a run where its window is named already."""
    return run_id.removeprefix(f"{window_id}-")


def _ranked(runs: list[RunRow]) -> list[RunRow]:
    rows = {run.run_id: run for run in runs}
    return [rows[run_id] for run_id in best_first({run_id: run.headline_ppm for run_id, run in rows.items()})]


def _computed(store: Store, window_id: str) -> Listed:
    """Read a window whose tables are behind its journal: it is being played, or was killed."""
    records = list(store.journal(window_id).read())
    window, *runs = rows(folded(records), records[-1].seq, records[-1].link)
    assert isinstance(window, WindowRow)
    return window, _ranked([run for run in runs if isinstance(run, RunRow)])


def _table(window: WindowRow, runs: list[RunRow]) -> Table:
    return Table(
        name=window.window_id,
        title=f"{window.window_id} · {window.status}",
        basis=Basis(label=window.label, n=len(runs), of="runs of one window", claim=ANECDOTE),
        columns=RUN_COLUMNS,
        rows=tuple(
            (
                run.run_id,
                run.status,
                eth_text(None if run.headline_wei is None else Wei(int(run.headline_wei)), 8),
                percent_text(run.headline_ppm),
                percent_text(run.permissive_ppm),
                f"{run.turns_answered}/{run.turns_total}",
                run.fills,
            )
            for run in runs
        ),
    )


def _data(window: WindowRow, runs: list[RunRow]) -> dict[str, object]:
    return {**_fields(window), "runs": [_fields(run) for run in runs]}


def _fields(row: WindowRow | RunRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in type(row).model_fields}
