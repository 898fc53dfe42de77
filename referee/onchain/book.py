"""The book: what a run holds on each ledger, as a fold over its events.

A book counts storage units. For almost every token these are the token's base units; a token that keeps shares
(rebasing, reflecting) is held in shares, because its amount changes by itself, and its asset is named `address/shares`.
Source: design §6; 001 §2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from chain.simulate import SlotWrite
from ledgers.errors import CorruptJournal
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry, Ledger, Posting
from referee.onchain.events import HEADLINE, LEDGERS, FillCredited, RunOpened, WindowLiquidated, WordKept
from referee.onchain.further_events import DelayedReverted
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.position import Position, RunPositions

SHARES = "/shares"
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
    """Why its exit cannot be proven (slot or holder_state), else empty."""

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
    kept: tuple[tuple[str, WordKept], ...] = ()
    """Words that buys wrote about the wallet beside its balances, each with the token bought."""

    def writes_kept(self, *traded: str) -> tuple[SlotWrite, ...]:
        """What is said about the wallet in the storage that tokens held or `traded` go by, to be set by override like its balances."""
        met = {holding.token for holding in self.holdings}.union(traded)
        return _writes(word for token, word in self.kept if token in met)

    def writes_kept_of(self, token: str) -> tuple[SlotWrite, ...]:
        """The words that buys of one token wrote."""
        return _writes(word for bought, word in self.kept if bought == token)

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
    kept: dict[str, dict[tuple[str, str, str], WordKept]] = field(init=False)
    """Words about the wallet by ledger, then by token, contract and slot."""
    positions: RunPositions = field(default_factory=RunPositions)

    def __post_init__(self) -> None:
        self.ledgers = {name: Ledger(name) for name in self.names}
        self.approvals = {name: set() for name in self.names}
        self.causes = {name: {} for name in self.names}
        self.kept = {name: {} for name in self.names}

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
            self._keep(name, fill)

    def _keep(self, ledger: str, fill: FillCredited) -> None:
        """Note what a trade wrote: a further ledger's buy what the headline's did, which it follows; what an unproven sale wrote is not known.

        Tokens that share a hook share its words."""
        kept, told = self.kept[ledger], fill.kept
        if fill.tag.startswith(EXIT_UNPROVEN):
            for key in [key for key in kept if key[0] == fill.token]:
                del kept[key]
        if ledger not in LEDGERS and fill.side == "buy":
            told = tuple(word for (token, _, _), word in self.kept[HEADLINE].items() if token == fill.token)
        written = {(word.contract, word.slot): word for word in told}
        kept.update({key: written[key[1:]] for key in kept if key[1:] in written})
        kept.update({(fill.token, *place): word for place, word in written.items()})

    def of(self, ledger: str) -> Book:
        """The book of one ledger now."""
        fold = self.ledgers[ledger]
        holdings = tuple(self._holding(ledger, asset, amount) for asset, amount in fold.holdings())
        kept = tuple((token, word) for (token, _, _), word in self.kept[ledger].items())
        return Book(ledger, Wei(int(fold.held(ETH))), holdings, frozenset(self.approvals[ledger]), self.positions.of(ledger), kept)

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


def words_kept(writes: Iterable[SlotWrite]) -> tuple[WordKept, ...]:
    """Words about the wallet, as they are written down."""
    return tuple(WordKept(contract=write.contract, slot=write.slot, value=f"0x{write.value:064x}", beside=write.beside) for write in writes)


def _writes(words: Iterable[WordKept]) -> tuple[SlotWrite, ...]:
    by_place = {(word.contract, word.slot): word for word in words}
    return tuple(SlotWrite(word.contract, word.slot, int(word.value, 16), word.beside) for word in by_place.values())


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
