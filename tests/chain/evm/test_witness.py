"""A witness: what it proves to whoever holds only the block's hash, and every way to forge one."""

from __future__ import annotations

import random
import zlib
from dataclasses import fields, replace

import pytest

from chain.evm import Executed, LocalEvm, Witness, WitnessWrong, verify
from chain.evm.witness import results_hash
from chain.header import header_of
from chain.network import load_network
from chain.rpc import Lane, RpcDoor
from chain.simulate import Simulation
from ledgers.clock import SystemClock
from tests.chain.evm.lab import ETH, RANDAO, WALLET, random_simulation
from tests.chain.market import MarketStall

NETWORK = load_network("devnet")
SPEND_WEI = 10**16


@pytest.fixture
async def swap(chain) -> tuple[Executed, str]:
    """A v3 swap with its reads, run here, and the hash of its block."""
    stall = await MarketStall.on(chain)
    route = next(route for route in stall.routes("buy", "LEAF", SPEND_WEI) if [hop.pool.venue for hop in route.hops] == ["v3"])
    executed = await LocalEvm(stall.door, NETWORK.chain_id).run((await stall.trade(route)).simulation)
    await stall.door.close()
    assert isinstance(executed, Executed)
    return executed, stall.pin.block_hash


async def test_a_witness_repeats_everything_offline(swap):
    executed, block_hash = swap
    found = verify(executed.witness().encode(), block_hash)
    assert found.calls == executed.calls and found.blocks == executed.blocks and found.chain_id == NETWORK.chain_id


async def test_code_may_be_kept_beside_it(swap):
    executed, block_hash = swap
    witness = executed.witness()
    blob = witness.encode(codes=False)
    assert len(blob) < len(witness.encode()) / 2
    assert verify(blob, block_hash, witness.codes).calls == executed.calls
    with pytest.raises(WitnessWrong, match="lacks"):
        verify(blob, block_hash, witness.codes[1:])


async def test_the_same_run_is_written_in_the_same_bytes(swap):
    executed, _ = swap
    assert executed.witness().encode() == executed.witness().encode()
    assert zlib.decompress(executed.witness().encode(), -15)[:1] >= b"\xc0"


async def test_another_block_is_not_proven(swap, chain):
    executed, _ = swap
    with pytest.raises(WitnessWrong):
        verify(executed.witness().encode(), chain.block_hash(3))


@pytest.mark.parametrize("seed", range(60))
async def test_a_witness_with_any_byte_of_any_part_changed_proves_nothing_else(swap, seed):
    """Of its calls another byte may make other calls, which are told as such; everything else is caught."""
    executed, block_hash = swap
    chance, witness = random.Random(seed), executed.witness()
    name = chance.choice([field.name for field in fields(Witness) if field.name not in ("chain_id", "ancestors")])
    forged = replace(witness, **{name: _changed(getattr(witness, name), chance)})
    assert forged != witness
    try:
        found = verify(forged.encode(), block_hash)
    except WitnessWrong:
        return
    assert name == "blocks" and found.blocks != executed.blocks


@pytest.mark.parametrize("name", ("accounts", "words", "nodes", "codes"))
async def test_nothing_can_be_left_out_or_put_in(swap, name):
    executed, block_hash = swap
    witness = executed.witness()
    rows = getattr(witness, name)
    more = {"accounts": 0xDEAD, "words": (int(NETWORK.weth, 16), 3), "nodes": b"\x80", "codes": b"\x00"}[name]
    for forged in (rows[1:], rows[:-1], (*rows, more), (*rows, rows[0]), rows[::-1]):
        with pytest.raises(WitnessWrong):
            verify(replace(witness, **{name: tuple(forged)}).encode(), block_hash)


async def test_other_results_are_caught(swap):
    executed, block_hash = swap
    calls = [[replace(call, gas_used=call.gas_used + 1) for call in row] for row in executed.calls]
    with pytest.raises(WitnessWrong, match="something else"):
        verify(replace(executed.witness(), results=results_hash(calls)).encode(), block_hash)


async def test_another_chain_is_told(swap):
    """No contract here asks for the chain's id: the witness says for which it was run."""
    executed, block_hash = swap
    assert verify(replace(executed.witness(), chain_id=1).encode(), block_hash).chain_id == 1


@pytest.mark.parametrize("blob", (b"", b"\x00", b"\x03\x00", zlib.compress(b"x" * 100), b"\xff" * 64))
def test_what_is_no_witness_is_said(blob):
    with pytest.raises(WitnessWrong):
        verify(blob, "0x" + "11" * 32)


async def test_bytes_behind_a_witness_are_not_passed_over(swap):
    executed, block_hash = swap
    with pytest.raises(WitnessWrong):
        verify(executed.witness().encode() + b"\x00", block_hash)


@pytest.mark.parametrize("blocks", (b"{}", b"[7]", b"[{}]", b'[{"calls": [{}]}]', b"[", b'[{"calls": 7}]', b'[{"calls": [], "blockOverrides": {"number": "x"}}]'))
async def test_calls_that_are_none_are_said(swap, blocks):
    executed, block_hash = swap
    with pytest.raises(WitnessWrong):
        verify(replace(executed.witness(), blocks=blocks).encode(), block_hash)


async def test_headers_before_the_pin_are_in_it_where_they_are_asked_for(chain):
    door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    pin = header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))
    simulation = Simulation(NETWORK, pin)
    simulation.block(balances_wei={WALLET: ETH}, code={NETWORK.weth: "0x63" + f"{pin.block - 4:08x}" + "405f5260205ff3"}, randao=RANDAO)
    simulation.view(NETWORK.weth, "0x")
    executed = await LocalEvm(door, NETWORK.chain_id).run(simulation)
    await door.close()
    assert isinstance(executed, Executed)
    witness = executed.witness()
    assert len(witness.ancestors) == 3
    assert verify(witness.encode(), pin.block_hash).calls == executed.calls
    for forged in (witness.ancestors[:-1], witness.ancestors[1:], (*witness.ancestors, witness.header)):
        with pytest.raises(WitnessWrong):
            verify(replace(witness, ancestors=forged).encode(), pin.block_hash)


async def test_random_programs_are_proven_offline(chain):
    door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    pin = header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))
    evm = LocalEvm(door, NETWORK.chain_id)
    for seed in range(30):
        executed = await evm.run(random_simulation(seed, pin, NETWORK))
        assert isinstance(executed, Executed)
        assert verify(executed.witness().encode(), pin.block_hash).calls == executed.calls, seed
    await door.close()


def _changed(part: object, chance: random.Random) -> object:
    """One byte or bit of one row of a part changed."""
    if isinstance(part, bytes):
        place = chance.randrange(len(part))
        return part[:place] + bytes([part[place] ^ chance.randrange(1, 256)]) + part[place + 1 :]
    if isinstance(part, int):
        return part ^ 1 << chance.randrange(150)
    assert isinstance(part, tuple)
    place = chance.randrange(len(part))
    row = _changed(part[place], chance) if not isinstance(part[place], tuple) else (part[place][0], part[place][1] ^ 1 << chance.randrange(250))
    return (*part[:place], row, *part[place + 1 :])
