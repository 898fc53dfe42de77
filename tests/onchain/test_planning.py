"""Passes and plans: who may open a run, and what is frozen before the window clock starts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from harnesses.exam_pass import ExamPass
from harnesses.provider import Answer, LimitSpent, ProviderFault
from ledgers.clock import VirtualClock
from ledgers.identity import sha256_hex
from ledgers.journal import MemoryJournal
from referee.onchain.events import PassShown, PlanWritten, RunOpened, WindowOpened
from referee.onchain.facts import PLAN_HEAD
from referee.onchain.live import LiveWindow, Seat
from referee.onchain.opening import Refused
from referee.onchain.planning import PLAN_CHARS_MAX, PLAN_TICK, plan_reading
from referee.onchain.replay import replay
from referee.onchain.run import open_window, play_window, resume
from tests.onchain.paper import HOLD, T0, PaperChain, Said, a_window, events_of, live_on, to_the_end

PLAN = "Hold. Buy {nothing}.\n"
PLAN_SHA256 = sha256_hex(PLAN.encode())


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(T0)


class Planner:
    """Answers its plan turn after a time, or fails at it, and holds in the window."""

    def __init__(self, clock: VirtualClock, plan: str | Exception = PLAN, after_ms: int = 0) -> None:
        self.clock, self.plan, self.after_ms = clock, plan, after_ms
        self.asked = []

    async def answer(self, question):
        self.asked.append(question)
        if question.tick != PLAN_TICK:
            return Answer(HOLD)
        if self.after_ms:
            await self.clock.sleep_until(self.clock.now_ms() + self.after_ms)
        if isinstance(self.plan, Exception):
            raise self.plan
        return Answer(self.plan)


def a_pass(stack, **changed) -> ExamPass:
    passed = ExamPass(
        sitting="s1", sitting_sha256="5" * 64, ts_ms=T0 - 1, provider=stack.provider, model=stack.model,
        harness_sha256=stack.harness_sha256, tools_sha256=stack.tools_sha256, model_reported="m-2026",
    )  # fmt: skip
    return replace(passed, **changed)


def seated(live: LiveWindow, name: str = "a", **changed) -> LiveWindow:
    """Give a seat a model, a prompt and a pass, as an assembly would."""
    run_id = f"w1-{name}-1"
    seat: Seat = live.seats[run_id]
    stack = replace(seat.stack, model="m")
    given = {"prompt": "Trade.", "plan_prompt": "Plan.", "plan_ms_max": 1_200_000, "exam_pass": a_pass(stack)} | changed
    live.seats[run_id] = replace(seat, stack=stack, **given)
    return live


async def opening(chain: PaperChain, live: LiveWindow) -> None:
    await to_the_end(chain, asyncio.ensure_future(open_window(live)))


# --- passes -------------------------------------------------------------------------------------------------------------


async def test_a_model_without_a_pass_opens_no_run_ONC_13(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock)}), exam_pass=None)
    with pytest.raises(Refused, match="has no pass of the entrance exam"):
        await open_window(live)
    assert live.journal.head()[0] == 0


@pytest.mark.parametrize("part", ["model", "provider", "harness_sha256", "tools_sha256"])
async def test_a_pass_of_another_model_or_harness_opens_no_run_ONC_13(clock, part):
    live = live_on(PaperChain(clock), {"a": Planner(clock)})
    stack = replace(live.seats["w1-a-1"].stack, model="m")
    with pytest.raises(Refused, match="has no pass"):
        await open_window(seated(live, exam_pass=a_pass(stack, **{part: "another"})))


async def test_a_pass_is_recorded_with_what_the_provider_called_the_model_ONC_13(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock)}))
    await opening(chain, live)
    (shown,) = events_of(live.journal, PassShown)
    assert (shown.run_id, shown.sitting, shown.model, shown.model_reported) == ("w1-a-1", "s1", "m", "m-2026")


async def test_a_stack_without_a_model_is_exempt_ONC_13(clock):
    live = live_on(PaperChain(clock), {"a": Said(clock)})
    await open_window(live)
    assert events_of(live.journal, PassShown) == [] and live.state.runs["w1-a-1"].plan is None


# --- plans --------------------------------------------------------------------------------------------------------------


async def test_the_window_clock_starts_after_the_last_plan_ONC_14(clock):
    chain = PaperChain(clock)
    live = live_on(chain, {"a": Planner(clock, after_ms=60_000), "b": Planner(clock, after_ms=900_000)})
    await opening(chain, seated(seated(live), "b"))
    assert live.opened.open_ts_ms == T0 + 900_000
    assert [plan.begun_ts_ms for plan in events_of(live.journal, PlanWritten)] == [T0, T0]


async def test_each_run_has_the_identity_of_its_own_plan_ONC_14(clock):
    chain = PaperChain(clock)
    live = seated(seated(live_on(chain, {"a": Planner(clock), "b": Planner(clock, "Sell.")})), "b")
    await opening(chain, live)
    runs = events_of(live.journal, RunOpened)
    assert [run.run_sha256 for run in runs] == [
        live.seats[run.run_id].stack.run_sha256(sha256_hex(plan.encode())) for run, plan in zip(runs, (PLAN, "Sell."), strict=True)
    ]


async def test_the_frozen_plan_stands_in_every_later_prompt_ONC_14(clock):
    chain, planner = PaperChain(clock), Planner(clock)
    live = seated(live_on(chain, {"a": planner}, a_window(("a",), 30, 10)))
    await opening(chain, live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    assert [question.prompt.count(f"{PLAN_HEAD}\n\n") for question in planner.asked] == [0, 1, 1, 1]
    assert all(question.prompt.endswith(f"\n\n{PLAN}\n") for question in planner.asked[1:])


async def test_a_resumed_window_shows_the_same_plan_ONC_14(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock)}, a_window(("a",), 30, 10)))
    await opening(chain, live)
    planner = Planner(clock)
    again = seated(live_on(chain, {"a": planner}, a_window(("a",), 30, 10), live.journal))
    await resume(again)
    await to_the_end(chain, asyncio.ensure_future(play_window(again)))
    assert planner.asked and all(PLAN in question.prompt for question in planner.asked)


async def test_the_plan_turn_shows_the_market_and_no_book_ONC_14(clock):
    chain, planner = PaperChain(clock), Planner(clock)
    await opening(chain, seated(live_on(chain, {"a": planner})))
    (question,) = planner.asked
    assert (question.book, question.deadline_ms, question.prompt.startswith("Plan.")) == (b"", 1_200_000, True) and question.bundle


async def test_only_the_hash_of_a_plan_is_told_ONC_14(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock)}))
    await opening(chain, live)
    (plan,) = events_of(live.journal, PlanWritten)
    assert plan.plan_sha256 == PLAN_SHA256 and live.journal.blob(PLAN_SHA256) == PLAN.encode()


@pytest.mark.parametrize(("failure", "outcome"), [(LimitSpent("output"), "OUT_OF_OUTPUT"), (LimitSpent("steps"), "OUT_OF_STEPS")])
async def test_a_stack_that_spent_its_limits_plays_without_a_plan(clock, failure, outcome):
    chain, planner = PaperChain(clock), Planner(clock, failure)
    live = seated(live_on(chain, {"a": planner}, a_window(("a",), 10, 10)))
    await opening(chain, live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    (plan,) = events_of(live.journal, PlanWritten)
    assert (plan.outcome, plan.plan_sha256, PLAN_HEAD in planner.asked[-1].prompt) == (outcome, sha256_hex(b""), False)


@pytest.mark.parametrize(("after_ms", "outcome"), [(1_200_000, "ANSWERED"), (1_200_001, "OUT_OF_TIME")])
async def test_a_plan_turn_ends_at_its_limit_to_the_millisecond_ONC_14(clock, after_ms, outcome):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock, after_ms=after_ms)}))
    await opening(chain, live)
    assert [plan.outcome for plan in events_of(live.journal, PlanWritten)] == [outcome]


async def test_a_window_does_not_open_when_a_plan_could_not_be_asked_for(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock, ProviderFault("host is down"))}))
    with pytest.raises(Refused, match="w1-a-1 could not be asked for its plan"):
        await opening(chain, live)
    assert live.journal.head()[0] == 0


async def test_a_replay_holds_a_run_to_its_plan_ONC_14(clock):
    chain = PaperChain(clock)
    live = seated(live_on(chain, {"a": Planner(clock)}, a_window(("a",), 10, 10)))
    await opening(chain, live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    assert replay(live.journal.read()).difference is None
    forged = MemoryJournal("w1")
    await forged.append(*(replace(event, plan_sha256="0" * 64) if isinstance(event, PlanWritten) else event for event in events_of(live.journal)))
    assert replay(forged.read()).difference.field == "run_sha256"


async def test_a_window_of_stacks_without_plans_opens_at_once(clock):
    live = live_on(PaperChain(clock), {"a": Said(clock)})
    await open_window(live)
    assert [opened.open_ts_ms for opened in events_of(live.journal, WindowOpened)] == [T0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("x", None), ("x" * PLAN_CHARS_MAX, None), ("x" * (PLAN_CHARS_MAX + 1), "too_long"), ("", "empty"), (" \n", "empty"), ("\ud800", "lone_surrogate")],
)
def test_what_is_a_plan(text, reason):
    said = plan_reading(text)
    assert said is None if reason is None else said.startswith(reason)
