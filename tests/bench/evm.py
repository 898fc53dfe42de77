"""The local EVM: time of a whole trade run in process against one bare simulate of the same request, and what a witness weighs.

Warm is with everything known; at a new block is with code and what is asked for known from the block before; cold is with nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from chain.evm import Executed, LocalEvm, difference, verify
from chain.router import Route, buy_routes
from chain.simulate import Simulation, answered
from chain.trade import Held, Purse, TradeSimulation
from referee.onchain.board import header_of_pin
from tests.bench.ground import SPEND_WEI, WALLET, Ground
from tests.bench.turns import Result, Seconds, Side, middle, milliseconds, ratio, take_turns

PURSE_WEI = 10**18
VENUES = ("v2", "v3", "v4")
TOKENS = ("LEAF", "MOSS", "PINE", "RUNE", "FERN", "DUSK", "BRIM", "HAZE", "MOTE", "GLIM")
BYTES_PER_KB = 1_000


async def evm_results(ground: Ground, rounds: int) -> list[Result]:
    """A swap of each venue."""
    results: list[Result] = []
    for venue in VENUES:
        simulation = _swap_over(ground, venue)
        if simulation is not None:
            results += await _results(ground, venue, simulation, rounds)
    return results


async def _results(ground: Ground, venue: str, simulation: Simulation, rounds: int) -> list[Result]:
    door, chain_id, what = ground.desk.rpc, ground.network.chain_id, f"local EVM, {venue} swap with its reads"
    warm, learnt = LocalEvm(door, chain_id), LocalEvm(door, chain_id)
    executed = await _executed(warm, simulation, proven=True)
    (answer,) = await door.batch([simulation.request()])
    assert difference(executed, answered(simulation, answer)) == ""
    await _executed(learnt, simulation, proven=True)

    async def at_a_new_block(proven: bool) -> None:
        learnt.forget_blocks()
        await _executed(learnt, simulation, proven=proven)

    blob, block_hash = executed.witness().encode(), simulation.pin.block_hash
    sides: dict[str, Side] = {
        "bare": _timed(lambda: door.batch([simulation.request()])),
        "warm": _timed(lambda: _executed(warm, simulation, proven=True)),
        "told": _timed(lambda: at_a_new_block(proven=False)),
        "proven": _timed(lambda: at_a_new_block(proven=True)),
        "cold": _timed(lambda: _executed(LocalEvm(door, chain_id), simulation, proven=True)),
        "verify": _timed(lambda: _verified(blob, block_hash)),
    }
    taken = await take_turns(rounds, sides)
    against = "one bare simulate"
    return [
        ratio(f"{what}, warm", taken["warm"], taken["bare"], against=against),
        ratio(f"{what}, new block, state told", taken["told"], taken["bare"], against=against),
        ratio(f"{what}, new block, state proven", taken["proven"], taken["bare"], against=against),
        ratio(f"{what}, cold, state proven", taken["cold"], taken["bare"], against=against),
        _weight(venue, executed, middle(taken["verify"])),
    ]


def _weight(venue: str, executed: Executed, verify_s: float) -> Result:
    witness = executed.witness()
    whole, without = len(witness.encode()), len(witness.encode(codes=False))
    return Result(
        what=f"witness of a {venue} swap", ours=f"{milliseconds(verify_s)} to verify", against=f"{without / BYTES_PER_KB:.1f} kB without code",
        value=whole / BYTES_PER_KB, unit="kB",
    )  # fmt: skip


def _swap_over(ground: Ground, venue: str) -> Simulation | None:
    """The simulation of a buy that crosses this venue first."""
    for symbol in TOKENS:
        token = ground.chain.deployment.token(symbol).address.lower()
        for route in buy_routes(ground.network, ground.graph, token, SPEND_WEI, WALLET):
            if len(route.ways) == 1 and route.hops[0].pool.venue == venue:
                return _simulated(ground, route)
    return None


def _simulated(ground: Ground, route: Route) -> Simulation:
    return TradeSimulation(ground.network, header_of_pin(ground.pin), Purse(WALLET, PURSE_WEI, ()), route, Held(0, 0)).simulation


async def _executed(evm: LocalEvm, simulation: Simulation, *, proven: bool) -> Executed:
    found = await evm.run(simulation, proven=proven)
    if not isinstance(found, Executed):
        raise RuntimeError(f"a swap of the bench was not covered: {found.reason}")
    return found


async def _verified(blob: bytes, block_hash: str) -> None:
    verify(blob, block_hash)


def _timed(work: Callable[[], Awaitable[object]]) -> Side:
    async def side() -> Seconds:
        begun = time.perf_counter()
        await work()
        return [time.perf_counter() - begun]

    return side
