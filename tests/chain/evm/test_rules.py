"""Single rules, each beside the node, and what is said instead of a number where a rule is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_hash.auto import keccak
from eth_keys.datatypes import PrivateKey

from chain.evm import Executed, LocalEvm, NotCovered, difference, serial
from chain.evm.execute import Chain, execute
from chain.evm.proofs import header_by_hash
from chain.evm.recovery import N, recover
from chain.evm.rules import CODE_EMPTY
from chain.evm.state import Account, Known
from chain.header import header_of
from chain.network import load_network
from chain.router import Tx
from chain.rpc import Lane, RpcDoor
from chain.simulate import Simulation, SlotWrite
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from tests.chain.evm.lab import ETH, RANDAO, WALLET, both, slot_text, text
from tests.chain.evm.programs import push

NETWORK = load_network("devnet")
HERE, THERE = 0xC0DE000000000000000000000000000000000A, 0xC0DE000000000000000000000000000000000B
GAS = 1_000_000
TELL = "5f5260205ff3"
"""Return the word on the stack."""


@pytest.fixture
async def door(chain):
    opened = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    yield opened
    await opened.close()


@pytest.fixture
def pin(chain):
    return header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))


def calling(pin, *codes: str, data: str = "0x", gas: int = GAS, value: int = 0, blocks: int = 1, randao: str = RANDAO, writes=()) -> Simulation:
    """A call of the first code in each block; the second stands beside it."""
    simulation = Simulation(NETWORK, pin)
    placed = {text(address): "0x" + code for address, code in zip((HERE, THERE), codes, strict=False)}
    for block in range(blocks):
        simulation.block(balances_wei={WALLET: ETH}, code=None if block else placed, randao=randao, writes=() if block else writes)
        simulation.send(WALLET, Tx(text(HERE), data, gas, value))
    return simulation


async def alike(door: RpcDoor, simulation: Simulation) -> Executed:
    executed, simulated = await both(door, LocalEvm(door, NETWORK.chain_id), simulation)
    assert isinstance(executed, Executed), executed
    assert difference(executed, simulated) == ""
    return executed


async def refused(door: RpcDoor, simulation: Simulation) -> str:
    found = await LocalEvm(door, NETWORK.chain_id).run(simulation)
    assert isinstance(found, NotCovered), found
    return found.reason


# --- beside the node --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instruction", (0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x48, 0x4A, 0x3A, 0x5A, 0x32, 0x30))
async def test_what_a_block_and_a_call_tell(door, pin, instruction):
    await alike(door, calling(pin, f"{instruction:02x}{TELL}", blocks=2))


@pytest.mark.parametrize("back", (0, 1, 2, 5))
async def test_hashes_of_earlier_blocks(door, pin, back):
    executed = await alike(door, calling(pin, push(pin.block - back).hex() + "40" + TELL))
    assert int.from_bytes(executed.calls[0][0].data) != 0


@pytest.mark.parametrize("ahead", (1, 2, 2**70))
async def test_hashes_of_blocks_to_come_are_zero(door, pin, ahead):
    executed = await alike(door, calling(pin, push(pin.block + ahead).hex() + "40" + TELL))
    assert int.from_bytes(executed.calls[0][0].data) == 0


@pytest.mark.parametrize("zeros, others", ((0, 0), (10, 0), (0, 40), (3_000, 3_000), (0, 20_000)))
async def test_data_has_its_floor(door, pin, zeros, others):
    data = "0x" + "00" * zeros + "01" * others
    executed = await alike(door, calling(pin, "00", data=data))
    assert executed.calls[0][0].gas_used == 21_000 + 10 * (zeros + 4 * others)


async def test_refunds_are_a_fifth_at_most_and_what_is_needed_is_told_before_them(door, pin):
    clears = "".join(f"5f{push(slot).hex()}55" for slot in range(1, 9))
    executed = await alike(door, calling(pin, clears + "00", writes=[SlotWrite(text(HERE), slot_text(slot), 7) for slot in range(1, 9)]))
    call = executed.calls[0][0]
    assert call.gas_used == call.gas_needed - call.gas_needed // 5
    assert [(write.before, write.after) for write in call.writes] == [(7, 0)] * 8


async def test_an_account_that_runs_anothers_code(door, pin):
    delegate = "ef0100" + text(THERE)[2:]
    executed = await alike(door, calling(pin, delegate, "6001600155" + "30" + TELL))
    assert executed.calls[0][0].data == HERE.to_bytes(32)
    assert [write.contract for write in executed.calls[0][0].writes] == [text(HERE)]


@pytest.mark.parametrize("instruction", ("31", "3b", "3f", "f1"))
async def test_asking_about_an_account_that_runs_anothers_code(door, pin, instruction):
    asked = "5f5f5f5f5f" * (instruction == "f1") + push(THERE).hex() + "5a" * (instruction == "f1") + instruction
    await alike(door, calling(pin, asked + TELL, "ef0100" + NETWORK.weth[2:]))


@pytest.mark.parametrize("kept", (False, True))
async def test_a_contract_that_ends_in_the_call_that_made_it_leaves_nothing(door, pin, kept):
    """Made with a word written and one wei, then told to end, or not."""
    init = "6007600155" + "6133ff5f52" + "6002601ef3"
    make = push(int(init, 16)).hex() + "5f52" + push(len(init) // 2).hex() + push(32 - len(init) // 2).hex() + "6001f0"
    executed = await alike(door, calling(pin, make + ("" if kept else "5f5f5f5f5f855af150") + TELL, value=1))
    made = "0x" + executed.calls[0][0].data.hex()[24:]
    changed = [row for row in executed.calls[0][0].accounts if row.address == made]
    assert [(row.nonce, row.balance) for row in changed] == ([((0, 1), (0, 1))] if kept else [])
    assert [write.contract for write in executed.calls[0][0].writes] == ([made] if kept else [])


async def test_what_a_reverted_frame_wrote_is_not_told(door, pin):
    inner = "600160015560016002555f5ffd"
    executed = await alike(door, calling(pin, "6005600555" + "5f5f5f5f5f" + push(THERE).hex() + "5af1" + TELL, inner))
    call = executed.calls[0][0]
    assert [(write.contract, int(write.slot, 16)) for write in call.writes] == [(text(HERE), 5)]
    assert {(read.contract, int(read.slot, 16)) for read in call.reads} == {(text(HERE), 5), (text(THERE), 1), (text(THERE), 2)}


async def test_state_is_carried_from_call_to_call_and_what_is_transient_is_not(door, pin):
    count = "5f546001015f55" + "5f5c6001015f5d" + "5f54" + TELL
    executed = await alike(door, calling(pin, count, blocks=3))
    assert [int.from_bytes(row[0].data) for row in executed.calls] == [1, 2, 3]
    transient = await alike(door, calling(pin, "5f5c6001015f5d5f5c" + TELL, blocks=2))
    assert [int.from_bytes(row[0].data) for row in transient.calls] == [1, 1]


async def test_who_signed_is_found(door, pin):
    digest, key = keccak(b"a permit"), PrivateKey(keccak(b"a key"))
    signed = key.sign_msg_hash(digest)
    data = digest.hex() + f"{signed.v + 27:064x}{signed.r:064x}{signed.s:064x}"
    ask = "60805f5f37" + "60205f60805f60015afa505f51" + TELL
    executed = await alike(door, calling(pin, ask, data="0x" + data))
    assert executed.calls[0][0].data[12:] == key.public_key.to_canonical_address()
    wrong = await alike(door, calling(pin, ask, data="0x" + data[:64] + f"{29:064x}" + data[128:]))
    assert wrong.calls[0][0].data != executed.calls[0][0].data


@pytest.mark.parametrize("base, power, modulus", ((3, 2**255 - 19, 2**255 - 1), (0, 0, 1), (5, 1, 0), (2**300, 2**270, 2**330 + 1), (7, 2**600, 2**64)))
async def test_powers(door, pin, base, power, modulus):
    parts = [part.to_bytes(max((part.bit_length() + 7) // 8, 1)) for part in (base, power, modulus)]
    data = "".join(f"{len(part):064x}" for part in parts) + b"".join(parts).hex()
    ask = "365f5f37" + push(len(parts[2])).hex() + "610400" + "365f" + "6005" + "5afa" + "50" + "3d5f5f3e" + "3d5ff3"
    told = await alike(door, calling(pin, ask, data="0x" + data))
    assert int.from_bytes(told.calls[0][0].data) == (pow(base, power, modulus) if modulus else 0)


async def test_a_stack_overflows_at_1025_words(door, pin):
    fits = await alike(door, calling(pin, "5f" * 1_024 + "00"))
    over = await alike(door, calling(pin, "5f" * 1_025 + "00"))
    assert (fits.calls[0][0].ok, over.calls[0][0].ok, over.calls[0][0].gas_used) == (True, False, GAS)


async def test_calls_nest_as_deep_as_their_gas_reaches(door, pin):
    executed = await alike(door, calling(pin, "5f5f5f5f5f305af1" + "5f546001015f55" + "5f54" + TELL, gas=6_000_000))
    assert executed.calls[0][0].writes


async def test_the_least_gas_counts_what_cannot_be_handed_on(door, pin):
    """The outer contract does nothing after its call: 63 parts of 64 must suffice for the inner one."""
    inner = "".join(f"6001{push(slot).hex()}55" for slot in range(1, 9)) + "00"
    executed = await alike(door, calling(pin, "5f5f5f5f5f" + push(THERE).hex() + "5af1" + "5f52" + "60205ff3", inner))
    least = executed.least_gas((0, 0))
    assert least > executed.calls[0][0].gas_needed
    for gas, fits in ((least, True), (least - 1, False)):
        tried = await alike(door, calling(pin, "5f5f5f5f5f" + push(THERE).hex() + "5af1" + "5f52" + "60205ff3", inner, gas=gas))
        assert bool(tried.calls[0][0].writes) is fits


async def test_the_least_gas_of_a_simple_call_is_what_it_used(door, pin):
    executed = await alike(door, calling(pin, "6001600155" + "00"))
    assert executed.least_gas((0, 0)) == executed.calls[0][0].gas_needed


# --- what is not covered ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, why",
    (
        ("5f5f5f5f60085afa" + TELL, "bn256 pairing"),
        ("5f5f5f5f600a5afa" + TELL, "point evaluation"),
        ("5f5f5f5f60115afa" + TELL, "bls12"),
        ("5f5f5f5f6101005afa" + TELL, "p256verify"),
        ("5f5f5f5f730000f90827f1c53a10cb7a02335b1753200029355afa" + TELL, "the chain itself writes to"),
        ("61c001" + "5f5ff0" + TELL, "creates a contract by more than"),
    ),
)
async def test_what_is_not_known_is_said(door, pin, code, why):
    assert why in await refused(door, calling(pin, code))


async def test_a_random_word_that_was_not_set_is_not_guessed(door, pin):
    simulation = calling(pin, "44" + TELL)
    del simulation.blocks[0]["blockOverrides"]["prevRandao"]
    assert "random word" in await refused(door, simulation)


async def test_the_hash_of_a_simulated_block_is_not_known(door, pin):
    assert "simulated block" in await refused(door, calling(pin, push(pin.block + 1).hex() + "40" + TELL, blocks=2))


async def test_a_sender_that_cannot_pay_is_no_result(door, pin):
    simulation = calling(pin, "00", value=ETH)
    assert "cannot pay" in await refused(door, simulation)


@pytest.mark.parametrize("gas, covered", ((21_000, True), (20_999, False)))
async def test_a_call_needs_its_gas_before_it_begins(door, pin, gas, covered):
    found = await LocalEvm(door, NETWORK.chain_id).run(calling(pin, "00", gas=gas))
    assert isinstance(found, Executed) is covered


async def test_what_is_dear_here_and_cheap_in_gas_has_an_end(door, pin):
    """Recovering keys without end."""
    assert "more work" in await refused(door, calling(pin, "5b60205f60805f60015afa505f56", gas=6_000_000))


@pytest.mark.parametrize("code", ("43" + TELL, "41" + TELL, "45" + TELL, "5f40" + TELL, "5f5f5f5f60645afa" + TELL, "606c3b" + TELL))
def test_what_nitro_means_otherwise_is_not_covered_there(code):
    """Block numbers and their kin, and its own precompiled contracts."""
    sender, target = 0xA11CE, HERE
    known = Known({sender: Account(0, ETH, b"", CODE_EMPTY), target: Account(1, 0, b"", keccak(bytes.fromhex(code)))}, {}, {keccak(bytes.fromhex(code)): bytes.fromhex(code)})
    known.accounts |= {address: Account(0, 0, b"", CODE_EMPTY) for address in (0, 0x64, 0x6C)}
    call = {"from": text(sender), "to": text(target), "data": "0x", "gas": hex(GAS), "maxFeePerGas": "0x1"}
    blocks = [{"blockOverrides": {"number": "0x2", "time": "0x1", "baseFeePerGas": "0x1"}, "stateOverrides": {}, "calls": [call]}]
    chain = Chain(chain_id=1, block=1, gas_limit=10**9, coinbase=0, blob_base_fee=1, nitro=True)
    assert "this chain" in execute(chain, known, blocks, {}).refused
    known.blocks[0] = 7
    assert not execute(replace(chain, nitro=False), known, blocks, {}).refused


@pytest.mark.parametrize("difficulty, more, nitro", ((1, 0, True), (0, 0, False), (1, 1, False)))
def test_a_header_as_nitro_writes_them_is_known_by_its_difficulty_and_length(difficulty, more, nitro):
    fields = [b"\x11" * 32] * 7 + [bytes([difficulty]) if difficulty else b"", b"\x05", b"\x01", b"\x02", b"\x03", b"", b"\x22" * 32, b"\0" * 8, b"\x07"]
    written = serial.encode([*fields, *[b"\x33" * 32] * more])
    header = header_by_hash(written, keccak(written))
    assert (header.nitro, header.block, header.base_fee) == (nitro, 5, 7)


@pytest.mark.parametrize("written", (b"", b"\xc0", serial.encode([b"\x11"] * 22), serial.encode([[b"\x11"]] * 16)))
def test_what_has_the_hash_and_is_no_header_is_a_fault(written):
    with pytest.raises(ChainFault):
        header_by_hash(written, keccak(written))


@pytest.mark.parametrize("code", ("44" + TELL, "60011e" + TELL, "5f5f5f5f60055afa" + TELL))
def test_what_nitro_may_not_know_is_not_covered_there(code):
    known = Known({0xA11CE: Account(0, ETH, b"", CODE_EMPTY), HERE: Account(1, 0, b"", keccak(bytes.fromhex(code)))}, {}, {keccak(bytes.fromhex(code)): bytes.fromhex(code)})
    call = {"from": text(0xA11CE), "to": text(HERE), "data": "0x", "gas": hex(GAS), "maxFeePerGas": "0x1"}
    header = {"number": "0x2", "time": "0x1", "baseFeePerGas": "0x1", "prevRandao": RANDAO}
    blocks = [{"blockOverrides": header, "stateOverrides": {}, "calls": [call]}]
    chain = Chain(chain_id=1, block=1, gas_limit=10**9, coinbase=0, blob_base_fee=1, nitro=True)
    assert "this chain" in execute(chain, known, blocks, {}).refused
    known.accounts |= {address: Account(0, 0, b"", CODE_EMPTY) for address in (0, 5)}
    assert not execute(replace(chain, nitro=False), known, blocks, {}).refused


@pytest.mark.parametrize("seed", range(20))
def test_keys_are_recovered_from_what_they_signed_and_from_nothing_else(seed):
    digest, key = keccak(b"digest %d" % seed), PrivateKey(keccak(b"key %d" % seed))
    signed = key.sign_msg_hash(digest)
    assert recover(digest, signed.v, signed.r, signed.s) == key.public_key.to_bytes()
    assert recover(digest, 1 - signed.v, signed.r, signed.s) != key.public_key.to_bytes()
    assert recover(keccak(digest), signed.v, signed.r, signed.s) != key.public_key.to_bytes()
    for r, s in ((0, signed.s), (signed.r, 0), (N, signed.s), (signed.r, N)):
        assert recover(digest, signed.v, r, s) is None
