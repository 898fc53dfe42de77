"""One turn's story: what a stack was shown, how it went step by step, and what it decided.

While a window is open only hashes of plans are told; their texts come after its seal (ONC-26).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ledgers.events import Event, encode, kind_of
from ledgers.journal import Journal
from ledgers.layout import TEXT_WIDTH_ANY, labelled
from ledgers.plain_text import plain_text
from ops.costs import Spent, cost_text, price_text, usages_cost, used_text
from ops.lines import asked_text, counted, line_of, plain
from ops.names import TokenName, names_in, network_names
from ops.reading import WrongUse
from referee.onchain.events import (
    BundleShown, DecisionMalformed, DecisionTaken, FillCredited, OrderNotFilled, OrderRefused, PassShown, PlanWritten, RunOpened,
    StepCounted, StepTaken, TickMissed, ToolCalled, TurnAbandoned, TurnPlayed, TurnUnavailable, WindowOpened, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.planning import PLAN_TICK
from referee.onchain.state import decoded, order_id_of

ANSWER_CHARS_MAX = 1_200
TOOL_CHARS_MAX = 300
HASH_SHOWN = 16
LABEL_CHARS = 10


@dataclass(slots=True)
class TurnStory:
    """One turn of one run."""

    run_id: str
    tick: int
    """−1 for the plan turn."""
    opened: WindowOpened
    run: RunOpened | None = None
    shown_pass: PassShown | None = None
    plan: PlanWritten | None = None
    sealed: bool = False
    events: list[Event] = field(default_factory=list)
    """Of this turn, in order."""
    names: dict[str, TokenName] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    ran_on: str = ""
    """The model, as its pass names it; empty for a stack without one."""


def read_turn(journal: Journal, run_id: str, tick: int) -> TurnStory:
    """Collect one turn. Raises: WrongUse when the run has no such turn, CorruptJournal."""
    story: TurnStory | None = None
    for record in journal.read():
        event = decoded(record)
        if isinstance(event, WindowOpened):
            story = TurnStory(run_id, tick, event)
        elif story is not None:
            _take(story, event, journal)
    if story is None or story.run is None:
        raise WrongUse(f"no run named {run_id[:80]!r}; `referee runs` lists them")
    if not story.events:
        turn = "plan turn" if tick == PLAN_TICK else f"turn {tick}"
        raise WrongUse(f"{run_id} has no {turn}; its window has {counted(story.opened.ticks, 'turn')}, counted from 0")
    return story


def _take(story: TurnStory, event: Event, journal: Journal) -> None:
    if isinstance(event, WindowSealed):
        story.sealed = True
    if event.run_id != story.run_id:
        return
    match event:
        case RunOpened():
            story.run = event
        case PassShown():
            story.shown_pass, story.ran_on = event, event.model
        case PlanWritten():
            story.plan = event
    if _is_of_turn(event, story):
        story.events.append(event)
        story.spent.apply(event)
        if isinstance(event, BundleShown | PlanWritten):
            story.names.update(network_names(story.opened.network))
            story.names.update(names_in(journal.blob(event.bundle_sha256)))


def _is_of_turn(event: Event, story: TurnStory) -> bool:
    if isinstance(event, PlanWritten):
        return story.tick == PLAN_TICK
    order_id = getattr(event, "order_id", None)
    if order_id is not None:
        return isinstance(event, FillCredited | LiquidityOpened | LiquidityClosed | OrderRefused | OrderNotFilled) and order_id.startswith(f"{order_id_of(story.run_id, story.tick, 0)[:-1]}")
    turned = Woken | TickMissed | BundleShown | StepTaken | StepCounted | ToolCalled | TurnPlayed | DecisionTaken | DecisionMalformed | TurnUnavailable | TurnAbandoned
    return isinstance(event, turned) and event.tick == story.tick


# --- telling ----------------------------------------------------------------------------------------------------------


def turn_text(story: TurnStory, journal: Journal, width: int = TEXT_WIDTH_ANY) -> str:
    """Tell one turn."""
    what = "plan turn" if story.tick == PLAN_TICK else f"turn {story.tick} of {story.opened.ticks}"
    head = f"{story.run_id} · {what} · {story.opened.label}"
    lines, last = [head, "═" * len(head)], ""
    for label, text in _chapters(story, journal):
        lines += labelled("" if label == last else label, text, LABEL_CHARS, width)
        last = label or last
    return "\n".join(lines) + "\n"


def _chapters(story: TurnStory, journal: Journal) -> Iterator[tuple[str, str]]:
    assert story.run is not None
    yield "stack", f"{story.run.stack}, {story.run.stack_sha256[:HASH_SHOWN]}…, with its plan {story.run.run_sha256[:HASH_SHOWN]}…"
    yield from _exam(story)
    if story.plan is not None and story.tick != PLAN_TICK:
        yield "plan", f"{story.plan.plan_sha256[:HASH_SHOWN]}… ({story.plan.outcome}); `referee turn {story.run_id} plan` tells it"
    for event in story.events:
        yield from _chapter(story, event, journal)
    if story.spent.counted:
        yield "cost", f"{cost_text(usages_cost(story.ran_on, story.spent.usages))} ({price_text(story.ran_on)})"


def _exam(story: TurnStory) -> Iterator[tuple[str, str]]:
    shown = story.shown_pass
    if shown is None:
        yield "exam", "exempt: a stack without a model"
        return
    yield "exam", f"passed in sitting {shown.sitting} by {plain(shown.model)}, which then called itself {plain(shown.model_reported) or 'nothing'}"
    if shown.model_reported and (others := [name for name in story.spent.reported if name != shown.model_reported]):
        yield "exam", f"CHANGED: the provider now calls the model {', '.join(map(plain, others))}"


def _chapter(story: TurnStory, event: Event, journal: Journal) -> Iterator[tuple[str, str]]:
    match event:
        case Woken():
            yield "woken", f"{event.lag_ms} ms late, place {event.order_index + 1} in the rotation"
        case BundleShown():
            yield "shown", f"bundle {event.bundle_sha256[:HASH_SHOWN]}… at block {event.pin.block}, own book {event.book_sha256[:HASH_SHOWN]}…"
        case StepTaken():
            yield f"step {event.step}", f"{event.latency_ms / 1_000:.2f} s, request {event.request_sha256[:HASH_SHOWN]}…, answer {event.answer_sha256[:HASH_SHOWN]}…"
        case StepCounted():
            usage = asdict(event.tokens) if event.tokens else None
            waited = f", waited {event.wait_ms / 1_000:.1f} s" if event.wait_ms else ""
            yield "", f"{used_text([usage])}, stopped: {event.stop or 'no answer'}, {plain(event.model_reported) or 'unnamed model'}{waited}"
            yield from (("", f"attempt failed: {plain(tried.reason)} after {tried.latency_ms} ms, then waited {tried.wait_ms} ms") for tried in event.attempts)
        case ToolCalled():
            yield "tool", f"{plain(event.name) or '?'} {_blob_text(journal, event.arguments_sha256)}"
            said = "" if event.ok else f"{event.reason}: "
            note = f" ({event.note})" if event.note else ""
            yield "", f"→ {said}{_blob_text(journal, event.answer_sha256)}{note}"
        case TurnPlayed():
            yield "turn", f"{event.outcome}{f': {plain(event.reason)}' if event.reason else ''}; {story.spent.text(event.latency_ms) if story.spent.counted else f'{event.latency_ms} ms'}"
        case PlanWritten():
            yield "turn", f"{event.outcome}{f': {plain(event.reason)}' if event.reason else ''}; {story.spent.text(event.latency_ms)}"
            yield from _plan_text(story, event, journal)
        case DecisionTaken():
            yield "decision", f"{event.decision_sha256[:HASH_SHOWN]}… ({event.schema}, {counted(len(event.orders), 'order')})"
            yield from (("", asked_text(asked, story.names)) for asked in event.orders)
            yield "said", _blob_text(journal, event.decision_sha256, ANSWER_CHARS_MAX)
        case DecisionMalformed():
            yield "malformed", f"{event.reason}: {plain(event.detail)}"
            yield "said", _blob_text(journal, event.answer_sha256, ANSWER_CHARS_MAX)
        case TickMissed() | TurnUnavailable() | TurnAbandoned() | FillCredited() | LiquidityOpened() | LiquidityClosed() | OrderRefused() | OrderNotFilled():
            if line := line_of(event, story.names):
                yield "then", line.text


def _plan_text(story: TurnStory, written: PlanWritten, journal: Journal) -> Iterator[tuple[str, str]]:
    yield "plan", f"{written.plan_sha256[:HASH_SHOWN]}…, frozen; prompt {written.prompt_sha256[:HASH_SHOWN]}…"
    if not story.sealed:
        yield "", "its text is told once the window is sealed (ONC-26)"
        return
    text = (journal.blob(written.plan_sha256) or b"").decode("utf-8", "replace")
    yield from (("", plain_text(line, ANSWER_CHARS_MAX)) for line in text.splitlines())


def _blob_text(journal: Journal, sha256: str, chars_max: int = TOOL_CHARS_MAX) -> str:
    data = journal.blob(sha256)
    return f"{sha256[:HASH_SHOWN]}… was not kept" if data is None else plain_text(data.decode("utf-8", "replace"), chars_max)


def turn_data(story: TurnStory) -> dict[str, Any]:
    """The turn as a JSON object."""
    cost = usages_cost(story.ran_on, story.spent.usages) if story.spent.counted else None
    return {
        "run_id": story.run_id,
        "tick": story.tick,
        "label": story.opened.label,
        "exam": asdict(story.shown_pass) if story.shown_pass else "exempt",
        "steps": story.spent.steps,
        "tools": story.spent.tools,
        "usages": story.spent.usages,
        "model_reported": story.spent.reported,
        "waited_ms": story.spent.waited_ms,
        "cost_micro_usd": None if cost is None else str(cost),
        "price": price_text(story.ran_on) if story.spent.counted else None,
        "events": [{"kind": kind_of(event), **json.loads(encode(event))} for event in story.events],
    }
