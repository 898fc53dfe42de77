"""The local EVM: simulations run in process, on state proven against the pinned block's hash.

    evm = LocalEvm(door, network.chain_id)              # one a network; keeps code and what calls ask for
    found = await evm.run(simulation)                   # Executed, or NotCovered with a reason
    found = await evm.run(simulation, proven=False)     # on state as the node tells it: as good as its simulation, and quick
    if isinstance(found, Executed) and same_as_node(found, simulated):
        block, place = handle
        found.calls[block][place].writes                # every word that the transaction left different, in whatever contract
        found.least_gas(handle)                         # the gas limit that it needs to do the same
        proven = await evm.prove(found)                 # the same run on proven state; raises where the node told otherwise
        blob = proven.witness().encode()                # all that is needed to run it again offline
    verify(blob, block_hash).calls                      # does so, and needs no node; raises WitnessWrong

What has no result here is `NotCovered`, never a wrong number; what is run here counts only where `same_as_node`. Whoever
verifies a witness compares `Verified.blocks` and `chain_id` with what was to be proven. Source: design §5–6.
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
