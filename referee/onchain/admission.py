"""Admission: what is refused by name before anything is quoted.

Source: ONC-04 and ONC-26; design §9 for orders that meet a closed window.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.onchain.decision import BUY, CLOSE_LP, OPEN_LP, SELL
from referee.onchain.events import LEDGERS, OrderAsked, OrderRefused

SIDES = (BUY, SELL)
LP_SIDES = (OPEN_LP, CLOSE_LP)
WINDOW_CLOSED = "window_closed"
NOT_YET = "not_yet"
STANDING_ORDER = "standing_order"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a rule says no."""

    reason: str
    rule: str
    detail: str


def refused_at_the_door(asked: OrderAsked, ts_ms: int, close_ts_ms: int) -> Refusal | None:
    """Refuse an order that no quote could admit; none when it may be quoted.

    Units: an order begun at the close is refused, one a millisecond before it is not."""
    if ts_ms >= close_ts_ms:
        return Refusal(WINDOW_CLOSED, "ONC-12", f"begun {ts_ms - close_ts_ms} ms after the close")
    if asked.side in LP_SIDES:
        return Refusal(NOT_YET, "ONC-04", f"{asked.side} is not refereed yet")
    if asked.side not in SIDES:
        return Refusal(STANDING_ORDER, "ONC-26", f"{asked.side} orders do not exist here; act when woken")
    return None


def refusal_event(refusal: Refusal, run_id: str, order_id: str, ts_ms: int) -> OrderRefused:
    """Write a refusal down, on every ledger."""
    return OrderRefused(
        run_id=run_id, ts_ms=ts_ms, order_id=order_id, ledgers=LEDGERS, reason=refusal.reason, rule=refusal.rule, detail=refusal.detail
    )
