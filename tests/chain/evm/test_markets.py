"""Real markets: every kind of token, hook and route runs here as at the node, and real swaps leave the words that were foretold."""

from __future__ import annotations

import pytest

from chain.devnet.calls import Tx as RealTx
from chain.devnet.zoo import ZOO
from chain.evm import Executed, LocalEvm, NotCovered, difference
from chain.header import header_of
from chain.router import buy_routes, sell_routes
from chain.simulate import Simulation, answered
from tests.chain.evm.lab import changed_words
from tests.chain.market import PURSE_WEI, WALLET, MarketStall

SPEND_WEI = 10**16
HONEST = ("LEAF", "ACRN", "FERN", "BARK", "MOSS", "RUNE", "PINE", "DUSK")
"""Over v2, v3 and v4, directly and through dollars."""
RANDOM = "the block's random word"


@pytest.fixture
async def stall(chain):
    made = await MarketStall.on(chain)
    yield made
    await made.door.close()


async def _alike(stall: MarketStall, evm: LocalEvm, routes, units: int = 0) -> list[Executed]:
    trades = [await stall.trade(route, units) for route in routes]
    found = []
    for trade, answer in zip(trades, await stall.answers(*(trade.simulation for trade in trades)), strict=True):
        executed = await evm.run(trade.simulation)
        if isinstance(executed, NotCovered):
            assert RANDOM in executed.reason, executed
            continue
        assert difference(executed, answered(trade.simulation, answer)) == "", trade.route.hops
        found.append(executed)
    return found


@pytest.mark.parametrize("symbol", HONEST)
async def test_every_route_of_a_token_runs_alike(stall, symbol):
    evm = LocalEvm(stall.door, stall.network.chain_id)
    assert await _alike(stall, evm, stall.routes("buy", symbol, SPEND_WEI))
    units = 3 * 10 ** (16 + stall.chain.deployment.token(symbol).decimals) // stall.chain.deployment.token(symbol).price
    assert await _alike(stall, evm, stall.routes("sell", symbol, units), units)


@pytest.mark.slow
async def test_every_kind_of_token_runs_alike(stall):
    evm, ran = LocalEvm(stall.door, stall.network.chain_id), 0
    for odd in ZOO:
        ran += len(await _alike(stall, evm, stall.routes("buy", odd.kind, SPEND_WEI)[:1]))
        ran += len(await _alike(stall, evm, stall.routes("sell", odd.kind, 10**6)[:1], 10**6))
    assert ran > len(ZOO)


@pytest.mark.slow
async def test_every_kind_of_hook_runs_alike(stall):
    evm, ran = LocalEvm(stall.door, stall.network.chain_id), 0
    for pool in stall.chain.deployment.annex.stalls:
        token = pool.token.address.lower()
        ran += len(await _alike(stall, evm, buy_routes(stall.network, stall.graph, token, SPEND_WEI, WALLET)))
        ran += len(await _alike(stall, evm, sell_routes(stall.network, stall.graph, token, 10**6, WALLET), 10**6))
    assert ran > len(stall.chain.deployment.annex.stalls)


@pytest.mark.parametrize("symbol", ("LEAF", "MOSS", "RUNE"))
async def test_a_real_swap_writes_the_words_that_were_foretold(chain, stall, symbol):
    """By the node's own account of what a mined transaction changed, in every contract."""
    chain.fund(WALLET, PURSE_WEI)
    for route in stall.routes("buy", symbol, SPEND_WEI):
        mark = chain.snapshot()
        pin = header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))
        swap = route.swap
        (receipt,) = chain.send(RealTx(sender=WALLET, to=swap.to, data=swap.data, value_wei=swap.value_wei, gas=swap.gas_limit))
        sealed = chain.node.call("eth_getBlockByNumber", ["latest", False])
        simulation = Simulation(stall.network, pin)
        simulation.block(balances_wei={}, randao=sealed["mixHash"])
        simulation.blocks[0]["blockOverrides"]["time"] = sealed["timestamp"]
        handle = simulation.send(WALLET, swap)
        executed = await LocalEvm(stall.door, stall.network.chain_id).run(simulation)
        assert isinstance(executed, Executed)
        call = executed.calls[handle[0]][handle[1]]
        assert (call.ok, call.gas_used) == (receipt["status"] == "0x1", int(receipt["gasUsed"], 16))
        assert {(write.contract, int(write.slot, 16)): (write.before, write.after) for write in call.writes} == changed_words(chain, receipt)
        assert len(call.writes) > 3
        chain.revert(mark)
