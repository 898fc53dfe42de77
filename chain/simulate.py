"""Simulation: what really arrives when a transaction runs, by `eth_simulateV1` from a paper wallet.

One `Simulation` is one request entry: blocks of state overrides and calls, all on one pinned block, with validation on, so
that base fee, gas price and gas charge are real. Balances are read by a second funded address, so that reading bills
nobody. Credited is the balance difference; logs are a cross-check.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chain import calldata
from chain.address import derived
from chain.gas import REQUEST_GAS_MAX, VIEW_GAS_LIMIT
from chain.gone import gone
from chain.header import Header
from chain.network import READER, Network
from chain.router import ETH_MAX, Tx
from chain.rpc import METHOD_MISSING, RpcRefused
from ledgers.errors import ChainFault

GAS_POOL = "gas_pool"
READER_WEI = 10**24
READER_PURSE = hex(READER_WEI)
NATIVE_LOG = "0x" + "ee" * 20
TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
BALANCE = "balance"
"""Names a contract's ETH where a slot is named."""
AMOUNT_MAX = 2**128
"""Pools count in at most 128 bits; a node that says more is lying."""
GAS_PER_LOG_MIN = 375
"""What an empty log costs: no token can log more than its gas pays for, so that no token can make an answer malformed."""

REFUSALS = {
    -38014: "insufficient_funds",
    -32003: "insufficient_funds",
    -38010: "nonce",
    -38011: "nonce",
    -38012: "fee_below_base",
    -38013: "intrinsic_gas",
    -38015: "gas_limit",
    -38020: "block_order",
    -38021: "time_order",
    -38026: "client_limit",
    METHOD_MISSING: "method_missing",
    -32602: "invalid_params",
}
"""What a request-level error means; none of them means unprovable, because none speaks of the route."""


@dataclass(frozen=True, slots=True)
class SlotWrite:
    """A storage slot set by override, or a contract's ETH."""

    contract: str
    slot: str
    """0x and 64 digits, or `balance`."""
    value: int
    beside: bool = False
    """True where the value is added to the one set before: bits that share their word with a balance."""


class CallAnswer(NamedTuple):
    """What one simulated call did. A tuple that decodes only what is asked of it: most calls of a proof need only work."""

    ok: bool
    gas_used: int
    call: dict[str, Any]
    """The node's own words."""

    @property
    def data(self) -> bytes:
        """What it returned, or why it reverted. Raises: ChainFault when that is not hex."""
        error = self.call.get("error")
        inside = error.get("data") if isinstance(error, dict) else None
        return calldata.hex_bytes(inside if isinstance(inside, str) and inside not in ("", "0x") else self.call.get("returnData", "0x"))

    @property
    def logs(self) -> list[Any]:
        """What it logged; some nodes keep the log of a reverted call's own transfer, which never happened."""
        return self.call["logs"] if self.ok else []


Handle = tuple[int, int]
"""Block and call of a simulation."""


@dataclass(slots=True)
class Simulation:
    """One `eth_simulateV1` request under construction."""

    network: Network
    pin: Header
    blocks: list[dict[str, Any]] = field(default_factory=list)
    chance: int = 0
    """Which of the random words of a pinned block it sees: what hangs on chance must not be taken for what is."""
    _fee: str = field(init=False)
    _gas_limits: list[list[int]] = field(default_factory=list)
    _ahead: tuple[int, int] = (0, 0)
    """Blocks and seconds leapt over so far."""

    def __post_init__(self) -> None:
        self._fee = hex(self.pin.base_fee_wei)

    def block(
        self, *, balances_wei: dict[str, int], writes: Sequence[SlotWrite] = (), code: dict[str, str] | None = None, randao: str = "",
        leap: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        """Open the next simulated block with state overrides; each is one second after the one before.

        `randao` is its random word, where it must be a certain one; `leap` are blocks and seconds that pass before it."""
        offset = len(self.blocks)
        self._ahead = self._ahead[0] + leap[0], self._ahead[1] + leap[1]
        overrides: dict[str, Any] = {self.network.reader: {"balance": READER_PURSE}}
        for address, balance_wei in balances_wei.items():
            overrides.setdefault(address, {})["balance"] = hex(balance_wei)
        for address, override in slot_override(writes).items():
            overrides.setdefault(address, {}).update(override)
        for address, text in (code or {}).items():
            overrides.setdefault(address, {})["code"] = text
        header = {
            "number": hex(self.pin.block + 1 + offset + self._ahead[0]),
            "time": hex(self.pin.ts_s + self.network.time_step_s + offset + self._ahead[1]),
            "baseFeePerGas": self._fee,
        }
        if self.network.fee_recipient:
            header["feeRecipient"] = self.network.fee_recipient
        if self.network.random_words:
            header["prevRandao"] = randao or chance(self.network.reader, self.pin, self.chance)
        self.blocks.append({"blockOverrides": header, "stateOverrides": overrides, "calls": []})
        self._gas_limits.append([])

    def view(self, to: str, data: str, gas_limit: int = VIEW_GAS_LIMIT) -> Handle:
        """Add a read by the reader."""
        return self._add(self.network.reader, to, data, gas_limit, 0)

    def send(self, sender: str, tx: Tx) -> Handle:
        """Add a transaction of `sender`."""
        return self._add(sender, tx.to, tx.data, tx.gas_limit, tx.value_wei)

    def _add(self, sender: str, to: str, data: str, gas_limit: int, value_wei: int) -> Handle:
        call = {"from": sender, "to": to, "data": data, "gas": hex(gas_limit), "maxFeePerGas": self._fee, "maxPriorityFeePerGas": "0x0"}
        if value_wei:
            call["value"] = hex(value_wei)
        calls = self.blocks[-1]["calls"]
        calls.append(call)
        self._gas_limits[-1].append(gas_limit)
        return len(self.blocks) - 1, len(calls) - 1

    def ask(self, token: str, data: str) -> Handle:
        """Add a question that the token answers with one word and without writing anything."""
        lens, code = lens_of(token, self.network.reader)
        self.blocks[-1]["stateOverrides"].setdefault(lens, {})["code"] = code
        return self.view(lens, data)

    def token_balance(self, token: str, owner: str) -> Handle:
        """Add a read of a token balance."""
        return self.ask(token, calldata.balance_of(owner))

    def eth_balance(self, owner: str) -> Handle:
        """Add a read of an ETH balance."""
        return self.view(self.network.multicall3, calldata.eth_balance(owner))

    def request(self) -> tuple[str, list[Any]]:
        """The JSON-RPC method and parameters."""
        body = {"blockStateCalls": self.blocks, "traceTransfers": True, "validation": True}
        return "eth_simulateV1", [body, {"blockHash": self.pin.block_hash}]

    def read(self, answer: Any) -> Simulated:
        """Check the shape of an answer. Raises: ChainFault when it is not an answer to this request."""
        if self._ahead[0] and isinstance(answer, list):  # some nodes tell of the blocks that were leapt over too
            asked = {block["blockOverrides"]["number"] for block in self.blocks}
            answer = [block for block in answer if isinstance(block, dict) and block.get("number") in asked]
        if not isinstance(answer, list) or len(answer) != len(self.blocks):
            raise ChainFault("bad_answer", f"expected {len(self.blocks)} simulated blocks")
        rows = [_block_calls(*each) for each in zip(answer, self.blocks, self._gas_limits, strict=True)]
        _hold_to_the_pool([(call, limit) for row, limits in zip(rows, self._gas_limits, strict=True) for call, limit in zip(row, limits, strict=True)])
        return Simulated(rows)


def lens_of(token: str, reader: str = READER) -> tuple[str, str]:
    """An address and the code put there by override: it asks a token what it was asked itself, and tells the first word of the answer.

    It asks so that the token cannot write anything, as other contracts ask: a token that did would know that it is being watched."""
    return derived(f"lens of {token} for {reader}"), f"0x365f5f3760205f365f73{token[2:]}5afa601f3d1116602b575f5ffd5b60205ff3"


def chance(reader: str, pin: Header, number: int) -> str:
    """A random word that no contract can foresee: not the block's own, and another for each number."""
    return "0x" + hashlib.sha256(f"chance {number} at {pin.block_hash} for {reader}".encode()).hexdigest()


def slot_override(writes: Sequence[SlotWrite]) -> dict[str, Any]:
    """State overrides that set storage slots, as nodes take them."""
    override: dict[str, Any] = {}
    for write in writes:
        if write.slot == BALANCE:
            override.setdefault(write.contract, {})["balance"] = hex(write.value)
            continue
        words = override.setdefault(write.contract, {}).setdefault("stateDiff", {})
        before = int(words.get(write.slot, "0x0"), 16) if write.beside else 0
        words[write.slot] = "0x" + calldata.word((before + write.value) % 2**256)
    return override


class SimulationRefused(Exception):
    """The node refused a whole simulation; `word` is from `REFUSALS` or `node_error`."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(f"{word}: {message}")
        self.word = word


@dataclass(frozen=True, slots=True)
class Simulated:
    """A checked answer."""

    rows: list[list[CallAnswer]]

    def __getitem__(self, handle: Handle) -> CallAnswer:
        return self.rows[handle[0]][handle[1]]

    def amount(self, handle: Handle, maximum: int) -> int:
        """Read a balance. Raises: ChainFault when the node says something absurd, LookupError when the read failed."""
        answer = self[handle]
        value = calldata.uint_at(answer.data, 0)
        if not answer.ok or value is None:
            raise LookupError("balance read failed")
        if value >= maximum:
            raise ChainFault("absurd_amount", f"a balance of {value} cannot be")
        return value

    def eth_wei(self, handle: Handle) -> int:
        """Read an ETH balance, which no token can refuse to tell. Raises: ChainFault."""
        value = self.word(handle)
        if value >= ETH_MAX:
            raise ChainFault("absurd_amount", f"a balance of {value} wei cannot be")
        return value

    def word(self, handle: Handle) -> int:
        """Read a number that only the node can fail to tell. Raises: ChainFault."""
        value = calldata.uint_at(self[handle].data, 0)
        if not self[handle].ok or value is None:
            raise ChainFault("bad_answer", "a balance or a storage slot could not be read")
        return value


def answered(simulation: Simulation, answer: Any) -> Simulated:
    """Read one batch answer. Raises: SimulationRefused when the node refused it, ChainFault when it is malformed."""
    if isinstance(answer, RpcRefused):
        raise SimulationRefused(refusal_word(answer), answer.message)
    return simulation.read(answer)


def refusal_word(error: RpcRefused) -> str:
    """Name a request-level error by code; some nodes use one code for several, so their text is read too."""
    text = error.message.lower()
    if error.code == METHOD_MISSING:
        return REFUSALS[METHOD_MISSING]
    if "insufficient funds" in text:
        return "insufficient_funds"
    if "intrinsic gas" in text:
        return "intrinsic_gas"
    if gone(text):
        return "state_gone"
    return REFUSALS.get(error.code, "node_error")


def _block_calls(block: Any, asked: dict[str, Any], gas_limits: Sequence[int]) -> list[CallAnswer]:
    calls = block.get("calls") if isinstance(block, dict) else None
    if not isinstance(calls, list) or len(calls) != len(gas_limits):
        raise ChainFault("bad_answer", f"expected {len(gas_limits)} simulated calls")
    wanted = asked["blockOverrides"]
    if (block.get("number"), block.get("timestamp"), block.get("baseFeePerGas")) != (wanted["number"], wanted["time"], wanted["baseFeePerGas"]):
        raise ChainFault("bad_answer", "simulated another block, time or base fee than was asked")
    return [_call_answer(call, gas_limit) for call, gas_limit in zip(calls, gas_limits, strict=True)]


def _hold_to_the_pool(calls: Sequence[tuple[CallAnswer, int]]) -> None:
    """Pass when no call failed for want of gas that the calls before it had used up: nodes cut a call to what is left of the request's.

    Raises: ChainFault."""
    left = REQUEST_GAS_MAX
    for call, limit in calls:
        if not call.ok and limit > left:
            raise ChainFault(GAS_POOL, f"a call that may use {limit} gas failed where nodes leave it {max(left, 0)} of a request's {REQUEST_GAS_MAX}")
        left -= call.gas_used


def _call_answer(call: Any, gas_limit: int) -> CallAnswer:
    status, logs = (call.get("status"), call.get("logs")) if isinstance(call, dict) else (None, None)
    if status not in ("0x0", "0x1") or not isinstance(logs, list):
        raise ChainFault("bad_answer", "a simulated call without status or logs")
    gas_used = calldata.hex_int(call.get("gasUsed"))
    if gas_used > gas_limit or len(logs) * GAS_PER_LOG_MIN > gas_limit:
        raise ChainFault("bad_answer", "a simulated call used more gas than it had, or logged without end")
    ok = status == "0x1"
    if ok and call.get("error"):
        raise ChainFault("bad_answer", "a simulated call that both worked and failed")
    return CallAnswer(ok, gas_used, call)


# --- reading what moved ---------------------------------------------------------------------------------------------


def logged_net(answer: CallAnswer, emitter: str, owner: str) -> int:
    """Sum of the Transfer logs of `emitter` to an owner minus those from it, in one call.

    `NATIVE_LOG` as emitter gives the native transfers, which the node itself writes. Raises: ChainFault for logs that are
    not logs."""
    owner_topic = "0x" + calldata.address_word(owner)
    net = 0
    for log in answer.logs:
        try:
            topics, address = log["topics"], log["address"]
        except (TypeError, KeyError):
            topics, address = None, None
        if type(topics) is not list or type(address) is not str:
            raise ChainFault("bad_answer", "a log without topics or address")
        if len(topics) != 3 or topics[0] != TRANSFER_TOPIC or address.lower() != emitter:
            continue
        if sign := (topics[2] == owner_topic) - (topics[1] == owner_topic):
            net += sign * (calldata.uint_at(calldata.hex_bytes(log.get("data")), 0) or 0)
    return net


def log_told(log: Any) -> tuple[str, tuple[str, ...], bytes] | None:
    """Address, topics and data of a log as a node writes it, in lower case; None for what is no log."""
    try:
        return log["address"].lower(), tuple(topic.lower() for topic in log["topics"]), bytes.fromhex(log["data"][2:])
    except (TypeError, KeyError, AttributeError, ValueError):
        return None


def logged_by(answer: CallAnswer, emitter: str, topic: str | None = None) -> bool:
    """Say whether a contract logged anything in a call, with `topic` as its second topic when one is given."""
    return any(
        log["address"].lower() == emitter and (topic is None or log["topics"][1:2] == [topic])
        for log in answer.logs
        if isinstance(log, dict) and isinstance(log.get("address"), str) and isinstance(log.get("topics"), list)
    )


def revert_word(answer: CallAnswer) -> str:
    """Say why a call reverted in a few safe characters: a Solidity message, a panic, or the error's selector."""
    data = answer.data
    if data[:4] == bytes.fromhex("08c379a0") and len(data) >= 68:
        length = min(int.from_bytes(data[36:68]), 80)
        text = data[68 : 68 + length].decode("ascii", "replace")
        return "reverted: " + "".join(char if char.isascii() and char.isprintable() else "?" for char in text)
    if data[:4] == bytes.fromhex("4e487b71") and len(data) >= 36:
        return f"reverted: panic 0x{int.from_bytes(data[4:36]) & 0xFF:02x}"
    return f"reverted: 0x{data[:4].hex()}" if data else "reverted without a reason"
