"""Every dialect and every door is held to one table of cases."""

from __future__ import annotations

import asyncio
import json

import pytest

from harnesses.catalog import endpoint_of, http_door
from harnesses.model import ModelProvider
from harnesses.outcome import Outcome, Turn
from harnesses.turn import play
from ledgers.clock import SystemClock
from referee.onchain.decision import reading
from tests.harnesses.cases import CASES, DIALECTS, DOORS, HOST, Case, Refused, Said, written
from tests.harnesses.test_mcp_door import opened, question
from tests.harnesses.test_model import ASKED, STACK, Tools
from tests.harnesses.wire import manifest, serving, status, whole

PLACES = [(case, place) for case in CASES for place in case.at]


async def through_a_host(harness: str, replies: tuple[Said | Refused, ...]) -> Turn:
    held, clock = manifest(harness), SystemClock()
    answers = [status(reply.status, reply.body) if isinstance(reply, Refused) else whole(written(harness, reply)) for reply in replies]
    async with serving(*answers) as server:
        door = http_door(held, server.address, clock)
        provider = ModelProvider(endpoint_of(held, "m-1", door), lambda _: Tools(), held.limits.live, clock)
        try:
            return await play(STACK, ASKED, provider, clock, reading(8))
        finally:
            await door.close()


async def through_the_mcp_door(replies: tuple[Said | Refused, ...]) -> Turn:
    async with opened() as (door, agent):
        provider = door.provider(lambda _: Tools(), manifest("h2").limits.live)
        turn = asyncio.ensure_future(play(STACK, question(), provider, SystemClock(), reading(8)))
        await agent.use("next_turn", wait_s=5)
        for reply in replies:
            assert isinstance(reply, Said)
            for name, arguments in reply.calls:
                await agent.ask("tools/call", name=name, arguments=arguments)
            if not reply.calls:
                await agent.ask("tools/call", name="answer", arguments={"decision": reply.text})
        return await turn


@pytest.mark.parametrize(("case", "place"), PLACES, ids=lambda value: str(value))
async def test_every_place_holds_to_the_table(case: Case, place: str) -> None:
    ended = await (through_the_mcp_door(case.replies) if place == "h2" else through_a_host(place, case.replies))
    assert (ended.outcome, ended.outcome is Outcome.UNAVAILABLE) == (case.outcome, case.doing == HOST), ended.reason
    assert tuple(used.reason or "ok" for used in ended.tool_uses) == case.tools
    if case.output_tokens is not None:
        assert ended.usage.output_tokens == case.output_tokens


def test_the_table_reaches_every_dialect_and_door() -> None:
    assert {place for _, place in PLACES} == {*DIALECTS, *DOORS}
    assert {case.outcome for case in CASES} >= {Outcome.ANSWERED, Outcome.MALFORMED, Outcome.OUT_OF_OUTPUT, Outcome.UNAVAILABLE}


@pytest.mark.parametrize("place", (*DIALECTS, "agent-1"))
async def test_a_flood_of_calls_costs_nobody_else_time(place: str) -> None:
    """While one reply with sixty thousand calls is read, the loop that all runs share goes on."""
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.005)
            beats += 1

    beating = asyncio.ensure_future(beat())
    flood = Said(calls=(("quote", {"a": "1"}),) * (60_000 if place != "agent-1" else 12_000))
    clock = SystemClock()
    begun_ms = clock.monotonic_ms()
    ended = await through_a_host(place, (flood, Said('{"schema":"decision/1","orders":[],"inputs":["book"]}')))
    took_ms = clock.monotonic_ms() - begun_ms
    beating.cancel()
    assert len(ended.tool_uses) <= 128 and [used.reason for used in ended.tool_uses].count("") == 8
    assert beats >= min(took_ms // 100, 3), f"{beats} beats in {took_ms} ms"


async def test_what_a_host_attaches_goes_back_to_it_unchanged() -> None:
    details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0, "id": "r1"}]
    asking = {"role": "assistant", "content": "", "reasoning_details": details, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "quote", "arguments": "{}"}}]}
    first = {"model": "m", "choices": [{"index": 0, "message": asking, "finish_reason": "tool_calls"}]}
    clock, held = SystemClock(), manifest("h1-16k")
    async with serving(whole(first), whole(written("h1-16k", Said("x")))) as server:
        door = http_door(held, server.address, clock)
        await play(STACK, ASKED, ModelProvider(endpoint_of(held, "m", door), lambda _: Tools(), held.limits.live, clock), clock)
        await door.close()
    back = next(message for message in server.bodies[1]["messages"] if message["role"] == "assistant")
    assert back["reasoning_details"] == details


async def test_an_exchange_that_broke_is_counted_and_said_to_be_broken() -> None:
    half = {"choices": [{"index": 0, "delta": {"content": "y" * 400}}]}

    async def breaks(request):
        from tests.harnesses.wire import stream

        return await stream(half, drop=True)(request)

    clock, held = SystemClock(), manifest("h1-16k")
    async with serving(breaks, whole(written("h1-16k", Said("x")))) as server:
        door = http_door(held, server.address, clock)
        ended = await play(STACK, ASKED, ModelProvider(endpoint_of(held, "m", door), lambda _: Tools(), held.limits.live, clock), clock)
        await door.close()
    (broken,) = ended.steps[0].attempts
    assert broken.usage is not None and broken.usage.flags == ("broken", "estimated") and broken.usage.output_tokens == 100
    assert ended.usage.output_tokens == 120 and ended.usage.input_tokens > 100


def test_the_schemas_of_all_tools_are_of_the_subset_that_every_host_takes() -> None:
    from harnesses.mcp_door import ANSWER, NEXT_TURN
    from referee.onchain.toolbox import SPECS

    words = {"type", "description", "properties", "required", "additionalProperties", "enum", "minimum", "maximum", "maxLength", "items"}

    def hold(schema: dict) -> None:
        assert set(schema) <= words and isinstance(schema.get("type"), str), schema
        assert all(isinstance(value, str) for value in schema.get("enum", ()))
        assert schema.get("additionalProperties", False) is False
        for part in schema.get("properties", {}).values():
            hold(part)
        if schema["type"] == "array":
            hold(schema["items"])

    for spec in (NEXT_TURN, *SPECS, ANSWER):
        assert spec.parameters["type"] == "object" and len(json.dumps(spec.parameters)) < 4_096
        hold(spec.parameters)
