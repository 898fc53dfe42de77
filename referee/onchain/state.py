"""The state of a window: one fold over its journal, used alike by the live run, by a resume and by a replay.

Nothing here is decided; it only says what the events so far amount to. Source: design §4, "restart = replay".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ledgers.errors import CorruptJournal
from ledgers.events import Event, decode
from ledgers.journal import Record
from ledgers.money import Wei
from ledgers.postings import BOOK, ETH
from referee.onchain.book import EXIT_UNPROVEN, Books
from referee.onchain.costs import Costs
from referee.onchain.events import (
    HEADLINE, IMPACT, LEDGERS, BoardTaken, DecisionMalformed, DecisionTaken, FillCredited, MarkTaken, NetworkFaulted, NetworkRecovered, OrderAsked,
    OrderNotFilled, OrderRefused, Pin, PlanWritten, ReorgSeen, RunOpened, RunScored, TickMissed, TurnAbandoned, TurnPlayed, TurnUnavailable, WindowLiquidated,
    WindowOpened, WindowPaused, WindowResumed, WindowScored, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped, RouteRemembered, WayTaken
from referee.onchain.kinds import KINDS
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened

ANSWERED = "ANSWERED"
RECENT_KEPT = 16
HISTORY_KEPT = 64
TOLD = (DecisionMalformed, TurnUnavailable, TickMissed)
OrderOutcome = FillCredited | OrderRefused | OrderNotFilled | OrderSkipped | DelayedReverted | LiquidityOpened | LiquidityClosed


@dataclass(frozen=True, slots=True)
class Fill:
    """A credited order, where it was credited and on which block it stands."""

    order_id: str
    ledgers: tuple[str, ...]
    block: int
    block_hash: str


@dataclass(frozen=True, slots=True)
class Trade:
    """A fill of the own-impact ledger, as far as it takes to run it again."""

    order_id: str
    side: str
    token: str
    amount_raw: int
    """Wei sent (buy) or token units sent (sell)."""
    units_raw: int
    """Storage units that came or went."""
    route: str
    """The route's label."""
    block_ts_s: int
    """Time of the block it stood on."""
    ways: tuple[WayTaken, ...] = ()
    """How it went through pools."""


@dataclass(slots=True)
class RunState:
    """How far one run is."""

    opened: RunOpened
    plan: PlanWritten | None = None
    """How its plan turn ended, if one was played."""
    ticks: set[int] = field(default_factory=set)
    """Ticks that were woken for or missed."""
    asking: int | None = None
    """Tick of the turn that has not ended, else none."""
    turns_total: int = 0
    turns_answered: int = 0
    last_tick: int = -1
    """The last tick that was woken for."""
    asked: dict[str, OrderAsked] = field(default_factory=dict)
    """Orders of the last decision, and of earlier ones as long as a further ledger owes them an outcome, by order id."""
    owed: dict[str, set[str]] = field(default_factory=dict)
    """Ledgers on which such an order has no outcome yet."""
    pins: dict[tuple[str, str], Pin] = field(default_factory=dict)
    """Pin of the boards of these orders, by order id and ledger."""
    fills: list[Fill] = field(default_factory=list)
    trades: list[Trade] = field(default_factory=list)
    """What the own-impact ledger runs again, oldest first."""
    tagged_exit_wei: Wei = Wei(0)
    """ETH that headline exits tagged unproven brought, net of gas."""
    marks: dict[str, MarkTaken] = field(default_factory=dict)
    """Last measured mark of each ledger."""
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=RECENT_KEPT))
    """Latest happenings that the run's own book tells, as far as the headline ledger knows them."""
    history: deque[Event] = field(default_factory=lambda: deque(maxlen=HISTORY_KEPT))
    """Latest outcomes of orders and marks of the headline ledger, which the run may ask for."""
    costs: Costs = field(default_factory=Costs)
    """Of the headline ledger."""
    liquidated: dict[str, WindowLiquidated] = field(default_factory=dict)
    scored: RunScored | None = None

    @property
    def ledgers(self) -> tuple[str, ...]:
        """Every ledger the run keeps: those its stake was booked on."""
        return self.opened.entry.ledgers

    @property
    def further(self) -> tuple[str, ...]:
        """Those of them that have simulations of their own."""
        return tuple(ledger for ledger in self.ledgers if ledger not in LEDGERS)

    @property
    def headline_fills(self) -> tuple[Fill, ...]:
        """Fills of the ledger that is scored."""
        return tuple(fill for fill in self.fills if HEADLINE in fill.ledgers)

    def apply(self, event: Event) -> None:
        """Fold one event of this run in. Raises: CorruptJournal when it cannot follow what was there."""
        self._tell(event)
        match event:
            case PlanWritten():
                self.plan = event
            case Woken():
                self._tick(event.tick)
                self.asking, self.last_tick, self.turns_total = event.tick, event.tick, self.turns_total + 1
            case TickMissed():
                self._tick(event.tick)
            case TurnPlayed():
                self.asking, self.turns_answered = None, self.turns_answered + (event.outcome == ANSWERED)
            case TurnAbandoned():
                self.asking = None
            case DecisionTaken():
                self._owe(event)
            case BoardTaken() | FurtherBoardTaken():
                self.pins.update({(event.order_id, ledger): event.pin for ledger in event.ledgers})
            case FillCredited():
                self._settle(event)
                self._fill(event)
            case LiquidityOpened() | LiquidityClosed():
                self._settle(event)
                self._pool(event)
            case RouteRemembered():
                self._remember(event)
            case OrderRefused() | OrderNotFilled() | OrderSkipped() | DelayedReverted():
                self._settle(event)
            case MarkTaken() if event.value_wei is not None:
                self.marks.update({ledger: event for ledger in event.ledgers})
            case WindowLiquidated():
                self.liquidated.update({ledger: event for ledger in event.ledgers})
            case RunScored():
                self.scored = event

    def _tell(self, event: Event) -> None:
        if isinstance(event, TOLD) or (isinstance(event, OrderOutcome) and HEADLINE in event.ledgers):
            self.recent.append(event)
        if isinstance(event, OrderOutcome | MarkTaken) and HEADLINE in event.ledgers:
            self.history.append(event)

    def _tick(self, tick: int) -> None:
        if tick in self.ticks:
            raise CorruptJournal(f"{self.opened.run_id} has tick {tick} twice")
        self.ticks.add(tick)

    def _owe(self, decision: DecisionTaken) -> None:
        ids = [order_id_of(decision.run_id, decision.tick, asked.index) for asked in decision.orders]
        late = {order_id: owed for order_id, left in self.owed.items() if (owed := left - set(LEDGERS))}
        self.asked = {order_id: self.asked[order_id] for order_id in late} | dict(zip(ids, decision.orders, strict=True))
        self.owed = late | {order_id: set(self.ledgers) for order_id in ids}
        self.pins = {key: pin for key, pin in self.pins.items() if key[0] in late}

    def _settle(self, outcome: OrderOutcome) -> None:
        owed = self.owed.get(outcome.order_id, set())
        if not set(outcome.ledgers) <= owed:
            raise CorruptJournal(f"order {outcome.order_id} has an outcome on {outcome.ledgers}, but owes one on {sorted(owed)}")
        owed -= set(outcome.ledgers)
        if not owed:
            del self.owed[outcome.order_id]

    def _remember(self, event: RouteRemembered) -> None:
        if not self.trades or self.trades[-1].order_id != event.order_id:
            raise CorruptJournal(f"the route of {event.order_id} is remembered, but it was not the last fill")
        self.trades[-1] = replace(self.trades[-1], amount_raw=sum(int(way.amount_raw) for way in event.ways), ways=event.ways)

    def _pool(self, event: LiquidityOpened | LiquidityClosed) -> None:
        """A position opened or closed stands on its block like any fill."""
        self.fills.append(Fill(event.order_id, event.ledgers, event.pin.block, event.pin.block_hash))
        if HEADLINE in event.ledgers:
            self.costs.apply(event)

    def _fill(self, fill: FillCredited) -> None:
        pins = {self.pins.get((fill.order_id, ledger)) for ledger in fill.ledgers}
        for pin in pins:
            if pin is None:
                raise CorruptJournal(f"order {fill.order_id} was filled without a board")
        pin = next(iter(pins))
        assert pin is not None
        self.fills.append(Fill(fill.order_id, fill.ledgers, pin.block, pin.block_hash))
        if IMPACT in fill.ledgers:
            self.trades.append(traded(fill, pin))
        if HEADLINE in fill.ledgers:
            self.costs.apply(fill)
        if HEADLINE in fill.ledgers and fill.tag.startswith(EXIT_UNPROVEN):
            self.tagged_exit_wei = self.tagged_exit_wei + booked_eth_wei(fill)


@dataclass(slots=True)
class WindowState:
    """How far a window is."""

    opened: WindowOpened | None = None
    runs: dict[str, RunState] = field(default_factory=dict)
    """In the order the runs were opened."""
    books: Books = field(default_factory=Books)
    ts_ms: int = 0
    """Time of the last event."""
    head_block: int = 0
    """Newest block that anything was pinned to or knew of."""
    paused: bool = False
    resumed_ts_ms: int | None = None
    """When a process last took the window up again."""
    code_sha256: str = ""
    """Code tree of the process that opened it, or last took it up: the one an operator has accepted."""
    faulted: NetworkFaulted | None = None
    """The network fault that has not ended, else none."""
    lost: set[str] = field(default_factory=set)
    """Hashes of blocks that were pinned to and are gone."""
    scored: WindowScored | None = None
    sealed: WindowSealed | None = None

    def apply(self, event: Event) -> None:
        """Fold one event in. Raises: CorruptJournal when it cannot follow what was there."""
        self.ts_ms = event.ts_ms
        if (pin := getattr(event, "pin", None)) is not None:
            self.head_block = max(self.head_block, pin.head_block)
        match event:
            case WindowOpened():
                self.opened, self.code_sha256 = event, event.code_sha256
            case RunOpened():
                self.runs[event.run_id] = RunState(event)
            case WindowPaused():
                self.paused = True
            case WindowResumed():
                self.paused, self.resumed_ts_ms, self.code_sha256 = False, event.ts_ms, event.code_sha256
            case NetworkFaulted():
                self.faulted = event
            case NetworkRecovered():
                self.faulted = None
            case ReorgSeen():
                self.lost.add(event.lost_hash)
            case WindowScored():
                self.scored = event
            case WindowSealed():
                self.sealed = event
            case _ if event.run_id in self.runs:
                self.runs[event.run_id].apply(event)
        self.books.apply(event)

    @property
    def closed_late(self) -> bool:
        """True when the window was taken up again only after its close."""
        return self.resumed_ts_ms is not None and self.opened is not None and self.resumed_ts_ms >= self.opened.close_ts_ms


def order_id_of(run_id: str, tick: int, index: int) -> str:
    """Name an order: unique in every store."""
    return f"{run_id}/{tick}/{index}"


def assert_settled(order_id: str, events: Iterable[Event]) -> None:
    """Assert that an order's events give it exactly one outcome on every ledger."""
    outcomes = [event for event in events if isinstance(event, OrderOutcome)]
    ledgers = [ledger for outcome in outcomes for ledger in outcome.ledgers]
    assert sorted(ledgers) == sorted(LEDGERS), f"order {order_id} has outcomes on {ledgers}, expected one on each of {LEDGERS}"
    assert all(outcome.order_id == order_id for outcome in outcomes), f"expected outcomes of {order_id}, found {outcomes}"


def traded(fill: FillCredited, pin: Pin) -> Trade:
    """What it takes to run a fill again."""
    units = next((abs(int(posting.amount)) for posting in fill.entry.postings if posting.account == BOOK and posting.asset != ETH), 0)
    return Trade(fill.order_id, fill.side, fill.token, int(fill.spent_raw), units, fill.route, pin.block_ts_s)


def booked_eth_wei(fill: FillCredited) -> Wei:
    """ETH that a fill moved into the book; negative when it moved out."""
    return Wei(sum(int(posting.amount) for posting in fill.entry.postings if (posting.account, posting.asset) == (BOOK, ETH)))


def decoded(record: Record) -> Event:
    """Decode one record of an on-chain window. Raises: CorruptJournal naming the seq."""
    try:
        return decode(record.kind, record.body, KINDS)
    except CorruptJournal as error:
        raise CorruptJournal(f"record {record.seq}: {error}", record.seq) from error


def folded(records: Iterable[Record]) -> WindowState:
    """Fold a journal from its first record. Raises: CorruptJournal naming the first seq that cannot be."""
    state = WindowState()
    for record in records:
        try:
            state.apply(decoded(record))
        except CorruptJournal as error:
            raise CorruptJournal(str(error), error.seq or record.seq) from error
    return state
