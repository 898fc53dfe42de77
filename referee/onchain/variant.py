"""The variant: one order as the ledgers that share its size and its history within the decision would trade it.

Source: design §6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chain.trade import Held, Purse
from ledgers.money import mul_div_ceil
from referee.onchain.book import Book
from referee.onchain.events import OrderAsked


@dataclass(frozen=True, slots=True)
class Variant:
    """The ledgers of an order that share its size, holdings and history within the decision."""

    ledgers: tuple[str, ...]
    book: Book
    """The running book of the first of them; the others hold the same of this token."""
    asked: OrderAsked
    size_raw: int
    """Wei to spend or token units to sell."""
    purse: Purse
    held: Held
    cause: str
    """Why a sale cannot be proven, else empty."""
    claimed_raw: int = 0
    """Token units that earlier orders of the decision sold on a claim, which no simulation carries."""

    @property
    def shared(self) -> tuple[Any, ...]:
        """What ledgers must have in common to share one board."""
        return self.size_raw, self.purse.writes, self.purse.prefix, self.held, self.cause, self.claimed_raw

    @property
    def shares(self) -> bool:
        """Whether the book counts shares, as it did in windows of earlier rules: nobody knows any more what these come to."""
        holding = self.book.held(self.asked.token)
        return holding is not None and holding.shares

    @property
    def size_units_raw(self) -> int:
        """What the book counts for the size of a sale: its part of all that it counts, rounded up."""
        if self.asked.side == "buy" or not self.held.amount_raw:
            return self.size_raw
        return mul_div_ceil(self.held.units_raw, min(self.size_raw, self.held.amount_raw), self.held.amount_raw)
