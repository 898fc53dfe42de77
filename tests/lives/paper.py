"""The paper side of a life: the product's own desk with its books, on the paper world."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from chain.aggregators.rivals import Rivals
from chain.network import Network, load_network
from chain.pools import PoolGraph, discover, read_states
from chain.router import Route, sell_routes
from chain.rpc import Lane, RpcDoor
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw, Wei
from referee.onchain.board import Desk
from referee.onchain.events import HEADLINE, BoardTaken, FillCredited, OrderAsked, Row
from referee.onchain.marks import Valued
from referee.onchain.rules import DEFAULT
from tests.lives.program import NEARLY_ALL, Order, Program
from tests.lives.world import Stall, Twins
from tests.onchain.given import outcome
from tests.onchain.ground import Ground, Run, Wire

GAS_LEFT_WEI = 40_000_000_000_000
"""What a buy of nearly everything leaves for gas."""


@dataclass(frozen=True, slots=True)
class Told:
    """How an order ended on headline; with the route where it was filled."""

    order: Order
    asked: OrderAsked
    fill: FillCredited | None
    word: str
    route: Route | None = None
    row: Row | None = None
    granted: frozenset[str] = frozenset()
    """Approvals that the book had paid before."""


@dataclass(slots=True)
class Paper:
    """A paper wallet."""

    twins: Twins
    stalls: list[Stall]
    run: Run
    network: Network
    refused: dict = field(default_factory=dict)

    @classmethod
    async def begin(cls, twins: Twins, door: RpcDoor, program: Program, reader: str) -> Paper:
        """Sit down with all stalls known, as after following the chain's logs."""
        network = replace(load_network("devnet"), reader=reader)
        graph = PoolGraph(network)
        places = [stall.place.key for stall in twins.stalls]
        found = {pool.key: pool for pool in await discover(door, network, 0, twins.paper.miner.height)}
        for key in places[:2]:
            graph.add(found[key])
        graph.pools.update({key: found[key] for key in places[2:]})  # our own router goes no way through it, yet it is known to be a pool
        desk = Desk(door, network, graph, DEFAULT, VirtualClock(), 0)
        ground = Ground(twins.paper.chain, network, graph, desk.clock, Wire(), desk)
        run = Run(ground, f"w1-life{program.seed}-1", program.wallet, f"{program.stake_wei} wei")
        return cls(twins, twins.stalls, run, network)

    @property
    def desk(self) -> Desk:
        return self.run.ground.desk

    async def settle(self) -> None:
        """Stand on the newest block, pools as they are in it."""
        world = self.twins.paper
        self.desk.clock_offset_ms = world.miner.time_of(world.miner.height) * 1_000 - self.desk.clock.now_ms()
        self.desk.graph.states.update(await read_states(self.desk.rpc, self.network, self.desk.graph.pools.values(), world.miner.height - 1))

    async def decide(self, orders: tuple[Order, ...]) -> list[Told]:
        """Have the orders of one decision refereed, one after another."""
        await self.settle()
        try:
            desk = await self.run.sit_down()
        except ChainFault as fault:
            return [Told(order, self._asked(order, 0), None, f"fault:{fault.reason}") for order in orders]
        told = []
        for index, order in enumerate(orders):
            asked = self._asked(order, index)
            if asked.amount_raw is not None and not int(asked.amount_raw):
                continue
            granted = self.run.book().approvals
            events = await self.run.order(desk, asked)
            end = outcome(events)
            if isinstance(end, FillCredited):
                row = next(row for event in events if isinstance(event, BoardTaken) and HEADLINE in event.ledgers for row in event.rows if row.route == end.route)
                told.append(Told(order, asked, end, end.tag, desk.filled.get(end.order_id), row, granted))
            else:
                told.append(Told(order, asked, None, f"{end.reason}" + (f":{end.detail[:60]}" if end.reason in ("fault", "reverted") else "")))
        return told

    def held_raw(self, token: str) -> int:
        holding = self.run.book().held(token)
        return int(holding.units_raw) if holding else 0

    def _asked(self, order: Order, index: int) -> OrderAsked:
        token = self.stalls[order.stall].token
        if order.side == "buy":
            wei = order.wei if order.wei != NEARLY_ALL else max(int(self.run.book().eth_wei) - GAS_LEFT_WEI, 1)
            return OrderAsked(index=index, side="buy", token=token, spend_wei=Wei(wei), amount_raw=None, sell_all=False)
        everything = order.part_ppm == 1_000_000 and self.held_raw(token) > 0
        amount = None if everything else TokenRaw(self.held_raw(token) * order.part_ppm // 1_000_000)
        return OrderAsked(index=index, side="sell", token=token, spend_wei=None, amount_raw=amount, sell_all=everything)

    async def value(self) -> Valued:
        """Mark headline. Raises: ChainFault when it could not be measured."""
        await self.settle()
        pin = await self.desk.pin()
        for valued in await self.desk.value(self.run.run_id, self.run.wallet, tuple(self.run.books.both(self.run.run_id).values()), pin):
            if HEADLINE in valued.ledgers:
                return valued
        raise AssertionError("headline was not valued")

    def sales(self, token: str, amount_raw: int) -> tuple[Route, ...]:
        """Ways to sell an amount."""
        return sell_routes(self.network, self.desk.graph, token, amount_raw, self.run.wallet) if amount_raw > 0 else ()


    def rivalled(self, asked: Rivals) -> None:
        """Let a rival be asked beside our own router."""
        self.desk.rivals = asked


def lane_to(twins: Twins) -> RpcDoor:
    """A door to the paper world."""
    return RpcDoor([Lane("devnet", twins.paper.chain.url)], clock=VirtualClock())
