"""The book: what a run holds on each ledger, as a fold over its events.

A book counts storage units. For almost every token these are the token's base units; a token that keeps shares
(rebasing, reflecting) is held in shares, because its amount changes by itself, and its asset is named `address/shares`.
Source: design §6; 001 §2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from chain.words import Word, merged
from ledgers.errors import CorruptJournal
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry, Ledger, Posting
from referee.onchain.events import LEDGERS, FillCredited, RunOpened, WindowLiquidated, WordKept
from referee.onchain.further_events import DelayedReverted
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.position import Position, RunPositions

SHARES = "/shares"
UNTOLD = "words_untold"
"""Why a sale cannot be proven where what the wallet's transactions wrote is not known."""
BUY_UNPROVEN = "BUY_UNPROVEN"
EXIT_UNPROVEN = "EXIT_UNPROVEN"


@dataclass(frozen=True, slots=True)
class Holding:
    """A token held."""

    token: str
    units_raw: TokenRaw
    """Base units, or storage units when the token keeps shares."""
    shares: bool
    cause: str
    """Why its exit cannot be proven though its words are told, else empty."""

    def less(self, units_raw: int) -> Holding:
        """The holding after some of it is gone, at least nothing."""
        return replace(self, units_raw=TokenRaw(max(int(self.units_raw) - units_raw, 0)))


@dataclass(frozen=True, slots=True)
class Book:
    """What one ledger holds of one run."""

    ledger: str
    eth_wei: Wei
    holdings: tuple[Holding, ...]
    """Sorted by address; zeroes left out."""
    approvals: frozenset[str]
    """Approvals already paid for, `token>spender`."""
    positions: tuple[Position, ...] = ()
    """Open liquidity positions, in the order they were opened."""
    words: tuple[Word, ...] = ()
    """Every word that the wallet's transactions left otherwise than the chain has it (ONC-29)."""
    told: frozenset[str] = frozenset()
    """Tokens whose trades are all in those words."""
    lost: frozenset[str] = frozenset()
    """Tokens of which some trade is not."""

    def unproven(self, token: str) -> str:
        """Why a sale of a token held cannot be proven; empty where its words are carried."""
        holding = self.held(token)
        return "" if holding is None else holding.cause or ("" if token in self.told else UNTOLD)

    def held(self, token: str) -> Holding | None:
        """Find a holding; None when the token is not held."""
        return next((holding for holding in self.holdings if holding.token == token), None)

    def position(self, position_id: str) -> Position | None:
        """Find an open position."""
        return next((position for position in self.positions if position.id == position_id), None)

    def exits(self, *more: str) -> int:
        """Count the exits that the book may need gas for: of every token held or in a position, of those named, and of every position."""
        pooled = {asset for position in self.positions for asset in position.assets if asset != ETH}
        return len({holding.token for holding in self.holdings} | pooled | set(more)) + len(self.positions)


@dataclass(slots=True)
class RunBooks:
    """All ledgers of one run: those that its stake was booked on."""

    names: tuple[str, ...] = LEDGERS
    ledgers: dict[str, Ledger] = field(init=False)
    approvals: dict[str, set[str]] = field(init=False)
    causes: dict[str, dict[str, str]] = field(init=False)
    words: dict[str, tuple[Word, ...]] = field(init=False)
    """Words that the wallet carries, by ledger."""
    told: dict[str, dict[str, bool]] = field(init=False)
    """By ledger and token whether all its trades were told in words; one that was not is never made up for."""
    positions: RunPositions = field(default_factory=RunPositions)

    def __post_init__(self) -> None:
        self.ledgers = {name: Ledger(name) for name in self.names}
        self.approvals = {name: set() for name in self.names}
        self.causes = {name: {} for name in self.names}
        self.words = {name: () for name in self.names}
        self.told = {name: {} for name in self.names}

    def apply(self, event: Event) -> None:
        """Fold one event of this run in. Raises: CorruptJournal when an entry does not hold."""
        if isinstance(event, (LiquidityOpened, LiquidityClosed)) and set(event.ledgers) != set(event.entry.ledgers):
            raise CorruptJournal(f"position {event.position} names ledgers {event.ledgers}, its entry {event.entry.ledgers}")
        if isinstance(event, (RunOpened, FillCredited, WindowLiquidated, DelayedReverted, LiquidityOpened, LiquidityClosed)):
            self._post(event.entry)
        self.positions.apply(event)
        if isinstance(event, (DelayedReverted, LiquidityOpened)):
            for name in event.ledgers:
                self.approvals[name].update(event.approvals)
        if isinstance(event, (DelayedReverted, LiquidityOpened, LiquidityClosed)):
            self._carry(event.ledgers, event.kept, _assets_of(event))
        if isinstance(event, FillCredited):
            self._note(event)

    def _post(self, entry: Entry) -> None:
        for ledger in self.ledgers.values():
            ledger.post(entry)

    def _note(self, fill: FillCredited) -> None:
        if set(fill.ledgers) != set(fill.entry.ledgers):
            raise CorruptJournal(f"fill {fill.order_id} names ledgers {fill.ledgers}, its entry {fill.entry.ledgers}")
        for name in fill.ledgers:
            self.approvals[name].update(fill.approvals)
            if fill.tag.startswith(BUY_UNPROVEN):
                self.causes[name][fill.token] = fill.tag.partition(":")[2]
            elif not self.of(name).held(fill.token):
                self.causes[name].pop(fill.token, None)
        self._carry(fill.ledgers, fill.kept, (fill.token,))

    def _carry(self, ledgers: tuple[str, ...], kept: tuple[WordKept, ...], tokens: tuple[str, ...]) -> None:
        """Carry what was written from now on; a holding that was traded without its words being told is in none any more."""
        written = tuple(word_of(word) for word in kept if word.before)
        for name in ledgers:
            self.words[name] = merged(self.words[name], written)
            for token in tokens:
                self.told[name][token] = bool(written) and self.told[name].get(token, True)

    def of(self, ledger: str) -> Book:
        """The book of one ledger now."""
        fold = self.ledgers[ledger]
        holdings = tuple(self._holding(ledger, asset, amount) for asset, amount in fold.holdings())
        told, lost = (frozenset(token for token, all_told in self.told[ledger].items() if all_told is wanted) for wanted in (True, False))
        return Book(
            ledger, Wei(int(fold.held(ETH))), holdings, frozenset(self.approvals[ledger]), self.positions.of(ledger), self.words[ledger], told, lost
        )

    def _holding(self, ledger: str, asset: str, units_raw: TokenRaw) -> Holding:
        token, shares = (asset.removesuffix(SHARES), True) if asset.endswith(SHARES) else (asset, False)
        return Holding(token, units_raw, shares, self.causes[ledger].get(token, ""))


@dataclass(slots=True)
class Books:
    """All ledgers of all runs of a window."""

    runs: dict[str, RunBooks] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Fold one event in; events that move nothing are passed over."""
        if isinstance(event, RunOpened):
            self.runs[event.run_id] = RunBooks(event.entry.ledgers)
        if event.run_id in self.runs:
            self.runs[event.run_id].apply(event)

    def of(self, run_id: str, ledger: str) -> Book:
        """The book of one ledger of one run now."""
        return self.runs[run_id].of(ledger)

    def both(self, run_id: str) -> dict[str, Book]:
        """The books of the ledgers of one run that share the boards of orders, now."""
        return {ledger: self.of(run_id, ledger) for ledger in LEDGERS}


def word_of(kept: WordKept) -> Word:
    """A word as it was written down."""
    return Word(kept.contract, kept.slot, int(kept.before, 16), int(kept.value, 16))


def words_kept(words: Iterable[Word]) -> tuple[WordKept, ...]:
    """Words as they are written down."""
    return tuple(
        WordKept(contract=word.contract, slot=word.slot, value=f"0x{word.value:064x}", before=f"0x{word.before:064x}") for word in words
    )


def _assets_of(event: DelayedReverted | LiquidityOpened | LiquidityClosed) -> tuple[str, ...]:
    """Tokens that an event moves."""
    moved = (posting.asset for posting in event.entry.postings if posting.account == BOOK)
    return tuple(asset for asset in moved if asset != ETH and not asset.endswith(SHARES))


def asset_of(token: str, shares: bool) -> str:
    """Name the asset of a token in postings."""
    return token + SHARES if shares else token


def entry_of(ledgers: tuple[str, ...], moves: Mapping[tuple[str, str], int]) -> Entry:
    """Build an entry from what moves on (account, asset); zero moves are left out."""
    postings = tuple(
        Posting(account=account, asset=asset, amount=TokenRaw(amount)) for (account, asset), amount in moves.items() if amount
    )
    return Entry(ledgers=ledgers, postings=postings)


def stake_entry(stake_wei: Wei, further: tuple[str, ...] = ()) -> Entry:
    """Book a run's stake on every ledger it keeps; `further` are those with simulations of their own."""
    return entry_of((*LEDGERS, *further), {(BOOK, ETH): int(stake_wei), ("stake", ETH): -int(stake_wei)})
