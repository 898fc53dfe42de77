"""Nitro's answers: each of its differences is met, and orders and marks come out the same but for the L1 part of gas, counted once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import ClientSession

from chain.balance_slot import SlotBook
from chain.gas import SWAP_GAS_LIMIT
from chain.header import Header, header_of, header_request
from chain.lane import REMOTE_TRIES, LaneLimits
from chain.logs import LogFilter, read_logs
from chain.market import MarketIndex
from chain.network import load_network
from chain.pools import CREATIONS, PoolGraph
from chain.price import eth_usd
from chain.probe import probe
from chain.router import Tx
from chain.rpc import Lane, RpcDoor, RpcRefused
from chain.simulate import Simulation
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from referee.onchain.board import Desk
from referee.onchain.events import BoardTaken, GateTaken
from referee.onchain.rules import DEFAULT
from tests.chain.nitro import GAS_POOL, NitroNode, nitro_node
from tests.chain.nitro_shapes import ARBOS_STATE, POSTER, l1_gas
from tests.onchain.given import outcome
from tests.onchain.ground import Ground, Run
from tests.onchain.pooling import around, churn, closing, opening, pool_of, sizes

NETWORK = replace(load_network("devnet"), fee_recipient=POSTER)
SENDER = "0x0000000000000000000000000000000053454e44"
PATIENT = LaneLimits(tries=REMOTE_TRIES)


@asynccontextmanager
async def beside(chain, limits: LaneLimits = PATIENT):
    """A node in Nitro's shapes and a door to it."""
    async with nitro_node(chain.url) as node:
        door = RpcDoor([Lane("nitro", node.url, limits)], clock=SystemClock())
        try:
            yield node, door
        finally:
            await door.close()


async def seated(ground: Ground, door: RpcDoor) -> Ground:
    """The ground's desk moved to another node."""
    found = await probe(door, NETWORK, SystemClock())
    ground.network = NETWORK
    ground.desk = Desk(door, NETWORK, ground.graph, DEFAULT, ground.clock, ground.desk.clock_offset_ms)
    ground.desk.fit(gas_cap=found.gas_cap, headers_sealed=found.headers_sealed)
    return ground


# --- an order, a gate and a mark --------------------------------------------------------------------------------------


async def events_of(ground: Ground, orders) -> tuple[list, list]:
    """What some orders brought, and what the book was then worth."""
    run = Run(ground)
    events = [event for asked in orders(run) for happened in await run.decide(asked) for event in happened]
    return events, list(await run.value())


def orders(run: Run):
    yield run.buy("LEAF", "0.01 eth")
    yield run.buy("PINE", "0.02 eth")
    yield run.sell("LEAF")


async def test_orders_and_marks_are_the_same_but_for_the_l1_part(chain):
    ground = await Ground.on(chain)
    try:
        plain, plain_worth = await events_of(ground, orders)
        async with beside(chain) as (node, door):
            told, told_worth = await events_of(await seated(ground, door), orders)
            assert len(node.asked("eth_simulateV1")) > 10
    finally:
        await ground.close()
    boards = [[event for event in events if isinstance(event, BoardTaken)] for events in (plain, told)]
    assert len(boards[0]) == len(boards[1]) == 3
    for here, there in zip(*boards, strict=True):
        rows = {row.route: row for row in here.rows}
        assert {row.route: (row.status, row.arrival_raw, row.units_raw, row.flags) for row in there.rows} == {
            route: (row.status, row.arrival_raw, row.units_raw, row.flags) for route, row in rows.items()
        }
        dearer = [row.swap_gas - rows[row.route].swap_gas for row in there.rows if row.swap_gas]
        assert dearer and all(21_000 < more < 30_000 for more in dearer)
    for here, there in zip(plain_worth, told_worth, strict=True):
        assert [mark.gross_wei for mark in here.holdings] == [mark.gross_wei for mark in there.holdings]
        assert int(there.value_wei) < int(here.value_wei)


async def test_a_gate_says_the_same_where_number_does_not_move(chain):
    ground = await Ground.on(chain)
    try:
        plain, _ = await events_of(ground, lambda run: [run.buy("LEAF", "0.01 eth")])
        async with beside(chain) as (_, door):
            told, _ = await events_of(await seated(ground, door), lambda run: [run.buy("LEAF", "0.01 eth")])
    finally:
        await ground.close()
    (here,), (there,) = ([event for event in events if isinstance(event, GateTaken)] for events in (plain, told))
    assert (here.verdict, here.exit_provable, here.buy_arrival_raw) == (there.verdict, there.exit_provable, there.buy_arrival_raw)


async def test_a_position_is_opened_earns_and_is_closed_alike_but_for_the_l1_part(chain):
    plain, other = await Ground.on(chain), await Ground.on(chain)

    def settle() -> None:
        plain.settle()
        other.desk.clock_offset_ms = plain.desk.clock_offset_ms

    async with beside(chain) as (_, door):
        await seated(other, door)
        settle()
        runs, pool = (Run(plain), Run(other)), pool_of(plain, "v4 eth PINE")
        for run in runs:
            await run.fill(run.buy("PINE", "0.05 eth"))
        ticks, amounts = around(plain, pool), sizes(plain, runs[0], pool)
        opened = [outcome((await run.decide(opening(pool, ticks, amounts)))[0]) for run in runs]
        churn(plain, pool)
        settle()
        closed = [outcome((await run.decide(closing(each.position)))[0]) for run, each in zip(runs, opened, strict=True)]
        await plain.close()
    for here, there in (opened, closed):
        assert (here.amount0_raw, here.amount1_raw) == (there.amount0_raw, there.amount1_raw)
        assert 21_000 < (int(there.gas_wei) - int(here.gas_wei)) // int(here.pin.base_fee_wei) < 100_000
    assert (closed[0].fees0_raw, closed[0].fees1_raw) == (closed[1].fees0_raw, closed[1].fees1_raw) and int(closed[0].fees0_raw)


async def test_the_market_is_seen_alike(chain):
    chain.step(3)
    chain.mine()
    seen = []
    async with beside(chain) as (node, door):
        for url in (chain.url, node.url):
            each = RpcDoor([Lane("node", url, PATIENT)], clock=SystemClock())
            index = MarketIndex(each, NETWORK, PoolGraph(NETWORK))
            await index.advance(chain.height)
            pin = header_of(await each.call(*header_request(chain.height)))
            seen.append((index.snapshot(pin, eth_usd_micro_usd=None, tokens_max=100), (await eth_usd(each, NETWORK, index.graph, chain.height)).micro_usd))
            await each.close()
    assert seen[0] == seen[1] and seen[0][0].tokens


async def test_balance_slots_are_found_without_access_lists(chain):
    chain.mine(2)
    async with beside(chain) as (_, door):
        pin = header_of(await door.call(*header_request(chain.height)))
        plain = RpcDoor([Lane("node", chain.url)], clock=SystemClock())
        for token in (NETWORK.weth, NETWORK.usdg, chain.deployment.token("LEAF").address.lower()):
            assert await SlotBook(door).of(token, SENDER, pin) == await SlotBook(plain).of(token, SENDER, pin) is not None
        await plain.close()


async def test_gas_that_is_charged_holds_the_l1_part_exactly_once(chain):
    async with beside(chain) as (node, door):
        pin = header_of(await door.call(*header_request("latest")))
        fee = hex(pin.base_fee_wei)
        call = {"from": SENDER, "to": SENDER, "value": "0x0", "gas": "0x30d40"}
        paid = {"blockOverrides": {"baseFeePerGas": fee}, "stateOverrides": {SENDER: {"balance": hex(10**18)}}, "calls": [{**call, "maxFeePerGas": fee}]}
        free = {"stateOverrides": {SENDER: {"balance": hex(10**18)}}, "calls": [call]}
        elsewhere = {**paid, "blockOverrides": {"baseFeePerGas": fee, "feeRecipient": SENDER}}
        asked = [("eth_simulateV1", [{"blockStateCalls": [state], "validation": state is not free}, hex(pin.block)]) for state in (paid, free, elsewhere)]
        gas = [int(answer[0]["calls"][0]["gasUsed"], 16) for answer in await door.batch(asked)]
    assert gas == [21_000 + l1_gas("0x", estimated=True), 21_000, 21_000]


# --- what it refuses --------------------------------------------------------------------------------------------------


def simulation(block: int, overrides=None, calls=(), **more):
    return ("eth_simulateV1", [{"blockStateCalls": [{"blockOverrides": overrides or {}, "calls": list(calls), **more}], "validation": True}, hex(block)])


REFUSED = {
    "a number that is not later": (lambda pin: simulation(pin.block, {"number": hex(pin.block)}), -38020),
    "a time before the base": (lambda pin: simulation(pin.block, {"time": hex(pin.ts_s - 1)}), -38021),
    "a time before the blocks between": (lambda pin: simulation(pin.block, {"number": hex(pin.block + 4), "time": hex(pin.ts_s + 35)}), -38021),
    "too many blocks": (lambda pin: simulation(pin.block, {"number": hex(pin.block + 257)}), -38026),
    "a fee below the base": (lambda pin: simulation(pin.block, {}, [{"from": SENDER, "to": SENDER, "gas": "0x30d40"}]), -32602),
    "the system's own state": (lambda pin: simulation(pin.block, stateOverrides={ARBOS_STATE: {"balance": "0x1"}}), -32000),
    "a nonce that is past": (lambda pin: simulation(pin.block, {}, [{"from": SENDER, "to": SENDER, "nonce": "0x5", "gas": "0x30d40"}]), -38011),
    "a sender without funds": (
        lambda pin: simulation(pin.block, {"baseFeePerGas": "0x1"}, [{"from": SENDER, "to": POSTER, "gas": "0x30d40", "maxFeePerGas": "0x1", "value": "0x1"}]), -38014,
    ),
    "access lists": (lambda pin: ("eth_createAccessList", [{"to": SENDER}, hex(pin.block)]), -32601),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
async def test_what_nitro_refuses_is_an_answer_in_its_place(chain, what):
    request, code = REFUSED[what]
    async with beside(chain) as (_, door):
        pin = header_of(await door.call(*header_request("latest")))
        refused, fine = await door.batch([request(pin), ("eth_chainId", [])])
    assert isinstance(refused, RpcRefused) and refused.code == code and fine == hex(NETWORK.chain_id)


async def test_time_number_and_base_fee_that_nobody_said_are_nitros_own(chain):
    async with beside(chain) as (_, door):
        pin = header_of(await door.call(*header_request("latest")))
        (answer,) = await door.batch([simulation(pin.block)])
        block = header_of(answer[0], pin.block + 1)
    assert (block.ts_s, block.base_fee_wei) == (pin.ts_s + 12, pin.base_fee_wei * 7 // 8)
    assert answer[0]["parentHash"] == pin.block_hash and "maxUsedGas" not in str(answer)


async def test_equal_times_are_taken_and_blocks_between_are_told(chain):
    async with beside(chain) as (_, door):
        pin = header_of(await door.call(*header_request("latest")))
        same, leapt = await door.batch([simulation(pin.block, {"time": hex(pin.ts_s)}), simulation(pin.block, {"number": hex(pin.block + 4), "time": hex(pin.ts_s + 36)})])
    assert int(same[0]["timestamp"], 16) == pin.ts_s
    assert [int(block["number"], 16) - pin.block for block in leapt] == [1, 2, 3, 4]


async def test_a_call_gets_no_more_than_what_is_left_of_the_requests_gas(chain):
    async with beside(chain) as (node, door):
        pin = header_of(await door.call(*header_request("latest")))
        code = {SENDER: {"code": "0x5a60005260206000f3", "balance": hex(10**18)}}
        call = {"from": POSTER, "to": SENDER, "gas": hex(20_000_000)}
        (answer,) = await door.batch([("eth_simulateV1", [{"blockStateCalls": [{"stateOverrides": code, "calls": [call] * 3}]}, hex(pin.block)])])
        whole = [int(each["returnData"], 16) for each in answer[0]["calls"]]
        node.gas_pool = 1_000_000
        (answer,) = await door.batch([("eth_simulateV1", [{"blockStateCalls": [{"stateOverrides": code, "calls": [call] * 3}]}, hex(pin.block)])])
        cut = [int(each["returnData"], 16) for each in answer[0]["calls"]]
    assert GAS_POOL > max(whole) > 19_000_000 and cut[0] < 1_000_000 and cut == sorted(cut, reverse=True) and cut[2] < cut[0]


@pytest.mark.parametrize(("used", "fault"), [(5_500_000, False), (5_500_001, True)])
def test_a_call_that_failed_for_want_of_the_requests_gas_is_no_revert(used, fault):
    pin = Header(block=5, block_hash="0x" + "ab" * 32, ts_s=1_000, base_fee_wei=7)
    sim = Simulation(NETWORK, pin)
    sim.block(balances_wei={})
    for _ in range(9):
        sim.send(SENDER, Tx(SENDER, "0x", SWAP_GAS_LIMIT))
    given = sim.blocks[0]["blockOverrides"]
    calls = [{"status": "0x1", "gasUsed": hex(used), "logs": []}] * 8 + [{"status": "0x0", "gasUsed": "0x5208", "logs": []}]
    answer = [{"number": given["number"], "timestamp": given["time"], "baseFeePerGas": given["baseFeePerGas"], "calls": calls}]
    if fault:
        with pytest.raises(ChainFault, match="gas_pool"):
            sim.read(answer)
    else:
        assert not sim.read(answer)[0, 8].ok


# --- what it allows ---------------------------------------------------------------------------------------------------


async def test_batches_are_split_to_what_it_takes(chain):
    async with beside(chain) as (node, door):
        answers = await door.batch([("eth_getBlockByNumber", [hex(block), False]) for block in range(40)])
        assert [int(answer["number"], 16) for answer in answers] == list(range(40))
        assert node.turned_away == 1 and door.answering.batch_max == 20


async def test_requests_that_are_put_off_are_asked_again(chain):
    async with beside(chain, LaneLimits(tries=REMOTE_TRIES, requests_per_s=1_000)) as (node, door):
        node.put_off.append(None)
        assert await door.call("eth_chainId", []) == hex(NETWORK.chain_id)
        assert node.turned_away == 1 and door.answering.waited_ms_total > 0


async def test_a_wait_longer_than_the_deadline_leaves_for_the_next_lane(chain):
    async with nitro_node(chain.url) as busy, nitro_node(chain.url) as free:
        door = RpcDoor([Lane("busy", busy.url, PATIENT), Lane("free", free.url, PATIENT)], clock=SystemClock())
        busy.put_off.append(3_000)
        await door.call("eth_chainId", [])
        await door.call("eth_chainId", [])
        await door.close()
    assert (busy.turned_away, len(busy.recorded), len(free.recorded)) == (1, 0, 2)


async def test_a_client_without_a_usual_name_is_turned_away_and_ours_is_not(chain):
    async with beside(chain) as (node, door):
        async with ClientSession() as session, session.post(node.url, data=b"{}") as answer:
            assert answer.status == 403
        assert await door.call("eth_chainId", []) == hex(NETWORK.chain_id)


async def test_logs_over_its_limit_are_read_in_smaller_ranges(chain):
    async with beside(chain) as (node, door):
        whole = await read_logs(door, LogFilter(CREATIONS), 0, chain.height)
        most = max(sum(log.block == block for log in whole) for block in {log.block for log in whole})
        node.logs_max = most
        again = await read_logs(door, LogFilter(CREATIONS), 0, chain.height)
        assert again == whole and len(node.asked("eth_getLogs")) > 2


async def test_logs_and_states_that_are_pruned_are_said_to_be(chain):
    async with beside(chain) as (node, door):
        node.oldest_block = chain.height
        with pytest.raises(ChainFault, match="pruned"):
            await read_logs(door, LogFilter(CREATIONS), 0, chain.height)
        (refused,) = await door.batch([simulation(chain.height - 1)])
    assert isinstance(refused, RpcRefused) and "metadata" in refused.message


async def test_headers_and_blocks_have_nitros_fields(chain):
    chain.step()
    async with beside(chain) as (_, door):
        block = await door.call("eth_getBlockByNumber", ["latest", True])
        receipt = await door.call("eth_getTransactionReceipt", [block["transactions"][1]["hash"]])
    assert block["transactions"][0]["type"] == "0x6a" and block["miner"] == POSTER and int(block["gasLimit"], 16) == 2**50
    assert int(receipt["transactionIndex"], 16) == 1 and int(receipt["gasUsedForL1"], 16) > 21_000 and "l1BlockNumber" in receipt


def test_the_recording_keeps_what_was_asked():
    assert NitroNode("http://127.0.0.1:9", None).asked("eth_call") == []  # type: ignore[arg-type]
