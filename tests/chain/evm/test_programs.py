"""Random programs run here as by the node: outcome, data, gas and logs of every call, and the whole state after real blocks.

`REFEREE_EVM_SEED` and `REFEREE_EVM_PROGRAMS` choose others, and more of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from chain.evm import Executed, LocalEvm, difference
from chain.header import header_of
from chain.network import load_network
from chain.router import Tx
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock
from tests.chain.evm.lab import ADDRESSES, Ledger, both, programs_of, random_simulation, small_chain, text

SEED = int(os.environ.get("REFEREE_EVM_SEED", "1"))
PROGRAMS = int(os.environ.get("REFEREE_EVM_PROGRAMS", "150"))
NETWORK = load_network("devnet")
PER_BLOCK = 4


@pytest.fixture
async def door(chain):
    opened = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    yield opened
    await opened.close()


async def test_random_programs_do_here_what_they_do_at_the_node(chain, door):
    evm, pin = LocalEvm(door, NETWORK.chain_id), header_of(chain.node.call("eth_getBlockByNumber", ["latest", False]))
    found: Counter[str] = Counter()
    for seed in range(SEED, SEED + PROGRAMS):
        executed, simulated = await both(door, evm, random_simulation(seed, pin, NETWORK))
        assert isinstance(executed, Executed), (seed, executed)
        assert difference(executed, simulated) == "", seed
        calls = [call for row in executed.calls for call in row]
        found.update(ok=sum(call.ok for call in calls), failed=sum(not call.ok for call in calls))
        found.update(writes=sum(len(call.writes) for call in calls), logs=sum(len(call.logs) for call in calls))
    assert min(found[name] for name in ("ok", "failed", "writes", "logs")) > PROGRAMS, found


async def test_real_blocks_leave_the_state_that_their_writes_say():
    written, created = 0, 0
    with small_chain(NETWORK) as small:
        evm = LocalEvm(small.door, NETWORK.chain_id)
        for seed in range(SEED, SEED + PROGRAMS):
            mark = small.remember()
            made = programs_of(seed, small.pin(), NETWORK)
            small.plant(made)
            ledger, pin = Ledger.of(small.node), small.pin()
            txs = [Tx(text(made.choice(ADDRESSES)), "0x" + made.calldata().hex(), made.gas(), made.value()) for _ in range(PER_BLOCK)]
            sealed, receipts = small.really(txs)
            executed = await evm.run(small.simulation_of(pin, sealed, txs))
            assert isinstance(executed, Executed), (seed, executed)
            (calls,) = executed.calls
            assert [(call.ok, call.gas_used) for call in calls] == [(row["status"] == "0x1", int(row["gasUsed"], 16)) for row in receipts], seed
            for call in calls:
                ledger.apply(call)
            assert ledger.living() == Ledger.of(small.node).living(), seed
            written += sum(len(call.writes) for call in calls)
            created += sum(not row.code[0] and bool(row.code[1]) for call in calls for row in call.accounts)
            small.go_back(mark)
        await small.door.close()
    assert written > PROGRAMS / 2 and created > PROGRAMS / 10, (written, created)
