"""The desk of one decision: its orders quoted, proven and gated one after another at one block (ONC-24).

The way of an order: who may carry it · the board, rivals beside our own router · the gate of a buy · what the rules make of it.
Source: 001 §2.2; design §6; ONC-05 to ONC-11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chain.calldata import hex_bytes
from chain.header import Header
from chain.router import Route, Tx, buy_routes, sell_routes
from chain.rpc import RpcRefused
from chain.second_look import smaller_sales
from chain.simulate import Simulation, SimulationRefused, answered
from chain.trade import PROVEN, REVERTED, Echo, Held, Purse
from chain.words import Place, begun, look, own, readings
from chain.written import Market
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from referee.onchain.amounts import AmountByCall
from referee.onchain.book import EXIT_UNPROVEN, UNTOLD, Book
from referee.onchain.credit import carried, exit_reserve_wei, not_filled, refusal, settle
from referee.onchain.decision import CLOSE_LP, OPEN_LP
from referee.onchain.events import HEADLINE, BoardTaken, FillCredited, GateTaken, LanesCompared, OrderAsked, Pin, Row
from referee.onchain.gate import Gate
from referee.onchain.liquidity_desk import Sitting
from referee.onchain.rows import METHOD_MISSING, Rows, part_sale
from referee.onchain.second_opinion import LANES_DIFFER, SECOND_OPINION_MS, compare
from referee.onchain.telling import Telling
from referee.onchain.variant import Variant

if TYPE_CHECKING:
    from referee.onchain.board import Desk

FALLBACK = "fallback"
"""Board policy: rivals are asked only where our own router has no proven row."""


@dataclass(frozen=True, slots=True)
class Refereed:
    """What became of one order."""

    events: tuple[Event, ...]
    blobs: dict[str, bytes]
    """Evidence by SHA-256."""


class DecisionDesk:
    """The orders of one decision, one after another at one block (ONC-24)."""

    def __init__(
        self, desk: Desk, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, opening: Mapping[str, Book], rivals: bool = True
    ) -> None:
        self._rivals = desk.rival_desk(pin) if rivals else None
        self._desk, self._run_id, self._wallet, self._tick, self._pin = desk, run_id, wallet, tick, pin
        self._header, self._arrived_ts_ms, self._opening = header_of_pin(pin), arrived_ts_ms, dict(opening)
        self._prefix: dict[str, tuple[Tx, ...]] = {ledger: () for ledger in opening}
        self._claims: dict[tuple[str, str], tuple[int, str]] = {}
        """Token units sold on a claim and its cause, by ledger and token."""
        self._amounts: dict[tuple[Purse, str], int | None] = {}
        """What tokens said that a wallet holds, by what it stood on, which ledgers may have in common."""
        self._telling_tokens: set[tuple[str, str]] = set()
        """Ledgers and tokens that were asked what is held, which counts for the whole decision, claims or not."""
        self._echo: Echo | None = None
        self._telling = Telling(desk.evm, desk.rpc, Market(desk.network, desk.graph))
        self.filled: dict[str, Route] = {}
        """Routes that headline filled at, by order id."""

    async def order(self, asked: OrderAsked, books: Mapping[str, Book]) -> Refereed:
        """Referee one order against the running books; faults become events, never guesses."""
        order_id = f"{self._run_id}/{self._tick}/{asked.index}"
        try:
            return await self._order(asked, books, order_id)
        except ChainFault as fault:
            self._desk.rpc.distrust()
            event = not_filled(self._run_id, order_id, tuple(books), "fault", str(fault), self._desk.clock.now_ms())
            return Refereed((event,), {})

    async def _order(self, asked: OrderAsked, books: Mapping[str, Book], order_id: str) -> Refereed:
        if asked.side in (OPEN_LP, CLOSE_LP):
            at = Sitting(self._run_id, self._wallet, order_id, self._pin, self._header, self._opening, self._prefix, self._desk.graph, self._desk.age_ms)
            done = await self._desk.liquidity.order(at, asked, books)
            self._opening, self._prefix = self._opening | done.opening, self._prefix | done.prefix
            return Refereed(tuple(done.events), done.blobs)
        refused, variants = await self._admitted(asked, books, order_id)
        boards = [Rows.of(self._desk.network, self._header, variant, self._routes(variant.asked)) for variant in variants]
        looking = self._looking()
        await self._take_rows(boards)
        events: list[Event] = [*refused]
        blobs: dict[str, bytes] = {}
        if self._desk.compared():
            events += await self._second_opinion(boards, order_id)
            if differing := [event for event in events if isinstance(event, LanesCompared) and event.differs]:
                detail = f"{LANES_DIFFER}: {differing[0].lane} and {differing[0].other} say otherwise of one block, {differing[0].differs}"
                ledgers = tuple(ledger for rows in boards for ledger in rows.variant.ledgers)
                return Refereed((*events, not_filled(self._run_id, order_id, ledgers, "fault", detail, self._desk.clock.now_ms())), blobs)
        await self._tell(boards, order_id, looking)
        gates = await self._gates(order_id, boards)
        for rows, gated in zip(boards, gates, strict=True):
            taken = self._taken(rows, order_id)
            outcome = settle(self._desk.rules, taken, [gate for gate, _ in gated], books, self._desk.clock.now_ms())
            events += [taken, *(gate for gate, _ in gated), *outcome]
            blobs |= rows.evidence_of(outcome) | {gate.digest: kept for gate, kept in gated}
            self._carry(rows, outcome)
        return Refereed(tuple(events), blobs)

    # --- who may order, and who shares a simulation -----------------------------------------------------------------

    async def _admitted(self, asked: OrderAsked, books: Mapping[str, Book], order_id: str) -> tuple[list[Event], list[Variant]]:
        stopped: list[Event] = []
        shared: dict[tuple[Any, ...], Variant] = {}
        for ledger, book in books.items():
            variant = await self._variant(asked, book)
            if objection := self._objection(asked, book, variant, order_id):
                stopped.append(objection)
            else:
                reserve_wei = exit_reserve_wei(self._desk.rules, book, asked.token, self._pin.base_fee_wei)
                paid = frozenset(key for key in book.approvals if key.startswith(asked.token))
                key = (variant.shared, reserve_wei, paid)
                known = shared.get(key)
                shared[key] = replace(known, ledgers=(*known.ledgers, ledger)) if known else variant
        return stopped, list(shared.values())

    def _objection(self, asked: OrderAsked, book: Book, variant: Variant, order_id: str) -> Event | None:
        """Why a ledger cannot carry the order, as its outcome."""
        about, now_ms = (self._run_id, order_id, (book.ledger,)), self._desk.clock.now_ms()
        word, detail = carried(self._desk.rules, asked, book, TokenRaw(variant.held.amount_raw), self._pin.base_fee_wei)
        return refusal(*about, word, detail, now_ms) if word else None

    async def _variant(self, asked: OrderAsked, book: Book) -> Variant:
        """What a ledger would trade."""
        holding, sell = book.held(asked.token), asked.side == "sell"
        purse = self._purse(book.ledger)
        claimed_raw, claimed_cause = self._claims.get((book.ledger, asked.token), (0, ""))
        held_raw = await self._held_raw(purse, book, asked.token, claimed_raw) if sell and holding else int(holding.units_raw) if holding else 0
        return Variant(
            (book.ledger,), book, asked,
            size_raw=_size_raw(asked, held_raw),
            purse=purse,
            held=Held(held_raw, int(holding.units_raw) if holding else 0),
            cause=book.unproven(asked.token) or claimed_cause if sell else "",
            claimed_raw=claimed_raw if sell else 0,
        )  # fmt: skip

    def _purse(self, ledger: str) -> Purse:
        """The wallet as it stood before this decision, as if nobody else had written its words, and what ran since."""
        opening = self._opening[ledger]
        return Purse(self._wallet, int(opening.eth_wei), own(opening.words), self._prefix[ledger], self._echo)

    def _looking(self) -> asyncio.Future[dict[Place, int]]:
        """Look at what the chain holds where the wallet wrote before; what was written since stands on the same block.

        That it fails is told to whoever waits for it, and only then."""
        looking = asyncio.ensure_future(look(self._desk.evm, (word for book in self._opening.values() for word in book.words), self._header))
        looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        return looking

    async def _held_raw(self, purse: Purse, book: Book, token: str, claimed_raw: int) -> int:
        """Token units that a holding comes to now, as the token itself says, less what was sold on claims, of which it knows nothing.

        The book's own count where the token does not say, and where its words are untold."""
        holding = book.held(token)
        assert holding is not None
        if book.unproven(token) and (book.ledger, token) not in self._telling_tokens:
            return int(holding.units_raw)
        self._telling_tokens.add((book.ledger, token))
        if (purse, token) not in self._amounts:
            self._amounts[purse, token] = await self._told_raw(purse, token)
        told = self._amounts[purse, token]
        return int(holding.units_raw) if told is None else max(told - claimed_raw, 0)

    async def _told_raw(self, purse: Purse, token: str) -> int | None:
        """What a token says that the wallet holds; by a plain call where the node cannot simulate and nothing was filled before."""
        asked = self._desk.amounts_asked(purse, (token,), self._header)
        (answer,) = await self._desk.rpc.batch([asked.simulation.request()])
        try:
            return asked.heard(answer)[token]
        except ChainFault as fault:
            if fault.reason != METHOD_MISSING or purse.prefix:
                raise
        plain = AmountByCall(self._desk.network, self._header, purse, token)
        (answer,) = await self._desk.rpc.batch([plain.request])
        return plain.heard(answer)

    # --- what rows wrote --------------------------------------------------------------------------------------------

    async def _tell(self, boards: Sequence[Rows], order_id: str, looking: asyncio.Future[dict[Place, int]]) -> None:
        """Hold every row that may be filled to what running it here says, until nothing that may be filled is left unheld."""
        telling = self._telling
        for rows in boards:
            if not rows.ran:
                continue
            opening, looked = self._opening[rows.variant.ledgers[0]].words, await looking
            telling.begun, telling.readings = begun(rows.variant.book.words, looked), readings(opening, looked, self._header.ts_s)
            eth_wei, seen = int(rows.variant.book.eth_wei), set[tuple[str, str]]()
            while todo := [row for row in self._to_tell(rows, order_id) if (row.source, row.route) not in seen]:
                seen.add((todo[0].source, todo[0].route))
                await telling.tell(rows, todo[0], eth_wei)

    def _to_tell(self, rows: Rows, order_id: str) -> list[Row]:
        if rows.variant.cause:
            return []
        shared = len(self._telling.readings) > 1
        reverted = [row for row in rows.rows if row.status == REVERTED] if shared and not rows.proven else []
        return rows.fillable(self._taken(rows, order_id)) or reverted

    # --- the board --------------------------------------------------------------------------------------------------

    def _routes(self, asked: OrderAsked) -> Callable[[int], tuple[Route, ...]]:
        routes = buy_routes if asked.side == "buy" else sell_routes
        return lambda size_raw: routes(self._desk.network, self._desk.graph, asked.token, size_raw, self._wallet)

    async def _take_rows(self, boards: Sequence[Rows]) -> None:
        """Fill the rows of our own router, and those of rivals: beside them, or only where we have no proven one (ONC-05)."""
        if self._rivals is None or not boards:
            await self._fill_rows(boards)
        elif self._desk.rules.board_policy == FALLBACK:
            await self._fill_rows(boards)
            needy = [rows for rows in boards if not rows.proven and not rows.variant.cause]
            if needy:
                await self._rivals.prove(needy, await self._rivals.ask(needy))
        else:
            asking = asyncio.ensure_future(self._rivals.ask(boards))
            try:
                await self._fill_rows(boards)
                await self._rivals.prove(boards, await asking)
            finally:
                asking.cancel()
        await self._size_up(boards)

    async def _size_up(self, boards: Sequence[Rows]) -> None:
        """Find out of sales that revert whether less would go through; nothing told changes nothing."""
        tries = [
            (rows, route, part_sale(self._desk.network, self._header, rows.variant, part))
            for rows in boards if (route := rows.all_reverted()) for part in smaller_sales(self._desk.network, route, self._wallet)
        ]  # fmt: skip
        with suppress(ChainFault, SimulationRefused):
            for (rows, route, trade), answer in zip(tries, await self._asked(trade.simulation for _, _, trade in tries), strict=True):
                if trade.outcome(answered(trade.simulation, answer)).status == PROVEN:
                    rows.limited(route)

    async def _asked(self, simulations: Iterable[Simulation]) -> list[Any]:
        """The node's answers in one round trip; no trip at all for nothing."""
        return await self._desk.rpc.batch([simulation.request() for simulation in simulations])

    async def _fill_rows(self, boards: Sequence[Rows]) -> None:
        requests = [question.simulation.request() for rows in boards for question in rows.questions]
        for rows in boards:
            if rows.questions and not rows.variant.cause:
                self._telling.begin(rows.questions[0].simulation)  # what promises most is mostly what fills
        try:
            answers = iter(await self._desk.rpc.batch(requests) if requests else [])
        finally:
            await self._telling.settle()
        for rows in boards:
            rows.read([next(answers) for _ in rows.questions], self._pin.base_fee_wei)
        again = [(rows, *each) for rows in boards if not rows.proven for each in rows.approving_again()]
        answers = iter(await self._asked(question.simulation for _, _, question in again) if again else [])
        for rows, place, question in again:
            rows.read_again(place, question, next(answers), self._pin.base_fee_wei)
        await self._quote_without_simulation(boards)

    async def _quote_without_simulation(self, boards: Sequence[Rows]) -> None:
        """A node that cannot simulate at all still quotes: an exit is then filled at the quote and tagged `lane`."""
        todo = [(rows, at, claim) for rows in boards for at, claim in rows.without_simulation()]
        calls = [("eth_call", [{"to": tx.to, "data": tx.data}, hex(self._pin.block)]) for _, _, claim in todo for tx in claim.quoters]
        answers = iter(await self._desk.rpc.batch(calls) if calls else [])
        for rows, at, claim in todo:
            told = [next(answers) for _ in claim.quoters]
            rows.claimed(at, [None if isinstance(answer, RpcRefused) else hex_bytes(answer) for answer in told], self._pin.base_fee_wei)

    async def _second_opinion(self, boards: Sequence[Rows], order_id: str) -> list[Event]:
        """Compare what the best row of each board did with what another lane says of it; a lane that is contradicted is barred."""
        compared: list[Event] = []
        for rows in boards:
            asked, lane = rows.best_asked(self._taken(rows, order_id)), self._desk.rpc.lane
            again = await self._desk.rpc.elsewhere([asked[0].request()], lane, SECOND_OPINION_MS) if asked else None
            told = compare(asked[0], lane, asked[1], again[0], again[1][0]) if asked and again else None
            if told is None:
                continue
            compared.append(LanesCompared(
                run_id=self._run_id, ts_ms=self._desk.clock.now_ms(), order_id=order_id, block_hash=self._pin.block_hash, lane=told.lane,
                other=told.other, differs=told.differs,
            ))  # fmt: skip
            if told.differs:
                self._desk.rpc.bar(told.lane)
        return compared

    def _taken(self, rows: Rows, order_id: str) -> BoardTaken:
        variant, desk = rows.variant, self._desk
        buy = variant.asked.side == "buy"
        reserve = exit_reserve_wei(desk.rules, variant.book, variant.asked.token, self._pin.base_fee_wei) if buy else Wei(0)
        return rows.board(self._run_id, order_id, self._pin, reserve, self._arrived_ts_ms, desk.clock.now_ms(), desk.age_ms(self._pin))

    # --- the gate ---------------------------------------------------------------------------------------------------

    async def _gates(self, order_id: str, boards: Sequence[Rows]) -> list[list[tuple[GateTaken, bytes]]]:
        """Gate every buy that has a proven row, all in one round trip; what cannot be sold again is looked at once more.

        Shapes: for each board its gates, the best row's first."""
        gates = [self._gates_of(rows, order_id) for rows in boards]
        try:
            answers = iter(await self._asked(simulation for several in gates for gate in several for simulation in gate.simulations))
        except ChainFault:
            if not any(gate.foreign for several in gates for gate in several):
                raise
            gates = [[gate for gate in several if not gate.foreign] for several in gates]  # no rival may make the order fail
            answers = iter(await self._asked(simulation for several in gates for gate in several for simulation in gate.simulations))
        every = [gate for several in gates for gate in several]
        again = [gate.hear([next(answers) for _ in gate.simulations], self._desk.rules) for gate in every]
        with suppress(ChainFault):
            answers = iter(await self._asked(simulation for simulations in again for simulation in simulations))
            for gate, simulations in zip(every, again, strict=True):
                if simulations:
                    gate.hear_again([next(answers) for _ in simulations])
        return [self._judged(several, order_id, rows.variant.asked.token) for several, rows in zip(gates, boards, strict=True)]

    def _gates_of(self, rows: Rows, order_id: str) -> list[Gate]:
        return [self._gate(rows, route, row) for route, row in rows.gated(self._taken(rows, order_id))] if rows.variant.asked.side == "buy" else []

    def _gate(self, rows: Rows, route: Route, row: Row) -> Gate:
        network, variant = self._desk.network, rows.variant
        sales = sell_routes(network, self._desk.graph, variant.asked.token, int(row.arrival_raw or 0), self._wallet)
        untold = self._telling.reason(rows, row) or (UNTOLD if variant.asked.token in variant.book.lost else "")
        return Gate(network, self._header, variant, route, row, sales, untold)

    def _judged(self, gates: Sequence[Gate], order_id: str, token: str) -> list[tuple[GateTaken, bytes]]:
        """Write gates down, with what outside sources said."""
        said, now_ms = self._desk.said_against(self._tick, token), self._desk.clock.now_ms()
        return [gate.taken(self._run_id, order_id, now_ms, said) for gate in gates]

    # --- the next order ---------------------------------------------------------------------------------------------

    def _carry(self, rows: Rows, outcome: Sequence[Event]) -> None:
        """Remember what was filled, so that the decision's next order runs after it."""
        for fill in (event for event in outcome if isinstance(event, FillCredited)):
            if HEADLINE in fill.ledgers:
                self.filled[fill.order_id] = rows.route_named(fill.route)
            for ledger in fill.ledgers:
                if fill.tag.startswith(EXIT_UNPROVEN):
                    self._claim(ledger, rows.variant, fill)
                else:
                    self._prefix[ledger] += self._sent(rows, fill)

    def _sent(self, rows: Rows, fill: FillCredited) -> tuple[Tx, ...]:
        """What a filled order sent: the approvals that it paid for, and its swap."""
        route = rows.route_named(fill.route)
        return (*(approval.tx for approval in route.approvals if approval.key in fill.approvals), route.swap)

    def _claim(self, ledger: str, variant: Variant, fill: FillCredited) -> None:
        """Remember a sale that no simulation can run again: its tokens are gone from the start, its price is taken off later claims."""
        claimed_raw, _ = self._claims.get((ledger, fill.token), (0, ""))
        self._claims[ledger, fill.token] = claimed_raw + int(fill.spent_raw), fill.tag.partition(":")[2]
        book = self._opening[ledger]
        left = (holding.less(variant.size_units_raw) if holding.token == fill.token else holding for holding in book.holdings)
        self._opening[ledger] = replace(book, holdings=tuple(holding for holding in left if holding.units_raw > TokenRaw(0)))


def header_of_pin(pin: Pin) -> Header:
    """The pinned block as the chain's own modules know it."""
    return Header(block=pin.block, block_hash=pin.block_hash, ts_s=pin.block_ts_s, base_fee_wei=int(pin.base_fee_wei))


def _size_raw(asked: OrderAsked, held_raw: int) -> int:
    if asked.spend_wei is not None:
        return int(asked.spend_wei)
    return int(asked.amount_raw) if asked.amount_raw is not None else held_raw
