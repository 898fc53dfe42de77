"""Postings, entries and ledgers.

A posting moves an amount of one asset into (+) or out of (−) an account. An entry's postings sum to zero per asset and
the entry names the ledgers it belongs to. A ledger is the fold of its entries and holds nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ledgers.errors import CorruptJournal
from ledgers.money import TokenRaw, Wei

ETH = "eth"
"""The asset name of native ether; tokens are named by their lower-case address."""

BOOK = "book"
"""The account that may never go below zero: what the agent holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """An amount of one asset moved on one account."""

    account: str
    """book, stake, market or gas."""
    asset: str
    """`eth`, or a token's lower-case address."""
    amount: TokenRaw
    """Signed base units of the asset; wei when the asset is `eth`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Postings that sum to zero per asset, and the ledgers they are booked in."""

    ledgers: tuple[str, ...]
    postings: tuple[Posting, ...]


def eth_posting(account: str, amount_wei: Wei) -> Posting:
    """Post wei on an account."""
    return Posting(account=account, asset=ETH, amount=TokenRaw(int(amount_wei)))


def token_posting(account: str, token: str, amount_raw: TokenRaw) -> Posting:
    """Post token base units on an account."""
    return Posting(account=account, asset=token, amount=amount_raw)


def imbalance(postings: Iterable[Posting]) -> dict[str, TokenRaw]:
    """Sum postings per asset; empty when they balance."""
    sums: dict[str, TokenRaw] = {}
    for posting in postings:
        sums[posting.asset] = sums.get(posting.asset, TokenRaw(0)) + posting.amount
    return {asset: amount for asset, amount in sums.items() if amount != TokenRaw(0)}


@dataclass(slots=True)
class Ledger:
    """The fold of the entries that name it."""

    name: str
    balances: dict[tuple[str, str], TokenRaw] = field(default_factory=dict)
    """Amount per (account, asset)."""

    def post(self, entry: Entry) -> None:
        """Fold one entry in; entries of other ledgers are passed over.

        Raises: CorruptJournal when the entry does not balance or the book would go below zero."""
        if self.name not in entry.ledgers:
            return
        if off := imbalance(entry.postings):
            raise CorruptJournal(f"entry of {self.name} does not balance: {off}")
        for posting in entry.postings:
            key = (posting.account, posting.asset)
            self.balances[key] = self.balances.get(key, TokenRaw(0)) + posting.amount
        for asset in {posting.asset for posting in entry.postings if posting.account == BOOK}:
            if self.balances[BOOK, asset] < TokenRaw(0):
                raise CorruptJournal(f"{self.name} book holds {self.balances[BOOK, asset]} of {asset}: below zero")

    def held(self, asset: str) -> TokenRaw:
        """Amount of an asset in the book."""
        return self.balances.get((BOOK, asset), TokenRaw(0))

    def holdings(self) -> Iterator[tuple[str, TokenRaw]]:
        """Tokens held and their amounts, sorted by address, zeroes left out."""
        for (account, asset), amount in sorted(self.balances.items()):
            if account == BOOK and asset != ETH and amount > TokenRaw(0):
                yield asset, amount
