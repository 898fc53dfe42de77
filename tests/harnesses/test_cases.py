"""Every dialect and every door is held to one table of cases."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.events import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from harnesses.anthropic import AnthropicReading
from harnesses.catalog import endpoint_of, http_door
from harnesses.http_agent import AgentReading
from harnesses.model import ModelProvider
from harnesses.openai_chat import ChatReading
from harnesses.openai_responses import ResponsesReading
from harnesses.outcome import Outcome, Turn
from harnesses.turn import play
from ledgers.clock import SystemClock
from referee.onchain.decision import of_turn, reading
from tests.harnesses.cases import (
    ANSWER, CASES, CHAT, DIALECTS, DOORS, HOST, MESSAGES, RESPONSES, Case, Refused, Said, Sent, chunk, json_of,
    streamed, written,
)  # fmt: skip
from tests.harnesses.test_mcp_door import opened, question
from tests.harnesses.test_model import ASKED, STACK, Tools
from tests.harnesses.wire import Answering, manifest, serving, status, stream, whole

WHOLE, PIECES = "whole", "in pieces"


def forms_of(case: Case, place: str) -> tuple[str, ...]:
    """The forms in which a place is answered: whole and as a stream where it is a dialect and the case leaves it
    open."""
    said = (
        place in DIALECTS
        and not any(isinstance(reply, Sent) for reply in case.replies)
        and any(isinstance(reply, Said) for reply in case.replies)
    )
    return (WHOLE, PIECES) if said else (WHOLE,)


PLACES = [(case, place, form) for case in CASES for place in case.at for form in forms_of(case, place)]


def answering(harness: str, reply: Said | Refused | Sent, form: str) -> Answering:
    """How a server gives a reply."""
    match reply:
        case Refused():
            return status(reply.status, reply.body)
        case Said() if form == WHOLE:
            return whole(json_of(written(harness, reply)).encode())
    events = reply.events if isinstance(reply, Sent) else streamed(harness, reply)
    said = [json_of(event) for event in events] + (["[DONE]"] if harness == CHAT else [])
    return stream("".join(f"data: {event}\n\n" for event in said).encode())


async def through_a_host(harness: str, replies: tuple[Said | Refused | Sent, ...], form: str = WHOLE) -> Turn:
    held, clock = manifest(harness), SystemClock()
    async with serving(*(answering(harness, reply, form) for reply in replies)) as server:
        door = http_door(held, server.address, clock)
        provider = ModelProvider(endpoint_of(held, "m-1", door), lambda _: Tools(), held.limits.live, clock)
        try:
            return await play(STACK, ASKED, provider, clock, reading(8))
        finally:
            await door.close()


async def through_the_mcp_door(replies: tuple[Said | Refused | Sent, ...]) -> Turn:
    async with opened() as (door, agent):
        provider = door.provider(lambda _: Tools(), manifest("h2").limits.live)
        turn = asyncio.ensure_future(play(STACK, question(), provider, SystemClock(), reading(8)))
        await agent.use("next_turn", wait_s=5)
        for reply in replies:
            assert isinstance(reply, Said)
            for number, (name, arguments) in enumerate(
                reply.calls or (("answer", {"decision": reply.text}),), start=100
            ):
                asked = {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": name, "arguments": arguments},
                }
                status, answered = await agent.post(json_of(asked).encode())
                assert (status, answered["id"]) == (200, number), answered
        return await turn


@pytest.mark.parametrize(("case", "place", "form"), PLACES, ids=lambda value: str(value))
async def test_every_place_holds_to_the_table(case: Case, place: str, form: str) -> None:
    ended = await (through_the_mcp_door(case.replies) if place == "h2" else through_a_host(place, case.replies, form))
    assert (ended.outcome, ended.outcome is Outcome.UNAVAILABLE) == (case.outcome, case.doing == HOST), ended.reason
    assert tuple(used.reason or "ok" for used in ended.tool_uses) == case.tools
    if case.word:
        assert of_turn(ended, 8).reason == case.word
    for counted in ("output_tokens", "input_tokens", "flags"):
        if (expected := getattr(case, counted)) is not None:
            assert getattr(ended.usage, counted) == expected, counted


def test_the_table_reaches_every_dialect_and_door() -> None:
    assert {(place, form) for _, place, form in PLACES} == {
        *((place, form) for place in DIALECTS for form in (WHOLE, PIECES)),
        *((place, WHOLE) for place in DOORS),
    }
    assert {case.outcome for case in CASES} >= {
        Outcome.ANSWERED,
        Outcome.MALFORMED,
        Outcome.OUT_OF_OUTPUT,
        Outcome.UNAVAILABLE,
    }


class Steps:
    """Counts the function calls that this thread makes in one step of its loop, between two looks for others who wait:
    work, not time."""

    def __init__(self) -> None:
        self.largest = self._now = 0

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._now = 1 if frame.f_code is Handle._run.__code__ else self._now + 1
            self.largest = max(self.largest, self._now)

    @contextmanager
    def counted(self) -> Iterator[None]:
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(None)


READERS = {CHAT: ChatReading, RESPONSES: ResponsesReading, MESSAGES: AnthropicReading, "agent-1": AgentReading}
FLOOD = Said(calls=(("quote", {"a": "1"}),) * 12_000)


def flood(place: str, form: str) -> bytes:
    """One answer with thousands of calls, whole or as one event."""
    said = json.loads(json_of(written(place, FLOOD)))
    if form == WHOLE:
        return json.dumps(said).encode()
    event = (
        {"type": "response.completed", "response": said}
        if place == RESPONSES
        else chunk(said["choices"][0]["message"], "tool_calls")
    )
    return f"data: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize(
    ("place", "form"), [*((place, WHOLE) for place in READERS), (CHAT, PIECES), (RESPONSES, PIECES)]
)
async def test_a_flood_of_calls_costs_nobody_else_time(place: str, form: str) -> None:
    """The loop that all runs share does no step that comes near to reading such an answer at once, as a bare reading
    does."""
    body, bare, shared = flood(place, form), Steps(), Steps()
    with bare.counted():
        reading_of = READERS[place]()
        reading_of.feed(body)
        reading_of.end()
    held, clock = manifest(place), SystemClock()
    async with serving(
        whole(body) if form == WHOLE else stream(body), whole(json_of(written(place, ANSWER)).encode())
    ) as server:
        door = http_door(held, server.address, clock)
        provider = ModelProvider(endpoint_of(held, "m-1", door), lambda _: Tools(), held.limits.live, clock)
        with shared.counted():
            ended = await play(STACK, ASKED, provider, clock, reading(8))
        await door.close()
    assert ended.outcome is (Outcome.ANSWERED if place == "agent-1" else Outcome.OUT_OF_OUTPUT)
    assert bare.largest > 12_000 and shared.largest * 3 < bare.largest, (shared.largest, bare.largest)


async def test_what_a_host_attaches_goes_back_to_it_unchanged() -> None:
    details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0, "id": "r1"}]
    asking = {
        "role": "assistant",
        "content": "",
        "reasoning_details": details,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "quote", "arguments": "{}"}}],
    }
    first = {"model": "m", "choices": [{"index": 0, "message": asking, "finish_reason": "tool_calls"}]}
    clock, held = SystemClock(), manifest("h1-16k")
    async with serving(whole(first), whole(written("h1-16k", Said("x")))) as server:
        door = http_door(held, server.address, clock)
        await play(
            STACK, ASKED, ModelProvider(endpoint_of(held, "m", door), lambda _: Tools(), held.limits.live, clock), clock
        )
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
        ended = await play(
            STACK, ASKED, ModelProvider(endpoint_of(held, "m", door), lambda _: Tools(), held.limits.live, clock), clock
        )
        await door.close()
    (broken,) = ended.steps[0].attempts
    assert (
        broken.usage is not None and broken.usage.flags == ("broken", "estimated") and broken.usage.output_tokens == 100
    )
    assert ended.usage.output_tokens == 120 and ended.usage.input_tokens > 100


def test_the_schemas_of_all_tools_are_of_the_subset_that_every_host_takes() -> None:
    from harnesses.mcp_door import ANSWER, NEXT_TURN
    from referee.onchain.toolbox import SPECS

    words = {
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "enum",
        "minimum",
        "maximum",
        "maxLength",
        "items",
    }

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
