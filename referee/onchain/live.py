"""The live window: who plays, behind which doors, and how far it is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chain.evm import LocalEvm
from harnesses.exam_pass import ExamPass
from harnesses.provider import Provider
from harnesses.stack import Stack
from ledgers.clock import Clock
from ledgers.journal import Journal
from referee.onchain.doors import Alarm, Desk, FurtherDesk, Market
from referee.onchain.events import GateTaken, RouteSimulated, WindowLiquidated, WindowOpened
from referee.onchain.rules import Rules
from referee.onchain.stamp import Stamp
from referee.onchain.state import WindowState
from referee.onchain.window import Window

REFEREED_AT_ONCE = 8
"""Decisions under adjudication at the same time; more would only queue at the node."""

MARKED_AT_ONCE = 4
"""Runs valued at the same time, so that marks never crowd out orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One run's place at the table: who plays, and through whom it is asked."""

    run_id: str
    copy: int
    """Which of several equal stacks, from 1."""
    stack: Stack
    provider: Provider
    prompt: str
    """Verbatim; empty for a stack without a model."""
    seed: int
    turn_ms_max: int
    plan_prompt: str = ""
    """Verbatim prompt of the plan turn; empty when none is played (ONC-14)."""
    plan_ms_max: int = 0
    planner: Provider | None = None
    """Through whom the plan is asked for, under the limits of the plan turn; none when by the same."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """The harness's limits, as the stack is told them."""
    exam_pass: ExamPass | None = None
    """What admits a stack with a model (ONC-13)."""


Witnessed = RouteSimulated | GateTaken | WindowLiquidated
"""Events with evidence that a witness is kept of."""
WITNESSES_OWED_MAX = 10_000


@dataclass(slots=True, kw_only=True)
class LiveWindow:
    """A window under way."""

    window: Window
    rules: Rules
    seats: Mapping[str, Seat]
    """By run id, in the order of the window file."""
    journal: Journal
    clock: Clock
    alarm: Alarm
    desk: Desk
    further: FurtherDesk
    """Takes the orders of the further ledgers."""
    market: Market
    code_sha256: str
    """Code tree of this process."""
    secret: str = ""
    """What the addresses of readers and ghosts are derived from; in no event before the seal."""
    state: WindowState = field(default_factory=WindowState)
    """The fold of the journal so far."""
    pausing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by an operator: wake nobody any more."""
    tell: Callable[[str], None] = lambda _: None
    """Told what goes on before there is a journal to watch."""
    busy: set[str] = field(default_factory=set)
    """Runs whose turn is under way."""
    stamp: Stamp = field(init=False)
    faulted_ts_ms: int | None = field(init=False)
    """Since when no lane answers; none while one does."""
    writing: dict[str, asyncio.Lock] = field(init=False)
    """By run: held from reading its books to recording what was made of them, so that no fill slips in between."""
    further_writing: dict[str, asyncio.Lock] = field(init=False)
    """By run: the same for its further ledgers; taken before the other where both are."""
    delaying: dict[str, asyncio.Lock] = field(init=False)
    """By run: held while a decision waits for its delay, so that decisions stay in their order."""
    felt: dict[str, asyncio.Lock] = field(init=False)
    """By run: held while own impact waits for a quiet moment, for the same reason."""
    following: Counter[str] = field(default_factory=Counter)
    """By run: decisions that its further ledgers still follow."""
    adjudicating: int = 0
    """Decisions whose orders are being refereed on the ledgers that share boards."""
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while there are none: own impact is simulated then, so that it never crowds out orders."""
    worthless: set[tuple[str, str]] = field(default_factory=set)
    """Runs and further ledgers whose liquidation cannot be measured at any block."""
    evm: LocalEvm | None = None
    """Runs what was simulated again on proven state; none where no witnesses are kept."""
    witness_one_in: int = 1
    """Of how many orders and liquidations one is witnessed, drawn by its id."""
    witnesses_owed: asyncio.Queue[Witnessed] = field(default_factory=lambda: asyncio.Queue(WITNESSES_OWED_MAX))
    """What was recorded and has no witness yet."""
    refereeing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REFEREED_AT_ONCE))
    marking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MARKED_AT_ONCE))

    def __post_init__(self) -> None:
        self.writing = {run_id: asyncio.Lock() for run_id in self.seats}
        self.further_writing = {run_id: asyncio.Lock() for run_id in self.seats}
        self.felt = {run_id: asyncio.Lock() for run_id in self.seats}
        self.quiet.set()
        self.delaying = {run_id: asyncio.Lock() for run_id in self.seats}
        self.stamp = Stamp(self.window_id, self.state.ts_ms, self.state.ts_ms)
        self.faulted_ts_ms = self.state.faulted and self.state.faulted.ts_ms

    @property
    def window_id(self) -> str:
        """The window's id, as a person types it."""
        return self.journal.window_id

    def plan_of(self, run_id: str) -> str | None:
        """The plan that a run froze, if it wrote one."""
        written = self.state.runs[run_id].plan
        text = self.journal.blob(written.plan_sha256) if written else None
        return text.decode() if text else None

    @property
    def opened(self) -> WindowOpened:
        """The opening of this window."""
        assert self.state.opened is not None, f"{self.window_id} has not been opened"
        return self.state.opened
