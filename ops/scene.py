"""The scene: what a live view shows of a window, as a fold over its events.

It adds to the window's own state only what a watcher wants to see: names of tokens, counts, last words of every run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ledgers.events import Event
from ledgers.money import Wei
from ops.costs import Spent
from ops.lines import BAD, LOUD, QUIET, Line, decision_text, ledgers_text, line_of, plain
from ops.names import TokenName, names_in, network_names
from ops.position_lines import accrued_text
from ops.positions import Positions
from referee.onchain.events import (
    HEADLINE, PERMISSIVE, BundleShown, DecisionMalformed, DecisionTaken, FillCredited, MarkTaken, OrderNotFilled, OrderRefused,
    PassShown, Pin, PlanWritten, RunOpened, RunScored, TickMissed, TurnPlayed, TurnUnavailable, WindowLiquidated, WindowOpened,
)  # fmt: skip
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.state import ANSWERED, WindowState

FEED_LINES_MAX = 200

FILLED, REFUSED, NOT_FILLED, MISSED = "filled", "refused", "not_filled", "missed"

BlobOf = Callable[[str], bytes | None]


@dataclass(slots=True)
class RunScene:
    """What is shown of one run."""

    run_id: str
    decision: str = ""
    """Last decision in words."""
    result: Line | None = None
    """What became of it last."""
    counts: Counter[str] = field(default_factory=Counter)
    """Orders of the headline ledger filled (positions opened and closed too), refused, not filled; ticks missed."""
    values: dict[str, Wei | None] = field(default_factory=dict)
    """Last measured value by ledger."""
    tagged: bool = False
    """True once a headline exit rested on a claim."""
    scored: RunScored | None = None
    spent: Spent = field(default_factory=Spent)
    """What the turn under way has used; a model's only."""
    examined_as: str = ""
    """What the provider called the model during its exam."""
    turn: str = ""
    """How a model's last turn went: outcome, steps, tools, tokens, seconds."""


@dataclass(slots=True)
class Scene:
    """What is shown of a window."""

    window_id: str
    state: WindowState = field(default_factory=WindowState)
    runs: dict[str, RunScene] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    names: dict[str, TokenName] = field(default_factory=dict)
    feed: deque[Line] = field(default_factory=lambda: deque(maxlen=FEED_LINES_MAX))
    pin: Pin | None = None
    """The newest block something was pinned to."""
    marked_ts_ms: int | None = None
    """When a value was last measured."""
    events: int = 0

    def apply(self, event: Event, blob: BlobOf) -> Line | None:
        """Fold one event in and return its line, if it has one."""
        self.events += 1
        self.state.apply(event)
        self.positions.apply(event)
        if isinstance(event, RunOpened):
            self.runs[event.run_id] = RunScene(event.run_id)
        self._observe(event, blob)
        line = self._turn_line(event) or self._accrued_line(event) or line_of(event, self.names)
        if line is not None:
            self.feed.append(line)
        if event.run_id in self.runs:
            _follow(self.runs[event.run_id], event, line, self.names)
        return line

    def _turn_line(self, event: Event) -> Line | None:
        """Tell how a model's turn went; stacks without a model have nothing to tell."""
        run = self.runs.get(event.run_id)
        if run is None or not isinstance(event, TurnPlayed | PlanWritten):
            return None
        run.spent, spent = Spent(), run.spent
        if not spent.counted:
            return None
        what = f"plan turn, frozen as {event.plan_sha256[:16]}…" if isinstance(event, PlanWritten) else f"turn {event.tick}"
        others = [name for name in spent.reported if run.examined_as and name != run.examined_as]
        changed = f", CHANGED since its exam: now calls itself {', '.join(map(plain, others))}" if others else ""
        run.turn = f"{event.outcome}, {spent.text(event.latency_ms)}{changed}"
        return Line(event.ts_ms, event.run_id, f"{what}: {run.turn}", LOUD if event.outcome == ANSWERED else BAD)

    def _accrued_line(self, event: Event) -> Line | None:
        """Tell what a position earned, whenever its pool was traded in or its logs were read again."""
        if not isinstance(event, LiquidityAccrued) or not (event.swaps or event.healed):
            return None
        kept = self.positions.kept.get((event.ledgers[0], event.position))
        return Line(event.ts_ms, event.run_id, f"{ledgers_text(event.ledgers)}{accrued_text(event, kept.opened, self.names)}", QUIET) if kept else None

    def _observe(self, event: Event, blob: BlobOf) -> None:
        if isinstance(event, WindowOpened):
            self.names.update(network_names(event.network))
        elif isinstance(event, BundleShown):
            self.pin = event.pin
            self.names.update(names_in(blob(event.bundle_sha256)))
        elif isinstance(event, MarkTaken) and event.value_wei is not None:
            self.marked_ts_ms = event.ts_ms
            self.pin = event.pin or self.pin


def _follow(run: RunScene, event: Event, line: Line | None, names: dict[str, TokenName]) -> None:
    run.spent.apply(event)
    match event:
        case PassShown():
            run.examined_as = event.model_reported
        case DecisionTaken():
            run.decision, run.result = decision_text(event, names), None
        case DecisionMalformed() | TurnUnavailable():
            run.decision, run.result = "–", line
        case TickMissed():
            run.result, run.counts[MISSED] = line, run.counts[MISSED] + 1
        case FillCredited():
            _count(run, event, FILLED, line)
            run.tagged = run.tagged or (HEADLINE in event.ledgers and bool(event.tag))
        case LiquidityOpened() | LiquidityClosed():
            _count(run, event, FILLED, line)
        case OrderRefused():
            _count(run, event, REFUSED, line)
        case OrderNotFilled():
            _count(run, event, NOT_FILLED, line)
        case MarkTaken() | WindowLiquidated() if event.value_wei is not None:
            run.values.update(dict.fromkeys(event.ledgers, event.value_wei))
        case RunScored():
            run.scored = event


def _count(run: RunScene, event: FillCredited | LiquidityOpened | LiquidityClosed | OrderRefused | OrderNotFilled, outcome: str, line: Line | None) -> None:
    if HEADLINE in event.ledgers:
        run.counts[outcome] += 1
        run.result = line
    elif run.result is None and PERMISSIVE in event.ledgers:
        run.result = line

