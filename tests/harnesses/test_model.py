"""The model's turn: limits end it, tools are answered as data, and everything on the way is recorded (001 §2.1, §5.6)."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from harnesses.endpoint import ScriptedEndpoint
from harnesses.manifest import TurnLimits
from harnesses.message import Message, Reply, ToolCall, Usage
from harnesses.model import ModelProvider, opening
from harnesses.outcome import ILL_FORMED, Attempt, Outcome, Turn
from harnesses.provider import LimitSpent, ProviderFault
from harnesses.question import Question
from harnesses.stack import NO_PROMPT_SHA256, Stack
from harnesses.tools import TOOL_BYTES_MAX, ToolAnswer, ToolSpec
from harnesses.turn import play
from ledgers.clock import SystemClock, VirtualClock

STACK = Stack(name="s", provider="t/1", model="m-1", harness_sha256="0" * 64, prompt_sha256=NO_PROMPT_SHA256, tools_sha256="0" * 64, params=())
LIMITS = TurnLimits(steps_max=4, output_tokens_max=1_000, calls_per_step_max=3)
ASKED = Question("w1-s-1", 3, "be brief", b'{"b":1}', b'{"k":2}', 60_000)
DONE = Reply("done", usage=Usage(10, 0, 0, 5), model_reported="m-1-0901")


class Tools:
    """A toolbox that keeps what it was asked."""

    specs = (ToolSpec("quote", "", {"type": "object"}), ToolSpec("book", "", {"type": "object"}))

    def __init__(self, answer: ToolAnswer | BaseException | None = None) -> None:
        self.asked: list[tuple[str, dict]] = []
        self._answer = answer

    async def use(self, name: str, arguments: dict) -> ToolAnswer:
        self.asked.append((name, arguments))
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer or ToolAnswer(f'{{"n":{len(self.asked)}}}'.encode(), True)


def wants(*calls: ToolCall, text: str = "", output: int = 5, **more: object) -> Reply:
    return Reply(text, calls, Usage(10, 0, 0, output), "tools", **more)


def call(name: str = "quote", arguments: str = '{"a":"1"}', call_id: str = "a") -> ToolCall:
    return ToolCall(call_id, name, arguments)


async def turn(*replies: object, tools: Tools | None = None, limits: TurnLimits = LIMITS, clock=None, question: Question = ASKED) -> Turn:
    toolbox = tools or Tools()
    clock = clock or SystemClock()
    return await play(STACK, question, ModelProvider(ScriptedEndpoint(replies), lambda _: toolbox, limits, clock), clock)


async def test_a_model_uses_tools_and_answers_and_every_step_is_recorded() -> None:
    tools = Tools()
    ended = await turn(wants(call(), model_reported="m-1-0901"), DONE, tools=tools)
    assert (ended.outcome, ended.answer, tools.asked) == (Outcome.ANSWERED, "done", [("quote", {"a": "1"})])
    assert [(step.stop, step.answer) for step in ended.steps] == [("tools", b""), ("end", b"done")]
    (used,) = ended.tool_uses
    assert (used.step, used.call, used.name, used.answer, used.ok, used.reason, used.note) == (0, 0, "quote", b'{"n":1}', True, "", "")
    assert (ended.usage, ended.model_reported) == (Usage(20, 0, 0, 10), "m-1-0901")


def test_a_model_is_shown_the_prompt_verbatim_and_one_object() -> None:
    system, user = opening(ASKED, LIMITS)
    assert (system.role, system.text) == ("system", "be brief")
    shown = json.loads(user.text)
    assert (shown["bundle"], shown["book"], shown["tick"]) == ({"b": 1}, {"k": 2}, 3)
    assert shown["limits"] == {"steps_max": 4, "output_tokens_max": 1_000, "calls_per_step_max": 3, "deadline_ms": 60_000}


def test_a_plan_turn_has_no_book() -> None:
    (user,) = opening(Question("w", 0, "", b"{}", b"", 1), LIMITS)
    assert "book" not in json.loads(user.text)


# --- limits -----------------------------------------------------------------------------------------------------------


async def test_the_last_step_that_still_wants_tools_is_out_of_steps_and_they_are_not_used() -> None:
    tools = Tools()
    ended = await turn(*(wants(call(arguments=f'{{"a":"{n}"}}', call_id=str(n))) for n in range(4)), DONE, tools=tools)
    assert (ended.outcome, len(ended.steps), len(tools.asked)) == (Outcome.OUT_OF_STEPS, 4, 3)


async def test_the_last_step_may_answer() -> None:
    ended = await turn(*(wants(call(call_id=str(n))) for n in range(3)), DONE)
    assert (ended.outcome, len(ended.steps)) == (Outcome.ANSWERED, 4)


async def test_an_answer_cut_off_by_the_limit_is_out_of_output_with_the_share_of_hidden_reasoning() -> None:
    cut = Reply('{"schema":"decision/1","orders":[]}', usage=Usage(10, 0, 0, 1_000, 990), stop="length")
    ended = await turn(cut)
    assert (ended.outcome, ended.answer) == (Outcome.OUT_OF_OUTPUT, None)
    assert ended.reason == "1000 of 1000 output tokens used, 99 % of it hidden reasoning"


async def test_an_answer_cut_off_before_our_limit_says_that_the_provider_did_it() -> None:
    ended = await turn(Reply("{", usage=Usage(10, 0, 0, 40, 0), stop="length"))
    assert ended.reason == "the provider cut the answer off; 40 of 1000 output tokens used, 0 % of it hidden reasoning"


@pytest.mark.parametrize(("output", "outcome"), [(995, Outcome.ANSWERED), (996, Outcome.OUT_OF_OUTPUT), (1_000, Outcome.OUT_OF_OUTPUT)])
async def test_the_output_limit_is_of_the_turn_and_not_of_a_step(output: int, outcome: Outcome) -> None:
    assert (await turn(wants(call(), output=output), DONE)).outcome == outcome


async def test_each_step_is_allowed_what_the_steps_before_it_left() -> None:
    left: list[int] = []

    class Looks(ScriptedEndpoint):
        async def complete(self, messages, tools, limits, wire):
            left.append(limits.output_tokens_max)
            return await super().complete(messages, tools, limits, wire)

    clock = SystemClock()
    await play(STACK, ASKED, ModelProvider(Looks([wants(call(), output=300), DONE]), lambda _: Tools(), LIMITS, clock), clock)
    assert left == [1_000, 700]


async def test_a_provider_that_counts_nothing_is_counted_from_bytes() -> None:
    ended = await turn(Reply("x" * 400))
    assert ended.usage.output_tokens == 100 and ended.usage.flags == ("estimated",)
    assert (await turn(Reply("x" * 4_004))).outcome == Outcome.OUT_OF_OUTPUT


async def test_nothing_is_counted_at_an_open_door() -> None:
    ended = await turn(Reply("x" * 4_004), limits=TurnLimits(4, None, 3))
    assert (ended.outcome, ended.steps[0].usage) == (Outcome.ANSWERED, None)


async def test_a_fault_after_a_step_keeps_the_step() -> None:
    ended = await turn(wants(call()), ProviderFault("host is down"))
    assert (ended.outcome, ended.reason, len(ended.steps), len(ended.tool_uses)) == (Outcome.UNAVAILABLE, "host is down", 2, 1)
    assert ended.steps[1].usage is None


async def test_time_spent_inside_a_provider_is_out_of_time() -> None:
    assert (await turn(LimitSpent("time", "over"))).outcome == Outcome.OUT_OF_TIME


@pytest.mark.parametrize(("lost_ms", "outcome"), [(0, Outcome.OUT_OF_TIME), (29_999, Outcome.OUT_OF_TIME), (30_000, Outcome.UNAVAILABLE)])
async def test_a_turn_whose_time_was_lost_to_its_provider_is_not_the_stack_s_result(lost_ms: int, outcome: Outcome) -> None:
    class Limited:
        async def complete(self, messages, tools, limits, wire):
            wire.attempts.append(Attempt("http 503", b"busy", lost_ms // 2, 0))
            wire.wait_ms = lost_ms - lost_ms // 2
            await clock.sleep_until(clock.now_ms() + limits.deadline_ms)
            raise LimitSpent("time", "over")

    clock = VirtualClock()
    playing = asyncio.ensure_future(play(STACK, ASKED, ModelProvider(Limited(), lambda _: Tools(), LIMITS, clock), clock))
    await clock.advance_to(clock.now_ms() + 100_000)
    ended = playing.result()
    assert ended.outcome == outcome
    assert ended.steps[0].attempts[0].answer == b"busy"
    if outcome == Outcome.UNAVAILABLE:
        assert ended.reason.startswith("30000 ms of the turn were lost to faults")


async def test_a_slow_tool_that_leaves_no_time_for_another_step_is_out_of_time() -> None:
    class Slow(Tools):
        async def use(self, name: str, arguments: dict) -> ToolAnswer:
            await clock.sleep_until(clock.now_ms() + ASKED.deadline_ms - 10)
            return ToolAnswer(b"{}", True)

    clock = VirtualClock()
    playing = asyncio.ensure_future(turn(wants(call()), DONE, tools=Slow(), clock=clock))
    await clock.advance_to(clock.now_ms() + 100_000)
    ended = playing.result()
    assert (ended.outcome, ended.reason) == (Outcome.OUT_OF_TIME, "the turn's time was over before the next step")


async def test_a_turn_cut_off_from_outside_keeps_what_came_so_far() -> None:
    class Hangs:
        async def complete(self, messages, tools, limits, wire):
            wire.request, wire.wait_ms = b"asked", 10
            wire.answer += b"half"
            await clock.sleep_until(clock.now_ms() + 10**6)

    clock = VirtualClock()
    playing = asyncio.ensure_future(play(STACK, ASKED, ModelProvider(Hangs(), lambda _: Tools(), LIMITS, clock), clock))
    await clock.advance_to(clock.now_ms() + 100_000)
    ended = playing.result()
    assert ended.outcome == Outcome.OUT_OF_TIME
    assert [(step.request, step.answer) for step in ended.steps] == [(b"asked", b"half")]
    assert ended.wait_ms == 10 and ended.latency_ms == ASKED.deadline_ms + 1 - 10


# --- tool calls -------------------------------------------------------------------------------------------------------


def answered(messages: Sequence[Message]) -> Reply:
    """Answer with what the model was told last."""
    return Reply(messages[-1].text, usage=Usage(1, 0, 0, 1))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (call("web_search"), "unknown_tool"),
        (call("functions.quote"), "unknown_tool"),
        (call("QUOTE"), "unknown_tool"),
        (call(""), "unknown_tool"),
        (call(arguments="{a:1}"), "arguments_not_json"),
        (call(arguments='{"a":1}"'), "arguments_not_json"),
        (call(arguments='{"a":1,"a":2}'), "arguments_not_json"),
        (call(arguments='{"a":NaN}'), "arguments_not_json"),
        (call(arguments="[" * 10_000), "arguments_not_json"),
        (call(arguments='{"a":' + "9" * 5_000 + "}"), "arguments_not_json"),
        (call(arguments='{"a":' * 17 + "1" + "}" * 17), "arguments_not_json"),
        (call(arguments="[]"), "arguments_not_object"),
        (call(arguments='"{}"'), "arguments_not_object"),
        (call(arguments="7"), "arguments_not_object"),
        (call(arguments='{"a":"' + "x" * 20_000 + '"}'), "arguments_too_long"),
    ],
)
async def test_an_ill_formed_call_is_answered_as_data_and_not_carried_out(asked: ToolCall, reason: str) -> None:
    tools = Tools()
    ended = await turn(wants(asked), answered, tools=tools, limits=replace(LIMITS, output_tokens_max=10_000))
    assert (ended.outcome, tools.asked) == (Outcome.ANSWERED, [])
    assert json.loads(ended.answer)["error"] == reason
    (used,) = ended.tool_uses
    assert (used.ok, used.reason, used.arguments_text) == (False, reason, asked.arguments_text)
    assert reason in ILL_FORMED


@pytest.mark.parametrize("arguments", ["", " \n", "null", "{}"])
async def test_no_arguments_at_all_are_an_empty_object(arguments: str) -> None:
    tools = Tools()
    await turn(wants(call("book", arguments)), DONE, tools=tools)
    assert tools.asked == [("book", {})]


async def test_what_cannot_be_read_is_sent_back_in_a_form_that_every_provider_takes() -> None:
    seen: list[Message] = []
    await turn(wants(call("no such tool!", '{"a"')), lambda messages: seen.extend(messages) or DONE)
    (echoed,) = seen[2].tool_calls
    assert (echoed.name, json.loads(echoed.arguments_text)) == ("no_such_tool_", {"unreadable_arguments": '{"a"'})


async def test_parallel_calls_are_carried_out_in_their_order_and_those_beyond_the_limit_are_told_so() -> None:
    tools = Tools()
    ended = await turn(wants(*(call(arguments=f'{{"a":"{n}"}}', call_id=str(n)) for n in range(5))), DONE, tools=tools)
    assert [arguments["a"] for _, arguments in tools.asked] == ["0", "1", "2"]
    assert [used.reason for used in ended.tool_uses] == ["", "", "", "too_many_calls", "too_many_calls"]


async def test_every_call_has_an_id_of_its_own_and_the_one_that_was_given_is_noted() -> None:
    seen: list[Message] = []
    calls = (call(call_id="a"), call("book", "{}", "a"), call("book", '{"x":1}', ""))
    ended = await turn(wants(*calls), lambda messages: seen.extend(messages) or DONE)
    assert [(used.id, used.note) for used in ended.tool_uses] == [("a", ""), ("call_0_1", "id_repeated"), ("call_0_2", "id_missing")]
    assert [message.tool_call_id for message in seen[3:]] == [one.id for one in seen[2].tool_calls] == ["a", "call_0_1", "call_0_2"]


async def test_halves_of_characters_are_written_out_wherever_they_stand() -> None:
    seen: list[Message] = []
    ended = await turn(wants(call("quote\ud800", '{"a":"\ud800"}', "\ud800"), text="\ud800"), lambda messages: seen.extend(messages) or DONE)
    (used,) = ended.tool_uses
    assert (used.name, used.arguments_text, used.id, used.note) == ("quote", '{"a":"\\ud800"}', "call_0_0", "id_missing")
    assert all(message.text.encode() for message in seen)


async def test_an_identical_call_is_answered_with_the_first_one_s_bytes_and_not_carried_out_again() -> None:
    tools = Tools()
    ended = await turn(wants(call(arguments='{"a":"1","b":"2"}')), wants(call(arguments='{ "b":"2", "a":"1" }', call_id="b")), DONE, tools=tools)
    assert len(tools.asked) == 1
    first, second = ended.tool_uses
    assert (second.answer, second.ok, second.note) == (first.answer, True, "repeated")


async def test_a_call_that_failed_may_be_tried_again() -> None:
    tools = Tools(ToolAnswer(b'{"error":"fault"}', False, "fault"))
    ended = await turn(wants(call()), wants(call(call_id="b")), DONE, tools=tools)
    assert (len(tools.asked), [used.reason for used in ended.tool_uses]) == (2, ["fault", "fault"])


async def test_a_tool_that_breaks_is_told_to_the_model_by_its_kind_alone() -> None:
    ended = await turn(wants(call()), answered, tools=Tools(ValueError("https://key@host")))
    assert json.loads(ended.answer) == {"error": "tool_fault", "detail": "the tool broke (ValueError)"}
    assert ended.tool_uses[0].reason == "tool_fault"


@pytest.mark.parametrize(("size", "ok"), [(TOOL_BYTES_MAX, True), (TOOL_BYTES_MAX + 1, False)])
async def test_a_tool_answer_beyond_the_bound_is_not_shown(size: int, ok: bool) -> None:
    ended = await turn(wants(call()), DONE, tools=Tools(ToolAnswer(b"x" * size, True)))
    assert (ended.tool_uses[0].ok, ended.tool_uses[0].reason) == (ok, "" if ok else "too_long")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"quote","arguments":{}}</tool_call>',
        "<function=quote>{}</function>",
        "[TOOL_CALLS][]",
        "<|python_tag|>quote()",
        '{"name":"quote","arguments":{"a":"1"}}',
        '```json\n{"tool":"quote","args":{}}\n```',
        '[{"type":"function","function":{"name":"book","arguments":"{}"}}]',
        "functions.quote:0\n{}",
        'functions.quote:\n{"a":"1"}',
    ],
)
async def test_a_tool_call_in_the_text_is_told_and_not_carried_out(text: str) -> None:
    tools = Tools()
    ended = await turn(Reply(text, usage=Usage(1, 0, 0, 1)), answered, tools=tools)
    assert (tools.asked, json.loads(ended.answer)["error"], ended.tool_uses[0].reason) == ([], "call_in_text", "call_in_text")


@pytest.mark.parametrize("text", ["", '{"schema":"decision/1","orders":[]}', '{"name":"other","arguments":{}}', "I would quote it", '{"note":"functions.quote: 1 <tool_call>"}', "{}", "[]", '{"name":"quote","schema":"x"}'])
async def test_any_other_text_is_the_answer_for_the_bench_to_read(text: str) -> None:
    ended = await turn(Reply(text, usage=Usage(1, 0, 0, 1)))
    assert (ended.outcome, ended.answer, len(ended.steps)) == (Outcome.ANSWERED, text, 1)


async def test_text_beside_tool_calls_is_no_answer() -> None:
    ended = await turn(wants(call(), text='{"schema":"decision/1","orders":[]}'), DONE)
    assert ended.answer == "done"
