"""A simulation's answer is read whole or is a fault; what a node refuses has a name, and none of them is "unprovable" (design §6)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from eth_abi import encode
from eth_utils import keccak

from chain import calldata
from chain.header import Header
from chain.network import load_network
from chain.router import Tx
from chain.rpc import RpcRefused
from chain.simulate import (
    ETH_MAX,
    GAS_PER_LOG_MIN,
    NATIVE_LOG,
    READER,
    REFUSALS,
    TRANSFER_TOPIC,
    CallAnswer,
    Simulation,
    SimulationRefused,
    SlotWrite,
    answered,
    lens_of,
    logged_by,
    logged_net,
    refusal_word,
    revert_word,
)
from chain.trade import UNPROVABLE
from ledgers.errors import ChainFault

NETWORK = load_network("devnet")
PIN = Header(block=100, block_hash="0x" + "ab" * 32, ts_s=1_790_000_100, base_fee_wei=10_000_000)
WALLET, TOKEN = "0x" + "a1" * 20, "0x" + "70" * 20
GAS_LIMIT = 100_000


def simulation(blocks: int = 2, calls: int = 2) -> Simulation:
    """So many blocks of so many calls."""
    built = Simulation(NETWORK, PIN)
    for _ in range(blocks):
        built.block(balances_wei={WALLET: 10**18})
        for _ in range(calls):
            built.send(WALLET, Tx(TOKEN, "0x12", GAS_LIMIT))
    return built


def a_call(**changes: Any) -> dict[str, Any]:
    return {"status": "0x1", "gasUsed": "0x5208", "returnData": "0x", "logs": [], **changes}


def answer_to(built: Simulation) -> list[dict[str, Any]]:
    """The answer that an honest node gives."""
    blocks = []
    for block in built.blocks:
        header = block["blockOverrides"]
        shown = {"number": header["number"], "timestamp": header["time"], "baseFeePerGas": header["baseFeePerGas"]}
        blocks.append({**shown, "calls": [a_call() for _ in block["calls"]]})
    return blocks


def altered(change) -> tuple[Simulation, Any]:
    built = simulation()
    answer = answer_to(built)
    replaced = change(answer)
    return built, answer if replaced is None else replaced


# --- asking ---------------------------------------------------------------------------------------------------------


def test_a_request_pins_the_block_by_hash_and_validates():
    method, (body, base) = simulation().request()
    assert (method, base) == ("eth_simulateV1", {"blockHash": PIN.block_hash})
    assert (body["validation"], body["traceTransfers"]) == (True, True)


def test_block_number_time_and_base_fee_are_set_in_every_block():
    headers = [block["blockOverrides"] for block in simulation(blocks=3).blocks]
    assert [(int(each["number"], 16), int(each["time"], 16)) for each in headers] == [(101 + k, PIN.ts_s + NETWORK.time_step_s + k) for k in range(3)]
    assert {each["baseFeePerGas"] for each in headers} == {hex(PIN.base_fee_wei)}


def test_every_call_has_a_gas_limit_and_pays_the_base_fee_without_a_tip():
    calls = [call for block in simulation().blocks for call in block["calls"]]
    assert {(call["gas"], call["maxFeePerGas"], call["maxPriorityFeePerGas"]) for call in calls} == {(hex(GAS_LIMIT), hex(PIN.base_fee_wei), "0x0")}


def test_reads_are_sent_by_the_reader_so_that_the_wallet_is_not_billed():
    built = simulation(calls=0)
    built.token_balance(TOKEN, WALLET)
    built.eth_balance(WALLET)
    assert {call["from"] for call in built.blocks[-1]["calls"]} == {READER}
    assert all(READER in block["stateOverrides"] for block in built.blocks)


def test_a_token_is_asked_by_a_lens_of_its_own_under_which_it_can_write_nothing():
    built = simulation(calls=0)
    built.token_balance(TOKEN, WALLET)
    (call,) = built.blocks[-1]["calls"]
    lens, code = lens_of(TOKEN)
    assert (call["to"], call["data"]) == (lens, calldata.balance_of(WALLET)) and lens != lens_of(WALLET)[0]
    assert built.blocks[-1]["stateOverrides"][lens] == {"code": code} and TOKEN[2:] + "5afa" in code


def test_overrides_of_one_address_are_joined_and_slots_padded():
    built = Simulation(NETWORK, PIN)
    built.block(balances_wei={TOKEN: 5}, writes=[SlotWrite(TOKEN, "0x01", 7), SlotWrite(TOKEN, "0x02", 8)], code={TOKEN: "0x00"})
    override = built.blocks[0]["stateOverrides"][TOKEN]
    assert override == {"balance": "0x5", "code": "0x00", "stateDiff": {"0x01": "0x" + calldata.word(7), "0x02": "0x" + calldata.word(8)}}


# --- reading --------------------------------------------------------------------------------------------------------


def test_a_whole_answer_is_read():
    built, answer = altered(lambda answer: answer[1]["calls"].__setitem__(1, a_call(returnData="0x" + calldata.word(5))))
    done = built.read(answer)
    assert (done[1, 1].ok, done[1, 1].gas_used, done.amount((1, 1), 10)) == (True, 21_000, 5)


def test_fields_that_newer_nodes_add_are_passed_over():
    built, answer = altered(lambda answer: [block | {"hash": "0x"} | {"calls": [call | {"maxUsedGas": "0x1"} for call in block["calls"]]} for block in answer])
    assert built.read(answer)[0, 0].ok


BAD_SHAPES = {
    "null": lambda answer: "null",
    "an object": lambda answer: {"calls": []},
    "no blocks": lambda answer: [],
    "a block missing": lambda answer: answer[:1],
    "a block too many": lambda answer: [*answer, answer[0]],
    "blocks swapped": lambda answer: answer[::-1],
    "a block that is none": lambda answer: [answer[0], 5],
    "calls missing": lambda answer: answer[0].pop("calls") and None,
    "calls that are none": lambda answer: answer[0].update(calls="two"),
    "a call missing": lambda answer: answer[0]["calls"].pop() and None,
    "a call too many": lambda answer: answer[0]["calls"].append(a_call()),
    "a call that is none": lambda answer: answer[0]["calls"].__setitem__(0, None),
    "another block number": lambda answer: answer[0].update(number=hex(PIN.block)),
    "another time": lambda answer: answer[1].update(timestamp=hex(PIN.ts_s)),
    "another base fee": lambda answer: answer[1].update(baseFeePerGas="0x0"),
    "no block number": lambda answer: answer[0].pop("number") and None,
}

BAD_CALLS = {
    "status absent": lambda call: call.pop("status"),
    "status a number": lambda call: call.update(status=1),
    "status unknown": lambda call: call.update(status="0x2"),
    "status a list": lambda call: call.update(status=["0x1"]),
    "logs absent": lambda call: call.pop("logs"),
    "logs null": lambda call: call.update(logs=None),
    "gas absent": lambda call: call.pop("gasUsed"),
    "gas no number": lambda call: call.update(gasUsed="lots"),
    "gas over the limit": lambda call: call.update(gasUsed=hex(GAS_LIMIT + 1)),
    "more logs than gas pays for": lambda call: call.update(logs=[{}] * (GAS_LIMIT // GAS_PER_LOG_MIN + 1)),
    "worked and failed": lambda call: call.update(error={"code": 3, "message": "execution reverted"}),
}

BAD_DATA = {
    "absent, null": {"returnData": None},
    "no hex": {"returnData": "0xzz"},
    "half a byte": {"returnData": "0x123"},
    "blanks": {"returnData": "0x12 34"},
    "a number": {"returnData": 5},
    "error data no hex": {"status": "0x0", "error": {"code": 3, "data": "Reverted"}},
}


@pytest.mark.parametrize("change", BAD_SHAPES.values(), ids=BAD_SHAPES.keys())
def test_an_answer_of_another_shape_is_a_fault(change):
    built, answer = altered(change)
    with pytest.raises(ChainFault) as caught:
        built.read(answer)
    assert caught.value.reason == "bad_answer"


@pytest.mark.parametrize("change", BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_a_call_that_is_not_told_whole_is_a_fault(change):
    built, answer = altered(lambda answer: change(answer[1]["calls"][0]) and None)
    with pytest.raises(ChainFault) as caught:
        built.read(answer)
    assert caught.value.reason == "bad_answer"


@pytest.mark.parametrize("data", BAD_DATA.values(), ids=BAD_DATA.keys())
def test_return_data_that_is_no_data_is_a_fault(data):
    built, answer = altered(lambda answer: answer[0]["calls"][0].update(data))
    with pytest.raises(ChainFault) as caught:
        _ = built.read(answer)[0, 0].data
    assert caught.value.reason == "bad_answer"


def test_gas_up_to_the_limit_and_logs_that_gas_pays_for_are_no_fault():
    full = a_call(gasUsed=hex(GAS_LIMIT), logs=[{}] * (GAS_LIMIT // GAS_PER_LOG_MIN))
    built, answer = altered(lambda answer: answer[0]["calls"].__setitem__(0, full))
    assert built.read(answer)[0, 0].gas_used == GAS_LIMIT


def test_an_eth_balance_below_the_bound_is_read_and_one_at_it_is_absurd():
    built, answer = altered(lambda answer: answer[0].update(calls=[a_call(returnData="0x" + calldata.word(value)) for value in (ETH_MAX - 1, ETH_MAX)]))
    done = built.read(answer)
    assert done.eth_wei((0, 0)) == ETH_MAX - 1
    with pytest.raises(ChainFault, match="absurd_amount"):
        done.eth_wei((0, 1))


@pytest.mark.parametrize("call", [a_call(status="0x0"), a_call(), a_call(returnData="0x12")])
def test_an_eth_balance_that_cannot_be_read_is_the_nodes_fault_a_token_balance_the_tokens_answer(call):
    built, answer = altered(lambda answer: answer[0]["calls"].__setitem__(0, call))
    done = built.read(answer)
    with pytest.raises(ChainFault):
        done.eth_wei((0, 0))
    with pytest.raises(LookupError):
        done.amount((0, 0), 2**256)


# --- reverts, in the shapes of several nodes ------------------------------------------------------------------------

MESSAGE = "0x08c379a0" + encode(["string"], ["not today"]).hex()
PANIC = "0x" + keccak(text="Panic(uint256)")[:4].hex() + calldata.word(0x11)
CUSTOM = "0x" + keccak(text="TooLittle(uint256)")[:4].hex() + calldata.word(5)
WORDS = {MESSAGE: "reverted: not today", PANIC: "reverted: panic 0x11", CUSTOM: f"reverted: {CUSTOM[:10]}", "0x": "reverted without a reason"}


def reverted_in_shapes(data: str) -> dict[str, dict[str, Any]]:
    """The same revert as several nodes tell it."""
    return {
        "returnData only": a_call(status="0x0", returnData=data, error={"code": -3200, "message": "execution failed"}),
        "code 3 with data": a_call(status="0x0", error={"code": 3, "message": "execution reverted", "data": data}),
        "code -32000 with data": a_call(status="0x0", error={"code": -32000, "message": "execution reverted", "data": data}),
        "both": a_call(status="0x0", returnData=data, error={"code": 3, "message": "execution reverted", "data": data}),
        "error data empty": a_call(status="0x0", returnData=data, error={"code": 3, "message": "execution reverted", "data": "0x"}),
        "error data null": a_call(status="0x0", returnData=data, error={"code": 3, "message": "execution reverted", "data": None}),
        "no error at all": a_call(status="0x0", returnData=data),
    }


@pytest.mark.parametrize(("data", "word"), WORDS.items())
def test_every_nodes_shape_of_a_revert_gives_the_same_word(data, word):
    found = set()
    for call in reverted_in_shapes(data).values():
        built, answer = altered(lambda answer, call=call: answer[0]["calls"].__setitem__(0, copy.deepcopy(call)))
        done = built.read(answer)[0, 0]
        assert not done.ok
        found.add(revert_word(done))
    assert found == {word}


def test_a_revert_word_is_short_and_harmless():
    hostile = "0x08c379a0" + encode(["string"], ["\x1b[31m\u202e\n" + "x" * 500]).hex()
    word = revert_word(CallAnswer(False, 0, a_call(status="0x0", returnData=hostile)))
    assert len(word) <= 100 and word.isascii() and word.isprintable()


def test_logs_of_a_reverted_call_are_none():
    built, answer = altered(lambda answer: answer[0]["calls"].__setitem__(0, a_call(status="0x0", logs=[native_log(WALLET, TOKEN, 5)])))
    assert logged_net(built.read(answer)[0, 0], NATIVE_LOG, WALLET) == 0


# --- request-level errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "word"), REFUSALS.items())
def test_a_request_level_error_maps_by_code(code, word):
    assert refusal_word(RpcRefused(code, "")) == word


@pytest.mark.parametrize(
    ("code", "message", "word"),
    [
        (-32003, "Insufficient funds for gas * price + value", "insufficient_funds"),
        (-32000, "err: insufficient funds for gas * price + value: address 0x…", "insufficient_funds"),
        (-32000, "intrinsic gas too high -- GasFloorMoreThanGasLimit", "intrinsic_gas"),
        (-32000, "header not found", "state_gone"),
        (-32000, "required historical state is not available", "state_gone"),
        (-32603, "BlockOutOfRangeError: block height is 5", "state_gone"),
        (-32000, "Block Out Of Range Error", "state_gone"),
        (-32601, "the method eth_simulateV1 does not exist/is not available", "method_missing"),
        (-32601, "Method not found", "method_missing"),
        (-32000, "something else", "node_error"),
        (12345, "", "node_error"),
    ],
)
def test_a_request_level_error_of_one_code_for_many_is_told_by_its_text(code, message, word):
    assert refusal_word(RpcRefused(code, message)) == word


def test_no_request_level_error_means_unprovable():
    assert UNPROVABLE not in {*REFUSALS.values(), "node_error", "state_gone"}


def test_a_refused_simulation_is_told_by_its_word():
    with pytest.raises(SimulationRefused) as caught:
        answered(simulation(), RpcRefused(-38014, "x"))
    assert caught.value.word == "insufficient_funds"


# --- logs -----------------------------------------------------------------------------------------------------------


def native_log(sender: str, receiver: str, amount: int, emitter: str = NATIVE_LOG) -> dict[str, Any]:
    topics = [TRANSFER_TOPIC, *("0x" + calldata.address_word(each) for each in (sender, receiver))]
    return {"address": emitter, "topics": topics, "data": "0x" + calldata.word(amount)}


def logging(*logs: Any) -> CallAnswer:
    return CallAnswer(True, 0, a_call(logs=list(logs)))


def test_transfers_to_an_owner_count_up_and_from_him_down():
    logs = logging(native_log(TOKEN, WALLET, 50), native_log(WALLET, TOKEN, 8), native_log(WALLET, WALLET, 3), native_log(TOKEN, TOKEN, 1_000))
    assert logged_net(logs, NATIVE_LOG, WALLET) == 42


def test_other_emitters_and_other_logs_do_not_count():
    foreign = native_log(TOKEN, WALLET, 50, emitter=TOKEN)
    nft = native_log(TOKEN, WALLET, 50)
    nft["topics"].append("0x" + calldata.word(1))
    other = {**native_log(TOKEN, WALLET, 50), "topics": ["0x" + "11" * 32, *native_log(TOKEN, WALLET, 50)["topics"][1:]]}
    assert logged_net(logging(foreign, nft, other, {"address": NATIVE_LOG, "topics": [], "data": "0x"}), NATIVE_LOG, WALLET) == 0


@pytest.mark.parametrize("log", [None, 5, {}, {"address": TOKEN}, {"topics": []}, {"address": None, "topics": []}, {**native_log(TOKEN, WALLET, 1), "data": "0xz"}])
def test_a_log_that_is_none_is_a_fault(log):
    with pytest.raises(ChainFault):
        logged_net(logging(log), NATIVE_LOG, WALLET)


def test_a_contract_logged_when_it_did_and_with_the_topic_asked_for():
    answer = logging(native_log(TOKEN, WALLET, 1, emitter=TOKEN.upper().replace("X", "x")))
    topic = "0x" + calldata.address_word(TOKEN)
    assert logged_by(answer, TOKEN) and logged_by(answer, TOKEN, topic)
    assert not logged_by(answer, WALLET) and not logged_by(answer, TOKEN, "0x" + calldata.address_word(WALLET))
    assert not logged_by(logging(None, {}, {"address": TOKEN}), TOKEN)


def test_blocks_that_were_leapt_over_are_no_part_of_an_answer():
    """Geth and Nitro tell of the empty blocks between; anvil does not."""
    network = load_network("devnet")
    simulation = Simulation(network, Header(block=100, block_hash="0x" + "11" * 32, ts_s=1_000, base_fee_wei=7))
    simulation.block(balances_wei={})
    simulation.block(balances_wei={}, leap=(200, 86_400))
    asked = [block["blockOverrides"] for block in simulation.blocks]
    assert [(int(each["number"], 16), int(each["time"], 16)) for each in asked] == [(101, 1_001), (302, 87_402)]
    told = [{"number": each["number"], "timestamp": each["time"], "baseFeePerGas": each["baseFeePerGas"], "calls": []} for each in asked]
    between = [{**told[0], "number": hex(number)} for number in range(102, 302)]
    assert len(simulation.read([told[0], *between, told[1]]).rows) == len(simulation.read(told).rows) == 2
    with pytest.raises(ChainFault, match="bad_answer"):
        simulation.read([told[0], *between])
