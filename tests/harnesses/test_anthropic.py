"""Anthropic messages (API reference, messages and streaming): thinking goes back as it came, cached input is counted in."""

import json

import pytest

from harnesses.manifest import Reasoning, Sampling
from harnesses.message import Message, ToolCall, Usage
from harnesses.provider import LimitSpent, ProviderFault
from tests.harnesses.wire import KEY, QUOTE, complete, named, serving, stream, whole

NAME = "h1-anthropic-16k"
START = named("message_start", message={"id": "m", "type": "message", "role": "assistant", "model": "m-1-0901", "content": [], "usage": {"input_tokens": 25, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 1}})
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
USE = {"type": "tool_use", "id": "t1", "name": "quote", "input": {"token": "0x1"}}


def block(index: int, start: dict, *deltas: dict) -> bytes:
    pieces = [named("content_block_start", index=index, content_block=start)]
    pieces += [named("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join((*pieces, named("content_block_stop", index=index)))


def ended(reason: str, output: int = 30) -> bytes:
    return named("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": output}) + named("message_stop")


STREAMED = (
    START,
    named("ping"),
    block(0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "c2ln"}),
    block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "let me "}, {"type": "text_delta", "text": "see"}),
    block(2, {"type": "tool_use", "id": "t1", "name": "quote", "input": {}}, {"type": "input_json_delta", "partial_json": '{"tok'}, {"type": "input_json_delta", "partial_json": 'en":"0x1"}'}),
    ended("tool_use"),
)
WHOLE = {
    "id": "m", "type": "message", "model": "m-1-0901", "stop_reason": "tool_use", "content": [THINKING, {"type": "text", "text": "let me see"}, USE],
    "usage": {"input_tokens": 25, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 30},
}  # fmt: skip


@pytest.mark.parametrize("answer", [stream(*STREAMED, hang=True), whole(WHOLE)], ids=["streamed", "whole"])
async def test_a_message_is_read_whole_and_streamed_alike(answer) -> None:
    async with serving(answer) as server:
        reply = await complete(server, NAME)
    assert (reply.text, reply.stop, reply.model_reported, reply.reasoned) == ("let me see", "tools", "m-1-0901", "hm")
    (call,) = reply.tool_calls
    assert (call.id, call.name, json.loads(call.arguments_text)) == ("t1", "quote", {"token": "0x1"})
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.cache_write_tokens, reply.usage.output_tokens) == (95, 60, 10, 30)
    assert reply.usage.flags == ("reasoning_estimated",)


async def test_thinking_goes_back_as_it_came_and_calls_under_the_ids_they_were_answered_with() -> None:
    async with serving(whole(WHOLE)) as server:
        reply = await complete(server, NAME)
        again = Message("assistant", reply.text, (ToolCall("own", "quote", '{"token":"0x1"}'),), native=reply.native)
        said = (Message("system", "be brief"), Message("user", "q"), again, Message("tool", "{}", tool_call_id="own"), Message("user", "note"))
        await complete(server, NAME, messages=said)
    assert server.bodies[1]["system"] == "be brief"
    assert server.bodies[1]["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "content": [THINKING, {"type": "text", "text": "let me see"}, {**USE, "id": "own"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "own", "content": "{}"}, {"type": "text", "text": "note"}]},
    ]


async def test_the_request_says_limit_tools_and_version_and_the_key_stands_in_one_header_alone() -> None:
    async with serving(whole(WHOLE)) as server:
        await complete(server, NAME, sampling=Sampling(temperature=0.5))
    body = server.bodies[0]
    assert server.paths == ["/v1/messages"] and server.headers[0]["x-api-key"] == KEY
    assert server.headers[0]["anthropic-version"] == "2023-06-01" and KEY not in str(body)
    assert (body["max_tokens"], body["stream"], body["temperature"]) == (4_096, True, 0.5)
    assert body["tools"] == [{"name": "quote", "description": QUOTE.description, "input_schema": QUOTE.parameters}]
    assert "thinking" not in body


@pytest.mark.parametrize(
    ("reasoning", "sent"),
    [
        (Reasoning(budget_tokens=2_000), {"thinking": {"type": "enabled", "budget_tokens": 2_000}}),
        (Reasoning(budget_tokens=9_000), {"thinking": {"type": "enabled", "budget_tokens": 4_096 - 1_024}}),
        (Reasoning(effort="high"), {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
    ],
)
async def test_thinking_never_gets_more_than_what_leaves_room_for_an_answer(reasoning: Reasoning, sent: dict) -> None:
    async with serving(whole(WHOLE)) as server:
        await complete(server, NAME, reasoning=reasoning)
    assert {name: part for name, part in server.bodies[0].items() if name in ("thinking", "output_config")} == sent


async def test_too_little_left_to_think_and_answer_is_a_spent_output_limit() -> None:
    async with serving(whole(WHOLE)) as server:
        with pytest.raises(LimitSpent) as spent:
            await complete(server, NAME, reasoning=Reasoning(budget_tokens=1_000))
    assert (spent.value.limit, server.bodies) == ("output", [])


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("end_turn", "end"), ("stop_sequence", "end"), ("max_tokens", "length"), ("model_context_window_exceeded", "length"), ("refusal", "other"), ("pause_turn", "other"), ("new_word", "other")],
)
async def test_why_it_stopped(reason: str, stop: str) -> None:
    async with serving(stream(START, block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}), ended(reason))) as server:
        reply = await complete(server, NAME)
    assert (reply.text, reply.stop, reply.native) == ("x", stop, None)


async def test_counted_thinking_is_taken_as_counted() -> None:
    said = {**WHOLE, "usage": {"input_tokens": 1, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}}}
    async with serving(whole(said)) as server:
        assert (await complete(server, NAME)).usage == Usage(1, 0, 0, 30, 20)


@pytest.mark.parametrize("answer", [stream(START, named("error", error={"type": "overloaded_error", "message": "busy"})), stream(START, block(0, {"type": "text", "text": "x"})), stream(START, drop=True)], ids=["overloaded", "no end", "lost"])
async def test_an_outage_inside_a_stream_is_tried_again(answer) -> None:
    async with serving(answer, whole(WHOLE)) as server:
        assert (await complete(server, NAME)).text == "let me see"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("said", [named("error", error={"type": "invalid_request_error", "message": "no"}), named("error"), b'data: {"type":"message_start","message":7}\n\ndata: x\n\n'])
async def test_any_other_error_is_a_fault(said: bytes) -> None:
    async with serving(stream(said)) as server:
        with pytest.raises(ProviderFault):
            await complete(server, NAME)
    assert len(server.bodies) == 1
