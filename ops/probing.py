"""The probing of a node: `referee probe URL`, the start-up self-test as a table that a person can read.

The address carries keys: it is never printed, and what the node says of it is blotted out.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack

from chain.aggregators.rivals import Rivals, rivals_named
from chain.finding import DIFFERS, UNKNOWN
from chain.network import Network
from chain.probe import client_of, refuse_local_node
from chain.rpc import RpcDoor
from chain.selftest import SelfTest, self_test
from ledgers.clock import Clock
from ledgers.layout import TEXT_WIDTH
from ledgers.report import Basis, Column, Table
from ops.assembly import network_named
from ops.reading import WrongUse
from ops.settings import Settings, lane_of

LANE = "node"
COLUMNS = (Column("part", "part"), Column("what", "what"), Column("verdict", "verdict"), Column("found", "found", below=True))
SAID = {
    True: "This node will do: whatever is `noted` is another way than elsewhere, and is taken care of.",
    False: "Where it `differs`, or where something stayed `unknown`, nothing should be played on this node before that is explained.",
}

Probed = tuple[str, dict[str, object], bool]
"""Text, data, and whether the node will do."""


async def probed_node(settings: Settings, url: str, network_name: str, rival_names: str, clock: Clock, width: int = TEXT_WIDTH) -> Probed:
    """Test a node against a network. Raises: BadSettings, BadWindow, WrongUse; ChainFault when it does not answer, or is a development node."""
    network, lane = network_named(network_name), lane_of(url, LANE, "the URL that was named")
    async with AsyncExitStack() as closing:
        door = RpcDoor([lane], clock=clock)
        closing.push_async_callback(door.close)
        refuse_local_node(await client_of(door), network)
        rivals = _rivals(settings, network, rival_names, clock)
        if rivals is not None:
            closing.push_async_callback(rivals.close)
        tested = await self_test(door, network, clock, rivals)
    table = _table(network, tested)
    return table.text(width), table.data() | {"holds": tested.holds, "network": network.name, "head_block": tested.head.block}, tested.holds


def _rivals(settings: Settings, network: Network, names: str, clock: Clock) -> Rivals | None:
    if not names:
        return None
    try:
        return Rivals(rivals_named([name.strip().lower() for name in names.split(",") if name.strip()], network.name, settings.rival_keys()), clock)
    except ValueError as error:
        raise WrongUse(str(error)) from None


def label_of(network: Network, tested: SelfTest) -> str:
    """The chain's label; of a node without the network's contracts nothing bears it."""
    return f"not known to be {network.label}" if tested.capabilities.code_missing else network.label


def _table(network: Network, tested: SelfTest) -> Table:
    found = tested.findings
    counted = Counter(finding.verdict for finding in found)
    claim = f"{counted[DIFFERS]} differ, {counted[UNKNOWN]} unknown"
    return Table(
        name="probe",
        title=f"What the node can do for {network.name}",
        basis=Basis(label=label_of(network, tested), n=len(found), of="self-tests", claim=claim),
        columns=COLUMNS,
        rows=tuple((finding.part, finding.what, finding.verdict, finding.found) for finding in found),
        note=SAID[tested.holds],
    )
