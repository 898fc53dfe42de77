"""The read tables of a window: what lists show, projected from its state; they hold nothing that the journal does not."""

from __future__ import annotations

from ledgers.money import Money
from ledgers.store import RunRow, WindowRow
from referee.onchain.score import SCORED
from referee.onchain.state import RunState, WindowState

OPEN, PAUSED, SEALED = "OPEN", "PAUSED", "SEALED"


def rows(state: WindowState, events: int, root: str) -> list[WindowRow | RunRow]:
    """Project a window onto its read tables. Shapes: the window, then its runs in the order they were opened."""
    return [_window_row(state, events, root), *(_run_row(run) for run in state.runs.values())]


def status_of(state: WindowState) -> str:
    """Say where a window stands."""
    return SEALED if state.sealed else PAUSED if state.paused else OPEN


def _window_row(state: WindowState, events: int, root: str) -> WindowRow:
    opened = state.opened
    assert opened is not None, "a window that never opened has no row"
    return WindowRow(
        window_id=opened.run_id,
        network=opened.network,
        label=opened.label,
        status=status_of(state),
        open_ts_ms=opened.open_ts_ms,
        close_ts_ms=opened.close_ts_ms,
        stake_wei=str(opened.stake_wei),
        runs=len(state.runs),
        scored=sum(run.scored is not None and run.scored.status == SCORED for run in state.runs.values()),
        events=events,
        root=root,
    )


def _run_row(run: RunState) -> RunRow:
    opened, scored = run.opened, run.scored
    stake = next(posting.amount for posting in opened.entry.postings if posting.account == "book")
    return RunRow(
        run_id=opened.run_id,
        window_id=opened.window_id,
        stack=opened.stack,
        stack_sha256=opened.stack_sha256,
        copy_number=opened.copy,
        status=scored.status if scored else OPEN,
        reason=scored.reason if scored else "",
        stake_wei=str(stake),
        headline_wei=_text(scored and scored.headline_wei),
        permissive_wei=_text(scored and scored.permissive_wei),
        headline_ppm=scored and scored.headline_ppm,
        permissive_ppm=scored and scored.permissive_ppm,
        turns_answered=run.turns_answered,
        turns_total=run.turns_total,
        fills=len(run.headline_fills),
    )


def _text(amount: Money | None) -> str | None:
    return None if amount is None else str(amount)
