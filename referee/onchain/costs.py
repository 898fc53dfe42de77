"""Costs: what the holdings of a run's headline ledger cost, and what its sales brought beyond that; a fold over its fills.

Gas is part of what a buy costs and of what a sale brings. A sale of a part takes the same part of the cost, rounded down.
What a position holds keeps its cost: closing gives it back to the tokens that return, less the ETH that does; more ETH than it cost is realised.
Units: wei; token units as the book counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgers.money import mul_div_floor
from ledgers.postings import BOOK, ETH
from referee.onchain.events import FillCredited
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened


@dataclass(slots=True)
class Costs:
    """Costs so far."""

    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Units held and what they cost, by token."""
    realised_wei: int = 0
    """What sales brought beyond what was sold had cost; below 0 for a loss."""
    pooled: dict[str, int] = field(default_factory=dict)
    """What went into open positions, by position."""

    def apply(self, fill: FillCredited | LiquidityOpened | LiquidityClosed) -> None:
        """Fold one fill in, or a position opened or closed."""
        moved = [(posting.asset, int(posting.amount)) for posting in fill.entry.postings if posting.account == BOOK]
        eth_wei = sum(amount for asset, amount in moved if asset == ETH)
        if isinstance(fill, LiquidityOpened):
            self.pooled[fill.position] = -eth_wei + sum(self._take(asset, -amount) for asset, amount in moved if asset != ETH)
            return
        if isinstance(fill, LiquidityClosed):
            self._close(self.pooled.pop(fill.position, 0) - eth_wei, [(asset, amount) for asset, amount in moved if asset != ETH])
            return
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

    def _take(self, token: str, units: int) -> int:
        """Take units out of what is held with their part of its cost."""
        held, cost_wei = self.held.get(token, (0, 0))
        part_wei = mul_div_floor(cost_wei, min(units, held), held) if held else 0
        self.held[token] = held - units, cost_wei - part_wei
        if held <= units:
            self.held.pop(token)
        return part_wei

    def _close(self, left_wei: int, returned: list[tuple[str, int]]) -> None:
        """Give a position's cost back to the tokens that return, evenly; what is over, or what none return for, is realised."""
        if left_wei < 0 or not returned:
            self.realised_wei, left_wei = self.realised_wei - left_wei, 0
        for place, (token, units) in enumerate(returned):
            held, cost_wei = self.held.get(token, (0, 0))
            self.held[token] = held + units, cost_wei + (left_wei + place) // len(returned)

    def of(self, token: str) -> int | None:
        """What the units held of a token cost; None when none were bought."""
        return self.held[token][1] if token in self.held else None
