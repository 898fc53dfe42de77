"""The ground: a standing local chain, a desk on it, and orders whose tokens are known; nothing moves while it is measured."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chain.balance_slot import BalanceSlot
from chain.devnet.devnet import Devnet
from chain.network import Network, load_network
from chain.pools import PoolGraph, discover, read_states
from chain.rpc import HttpTransport, Lane, RpcDoor
from chain.words import Word
from ledgers.clock import SystemClock, VirtualClock
from ledgers.money import TokenRaw, Wei
from referee.onchain.board import Desk, header_of_pin
from referee.onchain.book import Book, Holding
from referee.onchain.decision_desk import Refereed
from referee.onchain.events import LEDGERS, FillCredited, OrderAsked, Pin
from referee.onchain.rules import DEFAULT
from tests.bench.crowd import settle

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
PURSE_WEI, SPEND_WEI = 10**18, 10**16
SYMBOLS = ("LEAF", "ACRN", "FERN", "MOSS", "RUNE")
"""Honest tokens with two to six candidate routes over v2 and v3, direct and through USDG."""


class Recording(HttpTransport):
    """HTTP that remembers what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        self.bodies.append(body)
        return await super().post(lane, body, deadline_ms)


@dataclass(frozen=True, slots=True)
class Order:
    """One order with the books it stands on."""

    asked: OrderAsked
    books: dict[str, Book]


@dataclass(slots=True)
class Ground:
    """Everything that orders and marks are measured on."""

    chain: Devnet
    network: Network
    graph: PoolGraph
    desk: Desk
    pin: Pin
    crowd: list[str]
    """Further plain tokens, for marks of many holdings."""
    doors: list[RpcDoor] = field(default_factory=list)
    places: dict[str, BalanceSlot] = field(default_factory=dict)
    """Where tokens keep the wallet's balance."""

    def desk_at(self, url: str, transport: HttpTransport | None = None) -> Desk:
        """A desk of our own whose node answers at `url`; its clock stands still with the chain."""
        door = RpcDoor([Lane("devnet", url)], clock=SystemClock(), transport=transport)
        self.doors.append(door)
        return Desk(door, self.network, self.graph, DEFAULT, VirtualClock(self.pin.block_ts_s * 1_000), 0)

    def order(self, side: str, symbol: str) -> Order:
        """An order for a token, on a book that holds 1 ETH and a thousand of the token."""
        token = self.chain.deployment.token(symbol)
        address, buy = token.address.lower(), side == "buy"
        asked = OrderAsked(index=0, side=side, token=address, spend_wei=Wei(SPEND_WEI) if buy else None, amount_raw=None, sell_all=not buy)
        holdings = () if buy else (Holding(address, TokenRaw(1_000 * 10**token.decimals), False, ""),)
        return Order(asked, {ledger: self.book(ledger, holdings) for ledger in LEDGERS})

    def book(self, ledger: str, holdings: Sequence[Holding]) -> Book:
        """A book that holds tokens as if their buys had written the words of their balances."""
        writes = [self.places[holding.token].write(int(holding.units_raw)) for holding in holdings]
        words = tuple(Word(write.contract, write.slot, 0, write.value) for write in writes)
        return Book(ledger, Wei(PURSE_WEI), tuple(holdings), frozenset(), words=words, told=frozenset(holding.token for holding in holdings))

    def orders(self, side: str) -> list[Order]:
        """One order of this side for every token."""
        return [self.order(side, symbol) for symbol in SYMBOLS]

    async def recorded(self, orders: Sequence[Order]) -> list[list[bytes]]:
        """The request bodies that each order sends once its token is known."""
        recording = Recording()
        desk = self.desk_at(self.chain.url, recording)
        works = []
        for order in orders:
            await self.play(desk, order)
            recording.bodies.clear()
            await self.play(desk, order)
            works.append(list(recording.bodies))
        return works

    async def play(self, desk: Desk, order: Order) -> float:
        """Referee one order; seconds from admitted order to fill value. Breaks when it does not fill."""
        begun = time.perf_counter()
        done = await desk.decision("bench", WALLET, 0, self.pin, self.pin.block_ts_s * 1_000, order.books).order(order.asked, order.books)
        seconds = time.perf_counter() - begun
        _filled(done)
        return seconds


def _filled(done: Refereed) -> None:
    if not isinstance(done.events[-1], FillCredited):
        raise RuntimeError(f"an order of the bench did not fill: {done.events[-1]}")


@asynccontextmanager
async def standing(crowd: int = 0, *, seed: int = 7, height: int = 60) -> AsyncIterator[Ground]:
    """Build a chain with market history and a crowd of further tokens, and stand on the block before its newest."""
    with Devnet.build(seed=seed, height=height) as chain:
        tokens = settle(chain, crowd)
        chain.mine()
        network, clock = load_network("devnet"), SystemClock()
        door = RpcDoor([Lane("devnet", chain.url)], clock=clock)
        graph = await graph_of(chain, network, door)
        head = chain.node.call("eth_getBlockByNumber", ["latest", False])
        desk = Desk(door, network, graph, DEFAULT, VirtualClock(int(head["timestamp"], 16) * 1_000), 0)
        ground = Ground(chain, network, graph, desk, await desk.pin(), tokens, [door])
        for token in (*tokens, *(chain.deployment.token(symbol).address.lower() for symbol in SYMBOLS)):
            place = await desk.slots.of(token, WALLET, header_of_pin(ground.pin))
            assert place is not None and not place.shares, f"{token} of the bench keeps balances nobody knows where"
            ground.places[token] = place
        try:
            yield ground
        finally:
            for each in ground.doors:
                await each.close()


async def graph_of(chain: Devnet, network: Network, door: RpcDoor) -> PoolGraph:
    """Every pool of the chain with its state."""
    graph = PoolGraph(network)
    for pool in await discover(door, network, 0, chain.height):
        graph.add(pool)
    graph.states.update(await read_states(door, network, graph.pools.values(), chain.height))
    return graph
