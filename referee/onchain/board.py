"""The board: every order quoted and proven for its exact size, and the desk that takes it.

A quote and its proof are one request: one `eth_simulateV1` per candidate route, all pinned to one block, each after the
filled orders of the same decision. One round trip for a sell; two for a buy, whose second is the honeypot gate. Where rivals
answer, their transactions take one more; a sale that reverts is looked at a second time.
Source: 001 §2.2; design §6; ONC-05 to ONC-11, ONC-24.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from chain.balance_slot import BalanceSlot, SlotBook
from chain.calldata import hex_bytes
from chain.header import Header, header_of, header_request, sealed_header_of
from chain.honeypot import ghost_of
from chain.network import Network
from chain.pools import PoolGraph
from chain.router import Route, Tx, buy_routes, route_of, sell_routes
from chain.rpc import RpcDoor, RpcRefused
from chain.second_look import smaller_sales
from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from chain.trade import PROVEN, UNREPEATABLE, Echo, Held, Purse, evidence, route_txs
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.book import EXIT_UNPROVEN, Book, Holding
from referee.onchain.credit import carried, exit_reserve_wei, not_filled, refusal, settle
from referee.onchain.decision import CLOSE_LP, OPEN_LP
from referee.onchain.events import HEADLINE, LEDGERS, BoardTaken, FillCredited, GateTaken, HoldingMark, OrderAsked, Pin, Row
from referee.onchain.gate import Gate
from referee.onchain.liquidity_desk import LiquidityDesk, Sitting
from referee.onchain.marks import Quotes, Sale, SellOut, Valued, better_routes, in_order_of_value, sale_of, valued
from referee.onchain.rival_desk import RivalDesk
from referee.onchain.rival_rows import Rivals, ghost_route
from referee.onchain.rows import Rows, dumped, part_sale
from referee.onchain.rules import Rules
from referee.onchain.shares import Amounts
from referee.onchain.variant import Variant

SELL_OUT_ROUNDS_MAX = 8
HOLDINGS_PER_REQUEST_MAX = 500
FALLBACK = "fallback"
"""Board policy: rivals are asked only where our own router has no proven row."""
GAS_PER_HOLDING = 400_000
"""What selling one holding and quoting its routes takes of a node's gas cap, chosen above what they were measured to use."""
BLOCK_TIME_GRAIN_MS = 1_000
"""A block's time is whole seconds, so that much of its age may be rounding."""


@dataclass(frozen=True, slots=True)
class Refereed:
    """What became of one order."""

    events: tuple[Event, ...]
    blobs: dict[str, bytes]
    """Evidence by SHA-256."""


@dataclass(slots=True)
class Desk:
    """Takes boards and marks on one chain under one set of rules."""

    rpc: RpcDoor
    network: Network
    graph: PoolGraph
    rules: Rules
    clock: Clock
    clock_offset_ms: int
    """Chain time minus wall time."""
    slots: SlotBook = field(init=False)
    liquidity: LiquidityDesk = field(init=False)
    last_wei: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """Last mark of each holding by run and ledger, which orders the next sell-out."""
    best_route: dict[str, str] = field(default_factory=dict)
    """Label of the route that last sold a token best."""
    holdings_per_request_max: int = HOLDINGS_PER_REQUEST_MAX
    headers_sealed: bool = True
    """Whether this chain's headers are held to their own hash."""
    rivals: Rivals | None = None
    """Other aggregators, where any are asked (ONC-05)."""
    said_against: Callable[[int, str], tuple[str, ...]] = lambda tick, token: ()
    """What outside sources had said against a token when a tick was shown, `source:word`."""
    decimals: dict[str, int | None] = field(default_factory=dict)
    _head: int = -1

    def __post_init__(self) -> None:
        self.slots = SlotBook(self.rpc)
        self.liquidity = LiquidityDesk(self.rpc, self.network, self.rules, self.clock, self.slots)

    def fit(self, *, gas_cap: int, headers_sealed: bool) -> None:
        """Fit the desk to what its node was found to be: no sell-out asks for more than its gas cap; 0 is no cap."""
        self.headers_sealed = headers_sealed
        if gas_cap:
            self.holdings_per_request_max = max(1, min(HOLDINGS_PER_REQUEST_MAX, gas_cap // GAS_PER_HOLDING))

    def remember(self, run_id: str, ledger: str, marks: Sequence[HoldingMark]) -> None:
        """Take over what a run's holdings were last worth, and which routes sold them best."""
        self.last_wei[run_id, ledger] = {mark.token: int(mark.value_wei) for mark in marks}
        if ledger in LEDGERS:
            self.best_route |= {mark.token: mark.route for mark in marks if mark.status == PROVEN}

    def chain_now_ms(self) -> int:
        """Chain time by our clock."""
        return self.clock.now_ms() + self.clock_offset_ms

    def age_ms(self, pin: Pin) -> int:
        """Chain time since the pinned block."""
        return max(self.chain_now_ms() - pin.block_ts_s * 1_000, 0)

    # --- the block to stand on --------------------------------------------------------------------------------------

    async def pin(self) -> Pin:
        """Choose the newest block that can be pinned reliably (ONC-07, ONC-10).

        Raises: ChainFault when every lane is dead, lying or behind."""
        fault: ChainFault | None = None
        for _ in self.rpc.lanes:
            try:
                return await self._pin_once()
            except ChainFault as error:
                fault = error
                self.rpc.distrust()
        assert fault is not None
        raise fault

    async def _pin_once(self) -> Pin:
        depth = self.network.pin_depth
        guess = max(self._head - depth, 0)
        answers = await self.rpc.batch([header_request("latest"), header_request(guess)])
        read = sealed_header_of if self.headers_sealed else header_of
        head = read(answers[0])
        self._head = head.block
        wanted = max(head.block - depth, 0)
        header = read(answers[1], guess) if wanted == guess else head
        if header.block != wanted:
            (answer,) = await self.rpc.batch([header_request(wanted)])
            header = read(answer, wanted)
        self._check_lag(header, depth)
        return Pin(
            block=header.block, block_hash=header.block_hash, block_ts_s=header.ts_s,
            base_fee_wei=Wei(header.base_fee_wei), head_block=head.block, lane=self.rpc.lane,
        )  # fmt: skip

    def _check_lag(self, header: Header, depth: int) -> None:
        lag_ms = self.chain_now_ms() - header.ts_s * 1_000
        allowed_ms = self.rules.pin_lag_ms_max + depth * self.network.block_time_ms + BLOCK_TIME_GRAIN_MS
        if lag_ms < -self.rules.pin_lag_ms_max:
            raise ChainFault("ahead", f"block {header.block} of lane {self.rpc.lane} is {-lag_ms} ms ahead of the clock; at most {self.rules.pin_lag_ms_max} ms")
        if lag_ms > allowed_ms:
            raise ChainFault("behind", f"block {header.block} of lane {self.rpc.lane} is {lag_ms} ms behind the clock; at most {allowed_ms} ms")

    def decision(
        self, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, books: Mapping[str, Book], *, rivals: bool = True
    ) -> DecisionDesk:
        """Open the orders of one decision on the books as they stand; all orders stand on one block.

        Without `rivals`, only our own router is asked."""
        return DecisionDesk(self, run_id, wallet, tick, pin, arrived_ts_ms, dict(books), rivals)

    def rival_desk(self, pin: Pin) -> RivalDesk | None:
        """Who asks the rivals of one decision; none where the rules or the settings name none."""
        if self.rivals is None or not self.rivals.names or self.rules.rival_answer_ms_max is None:
            return None
        now_s = self.chain_now_ms() // 1_000
        return RivalDesk(self.rivals, self.rpc, self.network, self.graph, self.rules, self.clock, header_of_pin(pin), now_s, self.decimals)

    # --- marks ------------------------------------------------------------------------------------------------------

    async def value(self, run_id: str, wallet: str, books: Sequence[Book], pin: Pin, echo: Echo | None = None) -> tuple[Valued, ...]:
        """Sell books out in simulation (ONC-12), after earlier trades where there are any (ONC-23).

        Shapes: one value per group of ledgers that hold the same. Raises: ChainFault when it could not be measured."""
        groups: dict[tuple[Any, ...], list[Book]] = {}
        for book in books:
            groups.setdefault((book.eth_wei, book.holdings, book.approvals, book.positions), []).append(book)
        try:
            return tuple([await self._sell_out(run_id, wallet, group, pin, echo) for group in groups.values()])
        except ChainFault as fault:
            if fault.reason != UNREPEATABLE:
                self.rpc.distrust()
            raise

    async def _sell_out(self, run_id: str, wallet: str, group: Sequence[Book], pin: Pin, echo: Echo | None) -> Valued:
        book, header, ledgers = group[0], header_of_pin(pin), tuple(book.ledger for book in group)
        last_wei = self.last_wei.get((run_id, book.ledger), {})
        out = await self.liquidity.exits(run_id, wallet, ledgers, book, header)
        sales = in_order_of_value(await self._sales(wallet, out.whole, header, echo), last_wei)
        kept = out.evidence(await self._sell_rounds(wallet, out.whole, sales, header, echo))
        done = valued(book, ledgers, sales, pin.base_fee_wei, sha256_hex(kept), kept, out)
        for sale in sales:
            if sale.misplaced:
                self.slots.forget(sale.holding.token)
        for ledger in done.ledgers:
            self.remember(run_id, ledger, done.holdings)
        return done

    async def _sales(self, wallet: str, book: Book, header: Header, echo: Echo | None) -> list[Sale]:
        slots = {holding: await self.slots.of(holding.token, wallet, header) for holding in book.holdings}
        writes = tuple(slot.write(int(holding.units_raw)) for holding, slot in slots.items() if slot and slot.shares == holding.shares)
        amounts = await self.amounts(Purse(wallet, int(book.eth_wei), writes, echo=echo), slots, header)
        sales = []
        for holding, slot in slots.items():
            amount_raw = amounts.get(holding.token)
            routes = sell_routes(self.network, self.graph, holding.token, amount_raw, wallet) if amount_raw is not None else ()
            sales.append(sale_of(holding, amount_raw, slot, routes, self.best_route.get(holding.token)))
        return sales

    async def amounts(self, purse: Purse, held: Mapping[Holding, BalanceSlot | None], header: Header) -> dict[str, int]:
        """Token units of some holdings: the book's own count, re-read where the token keeps shares.

        Shapes: by token; left out what the token does not tell. Raises: ChainFault."""
        if not any(holding.shares for holding in held):
            return {holding.token: int(holding.units_raw) for holding in held}
        asked = Amounts(self.network, header, purse, held)
        if asked.empty:
            return asked.read(None)
        (answer,) = await self.rpc.batch([asked.simulation.request()])
        return asked.read(_trusted(asked.simulation, answer))

    async def _sell_rounds(self, wallet: str, book: Book, sales: Sequence[Sale], header: Header, echo: Echo | None) -> bytes:
        """Sell all of it, and again where a route died or another promised more; returns the evidence."""
        kept: list[Any] = []
        size = self.holdings_per_request_max
        chunks = [sales[at : at + size] for at in range(0, len(sales), size)]
        quotes = [Quotes(self.network, header, chunk, echo) for chunk in chunks]
        for left in reversed(range(SELL_OUT_ROUNDS_MAX if sales else 0)):
            outs = [SellOut(self.network, header, wallet, book.eth_wei, chunk, book.approvals, echo) for chunk in chunks]
            simulations = [part.simulation for part in (*outs, *quotes)]
            answers = await self.rpc.batch([simulation.request() for simulation in simulations])
            done = [_trusted(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
            kept = [evidence(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
            for quote, simulated in zip(quotes, done[len(outs) :], strict=True):
                quote.read(simulated)
            died = [out.read(simulated) for out, simulated in zip(outs, done, strict=False)]
            moved = left > 0 and better_routes(sales)
            quotes = []
            if not any(died) and not moved:
                break
        return dumped(kept)


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
        self._echo: Echo | None = None
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
        await self._take_rows(boards)
        events: list[Event] = [*refused]
        blobs: dict[str, bytes] = {}
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
            elif variant:
                reserve_wei = exit_reserve_wei(self._desk.rules, book, asked.token, self._pin.base_fee_wei)
                paid = frozenset(key for key in book.approvals if key.startswith(asked.token))
                key = (variant.shared, reserve_wei, paid)
                known = shared.get(key)
                shared[key] = replace(known, ledgers=(*known.ledgers, ledger)) if known else variant
        return stopped, list(shared.values())

    def _objection(self, asked: OrderAsked, book: Book, variant: Variant | None, order_id: str) -> Event | None:
        """Why a ledger cannot carry the order, as its outcome."""
        about, now_ms = (self._run_id, order_id, (book.ledger,)), self._desk.clock.now_ms()
        if variant is None:
            untold = "the token does not tell what the shares in the book come to"
            return refusal(*about, "gate_unknown", untold, now_ms) if asked.side == "buy" else not_filled(*about, "unprovable_no_quote", untold, now_ms)
        word, detail = carried(self._desk.rules, asked, book, TokenRaw(variant.held.amount_raw), self._pin.base_fee_wei)
        return refusal(*about, word, detail, now_ms) if word else None

    async def _variant(self, asked: OrderAsked, book: Book) -> Variant | None:
        """What a ledger would trade; None when it holds shares that say nothing."""
        slot = await self._slot(asked.token, book)
        holding = book.held(asked.token)
        purse = Purse(self._wallet, int(self._opening[book.ledger].eth_wei), await self._writes(book.ledger, slot), self._prefix[book.ledger], self._echo)
        held_raw = (await self._desk.amounts(purse, {holding: slot}, self._header)).get(asked.token) if holding else 0
        if held_raw is None:
            return None
        claimed_raw, claimed_cause = self._claims.get((book.ledger, asked.token), (0, ""))
        sell = asked.side == "sell"
        return Variant(
            (book.ledger,), book, asked,
            size_raw=_size_raw(asked, held_raw),
            purse=purse,
            held=Held(held_raw, int(holding.units_raw) if holding else 0, slot),
            cause=(holding.cause if holding else "") or ("" if slot else "slot") or claimed_cause if sell else "",
            claimed_raw=claimed_raw if sell else 0,
        )  # fmt: skip

    async def _slot(self, token: str, book: Book) -> BalanceSlot | None:
        """Where the token keeps our balance; None too when the book counts it otherwise than the slot now does."""
        if not self._desk.graph.pools_of(token):
            return None
        slot = await self._desk.slots.of(token, self._wallet, self._header)
        holding = book.held(token)
        return slot if slot is None or holding is None or holding.shares == slot.shares else None

    async def _writes(self, ledger: str, traded: BalanceSlot | None) -> tuple[Any, ...]:
        """The whole book as it stood before this decision, as balance slots; of what is traded nothing when nothing was held, whatever a stranger sent."""
        opening, writes = self._opening[ledger], []
        if traded is not None and opening.held(traded.token) is None:
            writes.append(traded.write(0))
        for holding in opening.holdings:
            slot = await self._desk.slots.of(holding.token, self._wallet, self._header)
            if slot is not None and slot.shares == holding.shares:
                writes.append(slot.write(int(holding.units_raw)))
        return tuple(writes)

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
        answers = iter(await self._desk.rpc.batch(requests) if requests else [])
        for rows in boards:
            rows.read([next(answers) for _ in rows.questions], self._pin.base_fee_wei)
            if rows.misplaced:
                self._desk.slots.forget(rows.variant.asked.token)
        await self._quote_without_simulation(boards)

    async def _quote_without_simulation(self, boards: Sequence[Rows]) -> None:
        """A node that cannot simulate at all still quotes: an exit is then filled at the quote and tagged `lane`."""
        todo = [(rows, at, claim) for rows in boards for at, claim in rows.without_simulation()]
        calls = [("eth_call", [{"to": tx.to, "data": tx.data}, hex(self._pin.block)]) for _, _, claim in todo for tx in claim.quoters]
        answers = iter(await self._desk.rpc.batch(calls) if calls else [])
        for rows, at, claim in todo:
            told = [next(answers) for _ in claim.quoters]
            rows.claimed(at, [None if isinstance(answer, RpcRefused) else hex_bytes(answer) for answer in told], self._pin.base_fee_wei)

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
        return [self._gate(rows.variant, route, row) for route, row in rows.gated(self._taken(rows, order_id))] if rows.variant.asked.side == "buy" else []

    def _gate(self, variant: Variant, route: Route, row: Row) -> Gate:
        network, ghost = self._desk.network, ghost_of(self._wallet)
        ghost_buy = route_of(network, route, ghost) if route.hops else ghost_route(route, self._wallet, ghost)
        sales = sell_routes(network, self._desk.graph, variant.asked.token, int(row.arrival_raw or 0), self._wallet)
        return Gate(network, self._header, variant, route, ghost_buy, row, sales)

    def _judged(self, gates: Sequence[Gate], order_id: str, token: str) -> list[tuple[GateTaken, bytes]]:
        """Write gates down; our own first, since it says what a rival's cannot."""
        said, now_ms = self._desk.said_against(self._tick, token), self._desk.clock.now_ms()
        own: GateTaken | None = None
        taken = []
        for gate in sorted(gates, key=lambda gate: gate.foreign):
            event, kept = gate.taken(self._run_id, order_id, now_ms, own, said)
            own = own if gate.foreign else event
            taken.append((event, kept))
        return taken[::-1]

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
                    self._prefix[ledger] += tuple(route_txs(rows.route_named(fill.route), self._prefix[ledger]))

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


def _trusted(simulation: Simulation, answer: Any) -> Simulated:
    try:
        return answered(simulation, answer)
    except SimulationRefused as refused:
        raise ChainFault(refused.word, "the node refused to simulate a sell-out") from None


def _size_raw(asked: OrderAsked, held_raw: int) -> int:
    if asked.spend_wei is not None:
        return int(asked.spend_wei)
    return int(asked.amount_raw) if asked.amount_raw is not None else held_raw
