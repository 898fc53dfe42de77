"""The HTTP door: the deadline ends every exchange, transport faults alone are tried again, keys are never kept."""

import asyncio
import json
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from aiohttp import web

from harnesses.address import Address
from harnesses.blot import BLOT
from harnesses.catalog import endpoint_of, http_door
from harnesses.endpoint import StepLimits, Wire
from harnesses.http import RETRY_AFTER_MS_MAX, WITHHELD, TransportFault, retry_after_ms
from harnesses.provider import LimitSpent, ProviderFault
from ledgers.clock import SystemClock
from tests.harnesses.test_openai_chat import DONE, chunk, completion
from tests.harnesses.wire import ASKED, KEY, complete, manifest, serving, status, stream, whole

FINE = whole(completion({"content": "x"}))
ESCAPED_KEY = "".join(f"\\u{ord(letter):04x}" for letter in KEY).encode()
NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize(
    "answer",
    [stream(chunk({"content": "a"}), drip=True), stream(hang=True), stream(chunk({"content": "a"}), hang=True)],
    ids=["drip", "silence", "stall"],
)
async def test_a_slow_drip_cannot_outlast_the_deadline(answer) -> None:
    wire = Wire()
    async with serving(answer) as server:
        with pytest.raises(LimitSpent) as spent:
            await complete(server, wire=wire, deadline_ms=150)
    assert spent.value.limit == "time"
    assert len(server.bodies) <= 1, "a spent deadline is not tried again"
    assert json.loads(wire.request)["model"] == "m-1"


async def test_headers_that_drip_cannot_outlast_it_either() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for letter in b"HTTP/1.1 200 OK\r\n" + b"x-more: y\r\n" * 10_000:
                writer.write(bytes([letter]))
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            pass
        finally:
            writer.close()

    slow = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with slow:
        here = Address(f"http://127.0.0.1:{slow.sockets[0].getsockname()[1]}", KEY)
        with pytest.raises(LimitSpent, match="before the provider sent anything"):
            await complete(None, address=here, deadline_ms=150)


async def test_a_refusal_whose_words_never_end_is_still_a_refusal() -> None:
    async def endless(request):
        response = web.StreamResponse(status=429, headers={"Retry-After": "600"})
        await response.prepare(request)
        while True:
            await response.write(b"wait ")
            await asyncio.sleep(0.05)

    async with serving(endless) as server:
        with pytest.raises(TransportFault, match="http 429: wait"):
            await complete(server)


async def cut_off(answer) -> Wire:
    """The wire of an exchange that is cut off as soon as anything came."""
    wire = Wire()
    async with serving(answer) as server:
        asking = asyncio.ensure_future(complete(server, wire=wire, deadline_ms=60_000))
        while not wire.answer:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
    return wire


async def test_what_came_before_an_exchange_was_cut_off_is_kept() -> None:
    wire = await cut_off(stream(chunk({"content": "a"}), drip=True))
    assert b'"content": "a"' in wire.kept()


async def test_retry_after_is_honoured_and_recorded_as_wait() -> None:
    wire = Wire()
    async with serving(status(429, {"error": {"message": "slow down"}}, retry_after_ms="120"), FINE) as server:
        assert (await complete(server, wire=wire)).text == "x"
    assert len(server.bodies) == 2 and server.bodies[0] == server.bodies[1]
    (failed,) = wire.attempts
    assert failed.reason.startswith("http 429: ") and b"slow down" in failed.answer
    assert failed.wait_ms >= 120 and wire.wait_ms >= failed.wait_ms


async def test_a_retry_after_longer_than_the_turn_is_unavailable_at_once_and_not_waited_for() -> None:
    wire = Wire()
    async with serving(status(429, {}, retry_after="600")) as server:
        with pytest.raises(TransportFault, match="http 429"):
            await complete(server, wire=wire)
    assert (len(server.bodies), wire.wait_ms < 1_000, len(wire.attempts)) == (1, True, 1)


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 529])
async def test_transport_faults_are_tried_again_as_often_as_the_manifest_says(code: int) -> None:
    wire = Wire()
    async with serving(status(code, b"busy")) as server:
        with pytest.raises(TransportFault, match=f"http {code}: busy"):
            await complete(server, wire=wire)
    assert (len(server.bodies), len(wire.attempts)) == (3, 3)
    assert bytes(wire.answer) == b"busy"


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 409, 422])
async def test_a_refusal_is_not_tried_again(code: int) -> None:
    async with serving(status(code, {"error": "no"}, Location="http://127.0.0.1:1/")) as server:
        with pytest.raises(ProviderFault, match=f"http {code}"):
            await complete(server)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "cut",
    [
        stream(chunk({"content": "a"}), drop=True),
        stream(chunk({"content": "a"})),
        stream(b'data: {"choices": [{"index": 0, "delta": {"content": "a"'),
        stream(),
        status(200, b""),
        whole(b'{"choices": [{"message": {"conte'),
        whole(b'{"choices": [{"message": {}}]'),
    ],
    ids=[
        "connection lost",
        "no stop",
        "inside an event",
        "no event",
        "nothing",
        "inside a text",
        "before the last bracket",
    ],
)
async def test_an_answer_that_was_cut_off_is_tried_again_and_never_taken_for_whole(cut) -> None:
    wire = Wire()
    async with serving(cut, FINE) as server:
        assert (await complete(server, wire=wire)).text == "x"
    assert len(wire.attempts) == 1


async def test_nobody_there_is_a_transport_fault() -> None:
    async with serving(FINE) as server:
        pass
    with pytest.raises(TransportFault, match="connection: ConnectError"):
        await complete(server)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"code": 502, "message": "upstream"}},
        {"error": {"type": "overloaded_error"}},
        {"error": {"code": "rate_limit_exceeded"}},
    ],
)
async def test_an_outage_said_inside_an_answer_is_one(said: dict) -> None:
    async with serving(whole(said), stream(said), FINE) as server:
        assert (await complete(server)).text == "x"
    assert len(server.bodies) == 3


async def test_an_error_inside_an_answer_is_a_fault_with_its_words() -> None:
    async with serving(stream({"error": {"type": "invalid_request_error", "message": "bad \x1b[31mtool"}})) as server:
        with pytest.raises(ProviderFault, match="invalid_request_error: bad"):
            await complete(server)
    assert len(server.bodies) == 1


async def test_a_huge_answer_is_left_off() -> None:
    async with serving(stream(b": " + b"x" * 17_000_000)) as server:
        with pytest.raises(ProviderFault, match="more than 16777216 bytes"):
            await complete(server, deadline_ms=60_000)


async def test_an_answer_in_another_encoding_is_a_fault() -> None:
    async with serving(whole(b"\x1f\x8b" + b"0" * 20, Content_Encoding="gzip")) as server:
        with pytest.raises(ProviderFault, match="encoding"):
            await complete(server)


async def test_waiting_for_a_slot_is_recorded_apart() -> None:
    async def slow(request):
        await asyncio.sleep(0.15)
        return await FINE(request)

    held = manifest("local-1")
    async with serving(slow) as server:
        door = http_door(held, server.address, SystemClock())
        wires = [Wire(), Wire()]
        await asyncio.gather(
            *(endpoint_of(held, "m-1", door).complete(ASKED, (), StepLimits(9, 5_000), wire) for wire in wires)
        )
        await door.close()
    assert min(wire.wait_ms for wire in wires) < 100 <= max(wire.wait_ms for wire in wires)


# --- secrets ----------------------------------------------------------------------------------------------------------


async def test_a_key_that_a_server_repeats_is_blotted_everywhere() -> None:
    wire = Wire()
    said = completion(
        {
            "content": f"key {KEY}",
            "tool_calls": [{"id": KEY, "type": "function", "function": {"name": KEY, "arguments": f'{{"k":"{KEY}"}}'}}],
        },
        model=KEY,
    )
    async with serving(status(429, {"error": f"limit of {KEY}"}), whole(said)) as server:
        reply = await complete(server, wire=wire)
    assert KEY not in repr(reply) + repr(wire.kept()) + repr(wire.attempts) and BLOT in wire.kept()


async def test_a_key_repeated_in_a_refusal_stands_in_no_message() -> None:
    async with serving(status(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})) as server:
        with pytest.raises(ProviderFault) as fault:
            await complete(server)
    assert KEY not in str(fault.value) and "Incorrect API key" in str(fault.value)


@pytest.mark.parametrize(
    "answer",
    [
        whole({"error": {"message": KEY, "type": KEY, "code": f"{'x' * 70}{KEY}"}}),
        stream(b'data: {"error": "' + ESCAPED_KEY + b'"}\n\n'),
        status(400, ESCAPED_KEY.decode()),
    ],
    ids=["whole", "stream", "refusal"],
)
async def test_a_key_repeated_in_an_error_stands_in_no_message(answer) -> None:
    wire = Wire()
    async with serving(answer) as server:
        with pytest.raises(ProviderFault) as fault:
            await complete(server, wire=wire)
    told = str(fault.value) + repr(wire.kept()) + repr(wire.attempts)
    assert KEY[:10] not in told and repr(ESCAPED_KEY[:24])[2:-1] not in told


async def test_a_key_repeated_in_escapes_is_blotted_too() -> None:
    inner = f'{{"note": "{ESCAPED_KEY.decode()}"}}'
    wire = Wire()
    async with serving(whole(completion({"content": inner}))) as server:
        reply = await complete(server, wire=wire)
    assert reply.text == '{"note": "[secret]"}' and BLOT in wire.kept()


async def test_a_key_repeated_in_pieces_leaves_no_pieces() -> None:
    wire = Wire()
    async with serving(stream(*(chunk({"content": letter}) for letter in KEY), chunk({}, "stop"), DONE)) as server:
        reply = await complete(server, wire=wire)
    kept = [
        json.loads(line.removeprefix(b"data: ")) for line in wire.kept().splitlines() if line.startswith(b"data: {")
    ]
    assert reply.text == "".join(event["choices"][0]["delta"].get("content", "") for event in kept) == BLOT.decode()


async def test_a_key_once_whole_and_once_in_pieces_leaves_no_pieces() -> None:
    wire = Wire()
    async with serving(
        stream(chunk({"content": KEY}), *(chunk({"content": letter}) for letter in KEY), chunk({}, "stop"), DONE)
    ) as server:
        reply = await complete(server, wire=wire)
    assert (reply.text, wire.kept().count(BLOT)) == (2 * BLOT.decode(), 2)
    assert b'"content": "s"' not in wire.kept() and b'"content": "k"' not in wire.kept()


async def test_a_key_in_pieces_that_cannot_be_told_apart_leaves_nothing() -> None:
    """Two calls whose pieces come by turns: under one name they make no secret, but each makes one."""
    def pieces(place: int, name: str = "") -> dict:
        return {
            "tool_calls": [
                {"index": index, "function": {"arguments": KEY[place], **({"name": name} if name else {})}}
                for index in (0, 1)
            ]
        }

    wire = Wire()
    async with serving(
        stream(
            chunk(pieces(0, "quote")),
            *(chunk(pieces(place)) for place in range(1, len(KEY))),
            chunk({}, "tool_calls"),
            DONE,
        )
    ) as server:
        reply = await complete(server, wire=wire)
    assert [call.arguments_text for call in reply.tool_calls] == [BLOT.decode()] * 2 and wire.kept() == WITHHELD


async def test_a_key_in_pieces_of_an_exchange_that_broke_is_blotted_too() -> None:
    wire = Wire()
    async with serving(stream(*(chunk({"content": letter}) for letter in KEY), drop=True), FINE) as server:
        assert (await complete(server, wire=wire)).text == "x"
    (broken,) = wire.attempts
    assert BLOT in broken.answer and b'"content": "k"' not in broken.answer


@pytest.mark.parametrize(
    "answer",
    [
        whole({"error": {"message": f"maximum context length of {KEY}"}}),
        status(400, {"error": f"maximum context length of {KEY[:9]}"}),
    ],
    ids=["inside", "refusal"],
)
async def test_a_key_in_a_limit_that_a_host_tells_stands_in_no_message(answer) -> None:
    async with serving(answer) as server:
        with pytest.raises(LimitSpent, match="maximum context length") as spent:
            await complete(server)
    assert KEY[:8] not in str(spent.value)


async def test_a_key_that_is_cut_off_is_blotted_too() -> None:
    wire = await cut_off(stream(b'data: {"choices": "' + KEY[:-3].encode(), hang=True))
    assert KEY[:12].encode() not in wire.kept() and wire.kept().endswith(BLOT)


def test_an_address_shows_neither_part_of_itself() -> None:
    address = Address("https://user:passw0rd-long@host/v1?key=abcdefgh12345", KEY)
    assert "host" not in repr(address) and KEY not in repr(address)
    assert address.path("messages") == "https://user:passw0rd-long@host/v1/messages?key=abcdefgh12345"
    told = address.blotted_text(f"asked https://user:passw0rd-long@host/v1/messages?key=abcdefgh12345 with {KEY}")
    assert not any(secret in told for secret in ("passw0rd-long", "abcdefgh12345", KEY))


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://h:1", "http://h:1/v1/x"),
        ("http://h/", "http://h/v1/x"),
        ("http://h/v2/", "http://h/v2/x"),
        ("http://h?a=1", "http://h/v1/x?a=1"),
    ],
)
def test_a_bare_host_means_the_first_version(url: str, asked: str) -> None:
    assert Address(url).path("x") == asked


def test_words_of_an_address_and_short_keys_are_no_secrets() -> None:
    address = Address("http://host/openai-compatible-endpoint/v1", "none")
    assert address.blotted(b"none of the openai-compatible-endpoint") == b"none of the openai-compatible-endpoint"


# --- Retry-After ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "asked_ms"),
    [
        ({"retry-after": "2"}, 2_000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "70", "retry-after": "9"}, 70),
        ({"retry-after": format_datetime(datetime.fromtimestamp(NOW_MS / 1_000 + 3, UTC), usegmt=True)}, 3_000),
        ({"retry-after": format_datetime(datetime.fromtimestamp(NOW_MS / 1_000 - 3, UTC), usegmt=True)}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "1e300"}, 0),
        ({"retry-after": "99999999"}, RETRY_AFTER_MS_MAX),
        ({}, 0),
    ],
)
def test_retry_after_in_every_form(headers: dict, asked_ms: int) -> None:
    assert retry_after_ms(headers, NOW_MS) == asked_ms


