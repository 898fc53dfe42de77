"""A node that lies: in a header, a trie node, an account, a word, code. Nothing it sends is believed without its hash.

Each lie is told by a real node's answers with one thing changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from eth_hash.auto import keccak

from chain.devnet.devnet import Devnet
from chain.evm import Executed, LocalEvm, NotCovered
from chain.header import Header, header_of, sealed_bytes
from chain.network import load_network
from chain.rpc import FunctionTransport, Lane, RpcDoor
from chain.simulate import Simulation
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from tests.chain.evm.lab import ETH, WALLET

NETWORK = load_network("devnet")
Lie = Callable[[str, list[Any], Any], Any]


def door_to(chain: Devnet, lie: Lie) -> RpcDoor:
    """A door to the local chain's node, whose answers pass through a lie."""

    def answered(_lane: Lane, asked: Any) -> Any:
        rows = asked if isinstance(asked, list) else [asked]
        told = [{"jsonrpc": "2.0", "id": row["id"], "result": lie(row["method"], row["params"], chain.node.call(row["method"], row["params"]))} for row in rows]
        return told if isinstance(asked, list) else told[0]

    return RpcDoor([Lane("liar", "http://liar")], clock=SystemClock(), transport=FunctionTransport(answered))


@pytest.fixture
def pin(chain) -> Header:
    return header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))


def balance_question(pin: Header) -> Simulation:
    simulation = Simulation(NETWORK, pin)
    simulation.block(balances_wei={WALLET: ETH})
    simulation.token_balance(NETWORK.weth, NETWORK.swap_router_02)
    simulation.token_balance(NETWORK.usdg, NETWORK.multicall3)
    return simulation


async def truth(chain: Devnet, pin: Header) -> Executed:
    found = await LocalEvm(door_to(chain, lambda _method, _params, answer: answer), NETWORK.chain_id).run(balance_question(pin))
    assert isinstance(found, Executed)
    return found


@pytest.mark.parametrize("field", ("stateRoot", "number", "timestamp", "gasLimit", "baseFeePerGas", "parentHash", "excessBlobGas", "extraData"))
async def test_a_header_with_one_field_changed_is_no_header(chain, pin, field):
    def lie(method, _params, answer):
        return answer | {field: answer[field][:-1] + ("1" if answer[field][-1] != "1" else "2") if field != "extraData" else "0x01"} if method == "eth_getBlockByHash" else answer

    found = await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))
    assert isinstance(found, NotCovered) and "does not have its hash" in found.reason


@pytest.mark.parametrize("missing", ("stateRoot", "parentHash", "requestsHash"))
async def test_a_header_without_a_field_is_no_header(chain, pin, missing):
    def lie(method, _params, answer):
        return {key: value for key, value in answer.items() if key != missing} if method == "eth_getBlockByHash" else answer

    found = await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))
    assert isinstance(found, NotCovered)


async def test_what_a_node_claims_beside_its_proof_is_not_read(chain, pin):
    def lie(method, _params, answer):
        if method != "eth_getProof":
            return answer
        words = [row | {"value": "0x1234"} for row in answer["storageProof"]]
        return answer | {"balance": "0x1", "nonce": "0x99", "codeHash": "0x" + "11" * 32, "storageHash": "0x" + "22" * 32, "storageProof": words}

    found = await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))
    assert isinstance(found, Executed) and found.calls == (await truth(chain, pin)).calls


@pytest.mark.parametrize("seed", range(40))
async def test_a_proof_with_a_byte_changed_or_a_node_left_out_proves_nothing(chain, pin, seed):
    chance = random.Random(seed)

    def spoil(nodes: list[str]) -> list[str]:
        if not nodes:
            return nodes
        place = chance.randrange(len(nodes))
        if chance.random() < 0.3:
            return nodes[:place] + nodes[place + 1 :]
        node = bytearray.fromhex(nodes[place][2:])
        node[chance.randrange(len(node))] ^= chance.randrange(1, 256)
        return [*nodes[:place], "0x" + node.hex(), *nodes[place + 1 :]]

    def lie(method, _params, answer):
        if method != "eth_getProof" or answer["address"].lower() != (NETWORK.weth if seed % 2 else NETWORK.usdg):
            return answer
        return answer | {"accountProof": spoil(answer["accountProof"]), "storageProof": []}

    with pytest.raises(ChainFault):
        await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))


async def test_another_accounts_proof_does_not_do(chain, pin):
    def lie(method, params, answer):
        if method == "eth_getProof" and params[0] == NETWORK.weth:
            return chain.node.call("eth_getProof", ["0x" + "de" * 20, params[1], params[2]])
        return answer

    with pytest.raises(ChainFault):
        await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))


async def test_other_code_than_the_accounts_is_not_run(chain, pin):
    def lie(method, _params, answer):
        return "0x60015f5260205ff3" if method == "eth_getCode" and answer != "0x" else answer

    with pytest.raises(ChainFault, match="bad_code"):
        await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))


@pytest.mark.parametrize(
    "answer",
    (None, 7, "0x", [], {}, {"accountProof": "0x"}, {"accountProof": ["0x00"] * 65, "storageProof": []}, {"accountProof": ["0x" + "00" * 1_025], "storageProof": []},
     {"accountProof": [7], "storageProof": []}, {"accountProof": ["zz"], "storageProof": [7]}, {"accountProof": [], "storageProof": [{"proof": ["0xc0"]}]}, {"accountProof": ["0xc0"], "storageProof": []}),
)  # fmt: skip
async def test_an_answer_that_is_no_proof_is_a_fault(chain, pin, answer):
    def lie(method, _params, told):
        return answer if method == "eth_getProof" else told

    with pytest.raises(ChainFault):
        await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(balance_question(pin))


async def test_a_header_before_the_pin_is_held_to_the_hash_that_the_next_one_names(chain, pin):
    simulation = Simulation(NETWORK, pin)
    asks = "0x63" + f"{pin.block - 5:08x}" + "405f5260205ff3"
    simulation.block(balances_wei={WALLET: ETH}, code={NETWORK.weth: asks})
    simulation.view(NETWORK.weth, "0x")

    def lie(method, _params, answer):
        return answer | {"parentHash": "0x" + "ab" * 32} if method == "eth_getBlockByNumber" else answer

    honest = await LocalEvm(door_to(chain, lambda _method, _params, answer: answer), NETWORK.chain_id).run(simulation)
    assert isinstance(honest, Executed) and "0x" + honest.calls[0][0].data.hex() == chain.block_hash(pin.block - 5)
    with pytest.raises(ChainFault):
        await LocalEvm(door_to(chain, lie), NETWORK.chain_id).run(simulation)


async def test_a_node_that_does_not_prove_is_said_to_be_one(chain, pin):
    def answered(_lane: Lane, asked: Any) -> Any:
        rows = asked if isinstance(asked, list) else [asked]
        told = [
            {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32601, "message": "the method does not exist"}} if row["method"] == "eth_getProof"
            else {"jsonrpc": "2.0", "id": row["id"], "result": chain.node.call(row["method"], row["params"])}
            for row in rows
        ]  # fmt: skip
        return told if isinstance(asked, list) else told[0]

    door = RpcDoor([Lane("old", "http://old")], clock=SystemClock(), transport=FunctionTransport(answered))
    found = await LocalEvm(door, NETWORK.chain_id).run(balance_question(pin))
    assert isinstance(found, NotCovered) and "does not prove" in found.reason


def test_a_header_is_written_as_it_is_hashed(chain):
    block = chain.node.call("eth_getBlockByNumber", ["latest", False])
    assert "0x" + keccak(sealed_bytes(block)).hex() == block["hash"]
