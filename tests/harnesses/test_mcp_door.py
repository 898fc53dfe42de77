"""The MCP door: an outside agent that speaks the protocol plays turns with our tools, and only with its own token."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from harnesses.address import Address
from harnesses.manifest import TurnLimits
from harnesses.mcp import VERSIONS
from harnesses.mcp_door import ANSWER, NEXT_TURN, McpDoor, token_of
from harnesses.outcome import Outcome, Turn
from harnesses.question import Question
from harnesses.turn import play
from ledgers.clock import SystemClock
from ledgers.errors import RefereeError
from tests.harnesses.test_model import STACK, Tools

SECRET = "a secret of the door"
RUN = "w1-s-1"
LIMITS = TurnLimits(steps_max=4, output_tokens_max=None, calls_per_step_max=3)
DECISION = {"schema": "decision/1", "orders": []}


def question(deadline_ms: int = 5_000) -> Question:
    return Question(RUN, 3, "be brief", b'{"b":1}', b'{"k":2}', deadline_ms)


class Agent:
    """A client of the protocol."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str, meta: dict | None = None) -> None:
        self.http, self.url, self.meta, self.number = http, url, meta, 0
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}

    async def ask(self, method: str, **params: object) -> dict:
        self.number = number = self.number + 1
        if self.meta:
            params["_meta"] = self.meta
        status, said = await self.post(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        assert status == 200 and said["id"] == number, said
        return said

    async def use(self, name: str, **arguments: object) -> tuple[object, bool]:
        result = (await self.ask("tools/call", name=name, arguments=arguments))["result"]
        return json.loads(result["content"][0]["text"]), not result["isError"]

    async def post(self, body: bytes, **headers: str) -> tuple[int, object]:
        named = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self.http.post(self.url, data=body, headers=named) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text


@asynccontextmanager
async def opened(tools: Tools | None = None, meta: dict | None = None) -> AsyncIterator[tuple[McpDoor, Agent]]:
    door = McpDoor(Tools.specs, SECRET, SystemClock(), farewell_ms=200)
    door.expect(RUN)
    await door.open()
    async with aiohttp.ClientSession() as http:
        try:
            yield door, Agent(http, door.url_of(RUN), token_of(SECRET, RUN), meta)
        finally:
            await door.close()


def playing(door: McpDoor, tools: Tools | None = None, deadline_ms: int = 5_000) -> asyncio.Task[Turn]:
    provider = door.provider(lambda _: tools or Tools(), LIMITS)
    return asyncio.ensure_future(play(STACK, question(deadline_ms), provider, SystemClock()))


async def test_an_agent_fetches_a_turn_uses_a_tool_and_answers() -> None:
    tools = Tools()
    async with opened() as (door, agent):
        hello = (await agent.ask("initialize", protocolVersion="2025-06-18", clientInfo={"name": "coder", "version": "9"}, capabilities={}))["result"]
        assert (hello["protocolVersion"], hello["capabilities"]) == ("2025-06-18", {"tools": {}}) and "next_turn" in hello["instructions"]
        assert await agent.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == (202, "")
        listed = (await agent.ask("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["next_turn", "quote", "book", "answer"]
        turn = playing(door, tools)
        shown, _ = await agent.use("next_turn", wait_s=5)
        assert (shown["schema"], shown["prompt"], shown["question"]["bundle"], shown["question"]["tick"]) == ("turn/1", "be brief", {"b": 1}, 3)
        assert await agent.use("quote", a="1") == ({"n": 1}, True)
        assert await agent.use("answer", decision=DECISION) == ({"taken": True}, True)
        ended = await turn
    assert (ended.outcome, json.loads(ended.answer), tools.asked) == (Outcome.ANSWERED, DECISION, [("quote", {"a": "1"})])
    assert [step.stop for step in ended.steps] == ["tools", "end"] and ended.model_reported == "coder 9"
    assert b'"prompt": "be brief"' in ended.steps[0].request and b'"quote"' in ended.steps[0].answer
    assert (ended.steps[1].request, ended.tool_uses[0].name, ended.steps[0].usage) == (b'{"n":1}', "quote", None)


async def test_a_client_without_a_handshake_plays_too() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    async with opened(meta=meta) as (door, agent):
        found = (await agent.ask("server/discover"))["result"]
        assert found["supportedVersions"] == list(VERSIONS) and found["resultType"] == "complete"
        listed = (await agent.ask("tools/list"))["result"]
        assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"] > 0) == ("complete", "private", True)
        turn = playing(door)
        await agent.use("next_turn")
        await agent.use("answer", decision=json.dumps(DECISION))
        assert (await turn).outcome == Outcome.ANSWERED


async def test_text_is_handed_on_verbatim() -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        await agent.use("next_turn")
        await agent.use("answer", decision=" buy! ")
        assert (await turn).answer == " buy! "


async def test_an_agent_that_waits_first_is_given_the_turn_when_it_opens() -> None:
    async with opened() as (door, agent):
        waiting = asyncio.ensure_future(agent.use("next_turn", wait_s=5))
        while RUN not in door.waiting():
            await asyncio.sleep(0)
        turn = playing(door)
        assert (await waiting)[0]["schema"] == "turn/1"
        await agent.use("answer", decision={})
        assert (await turn).answer == "{}"


async def test_a_turn_that_nobody_fetches_is_unavailable() -> None:
    async with opened() as (door, _):
        ended = await playing(door, deadline_ms=60)
    assert (ended.outcome, ended.reason, ended.steps) == (Outcome.UNAVAILABLE, "nobody came to the door for this turn", ())


async def test_a_turn_that_is_fetched_and_not_answered_is_out_of_time_and_a_later_answer_is_not_taken() -> None:
    async with opened() as (door, agent):
        turn = playing(door, deadline_ms=1_500)
        await agent.use("next_turn")
        ended = await turn
        assert await agent.use("answer", decision=DECISION) == ({"error": "no_turn", "detail": "no turn is open; call next_turn"}, False)
    assert (ended.outcome, len(ended.steps)) == (Outcome.OUT_OF_TIME, 1)


async def test_the_last_step_must_be_the_answer() -> None:
    tools = Tools()
    async with opened() as (door, agent):
        turn = playing(door, tools)
        await agent.use("next_turn")
        told = [(await agent.use("quote", a=str(n)))[0] for n in range(4)]
        ended = await turn
    assert (ended.outcome, len(tools.asked), told[3]["error"], len(ended.steps)) == (Outcome.OUT_OF_STEPS, 3, "out_of_steps", 4)


async def test_ill_formed_calls_are_answered_as_data_and_recorded() -> None:
    async with opened() as (door, agent):
        assert (await agent.use("quote"))[0]["error"] == "no_turn"
        turn = playing(door)
        await agent.use("next_turn", wait_s=1)
        told, ok = await agent.use("web_search")
        await agent.use("answer", decision={})
        ended = await turn
    assert (told["error"], ok, ended.tool_uses[0].reason) == ("unknown_tool", False, "unknown_tool")


async def test_a_turn_must_be_fetched_before_it_is_played() -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        while door.place(RUN).turn is None:
            await asyncio.sleep(0)
        assert (await agent.use("answer", decision=DECISION))[0]["error"] == "not_fetched"
        turn.cancel()


async def test_calls_that_come_together_are_taken_one_after_another() -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        await agent.use("next_turn", wait_s=1)
        await asyncio.gather(*(agent.use("quote", a=str(n)) for n in range(3)))
        await agent.use("answer", decision={})
        ended = await turn
    assert (ended.outcome, [used.step for used in ended.tool_uses]) == (Outcome.ANSWERED, [0, 1, 2])


async def test_when_it_is_over_the_agent_is_told() -> None:
    async with opened() as (door, agent):
        waiting = asyncio.ensure_future(agent.use("next_turn", wait_s=30))
        while RUN not in door.waiting():
            await asyncio.sleep(0)
        await door.close()
        assert await waiting == ({"over": True}, True)


@pytest.mark.parametrize("token", ["", "wrong", token_of(SECRET, "w1-s-2"), token_of("another secret here", RUN)])
async def test_a_run_is_played_with_its_own_token_alone(token: str) -> None:
    async with opened() as (_, agent):
        agent.headers["Authorization"] = f"Bearer {token}"
        assert (await agent.post(b"{}"))[0] == 401


async def test_the_door_s_secret_opens_it_to_every_run() -> None:
    async with opened() as (_, agent):
        agent.headers["Authorization"] = f"Bearer {SECRET}"
        assert (await agent.ask("ping"))["result"] == {}


async def test_a_door_that_cannot_open_leaves_the_turn_unavailable() -> None:
    async with opened() as (door, _):
        port = int(door.url_of(RUN).split(":")[2].split("/")[0])
        ended = await playing(McpDoor((), SECRET, SystemClock(), port=port))
    assert (ended.outcome, "cannot listen" in ended.reason) == (Outcome.UNAVAILABLE, True)


async def test_a_page_of_another_site_is_refused() -> None:
    async with opened() as (_, agent):
        assert (await agent.post(b"{}", Origin="https://elsewhere.example"))[0] == 403
        assert (await agent.post(b"{}", Origin="http://localhost:3000"))[0] == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"[]", -32600),
        (b"{}", -32600),
        (b"[" * 50_000, -32700),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next_turn","arguments":{"wait_s":"9"}}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"next_turn","arguments":{"wait_s":51}}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}', -32022),
    ],
)
async def test_messages_that_do_not_hold_are_refused_by_code(body: bytes, code: int) -> None:
    async with opened() as (_, agent):
        _, said = await agent.post(body)
    assert said["error"]["code"] == code


async def test_ping_get_and_unknown_versions() -> None:
    async with opened() as (_, agent):
        assert (await agent.ask("ping"))["result"] == {}
        assert (await agent.post(b"{}", MCP_Protocol_Version="1900-01-01"))[0] == 400
        async with agent.http.get(agent.url, headers=agent.headers) as response:
            assert response.status == 405


async def test_a_token_that_an_agent_repeats_is_not_kept() -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        await agent.use("next_turn", wait_s=1)
        await agent.use("quote", a=token_of(SECRET, RUN))
        await agent.use("answer", decision={})
        ended = await turn
    assert token_of(SECRET, RUN) not in repr(ended)


async def test_a_port_that_is_taken_is_said() -> None:
    async with opened() as (door, _):
        port = int(door.url_of(RUN).split(":")[2].split("/")[0])
        with pytest.raises(RefereeError, match=f"cannot listen on port {port}"):
            await McpDoor((), SECRET, SystemClock(), port=port).open()


def test_a_short_secret_is_refused_and_each_run_has_its_own_token() -> None:
    with pytest.raises(ValueError, match="16 characters or more"):
        McpDoor((), "short", SystemClock())
    assert token_of(SECRET, "a") != token_of(SECRET, "b")
    assert NEXT_TURN.name != ANSWER.name


async def test_a_door_listens_where_its_address_says() -> None:
    async with opened() as (door, _):
        port = int(door.url_of(RUN).split(":")[2].split("/")[0])
    door = McpDoor.at(Address(f"http://127.0.0.1:{port}", SECRET), (), SystemClock())
    await door.open()
    assert door.url_of("r") == f"http://127.0.0.1:{port}/mcp/r"
    await door.close()


# --- who is let in, and until when ------------------------------------------------------------------------------------


async def test_a_run_that_nobody_plays_is_refused_and_the_played_ones_are_named() -> None:
    async with opened() as (door, agent):
        agent.url = door.url_of("w9-nobody-1")
        agent.headers["Authorization"] = f"Bearer {token_of(SECRET, 'w9-nobody-1')}"
        status, said = await agent.post(b"{}")
    assert status == 404 and RUN in said


async def test_an_agent_may_come_before_the_first_turn_and_is_told_the_end_after_the_last() -> None:
    async with opened() as (door, agent):
        assert await agent.use("next_turn", wait_s=0) == ({"waiting": True}, True)
        closing = asyncio.ensure_future(door.close())
        await asyncio.sleep(0)
        assert await agent.use("next_turn", wait_s=0) == ({"over": True}, True)
        await closing


async def test_a_handshake_agrees_on_a_revision_whatever_its_header_says() -> None:
    async with opened() as (_, agent):
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2099-01-01"}}).encode()
        status, said = await agent.post(asked, MCP_Protocol_Version="2099-01-01")
        assert (status, said["result"]["protocolVersion"]) == (200, "2025-11-25")
        assert (await agent.post(b'{"jsonrpc":"2.0","id":2,"method":"ping"}', MCP_Protocol_Version="2099-01-01"))[0] == 400


@pytest.mark.parametrize(("version", "status"), [(None, 200), ("2025-03-26", 200), ("2024-11-05", 200), ("2025-06-18", 400), ("2026-07-28", 400)])
async def test_batches_are_answered_in_the_revision_that_has_them(version: str | None, status: int) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 2, "method": "nope"}, 7]
    async with opened() as (_, agent):
        got, said = await agent.post(json.dumps(batch).encode(), **({"MCP_Protocol_Version": version} if version else {}))
    assert got == status
    if status == 200:
        assert [(row["id"], "result" in row) for row in said] == [(1, True), (2, False), (None, False)]


@pytest.mark.parametrize("decision", [{"decision": DECISION}, {"decision": json.dumps(DECISION)}, DECISION])
@pytest.mark.parametrize("as_text", [False, True])
async def test_an_answer_is_taken_as_object_and_as_text(decision: dict, as_text: bool) -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        await agent.use("next_turn", wait_s=1)
        await agent.ask("tools/call", name="answer", arguments=json.dumps(decision) if as_text else decision)
        ended = await turn
    assert (ended.outcome, json.loads(ended.answer)) == (Outcome.ANSWERED, DECISION)


@pytest.mark.parametrize("arguments", ["{", "[]", '{"decision":' * 990 + "1" + "}" * 990])
async def test_an_answer_that_cannot_be_read_leaves_the_turn_open(arguments: str) -> None:
    async with opened() as (door, agent):
        turn = playing(door)
        await agent.use("next_turn", wait_s=1)
        said = (await agent.ask("tools/call", name="answer", arguments=arguments))["result"]
        assert said["isError"] and "arguments_not" in said["content"][0]["text"]
        assert (await agent.use("answer", decision=DECISION))[1]
        assert (await turn).outcome == Outcome.ANSWERED
