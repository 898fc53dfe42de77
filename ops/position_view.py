"""The position view: open liquidity positions beneath the runs of a live view, one line each, or one a run where there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from ledgers.money import Wei
from ledgers.report import eth_text
from ops.lines import BAD, QUIET, counted
from ops.position_lines import pool_text, small_eth_text
from ops.positions import INSIDE, Kept
from ops.scene import Scene

Said = tuple[str, str]
"""A row and its mood."""
WHOLE = 100
"""Columns from which every position has a line of its own."""
ROWS_MAX = 6


def position_rows(scene: Scene, runs: Sequence[str], width: int, rows: int) -> list[Said]:
    """Say the open positions of these runs on the headline ledger in at most so many rows."""
    found = {run_id: kept for run_id in runs if (kept := scene.positions.open_on_headline(run_id))}
    each = [_position(scene, run_id, kept) for run_id, positions in found.items() for kept in positions]
    room = min(rows, ROWS_MAX)
    if width < WHOLE or len(each) > room:
        each = [_sum(scene, run_id, positions) for run_id, positions in found.items()]
    if len(each) > room:
        more = len(each) - max(room - 1, 0)
        each = [*each[: max(room - 1, 0)], (f"… and positions of {counted(more, 'more run')}", QUIET)] if room > 0 else []
    return each


def _position(scene: Scene, run_id: str, kept: Kept) -> Said:
    worth = kept.worth
    parts = f"fees {small_eth_text(worth.fees_wei)} ETH · imp. loss {small_eth_text(worth.impermanent_wei)} ETH" if worth else ""
    value = f"worth {eth_text(kept.mark.value_wei, 8)} ETH · {parts}" if kept.mark else "not marked yet"
    name, where = kept.id.removeprefix(f"{run_id}/"), kept.where
    text = f"{_short(scene, run_id)}  {name}  {pool_text(kept.opened, scene.names)}  {where}  {value}"
    return text, QUIET if kept.where == INSIDE else BAD


def _sum(scene: Scene, run_id: str, positions: Sequence[Kept]) -> Said:
    values = [kept.mark.value_wei for kept in positions if kept.mark]
    worth = f"worth {eth_text(sum(values, Wei(0)), 8)} ETH" if len(values) == len(positions) else "not all marked yet"
    inside = sum(kept.where == INSIDE for kept in positions)
    return f"{_short(scene, run_id)}  {counted(len(positions), 'position')}, {inside} in range, {worth}", QUIET if inside == len(positions) else BAD


def _short(scene: Scene, run_id: str) -> str:
    return run_id.removeprefix(f"{scene.window_id}-")

