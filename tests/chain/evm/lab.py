"""A lab: random programs run by the node and here, and a small chain whose whole state can be read before and after."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from chain.devnet.calls import Tx as RealTx
from chain.devnet.devnet import Devnet
from chain.devnet.miner import Miner
from chain.devnet.node import Node, start
from chain.devnet.toolchain import require
from chain.evm import Executed, LocalCall, LocalEvm, NotCovered
from chain.evm.calls import HISTORY
from chain.header import Header, header_of
from chain.network import Network
from chain.router import Tx
from chain.rpc import Lane, RpcDoor
from chain.simulate import Simulated, Simulation, SlotWrite, answered
from ledgers.clock import SystemClock
from tests.chain.evm.programs import Programs

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
ADDRESSES = tuple(0xC0DE0000000000000000000000000000000000 + 0x1111 * place for place in range(1, 7))
RANDAO = "0x" + "77" * 32
CALLS, BLOCKS = 5, 2
ETH = 10**18


def text(address: int) -> str:
    return f"0x{address:040x}"


def slot_text(slot: int) -> str:
    return f"0x{slot:064x}"


def programs_of(seed: int, pin: Header, network: Network) -> Programs:
    others = (int(network.weth, 16), int(WALLET, 16), 0xDEAD, int(network.reader, 16))
    return Programs(seed, ADDRESSES, others, heights=(*range(max(0, pin.block - 4), pin.block + 1), pin.block + 9))


def random_simulation(seed: int, pin: Header, network: Network) -> Simulation:
    """Some random contracts put there by override, and calls of them in two blocks."""
    made, simulation = programs_of(seed, pin, network), Simulation(network, pin)
    codes = {text(address): "0x" + made.program().hex() for address in ADDRESSES}
    writes = [SlotWrite(text(address), slot_text(slot), slot + 1) for address in ADDRESSES[:3] for slot in (1, 2)]
    for block in range(BLOCKS):
        first = block == 0
        purses = {WALLET: 10 * ETH} | ({text(ADDRESSES[0]): 10**12} if first else {})
        simulation.block(balances_wei=purses, writes=writes if first else (), code=codes if first else None, randao=RANDAO)
        for _ in range(CALLS):
            to, data = text(made.choice(ADDRESSES)), "0x" + made.calldata().hex()
            simulation.send(WALLET, Tx(to, data, made.gas(), made.value()))
    return simulation


async def both(door: RpcDoor, evm: LocalEvm, simulation: Simulation) -> tuple[Executed | NotCovered, Simulated]:
    """What is found here and what the node says."""
    (answer,) = await door.batch([simulation.request()])
    return await evm.run(simulation), answered(simulation, answer)


# --- a chain whose whole state is known --------------------------------------------------------------------------------


@dataclass(slots=True)
class Held:
    """What an account holds."""

    nonce: int = 0
    balance: int = 0
    code: bytes = b""
    words: dict[int, int] = field(default_factory=dict)
    """Those that are not zero."""


@dataclass(slots=True)
class Ledger:
    """The whole state of a small chain."""

    accounts: dict[str, Held]

    @classmethod
    def of(cls, node: Node) -> Ledger:
        dumped = orjson.loads(gzip.decompress(bytes.fromhex(node.call("anvil_dumpState", [])[2:])))
        return cls({address: _held(row) for address, row in dumped["accounts"].items() if int(address, 16) not in HISTORY})

    def living(self) -> dict[str, Held]:
        return {address: held for address, held in self.accounts.items() if held != Held()}

    def apply(self, call: LocalCall) -> None:
        """Write what a transaction is said to have written, and hold what was before to what was said of it."""
        for row in call.accounts:
            held = self.accounts.setdefault(row.address, Held())
            assert (held.balance, held.nonce, held.code) == (row.balance[0], row.nonce[0], row.code[0]), row
            held.balance, held.nonce, held.code = row.balance[1], row.nonce[1], row.code[1]
        for write in call.writes:
            words, slot = self.accounts.setdefault(write.contract, Held()).words, int(write.slot, 16)
            assert words.pop(slot, 0) == write.before != write.after, write
            if write.after:
                words[slot] = write.after


def _held(row: dict[str, Any]) -> Held:
    words = {int(slot, 16): int(value, 16) for slot, value in row["storage"].items() if int(value, 16)}
    return Held(int(row["nonce"]), int(row["balance"], 16), bytes.fromhex(row["code"][2:]), words)


@dataclass(slots=True)
class SmallChain:
    """An empty chain on which random programs stand and are really called."""

    node: Node
    network: Network
    miner: Miner
    door: RpcDoor

    def plant(self, made: Programs) -> None:
        """Put programs there, in a block of their own."""
        rows: list[tuple[str, list[Any]]] = [("anvil_setCode", [text(address), "0x" + made.program().hex()]) for address in ADDRESSES]
        rows += [("anvil_setStorageAt", [text(address), slot_text(slot), slot_text(slot + 1)]) for address in ADDRESSES[:3] for slot in (1, 2)]
        rows += [("anvil_setBalance", [WALLET, hex(10 * ETH)]), ("anvil_setBalance", [text(ADDRESSES[0]), hex(10**12)]), ("anvil_impersonateAccount", [WALLET])]
        self.node.batch(rows)
        self.miner.mine()

    def remember(self) -> tuple[str, int]:
        return self.node.call("evm_snapshot", []), self.miner.height

    def go_back(self, mark: tuple[str, int]) -> None:
        self.node.call("evm_revert", [mark[0]])
        self.miner.height = mark[1]
        self.miner.nonces.clear()

    def pin(self) -> Header:
        return header_of(self.node.call("eth_getBlockByNumber", ["latest", False]))

    def really(self, txs: list[Tx]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Execute transactions in one block: its header and their receipts."""
        self.miner.mine([RealTx(sender=WALLET, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=tx.gas_limit) for tx in txs])
        return self.node.call("eth_getBlockByNumber", ["latest", False]), self.miner.receipts()

    def simulation_of(self, pin: Header, sealed: dict[str, Any], txs: list[Tx]) -> Simulation:
        """The very block that was sealed, without a single override of state."""
        simulation = Simulation(self.network, pin)
        simulation.block(balances_wei={}, randao=sealed["mixHash"])
        block = simulation.blocks[0]
        block["stateOverrides"] = {}
        block["blockOverrides"] |= {"number": sealed["number"], "time": sealed["timestamp"], "baseFeePerGas": sealed["baseFeePerGas"]}
        for tx in txs:
            simulation.send(WALLET, tx)
        for call in block["calls"]:
            call["maxFeePerGas"] = sealed["baseFeePerGas"]
        return simulation


@contextmanager
def small_chain(network: Network) -> Iterator[SmallChain]:
    node = start(require())
    door = RpcDoor([Lane("small", node.url)], clock=SystemClock())
    try:
        yield SmallChain(node, network, Miner(node, 1_000), door)
    finally:
        node.stop()


def changed_words(chain: Devnet, receipt: dict[str, Any]) -> dict[tuple[str, int], tuple[int, int]]:
    """What a mined transaction changed, as the node's tracer tells it: before and after of every word."""
    options = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    told = chain.node.call("debug_traceTransaction", [receipt["transactionHash"], options])
    words: dict[tuple[str, int], list[int]] = {}
    for side, part in enumerate(("pre", "post")):
        for address, account in told[part].items():
            for slot, value in account.get("storage", {}).items():
                words.setdefault((address.lower(), int(slot, 16)), [0, 0])[side] = int(value, 16)
    return {word: (before, after) for word, (before, after) in words.items() if before != after}
