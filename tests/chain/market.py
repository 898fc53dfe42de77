"""A market to simulate in: the local chain's pools, a pinned block, a wallet that exists by override only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chain.balance_slot import BalanceSlot, SlotBook
from chain.devnet.devnet import Devnet
from chain.header import Header, header_of
from chain.network import Network, load_network
from chain.pools import Pool, PoolGraph, discover, read_states
from chain.router import Route, buy_routes, sell_routes
from chain.rpc import Lane, RpcDoor
from chain.simulate import Simulation, answered
from chain.trade import Held, Outcome, Purse, TradeSimulation
from ledgers.clock import SystemClock

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
PURSE_WEI = 10**18


@dataclass(slots=True)
class MarketStall:
    """Quotes and proves on one block."""

    chain: Devnet
    network: Network
    door: RpcDoor
    graph: PoolGraph
    pin: Header
    slots: SlotBook

    @classmethod
    async def on(cls, chain: Devnet, door: RpcDoor | None = None) -> MarketStall:
        network, door = load_network("devnet"), door or RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
        chain.mine()
        graph = PoolGraph(network)
        for pool in await discover(door, network, 0, chain.height):
            graph.add(pool)
        graph.states.update(await read_states(door, network, graph.pools.values(), chain.height))
        pin = header_of(chain.node.call("eth_getBlockByNumber", [hex(chain.height - 1), False]))
        return cls(chain, network, door, graph, pin, SlotBook(door))

    def token(self, name: str) -> str:
        """An honest token by symbol or an odd one by kind."""
        return self.chain.deployment.token(name).address.lower()

    def keep(self, choose: Callable[[Pool], bool]) -> PoolGraph:
        """A graph of some pools only."""
        graph = PoolGraph(self.network, states=self.graph.states)
        for pool in filter(choose, self.graph.pools.values()):
            graph.add(pool)
        return graph

    def routes(self, side: str, name: str, size: int) -> tuple[Route, ...]:
        of = buy_routes if side == "buy" else sell_routes
        return of(self.network, self.graph, self.token(name), size, WALLET)

    async def slot(self, name: str) -> BalanceSlot | None:
        return await self.slots.of(self.token(name), WALLET, self.pin)

    async def trade(self, route: Route, units: int = 0, amount: int | None = None) -> TradeSimulation:
        """A route's simulation for a wallet that holds so many units of its token."""
        slot = await self.slots.of(route.token, WALLET, self.pin)
        writes = (slot.write(units),) if slot and units else ()
        held = Held(units if amount is None else amount, units)
        return TradeSimulation(self.network, self.pin, Purse(WALLET, PURSE_WEI, writes), route, held)

    async def answers(self, *simulations: Simulation) -> list:
        """What the node really answers."""
        return await self.door.batch([simulation.request() for simulation in simulations])

    async def outcomes(self, *trades: TradeSimulation) -> list[Outcome]:
        told = await self.answers(*(trade.simulation for trade in trades))
        return [trade.outcome(answered(trade.simulation, answer)) for trade, answer in zip(trades, told, strict=True)]

    async def outcome(self, side: str, name: str, size: int, units: int = 0) -> list[Outcome]:
        """What every candidate route of an order does."""
        return await self.outcomes(*[await self.trade(route, units or (size if side == "sell" else 0)) for route in self.routes(side, name, size)])
