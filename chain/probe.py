"""What a node can do, found out by asking, and whether it is the chain it should be.

Clients differ in error shapes, defaults and limits, and providers differ again; nothing here is assumed from a client's
name. Small programs that exist only as a code override tell gas caps and error shapes.
Source: design §6; differences seen between clients are listed in the chain's reference notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chain.calldata import hex_bytes, hex_int
from chain.header import block_hash, header_of, header_request, seal_of
from chain.network import Network
from chain.rpc import RpcDoor, RpcRefused
from chain.text import clean
from ledgers.clock import Clock
from ledgers.errors import ChainFault

CLIENT_LENGTH_MAX = 80
BATCH_SIZES = (100, 25, 5, 1)
CALL_COUNTS = (1_000, 200, 50, 10)
CLOCK_SAMPLES = 3
PROGRAM = "0x0000000000000000000000000000000050524f42"
"""Where a small program is put for the length of a call; nobody's address."""
SENDER = "0x0000000000000000000000000000000053454e44"
TELL_GAS = "0x5a60005260206000f3"
"""return gas left"""
TELL_BASE_FEE = "0x4860005260206000f3"
"""return the block's base fee as the EVM sees it"""
TELL_NUMBER = "0x4360005260206000f3"
"""return the block's number as the EVM sees it"""
REVERT_WITH_WORD = "0x602a60005260206000fd"
"""revert with one word, 42"""
REVERT_WORD = "0x" + "2a".rjust(64, "0")
PAY_ON = "0x600060006000600034335af100"
"""send the received value back to the sender"""
PLAIN_GAS = 100_000
LOCAL_CHAIN = "devnet"
LOCAL_CLIENTS = ("anvil", "hardhat", "ganache")
"""Development nodes, as they call themselves: each may bear any chain's id, or a copy of its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one node answered."""

    client: str
    """What it says it is, bounded and stripped."""
    chain_id: int
    block0_hash: str
    simulate: bool
    """eth_simulateV1 works, with validation, overrides and several calls."""
    error_code_shape: str
    """Code of a reverted simulated call, and where its data is: `3:data`, `-3200:returnData`; `none` without simulate."""
    simulated_block_step: int
    """Number of a simulated block with no override, minus the base block's."""
    simulated_time_step_s: int
    native_logs: bool
    """Moves of ETH come as Transfer logs when asked for."""
    real_base_fee: bool
    """With validation, the base fee override is what contracts see."""
    number_moves: bool
    """Contracts see a simulated block's own number; Nitro tells them an estimate of the number of the chain beneath instead."""
    headers_sealed: bool
    """A header's hash is the hash of its fields, as on Ethereum, so that a header that lies is seen."""
    access_list: bool
    batch_max: int
    """Largest batch tried that was answered."""
    calls_max: int
    """Most calls in one simulation that were tried and answered; 0 without simulate."""
    gas_cap: int
    """Gas a call gets when it asks for none, roughly the node's cap."""
    clock_offset_ms: int
    """Chain time minus wall time, the best of a few samples; block times are whole seconds."""
    code_missing: tuple[str, ...]
    """Configured contracts that have no code there, by name."""


async def probe(rpc: RpcDoor, network: Network, clock: Clock) -> Capabilities:
    """Ask a node what it can do. Raises: ChainFault when it does not answer the plainest questions properly."""
    identity = [("web3_clientVersion", []), ("eth_chainId", []), header_request(0), header_request("latest")]
    client, chain_id, block0, latest = await rpc.batch(identity)
    head = header_of(latest)
    simulated = await _simulated(rpc, head.block, head.base_fee_wei)
    return Capabilities(
        client=clean(None if isinstance(client, RpcRefused) else client, CLIENT_LENGTH_MAX),
        chain_id=hex_int(chain_id),
        block0_hash=header_of(block0, 0).block_hash,
        **_simulation(simulated, head.block, head.ts_s),
        number_moves=await _number_moves(rpc, head.block),
        headers_sealed=isinstance(latest, dict) and seal_of(latest) == head.block_hash,
        access_list=await _access_list(rpc, network, head.block),
        batch_max=await _largest_batch(rpc),
        calls_max=await _most_calls(rpc, head.block) if _block_of(simulated) else 0,
        gas_cap=await _gas_cap(rpc, head.block),
        clock_offset_ms=await _clock_offset_ms(rpc, clock),
        code_missing=await code_missing(rpc, network),
    )


def check_identity(capabilities: Capabilities, network: Network, expected_block0: str | None = None) -> None:
    """Hold a node to the chain it should be.

    Raises: ChainFault `local_node`, `wrong_identity`, `missing_code` or `no_simulate`."""
    refuse_local_node(capabilities.client, network)
    expected_block0 = expected_block0 or network.block0_hash
    if capabilities.chain_id != network.chain_id:
        raise ChainFault("wrong_identity", f"expected chain id {network.chain_id} for {network.name}, found {capabilities.chain_id}")
    if expected_block0 is not None and capabilities.block0_hash != block_hash(expected_block0):
        raise ChainFault("wrong_identity", f"expected block 0 {expected_block0}, found {capabilities.block0_hash}: another chain with the same id")
    refuse_missing_code(capabilities.code_missing, network)
    if not capabilities.simulate:
        raise ChainFault("no_simulate", f"{capabilities.client or 'the node'} has no working eth_simulateV1; another endpoint is needed")


def refuse_local_node(client: str, network: Network) -> None:
    """Check that what a development node plays is not taken for a real chain. Raises: ChainFault("local_node")."""
    if network.name != LOCAL_CHAIN and client.lower().startswith(LOCAL_CLIENTS):
        raise ChainFault("local_node", f"the node says it is {client}, a development node: a chain of somebody's own and not {network.name}, whatever its id")


def refuse_missing_code(missing: Sequence[str], network: Network) -> None:
    """Check that every configured contract is there. Raises: ChainFault("missing_code")."""
    if missing:
        raise ChainFault("missing_code", f"no code at the configured address of {', '.join(missing)}: not {network.name}, or a wrong network file")


async def client_of(rpc: RpcDoor) -> str:
    """What a node says it is, bounded and stripped. Raises: ChainFault."""
    (client,) = await rpc.batch([("web3_clientVersion", [])])
    return clean(None if isinstance(client, RpcRefused) else client, CLIENT_LENGTH_MAX)


# --- simulation -----------------------------------------------------------------------------------------------------


async def _simulated(rpc: RpcDoor, block: int, base_fee_wei: int) -> object:
    """One simulation that shows defaults, error shape, native logs and the base fee; an answer or a refusal."""
    fee = base_fee_wei + 1
    base, revert, pay = (f"0x{0x50524F42_00 + place:040x}" for place in (1, 2, 3))
    paid = {"from": SENDER, "gas": hex(PLAIN_GAS), "maxFeePerGas": hex(fee), "maxPriorityFeePerGas": "0x0"}
    codes = {base: TELL_BASE_FEE, revert: REVERT_WITH_WORD, pay: PAY_ON}
    calls = [{**paid, "to": base}, {**paid, "to": revert}, {**paid, "to": pay, "value": "0x7"}]
    overrides = {address: {"code": code} for address, code in codes.items()} | {SENDER: {"balance": hex(10**21)}}
    state = {"blockOverrides": {"baseFeePerGas": hex(fee)}, "stateOverrides": overrides, "calls": calls}
    (answer,) = await rpc.batch([("eth_simulateV1", [{"blockStateCalls": [state], "traceTransfers": True, "validation": True}, hex(block)])])
    return None if isinstance(answer, RpcRefused) else (answer, fee)


def _simulation(simulated: Any, block: int, ts_s: int) -> dict[str, Any]:
    found = _block_of(simulated)
    if found is None:
        return {
            "simulate": False, "error_code_shape": "none", "simulated_block_step": 0, "simulated_time_step_s": 0,
            "native_logs": False, "real_base_fee": False,
        }  # fmt: skip
    base, revert, pay = found["calls"]
    return {
        "simulate": base.get("status") == "0x1" and revert.get("status") == "0x0",
        "error_code_shape": _error_shape(revert),
        "simulated_block_step": hex_int(found.get("number")) - block,
        "simulated_time_step_s": hex_int(found.get("timestamp")) - ts_s,
        "native_logs": isinstance(pay.get("logs"), list) and len(pay["logs"]) >= 1,
        "real_base_fee": hex_bytes(base.get("returnData", "0x")) == simulated[1].to_bytes(32),
    }


def _block_of(simulated: Any) -> dict[str, Any] | None:
    """The one simulated block with its three calls, or None when the answer is anything else."""
    blocks = simulated[0] if simulated else None
    if not isinstance(blocks, list) or len(blocks) != 1 or not isinstance(blocks[0], dict):
        return None
    calls = blocks[0].get("calls")
    fits = isinstance(calls, list) and len(calls) == 3 and all(isinstance(call, dict) for call in calls)
    return blocks[0] if fits else None


def _error_shape(call: dict[str, Any]) -> str:
    error = call.get("error") if isinstance(call.get("error"), dict) else {}
    code = error.get("code")
    places = [name for name, value in (("data", error.get("data")), ("returnData", call.get("returnData"))) if value == REVERT_WORD]
    return f"{code if type(code) is int else 'none'}:{'+'.join(places) or 'none'}"


async def _number_moves(rpc: RpcDoor, block: int) -> bool:
    """Whether contracts see the numbers that two simulated blocks were given."""
    numbers = [hex(block + step) for step in (1, 2)]
    code, call = {PROGRAM: {"code": TELL_NUMBER}}, {"from": SENDER, "to": PROGRAM, "gas": hex(PLAIN_GAS)}
    states = [{"blockOverrides": {"number": number}, "stateOverrides": code, "calls": [call]} for number in numbers]
    (answer,) = await rpc.batch([("eth_simulateV1", [{"blockStateCalls": states}, hex(block)])])
    if not isinstance(answer, list) or len(answer) != len(numbers):
        return False
    seen = [call.get("returnData") for block in answer if isinstance(block, dict) for call in block.get("calls") or () if isinstance(call, dict)]
    return seen == ["0x" + f"{int(number, 16):064x}" for number in numbers]


async def _most_calls(rpc: RpcDoor, block: int) -> int:
    for count in CALL_COUNTS:
        state = {"calls": [{"from": SENDER, "to": SENDER, "gas": hex(21_000 + 4_000)}] * count}
        (answer,) = await rpc.batch([("eth_simulateV1", [{"blockStateCalls": [state]}, hex(block)])])
        if isinstance(answer, list) and answer and isinstance(answer[0], dict) and len(answer[0].get("calls") or ()) == count:
            return count
    return 0


# --- the rest -------------------------------------------------------------------------------------------------------


async def _access_list(rpc: RpcDoor, network: Network, block: int) -> bool:
    call = {"from": SENDER, "to": network.weth, "data": "0x70a08231" + SENDER[2:].rjust(64, "0")}
    (answer,) = await rpc.batch([("eth_createAccessList", [call, hex(block)])])
    return isinstance(answer, dict) and isinstance(answer.get("accessList"), list)


async def _largest_batch(rpc: RpcDoor) -> int:
    for size in BATCH_SIZES[:-1]:
        try:
            answers = await rpc.batch([("eth_chainId", [])] * size)
        except ChainFault:
            continue
        if not any(isinstance(answer, RpcRefused) for answer in answers):
            return min(size, rpc.answering.batch_max or size)
    return BATCH_SIZES[-1]


async def _gas_cap(rpc: RpcDoor, block: int) -> int:
    (answer,) = await rpc.batch([("eth_call", [{"to": PROGRAM}, hex(block), {PROGRAM: {"code": TELL_GAS}}])])
    return 0 if isinstance(answer, RpcRefused) else int.from_bytes(hex_bytes(answer)[:32])


async def _clock_offset_ms(rpc: RpcDoor, clock: Clock) -> int:
    """The newest block's time can only be behind the chain's clock, so the largest difference is the nearest."""
    offsets = []
    for _ in range(CLOCK_SAMPLES):
        before_ms = clock.now_ms()
        header = header_of(await rpc.call(*header_request("latest")))
        offsets.append(header.ts_s * 1_000 - (before_ms + clock.now_ms()) // 2)
    return max(offsets)


async def code_missing(rpc: RpcDoor, network: Network) -> tuple[str, ...]:
    """Name the configured contracts that have no code on a node. Raises: ChainFault."""
    contracts = network.contracts()
    answers: Sequence[object] = await rpc.batch([("eth_getCode", [address, "latest"]) for address in contracts.values()])
    return tuple(name for name, code in zip(contracts, answers, strict=True) if isinstance(code, RpcRefused) or not hex_bytes(code))
