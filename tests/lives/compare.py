"""The comparison: what paper says beside what really happened, every difference by its word.

`false_…` is what must never be: paper says more than is. `under_…` is less than is.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledgers.money import Wei
from referee.onchain.events import FillCredited, HoldingMark
from tests.lives.reality import Happened

FALSE, UNDER = "false", "under"
Difference = tuple[str, str]
"""Its word, and what is what."""


def side_of(more: bool) -> str:
    return FALSE if more else UNDER


def of_fill(fill: FillCredited, done: Happened) -> Iterator[Difference]:
    """Differences of a fill that was proven and really sent."""
    about = f"{fill.side} {fill.route}"
    if not done.ok:
        yield f"{FALSE}_revert", f"{about}: credited {fill.arrival_raw}, really {done.word}"
        return
    credited = -int(fill.spent_raw) if fill.side == "buy" else int(fill.arrival_raw)
    if credited != done.gross_wei:
        yield f"{side_of(credited > done.gross_wei)}_fill", f"{about}: credited {credited} wei, really {done.gross_wei}"
    if int(fill.gas_wei) != done.gas_wei:
        yield f"{side_of(int(fill.gas_wei) < done.gas_wei)}_gas", f"{about}: charged {fill.gas_wei} wei, really {done.gas_wei}"


def of_claim(fill: FillCredited, done: Happened) -> Iterator[Difference]:
    """Differences of a fill that headline credited without proof; `done` is the best that could really be done."""
    really = done.gross_wei if done.ok else 0
    if int(fill.arrival_raw) != really:
        yield f"{side_of(int(fill.arrival_raw) > really)}_claim", f"{fill.side} {fill.tag}: credited {fill.arrival_raw}, really {really}"


def of_tokens(token: str, moved: int, really: int, rounding_raw: int) -> Iterator[Difference]:
    """Differences of what the orders of a decision moved of a token."""
    if abs(moved - really) > rounding_raw:
        yield f"{side_of(moved > really)}_tokens", f"{token}: paper moved {moved}, really {really}"


def of_mark(mark: HoldingMark, really: int) -> Iterator[Difference]:
    """Differences of a mark; `really` is what is left of the best real sale after gas."""
    if mark.value_wei != Wei(really):
        yield f"{side_of(int(mark.value_wei) > really)}_mark", f"{mark.status} {mark.reason} {mark.route}: marked {mark.value_wei}, really {really}"
