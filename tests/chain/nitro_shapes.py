"""Nitro's shapes: what its answers look like where they differ from the local chain's. POSTER is who L1 is paid to.

Source: Nitro's arbos (l1pricing, tx_processor), its geth fork's internal/ethapi (simulate, api, override, errors) and core/evm as of
2026-04, eth_simulateV1's specification.
"""

from __future__ import annotations

import zlib
from copy import deepcopy
from hashlib import sha256
from typing import Any

CLIENT = "nitro/v3.12.0-rc.3-beb2108/linux-amd64/go1.25.7"
POSTER = "0xa4b000000000000000000073657175656e636572"
ARBOS = "0x00000000000000000000000000000000000a4b05"
ARBOS_STATE = "0xa4b05fffffffffffffffffffffffffffffffffff"
NODE_INTERFACE = "0x00000000000000000000000000000000000000c8"
ARB_GAS_INFO = "0x000000000000000000000000000000000000006c"
INTERNAL_TX = "0x6a"
HEADER_GAS_LIMIT = 2**50
LATER_FORKS = ("withdrawals", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash")
"""Of a header of Ethereum's that Nitro's does not have."""
ESTIMATE_L1_COMPONENT = "0x77d488a2"
PRICES_IN_WEI = "0x41b247a8"
CURRENT_TX_L1_FEES = "0xc6f7de0e"
TRANSFER_GAS = 21_000
"""What the transfer costs that takes the L1 part away: no L1 part is smaller here."""
UNITS_PER_BYTE, PADDED_UNITS, PADDED_PERCENT = 16, 16 * 16, 101
ESTIMATE_PERCENT = 110
NATIVE_LOG = "0x" + "ee" * 20


def number(text: Any) -> int:
    return int(text, 16)


class Refusal(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    @property
    def error(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message} | ({} if self.data is None else {"data": self.data})

    def as_nitro(self) -> Refusal:
        """What kills a whole simulation, by its number in the specification."""
        text = self.message.lower()
        if "insufficient funds" in text:
            return Refusal(-38014, "insufficient funds for gas * price + value")
        if "intrinsic gas" in text:
            return Refusal(-38013, "intrinsic gas too low")
        if "state" in text or "outofrange" in text.replace(" ", ""):
            return Refusal(-32000, "missing trie node: historical state is not available")
        return self


# --- the L1 part ------------------------------------------------------------------------------------------------------


def l1_gas(data: str, *, estimated: bool = False) -> int:
    """L1 part of a transaction's gas, as if its price were the base fee: by how well its data packs; padded where nobody signed it."""
    units = UNITS_PER_BYTE * len(zlib.compress(bytes.fromhex(data[2:]), 1))
    return TRANSFER_GAS + ((units + PADDED_UNITS) * PADDED_PERCENT // 100 if estimated else units)


def _words(*values: int) -> str:
    return "0x" + "".join(f"{value:064x}" for value in values)


def node_interface(data: str, base_fee: int) -> str:
    """Answer gasEstimateL1Component(address,bool,bytes); padded by a tenth, as estimates are."""
    if not data.startswith(ESTIMATE_L1_COMPONENT):
        raise Refusal(3, "execution reverted", "0x")
    length = int(data[10 + 3 * 64 : 10 + 4 * 64], 16)
    inner = "0x" + data[10 + 4 * 64 : 10 + 4 * 64 + 2 * length]
    return _words(l1_gas(inner, estimated=True) * ESTIMATE_PERCENT // 100, base_fee, base_fee)


def gas_info(data: str, base_fee: int, l1_gas: int) -> str:
    """Answer some questions to ArbGasInfo."""
    if data.startswith(CURRENT_TX_L1_FEES):
        return _words(l1_gas * base_fee)
    if data.startswith(PRICES_IN_WEI):
        return _words(140 * UNITS_PER_BYTE * base_fee, UNITS_PER_BYTE * base_fee, 20_000 * base_fee, base_fee, 0, base_fee)
    raise Refusal(3, "execution reverted", "0x")


# --- blocks and receipts ----------------------------------------------------------------------------------------------


def block(true: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """A block as Nitro tells it: it begins with a transaction of the system's own, and its header has more fields and another limit."""
    told = {
        **{name: value for name, value in true.items() if name not in LATER_FORKS}, "miner": POSTER, "gasLimit": hex(HEADER_GAS_LIMIT), "l1BlockNumber": l1_block(true["number"]), "difficulty": "0x1",
        "sendCount": "0x0", "sendRoot": "0x" + "00" * 32, "nonce": "0x0000000000000001",
    }  # fmt: skip
    if number(true["number"]) == 0:
        return told
    own = internal_tx(true)
    others = [shifted(tx) for tx in true["transactions"]] if whole else true["transactions"]
    return told | {"transactions": [own if whole else own["hash"], *others]}


def l1_block(block: str) -> str:
    """Number of the chain beneath: it moves on once in about 120 blocks."""
    return hex(19_000_000 + number(block) // 120)


def internal_tx(true: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": INTERNAL_TX, "from": ARBOS, "to": ARBOS, "gas": "0x0", "gasPrice": "0x0", "nonce": "0x0", "value": "0x0", "chainId": "0x1237",
        "input": "0x6bf6a42d" + "00" * 128, "hash": "0x" + sha256(f"start of {true['number']}".encode()).hexdigest(),
        "blockHash": true["hash"], "blockNumber": true["number"], "transactionIndex": "0x0",
    }  # fmt: skip


def shifted(true: dict[str, Any]) -> dict[str, Any]:
    """A transaction or a log, one place later: the system's own comes first."""
    return {**true, "transactionIndex": hex(number(true["transactionIndex"]) + 1)}


def receipt(true: dict[str, Any], data: str) -> dict[str, Any]:
    paid = l1_gas(data)
    return shifted(true) | {
        "gasUsed": hex(number(true["gasUsed"]) + paid), "gasUsedForL1": hex(paid), "l1BlockNumber": l1_block(true["blockNumber"]), "timeboosted": False,
        "logs": [shifted(log) for log in true["logs"]],
    }  # fmt: skip


# --- simulation -------------------------------------------------------------------------------------------------------


def with_defaults(payload: dict[str, Any], base: dict[str, Any], *, step_s: int, blocks_max: int) -> list[dict[str, Any]]:
    """The blocks asked for with what Nitro takes where nothing was said. Raises: Refusal for an order of blocks it does not take."""
    states = deepcopy(payload["blockStateCalls"])
    at, ts_s, fee = number(base["number"]), number(base["timestamp"]), number(base["baseFeePerGas"])
    for state in states:
        overrides = state.setdefault("blockOverrides", {})
        state.setdefault("stateOverrides", {})
        state.setdefault("calls", [])
        if any(address.lower() == ARBOS_STATE for address in state["stateOverrides"]):
            raise Refusal(-32000, "overriding the ArbOS state is not allowed")
        asked_at = number(overrides.setdefault("number", hex(at + 1)))
        if asked_at <= at:
            raise Refusal(-38020, f"block numbers must be in order: {asked_at} <= {at}")
        ts_s += step_s * (asked_at - at - 1)  # each block between takes its step too
        asked_s = number(overrides.setdefault("time", hex(ts_s + step_s)))
        if asked_s < ts_s:
            raise Refusal(-38021, f"block timestamps must be in order: {asked_s} < {ts_s}")
        if asked_at - number(base["number"]) > blocks_max:
            raise Refusal(-38026, "too many blocks")
        at, ts_s = asked_at, asked_s
        fee = fee * 7 // 8 if payload.get("validation") else 0
        fee = number(overrides.setdefault("baseFeePerGas", hex(fee)))
        overrides.setdefault("feeRecipient", POSTER)
    return states


def owing(state: dict[str, Any], base: dict[str, Any], validation: bool) -> list[int]:
    """L1 part of each call's gas: owed where the block pays the poster and gas has a price."""
    overrides = state["blockOverrides"]
    owed = validation and number(overrides["baseFeePerGas"]) and overrides["feeRecipient"].lower() == POSTER
    return [l1_gas(_data(call), estimated=True) if owed else 0 for call in state["calls"]]


def _data(call: dict[str, Any]) -> str:
    return call.get("data") or call.get("input") or "0x"


def for_the_local_node(state: dict[str, Any], base: dict[str, Any], owes: list[int], validation: bool, gas_pool: int) -> dict[str, Any]:
    """The same block for the local chain: contracts see the number beneath and no random word but 1, tips are dropped, L1 is paid in transfers."""
    fee = number(state["blockOverrides"]["baseFeePerGas"])
    calls = []
    for call, owed in zip(state["calls"], owes, strict=True):
        gas = number(call.get("gas", hex(gas_pool)))
        if gas > HEADER_GAS_LIMIT:
            raise Refusal(-38015, "block gas limit reached")
        told = {key: value for key, value in call.items() if key not in ("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "nonce")}
        told["gas"] = hex(min(gas, gas_pool) - owed)
        most = number(call.get("maxFeePerGas", call.get("gasPrice", "0x0")))
        if validation:
            if most < fee:
                raise Refusal(-32602, f"max fee per gas less than block base fee: address {call['from']}, maxFeePerGas: {most}, baseFee: {fee}")
            told |= {"maxFeePerGas": hex(fee), "maxPriorityFeePerGas": "0x0"}
        calls.append(told)
        if owed:
            paid = {"maxFeePerGas": hex(fee), "maxPriorityFeePerGas": "0x0", "gas": hex(TRANSFER_GAS)}
            calls.append({"from": call["from"], "to": POSTER, "value": hex((owed - TRANSFER_GAS) * fee), **paid})
    overrides = {**state["blockOverrides"], "number": base["number"], "prevRandao": f"0x{1:064x}"}
    return {"blockOverrides": overrides, "stateOverrides": state["stateOverrides"], "calls": calls}


def cut_to_pool(sent: list[dict[str, Any]], answer: list[dict[str, Any]], gas_pool: int) -> bool:
    """Cut calls to what those before them left of the request's gas; says whether any had to be."""
    left, cut = gas_pool, False
    for state, told in zip(sent, answer, strict=True):
        for call, done in zip(state["calls"], told["calls"], strict=True):
            if number(call["gas"]) > left:
                call["gas"], cut = hex(max(left, 0)), True
            left -= number(done["gasUsed"])
    return cut


def simulated(answer: dict[str, Any], state: dict[str, Any], owes: list[int], base: dict[str, Any]) -> dict[str, Any]:
    """A simulated block as Nitro tells it."""
    overrides, fee = state["blockOverrides"], number(state["blockOverrides"]["baseFeePerGas"])
    rows = iter(answer["calls"])
    calls = []
    for call, owed in zip(state["calls"], owes, strict=True):
        calls.append(_call(next(rows), call, owed, fee))
        if owed:
            next(rows)
    return {
        **{key: value for key, value in answer.items() if key not in ("calls", "transactions")},
        "number": overrides["number"], "timestamp": overrides["time"], "baseFeePerGas": overrides["baseFeePerGas"], "miner": overrides["feeRecipient"],
        "parentHash": base["hash"], "gasLimit": hex(HEADER_GAS_LIMIT), "gasUsed": hex(sum(number(call["gasUsed"]) for call in calls)),
        "l1BlockNumber": l1_block(base["number"]), "sendCount": "0x0", "sendRoot": "0x" + "00" * 32, "transactions": [], "calls": calls,
    }  # fmt: skip


def with_gaps(told: list[dict[str, Any]], base: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks between are simulated too, and told."""
    whole: list[dict[str, Any]] = []
    at = number(base["number"])
    for each in told:
        whole += [{**each, "number": hex(gap), "gasUsed": "0x0", "calls": []} for gap in range(at + 1, number(each["number"]))]
        whole.append(each)
        at = number(each["number"])
    return whole


def _call(true: dict[str, Any], asked: dict[str, Any], owed: int, fee: int) -> dict[str, Any]:
    told = {**true, "gasUsed": hex(number(true["gasUsed"]) + owed)}
    if (asked.get("to") or "").lower() == ARB_GAS_INFO:
        told["returnData"] = gas_info(_data(asked), fee, owed)
    if true["status"] == "0x1":
        told["logs"] = [{key: value for key, value in log.items() if key != "blockTimestamp"} for log in true["logs"]]
        return told
    reason = true["returnData"]
    out_of_gas = reason in ("", "0x") and number(true["gasUsed"]) >= number(asked.get("gas", "0x0")) - owed
    error = {"code": -32015, "message": "out of gas"} if out_of_gas else {"code": -32000, "message": "execution reverted", "data": reason}
    return told | {"logs": [], "returnData": "0x" if not out_of_gas else reason, "error": error}
