"""The paper side of a life: the product's own desk with its books, on the paper world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chain.aggregators.rivals import Rivals
from chain.network import Network, load_network
from chain.pools import PoolGraph, discover, read_states
from chain.router import Route, Tx, sell_routes
from chain.rpc import Lane, RpcDoor
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from referee.onchain.board import Desk
from referee.onchain.book import Book
from referee.onchain.events import FURTHER_LEDGERS, HEADLINE, IMPACT, BoardTaken, FillCredited, OrderAsked
from referee.onchain.further_events import FurtherBoardTaken
from referee.onchain.marks import Valued
from referee.onchain.rules import DEFAULT
from tests.lives.program import NEARLY_ALL, Order, Program
from tests.lives.world import Stall, Twins
from tests.onchain.followed import FollowedRun, sent_by
from tests.onchain.given import outcome
from tests.onchain.ground import Ground, Wire

APPROVE, PERMIT = "0x095ea7b3", "0x87517c45"


@dataclass(frozen=True, slots=True)
class Told:
    """How an order ended on the ledger that is really lived, and what a wallet sends for it."""

    order: Order
    asked: OrderAsked
    fill: FillCredited | None
    word: str
    txs: tuple[Tx, ...] = ()
    """Approvals that the book has not paid yet, and the swap."""
    foreign: bool = False
    """Whether a rival's transaction was filled."""


@dataclass(slots=True)
class Paper:
    """A paper wallet."""

    twins: Twins
    stalls: list[Stall]
    run: FollowedRun
    network: Network
    ledger: str = HEADLINE
    filled: tuple = ()
    """The last order that headline filled: what was asked, its fill and its route."""

    @classmethod
    async def begin(cls, twins: Twins, door: RpcDoor, program: Program, reader: str) -> Paper:
        """Sit down with all stalls known, as after following the chain's logs."""
        network = replace(load_network("devnet"), reader=reader)
        graph = PoolGraph(network)
        places = [stall.place.key for stall in twins.stalls]
        found = {pool.key: pool for pool in await discover(door, network, 0, twins.paper.miner.height)}
        ours = places[:-1] if program.rival else places
        for key in ours:
            graph.add(found[key])
        graph.pools.update({key: found[key] for key in places})  # our own router goes no way through the rival's, yet it is known to be a pool
        desk = Desk(door, network, graph, DEFAULT, VirtualClock(), 0)
        ground = Ground(twins.paper.chain, network, graph, desk.clock, Wire(), desk)
        run = FollowedRun(ground, f"w1-life{program.seed}-1", program.wallet, f"{program.stake_wei} wei", stake_on=FURTHER_LEDGERS)
        return cls(twins, twins.stalls, run, network, program.ledger)

    @property
    def book(self) -> Book:
        """The book that is really lived."""
        return self.run.book(self.ledger)

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
                self.filled = (asked, end, desk.filled.get(end.order_id))
                told.append(_told(order, asked, end, self.filled[2], events, granted))
            else:
                told.append(Told(order, asked, None, _word(end)))
        return told

    async def follow(self, told: Told) -> Told:
        """Have the further ledger that is lived follow what headline has just filled."""
        await self.settle()
        quoted = next(event.pin for event in self.run.refereed[-1].events if isinstance(event, BoardTaken))
        pin, trades = await self.desk.pin(), tuple(self.run.trades) if self.ledger == IMPACT else ()
        desk = self.run.further.decision(self.ledger, self.run.run_id, self.run.wallet, self.run.tick, pin, self.book, trades)
        granted = self.book.approvals
        refereed = await desk.follow(*self.filled, quoted, self.book)
        self.run.fold(refereed.events)
        self.run.remember(refereed.events)
        end = next((event for event in refereed.events if isinstance(event, FillCredited)), None)
        if end is None:
            return Told(told.order, told.asked, None, f"{self.ledger} {getattr(refereed.events[-1], 'reason', 'reverted')}")
        sent = [Tx(tx.to, tx.data, tx.gas, tx.value_wei) for tx in sent_by(refereed, self.run.wallet) or ()]
        row = next(row for event in refereed.events if isinstance(event, FurtherBoardTaken) for row in event.rows if row.route == end.route)
        unpaid = [tx for tx in sent[:-1] if _key(tx) not in granted]
        approvals = sent[:-1] if row.approve_gas and not unpaid else unpaid
        return replace(told, fill=end, word=end.tag, txs=(*approvals, *sent[-1:]))

    def held_raw(self, token: str) -> int:
        holding = self.run.book().held(token)
        return int(holding.units_raw) if holding else 0

    def _asked(self, order: Order, index: int) -> OrderAsked:
        token = self.stalls[order.stall].token
        if order.side == "buy":
            wei = order.wei if order.wei != NEARLY_ALL else max(int(self.run.book().eth_wei) - order.left_wei, 1)
            return OrderAsked(index=index, side="buy", token=token, spend_wei=Wei(wei), amount_raw=None, sell_all=False)
        everything = order.part_ppm == 1_000_000 and self.held_raw(token) > 0
        amount = None if everything else TokenRaw(self.held_raw(token) * order.part_ppm // 1_000_000)
        return OrderAsked(index=index, side="sell", token=token, spend_wei=None, amount_raw=amount, sell_all=everything)

    async def value(self) -> Valued:
        """Mark headline. Raises: ChainFault when it could not be measured."""
        await self.settle()
        if self.ledger in FURTHER_LEDGERS:
            return await self.run.valued(self.ledger)
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


def _told(order: Order, asked: OrderAsked, fill: FillCredited, route: Route | None, events: Sequence[Event], granted: frozenset[str]) -> Told:
    if route is None:
        return Told(order, asked, fill, fill.tag)
    row = next(row for event in events if isinstance(event, BoardTaken) and HEADLINE in event.ledgers for row in event.rows if row.route == fill.route)
    approvals = [approval for approval in route.approvals if approval.key not in granted]
    if not approvals and row.approve_gas:
        approvals = list(route.approvals)
    return Told(order, asked, fill, fill.tag, (*(approval.tx for approval in approvals), route.swap), not route.hops)


def _word(end) -> str:
    if end.reason in ("unprovable", "gate_unknown"):
        return f"{end.reason} {end.detail.rpartition(': ')[2]}"
    return f"{end.reason}:{end.detail[:60]}" if end.reason in ("fault", "reverted") else end.reason


def _key(tx: Tx) -> str:
    """The approval that a transaction makes, as the books name it; empty for another."""
    words = [f"0x{tx.data[at + 24 : at + 64]}" for at in range(10, len(tx.data), 64)]
    if tx.data.startswith(APPROVE):
        return f"{tx.to}>{words[0]}"
    return f"{words[0]}>{tx.to}>{words[1]}" if tx.data.startswith(PERMIT) else ""


def lane_to(twins: Twins) -> RpcDoor:
    """A door to the paper world."""
    return RpcDoor([Lane("devnet", twins.paper.chain.url)], clock=VirtualClock())
