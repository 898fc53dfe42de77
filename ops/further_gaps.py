"""The gaps: how far the further ledgers are from the headline, order by order, with the sign; a fold over the journal.

A gap compares what arrived for one unit given: token units per wei of a buy, wei per token unit of a sale. Below zero the
further ledger got less: that much the headline flatters. An order that the further ledger did not fill has no gap but a word.
Source: 001 §5.1, §5.2; ONC-22, ONC-23.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ledgers.events import Event
from ledgers.money import Wei, mul_div_floor
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT, FillCredited, OrderNotFilled, OrderRefused
from referee.onchain.further_events import DelayedReverted, OrderSkipped

PPM = 1_000_000
RULES = {DELAYED: "ONC-22", IMPACT: "ONC-23"}
NAMES = {DELAYED: "delayed", IMPACT: "own impact"}
FILLED, REVERTED, SKIPPED, REFUSED, NOT_FILLED = "filled", "reverted", "skipped", "refused", "not filled"

NOT_MEASURED = {"interrupted": "interrupted by the end of a process", "fault": "lost to a fault of the node", "impact_unrepeatable": "not repeatable"}
"""Reasons of our own for which an order did not fill on a further ledger."""

Ended = FillCredited | OrderRefused | OrderNotFilled | OrderSkipped | DelayedReverted


@dataclass(frozen=True, slots=True)
class OrderGap:
    """What became of one order on one further ledger."""

    run_id: str
    order_id: str
    ledger: str
    side: str
    """Empty when headline did not fill the order."""
    token: str
    ended: str
    """filled, reverted, skipped, refused or not filled."""
    reason: str
    gap_ppm: int | None
    """Against headline, in parts per million of what arrived there for one unit given, cut towards zero; none when it did not fill."""
    gas_lost_wei: Wei
    """Gas of a revert."""


@dataclass(slots=True)
class FurtherGaps:
    """The gaps of a window, or of a run."""

    headline: dict[str, FillCredited] = field(default_factory=dict)
    """Headline's fills, by order id."""
    orders: list[OrderGap] = field(default_factory=list)
    """In the order in which they ended; orders that headline did not fill are left out."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        if not isinstance(event, Ended):
            return
        if isinstance(event, FillCredited) and HEADLINE in event.ledgers:
            self.headline[event.order_id] = event
        fill = self.headline.get(event.order_id)
        if fill is not None:
            self.orders += [_gap(ledger, event, fill) for ledger in event.ledgers if ledger in FURTHER_LEDGERS]

    def of(self, run_id: str, ledger: str) -> list[OrderGap]:
        """The orders of one run on one further ledger."""
        return [each for each in self.orders if (each.run_id, each.ledger) == (run_id, ledger)]


def gaps_of(events: Iterable[Event]) -> FurtherGaps:
    """Fold events."""
    gaps = FurtherGaps()
    for event in events:
        gaps.apply(event)
    return gaps


def _gap(ledger: str, event: Ended, fill: FillCredited) -> OrderGap:
    ended, reason, gap, lost = NOT_FILLED, getattr(event, "reason", ""), None, Wei(0)
    match event:
        case FillCredited():
            ended, gap = FILLED, gap_ppm(event, fill)
        case DelayedReverted():
            ended, lost = REVERTED, event.gas_wei
        case OrderSkipped():
            ended = SKIPPED
        case OrderRefused():
            ended = REFUSED
    return OrderGap(event.run_id, event.order_id, ledger, fill.side, fill.token, ended, reason, gap, lost)


def unmeasured(orders: Iterable[OrderGap]) -> dict[str, int]:
    """Count, by what became of them, the orders of one ledger that say nothing of delay or impact, though headline filled them.

    What they would have changed is in the ledger's gap all the same: it holds less, or more, than headline."""
    said = [NOT_MEASURED.get(each.reason, "") if each.ended == NOT_FILLED else each.ended if each.ended in (SKIPPED, REFUSED) else "" for each in orders]
    return dict(Counter(words for words in said if words).most_common())


def gap_ppm(fill: FillCredited, headline: FillCredited) -> int:
    """What arrived for one unit given against the same on headline, cut towards zero: less than a millionth is no gap, for sizes round too."""
    arrived, given = int(fill.arrival_raw), int(fill.spent_raw)
    there, given_there = int(headline.arrival_raw), int(headline.spent_raw)
    more = arrived * given_there - there * given
    gap = mul_div_floor(PPM, abs(more), there * given) if there * given else 0
    return gap if more > 0 else -gap
