"""The tools of a live turn: what `referee/onchain/tool_answers.py` says, fetched from the desk and the market.

A turn's tools look at the market exactly as its bundle did. Quotes and round trips are the desk's own boards, on a book
that can carry the order, at the same block as long as a board of that block could still fill and the node still keeps it,
else at a newer one. Nothing of them is recorded as an order: a quote never fills (ONC-07).
A plan turn has neither book nor bundle: its tools look for themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from chain.market import at_newest
from chain.words import merged
from harnesses.question import Question
from harnesses.tools import ToolAnswer, ToolSpec
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from ops.lent import NO_SLOT, lent
from ops.live_market import LiveMarket, Look
from referee.onchain import tool_answers, toolbox
from referee.onchain.board import Desk, header_of_pin
from referee.onchain.book import Book, Holding
from referee.onchain.credit import ROUTER, carried, exit_reserve_wei
from referee.onchain.events import HEADLINE, BoardTaken, GateTaken, OrderAsked, OrderNotFilled, OrderRefused, Pin
from referee.onchain.round_trip import RoundTrip
from referee.onchain.rules import Rules
from referee.onchain.state import RunState, WindowState
from referee.onchain.toolbox import Asked, QuoteAsked, ToolRefused

QUOTED_AT_ONCE = 4
"""Quotes under way at the same time in all turns, so that they never crowd out orders and marks."""
PLAN_LOOK_MS_MAX = 5_000
"""How old a look may be that the tools of a plan turn share."""
WATCHED_AT_ONCE = 4
"""Tokens that are tried of our own accord after a look, while models play."""
NO_TICK = -1
"""The tick of what is tried of our own accord."""
TRIP_WEI = Wei(10**15)
"""What the round trip of the `token` tool spends."""
NOBODY = "0x" + sha256_hex(b"who quotes for nobody in particular")[24:]
"""The address that round trips and plan turns are simulated for; nobody holds a key to it."""


@dataclass(slots=True, kw_only=True)
class LiveTools:
    """What all turns of a window share."""

    market: LiveMarket
    desk: Desk
    rules: Rules
    state: WindowState
    quoting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUOTED_AT_ONCE))
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    trips: dict[tuple[str, str], asyncio.Future[RoundTrip]] = field(default_factory=dict)
    """Round trips by block hash and token, of the latest block that any were tried at."""
    _fresh: tuple[int, Look] | None = None
    _watching: asyncio.Future[None] | None = None

    def turn(self, question: Question, *, names: Sequence[str], quotes_max: int, plan: str | None) -> TurnTools:
        """Lay out the tools of one turn. Raises: ValueError for a tool that does not exist."""
        look = self.market.looks.get(question.tick) if question.book else None
        if look is not None and (self._watching is None or self._watching.done()):
            self._watching = asyncio.ensure_future(self._watch(look))
        return TurnTools(self, question, toolbox.specs_of(names), quotes_max, plan, look)

    async def fresh_look(self) -> Look:
        """Look at the market now, or share a look that is hardly older. Raises: ChainFault."""
        async with self.looking:
            now_ms = self.desk.clock.monotonic_ms()
            if self._fresh is None or now_ms - self._fresh[0] > PLAN_LOOK_MS_MAX:
                _, look = await at_newest(self.desk.pin, self.market.look)
                self._fresh = now_ms, look
            return self._fresh[1]

    async def board(self, asked: OrderAsked, book: Book, wallet: str, pin: Pin, tick: int | None = None) -> tuple[Event, ...]:
        """Referee an order that is none, at a block or a newer one; as an order of a tick's would be, else by our own router alone.

        Raises: ChainFault."""
        async with self.quoting:
            if self.desk.age_ms(pin) <= self.rules.board_age_ms_max and not _gone(events := await self._boarded(asked, book, wallet, pin, tick)):
                return events
            return await self._boarded(asked, book, wallet, await self.desk.pin(), tick)

    async def _boarded(self, asked: OrderAsked, book: Book, wallet: str, pin: Pin, tick: int | None) -> tuple[Event, ...]:
        books = {book.ledger: await self._carrying(asked, book, wallet, pin)}
        place = NO_TICK if tick is None else tick
        desk = self.desk.decision("quote", wallet, place, pin, self.desk.clock.now_ms(), books, rivals=tick is not None)
        return (await desk.order(asked, books)).events

    async def _carrying(self, asked: OrderAsked, book: Book, wallet: str, pin: Pin) -> Book:
        """The book with as much more as the order needs, so that any size can be quoted. Raises: ChainFault."""
        able = carrying(self.rules, asked, book, pin)
        if able.holdings == book.holdings or asked.amount_raw is None:
            return able
        try:
            word = await lent(self.desk, wallet, asked.token, int(asked.amount_raw), header_of_pin(pin))
        except ChainFault as fault:
            if fault.reason != NO_SLOT:
                raise
            return able  # its sale is quoted as one that nobody can try
        return replace(able, words=merged(able.words, (word,)), told=able.told | {asked.token})

    async def round_trip(self, token: str, look: Look) -> RoundTrip:
        """Buy a little of a token and sell it at once, tried once for each block. Raises: ChainFault."""
        key = (look.pin.block_hash, token)
        if key not in self.trips:
            self.trips = {known: trip for known, trip in self.trips.items() if known[0] == look.pin.block_hash}
            self.trips[key] = asyncio.ensure_future(self._round_trip(token, look))
        try:
            return await asyncio.shield(self.trips[key])
        except ChainFault:
            self.trips.pop(key, None)
            raise

    async def _watch(self, look: Look) -> None:
        """Try some tokens that nobody need ask about, those never tried first; the next bundles tell what was found."""
        known = list(self.market.trips)
        order = {token: place for place, token in enumerate(known, start=1)}
        for token in sorted((token.address for token in look.snapshot.tokens), key=lambda token: order.get(token, 0))[:WATCHED_AT_ONCE]:
            with suppress(ChainFault):
                trip = await self._round_trip(token, look)
                self.market.trips.pop(token, None)
                self.market.trips[token] = trip

    async def settled(self) -> None:
        """Wait until no token is being tried that nobody asked about."""
        if self._watching is not None:
            await self._watching

    async def _round_trip(self, token: str, look: Look) -> RoundTrip:
        asked = order(QuoteAsked(side="buy", token=token, spend_wei=str(TRIP_WEI)))
        events = await self.board(asked, Book(HEADLINE, Wei(0), (), frozenset()), NOBODY, look.pin)
        board = next((event for event in events if isinstance(event, BoardTaken)), None)
        return RoundTrip(TRIP_WEI, board, next((event for event in events if isinstance(event, GateTaken)), None))


class TurnTools:
    """The toolbox of one turn."""

    def __init__(self, shared: LiveTools, question: Question, specs: tuple[ToolSpec, ...], quotes_max: int, plan: str | None, look: Look | None) -> None:
        self.specs = specs
        self.quotes_left = quotes_max
        self._shared, self._question, self._plan, self._look = shared, question, plan, look

    async def use(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Use one tool. Raises: nothing of the outside world; what cannot be done is said."""
        try:
            return await self._used(name, toolbox.read_arguments(name, arguments))
        except ToolRefused as refused:
            return toolbox.refused(refused.reason, refused.detail)
        except ChainFault as fault:
            return toolbox.refused("fault", str(fault))

    async def _used(self, name: str, asked: Asked) -> ToolAnswer:
        match name, asked:
            case "quote", QuoteAsked():
                return await self._quote(asked)
            case "book", _:
                return tool_answers.book_answer(self._book())
            case "history", toolbox.HistoryAsked():
                return tool_answers.history_answer(self._run().history, asked.limit or toolbox.HISTORY_USUAL)
            case "plan", _:
                return tool_answers.plan_answer(self._plan)
        look = self._look or await self._shared.fresh_look()
        snapshot = look.snapshot
        match asked:
            case toolbox.TokenAsked():
                tool_answers.find_token(snapshot, asked.token)
                return tool_answers.token_answer(snapshot, asked, await self._shared.round_trip(asked.token, look), look.outside)
            case toolbox.PoolAsked():
                return tool_answers.pool_answer(snapshot, asked)
            case toolbox.PoolsAsked():
                return tool_answers.pools_answer(snapshot, asked)
            case toolbox.CandlesAsked():
                return tool_answers.candles_answer(snapshot, asked)
            case toolbox.SwapsAsked():
                return tool_answers.swaps_answer(snapshot, asked)
        assert name == "gas", name
        return tool_answers.gas_answer(snapshot, self._shared.rules)

    def _book(self) -> dict[str, Any]:
        if not self._question.book:
            raise ToolRefused("no_book", "a plan is written before there is a book")
        return orjson.loads(self._question.book)

    def _run(self) -> RunState:
        run = self._shared.state.runs.get(self._question.run_id)
        if run is None:
            raise ToolRefused("no_book", "a plan is written before there is a book")
        return run

    async def _quote(self, asked: QuoteAsked) -> ToolAnswer:
        """Quote at the turn's block; a quote that the node could not answer is not counted."""
        if self.quotes_left <= 0:
            raise ToolRefused("allowance_spent", "no quotes are left this turn; decide on what you know")
        shared, run = self._shared, self._shared.state.runs.get(self._question.run_id) if self._question.book else None
        book = shared.state.books.of(self._question.run_id, HEADLINE) if run else Book(HEADLINE, Wei(0), (), frozenset())
        wanted = order(asked)
        self.quotes_left -= 1
        try:
            pin = self._look.pin if self._look else await shared.desk.pin()
            events = await shared.board(wanted, book, run.opened.wallet if run else NOBODY, pin, self._question.tick)
            return tool_answers.quote_answer(asked, events, _own_book_cannot(shared.rules, wanted, book, pin) if run else "", self.quotes_left)
        except (ChainFault, ToolRefused):
            self.quotes_left += 1
            raise


def order(asked: QuoteAsked) -> OrderAsked:
    """The order that is quoted."""
    exact = asked.amount_raw is not None and asked.amount_raw != "all"
    return OrderAsked(
        index=0, side=asked.side, token=asked.token, spend_wei=Wei(int(asked.spend_wei)) if asked.spend_wei else None,
        amount_raw=TokenRaw(int(asked.amount_raw)) if exact and asked.amount_raw else None, sell_all=asked.amount_raw == "all",
    )  # fmt: skip


def carrying(rules: Rules, asked: OrderAsked, book: Book, pin: Pin) -> Book:
    """The book with as much more as the order needs, so that any size can be quoted."""
    if asked.spend_wei is not None:
        needed_wei = asked.spend_wei + exit_reserve_wei(rules, book, asked.token, pin.base_fee_wei)
        return replace(book, eth_wei=max(book.eth_wei, needed_wei))
    held = book.held(asked.token)
    if asked.amount_raw is None or (held is not None and (held.shares or held.units_raw >= asked.amount_raw)):
        return book
    others = tuple(holding for holding in book.holdings if holding.token != asked.token)
    more = Holding(asked.token, asked.amount_raw, False, held.cause if held else "")
    return replace(book, holdings=tuple(sorted((*others, more), key=lambda holding: holding.token)))


def _own_book_cannot(rules: Rules, asked: OrderAsked, book: Book, pin: Pin) -> str:
    """Why the own book could not carry the order, or nothing; shares are taken at their count."""
    held = book.held(asked.token)
    return carried(rules, asked, book, held.units_raw if held else TokenRaw(0), pin.base_fee_wei)[0]


def _gone(events: Sequence[Event]) -> bool:
    """Whether the node could not simulate at all at that block: no row says anything, or it failed before there were any."""
    boards = [event for event in events if isinstance(event, BoardTaken)]
    faulted = any(isinstance(event, OrderNotFilled) and event.reason == "fault" for event in events)
    refused = any(isinstance(event, OrderRefused) and event.reason == "gate_unknown" for event in events)
    rows = [row for board in boards for row in board.rows if row.source == ROUTER]
    silent = all(row.status == "failed" for row in rows)
    return faulted or (silent and bool(rows)) or (refused and not boards)
