"""The board: every order quoted and proven for its exact size, and the desk that takes it.

A quote and its proof are one request: one `eth_simulateV1` per candidate route, all pinned to one block, each after the
filled orders of the same decision. One round trip for a sell; two for a buy, whose second is the honeypot gate.
Source: 001 §2.2; design §6; ONC-05 to ONC-11, ONC-24.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chain.balance_slot import BalanceSlot, SlotBook
from chain.calldata import balance_of, hex_bytes, uint_at
from chain.header import Header, header_of, header_request
from chain.honeypot import ghost_of
from chain.network import Network
from chain.pools import PoolGraph
from chain.router import Route, Tx, buy_routes, sell_routes
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import Simulated, Simulation, SimulationRefused, answered, slot_override
from chain.trade import PROVEN, Held, Purse, evidence, route_txs
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.book import Book, Holding
from referee.onchain.credit import admission, exit_reserve_wei, not_filled, refusal, settle
from referee.onchain.events import LEDGERS, BoardTaken, FillCredited, GateTaken, OrderAsked, OrderRefused, Pin
from referee.onchain.gate import Gate
from referee.onchain.marks import Quotes, Sale, SellOut, Valued, better_routes, in_order_of_value, sale_of, valued
from referee.onchain.rows import Rows, Variant, dumped
from referee.onchain.rules import Rules

SELL_OUT_ROUNDS_MAX = 8
HOLDINGS_PER_REQUEST_MAX = 500
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
    last_wei: dict[tuple[str, str], int] = field(default_factory=dict)
    """Last mark of a run's holding, which orders the next sell-out."""
    best_route: dict[str, str] = field(default_factory=dict)
    """Label of the route that last sold a token best."""
    _head: int = -1

    def __post_init__(self) -> None:
        self.slots = SlotBook(self.rpc)

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
        head = header_of(answers[0])
        self._head = head.block
        wanted = max(head.block - depth, 0)
        header = header_of(answers[1], guess) if wanted == guess else head
        if header.block != wanted:
            header = header_of(await self.rpc.call(*header_request(wanted)), wanted)
        self._check_lag(header, depth)
        return Pin(
            block=header.block, block_hash=header.block_hash, block_ts_s=header.ts_s,
            base_fee_wei=Wei(header.base_fee_wei), head_block=head.block, lane=self.rpc.lane,
        )  # fmt: skip

    def _check_lag(self, header: Header, depth: int) -> None:
        lag_ms = self.chain_now_ms() - header.ts_s * 1_000
        allowed_ms = self.rules.pin_lag_ms_max + depth * self.network.block_time_ms + BLOCK_TIME_GRAIN_MS
        if lag_ms > allowed_ms:
            raise ChainFault("behind", f"block {header.block} of lane {self.rpc.lane} is {lag_ms} ms behind the clock; at most {allowed_ms} ms")

    def decision(self, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, books: Mapping[str, Book]) -> DecisionDesk:
        """Open the orders of one decision on the books as they stand; all orders stand on one block."""
        return DecisionDesk(self, run_id, wallet, tick, pin, arrived_ts_ms, dict(books))

    # --- marks ------------------------------------------------------------------------------------------------------

    async def value(self, run_id: str, wallet: str, books: Sequence[Book], pin: Pin) -> tuple[Valued, ...]:
        """Sell books out in simulation (ONC-12).

        Shapes: one value per group of ledgers that hold the same. Raises: ChainFault when it could not be measured."""
        groups: dict[tuple[Any, ...], list[Book]] = {}
        for book in books:
            groups.setdefault((book.eth_wei, book.holdings, book.approvals), []).append(book)
        return tuple([await self._sell_out(run_id, wallet, group, pin) for group in groups.values()])

    async def _sell_out(self, run_id: str, wallet: str, group: Sequence[Book], pin: Pin) -> Valued:
        book, header = group[0], header_of_pin(pin)
        last_wei = {token: value for (run, token), value in self.last_wei.items() if run == run_id}
        sales = await self._sales(wallet, in_order_of_value(book.holdings, last_wei), header)
        kept = await self._sell_rounds(wallet, book, sales, header)
        done = valued(book, tuple(book.ledger for book in group), sales, pin.base_fee_wei, sha256_hex(kept), kept)
        for mark in done.holdings:
            self.last_wei[run_id, mark.token] = int(mark.value_wei)
            if mark.status == PROVEN:
                self.best_route[mark.token] = mark.route
        return done

    async def _sales(self, wallet: str, holdings: Sequence[Holding], header: Header) -> list[Sale]:
        sales = []
        for holding in holdings:
            slot = await self.slots.of(holding.token, wallet, header)
            amount_raw = await self.amount_of(wallet, holding, slot, header)
            routes = sell_routes(self.network, self.graph, holding.token, amount_raw, wallet)
            sales.append(sale_of(holding, amount_raw, slot, routes, self.best_route.get(holding.token)))
        return sales

    async def amount_of(self, wallet: str, holding: Holding, slot: BalanceSlot | None, header: Header) -> int:
        """Token units of a holding: the book's own count, re-read where the token keeps shares."""
        if not holding.shares or slot is None or not slot.shares:
            return int(holding.units_raw)
        call = {"to": holding.token, "data": balance_of(wallet), "gas": "0x2dc6c0"}
        answer = await self.rpc.call("eth_call", [call, hex(header.block), slot_override([slot.write(int(holding.units_raw))])])
        amount_raw = uint_at(hex_bytes(answer), 0)
        if amount_raw is None:
            raise ChainFault("bad_answer", "expected a balance")
        return amount_raw

    async def _sell_rounds(self, wallet: str, book: Book, sales: Sequence[Sale], header: Header) -> bytes:
        """Sell all of it, and again where a route died or another promised more; returns the evidence."""
        kept: list[Any] = []
        chunks = [sales[at : at + HOLDINGS_PER_REQUEST_MAX] for at in range(0, len(sales), HOLDINGS_PER_REQUEST_MAX)]
        quotes = [Quotes(self.network, header, chunk) for chunk in chunks]
        for _ in range(SELL_OUT_ROUNDS_MAX if sales else 0):
            outs = [SellOut(self.network, header, wallet, book.eth_wei, chunk) for chunk in chunks]
            simulations = [part.simulation for part in (*outs, *quotes)]
            answers = await self.rpc.batch([simulation.request() for simulation in simulations])
            done = [_trusted(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
            kept = [evidence(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
            for quote, simulated in zip(quotes, done[len(outs) :], strict=True):
                quote.read(simulated)
            died = [out.read(simulated, book.approvals) for out, simulated in zip(outs, done, strict=False)]
            moved = bool(quotes) and better_routes(sales)
            quotes = []
            if not any(died) and not moved:
                break
        return dumped(kept)


class DecisionDesk:
    """The orders of one decision, one after another at one block (ONC-24)."""

    def __init__(self, desk: Desk, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, opening: Mapping[str, Book]) -> None:
        self._desk, self._run_id, self._wallet, self._tick, self._pin = desk, run_id, wallet, tick, pin
        self._header, self._arrived_ts_ms, self._opening = header_of_pin(pin), arrived_ts_ms, opening
        self._prefix: dict[str, tuple[Tx, ...]] = {ledger: () for ledger in LEDGERS}

    async def order(self, asked: OrderAsked, books: Mapping[str, Book]) -> Refereed:
        """Referee one order against the running books; faults become events, never guesses."""
        order_id = f"{self._run_id}/{self._tick}/{asked.index}"
        try:
            return await self._order(asked, books, order_id)
        except ChainFault as fault:
            event = not_filled(self._run_id, order_id, tuple(books), "fault", str(fault), self._desk.clock.now_ms())
            return Refereed((event,), {})

    async def _order(self, asked: OrderAsked, books: Mapping[str, Book], order_id: str) -> Refereed:
        refused, variants = await self._admitted(asked, books, order_id)
        boards = [Rows.of(self._desk.network, self._header, variant, self._routes(variant)) for variant in variants]
        await self._fill_rows(boards)
        events: list[Event] = [*refused]
        blobs: dict[str, bytes] = {}
        gates = await self._gates(order_id, boards)
        for rows, (gate, kept) in zip(boards, gates, strict=True):
            taken = self._taken(rows, order_id)
            outcome = settle(self._desk.rules, taken, gate, books, self._desk.clock.now_ms())
            events += [taken, *([gate] if gate else []), *outcome]
            blobs |= rows.evidence_of(outcome) | ({gate.digest: kept} if gate else {})
            self._carry(rows, outcome)
        return Refereed(tuple(events), blobs)

    # --- who may order, and who shares a simulation -----------------------------------------------------------------

    async def _admitted(self, asked: OrderAsked, books: Mapping[str, Book], order_id: str) -> tuple[list[OrderRefused], list[Variant]]:
        refused: list[OrderRefused] = []
        shared: dict[tuple[Any, ...], Variant] = {}
        for ledger, book in books.items():
            variant = await self._variant(asked, book)
            held_raw = TokenRaw(variant.held.amount_raw)
            word, detail = admission(self._desk.rules, asked, book, held_raw, self._pin.base_fee_wei)
            if word:
                refused.append(refusal(self._run_id, order_id, (ledger,), word, detail, self._desk.clock.now_ms()))
                continue
            paid = frozenset(key for key in book.approvals if key.startswith(asked.token))
            key = (variant.size_raw, variant.held, variant.purse.writes, variant.purse.prefix, paid, variant.cause)
            known = shared.get(key)
            shared[key] = replace(known, ledgers=(*known.ledgers, ledger)) if known else variant
        return refused, list(shared.values())

    async def _variant(self, asked: OrderAsked, book: Book) -> Variant:
        slot = await self._slot(asked.token, book)
        holding = book.held(asked.token)
        held_raw = await self._desk.amount_of(self._wallet, holding, slot, self._header) if holding else 0
        if asked.spend_wei is not None:
            size_raw = int(asked.spend_wei)
        else:
            size_raw = int(asked.amount_raw) if asked.amount_raw is not None else held_raw
        purse = Purse(self._wallet, int(book.eth_wei), await self._writes(book.ledger), self._prefix[book.ledger])
        cause = "" if asked.side == "buy" else (holding.cause if holding else "") or ("" if slot else "slot")
        held = Held(held_raw, int(holding.units_raw) if holding else 0, slot)
        return Variant((book.ledger,), book, asked, size_raw, purse, held, cause)

    async def _slot(self, token: str, book: Book) -> BalanceSlot | None:
        """Where the token keeps our balance; None too when the book counts it otherwise than the slot now does."""
        if not self._desk.graph.pools_of(token):
            return None
        slot = await self._desk.slots.of(token, self._wallet, self._header)
        holding = book.held(token)
        return slot if slot is None or holding is None or holding.shares == slot.shares else None

    async def _writes(self, ledger: str) -> tuple[Any, ...]:
        """The whole book as it stood before this decision, as balance slots."""
        writes = []
        for holding in self._opening[ledger].holdings:
            slot = await self._desk.slots.of(holding.token, self._wallet, self._header)
            if slot is not None and slot.shares == holding.shares:
                writes.append(slot.write(int(holding.units_raw)))
        return tuple(writes)

    # --- the board --------------------------------------------------------------------------------------------------

    def _routes(self, variant: Variant, wallet: str | None = None) -> tuple[Route, ...]:
        routes = buy_routes if variant.asked.side == "buy" else sell_routes
        return routes(self._desk.network, self._desk.graph, variant.asked.token, variant.size_raw, wallet or self._wallet)

    async def _fill_rows(self, boards: Sequence[Rows]) -> None:
        requests = [question.simulation.request() for rows in boards for question in rows.questions]
        answers = iter(await self._desk.rpc.batch(requests) if requests else [])
        for rows in boards:
            rows.read([next(answers) for _ in rows.questions], self._pin.base_fee_wei)
        await self._quote_without_simulation(boards)

    async def _quote_without_simulation(self, boards: Sequence[Rows]) -> None:
        """A node that cannot simulate at all still quotes: an exit is then filled at the quote and tagged `lane`."""
        todo = [(rows, at, route) for rows in boards for at, route in rows.without_simulation()]
        calls = [("eth_call", [{"to": route.quoter.to, "data": route.quoter.data}, hex(self._pin.block)]) for _, _, route in todo if route.quoter]
        answers = await self._desk.rpc.batch(calls) if calls else []
        for (rows, at, route), answer in zip(todo, answers, strict=True):
            quoted = None if isinstance(answer, RpcRefused) else route.quoted(hex_bytes(answer))
            rows.quoted(at, quoted, self._pin.base_fee_wei)

    def _taken(self, rows: Rows, order_id: str) -> BoardTaken:
        variant, desk = rows.variant, self._desk
        buy = variant.asked.side == "buy"
        reserve = exit_reserve_wei(desk.rules, variant.book, variant.asked.token, self._pin.base_fee_wei) if buy else Wei(0)
        return rows.board(self._run_id, order_id, self._pin, reserve, self._arrived_ts_ms, desk.clock.now_ms(), desk.age_ms(self._pin))

    # --- the gate ---------------------------------------------------------------------------------------------------

    async def _gates(self, order_id: str, boards: Sequence[Rows]) -> list[tuple[GateTaken | None, bytes]]:
        """Gate every buy that has a proven row, all in one round trip."""
        gates = [self._gate(rows, order_id) for rows in boards]
        requests = [simulation.request() for gate in gates if gate for simulation in gate.simulations]
        answers = iter(await self._desk.rpc.batch(requests) if requests else [])
        return [self._judged(gate, order_id, answers) if gate else (None, b"") for gate in gates]

    def _gate(self, rows: Rows, order_id: str) -> Gate | None:
        variant = rows.variant
        best = rows.best_proven(self._taken(rows, order_id)) if variant.asked.side == "buy" else None
        if best is None:
            return None
        route, row = best
        ghost_buy = next(ghost for ghost in self._routes(variant, ghost_of(self._wallet)) if ghost.label == route.label)
        sales = sell_routes(self._desk.network, self._desk.graph, variant.asked.token, int(row.arrival_raw or 0), self._wallet)
        return Gate(self._desk.network, self._header, variant, route, ghost_buy, row, sales)

    def _judged(self, gate: Gate, order_id: str, answers: Any) -> tuple[GateTaken | None, bytes]:
        own = [next(answers) for _ in gate.simulations]
        return gate.taken(self._run_id, order_id, own, self._desk.rules.gate_loss_bps_max, self._desk.clock.now_ms())

    # --- the next order ---------------------------------------------------------------------------------------------

    def _carry(self, rows: Rows, outcome: Sequence[Event]) -> None:
        """Remember what was filled, so that the decision's next order runs after it."""
        for event in outcome:
            if isinstance(event, FillCredited) and not event.tag.startswith("EXIT_UNPROVEN"):
                for ledger in event.ledgers:
                    self._prefix[ledger] += tuple(route_txs(rows.route_named(event.route)))


def header_of_pin(pin: Pin) -> Header:
    """The pinned block as the chain's own modules know it."""
    return Header(block=pin.block, block_hash=pin.block_hash, ts_s=pin.block_ts_s, base_fee_wei=int(pin.base_fee_wei))


def _trusted(simulation: Simulation, answer: Any) -> Simulated:
    try:
        return answered(simulation, answer)
    except SimulationRefused as refused:
        raise ChainFault(refused.word, "the node refused to simulate a sell-out") from None
