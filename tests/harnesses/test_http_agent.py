"""The HTTP agent: any program that answers a POST can play, with our tools if it wants them."""

import json

import pytest
from aiohttp import web

from harnesses.catalog import endpoint_of, http_door
from harnesses.message import Message, Usage
from harnesses.model import ModelProvider
from harnesses.outcome import Outcome, Turn
from harnesses.provider import ProviderFault
from harnesses.turn import play
from ledgers.clock import SystemClock
from tests.harnesses.test_model import ASKED, STACK, Tools
from tests.harnesses.wire import KEY, complete, manifest, serving, status, stream, whole

NAME = "agent-1"
DECISION = '{"schema":"decision/1","orders":[]}'
QUESTION = (Message("system", "be brief"), Message("user", '{"schema":"question/1","tick":3}'))


async def played(*answers, tools: Tools | None = None) -> tuple[Turn, list]:
    held, clock = manifest(NAME), SystemClock()
    async with serving(*answers) as server:
        door = http_door(held, server.address, clock)
        provider = ModelProvider(endpoint_of(held, "anybody", door), lambda _: tools or Tools(), held.limits.live, clock)
        turn = await play(STACK, ASKED, provider, clock)
        await door.close()
    return turn, server.bodies


async def test_a_program_that_uses_a_tool_and_answers_plays_a_turn() -> None:
    async def program(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if not asked["said"]:
            return web.json_response({"schema": "reply/1", "calls": [{"name": "quote", "arguments": {"a": "1"}}]})
        return web.json_response({"schema": "decision/1", "saw": asked["said"][1]["answer"]["n"], "tick": asked["question"]["tick"]})

    turn, bodies = await played(program)
    assert (turn.outcome, json.loads(turn.answer)) == (Outcome.ANSWERED, {"schema": "decision/1", "saw": 1, "tick": 3})
    assert [step.usage for step in turn.steps] == [None, None] and turn.tool_uses[0].ok
    first, second = bodies
    assert (first["schema"], first["step"], first["prompt"], first["said"]) == ("step/1", 0, "be brief", [])
    assert first["question"]["bundle"] == {"b": 1} and [tool["name"] for tool in first["tools"]] == ["quote", "book"]
    assert second["said"] == [{"id": "call_0_0", "call": "quote", "arguments": {"a": "1"}}, {"id": "call_0_0", "answer": {"n": 1}}]


async def test_the_key_stands_in_one_header_alone() -> None:
    async with serving(whole(b"x")) as server:
        await complete(server, NAME, messages=QUESTION)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}" and KEY not in str(server.bodies[0]) and server.paths == ["/v1"]


@pytest.mark.parametrize("said", [DECISION.encode(), b" buy! ", b'{"schema":"reply/1"}', b'{"schema":"reply/1","answer":"x","calls":[]}', b'{"schema":"reply/1","answer":7}', b'{"schema":"reply/1","calls":["x"]}', b'{"schema":"reply/1","calls":[]}', b'{"schema":"reply/1","answer":"x","more":1}'])
async def test_what_is_no_envelope_is_the_answer_verbatim(said: bytes) -> None:
    async with serving(whole(said)) as server:
        reply = await complete(server, NAME, messages=QUESTION)
    assert (reply.text, reply.tool_calls) == (said.decode(), ())


async def test_an_envelope_may_hold_usage_and_a_model() -> None:
    said = {"schema": "reply/1", "answer": DECISION, "model": "m", "usage": {"input_tokens": 9, "output_tokens": 3}}
    async with serving(whole(said)) as server:
        reply = await complete(server, NAME, messages=QUESTION)
    assert (reply.text, reply.model_reported, reply.usage, reply.tool_calls) == (DECISION, "m", Usage(9, 0, 0, 3), ())


async def test_an_answer_of_ten_megabytes_is_malformed_and_not_an_outage() -> None:
    turn, _ = await played(whole(b'{"schema":"decision/1","note":"' + b"x" * 10_000_000 + b'"}'))
    assert (turn.outcome, turn.answer) == (Outcome.MALFORMED, None) and turn.reason.startswith("too_long")


async def test_bytes_that_are_no_text_cannot_become_a_valid_answer() -> None:
    async with serving(whole(b'{"schema":"decision/1\xff"}')) as server:
        reply = await complete(server, NAME, messages=QUESTION)
    assert "\udcff" in reply.text


async def test_a_call_that_cannot_be_read_goes_back_as_data() -> None:
    calls = whole({"schema": "reply/1", "calls": [{"name": "quote", "arguments": "{"}, {}]})
    turn, bodies = await played(calls, whole(b"done"))
    assert [used.reason for used in turn.tool_uses] == ["arguments_not_json", "unknown_tool"]
    assert [part["answer"]["error"] for part in bodies[1]["said"] if "answer" in part] == ["arguments_not_json", "unknown_tool"]


@pytest.mark.parametrize("answer", [status(200, b""), status(204, b""), status(500, b"x"), stream(b"{", drop=True)], ids=["empty", "204", "500", "lost"])
async def test_a_program_that_breaks_is_unavailable_and_never_a_result(answer) -> None:
    async with serving(answer) as server:
        with pytest.raises(ProviderFault):
            await complete(server, NAME, messages=QUESTION)

