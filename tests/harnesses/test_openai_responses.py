"""OpenAI responses (API reference, responses and streaming events): nothing is stored there, reasoning goes back encrypted."""

import pytest

from harnesses.manifest import Reasoning
from harnesses.message import Message, ToolCall, Usage
from harnesses.provider import ProviderFault
from tests.harnesses.wire import KEY, QUOTE, complete, named, serving, stream, whole

NAME = "h1-responses-16k"
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "abc"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "let me see", "annotations": []}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "quote", "arguments": '{"token":"0x1"}', "status": "completed"}
USAGE = {"input_tokens": 100, "output_tokens": 30, "total_tokens": 130, "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 25}}


def response(*output: dict, status: str = "completed", **more: object) -> dict:
    return {"id": "resp_1", "object": "response", "model": "m-1-0901", "status": status, "output": list(output), "usage": USAGE, **more}


def streamed(said: dict, *items: dict, kind: str = "response.completed"):
    done = [named("response.output_item.done", output_index=place, item=item) for place, item in enumerate(items)]
    return stream(named("response.created", response={"status": "in_progress"}), named("response.output_text.delta", delta="let"), *done, named(kind, response=said), hang=True)


@pytest.mark.parametrize(
    "answer",
    [whole(response(THOUGHT, SAID, CALL)), streamed(response(THOUGHT, SAID, CALL)), streamed(response(), THOUGHT, SAID, CALL)],
    ids=["whole", "streamed", "streamed, the last event without output"],
)
async def test_a_response_is_read_whole_and_streamed_alike(answer) -> None:
    async with serving(answer) as server:
        reply = await complete(server, NAME)
    assert (reply.text, reply.stop, reply.model_reported, reply.reasoned) == ("let me see", "tools", "m-1-0901", "hm")
    assert (reply.tool_calls, reply.usage) == ((ToolCall("c1", "quote", '{"token":"0x1"}'),), Usage(100, 60, 0, 30, 25))
    assert reply.native == [THOUGHT, SAID, CALL]


async def test_the_request_stores_nothing_and_the_key_stands_in_one_header_alone() -> None:
    async with serving(whole(response(SAID))) as server:
        await complete(server, NAME)
        await complete(server, NAME, reasoning=Reasoning(effort="low"))
    plain, thinking = server.bodies
    assert server.paths == ["/v1/responses"] * 2 and server.headers[0]["authorization"] == f"Bearer {KEY}" and KEY not in str(plain)
    assert (plain["store"], plain["max_output_tokens"], plain["instructions"], plain["stream"]) == (False, 4_096, "be brief", True)
    assert plain["input"] == [{"role": "user", "content": '{"schema":"question/1"}'}]
    assert plain["tools"] == [{"type": "function", "name": "quote", "description": QUOTE.description, "parameters": QUOTE.parameters, "strict": False}]
    assert "reasoning" not in plain and "include" not in plain
    assert (thinking["reasoning"], thinking["include"]) == ({"effort": "low"}, ["reasoning.encrypted_content"])


async def test_the_conversation_goes_back_with_its_encrypted_reasoning() -> None:
    said = (
        Message("user", "q"),
        Message("assistant", "let me see", (ToolCall("own", "quote", "{}"),), native=[THOUGHT, SAID, CALL]),
        Message("tool", '{"p":"1"}', tool_call_id="own"),
        Message("assistant", "so", (ToolCall("c2", "quote", "{}"),)),
    )
    async with serving(whole(response(SAID))) as server:
        await complete(server, NAME, messages=said)
    assert server.bodies[0]["input"] == [
        {"role": "user", "content": "q"},
        THOUGHT,
        SAID,
        {**CALL, "call_id": "own", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "own", "output": '{"p":"1"}'},
        {"role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": "c2", "name": "quote", "arguments": "{}"},
    ]


async def test_reasoning_that_cannot_go_back_is_left_out() -> None:
    async with serving(whole(response({"type": "reasoning", "id": "rs_1", "summary": []}, CALL))) as server:
        assert (await complete(server, NAME)).native is None


@pytest.mark.parametrize(
    ("reason", "stop"), [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "other"), (None, "other")]
)
async def test_an_incomplete_response_says_why(reason: object, stop: str) -> None:
    async with serving(streamed(response(SAID, status="incomplete", incomplete_details=reason), kind="response.incomplete")) as server:
        assert (await complete(server, NAME)).stop == stop


async def test_a_refusal_is_its_text() -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    async with serving(whole(response(refused))) as server:
        assert (await complete(server, NAME)).text == "no"


@pytest.mark.parametrize(
    "answer",
    [
        stream(named("response.created", response={}), named("response.output_text.delta", delta="x")),
        streamed(response(status="failed", error={"code": "server_error", "message": "x"}), kind="response.failed"),
        stream(named("error", code="rate_limit_exceeded", message="x")),
    ],
    ids=["no end", "failed at the server", "limit"],
)
async def test_an_outage_inside_a_stream_is_tried_again(answer) -> None:
    async with serving(answer, whole(response(SAID))) as server:
        assert (await complete(server, NAME)).text == "let me see"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("said", [response(status="failed", error={"code": "invalid_prompt", "message": "x"}), response(status="cancelled"), {"output": None}, {"object": "response"}])
async def test_a_response_that_failed_is_a_fault(said: dict) -> None:
    async with serving(whole(said)) as server:
        with pytest.raises(ProviderFault):
            await complete(server, NAME)


async def test_text_and_calls_that_came_in_deltas_alone_are_not_lost() -> None:
    events = [
        named("response.output_text.delta", item_id="m", delta="{"), named("response.output_text.delta", item_id="m", delta="}"),
        named("response.output_item.added", item={"type": "function_call", "id": "f", "call_id": "c", "name": "quote", "arguments": ""}),
        named("response.function_call_arguments.done", item_id="f", arguments='{"a":"1"}'),
        named("response.completed", response={"status": "completed", "output": []}),
    ]  # fmt: skip
    async with serving(stream(*events)) as server:
        reply = await complete(server, "h1-responses-16k")
    assert (reply.text, reply.tool_calls) == ("{}", (ToolCall("c", "quote", '{"a":"1"}'),))


async def test_text_said_in_deltas_and_then_whole_is_said_once() -> None:
    events = [
        named("response.output_text.delta", item_id="m", delta="{}"), named("response.output_text.done", item_id="m", text="{}"),
        named("response.completed", response={"status": "completed", "output": []}),
    ]  # fmt: skip
    async with serving(stream(*events)) as server:
        assert (await complete(server, "h1-responses-16k")).text == "{}"
