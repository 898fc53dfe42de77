"""Admission: orders that are refused by name before anything is asked of the chain.

Source: ONC-21 and ONC-26; design §9 for orders that meet a closed window.
"""

from __future__ import annotations

from referee.onchain.decision import CLOSE_LP, OPEN_LP, STANDING
from referee.onchain.events import OrderAsked
from referee.onchain.rules import Rules

WINDOW_CLOSED = "window_closed"
NOT_YET = "not_yet"
STANDING_ORDER = "standing_order"


def refused_by_name(asked: OrderAsked, ts_ms: int, close_ts_ms: int, rules: Rules) -> tuple[str, str]:
    """Say why an order is refused before it is quoted: (reason, detail), both empty when it may be quoted.

    Units: an order begun at the close is refused, one a millisecond before it is not."""
    if ts_ms >= close_ts_ms:
        return WINDOW_CLOSED, f"begun {ts_ms - close_ts_ms} ms after the close"
    if asked.side in (OPEN_LP, CLOSE_LP) and rules.lp_share_ppm_max is None:
        return NOT_YET, f"{asked.side} is not refereed by the rules {rules.name}"
    if asked.side in STANDING:
        return STANDING_ORDER, f"{asked.side} orders do not exist here; a stack acts when it is woken"
    return "", ""
