"""The onlooker: a network looked at outside any window, with a desk at which nobody trades.

What is asked here is refereed as an order of a window would be, at one pinned block, for a wallet and a book made up for
the question. Nothing is recorded, and a quote never fills (ONC-07).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from chain.devnet import process
from chain.market import MarketIndex
from chain.network import Network
from chain.pools import PoolGraph
from chain.rpc import Lane, RpcDoor
from chain.tokens import TokenFacts, read_facts
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from ops.assembly import desk_of, lanes, network_named, probed
from ops.home_chain import DEVNET
from ops.lent import GAS_PURSE_WEI, lent
from ops.rival_routers import rivals_of
from ops.settings import Settings
from referee.onchain.board import Desk, header_of_pin
from referee.onchain.book import Book, Holding
from referee.onchain.credit import exit_reserve_wei
from referee.onchain.events import LEDGERS, OrderAsked, Pin
from referee.onchain.rules import DEFAULT
from referee.onchain.state import WindowState

ROBINHOOD = "robinhood"
NOBODY = "0x" + sha256_hex(b"who asks for a board outside any window")[24:]
"""The wallet that questions are asked for; nobody holds a key to it."""
ORDER_ID_RUN = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlooker:
    """One network, followed to the block that questions stand on."""

    network: Network
    rpc: RpcDoor
    desk: Desk
    index: MarketIndex
    pin: Pin

    @property
    def graph(self) -> PoolGraph:
        """The pools that are known at the block."""
        return self.index.graph

    async def facts(self, token: str) -> TokenFacts:
        """What a token says of itself. Raises: ChainFault."""
        return (await read_facts(self.rpc, [token], self.pin.block))[token]

    async def referee(self, asked: OrderAsked) -> tuple[Event, ...]:
        """Referee an order that is none, on a book that can carry it. Raises: ChainFault."""
        books = await self._books(asked)
        desk = self.desk.decision(ORDER_ID_RUN, NOBODY, 0, self.pin, self.desk.clock.now_ms(), books)
        return (await desk.order(asked, books)).events

    async def _books(self, asked: OrderAsked) -> dict[str, Book]:
        if asked.spend_wei is not None:
            empty = Book("", Wei(0), (), frozenset())
            reserve = exit_reserve_wei(self.desk.rules, empty, asked.token, self.pin.base_fee_wei)
            book = replace(empty, eth_wei=asked.spend_wei + reserve + GAS_PURSE_WEI)
        else:
            assert asked.amount_raw is not None
            book = await self._holding(asked.token, int(asked.amount_raw))
        return {ledger: replace(book, ledger=ledger) for ledger in LEDGERS}

    async def _holding(self, token: str, amount_raw: int) -> Book:
        """A book that holds so many token units, put there by the word that the token keeps a balance in. Raises: ChainFault."""
        word = await lent(self.desk, NOBODY, token, amount_raw, header_of_pin(self.pin))
        return Book("", GAS_PURSE_WEI, (Holding(token, TokenRaw(amount_raw), False, ""),), frozenset(), words=(word,), told=frozenset({token}))


@asynccontextmanager
async def onlooker(settings: Settings, network_name: str | None, token: str | None, clock: Clock) -> AsyncIterator[Onlooker]:
    """Look at a network: the one that is named, else the real chain where nodes of it are set, else the home's local chain.

    Pools of one token are followed, or of all. Raises: BadWindow, BadSettings, ChainFault."""
    network = network_named(network_name or (ROBINHOOD if settings.lanes() else DEVNET))
    async with AsyncExitStack() as closing:
        door = RpcDoor([_local_lane(settings)] if network.name == DEVNET else lanes(settings, network), clock=clock)
        closing.push_async_callback(door.close)
        state = WindowState()
        found = await probed(door, network, clock, state)
        graph = PoolGraph(network)
        desk = desk_of(state, Desk(door, network, graph, DEFAULT, clock, found.clock_offset_ms), found)
        desk.rivals = rivals = rivals_of(settings, network, clock)
        if rivals is not None:
            closing.push_async_callback(rivals.close)
        index = MarketIndex(door, network, graph, tokens=None if token is None else [token])
        pin = await desk.pin()
        await index.advance(pin.block)
        yield Onlooker(network=network, rpc=door, desk=desk, index=index, pin=await desk.pin())


def _local_lane(settings: Settings) -> Lane:
    standing = process.status(settings.home)
    if standing is None or not standing.alive:
        raise ChainFault("no_chain", "there is no local chain to look at; `referee devnet up` starts one, or set REFEREE_RPC_URLS and --network robinhood")
    return Lane(DEVNET, standing.url)
