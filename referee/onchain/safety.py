"""Safety: what became of tokens after the gate, as folds over a run's own events.

A gate speaks of one block. What could be sold when it was bought and cannot be when the window ends is trapped; what nobody
could tell was refused, and is counted by cause, so that a strict gate is seen to be one.
Source: 001 §5.4; ONC-08.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ledgers.events import Event
from referee.onchain.events import HEADLINE, OrderRefused, WindowLiquidated

UNSELLABLE = ("reverted", "no_route")
"""What a mark says of a holding that no sale gets rid of."""
UNKNOWN_GATE = "gate_unknown"


def trapped(sold: WindowLiquidated | None) -> int:
    """Count what a ledger's liquidation could not sell although its buy had passed the gate; 0 where nothing was liquidated."""
    return sum(mark.status in UNSELLABLE for mark in sold.holdings) if sold is not None else 0


def unknown_refusals(events: Iterable[Event]) -> Counter[str]:
    """Count the buys that headline refused because the gate could not tell, by its cause."""
    return Counter(event.detail for event in events if isinstance(event, OrderRefused) and event.reason == UNKNOWN_GATE and HEADLINE in event.ledgers)
