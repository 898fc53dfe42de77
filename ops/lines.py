"""The lines: every event of a window in one sentence for a person.

All outside text is stripped of what a terminal would act on.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.events import Event
from ledgers.money import Wei, decimal_text
from ledgers.plain_text import plain_text
from ledgers.report import eth_text, percent_text
from ops.names import Names, amount_text, token_text
from ops.position_lines import asked_liquidity_text, closed_text, opened_text
from referee.onchain.events import (
    FURTHER_LEDGERS, LEDGERS, ClockJumped, DecisionMalformed, DecisionTaken, FillCredited, LanesCompared, MarkTaken, NetworkFaulted,
    NetworkRecovered, OrderAsked, OrderNotFilled, OrderRefused, PassShown, PlanWritten, ReorgSeen, RunOpened,
    RunScored, TickMissed, TurnAbandoned, TurnUnavailable, WindowLiquidated, WindowOpened, WindowPaused,
    WindowResumed, WindowScored, WindowSealed,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened

GOOD, BAD, QUIET, LOUD = "good", "bad", "quiet", "loud"
"""Moods of a line: filled, refused, routine, about the whole window."""

DETAIL_CHARS_MAX = 160


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence about one event."""

    ts_ms: int
    who: str
    """The run, or the window."""
    text: str
    mood: str


def line_of(event: Event, names: Names) -> Line | None:
    """Say an event in one sentence; None for those that only matter to whoever looks closely."""
    said = _said(event, names)
    if said is None:
        return None
    mood, text = said
    return Line(event.ts_ms, event.run_id, text, QUIET if _is_beside(event) else mood)


def _is_beside(event: Event) -> bool:
    """Whether an event only repeats on further ledgers what headline has already said; a revert is news."""
    ledgers = getattr(event, "ledgers", ())
    return bool(ledgers) and set(ledgers) <= set(FURTHER_LEDGERS) and not isinstance(event, DelayedReverted)


def _said(event: Event, names: Names) -> tuple[str, str] | None:
    return _said_of_window(event) or _said_of_turn(event, names) or _said_of_order(event, names) or _said_of_value(event)


def _said_of_window(event: Event) -> tuple[str, str] | None:
    match event:
        case WindowOpened():
            return LOUD, opening_text(event)
        case RunOpened():
            return QUIET, f"opened for stack {event.stack}, copy {event.copy}"
        case WindowPaused():
            return LOUD, f"paused ({plain(event.reason)}); the window clock goes on"
        case WindowResumed():
            return LOUD, f"resumed after {seconds_text(event.down_ms)} without a process"
        case LanesCompared() if event.differs:
            return BAD, f"lanes {event.lane} and {event.other} differ of one block ({plain(event.differs)}); nothing is filled on {event.lane} any more"
        case NetworkFaulted():
            return BAD, f"no node lane answers ({event.lane}: {plain(event.reason)}); nothing is filled until one does"
        case NetworkRecovered():
            return LOUD, f"node lane {event.lane} answers again after {seconds_text(event.down_ms)}"
        case ReorgSeen():
            return BAD, f"block {event.block} left the chain; fills that stand on it are marked"
        case ClockJumped():
            return BAD, f"the clock jumped by {seconds_text(event.delta_ms)}"
        case WindowScored():
            return LOUD, f"scored {event.scored} of {counted(event.runs, 'run')}"
        case WindowSealed():
            return LOUD, f"sealed after {counted(event.events, 'event')}; the link before the seal is {event.root}"
    return None


def _said_of_turn(event: Event, names: Names) -> tuple[str, str] | None:
    match event:
        case TickMissed():
            return BAD, f"missed tick {event.tick} ({event.reason})"
        case PassShown():
            return QUIET, f"{plain(event.model)} shows its pass of the entrance exam, sitting {event.sitting}"
        case PlanWritten() if event.outcome == "ANSWERED":
            return QUIET, f"froze its plan {event.plan_sha256[:16]}…"
        case PlanWritten():
            return BAD, f"plays without a plan: its plan turn ended {event.outcome}{because(event.reason)}"
        case TurnAbandoned():
            return BAD, f"turn of tick {event.tick} was abandoned: paused, or killed, while it was asked"
        case TurnUnavailable():
            return BAD, unavailable_text(event)
        case DecisionMalformed():
            return BAD, f"answered, but not with a decision: {event.reason}{detail_text(event.reason, event.detail)}"
        case DecisionTaken():
            return QUIET, f"decides {decision_text(event, names)}"
    return None


def _said_of_order(event: Event, names: Names) -> tuple[str, str] | None:
    match event:
        case FillCredited():
            return GOOD, f"{ledgers_text(event.ledgers)}{fill_text(event, names)}"
        case LiquidityOpened():
            return GOOD, f"{ledgers_text(event.ledgers)}{opened_text(event, names)}"
        case LiquidityClosed():
            return GOOD, f"{ledgers_text(event.ledgers)}{closed_text(event, names)}"
        case OrderRefused():
            return BAD, f"{ledgers_text(event.ledgers)}refused {refusal_text(event)}"
        case OrderNotFilled():
            return BAD, f"{ledgers_text(event.ledgers)}not filled: {event.reason}{detail_text(event.reason, event.detail)}"
        case OrderSkipped():
            return QUIET, f"{ledgers_text(event.ledgers)}skipped: {event.reason}{because(event.detail)}"
        case DelayedReverted():
            return BAD, f"{ledgers_text(event.ledgers)}reverted: {reverted_text(event)}"
    return None


def _said_of_value(event: Event) -> tuple[str, str] | None:
    match event:
        case MarkTaken() if event.value_wei is None:
            return BAD, f"{ledgers_text(event.ledgers)}no mark{because(event.fault)}; the last one stands"
        case WindowLiquidated():
            late = ", late: after the close" if event.late else ""
            return LOUD, f"{ledgers_text(event.ledgers)}liquidated at {eth_text(event.value_wei, 8)} ETH{late}{_worthless_text(event)}"
        case RunScored() if event.status == "SCORED":
            return LOUD, f"scores {percent_text(event.headline_ppm)} (permissive {percent_text(event.permissive_ppm)}{further_text(event)})"
        case RunScored():
            return BAD, f"has no score{because(event.reason)}"
    return None


def reverted_text(event: DelayedReverted) -> str:
    """Say why a delayed order reverted, and what that cost."""
    said = ": less would arrive than its bound allows" if event.arrival_raw is not None else detail_text(event.reason, event.detail)
    return f"{event.reason}{said}; gas {eth_text(event.gas_wei, 8)} ETH is paid"


def further_text(event: RunScored) -> str:
    """Say what the further ledgers came to, where they are kept; they are never part of the score."""
    known = {"delayed": event.delayed_ppm, "own impact": event.impact_ppm}
    return "".join(f", {name} {percent_text(ppm)}" for name, ppm in known.items() if ppm is not None)


def refusal_text(event: OrderRefused) -> str:
    """Say why an order was refused."""
    return f"{event.reason} ({event.rule}){detail_text(event.reason, event.detail)}"


def detail_text(reason: str, detail: str) -> str:
    """Append what is known beside a reason, without the reason itself, in words where it is a bare word of ours."""
    rest = detail.removeprefix(reason).lstrip(": ")
    return because(f"{rest}, {GLOSSARY[rest]}" if rest in GLOSSARY else rest)


GLOSSARY = {
    "slot": "where the token keeps balances was not found, so that selling it later cannot be simulated",
    "holder_state": "the token treats holders differently, so that a sale cannot be simulated for this wallet",
    "words_untold": "what an earlier trade of the token wrote is not known, so that a sale cannot be simulated for this wallet",
    "shared_state": "others changed what this wallet wrote, and the ways to read that do not agree on what a sale brings",
    "chance": "what it brings hangs on a block's random word, or on a node that says otherwise than running it here",
    "reverted: 0x90bfb865": "the pool's hook refused it",
    "sale reverted: 0x90bfb865": "the pool's hook refused the sale",
}
"""What bare words of our own mean, for whoever reads them for the first time."""

NO_ANSWER = {
    "OUT_OF_TIME": "no answer within the turn's time limit",
    "OUT_OF_STEPS": "no answer within the turn's steps",
    "OUT_OF_OUTPUT": "no answer within the turn's output limit",
    "UNAVAILABLE": "no answer: who answers for this stack could not be reached or broke",
    "no_bundle": "not asked: the market could not be read",
}


def unavailable_text(event: TurnUnavailable) -> str:
    """Say why a turn brought no answer."""
    outcome, _, detail = event.reason.partition(": ")
    said = NO_ANSWER.get(outcome)
    if said is None:
        return f"no answer{because(event.reason)}"
    return f"{said} ({plain(detail)})" if detail and outcome in ("UNAVAILABLE", "no_bundle") else said


DECIDED = "decided"


def turn_end(event: Event) -> tuple[str, str] | None:
    """Name how a turn ended, as (outcome, reason); none for events that end no turn."""
    match event:
        case DecisionTaken():
            return DECIDED, ""
        case DecisionMalformed():
            return "not a decision", event.reason
        case TurnUnavailable():
            outcome, _, detail = event.reason.partition(": ")
            return f"no answer: {outcome}", "" if outcome.startswith("OUT_OF") else plain(detail)
        case TickMissed():
            return "missed", event.reason
        case TurnAbandoned():
            return "abandoned", "paused or killed while asked"
    return None


def opening_text(event: WindowOpened) -> str:
    """Say how a window opened."""
    price = decimal_text(event.eth_usd_micro_usd, 6, 2)
    length_s, interval_s = (event.close_ts_ms - event.open_ts_ms) // 1_000, event.interval_ms // 1_000
    return (
        f"opened on {event.label}: stake {eth_text(event.stake_wei, 8)} ETH (one ETH is {price} USD), "
        f"{counted(event.ticks, 'tick')}, one every {interval_s} s, for {length_s} s"
    )


def decision_text(event: DecisionTaken, names: Names) -> str:
    """Say what a decision asks for."""
    return "; ".join(asked_text(asked, names) for asked in event.orders) or "nothing"


def asked_text(asked: OrderAsked, names: Names) -> str:
    """Say one order as it was asked for."""
    if asked.pool or asked.position:
        return asked_liquidity_text(asked)
    token = token_text(asked.token, names)
    if asked.spend_wei is not None:
        return f"{asked.side} {eth_text(asked.spend_wei)} ETH of {token}"
    if not asked.sell_all and asked.amount_raw is None:
        return f"{asked.side} {token}" if asked.token else asked.side
    amount = "all" if asked.amount_raw is None else amount_text(asked.amount_raw, asked.token, names)
    return f"{asked.side} {amount} {token}"


def fill_text(event: FillCredited, names: Names) -> str:
    """Say what a fill gave and took."""
    token = token_text(event.token, names)
    if event.side == "buy":
        moved = f"bought {amount_text(event.arrival_raw, event.token, names)} {token} for {eth_text(Wei(int(event.spent_raw)))} ETH"
    else:
        moved = f"sold {amount_text(event.spent_raw, event.token, names)} {token} for {eth_text(Wei(int(event.arrival_raw)))} ETH"
    tag = "" if event.proven and not event.tag else f" [{event.tag or 'unproven'}]"
    return f"{moved} by {plain(event.route)}, gas {eth_text(event.gas_wei, 8)} ETH{tag}"


def ledgers_text(ledgers: tuple[str, ...]) -> str:
    """Name the ledgers in front of a sentence unless it holds for all that share boards."""
    return "" if set(LEDGERS) <= set(ledgers) else f"[{' and '.join(ledgers)}] "


def seconds_text(ms: int) -> str:
    """Write milliseconds as seconds, every digit true."""
    return f"{decimal_text(ms, 3, 1)} s"


def minutes_text(ms: int) -> str:
    """Write a time in the window as minutes and seconds, e.g. `1:59`."""
    hours, rest = divmod(max(ms, 0) // 1_000, 3_600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def because(reason: str) -> str:
    """Append a reason of outside origin, if there is one."""
    return f": {plain(reason)}" if reason else ""


def plain(text: str) -> str:
    """Make outside text fit for a line."""
    return plain_text(text, DETAIL_CHARS_MAX)


def _worthless_text(event: WindowLiquidated) -> str:
    told = (("holding", event.holdings), ("position", event.positions))
    lost = [(noun, sum(int(mark.value_wei) == 0 for mark in marks), len(marks)) for noun, marks in told]
    return "".join(f"; {count} of {counted(of, noun)} counted 0" for noun, count, of in lost if count)
