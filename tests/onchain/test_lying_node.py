"""A node that is slow, dead, behind, foreign or lying: a recorded fault and no fill, or the next lane; never a guess (design §9, ONC-07, ONC-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from chain import calldata
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, BoardTaken, OrderNotFilled
from tests.onchain.given import outcome, said
from tests.onchain.ground import Run
from tests.onchain.lies import LIES, MANNERS, MUCH, READS_WALLET, REFUSED, SHAPES, Call, OneWord, add, calls, lie, more_ether, tokens_are_much
from tests.onchain.scene import LEAVES, SHORT_DEADLINE_MS, SIMULATE, Scene, fills, scene_on, simulating


@pytest.fixture
async def scene(chain) -> AsyncIterator[Scene]:
    async with scene_on(chain) as opened:
        yield opened


# --- orders ---------------------------------------------------------------------------------------------------------


async def no_fill(scene: Scene, side: str, name: str = "LEAF") -> list[str]:
    """Referee one order; how it ended on each ledger, which is never a fill."""
    before = {ledger: scene.run.book(ledger) for ledger in LEDGERS}
    events = await scene.order(side, name)
    assert fills(events) == []
    assert {ledger: scene.run.book(ledger) for ledger in LEDGERS} == before
    return [said(events, ledger) for ledger in LEDGERS]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("change", LIES.values(), ids=LIES.keys())
async def test_a_simulation_that_contradicts_itself_is_a_fault(scene, change, side):
    scene.node.by(SIMULATE, change)
    assert await no_fill(scene, side) == ["fault", "fault"]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES.keys())
async def test_a_simulation_of_another_shape_or_block_is_a_fault(scene, change, side):
    scene.node.by(SIMULATE, change)
    assert await no_fill(scene, side) == ["fault", "fault"]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
async def test_an_order_that_a_node_does_not_answer_properly_is_a_fault(scene, manner, side):
    scene.node.lie(when=simulating, **manner)
    assert await no_fill(scene, side) == ["fault", "fault"]


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
async def test_an_order_is_filled_by_the_next_lane_as_if_it_were_the_first(scene, manner):
    honest = {side: await scene.honest(side) for side in ("buy", "sell")}
    for side, fill in honest.items():
        scene.reach(*scene.nodes)
        scene.node.lie(when=simulating, **manner)
        twin = scene.run.copy()
        desk = await twin.sit_down()
        scene.be_short(3 * SHORT_DEADLINE_MS)
        (found,) = fills(await twin.order(desk, scene.asked(side)))
        assert (found.arrival_raw, found.gas_wei, found.proven) == (fill.arrival_raw, fill.gas_wei, True)


async def test_tokens_beyond_any_count_are_a_fault(scene):
    scene.node.by(SIMULATE, lie(tokens_are_much))
    assert await no_fill(scene, "buy") == ["fault", "fault"]


async def test_answers_swapped_within_a_batch_are_a_fault(scene):
    def swapped(rows):
        one, other, *rest = rows
        return [{**one, "id": other["id"]}, {**other, "id": one["id"]}, *rest]

    for side in ("buy", "sell"):
        scene.node.lie(rearrange=swapped, when=lambda methods: methods.count(SIMULATE) == len(methods) >= 2)
        assert await no_fill(scene, side) == ["fault", "fault"]


async def test_answers_in_another_order_are_no_lie(scene):
    honest = await scene.honest("sell")
    scene.node.lie(rearrange=lambda rows: rows[::-1])
    (fill,) = fills(await scene.order("sell"))
    assert (fill.arrival_raw, fill.gas_wei) == (honest.arrival_raw, honest.gas_wei)


@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_an_answer_kept_from_an_earlier_block_is_a_fault(scene, side):
    kept: dict[int, Any] = {}

    def replayed(params, blocks):
        size = sum(len(block["calls"]) for block in params[0]["blockStateCalls"])
        return kept.setdefault(size, blocks)

    scene.node.by(SIMULATE, replayed)
    await scene.run.copy().decide(scene.asked(side))
    scene.ground.chain.step(1)
    scene.ground.settle()
    assert await no_fill(scene, side) == ["fault", "fault"]


async def test_a_gate_that_differs_from_its_board_is_a_fault(scene):
    def a_unit_more(params, blocks):
        if len(blocks) == 2:
            for question, answer, swapped in calls(params, blocks):
                if question["data"] == READS_WALLET and swapped:
                    add(answer, 1)
        return blocks

    scene.node.by(SIMULATE, a_unit_more)
    assert await no_fill(scene, "buy") == ["fault", "fault"]


async def test_a_node_that_hangs_between_board_and_gate_is_a_fault(scene):
    simulations = []

    def second(methods):
        simulations.extend(method for method in methods[:1] if method == SIMULATE)
        return SIMULATE in methods and len(simulations) > 1

    scene.node.lie(stop="hang", when=second)
    assert await no_fill(scene, "buy") == ["fault", "fault"]


async def test_a_lane_that_lied_in_one_order_is_left_for_the_next_order(scene):
    scene.reach(*scene.nodes)
    scene.node.by(SIMULATE, lie(more_ether))
    assert await no_fill(scene, "sell") == ["fault", "fault"]
    (fill,) = fills(await scene.order("sell"))
    assert fill.proven and scene.ground.desk.rpc.lane == "lane 1"


# --- what one word, changed everywhere alike, can do ----------------------------------------------------------------


@pytest.mark.parametrize("extra", [1, LEAVES, 10**30])
async def test_more_tokens_told_alike_by_board_and_gate_cannot_be_sold_and_are_refused(scene, extra):
    def more(question, answer, swapped):
        if question["data"] == READS_WALLET and swapped:
            add(answer, extra)

    scene.node.by(SIMULATE, lie(more))
    assert await no_fill(scene, "buy") == ["gate_unknown", "gate_unknown"]


async def test_fewer_tokens_told_alike_are_not_what_running_it_here_brings_and_are_refused(scene):
    def fewer(question, answer, swapped):
        if question["data"] == READS_WALLET and swapped:
            add(answer, -1_000)

    scene.node.by(SIMULATE, lie(fewer))
    assert await no_fill(scene, "buy") == ["gate_unknown", "gate_unknown"]


async def test_tokens_told_to_have_stayed_in_a_sale_leave_the_headline_unsold_and_are_gone_from_permissive(scene):
    def stayed(question, answer, swapped):
        if question["data"] == READS_WALLET and swapped:
            answer["returnData"] = "0x" + calldata.word(LEAVES - 1)

    honest = await scene.honest("sell")
    scene.node.by(SIMULATE, lie(stayed))
    events = await scene.order("sell")
    (fill,) = fills(events)
    assert said(events, HEADLINE) == "unprovable" and scene.run.held("LEAF") == LEAVES
    assert (fill.ledgers, scene.run.held("LEAF", PERMISSIVE)) == ((PERMISSIVE,), 0) and int(fill.arrival_raw) <= int(honest.arrival_raw)


def all_quoters_say(number: int) -> Callable[[list[Any], Any], Any]:
    def say(question, answer, swapped):
        if question["data"][2:10] in (calldata.AMOUNTS_OUT, calldata.QUOTE_V3_SINGLE, calldata.QUOTE_V3_PATH):
            v2 = question["data"][2:10] == calldata.AMOUNTS_OUT
            answer.update(status="0x1", returnData="0x" + "".join(map(calldata.word, [32, 2, 1, number] if v2 else [number, 0, 0, 0])))

    return lie(say)


def more_in_token_logs(question: Call, answer: Call, swapped: bool) -> None:
    for log in answer["logs"]:
        if log["topics"][0] == TRANSFER_TOPIC and log["address"] != NATIVE_LOG:
            log["data"] = "0x" + calldata.word(10**30)


CROSS_CHECKS = {"quoters say little": all_quoters_say(1), "quoters say much": all_quoters_say(MUCH), "token logs say much": lie(more_in_token_logs)}


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("change", CROSS_CHECKS.values(), ids=CROSS_CHECKS.keys())
async def test_a_lying_cross_check_is_flagged_and_moves_no_credit(scene, change, side):
    """Where what an order wrote is not what running it here writes, nobody knows what a buy leaves behind: headline makes none."""
    honest = await scene.honest(side)
    scene.node.by(SIMULATE, change)
    events = await scene.order(side)
    (fill,) = fills(events)
    ledgers = LEDGERS if side == "sell" else (PERMISSIVE,)
    assert side == "sell" or said(events, HEADLINE) == "unprovable_exit"
    assert (fill.arrival_raw, fill.gas_wei, fill.ledgers, fill.entry.postings) == (honest.arrival_raw, honest.gas_wei, ledgers, honest.entry.postings)
    (board,) = [event for event in events if isinstance(event, BoardTaken)]
    assert all(row.flags for row in board.rows)


@pytest.mark.parametrize("number", [MUCH, 2**96])
async def test_a_node_that_cannot_simulate_any_more_makes_no_fill_of_absurd_quotes(scene, number):
    def alter(method, params, row):
        if method == SIMULATE:
            return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32601, "message": "the method does not exist/is not available"}}
        quoting = method == "eth_call" and params[0]["data"][2:10] in (calldata.AMOUNTS_OUT, calldata.QUOTE_V3_SINGLE)
        return {**row, "result": "0x" + "".join(map(calldata.word, [number if params[0]["data"][2:10] != calldata.AMOUNTS_OUT else 32, 2, 1, number]))} if quoting else row

    scene.node.lie(alter=alter)
    assert await no_fill(scene, "buy") == ["fault", "fault"]
    assert await no_fill(scene, "sell") == ["unprovable_no_quote", "unprovable_no_quote"]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("code", REFUSED)
async def test_a_refused_simulation_is_a_fault_and_never_unprovable(scene, code, side):
    def refuse(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": code, "message": "no"}} if method == SIMULATE else row

    scene.node.lie(alter=refuse)
    assert await no_fill(scene, side) == ["fault", "fault"]


# --- any one word ---------------------------------------------------------------------------------------------------

SAID_ONCE = 12
"""Lies per seed."""


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_one_word_changed_brings_a_run_no_more_than_the_truth(scene, seed):
    chance = Random(seed)
    await scene.run.grant("shares", 10**21)
    for _ in range(SAID_ONCE):
        side, name = chance.choice(["buy", "sell"]), chance.choice(["LEAF", "shares"])
        honest, lied = scene.run.copy(), scene.run.copy()
        scene.node.lie()
        scene.reach(scene.node)
        scene.node.asked.clear()
        await honest.decide(scene.asked(side, name))
        scene.node.lie(rewrite=OneWord(chance, 1 + chance.randrange(len(scene.node.asked))))
        scene.reach(scene.node)
        with suppress(ChainFault):
            await lied.decide(scene.asked(side, name))
        assert all(no_more(lied, honest, scene.run, ledger) for ledger in LEDGERS), (side, name, lied.events)


def no_more(lied: Run, honest: Run, before: Run, ledger: str) -> bool:
    """Whether a run came out of an order with nothing, or with no more of anything than it should have."""
    found, true = lied.book(ledger), honest.book(ledger)
    if found == before.book(ledger):
        return True
    tokens = {holding.token for holding in (*found.holdings, *true.holdings)}
    held = [(book.held(token).units_raw if book.held(token) else TokenRaw(0)) for token in sorted(tokens) for book in (found, true)]
    return found.eth_wei <= true.eth_wei and all(mine <= due for mine, due in zip(held[::2], held[1::2], strict=True))


# --- the block to stand on ------------------------------------------------------------------------------------------


async def pin_fault(scene: Scene) -> str:
    with pytest.raises(ChainFault) as caught:
        await scene.ground.desk.pin()
    return caught.value.reason


HEADER_LIES = {
    "free gas": {"baseFeePerGas": "0x0"},
    "cheap gas": {"baseFeePerGas": "0x1"},
    "dear gas": {"baseFeePerGas": hex(10**12)},
    "another block's hash": {"hash": "0x" + "ab" * 32},
    "another number": {"number": "0x7"},
    "no base fee": {"baseFeePerGas": None},
    "a later time": {"timestamp": hex(1_800_000_000)},
}


@pytest.mark.parametrize("changes", HEADER_LIES.values(), ids=HEADER_LIES.keys())
async def test_a_header_that_is_not_what_its_hash_says_is_a_fault(scene, changes):
    scene.node.by("eth_getBlockByNumber", lambda params, block: {**block, **changes})
    assert await pin_fault(scene) in ("bad_answer", "behind")


async def test_the_hash_of_an_older_block_under_a_new_header_is_a_fault(scene):
    old = scene.ground.chain.block_hash(scene.ground.chain.height - 30)
    scene.node.by("eth_getBlockByNumber", lambda params, block: {**block, "hash": old})
    assert await pin_fault(scene) == "bad_answer"


def answering_as(scene: Scene, blocks_behind: int) -> None:
    """Answer every question for the newest block with an older one."""
    chain = scene.ground.chain
    old = chain.node.call("eth_getBlockByNumber", [hex(chain.height - blocks_behind), False])
    scene.node.by("eth_getBlockByNumber", lambda params, block: old if params[0] == "latest" else block)


async def test_a_pin_at_the_limit_of_its_lag_passes_and_a_millisecond_more_is_behind(scene):
    desk = scene.ground.desk
    allowed_ms = desk.rules.pin_lag_ms_max + desk.network.pin_depth * desk.network.block_time_ms + 1_000
    pin = await desk.pin()
    lag_ms = desk.chain_now_ms() - pin.block_ts_s * 1_000
    await scene.ground.clock.advance_to(scene.ground.clock.now_ms() + allowed_ms - lag_ms)
    assert (await desk.pin()).block == pin.block
    await scene.ground.clock.advance_to(scene.ground.clock.now_ms() + 1)
    assert await pin_fault(scene) == "behind"


async def test_a_node_that_answers_with_an_old_block_is_behind(scene):
    answering_as(scene, blocks_behind=10)
    assert await pin_fault(scene) == "behind"


async def test_a_lane_that_is_behind_is_left_for_the_next(scene):
    scene.reach(*scene.nodes)
    answering_as(scene, blocks_behind=10)
    pin = await scene.ground.desk.pin()
    assert (pin.lane, pin.block) == ("lane 1", scene.ground.chain.height - 1)


@pytest.mark.parametrize("answer", [None, 5, [], {}, "0x1"])
async def test_a_block_that_is_none_is_a_fault(scene, answer):
    scene.node.by("eth_getBlockByNumber", lambda params, block: answer)
    assert await pin_fault(scene) in ("bad_answer", "behind")


async def test_a_node_that_does_not_know_the_pinned_block_is_a_fault(scene):
    desk = await scene.run.sit_down()
    scene.ground.chain.mine(70)
    assert said(await scene.run.order(desk, scene.asked("sell"))) == "fault"


# --- identity -------------------------------------------------------------------------------------------------------


def foreign(method: str, params: list[Any], row: dict[str, Any]) -> dict[str, Any]:
    """Another chain with the same blocks but the first."""
    if method == "eth_getBlockByNumber" and params[0] == "0x0":
        return {**row, "result": {**row["result"], "hash": "0x" + "cd" * 32}}
    return row


def other_id(method: str, params: list[Any], row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "result": "0x1"} if method == "eth_chainId" else row


@pytest.mark.parametrize("alter", [foreign, other_id])
async def test_a_node_of_another_identity_is_a_fault_and_the_next_lane_fills(scene, alter):
    chain = scene.ground.chain
    honest = await scene.honest("sell")
    scene.node.lie(alter=alter)
    scene.ground.desk.rpc.expect_identity(chain.chain_id, chain.block_hash(0))
    assert await pin_fault(scene) == "wrong_identity"
    scene.reach(*scene.nodes)
    scene.ground.desk.rpc.expect_identity(chain.chain_id, chain.block_hash(0))
    (fill,) = fills(await scene.order("sell"))
    assert (fill.arrival_raw, scene.ground.desk.rpc.lane) == (honest.arrival_raw, "lane 1")


async def test_a_node_that_becomes_another_chain_between_pin_and_order_is_a_fault(scene):
    chain = scene.ground.chain
    scene.ground.desk.rpc.expect_identity(chain.chain_id, chain.block_hash(0))
    desk = await scene.run.sit_down()
    scene.ground.desk.rpc.distrust()
    scene.node.lie(alter=foreign)
    (event,) = await scene.run.order(desk, scene.asked("sell"))
    assert isinstance(event, OrderNotFilled) and event.reason == "fault" and event.detail.startswith("wrong_identity")


# --- what a person sees ---------------------------------------------------------------------------------------------


async def test_a_fault_says_its_reason_and_its_lane_and_never_its_address(scene):
    scene.node.lie(when=simulating, stop="hang_up")
    event = outcome(await scene.order("sell"))
    assert event.detail.startswith("dead: lane lane 0") and scene.node.url not in event.detail and "127.0.0.1" not in event.detail
