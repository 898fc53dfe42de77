"""Costs: what the holdings of a run's headline ledger cost, and what its sales brought beyond that; a fold over its fills.

Gas is part of what a buy costs and of what a sale brings. A sale of a part takes the same part of the cost, rounded down.
Units: wei; token units as the book counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgers.money import mul_div_floor
from ledgers.postings import BOOK, ETH
from referee.onchain.events import FillCredited


@dataclass(slots=True)
class Costs:
    """Costs so far."""

    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Units held and what they cost, by token."""
    realised_wei: int = 0
    """What sales brought beyond what was sold had cost; below 0 for a loss."""

    def apply(self, fill: FillCredited) -> None:
        """Fold one fill in."""
        moved = [(posting.asset, int(posting.amount)) for posting in fill.entry.postings if posting.account == BOOK]
        eth_wei = sum(amount for asset, amount in moved if asset == ETH)
        units = sum(amount for asset, amount in moved if asset != ETH)
        held, cost_wei = self.held.get(fill.token, (0, 0))
        if units >= 0:
            self.held[fill.token] = held + units, cost_wei - eth_wei
            return
        sold_cost_wei = mul_div_floor(cost_wei, min(-units, held), held) if held else 0
        self.realised_wei += eth_wei - sold_cost_wei
        self.held[fill.token] = held + units, cost_wei - sold_cost_wei
        if held + units <= 0:
            del self.held[fill.token]

    def of(self, token: str) -> int | None:
        """What the units held of a token cost; None when none were bought."""
        return self.held[token][1] if token in self.held else None
