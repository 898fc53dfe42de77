"""The further desk: takes the orders of the further ledgers, which are simulated later or after the run's own earlier trades.

It stands on the referee's desk and reads and proves as that one does; only the block and what runs before differ. Own
earlier trades go over our own router's routes; so do all orders of the own-impact ledger, because a rival's calldata is for
one moment, one size and one taker. The delayed ledger sends the very transaction that headline filled at.
Source: 001 §5.1, §5.2; design §6; ONC-22, ONC-23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chain import calldata
from chain.address import derived
from chain.balance_slot import BalanceSlot
from chain.candidates import Part
from chain.header import Header
from chain.paths import Hop
from chain.pools import PoolGraph
from chain.router import Route, Tx, buy_routes, route_of, sell_routes
from chain.rpc import RpcRefused
from chain.simulate import SlotWrite, slot_override
from chain.trade import REVERTED, UNREPEATABLE, Echo, TradeSimulation, route_txs
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.money import TokenRaw
from referee.onchain.board import Desk
from referee.onchain.book import Book
from referee.onchain.credit import carried, not_filled, refusal
from referee.onchain.decision_desk import DecisionDesk, Refereed, header_of_pin
from referee.onchain.events import DELAYED, IMPACT, FillCredited, OrderAsked, Pin, Row
from referee.onchain.further import NOT_HELD, felt, felt_raw, least_of, quote_of, settle_further, size_raw, skip
from referee.onchain.further_events import FurtherBoardTaken, RouteRemembered, WayTaken
from referee.onchain.marks import Valued
from referee.onchain.rows import Rows
from referee.onchain.state import Trade
from referee.onchain.variant import Variant

SHARES_TRIED_BITS = (112, 176, 240)
"""Shares that a token is asked the worth of, the fewest first."""
NOTHING_EARLIER = Echo((), ())
"""Own impact always stands a block later, so that as much time passes between a run's trades as did."""
Weighed = tuple[Trade, int]
"""An earlier trade and how much of it is felt, in parts per million."""


@dataclass(slots=True)
class FurtherDesk:
    """Takes boards and marks of further ledgers."""

    desk: Desk

    def decision(self, ledger: str, run_id: str, wallet: str, tick: int, pin: Pin, book: Book, trades: Sequence[Trade] = ()) -> FurtherDecision:
        """Open the orders of one decision on a further ledger, after the trades of earlier decisions."""
        return FurtherDecision(self, ledger, run_id, wallet, tick, pin, book, trades)

    async def value(self, run_id: str, wallet: str, book: Book, pin: Pin, trades: Sequence[Trade] = ()) -> tuple[Valued, ...]:
        """Sell a further ledger's book out in simulation, after earlier trades. Raises: ChainFault."""
        return await self.desk.value(run_id, wallet, (book,), pin, await self.echo_of_book(wallet, book, pin, trades))

    async def echo_of_book(self, wallet: str, book: Book, pin: Pin, trades: Sequence[Trade]) -> Echo | None:
        """The earlier trades that a sale of the whole book meets. Raises: ChainFault."""
        desk, weighed = self.desk, self.weighed(trades, pin)
        if not book.holdings:
            return None
        if not weighed:
            return NOTHING_EARLIER if book.ledger == IMPACT else None
        header = header_of_pin(pin)
        purse, _, _ = await desk.purse_of(wallet, book, book, header)
        sales, _ = await desk.sales(purse, book, header)
        ways = [route for sale in sales for route in sale.routes]
        return await self.echo(self.touching(weighed, ways), header)

    # --- earlier trades -----------------------------------------------------------------------------------------------

    def weighed(self, trades: Sequence[Trade], pin: Pin) -> tuple[Weighed, ...]:
        """The earlier trades that are still felt at a block."""
        return felt(self.desk.rules, trades, pin.block_ts_s) if trades else ()

    def touching(self, weighed: Sequence[Weighed], ways: Iterable[Route]) -> tuple[Weighed, ...]:
        """Those earlier trades that moved a pool of some routes, or a pool that such a trade crossed too."""
        met = {key for way in ways for key in pools_of(way)}
        crossed = {trade.order_id: {key for way in trade.ways for key in way.pools} for trade, _ in weighed}
        while more := {key for keys in crossed.values() if keys & met for key in keys} - met:
            met |= more
        return tuple((trade, weight) for trade, weight in weighed if crossed[trade.order_id] & met)

    async def echo(self, weighed: Sequence[Weighed], header: Header) -> Echo:
        """Earlier trades as transactions of stand-ins, each at the part of its size that is still felt. Raises: ChainFault."""
        sized = [(trade, weight) for trade, weight in weighed if felt_raw(trade.amount_raw, weight)]
        txs = [(stand_in_of(trade), tx) for trade, weight in sized for tx in route_txs(self._repeated(trade, weight))]
        return Echo(tuple(txs), tuple([await self._tokens(trade, header) for trade, _ in sized if trade.side == "sell"]))

    def _repeated(self, trade: Trade, weight: int) -> Route:
        if lost := [key for way in trade.ways for key in way.pools if key not in self.desk.graph.pools]:
            raise ChainFault(UNREPEATABLE, f"pool {lost[0]} of {trade.order_id} is no longer known")
        return route_of(self.desk.network, remembered(self.desk.graph, trade), stand_in_of(trade), felt_raw(trade.amount_raw, weight))

    async def _tokens(self, trade: Trade, header: Header) -> SlotWrite:
        """What a sale's stand-in must hold: what the run sold then, and as much again for what may round otherwise by now."""
        slot = await self.desk.slots.of(trade.token, stand_in_of(trade), header)
        if slot is None:
            raise ChainFault(UNREPEATABLE, f"the sale {trade.order_id} cannot be run again: the balance slot of {trade.token} is not known")
        raw = 2 * max(trade.units_raw, trade.amount_raw)
        return slot.write(await self._shares(slot, trade, raw, header) if slot.shares else raw)

    async def _shares(self, slot: BalanceSlot, trade: Trade, raw: int, header: Header) -> int:
        """How many shares a stand-in must have to hold so much, by what the token tells of some. Raises: ChainFault."""
        asked, at = {"to": trade.token, "data": calldata.balance_of(stand_in_of(trade))}, {"blockHash": header.block_hash}
        tries = [1 << bits for bits in SHARES_TRIED_BITS]
        told = await self.desk.rpc.batch([("eth_call", [asked, at, slot_override([slot.write(shares)])]) for shares in tries])
        for shares, answer in zip(tries, told, strict=True):
            amount = 0 if isinstance(answer, RpcRefused) else calldata.uint_at(calldata.hex_bytes(answer), 0) or 0
            if amount:
                return raw * shares // amount + 1
        raise ChainFault(UNREPEATABLE, f"the sale {trade.order_id} cannot be run again: {trade.token} does not tell what its shares are worth")


class FurtherDecision(DecisionDesk):
    """The orders of one decision on one further ledger, one after another at one block."""

    def __init__(self, further: FurtherDesk, ledger: str, run_id: str, wallet: str, tick: int, pin: Pin, book: Book, trades: Sequence[Trade]) -> None:
        super().__init__(further.desk, run_id, wallet, tick, pin, further.desk.clock.now_ms(), {ledger: book}, rivals=False)
        self._further, self._ledger, self._weighed = further, ledger, further.weighed(trades, pin)

    async def follow(self, asked: OrderAsked, fill: FillCredited, route: Route | None, quoted_pin: Pin, book: Book) -> Refereed:
        """Referee an order that headline filled, against this ledger's running book; faults become events, never guesses."""
        try:
            return await self._follow(asked, fill, route, quoted_pin, book)
        except ChainFault as fault:
            if fault.reason != UNREPEATABLE:
                self._desk.rpc.distrust()
            reason = UNREPEATABLE if fault.reason == UNREPEATABLE else "fault"
            return self._stopped(not_filled(self._run_id, fill.order_id, (self._ledger,), reason, str(fault), self._desk.clock.now_ms()))

    async def _follow(self, asked: OrderAsked, fill: FillCredited, route: Route | None, quoted_pin: Pin, book: Book) -> Refereed:
        now_ms, about = self._desk.clock.now_ms(), (self._run_id, fill.order_id, (self._ledger,))
        if asked.side == "sell" and book.held(asked.token) is None:
            return self._stopped(skip(*about, NOT_HELD, "", now_ms))
        earlier, variant = await self._begin(asked, book)
        if asked.side == "sell" and not variant.held.amount_raw:
            return self._stopped(skip(*about, NOT_HELD, "", now_ms))
        variant = replace(variant, size_raw=size_raw(asked, variant.held.amount_raw))
        word, detail = carried(self._desk.rules, asked, book, TokenRaw(0), self._pin.base_fee_wei) if asked.side == "buy" else ("", "")
        if word:
            return self._stopped(refusal(*about, word, detail, now_ms))
        rows = Rows.of(self._desk.network, self._header, variant, self._ways(asked, fill, route))
        self._watch(rows)
        looking = self._looking()
        await self._fill_rows([rows])
        await self._tell([rows], fill.order_id, looking)
        await self._tell_approvals(rows)
        rows.rows = [_named(row, way) for row, way in zip(rows.rows, rows.routes, strict=True)]
        board = self._board(rows, fill, earlier, quoted_pin)
        outcome = settle_further(self._desk.rules, board, book, self._desk.clock.now_ms())
        self._carry(rows, outcome)
        return Refereed((board, *outcome, *self._remembered(rows, outcome)), rows.evidence_of(outcome))

    async def _tell_approvals(self, rows: Rows) -> None:
        """Know what the approvals of a delayed transaction wrote that reverts, since their gas is paid and they stand."""
        if self._ledger == DELAYED and not rows.variant.cause:
            for row in [row for row in rows.rows if row.status == REVERTED and row.approvals]:
                await self._telling.tell(rows, row, int(rows.variant.book.eth_wei))

    def _watch(self, rows: Rows) -> None:
        """Look at what else a rival's transaction takes, as the headline's board does."""
        variant = rows.variant
        if all(route.hops for route in rows.routes) or variant.cause:
            return
        others = sorted({holding.token for holding in variant.book.holdings} - {variant.asked.token})
        rows.questions = [
            TradeSimulation(self._desk.network, self._header, variant.purse, route, variant.held, variant.book.approvals, others) for route in rows.routes
        ]  # fmt: skip

    def _stopped(self, event: Event) -> Refereed:
        return Refereed((event,), {})

    async def _begin(self, asked: OrderAsked, book: Book) -> tuple[tuple[Weighed, ...], Variant]:
        """Set up what runs before the order, nothing on the delayed ledger, and what is then traded.

        Which ways are candidates rests on the size, which may rest on what ran before where a token keeps shares."""
        earlier: tuple[Weighed, ...] = ()
        ways: list[Route] = []
        self._echo = NOTHING_EARLIER if self._ledger == IMPACT else None
        while True:
            variant = await self._variant(asked, book)
            if not self._weighed:
                return earlier, variant
            ways += self._own_ways(asked)(max(size_raw(asked, variant.held.amount_raw), 1))
            met = self._further.touching(self._weighed, ways)
            if met == earlier:
                return earlier if self._echo and self._echo.txs else (), variant
            earlier, self._echo = met, await self._further.echo(met, self._header)

    def _ways(self, asked: OrderAsked, fill: FillCredited, route: Route | None) -> Callable[[int], tuple[Route, ...]]:
        """Candidate routes for a size: on the delayed ledger the one that headline filled at."""
        own = self._own_ways(asked)
        if self._ledger != DELAYED or route is None:
            return own

        def same(size: int) -> tuple[Route, ...]:
            if size == route.amount:
                return (route,)
            return (route_of(self._desk.network, route, self._wallet, size),) if route.hops else own(size)

        return same

    def _own_ways(self, asked: OrderAsked) -> Callable[[int], tuple[Route, ...]]:
        routes = buy_routes if asked.side == "buy" else sell_routes
        return lambda size: routes(self._desk.network, self._desk.graph, asked.token, size, self._wallet)

    def _board(self, rows: Rows, fill: FillCredited, earlier: Sequence[Weighed], quoted_pin: Pin) -> FurtherBoardTaken:
        variant, delayed = rows.variant, self._ledger == DELAYED
        quote = quote_of(fill, variant.size_raw) if delayed else None
        return FurtherBoardTaken(
            run_id=self._run_id, ts_ms=self._desk.clock.now_ms(), order_id=fill.order_id, ledgers=(self._ledger,), side=variant.asked.side,
            token=variant.asked.token, size_raw=TokenRaw(variant.size_raw), size_units_raw=TokenRaw(variant.size_units_raw), shares=False,
            pin=self._pin, gas_price_wei=self._pin.base_fee_wei,
            delay_ms=(self._pin.block_ts_s - quoted_pin.block_ts_s) * 1_000 if delayed else 0,
            quote_raw=None if quote is None else TokenRaw(quote),
            least_raw=None if quote is None else TokenRaw(least_of(self._desk.rules, quote)),
            earlier=tuple(trade.order_id for trade, _ in earlier), earlier_weights_ppm=tuple(weight for _, weight in earlier),
            rows=tuple(rows.rows),
        )  # fmt: skip

    def _remembered(self, rows: Rows, outcome: Sequence[Event]) -> list[Event]:
        """How fills of the own-impact ledger can be run again."""
        return [
            RouteRemembered(
                run_id=fill.run_id, ts_ms=fill.ts_ms, order_id=fill.order_id, ledgers=fill.ledgers, route=fill.route,
                ways=tuple(_way(part) for part in rows.route_named(fill.route).ways),
            )
            for fill in outcome if isinstance(fill, FillCredited) and self._ledger == IMPACT
        ]  # fmt: skip


def pools_of(route: Route) -> frozenset[str]:
    """The pools that a route crosses; none are known of a rival's."""
    return frozenset(hop.pool.key for hop in route.hops)


def _named(row: Row, way: Route) -> Row:
    """A row under its own source: a rival's route has no pools, and its label begins with its name."""
    return row if way.hops else replace(row, source=row.route.partition(" > ")[0])


def remembered(graph: PoolGraph, trade: Trade) -> Route:
    """A trade's route by the pools it crossed, without transactions: those follow from who sends it and how much of it."""
    parts = tuple(Part(int(way.amount_raw), _path(graph, trade, way)) for way in trade.ways)
    hops = tuple(hop for part in parts for hop in part.path)
    return Route(trade.route, trade.side, trade.token, trade.amount_raw, hops, (), Tx("", "", 0), None, lambda _: None, parts if len(parts) > 1 else ())


def _path(graph: PoolGraph, trade: Trade, way: WayTaken) -> tuple[Hop, ...]:
    """Hops from the traded token's end of a way."""
    near, hops = trade.token, []
    for key in way.pools if trade.side == "sell" else reversed(way.pools):
        pool = graph.pools[key]
        far = pool.other(near)
        hops.append(Hop(pool, near, far) if trade.side == "sell" else Hop(pool, far, near))
        near = far
    return tuple(hops if trade.side == "sell" else reversed(hops))


def _way(part: Part) -> WayTaken:
    return WayTaken(amount_raw=TokenRaw(part.amount), pools=tuple(hop.pool.key for hop in part.path))


def stand_in_of(trade: Trade) -> str:
    """The address that runs an earlier trade again: one for each, so that no limit on holdings or pace binds that did not then."""
    return derived(f"stand-in of {trade.order_id}")
