"""The local EVM: simulations run in process, on state proven against the pinned block's hash.

    evm = LocalEvm(door, network.chain_id)
    found = await evm.run(simulation)              # Executed, or NotCovered with a reason
    if isinstance(found, Executed) and same_as_node(found, simulated):
        found.calls[block][call].writes            # every word that the transaction left different
        blob = found.witness().encode()            # all that is needed to run it again offline
    verify(blob, block_hash).calls                 # does so; raises WitnessWrong

A handle of the simulation, `(block, call)`, is the place of its call in `calls`. Source: design §5–6.
"""

from chain.evm.execute import AccountWrite, LocalCall, LocalLog, Read, Write
from chain.evm.local import Executed, LocalEvm, NotCovered, difference, same_as_node
from chain.evm.recorded import NotRecorded, Recorded, Traded, difference_from, recorded_in, traded
from chain.evm.witness import Verified, Witness, WitnessWrong, read_shared, shared, verify

__all__ = [
    "AccountWrite", "Executed", "LocalCall", "LocalEvm", "LocalLog", "NotCovered", "NotRecorded", "Read", "Recorded", "Traded",
    "Verified", "Witness", "WitnessWrong", "Write", "difference", "difference_from", "read_shared", "recorded_in", "same_as_node",
    "shared", "traded", "verify",
]  # fmt: skip
