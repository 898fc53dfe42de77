"""The self-test: what a node can do, and whether the chain behind it is what its network file says, one finding a line.

The probe tells what the product goes by; this tells a person why it will or will not do. Nothing is assumed from a client's
name, and what could not be asked is unknown, never fine.
Source: design §6; where nodes and providers differ.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from chain import calldata
from chain.aggregators.rivals import Rivals
from chain.finding import DIFFERS, FINE, NOTED, UNKNOWN, Finding, verdict
from chain.header import Header, header_of, header_request
from chain.logs import LogFilter
from chain.network import Network
from chain.pools import CREATIONS
from chain.probe import LOCAL_CHAIN, Capabilities, probe
from chain.router import Tx
from chain.rpc import RpcDoor, RpcRefused
from chain.selftest_market import code_findings, pool_findings, price_findings, slot_findings
from chain.selftest_rivals import rival_findings
from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from chain.text import clean
from ledgers.clock import Clock
from ledgers.errors import ChainFault

NODE_INTERFACE = "0x00000000000000000000000000000000000000c8"
L1_COMPONENT = "77d488a2"
PAYER = "0x0000000000000000000000000000000053454e44"
PAYEE = "0x0000000000000000000000000000000000ce1175"
NOT_THE_POSTER = "0x000000000000000000000000000000000000dead"
TRANSFER_GAS = 21_000
PURSE_WEI = 10**18
L1_UNDER_PERCENT, L1_OVER_PERCENT = 75, 125
"""How far the L1 part of a simulated transfer may be from the node's own estimate of it, which pads by about a tenth."""
CLOCK_OFF_MS_MAX = 15_000
LOG_SPANS = (10_000, 5_000, 1_000, 100, 10, 1)
DEPTHS = (100_000, 5_000, 1_000, 128, 32, 1)
NOT_ASKED = ("debug_traceCall", "eth_sendRawTransaction")
"""Methods that the door does not let through; a node needs neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """A whole self-test."""

    capabilities: Capabilities
    head: Header
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Nothing differs from what is needed, and nothing that was asked stayed open."""
        return not any(finding.verdict in (DIFFERS, UNKNOWN) for finding in self.findings)


async def self_test(rpc: RpcDoor, network: Network, clock: Clock, rivals: Rivals | None = None) -> SelfTest:
    """Test a node against a network, and rivals where some are named.

    Raises: ChainFault when the node does not answer the plainest questions properly."""
    found = await probe(rpc, network, clock)
    head = header_of(await rpc.call(*header_request("latest")))
    pin = header_of(await rpc.call(*header_request(max(head.block - network.pin_depth, 0))))
    findings = [*_node_findings(found, network, head), *_simulation_findings(found)]
    parts: list[Callable[[], Awaitable[list[Finding]]]] = [
        lambda: _methods(rpc, found, pin),
        lambda: _times(rpc, network, pin),
        lambda: _gas(rpc, network, pin),
        lambda: _limits(rpc, found, head),
        lambda: code_findings(rpc, network, found),
        lambda: price_findings(rpc, network, pin),
        lambda: pool_findings(rpc, network, pin),
        lambda: slot_findings(rpc, network, pin),
    ]
    if rivals is not None:
        parts.append(lambda: rival_findings(rpc, network, pin, rivals))
    for part in parts:
        findings += [finding async for finding in _guarded(part)]
    return SelfTest(capabilities=found, head=head, findings=tuple(findings))


async def _guarded(part: Callable[[], Awaitable[list[Finding]]]) -> AsyncIterator[Finding]:
    """A part's findings; a node that fails within it is a finding too."""
    try:
        for finding in await part():
            yield finding
    except ChainFault as fault:
        yield Finding("node", "answers", UNKNOWN, clean(str(fault), 160))


# --- node and simulation: from what the probe found -------------------------------------------------------------------


def _node_findings(found: Capabilities, network: Network, head: Header) -> list[Finding]:
    off_ms = found.clock_offset_ms
    wall = network.clock == "wall"
    return [
        Finding("node", "client", verdict(bool(found.client), NOTED), found.client or "does not say"),
        Finding("node", "chain id", verdict(found.chain_id == network.chain_id), f"{found.chain_id}, expected {network.chain_id}"),
        _block_0(found, network),
        Finding("node", "newest block", FINE, f"{head.block}, base fee {head.base_fee_wei} wei"),
        Finding(
            "node", "clock", verdict(not wall or abs(off_ms) <= CLOCK_OFF_MS_MAX),
            f"chain time is {off_ms} ms from ours" + ("" if wall else "; this chain's clock is its own"),
        ),
        Finding(
            "node", "headers", verdict(found.headers_sealed, NOTED),
            "hashed as on Ethereum" if found.headers_sealed else "hashed over other fields: they are taken at the node's word",
        ),
    ]  # fmt: skip


def _block_0(found: Capabilities, network: Network) -> Finding:
    if network.block0_hash is None:
        why = "each local chain has its own" if network.name == LOCAL_CHAIN else "its network file names none, so that nothing here can be compared with it"
        return Finding("node", "block 0", NOTED, f"{found.block0_hash}; {why}")
    same = found.block0_hash == network.block0_hash
    return Finding("node", "block 0", verdict(same), found.block0_hash if same else f"{found.block0_hash}, expected {network.block0_hash}: another chain")


def _simulation_findings(found: Capabilities) -> list[Finding]:
    if not found.simulate:
        return [Finding("simulation", "eth_simulateV1", DIFFERS, "does not work here; another endpoint is needed")]
    known = found.error_code_shape.partition(":")[2] != "none"
    return [
        Finding("simulation", "eth_simulateV1", FINE, "works with validation, overrides and several calls"),
        Finding("simulation", "error of a revert", verdict(known), f"code and place of the reason: {found.error_code_shape}"),
        Finding("simulation", "ETH moves as logs", verdict(found.native_logs), "told" if found.native_logs else "not told"),
        Finding("simulation", "base fee override", verdict(found.real_base_fee), "seen by contracts" if found.real_base_fee else "not seen by contracts"),
        Finding(
            "simulation", "NUMBER", verdict(found.number_moves, NOTED),
            "moves with the simulated block" if found.number_moves else "does not move: a cooldown counted in blocks cannot be waited for",
        ),
        Finding(
            "simulation", "where nothing is said", NOTED,
            f"a block of number +{found.simulated_block_step} and time {found.simulated_time_step_s:+} s; both are always said",
        ),
    ]  # fmt: skip


# --- methods ----------------------------------------------------------------------------------------------------------


async def _methods(rpc: RpcDoor, found: Capabilities, pin: Header) -> list[Finding]:
    asked: list[tuple[str, str, list[Any], bool]] = [
        ("eth_call with overrides", "eth_call", [{"to": PAYEE}, hex(pin.block), {PAYEE: {"code": "0x5f5ff3"}}], True),
        ("eth_getLogs", "eth_getLogs", [{"fromBlock": hex(pin.block), "toBlock": hex(pin.block)}], True),
        ("eth_getStorageAt", "eth_getStorageAt", [PAYEE, "0x0", hex(pin.block)], True),
        ("eth_getBlockReceipts", "eth_getBlockReceipts", [hex(pin.block)], False),
        ("block by hash", "eth_getBalance", [PAYEE, {"blockHash": pin.block_hash}], True),
    ]
    answers = await rpc.batch([(method, params) for _, method, params, _ in asked])
    rows = [
        Finding("methods", name, verdict(not isinstance(answer, RpcRefused), DIFFERS if needed else NOTED), _said(answer))
        for (name, _, _, needed), answer in zip(asked, answers, strict=True)
    ]
    access = "yes" if found.access_list else "no: balance slots are found without it where they can be"
    rows.append(Finding("methods", "eth_createAccessList", verdict(found.access_list, NOTED), access))
    return [*rows, *(Finding("methods", method, NOTED, "not asked") for method in NOT_ASKED)]


def _said(answer: object) -> str:
    return f"no: {clean(answer.message, 80)} ({answer.code})" if isinstance(answer, RpcRefused) else "yes"


# --- gas --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a simulated plain transfer of one wei cost."""

    gas: int
    debit_wei: int


async def _times(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    """Whether a simulated block may have its base's own time: on a chain of many blocks a second it mostly has."""
    state = {"blockOverrides": {"number": hex(pin.block + 1), "time": hex(pin.ts_s)}, "calls": []}
    (answer,) = await rpc.batch([("eth_simulateV1", [{"blockStateCalls": [state]}, hex(pin.block)])])
    if not isinstance(answer, RpcRefused):
        return [Finding("simulation", "a block in the same second", FINE, "is taken")]
    needed = network.time_step_s == 0
    said = f"is refused ({answer.code})" + ("; time_step_s of the network file must be 1 for this node" if needed else "; none is asked for")
    return [Finding("simulation", "a block in the same second", DIFFERS if needed else NOTED, said)]


async def _gas(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    """Whether the L1 part of gas is counted exactly once: in the gas used, and paid for by just that much."""
    paid, free, elsewhere, estimate = await _transfers(rpc, network, pin)
    rows = [
        Finding(
            "gas", "transfer without fees", verdict(free == TRANSFER_GAS, NOTED if free is not None else UNKNOWN),
            f"{_gas_text(free)}, {TRANSFER_GAS} on Ethereum",
        )
    ]  # fmt: skip
    if paid is None:
        return [*rows, Finding("gas", "transfer with fees", DIFFERS, "is refused: nothing can be proven here")]
    charged = paid.gas * pin.base_fee_wei
    rows.append(
        Finding(
            "gas", "transfer with fees", verdict(paid.debit_wei == charged + 1),
            f"{paid.gas} gas at {pin.base_fee_wei} wei are {charged} wei; the sender paid {paid.debit_wei - 1}",
        )
    )  # fmt: skip
    return [*rows, _l1_finding(paid, elsewhere, estimate)]


def _l1_finding(paid: Transfer, elsewhere: Transfer | None, estimate: int | None) -> Finding:
    l1 = paid.gas - elsewhere.gas if elsewhere else None
    if l1 is None:
        return Finding("gas", "L1 part", UNKNOWN, "a block that pays another is refused, so that it cannot be told apart")
    if estimate is None:
        return Finding("gas", "L1 part", verdict(l1 == 0), f"{l1} gas; the node knows no price of L1")
    near = estimate * L1_UNDER_PERCENT <= l1 * 110 and l1 * 100 <= estimate * L1_OVER_PERCENT
    found = f"{l1} gas within the gas used; the node's own estimate, padded by a tenth, is {estimate}"
    return Finding("gas", "L1 part", verdict(near or (l1 == 0 and estimate == 0)), found)


def _gas_text(gas: int | None) -> str:
    return "refused" if gas is None else f"{gas} gas"


async def _transfers(rpc: RpcDoor, network: Network, pin: Header) -> tuple[Transfer | None, int | None, Transfer | None, int | None]:
    """One transfer: with fees paid to the network's own, without fees, with fees paid to somebody else; and the estimate of its L1 part."""
    (own, own_handles), (other, other_handles) = (_transfer(network, pin, recipient) for recipient in ("", NOT_THE_POSTER))
    call = {"from": PAYER, "to": PAYEE, "value": "0x1", "gas": hex(100_000)}
    state = {"stateOverrides": {PAYER: {"balance": hex(PURSE_WEI)}}, "calls": [call]}
    component = f"0x{L1_COMPONENT}{calldata.address_word(PAYEE)}{calldata.word(0)}{calldata.word(96)}{calldata.word(0)}"
    answers = await rpc.batch(
        [
            own.request(), other.request(),
            ("eth_simulateV1", [{"blockStateCalls": [state], "validation": False}, hex(pin.block)]),
            ("eth_call", [{"from": PAYER, "to": NODE_INTERFACE, "data": component}, hex(pin.block)]),
        ]
    )  # fmt: skip
    paid, elsewhere = (_cost(*each) for each in ((own, answers[0], own_handles), (other, answers[1], other_handles)))
    return paid, _free_gas(answers[2]), elsewhere, _estimate(answers[3])


def _transfer(network: Network, pin: Header, recipient: str) -> tuple[Simulation, tuple]:
    sim = Simulation(network, pin)
    sim.block(balances_wei={PAYER: PURSE_WEI})
    if recipient:
        sim.blocks[0]["blockOverrides"]["feeRecipient"] = recipient
    return sim, (sim.eth_balance(PAYER), sim.send(PAYER, Tx(PAYEE, "0x", 200_000, 1)), sim.eth_balance(PAYER))


def _cost(sim: Simulation, answer: Any, handles: tuple) -> Transfer | None:
    try:
        done: Simulated = answered(sim, answer)
    except SimulationRefused:
        return None
    before, sent, after = handles
    return Transfer(done[sent].gas_used, done.eth_wei(before) - done.eth_wei(after)) if done[sent].ok else None


def _free_gas(answer: Any) -> int | None:
    try:
        return calldata.hex_int(answer[0]["calls"][0]["gasUsed"])
    except (TypeError, KeyError, IndexError, ChainFault):
        return None


def _estimate(answer: Any) -> int | None:
    """What NodeInterface says; None where there is none."""
    if isinstance(answer, RpcRefused):
        return None
    return calldata.uint_at(calldata.hex_bytes(answer), 0)


# --- limits -----------------------------------------------------------------------------------------------------------


async def _limits(rpc: RpcDoor, found: Capabilities, head: Header) -> list[Finding]:
    pace = rpc.answering.lane.limits.requests_per_s
    return [
        Finding("limits", "pace", FINE, f"held to {pace} questions a second" if pace else "none set (rps= behind the address)"),
        Finding("limits", "batch", verdict(found.batch_max >= 5, NOTED), f"{found.batch_max} questions, as far as was tried"),
        Finding("limits", "calls of a simulation", verdict(found.calls_max >= 50), f"{found.calls_max}, as far as was tried"),
        Finding("limits", "gas of a request", verdict(found.gas_cap >= 25_000_000, NOTED), f"about {found.gas_cap}"),
        await _log_span(rpc, head),
        await _depth(rpc, head),
    ]


async def _log_span(rpc: RpcDoor, head: Header) -> Finding:
    wanted = LogFilter(CREATIONS)
    for span in LOG_SPANS:
        try:
            answer = (await rpc.batch([wanted.request(max(head.block - span + 1, 0), head.block)]))[0]
        except ChainFault:
            continue
        if not isinstance(answer, RpcRefused):
            return Finding("limits", "blocks in one question for logs", verdict(span >= 100, NOTED), f"{span}, as far as was tried")
    return Finding("limits", "blocks in one question for logs", DIFFERS, "logs of the newest block are refused")


async def _depth(rpc: RpcDoor, head: Header) -> Finding:
    depths = [depth for depth in DEPTHS if depth <= head.block]
    answers = await rpc.batch([("eth_getBalance", [PAYEE, hex(head.block - depth)]) for depth in depths])
    deepest = next((depth for depth, answer in zip(depths, answers, strict=True) if not isinstance(answer, RpcRefused)), 0)
    return Finding("limits", "states kept", verdict(deepest >= 1, DIFFERS), f"at least {deepest} blocks back, as far as was tried")
