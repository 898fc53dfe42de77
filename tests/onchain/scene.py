"""A run whose desk reaches the local chain through lying nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from chain.balance_slot import SlotBook
from chain.devnet.devnet import Devnet
from chain.evm import LocalEvm
from chain.rpc import Lane, RpcDoor
from ledgers.events import Event
from referee.onchain.events import FillCredited, OrderAsked
from tests.onchain.ground import Ground, Run
from tests.onchain.lying import LyingNode, lying_node

DEADLINE_MS = 5_000
SHORT_DEADLINE_MS = 250
"""For nodes that never answer."""
SPEND = "0.01 eth"
LEAVES = 40 * 10**18
SIMULATE = "eth_simulateV1"

class Scene:
    """A run whose desk reaches the chain through one lying node, or through several lanes."""

    def __init__(self, ground: Ground, nodes: list[LyingNode]) -> None:
        self.ground, self.nodes, self.node = ground, nodes, nodes[0]
        self.run = Run(ground)

    def reach(self, *nodes: LyingNode) -> None:
        """Let the desk know these lanes, in this order, and nothing found before."""
        lanes = [Lane(f"lane {place}", node.url) for place, node in enumerate(nodes)]
        self.ground.desk.rpc = RpcDoor(lanes, clock=self.ground.clock, deadline_ms=DEADLINE_MS)
        desk = self.ground.desk
        desk.slots, desk.evm = SlotBook(desk.rpc), LocalEvm(desk.rpc, desk.network.chain_id)

    async def order(self, side: str, name: str = "LEAF") -> tuple[Event, ...]:
        desk = await self.run.sit_down()
        self.be_short()
        return await self.run.order(desk, self.asked(side, name))

    def be_short(self, deadline_ms: int = SHORT_DEADLINE_MS) -> None:
        """Wait less from now on, if the node is one that never answers."""
        if self.node.manner.stop in ("hang", "drip"):
            self.ground.desk.rpc.deadline_ms = deadline_ms

    def asked(self, side: str, name: str = "LEAF") -> OrderAsked:
        return self.run.buy(name, SPEND) if side == "buy" else self.run.sell(name)

    async def honest(self, side: str, name: str = "LEAF") -> FillCredited:
        """What an honest node leads to, for a run of its own."""
        manner, self.node.manner = self.node.manner, type(self.node.manner)()
        twin = self.run.copy()
        (fill,) = await twin.fill(twin.buy(name, SPEND) if side == "buy" else twin.sell(name))
        self.node.manner = manner
        return fill


@asynccontextmanager
async def scene_on(chain: Devnet) -> AsyncIterator[Scene]:
    """A scene with two nodes, honest so far, of which the desk knows the first."""
    ground = await Ground.on(chain)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(lying_node(chain.url)) for _ in range(2)]
        opened = Scene(ground, nodes)
        await opened.run.grant("LEAF", LEAVES)
        await ground.close()
        opened.reach(nodes[0])
        yield opened
        await ground.desk.rpc.close()


def fills(events: tuple[Event, ...]) -> list[FillCredited]:
    return [event for event in events if isinstance(event, FillCredited)]


def simulating(methods: list[str]) -> bool:
    return SIMULATE in methods
