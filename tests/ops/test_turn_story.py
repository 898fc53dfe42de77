"""One turn's story: every step, tool call, token and second of a model, and what is not told before the seal."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from harnesses.exam_pass import ExamPass
from harnesses.message import Usage
from harnesses.outcome import Step, ToolUse
from harnesses.provider import Answer
from ledgers.clock import VirtualClock
from ops.costs import used_text
from ops.reading import WrongUse
from ops.tail import tell
from ops.turn_story import PLAN_TICK, read_turn, turn_data, turn_text
from ops.view import PlainScreen, render
from referee.onchain.run import open_window, play_window
from tests.onchain.paper import HOLD, T0, TOKEN, PaperChain, Said, a_window, buying, live_on, to_the_end

PLAN = "Buy low.\n\x1b[2JSell high."
HOSTILE = '{"token":"\x1b]0;owned\x07"}'


class Model:
    """Plays each turn in two steps with one tool call."""

    def __init__(self, reported: str = "m-1") -> None:
        self.reported = reported

    async def answer(self, question):
        raise AssertionError("it is asked on a trail")

    async def answer_on(self, question, trail) -> Answer:
        said = PLAN if question.tick == PLAN_TICK else buying(10**15) if question.tick == 0 else HOLD
        trail._ended += [
            Step(b"q0", b"a0", 1_500, 250, Usage(1_000, 200, 0, 40, 30), "tools", self.reported),
            Step(b"q1", said.encode(), 2_500, 0, Usage(1_100, 0, 0, 60, 0), "end", self.reported),
        ]
        trail.tool_uses.append(
            ToolUse(step=0, call=0, id="1", name="quote", arguments_text=HOSTILE, answer=b'{"arrival_raw":"7"}', ok=True, reason="", note="", latency_ms=5)
        )
        return Answer(said)


async def played(reported: str = "m-1", model: str = "claude-opus-5", sealed: bool = True):
    chain = PaperChain(VirtualClock(T0))
    live = live_on(chain, {"a": Model(reported), "b": Said(chain.clock)}, a_window(("a", "b"), 20, 10))
    seat = live.seats["w1-a-1"]
    stack = replace(seat.stack, model=model)
    admitted = ExamPass(
        sitting="s3", sitting_sha256="5" * 64, ts_ms=T0, provider=stack.provider, model=model, harness_sha256=stack.harness_sha256,
        tools_sha256=stack.tools_sha256, model_reported="m-1",
    )  # fmt: skip
    live.seats["w1-a-1"] = replace(seat, stack=stack, prompt="Trade.", plan_prompt="Plan.", plan_ms_max=10_000, exam_pass=admitted)
    await to_the_end(chain, asyncio.ensure_future(open_window(live)))
    if sealed:
        await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    return live.journal


async def story(tick: int = 0, run: str = "w1-a-1", **how):
    journal = await played(**how)
    return turn_text(read_turn(journal, run, tick), journal)


async def test_a_turn_is_told_with_its_steps_tools_tokens_and_seconds():
    text = await story()
    assert "ANSWERED; 2 steps, 1 tool call, 2,100 (200 cached) in, 100 (30 hidden) out tokens," in text
    assert 'quote {"token":""}' in text and '→ {"arrival_raw":"7"}' in text
    assert "bought" in text and TOKEN[2:6] in text


async def test_what_a_turn_cost_at_list_price_is_told_with_the_price_it_stands_on():
    assert "0.0121 USD (list price of claude-opus-5 at anthropic, genai-prices 0.2.3, 2026-11-29)" in await story()


async def test_a_model_without_a_list_price_is_unpriced_and_never_zero():
    text = await story(model="gemma-3-270m")
    assert "cost        unpriced (the model has no list price)" in text and "0.00" not in text.split("cost ")[1]


def test_tokens_that_only_some_steps_counted_are_said_to_be_partly_counted():
    counted = {"input_tokens": 10, "cached_tokens": 0, "output_tokens": 5, "reasoning_tokens": 0}
    assert used_text([counted, None]) == "10 in, 5 out tokens, counted on 1 of 2 steps"
    assert (used_text([None]), used_text([counted])) == ("tokens not reported", "10 in, 5 out tokens")


async def test_a_model_that_calls_itself_otherwise_than_in_the_exam_is_flagged():
    assert "CHANGED: the provider now calls the model m-2" in await story(reported="m-2")
    assert "CHANGED" not in await story()


async def test_a_stack_without_a_model_says_that_it_is_exempt():
    assert "exempt: a stack without a model" in await story(run="w1-b-1")


async def test_a_plan_is_told_after_the_seal_and_only_its_hash_before_it_ONC_26():
    assert "Sell high." in await story(PLAN_TICK)
    assert "Sell high." not in await story(PLAN_TICK, sealed=False)


async def test_no_hostile_text_acts_on_a_terminal():
    text = await story() + await story(PLAN_TICK)
    assert not {character for character in text if character != "\n" and not character.isprintable()}


@pytest.mark.parametrize(("run", "tick"), [("w1-a-1", 2), ("w1-b-1", PLAN_TICK), ("w1-c-1", 0)])
async def test_a_turn_that_was_not_is_said_to_be_none(run, tick):
    with pytest.raises(WrongUse):
        await story(tick, run)


async def test_the_same_is_told_as_one_object():
    journal = await played()
    data = json.loads(json.dumps(turn_data(read_turn(journal, "w1-a-1", 0))))
    assert (data["steps"], data["tools"], data["cost_micro_usd"], data["exam"]["sitting"]) == (2, 1, "12100", "s3")


async def test_the_live_view_shows_steps_tools_tokens_seconds_and_outcome_of_a_models_turn():
    journal = await played()
    console = Console(file=io.StringIO(), width=220, height=40, force_terminal=False, markup=False)
    screen = PlainScreen(journal, VirtualClock(T0 + 12_000), 0, console)
    tell(journal, [screen.see], 0)
    console.print(render(screen.scene, T0 + 12_000, 220, 40))
    text = console.file.getvalue()
    assert "a-1: turn 1: ANSWERED, 2 steps, 1 tool call, 2,100 (200 cached) in" in text
    assert "last turn" in text and "shows its pass of the entrance exam, sitting s3" in text


async def test_the_live_view_flags_a_model_that_calls_itself_otherwise_than_in_the_exam():
    journal = await played(reported="m-2")
    screen = PlainScreen(journal, VirtualClock(T0), 0, Console(file=io.StringIO(), width=220))
    tell(journal, [screen.see], 0)
    assert "CHANGED since its exam: now calls itself m-2" in screen.scene.runs["w1-a-1"].turn
