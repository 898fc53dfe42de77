"""A node that is slow, dead, behind, foreign or lying: a recorded fault and no fill, or the next lane; never a guess (design §9, ONC-07, ONC-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Any

import orjson
import pytest

from chain import calldata
from chain.balance_slot import SlotBook
from chain.rpc import Lane, RpcDoor
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.money import TokenRaw
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, BoardTaken, FillCredited, OrderAsked, OrderNotFilled
from tests.onchain.given import outcome, said
from tests.onchain.ground import WALLET, Ground, Run
from tests.onchain.lying import LyingNode, lying_node

DEADLINE_MS = 5_000
SHORT_DEADLINE_MS = 250
"""For nodes that never answer."""
MUCH = 2**256 - 1
SPEND = "0.01 eth"
LEAVES = 40 * 10**18
SIMULATE = "eth_simulateV1"
READS_WALLET = calldata.balance_of(WALLET)
READS_ETHER = calldata.eth_balance(WALLET)

Call = dict[str, Any]


class Scene:
    """A run whose desk reaches the chain through one lying node, or through several lanes."""

    def __init__(self, ground: Ground, nodes: list[LyingNode]) -> None:
        self.ground, self.nodes, self.node = ground, nodes, nodes[0]
        self.run = Run(ground)
        self.run.grant("LEAF", LEAVES)

    def reach(self, *nodes: LyingNode) -> None:
        """Let the desk know these lanes, in this order, and nothing found before."""
        lanes = [Lane(f"lane {place}", node.url) for place, node in enumerate(nodes)]
        self.ground.desk.rpc = RpcDoor(lanes, clock=self.ground.clock, deadline_ms=DEADLINE_MS)
        self.ground.desk.slots = SlotBook(self.ground.desk.rpc)

    async def order(self, side: str, name: str = "LEAF") -> tuple[Event, ...]:
        desk = await self.run.sit_down()
        self.be_short()
        return await self.run.order(desk, self.asked(side, name))

    def be_short(self, deadline_ms: int = SHORT_DEADLINE_MS) -> None:
        """Wait less from now on, if the node is one that never answers."""
        if self.node.manner.stop in ("hang", "drip"):
            self.ground.desk.rpc.deadline_ms = deadline_ms

    def asked(self, side: str, name: str = "LEAF") -> OrderAsked:
        return self.run.buy(name, SPEND) if side == "buy" else self.run.sell(name)

    async def honest(self, side: str, name: str = "LEAF") -> FillCredited:
        """What an honest node leads to, for a run of its own."""
        manner, self.node.manner = self.node.manner, type(self.node.manner)()
        twin = self.run.copy()
        (fill,) = await twin.fill(twin.buy(name, SPEND) if side == "buy" else twin.sell(name))
        self.node.manner = manner
        return fill


@pytest.fixture
async def scene(chain) -> AsyncIterator[Scene]:
    ground = await Ground.on(chain)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(lying_node(chain.url)) for _ in range(2)]
        opened = Scene(ground, nodes)
        await ground.close()
        opened.reach(nodes[0])
        yield opened
        await ground.desk.rpc.close()


def fills(events: tuple[Event, ...]) -> list[FillCredited]:
    return [event for event in events if isinstance(event, FillCredited)]


# --- altering answers -----------------------------------------------------------------------------------------------


def calls(params: list[Any], blocks: list[dict[str, Any]]) -> Iterator[tuple[Call, Call, bool]]:
    """Each simulated call of an answer: what was asked, what was told, and whether a swap of the wallet came before it in its block."""
    for asked, told in zip(params[0]["blockStateCalls"], blocks, strict=True):
        swapped = False
        for question, answer in zip(asked["calls"], told["calls"], strict=True):
            yield question, answer, swapped
            swapped = swapped or (question["from"] == WALLET and not question["data"].startswith("0x" + calldata.APPROVE))


def lie(change: Callable[[Call, Call, bool], None]) -> Callable[[list[Any], Any], Any]:
    """Change every simulated call of an answer."""

    def changed(params: list[Any], blocks: Any) -> Any:
        for question, answer, swapped in calls(params, blocks):
            change(question, answer, swapped)
        return blocks

    return changed


def add(answer: Call, delta: int) -> None:
    answer["returnData"] = "0x" + calldata.word(max(int(answer["returnData"], 16) + delta, 0))


def everything_is_much(question: Call, answer: Call, swapped: bool) -> None:
    answer["returnData"] = "0x" + "ff" * 32


def tokens_are_much(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_WALLET and swapped:
        answer["returnData"] = "0x" + calldata.word(MUCH)


def more_ether(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and swapped:
        add(answer, 10**17)


def a_wei_more(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and swapped:
        add(answer, 1)


def much_ether(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER:
        answer["returnData"] = "0x" + calldata.word(MUCH)


def less_ether_before(question: Call, answer: Call, swapped: bool) -> None:
    if question["data"] == READS_ETHER and not swapped:
        add(answer, -(10**15))


def no_native_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = [log for log in answer["logs"] if log["address"] != NATIVE_LOG]


def more_in_native_logs(question: Call, answer: Call, swapped: bool) -> None:
    for log in answer["logs"]:
        if log["address"] == NATIVE_LOG:
            log["data"] = "0x" + calldata.word(10**17)


def no_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = []


def logs_missing(question: Call, answer: Call, swapped: bool) -> None:
    del answer["logs"]


def status_missing(question: Call, answer: Call, swapped: bool) -> None:
    del answer["status"]


def no_gas(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["gasUsed"] = "0x1"


def more_gas(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["gasUsed"] = hex(int(answer["gasUsed"], 16) + 1)


def all_reverted(question: Call, answer: Call, swapped: bool) -> None:
    if question["from"] == WALLET:
        answer["status"] = "0x0"


def no_pool_logs(question: Call, answer: Call, swapped: bool) -> None:
    answer["logs"] = [log for log in answer["logs"] if log["address"] == NATIVE_LOG or log["topics"][0] == TRANSFER_TOPIC]


LIES = {
    each.__name__: lie(each)
    for each in (
        everything_is_much, much_ether, more_ether, a_wei_more, less_ether_before, no_native_logs, more_in_native_logs, no_logs, logs_missing,
        status_missing, no_gas, more_gas, all_reverted, no_pool_logs,
    )
}  # fmt: skip

SHAPES: dict[str, Callable[[list[Any], Any], Any]] = {
    "null": lambda params, blocks: None,
    "no blocks": lambda params, blocks: [],
    "a block short": lambda params, blocks: blocks[:-1],
    "a call short": lambda params, blocks: [{**block, "calls": block["calls"][:-1]} for block in blocks],
    "a call double": lambda params, blocks: [{**block, "calls": [*block["calls"], block["calls"][-1]]} for block in blocks],
    "the block before": lambda params, blocks: [{**block, "number": hex(int(block["number"], 16) - 1)} for block in blocks],
    "an earlier time": lambda params, blocks: [{**block, "timestamp": hex(int(block["timestamp"], 16) - 60)} for block in blocks],
    "another base fee": lambda params, blocks: [{**block, "baseFeePerGas": "0x1"} for block in blocks],
}

MANNERS: dict[str, dict[str, Any]] = {
    "cut JSON": {"rewrite": lambda body: body[:-40]},
    "no JSON": {"rewrite": lambda body: b"<html>"},
    "empty": {"rewrite": lambda body: b""},
    "half the batch": {"rearrange": lambda rows: rows[: len(rows) // 2]},
    "one answer short": {"rearrange": lambda rows: rows[:-1]},
    "an answer twice": {"rearrange": lambda rows: [*rows[:-1], rows[0]]},
    "foreign ids": {"rearrange": lambda rows: [{**row, "id": row["id"] + 1_000_000} for row in rows]},
    "no ids": {"rearrange": lambda rows: [{key: value for key, value in row.items() if key != "id"} for row in rows]},
    "result and error": {"rearrange": lambda rows: [{**row, "error": {"code": 3, "message": "no"}} for row in rows]},
    "server error": {"status": 500},
    "too many requests": {"status": 429},
    "redirect": {"status": 302, "headers": (("Location", "http://127.0.0.1:9/"),)},
    "hang": {"stop": "hang"},
    "hang up": {"stop": "hang_up"},
    "cut in the middle": {"stop": "cut"},
    "drip": {"stop": "drip"},
}


def simulating(methods: list[str]) -> bool:
    return SIMULATE in methods


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
        scene.node.lie(rearrange=swapped, when=lambda methods: methods.count(SIMULATE) == len(methods) == 2)
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
    assert await no_fill(scene, "buy") == ["gate_flagged", "gate_flagged"]


async def test_fewer_tokens_told_alike_take_from_the_agent_only_and_are_flagged(scene):
    def fewer(question, answer, swapped):
        if question["data"] == READS_WALLET and swapped:
            add(answer, -1_000)

    honest = await scene.honest("buy")
    scene.node.by(SIMULATE, lie(fewer))
    events = await scene.order("buy")
    (fill,), (board,) = fills(events), [event for event in events if isinstance(event, BoardTaken)]
    assert int(fill.arrival_raw) == int(honest.arrival_raw) - 1_000
    assert all({"logs_differ", "quoter_differs"} <= set(row.flags) for row in board.rows)


async def test_tokens_told_to_have_stayed_in_a_sale_are_sold_all_the_same(scene):
    def stayed(question, answer, swapped):
        if question["data"] == READS_WALLET and swapped:
            answer["returnData"] = "0x" + calldata.word(LEAVES - 1)

    honest = await scene.honest("sell")
    scene.node.by(SIMULATE, lie(stayed))
    (fill,) = fills(await scene.order("sell"))
    assert fill.arrival_raw == honest.arrival_raw
    assert scene.run.held("LEAF") == scene.run.held("LEAF", PERMISSIVE) == 0


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
    honest = await scene.honest(side)
    scene.node.by(SIMULATE, change)
    events = await scene.order(side)
    (fill,) = fills(events)
    assert (fill.arrival_raw, fill.gas_wei, fill.entry) == (honest.arrival_raw, honest.gas_wei, honest.entry)
    (board,) = [event for event in events if isinstance(event, BoardTaken)]
    assert all(row.flags for row in board.rows)


async def test_shares_told_too_many_are_not_booked_on_the_headline(scene):
    def doubled(params, blocks):
        if len(blocks) == 2 and len(blocks[1]["calls"]) == 1:
            add(blocks[1]["calls"][0], int(blocks[1]["calls"][0]["returnData"], 16))
        return blocks

    scene.node.by(SIMULATE, doubled)
    events = await scene.order("buy", "shares")
    assert said(events, HEADLINE) == "unprovable_exit" and scene.run.held("shares") == 0


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


REFUSED = [-38014, -32003, -38011, -38013, -38015, -38026, -32602, -32000, -32603, 12345]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("code", REFUSED)
async def test_a_refused_simulation_is_a_fault_and_never_unprovable(scene, code, side):
    def refuse(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": code, "message": "no"}} if method == SIMULATE else row

    scene.node.lie(alter=refuse)
    assert await no_fill(scene, side) == ["fault", "fault"]


# --- any one word ---------------------------------------------------------------------------------------------------

WORDS: list[Any] = [None, "0x", "0x" + "ff" * 32, "0x0", "0x1", "zz", 5, 1.5, True, [], {}]
SAID_ONCE = 12
"""Lies per seed."""


def places(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of an answer where something stands."""
    for key, value in told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


class OneWord:
    """Changes one word of one answer, anywhere in it: another word, a digit off, or nothing at all."""

    def __init__(self, chance: Random, answer: int) -> None:
        self._chance, self._left = chance, answer

    def __call__(self, body: bytes) -> bytes:
        self._left -= 1
        if self._left:
            return body
        told = orjson.loads(body)
        *way, last = self._chance.choice(list(places(told)))
        here = told
        for key in way:
            here = here[key]
        words = [*WORDS, *self._near(here[last])]
        here[last] = self._chance.choice(words)
        if self._chance.randrange(len(words)) == 0:
            del here[last]
        return orjson.dumps(told)

    def _near(self, word: Any) -> list[str]:
        at = self._chance.randrange(len(word)) if isinstance(word, str) and word else 0
        return [word[:at] + digit + word[at + 1 :] for digit in "01"] * 3 if at else []


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_one_word_changed_brings_a_run_no_more_than_the_truth(scene, seed):
    chance = Random(seed)
    scene.run.grant("shares", 10**21, shares=True)
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


# --- marks ----------------------------------------------------------------------------------------------------------

MARK_LIES = {name: change for name, change in LIES.items() if name not in ("no_pool_logs", "less_ether_before")} | SHAPES


@pytest.mark.parametrize("change", MARK_LIES.values(), ids=MARK_LIES.keys())
async def test_a_mark_that_a_node_lies_about_is_a_fault_and_never_a_value(scene, change):
    scene.node.by(SIMULATE, change)
    with pytest.raises(ChainFault):
        await scene.run.value()


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
async def test_a_mark_that_a_node_does_not_answer_properly_is_a_fault_and_never_a_value(scene, manner):
    scene.node.lie(when=simulating, **manner)
    scene.be_short()
    with pytest.raises(ChainFault):
        await scene.run.value()


@pytest.mark.parametrize("code", [*REFUSED, -32601])
async def test_a_mark_that_a_node_refuses_is_a_fault_and_never_a_value(scene, code):
    def refuse(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": code, "message": "no"}} if method == SIMULATE else row

    scene.node.lie(alter=refuse)
    with pytest.raises(ChainFault):
        await scene.run.value()


async def test_a_mark_is_taken_by_the_next_lane(scene):
    (honest,) = await scene.run.value()
    scene.reach(*scene.nodes)
    scene.node.lie(stop="hang_up")
    (valued,) = await scene.run.value()
    assert valued.value_wei == honest.value_wei


async def test_a_lane_that_lied_about_a_mark_is_left_for_the_next_mark(scene):
    (honest,) = await scene.run.value()
    scene.reach(*scene.nodes)
    scene.node.by(SIMULATE, lie(more_ether))
    with pytest.raises(ChainFault):
        await scene.run.value()
    (valued,) = await scene.run.value()
    assert valued.value_wei == honest.value_wei


# --- what a person sees ---------------------------------------------------------------------------------------------


async def test_a_fault_says_its_reason_and_its_lane_and_never_its_address(scene):
    scene.node.lie(when=simulating, stop="hang_up")
    event = outcome(await scene.order("sell"))
    assert event.detail.startswith("dead: lane lane 0") and scene.node.url not in event.detail and "127.0.0.1" not in event.detail
