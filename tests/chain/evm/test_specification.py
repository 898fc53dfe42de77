"""Random programs run here as by the Ethereum specification itself, where it is installed.

It is no part of the project's environment: `pip install ethereum-execution` into one of your own.
"""

from __future__ import annotations

from typing import Any

import pytest

osaka = pytest.importorskip("ethereum.forks.osaka", reason="the specification, ethereum-execution, is not installed")

from ethereum.forks.osaka import state as spec  # noqa: E402
from ethereum.forks.osaka.fork_types import Account, Address  # noqa: E402
from ethereum.forks.osaka.vm import BlockEnvironment, Message, TransactionEnvironment  # noqa: E402
from ethereum.forks.osaka.vm.interpreter import process_message_call  # noqa: E402
from ethereum.forks.osaka.vm.precompiled_contracts.mapping import PRE_COMPILED_CONTRACTS  # noqa: E402
from ethereum_types.bytes import Bytes32  # noqa: E402
from ethereum_types.numeric import U64, U256, Uint  # noqa: E402

from chain.evm import Executed, LocalCall, LocalEvm  # noqa: E402
from chain.evm.execute import Chain, chain_of  # noqa: E402
from chain.evm.rules import CODE_EMPTY, intrinsic_gas  # noqa: E402
from chain.evm.state import Known  # noqa: E402
from chain.header import header_of  # noqa: E402
from chain.network import load_network  # noqa: E402
from chain.rpc import Lane, RpcDoor  # noqa: E402
from ledgers.clock import SystemClock  # noqa: E402
from tests.chain.evm.lab import random_simulation  # noqa: E402

NETWORK = load_network("devnet")
PROGRAMS = 40


async def test_random_programs_do_here_what_the_specification_says(chain):
    door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    pin = header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))
    evm, compared = LocalEvm(door, NETWORK.chain_id), 0
    for seed in range(1_000, 1_000 + PROGRAMS):
        executed = await evm.run(random_simulation(seed, pin, NETWORK))
        assert isinstance(executed, Executed)
        told = Specification(executed.pinned.known, chain_of(executed.pinned.header, NETWORK.chain_id)).run(executed.blocks)
        calls = [call for row in executed.calls for call in row]
        assert [_facts(call) for call in calls] == told, seed
        compared += len(calls)
    await door.close()
    assert compared == PROGRAMS * 10


def _facts(call: LocalCall) -> tuple[Any, ...]:
    logs = [(int(log.address, 16), [int(topic, 16) for topic in log.topics], log.data) for log in call.logs]
    writes = {(int(write.contract, 16), int(write.slot, 16)): (write.before, write.after) for write in call.writes}
    return call.ok, call.gas_used, call.data, logs, writes


class Specification:
    """Runs blocks of calls by the specification's own interpreter."""

    def __init__(self, known: Known, chain: Chain) -> None:
        self._chain, self._hashes, self._state = chain, known.blocks, spec.State()
        for address, account in known.accounts.items():
            code = b"" if account.code_hash == CODE_EMPTY else known.codes[account.code_hash]
            spec.set_account(self._state, _address(address), Account(Uint(account.nonce), U256(account.balance), code))
        for (address, slot), value in known.words.items():
            spec.set_storage(self._state, _address(address), Bytes32(slot.to_bytes(32)), U256(value))

    def run(self, blocks: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        told = []
        for block in blocks:
            for text, override in block["stateOverrides"].items():
                self._override(_address(int(text, 16)), override)
            told += [self._transact(block["blockOverrides"], call) for call in block["calls"]]
        return told

    def _override(self, address: Address, override: dict[str, Any]) -> None:
        held = spec.get_account(self._state, address)
        balance = U256(int(override["balance"], 16)) if "balance" in override else held.balance
        code = bytes.fromhex(override["code"][2:]) if "code" in override else held.code
        spec.set_account(self._state, address, Account(held.nonce, balance, code))
        for slot, value in override.get("stateDiff", {}).items():
            spec.set_storage(self._state, address, Bytes32(int(slot, 16).to_bytes(32)), U256(int(value, 16)))

    def _transact(self, header: dict[str, str], call: dict[str, str]) -> tuple[Any, ...]:
        state, price, limit = self._state, int(header["baseFeePerGas"], 16), int(call["gas"], 16)
        sender, target, data = _address(int(call["from"], 16)), _address(int(call["to"], 16)), bytes.fromhex(call["data"][2:])
        intrinsic, floor = intrinsic_gas(data)
        held = spec.get_account(state, sender)
        spec.set_account(state, sender, Account(held.nonce + Uint(1), U256(int(held.balance) - limit * price), held.code))
        before = self._words()
        output = process_message_call(self._message(header, sender, target, data, limit - intrinsic, int(call.get("value", "0x0"), 16), price))
        for address in output.accounts_to_delete:
            spec.destroy_account(state, address)
        spent = limit - int(output.gas_left)
        used = max(spent - min(spent // 5, int(output.refund_counter)), floor)
        held = spec.get_account(state, sender)
        spec.set_account(state, sender, Account(held.nonce, U256(int(held.balance) + (limit - used) * price), held.code))
        after = self._words()
        writes = {word: (before.get(word, 0), after.get(word, 0)) for word in before | after if before.get(word, 0) != after.get(word, 0)}
        logs = [(int.from_bytes(log.address), [int.from_bytes(topic) for topic in log.topics], bytes(log.data)) for log in output.logs]
        return output.error is None, used, bytes(output.return_data), logs, writes

    def _message(self, header: dict[str, str], sender: Address, target: Address, data: bytes, gas: int, value: int, price: int) -> Message:
        number, coinbase = int(header["number"], 16), _address(self._chain.coinbase)
        heights = range(max(number - 256, 0), number)
        around = BlockEnvironment(
            chain_id=U64(self._chain.chain_id), state=self._state, block_gas_limit=Uint(self._chain.gas_limit),
            block_hashes=[Bytes32(self._hashes.get(height, 0).to_bytes(32)) for height in heights], coinbase=coinbase, number=Uint(number),
            base_fee_per_gas=Uint(price), time=U256(int(header["time"], 16)), prev_randao=Bytes32(int(header["prevRandao"], 16).to_bytes(32)),
            excess_blob_gas=U64(0), parent_beacon_block_root=Bytes32(bytes(32)),
        )  # fmt: skip
        transaction = TransactionEnvironment(
            origin=sender, gas_price=Uint(price), gas=Uint(gas), access_list_addresses=set(), access_list_storage_keys=set(),
            transient_storage=spec.TransientStorage(), blob_versioned_hashes=(), authorizations=(), index_in_block=Uint(0), tx_hash=None,
        )  # fmt: skip
        return Message(
            block_env=around, tx_env=transaction, caller=sender, target=target, current_target=target, gas=Uint(gas), value=U256(value), data=data,
            code_address=target, code=spec.get_account(self._state, target).code, depth=Uint(0), should_transfer_value=True, is_static=False,
            accessed_addresses={*PRE_COMPILED_CONTRACTS, sender, target, coinbase}, accessed_storage_keys=set(), disable_precompiles=False, parent_evm=None,
        )  # fmt: skip

    def _words(self) -> dict[tuple[int, int], int]:
        tries = self._state._storage_tries  # noqa: SLF001
        return {(int.from_bytes(address), int.from_bytes(key)): int(value) for address, trie in tries.items() for key, value in trie._data.items()}  # noqa: SLF001


def _address(address: int) -> Address:
    return Address(address.to_bytes(20))
