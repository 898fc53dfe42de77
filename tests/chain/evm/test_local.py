"""The local EVM's errands: how few questions it asks, state as told beside state as proven, and what it remembers."""

from __future__ import annotations

from typing import Any

import pytest

from chain.evm import Executed, LocalEvm, verify
from chain.header import header_of
from chain.network import load_network
from chain.rpc import FunctionTransport, Lane, RpcDoor
from chain.simulate import Simulation, answered
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from tests.chain.evm.lab import ETH, WALLET, slot_text
from tests.chain.market import MarketStall

NETWORK = load_network("devnet")
SPEND_WEI = 10**16
FOLLOW = "0x5f5b805480600f57505f5260205ff35b9050600156"
"""Go from word 0 to the word that each names, and return the one that names none."""


@pytest.fixture
async def stall(chain):
    made = await MarketStall.on(chain)
    yield made
    await made.door.close()


async def trade_of(stall: MarketStall, symbol: str = "LEAF", venue: str = "v3"):
    route = next(route for route in stall.routes("buy", symbol, SPEND_WEI) if [hop.pool.venue for hop in route.hops] == [venue])
    return await stall.trade(route)


async def test_what_is_known_is_not_asked_again(stall):
    evm, simulation = LocalEvm(stall.door, NETWORK.chain_id), (await trade_of(stall)).simulation
    first, again = await evm.run(simulation), await evm.run(simulation)
    assert isinstance(first, Executed) and isinstance(again, Executed)
    assert first.trips > 2 and again.trips == 0 and first.calls == again.calls


async def test_at_the_next_block_one_question_brings_all_that_it_brought_before(chain, stall):
    evm = LocalEvm(stall.door, NETWORK.chain_id)
    assert isinstance(await evm.run((await trade_of(stall)).simulation), Executed)
    chain.mine(2)
    later = await MarketStall.on(chain, stall.door)
    found = await evm.run((await trade_of(later)).simulation)
    assert isinstance(found, Executed) and found.trips == 2  # the header, then everything else


async def test_state_as_told_gives_what_proven_state_gives(stall):
    for symbol, venue in (("LEAF", "v3"), ("LEAF", "v2")):
        simulation = (await trade_of(stall, symbol, venue)).simulation
        evm = LocalEvm(stall.door, NETWORK.chain_id)
        told = await evm.run(simulation, proven=False)
        assert isinstance(told, Executed)
        proven = await evm.prove(told)
        assert isinstance(proven, Executed) and proven.calls == told.calls
        assert verify(proven.witness().encode(), stall.pin.block_hash).calls == told.calls


async def test_a_run_on_state_as_told_has_no_witness(stall):
    told = await LocalEvm(stall.door, NETWORK.chain_id).run((await trade_of(stall)).simulation, proven=False)
    assert isinstance(told, Executed)
    with pytest.raises(ValueError, match="prove it first"):
        told.witness()


async def test_a_node_that_tells_of_another_state_than_it_proves_is_found_out(chain, stall):
    def answered_with(_lane: Lane, asked: Any) -> Any:
        rows = asked if isinstance(asked, list) else [asked]
        told = [{"jsonrpc": "2.0", "id": row["id"], "result": lie(row["method"], chain.node.call(row["method"], row["params"]))} for row in rows]
        return told if isinstance(asked, list) else told[0]

    def lie(method: str, answer: Any) -> Any:
        if method == "eth_simulateV1":
            for call in answer[-1]["calls"]:
                call["returnData"] = call["returnData"][:-1] + ("7" if call["returnData"][-1] != "7" else "8")
        return answer

    door = RpcDoor([Lane("liar", "http://liar")], clock=SystemClock(), transport=FunctionTransport(answered_with))
    evm, simulation = LocalEvm(door, NETWORK.chain_id), Simulation(NETWORK, stall.pin)
    simulation.block(balances_wei={WALLET: ETH})
    simulation.token_balance(NETWORK.weth, NETWORK.v3_factory)
    told = await evm.run(simulation, proven=False)
    assert isinstance(told, Executed)
    with pytest.raises(ChainFault, match="state_differs"):
        await evm.prove(told)


@pytest.mark.parametrize("answer", (None, 7, [], [{}, {}], [{"calls": []}, {"calls": []}], [{"calls": [{"status": "0x0", "returnData": "0x"}]}] * 2))
async def test_an_answer_that_tells_nothing_is_a_fault(chain, stall, answer):
    def answered_with(_lane: Lane, asked: Any) -> Any:
        rows = asked if isinstance(asked, list) else [asked]
        told = [{"jsonrpc": "2.0", "id": row["id"], "result": answer if row["method"] == "eth_simulateV1" else chain.node.call(row["method"], row["params"])} for row in rows]
        return told if isinstance(asked, list) else told[0]

    door = RpcDoor([Lane("odd", "http://odd")], clock=SystemClock(), transport=FunctionTransport(answered_with))
    with pytest.raises(ChainFault):
        await LocalEvm(door, NETWORK.chain_id).run((await trade_of(stall)).simulation, proven=False)


async def test_a_list_that_leads_from_word_to_word_is_followed_to_its_end(chain, stall):
    """Thirty words of a contract really on the chain, each of which names the next; the last is followed to nothing."""
    here, count = "0x" + "11f7" * 10, 30
    chain.node.batch([("anvil_setCode", [here, FOLLOW]), *(("anvil_setStorageAt", [here, slot_text(slot), slot_text(slot + 1)]) for slot in range(count))])
    chain.mine(2)
    simulation = Simulation(NETWORK, header_of(chain.node.call("eth_getBlockByNumber", ["latest", False])))
    simulation.block(balances_wei={WALLET: ETH})
    simulation.view(here, "0x")
    for proven in (True, False):
        found = await LocalEvm(stall.door, NETWORK.chain_id).run(simulation, proven=proven)
        assert isinstance(found, Executed) and found.trips > count
        assert int.from_bytes(found.calls[0][0].data) == count


async def test_the_swap_of_a_trade_writes_beyond_its_token_and_pool(stall):
    trade = await trade_of(stall)
    found = await LocalEvm(stall.door, NETWORK.chain_id).run(trade.simulation)
    (answer,) = await stall.answers(trade.simulation)
    swap = next(
        (block, place)
        for block, row in enumerate(trade.simulation.blocks)
        for place, call in enumerate(row["calls"])
        if call["from"] == WALLET
    )  # fmt: skip
    assert isinstance(found, Executed)
    writes = found.calls[swap[0]][swap[1]].writes
    assert {stall.token("LEAF"), NETWORK.weth} < {write.contract for write in writes}
    assert answered(trade.simulation, answer)[swap].ok
