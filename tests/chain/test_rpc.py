"""The node door: read-and-simulate methods only, whole answers or a fault, the next lane when one fails, no key shown."""

from __future__ import annotations

import logging
import traceback
import zlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from chain import rpc
from chain.rpc import COOL_DOWN_MS, METHODS, FunctionTransport, Lane, RpcDoor, RpcRefused
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import ChainFault
from tests.onchain.lying import LyingNode, lying_node

KEY = "s3cr3t-k3y-0123456789abcdef"
TWO = [("eth_chainId", []), ("eth_blockNumber", [])]
BLOCK0 = "0x" + "ab" * 32


def row(number: Any, result: Any = "0x1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def door_to(answer: Callable[[Lane, Any], Any], lanes: int = 1, clock: VirtualClock | None = None) -> RpcDoor:
    """A door to nodes played by one function; lanes are named a, b, c."""
    named = [Lane("abc"[index], f"http://node/{'abc'[index]}") for index in range(lanes)]
    return RpcDoor(named, transport=FunctionTransport(answer), clock=clock or VirtualClock())


def http_door(*nodes: LyingNode, deadline_ms: int = 2_000) -> RpcDoor:
    lanes = [Lane(f"lane {index}", node.url) for index, node in enumerate(nodes)]
    return RpcDoor(lanes, clock=SystemClock(), deadline_ms=deadline_ms)


async def faulted(door: RpcDoor, requests=TWO) -> ChainFault:
    with pytest.raises(ChainFault) as caught:
        await door.batch(requests)
    await door.close()
    return caught.value


# --- what may be asked ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    ["eth_sendRawTransaction", "eth_sendTransaction", "eth_sign", "personal_sign", "anvil_setBalance", "evm_mine", "debug_traceCall",
     "admin_addPeer", "ETH_CALL", "eth_call ", ""],
)  # fmt: skip
async def test_anything_but_reading_and_simulating_is_refused_before_it_goes_out(method):
    asked = []
    door = door_to(lambda lane, body: asked.append(body))
    with pytest.raises(PermissionError, match="may not be asked"):
        await door.batch([("eth_chainId", []), (method, [])])
    assert asked == []


def test_no_listed_method_can_send_or_sign():
    assert not [method for method in METHODS if any(word in method.lower() for word in ("send", "sign", "account", "set", "mine"))]


async def test_nothing_asked_asks_nothing():
    assert await door_to(lambda lane, body: pytest.fail("asked")).batch([]) == []


# --- whole answers only ---------------------------------------------------------------------------------------------


async def test_answers_in_any_order_come_back_in_the_order_asked():
    door = door_to(lambda lane, body: [row(each["id"], each["method"]) for each in reversed(body)])
    assert await door.batch(TWO) == ["eth_chainId", "eth_blockNumber"]


def ids(*picks: int):
    """Answer a batch with the ids of these places."""
    return lambda lane, body: [row(body[pick]["id"]) for pick in picks]


BAD_BATCHES = {
    "partly answered": ids(0),
    "doubled": ids(0, 0),
    "answered twice over": ids(0, 1, 1),
    "nothing": lambda lane, body: [],
    "foreign id": lambda lane, body: [row(body[0]["id"]), row(10**9)],
    "ids as text": lambda lane, body: [row(str(each["id"])) for each in body],
    "ids as floats": lambda lane, body: [row(float(each["id"])) for each in body],
    "no ids": lambda lane, body: [{"jsonrpc": "2.0", "result": "0x1"} for _ in body],
    "null ids": lambda lane, body: [row(None) for _ in body],
    "rows that are no objects": lambda lane, body: ["0x1", "0x2"],
    "neither result nor error": lambda lane, body: [{"id": each["id"]} for each in body],
    "error null and no result": lambda lane, body: [{"id": each["id"], "error": None} for each in body],
    "both result and error": lambda lane, body: [{**row(each["id"]), "error": {"code": 3, "message": ""}} for each in body],
    "an object instead of a list": lambda lane, body: row(body[0]["id"]),
    "cut": lambda lane, body: orjson.dumps([row(each["id"]) for each in body])[:-5],
    "empty": lambda lane, body: b"",
    "not JSON": lambda lane, body: b"<html>bad gateway</html>",
    "not UTF-8": lambda lane, body: b'[{"id": "\xff\xfe"}]',
    "nested without end": lambda lane, body: b"[" * 100_000,
    "a number too large": lambda lane, body: b'[{"id": 1e999, "result": 1}, {"id": 2, "result": 1}]',
}


@pytest.mark.parametrize("answer", BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
async def test_a_batch_answered_wrongly_is_a_fault(answer):
    assert (await faulted(door_to(answer))).reason == "bad_answer"


async def test_ids_of_an_earlier_batch_are_foreign():
    seen: list[Any] = []

    def replay(lane, body):
        seen.append(body)
        return [row(each["id"]) for each in seen[0]]

    door = door_to(replay)
    await door.batch(TWO)
    assert (await faulted(door)).reason == "bad_answer"


async def test_a_null_result_is_an_answer():
    assert await door_to(lambda lane, body: row(body["id"], None)).call("eth_blockNumber", []) is None


async def test_a_nodes_own_refusal_stands_in_its_place():
    refusal = {"code": -32000, "message": "header not found", "data": "0x12"}
    door = door_to(lambda lane, body: [row(body[0]["id"]), {"id": body[1]["id"], "error": refusal}])
    answer, refused = await door.batch(TWO)
    assert (answer, refused.code, refused.message, refused.data) == ("0x1", -32000, "header not found", "0x12")


async def test_a_single_question_raises_the_refusal():
    door = door_to(lambda lane, body: {"id": body["id"], "error": {"code": 3, "message": "execution reverted"}})
    with pytest.raises(RpcRefused, match="node error 3"):
        await door.call("eth_call", [])


@pytest.mark.parametrize("error", ["text", 5, [], {}, {"code": "3"}, {"code": 3.5, "message": None}, {"code": True, "data": {}}])
async def test_a_refusal_of_odd_shape_is_still_a_refusal(error):
    (refused,) = await door_to(lambda lane, body: {"id": body["id"], "error": error}).batch(TWO[:1])
    assert isinstance(refused, RpcRefused) and type(refused.code) is int and refused.data is None


async def test_what_a_node_says_is_bounded_and_stripped():
    hostile = "\x1b[31m\u202eevil\n" + "x" * 10_000
    (refused,) = await door_to(lambda lane, body: {"id": body["id"], "error": {"code": 1, "message": hostile}}).batch(TWO[:1])
    assert len(refused.message) <= rpc.MESSAGE_LENGTH_MAX and refused.message.isprintable()


@pytest.mark.parametrize("error", [{"code": -32005, "message": "limit"}, {"code": 429, "message": ""}, {"code": -32000, "message": "Rate limit hit"}])
async def test_too_many_requests_is_the_lanes_fault_not_an_answer(error):
    assert (await faulted(door_to(lambda lane, body: {"id": body["id"], "error": error}), TWO[:1])).reason == "rate_limited"


@pytest.mark.parametrize("message", ["query returned more than 10000 results", "block range too wide", "max fee per gas less than block base fee"])
async def test_a_code_of_several_meanings_is_read_by_its_words(message):
    (refused,) = await door_to(lambda lane, body: {"id": body["id"], "error": {"code": -32005, "message": message}}).batch(TWO[:1])
    assert isinstance(refused, RpcRefused) and refused.code == -32005


@pytest.mark.parametrize("code, message", [(3, "execution reverted: rate limit"), (-32000, "execution reverted: Rate limit hit"), (-32015, "VM: rate limit")])
async def test_a_contract_that_reverts_with_a_nodes_words_is_no_fault_of_the_lane(code, message):
    (refused,) = await door_to(lambda lane, body: {"id": body["id"], "error": {"code": code, "message": message}}).batch(TWO[:1])
    assert isinstance(refused, RpcRefused) and refused.code == code


# --- lanes ----------------------------------------------------------------------------------------------------------


def failing(*bad: str):
    """Nodes of which those named are down."""

    def answer(lane, body):
        if lane.name in bad:
            raise ChainFault("dead", f"lane {lane.name}")
        return [row(each["id"], lane.name) for each in body]

    return answer


async def test_a_lane_that_fails_is_left_for_the_next():
    door = door_to(failing("a"), lanes=3)
    assert await door.batch(TWO) == ["b", "b"]
    assert door.lane == "b"


async def test_no_lane_left_is_a_fault():
    assert (await faulted(door_to(failing("a", "b"), lanes=2))).reason == "dead"


async def test_a_lane_that_failed_is_tried_last_until_it_has_cooled():
    clock, bad = VirtualClock(), ["a"]
    door = door_to(lambda lane, body: failing(*bad)(lane, body), lanes=2, clock=clock)
    await door.batch(TWO)
    bad.clear()
    assert await door.batch(TWO) == ["b", "b"]
    await clock.advance_to(clock.now_ms() + COOL_DOWN_MS)
    assert await door.batch(TWO) == ["a", "a"]


async def test_a_cooling_lane_is_still_asked_when_no_other_is_left():
    bad = ["a", "b"]
    door = door_to(lambda lane, body: failing(*bad)(lane, body), lanes=2)
    with pytest.raises(ChainFault):
        await door.batch(TWO)
    bad.remove("a")
    assert await door.batch(TWO) == ["a", "a"]


async def test_a_distrusted_lane_is_left_for_the_next():
    door = door_to(failing(), lanes=2)
    await door.batch(TWO)
    door.distrust()
    assert await door.batch(TWO) == ["b", "b"]


def with_identity(**identities: tuple[str, str]):
    """Nodes that show a chain id and a block 0 by lane, and answer their own name to everything else."""
    asked: list[tuple[str, str]] = []

    def answer(lane, body):
        rows = []
        for each in body if isinstance(body, list) else [body]:
            asked.append((lane.name, each["method"]))
            chain_id, block0 = identities[lane.name]
            shown = {"eth_chainId": chain_id, "eth_getBlockByNumber": {"hash": block0}}
            rows.append(row(each["id"], shown.get(each["method"], lane.name)))
        return rows if isinstance(body, list) else rows[0]

    return answer, asked


GOOD = ("0x1237", BLOCK0)
OTHERS = [("0x1", BLOCK0), ("0x1237", "0x" + "cd" * 32), ("0x1237", None), (4663, BLOCK0), (None, BLOCK0)]


@pytest.mark.parametrize("identity", OTHERS)
async def test_another_chain_id_or_block_0_is_wrong_identity(identity):
    answer, asked = with_identity(a=identity)
    door = door_to(answer)
    door.expect_identity(4663, BLOCK0)
    assert (await faulted(door, [("eth_gasPrice", [])])).reason == "wrong_identity"
    assert ("a", "eth_gasPrice") not in asked


@pytest.mark.parametrize("identity", OTHERS)
async def test_a_lane_of_another_identity_is_left_for_the_next(identity):
    answer, _ = with_identity(a=identity, b=GOOD)
    door = door_to(answer, lanes=2)
    door.expect_identity(4663, BLOCK0.upper().replace("X", "x"))
    assert await door.call("eth_gasPrice", []) == "b"


async def test_a_lane_is_checked_once_and_again_after_it_faulted():
    answer, asked = with_identity(a=GOOD)
    broken = []
    door = door_to(lambda lane, body: b"" if broken else answer(lane, body))
    door.expect_identity(4663, BLOCK0)
    await door.call("eth_gasPrice", [])
    await door.call("eth_gasPrice", [])
    assert asked.count(("a", "eth_chainId")) == 1
    broken.append(True)
    with pytest.raises(ChainFault):
        await door.call("eth_gasPrice", [])
    broken.clear()
    await door.call("eth_gasPrice", [])
    assert asked.count(("a", "eth_chainId")) == 2


async def test_a_lane_that_comes_back_as_another_chain_is_not_believed():
    identities = {"a": GOOD}
    answer, _ = with_identity(**identities)
    door = door_to(lambda lane, body: with_identity(**identities)[0](lane, body))
    door.expect_identity(4663, BLOCK0)
    await door.call("eth_gasPrice", [])
    door.distrust()
    identities["a"] = OTHERS[1]
    assert (await faulted(door, [("eth_gasPrice", [])])).reason == "wrong_identity"


# --- HTTP -----------------------------------------------------------------------------------------------------------


async def test_a_real_node_is_read_through_a_kept_connection(devnet):
    async with lying_node(devnet.url) as node:
        door = http_door(node)
        chain_id, block = await door.batch(TWO)
        await door.close()
        assert (int(chain_id, 16), int(block, 16)) == (devnet.chain_id, devnet.height)


@pytest.mark.parametrize(("status", "reason"), [(500, "bad_status"), (502, "bad_status"), (429, "rate_limited"), (503, "bad_status"), (401, "bad_status")])
async def test_an_http_error_is_a_fault_whatever_its_body_says(devnet, status, reason):
    async with lying_node(devnet.url) as node:
        node.lie(status=status)
        assert (await faulted(http_door(node))).reason == reason


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(devnet, status):
    async with lying_node(devnet.url) as node, lying_node(devnet.url) as elsewhere:
        node.lie(status=status, headers=(("Location", elsewhere.url),))
        assert (await faulted(http_door(node))).reason == "bad_status"
        assert elsewhere.asked == []


@pytest.mark.parametrize("stop", ["hang", "drip"])
async def test_a_node_that_hangs_or_drips_is_slow(devnet, stop):
    async with lying_node(devnet.url) as node:
        node.lie(stop=stop)
        assert (await faulted(http_door(node, deadline_ms=150))).reason == "slow"


@pytest.mark.parametrize("stop", ["hang_up", "cut"])
async def test_a_node_that_hangs_up_is_dead(devnet, stop):
    async with lying_node(devnet.url) as node:
        node.lie(stop=stop)
        assert (await faulted(http_door(node))).reason == "dead"


@pytest.mark.parametrize("stop", ["hang", "drip", "hang_up", "cut"])
async def test_the_next_lane_answers_for_one_that_does_not(devnet, stop):
    async with lying_node(devnet.url) as bad, lying_node(devnet.url) as good:
        bad.lie(stop=stop)
        door = http_door(bad, good, deadline_ms=600)
        assert int((await door.batch(TWO))[1], 16) == devnet.height
        assert door.lane == "lane 1"
        await door.close()


async def test_a_dead_node_is_dead():
    door = RpcDoor([Lane("gone", "http://127.0.0.1:9/")], clock=SystemClock())
    assert (await faulted(door)).reason == "dead"


async def test_a_body_without_end_is_cut_off(devnet):
    large = b'"' + b"x" * (rpc.ANSWER_BYTES_MAX + 1) + b'"'
    async with lying_node(devnet.url) as node:
        node.lie(rewrite=lambda body: large)
        assert (await faulted(http_door(node, deadline_ms=20_000))).reason == "bad_answer"


async def test_a_packed_body_is_not_unpacked(devnet):
    async with lying_node(devnet.url) as node:
        node.lie(rewrite=zlib.compress, headers=(("Content-Encoding", "deflate"),))
        assert (await faulted(http_door(node))).reason == "bad_answer"


# --- keys -----------------------------------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """Everything that could reach a person."""
    return "".join(traceback.format_exception(error)) + str(error) + repr(error)


@pytest.mark.parametrize("changes", [{"stop": "hang"}, {"stop": "hang_up"}, {"stop": "cut"}, {"status": 500}, {"status": 302}, {"rewrite": lambda body: b"{"}])
async def test_the_key_in_a_lanes_address_is_never_shown(devnet, changes, caplog):
    async with lying_node(devnet.url, f"/v2/{KEY}") as node:
        node.lie(**changes)
        with caplog.at_level(logging.DEBUG):
            error = await faulted(http_door(node, deadline_ms=150))
    assert KEY not in told(error)
    assert KEY not in caplog.text


@pytest.mark.parametrize("url", [f"http://127.0.0.1:9/{KEY}", f"nonsense://{KEY}", f"http://[{KEY}/", f"http://user:{KEY}@127.0.0.1:9/", KEY, f"http://\x00{KEY}"])
async def test_the_key_in_an_address_that_cannot_be_reached_is_never_shown(url):
    error = await faulted(RpcDoor([Lane("gone", url)], clock=SystemClock()))
    assert error.reason == "dead"
    assert KEY not in told(error)


def test_a_lane_shows_its_name_only():
    door = RpcDoor([Lane("main", f"http://node/{KEY}")], clock=VirtualClock())
    assert KEY not in repr(door.lanes) + repr(door.lanes[0].lane) + str(door.lanes[0])


async def test_a_key_that_the_node_repeats_is_blotted_out():
    def echo(lane, body):
        return {"id": body["id"], "error": {"code": -32000, "message": f"project {KEY} is unknown: https://node/v2/{KEY}"}}

    door = RpcDoor([Lane("main", f"https://node/v2/{KEY}")], transport=FunctionTransport(echo), clock=VirtualClock())
    with pytest.raises(RpcRefused) as caught:
        await door.call("eth_gasPrice", [])
    assert KEY not in told(caught.value) and "is unknown" in caught.value.message


# --- packed answers -------------------------------------------------------------------------------------------------

ANY_LANE = Lane("a", "http://node/a")


def packed(body: bytes) -> bytes:
    packing = zlib.compressobj(wbits=31)
    return packing.compress(body) + packing.flush()


def test_a_sound_packed_answer_is_taken_and_a_plain_one_left():
    assert rpc.plain(packed(b'{"a":1}'), "gzip", ANY_LANE) == rpc.plain(packed(b'{"a":1}'), " GZIP ", ANY_LANE) == b'{"a":1}'
    assert rpc.plain(b"{}", "", ANY_LANE) == rpc.plain(b"{}", "identity", ANY_LANE) == b"{}"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(packed(b"{}")[:-3], "gzip"), (packed(b"{}") + b"more", "gzip"), (b"{}", "gzip"), (packed(b"{}"), "br"), (packed(bytes(rpc.ANSWER_BYTES_MAX + 1)), "gzip")],
    ids=["cut off", "more behind it", "not packed", "another way", "a bomb"],
)  # fmt: skip
def test_an_answer_that_cannot_be_unpacked_within_its_bound_is_a_fault(body, encoding):
    with pytest.raises(ChainFault, match="bad_answer"):
        rpc.plain(body, encoding, ANY_LANE)
