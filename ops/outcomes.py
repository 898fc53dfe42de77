"""The outcomes of orders in a report: what became of them, why, and by which rule, on every ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ledgers.events import Event
from ledgers.report import Basis, Column, Table
from ops.further_gaps import NAMES
from referee.onchain.events import HEADLINE, PERMISSIVE, FillCredited, OrderNotFilled, OrderRefused
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.rulebook import RULE_ROWS

OUTCOMES = ("filled", "opened", "closed", "refused", "not filled", "reverted", "skipped")
FILLED, OPENED, CLOSED, REFUSED, NOT_FILLED, REVERTED, SKIPPED = OUTCOMES
"""In reading order; opened and closed are liquidity positions."""

DONE = (FILLED, OPENED, CLOSED)
"""Those that did what the order asked for."""

OUTCOME_COLUMNS = (
    Column("outcome", "outcome"),
    Column("reason", "reason"),
    Column("rule", "rule"),
    Column("headline_orders", "on headline"),
    Column("permissive_orders", "on permissive"),
)
NOT_FILLED_RULES = {"no_route": "ONC-05", "reverted": "ONC-10", "unprovable_no_quote": "ONC-11", "impact_unrepeatable": "ONC-23"}
"""The rule behind an order that did not fill though nothing refused it; none when the outside world failed."""

Outcome = tuple[str, str, str]
"""Outcome, reason, rule."""


def outcome_of(event: Event) -> Outcome | None:
    """Name how an event ended an order; none for events that end no order."""
    match event:
        case FillCredited():
            return FILLED, event.tag, "ONC-11" if event.tag else "ONC-10"
        case LiquidityOpened():
            return OPENED, "", "ONC-21"
        case LiquidityClosed():
            return CLOSED, "", "ONC-21"
        case OrderRefused():
            return REFUSED, event.reason, event.rule
        case OrderNotFilled():
            return NOT_FILLED, event.reason, NOT_FILLED_RULES.get(event.reason, "")
        case OrderSkipped():
            return SKIPPED, event.reason, ""
        case DelayedReverted():
            return REVERTED, event.reason, "ONC-22"
    return None


def outcomes_table(outcomes: Mapping[Outcome, Counter[str]], further_ledgers: Sequence[str], basis: Basis) -> Table:
    """Count orders by outcome, reason and rule; `outcomes` counts them by ledger."""
    known = {row.id for row in RULE_ROWS}
    rows = sorted(outcomes.items(), key=lambda item: (OUTCOMES.index(item[0][0]), item[0]))
    return Table(
        name="outcomes",
        title="What became of orders",
        basis=basis,
        columns=(*OUTCOME_COLUMNS, *(Column(f"{ledger}_orders", f"on {NAMES[ledger]}") for ledger in further_ledgers)),
        rows=tuple(
            (outcome, reason or None, rule if rule in known else None, *(by[ledger] for ledger in (HEADLINE, PERMISSIVE, *further_ledgers)))
            for (outcome, reason, rule), by in rows
        ),
        note="one order counts once on each ledger; `referee show RUN --order N` tells why",
    )
