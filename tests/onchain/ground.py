"""The ground: a desk on the local chain, and runs that order on it as a window lets them. Nothing moves but by the test's hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import orjson

from chain.balance_slot import BalanceSlot, SlotBook
from chain.devnet.calls import Tx, encode
from chain.devnet.devnet import Devnet
from chain.network import Network, load_network
from chain.pools import NATIVE, Pool, PoolGraph, discover, read_states
from chain.rpc import HttpTransport, Lane, RpcDoor
from chain.words import Word
from ledgers.clock import VirtualClock
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK
from referee.onchain.board import Desk, header_of_pin
from referee.onchain.book import BUY_UNPROVEN, Book, Books, asset_of, words_kept
from referee.onchain.decision_desk import DecisionDesk, Refereed
from referee.onchain.events import HEADLINE, LEDGERS, BoardTaken, FillCredited, GateTaken, OrderAsked, RouteReverted, RouteSimulated
from referee.onchain.marks import Valued
from referee.onchain.rules import DEFAULT, Rules
from tests.onchain.given import filled, opened, outcome, said, wei

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"


class Wire(HttpTransport):
    """HTTP that remembers what was asked, and knows some methods no longer when told so."""

    def __init__(self) -> None:
        super().__init__()
        self.trips: list[list[str]] = []
        """Methods of each round trip."""
        self.missing: set[str] = set()
        self.answer: Callable[[dict, dict], dict] | None = None
        """Changes one answer, given its request."""

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        asked = orjson.loads(body)
        rows = asked if isinstance(asked, list) else [asked]
        self.trips.append([row["method"] for row in rows])
        raw = await super().post(lane, body, deadline_ms)
        if not self.missing and self.answer is None:
            return raw
        told = orjson.loads(raw)
        by_id = {row["id"]: row for row in rows}
        changed = [self._changed(by_id[row["id"]], row) for row in (told if isinstance(told, list) else [told])]
        return orjson.dumps(changed if isinstance(told, list) else changed[0])

    def _changed(self, asked: dict, told: dict) -> dict:
        if asked["method"] in self.missing:
            return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "Method not found"}}
        return self.answer(asked, told) if self.answer else told


@dataclass(slots=True)
class Ground:
    """A desk with a still clock on a living chain."""

    chain: Devnet
    network: Network
    graph: PoolGraph
    clock: VirtualClock
    wire: Wire
    desk: Desk

    @classmethod
    async def on(cls, chain: Devnet, rules: Rules = DEFAULT) -> Ground:
        """Sit down on a chain; one more block is sealed, so that the newest pinned one is what the chain was."""
        network, clock, wire = load_network("devnet"), VirtualClock(), Wire()
        door = RpcDoor([Lane("devnet", chain.url)], clock=clock, transport=wire)
        graph = PoolGraph(network)
        for pool in await discover(door, network, 0, chain.height):
            graph.add(pool)
        graph.states.update(await read_states(door, network, graph.pools.values(), chain.height))
        ground = cls(chain, network, graph, clock, wire, Desk(door, network, graph, rules, clock, 0))
        ground.settle()
        return ground

    def settle(self) -> None:
        """Seal a block behind which everything is pinned, and set the clock to it."""
        self.chain.mine()
        head = self.chain.node.call("eth_getBlockByNumber", ["latest", False])
        self.desk.clock_offset_ms = int(head["timestamp"], 16) * 1_000 - self.clock.now_ms()

    async def close(self) -> None:
        await self.desk.rpc.close()

    def token(self, name: str) -> str:
        """An honest token by symbol, one beside the hubs too, or an odd one by kind."""
        beside = {market.token.symbol: market.token for market in self.chain.deployment.annex.off_path if market.token}
        return (beside.get(name) or self.chain.deployment.token(name)).address.lower()

    def keep(self, choose: Callable[[Pool], bool]) -> None:
        """Let the desk know some pools only."""
        graph = PoolGraph(self.network)
        for pool in self.graph.pools.values():
            if choose(pool):
                graph.add(pool)
        graph.states.update(self.graph.states)
        graph.pools.update(self.graph.pools)  # no way leads through the others, yet it is known that they are pools
        self.graph = self.desk.graph = graph

    def keep_venue(self, name: str, venue: str, hub: str) -> None:
        """Let one token be reached in one way only; `hub` is weth, native or usdg, the last of which is reached by a v3 pool."""
        token, usdg = self.token(name), self.network.usdg
        side = {"weth": self.network.weth, "native": NATIVE, "usdg": usdg}[hub]
        dollars = {self.network.weth, usdg}
        self.keep(lambda pool: (pool.venue == venue and {pool.token0, pool.token1} == {token, side}) or ({pool.token0, pool.token1} == dollars and pool.venue == "v3"))

    def owner(self, name: str, signature: str, *values) -> None:
        """Let the owner of an odd token call it, in a block of its own."""
        keeper = self.chain.deployment.cast.zookeeper
        (receipt,) = self.chain.send(Tx(sender=keeper, to=self.token(name), data=encode(signature, *values), gas=6_000_000))
        assert receipt["status"] == "0x1", (name, signature)

    async def balance_place(self, token: str, owner: str) -> BalanceSlot | None:
        """Where a token keeps a balance, found by a search of its own, so that the desk has not looked yet."""
        return await SlotBook(self.desk.rpc, self.network.reader).of(token, owner, header_of_pin(await self.desk.pin()))

    def eth_of(self, wallet: str) -> int:
        return int(self.chain.node.call("eth_getBalance", [wallet, "latest"]), 16)

    def tokens_of(self, name: str, wallet: str) -> int:
        return int(self.chain.node.call("eth_call", [{"to": self.token(name), "data": encode("balanceOf(address)", wallet)}, "latest"]), 16)

    def trips(self) -> list[Counter]:
        """Round trips since the last look, by method."""
        seen, self.wire.trips = [Counter(methods) for methods in self.wire.trips], []
        return seen


@dataclass(slots=True)
class Run:
    """A run that orders on the ground; its books are the fold of its events."""

    ground: Ground
    run_id: str = "w1-a-1"
    wallet: str = WALLET
    stake: str = "1 eth"
    books: Books = field(default_factory=Books)
    events: list[Event] = field(default_factory=list)
    refereed: list[Refereed] = field(default_factory=list)
    tick: int = 0

    def __post_init__(self) -> None:
        self.fold([opened(wei(self.stake), self.run_id, self.wallet)])

    def book(self, ledger: str = HEADLINE) -> Book:
        return self.books.of(self.run_id, ledger)

    def held(self, name: str, ledger: str = HEADLINE) -> int:
        """Units in the book."""
        holding = self.book(ledger).held(self.ground.token(name))
        return int(holding.units_raw) if holding else 0

    def buy(self, name: str, spend: str | Wei) -> OrderAsked:
        spend_wei = wei(spend) if isinstance(spend, str) else spend
        return OrderAsked(index=0, side="buy", token=self.ground.token(name), spend_wei=spend_wei, amount_raw=None, sell_all=False)

    def sell(self, name: str, amount: int | None = None) -> OrderAsked:
        """Sell an amount, or all."""
        raw = None if amount is None else TokenRaw(amount)
        return OrderAsked(index=0, side="sell", token=self.ground.token(name), spend_wei=None, amount_raw=raw, sell_all=amount is None)

    async def sit_down(self) -> DecisionDesk:
        """Begin a decision."""
        self.tick += 1
        pin = await self.ground.desk.pin()
        return self.ground.desk.decision(self.run_id, self.wallet, self.tick, pin, self.ground.clock.now_ms(), self.books.both(self.run_id))

    async def decide(self, *orders: OrderAsked) -> list[tuple[Event, ...]]:
        """Have the orders of one decision refereed; the events of each."""
        desk = await self.sit_down()
        return [await self.order(desk, replace(asked, index=index)) for index, asked in enumerate(orders)]

    async def order(self, desk: DecisionDesk, asked: OrderAsked) -> tuple[Event, ...]:
        refereed = await desk.order(asked, self.books.both(self.run_id))
        self.refereed.append(refereed)
        self.fold(refereed.events)
        return refereed.events

    async def say(self, *orders: OrderAsked, ledger: str = HEADLINE) -> list[str]:
        """How each order of one decision ended on a ledger."""
        return [said(events, ledger) for events in await self.decide(*orders)]

    async def fill(self, *orders: OrderAsked, ledger: str = HEADLINE) -> list[FillCredited]:
        """Have orders refereed that must fill."""
        fills = [outcome(events, ledger) for events in await self.decide(*orders)]
        assert all(isinstance(fill, FillCredited) for fill in fills), fills
        return fills

    async def value(self) -> tuple[Valued, ...]:
        """Mark every ledger."""
        pin = await self.ground.desk.pin()
        return await self.ground.desk.value(self.run_id, self.wallet, tuple(self.books.both(self.run_id).values()), pin)

    async def worth(self, ledger: str = HEADLINE) -> Valued:
        (valued,) = [valued for valued in await self.value() if ledger in valued.ledgers]
        return valued

    def copy(self) -> Run:
        """A run that has the same behind it."""
        twin = Run(self.ground, self.run_id, self.wallet, self.stake, tick=self.tick)
        twin.books, twin.events = Books(), []
        twin.fold(self.events)
        return twin

    async def grant(
        self, name: str, units: int, *, shares: bool = False, cause: str = "", told: bool = True, ledgers: tuple[str, ...] = LEDGERS
    ) -> None:  # fmt: skip
        """Give the wallet tokens that no buy brought about, with the word of their balance as if a buy had written it.

        Where that word is not found, or with `told` false, nothing on the chain knows of them: their words are untold. With
        `shares` they are booked as in windows of earlier rules, which counted shares and told no words."""
        await self.grant_token(self.ground.token(name), units, shares=shares, cause=cause, told=told, ledgers=ledgers)

    async def grant_token(
        self, token: str, units: int, *, shares: bool = False, cause: str = "", told: bool = True, ledgers: tuple[str, ...] = LEDGERS
    ) -> None:  # fmt: skip
        """The same of a token by its address."""
        tag = f"{BUY_UNPROVEN}:{cause}" if cause else ""
        asset = asset_of(token, shares)
        place = await self.ground.balance_place(token, self.wallet) if told and not shares else None
        for ledger in ledgers:
            kept = words_kept(self._more_words(place, units, ledger)) if place else ()
            gift = filled({(BOOK, asset): units, ("market", asset): -units}, token=token, ledgers=(ledger,), tag=tag)
            self.fold([replace(gift, run_id=self.run_id, kept=kept)])

    def _more_words(self, place: BalanceSlot, units: int, ledger: str) -> tuple[Word]:
        """The word of a balance after more came, on top of what this ledger's wallet wrote or the chain holds."""
        write, here = place.write(units), int(self.ground.chain.node.call("eth_getStorageAt", [place.contract, place.slot, "latest"]), 16)
        carried = {word.place: word for word in self.book(ledger).words}
        word = carried.get((write.contract, write.slot)) or Word(write.contract, write.slot, here, here)
        return (replace(word, value=word.value + write.value),)

    def fold(self, events: Iterable[Event]) -> None:
        """Take events into the books."""
        for event in events:
            self.events.append(event)
            self.books.apply(event)


def transactions(refereed: Refereed, wallet: str = WALLET, ledger: str = HEADLINE) -> list[Tx]:
    """What the wallet sent in the evidence of an order's chosen route: earlier orders of its decision first."""
    for event in refereed.events:
        if isinstance(event, (RouteSimulated, RouteReverted)) and ledger in event.ledgers:
            calls = orjson.loads(refereed.blobs[event.evidence_sha256])["params"][0]["blockStateCalls"][0]["calls"]
            return [
                Tx(sender=wallet, to=call["to"], data=call["data"], value_wei=int(call.get("value", "0x0"), 16), gas=int(call["gas"], 16))
                for call in calls if call["from"] == wallet
            ]  # fmt: skip
    raise AssertionError(f"no route went into evidence: {refereed.events}")


def boards(events: Sequence[Event]) -> list[BoardTaken]:
    return [event for event in events if isinstance(event, BoardTaken)]


def gates(events: Sequence[Event]) -> list[GateTaken]:
    return [event for event in events if isinstance(event, GateTaken)]
