"""The board: every order quoted and proven for its exact size, and the desk that takes it.

A quote and its proof are one request: one `eth_simulateV1` per candidate route, all pinned to one block, each after the
filled orders of the same decision. One round trip for a sell; two for a buy, whose second is the honeypot gate. Where rivals
answer, their transactions take one more; a sale that reverts is looked at a second time.
Source: 001 §2.2; design §6; ONC-05 to ONC-11, ONC-24.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chain.balance_slot import BalanceSlot, SlotBook
from chain.evm import LocalEvm
from chain.header import Header, header_of, header_request, sealed_header_of
from chain.network import Network
from chain.pools import PoolGraph
from chain.router import sell_routes
from chain.rpc import RpcDoor
from chain.simulate import GAS_POOL, Simulated, Simulation, SimulationRefused, SlotWrite, answered
from chain.trade import INCONSISTENT, PROVEN, UNREPEATABLE, Echo, Purse, evidence
from chain.words import CHANCE, SHARED_STATE, Place, Reading, Word, look, readings
from chain.words import own as own_reading
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import Wei
from referee.onchain.amounts import Amounts
from referee.onchain.book import Book
from referee.onchain.decision_desk import DecisionDesk, header_of_pin
from referee.onchain.events import LEDGERS, PERMISSIVE, HoldingMark, Pin
from referee.onchain.liquidity_desk import LiquidityDesk
from referee.onchain.marks import Quotes, Sale, SellOut, Valued, Wrapping, better_routes, in_order_of_value, sale_of, valued
from referee.onchain.rival_desk import RivalDesk
from referee.onchain.rival_rows import Rivals
from referee.onchain.rows import dumped
from referee.onchain.rules import Rules

SELL_OUT_ROUNDS_MAX = 8
HOLDINGS_PER_REQUEST_MAX = 500
GAS_PER_HOLDING = 400_000
"""What selling one holding and quoting its routes takes of a node's gas cap, chosen above what they were measured to use."""
SPOILED = frozenset({INCONSISTENT, GAS_POOL, "absurd_amount"})
"""Faults of a sell-out that one token can bring about for all others of its request."""
BLOCK_TIME_GRAIN_MS = 1_000
"""A block's time is whole seconds, so that much of its age may be rounding."""


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
    evm: LocalEvm = field(init=False)
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
    compared: Callable[[], bool] = lambda: False
    """Whether the order at hand is compared with what another lane says."""
    decimals: dict[str, int | None] = field(default_factory=dict)
    _head: int = -1
    _pinning: asyncio.Future[Pin] | None = None

    def __post_init__(self) -> None:
        self.slots = SlotBook(self.rpc, self.network.reader)
        self.evm = LocalEvm(self.rpc, self.network.chain_id)
        self.liquidity = LiquidityDesk(self.rpc, self.network, self.rules, self.clock, self.slots, self.evm)

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
        """Choose the newest block that can be pinned reliably (ONC-07, ONC-10); whoever asks while one is being chosen gets that one.

        Raises: ChainFault when every lane is dead, lying or behind."""
        if self._pinning is None or self._pinning.done():
            self._pinning = asyncio.ensure_future(self._pin())
        return await asyncio.shield(self._pinning)

    async def _pin(self) -> Pin:
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
            answers = await self.rpc.batch([header_request(wanted)])
            header = read(answers[0], wanted)
        self._check_lag(header, depth)
        for answer in answers:
            self.evm.see(answer)
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
            groups.setdefault((book.eth_wei, book.holdings, book.approvals, book.positions, book.words, book.told), []).append(book)
        try:
            return tuple([valued for group in groups.values() for valued in await self._sell_out(run_id, wallet, group, pin, echo)])
        except ChainFault as fault:
            if fault.reason != UNREPEATABLE:
                self.rpc.distrust()
            raise

    async def _sell_out(self, run_id: str, wallet: str, group: Sequence[Book], pin: Pin, echo: Echo | None) -> list[Valued]:
        book, header, ledgers = group[0], header_of_pin(pin), tuple(book.ledger for book in group)
        last_wei = self.last_wei.get((run_id, book.ledger), {})
        out = await self.liquidity.exits(run_id, wallet, ledgers, book, header)
        purse, whole, back = await self.purse_of(wallet, book, out.whole, header, echo)
        found, looked = await self.sales(purse, whole, header, book.words)
        sales = in_order_of_value(found, last_wei)
        others = [with_more(reading, back) for reading in readings(book.words, looked, header.ts_s)[1:]]
        kept = out.evidence(await self._sell_rounds((purse, *(replace(purse, writes=writes) for writes in others)), whole, sales, header))
        done = [
            valued(book, part, sales, pin.base_fee_wei, sha256_hex(kept), kept, out, claims)
            for part, claims in self._alike(ledgers, sales)
        ]  # fmt: skip
        for value in done:
            for ledger in value.ledgers:
                self.remember(run_id, ledger, value.holdings)
        return done

    def _alike(self, ledgers: tuple[str, ...], sales: Sequence[Sale]) -> list[tuple[tuple[str, ...], bool]]:
        """Ledgers for which the same counts, and whether claims do: where the rules say so, on permissive only (ONC-11)."""
        if not self.rules.lane_claims_only or all(sale.provable and not sale.objection for sale in sales):
            return [(ledgers, not self.rules.lane_claims_only)]
        parts = [(tuple(ledger for ledger in ledgers if (ledger == PERMISSIVE) is claims), claims) for claims in (False, True)]
        return [(part, claims) for part, claims in parts if part]

    async def purse_of(self, wallet: str, book: Book, whole: Book, header: Header, echo: Echo | None = None) -> tuple[Purse, Book, Back]:
        """The wallet with every word that it carries, and what its positions would bring back of tokens whose balances are known.

        Shapes: beside it the book with all that is then told, and what comes back. Raises: ChainFault."""
        back = tuple([
            (slot, int(holding.units_raw) - (int(own.units_raw) if (own := book.held(holding.token)) else 0))
            for holding in whole.holdings if holding != book.held(holding.token)
            and (slot := await self.slots.of(holding.token, wallet, header)) is not None and not slot.shares
        ])  # fmt: skip
        told = whole.told | {slot.token for slot, _ in back}
        return Purse(wallet, int(whole.eth_wei), with_more(own_reading(book.words), back), echo=echo), replace(whole, told=told), back

    async def sales(self, purse: Purse, book: Book, header: Header, words: Sequence[Word] = ()) -> tuple[list[Sale], dict[Place, int]]:
        """Every holding on its way out, with its candidate routes; and what the chain holds where words are. Raises: ChainFault."""
        tokens = [holding.token for holding in book.holdings]
        asked = self._amounts_asked(purse, tokens, header)
        looking = look(self.evm, words, header)
        answers, looked = await asyncio.gather(self.rpc.batch([part.simulation.request() for part in asked]), looking) if asked else ([], await looking)
        told = {token: raw for part, answer in zip(asked, answers, strict=False) for token, raw in part.heard(answer).items()}
        sales = []
        for holding in book.holdings:
            cause, said = book.unproven(holding.token), told[holding.token]
            amount_raw = int(holding.units_raw) if cause or said is None else said
            routes = sell_routes(self.network, self.graph, holding.token, amount_raw, purse.wallet) if amount_raw else ()
            sales.append(sale_of(holding, amount_raw, cause, routes, self.best_route.get(holding.token)))
        return sales, looked

    def amounts_asked(self, purse: Purse, tokens: Sequence[str], header: Header) -> Amounts:
        """What the wallet holds of some tokens, as a question."""
        return Amounts(self.network, header, purse, tokens)

    def _amounts_asked(self, purse: Purse, tokens: Sequence[str], header: Header) -> list[Amounts]:
        size = self.holdings_per_request_max
        return [self.amounts_asked(purse, tokens[at : at + size], header) for at in range(0, len(tokens), size)]

    async def amount(self, purse: Purse, token: str, header: Header) -> int | None:
        """What the wallet holds of a token; none where that does not tell. Raises: ChainFault."""
        asked = self.amounts_asked(purse, (token,), header)
        (answer,) = await self.rpc.batch([asked.simulation.request()])
        return asked.heard(answer)[token]

    async def _sell_rounds(self, purses: Sequence[Purse], book: Book, sales: Sequence[Sale], header: Header) -> bytes:
        """Sell all of it, one holding after another; where one of them spoils that for the others, each by itself.

        Shapes: the evidence. Raises: ChainFault where it is the node's doing."""
        try:
            return await self._sell(purses, book, sales, header, self.holdings_per_request_max)
        except ChainFault as fault:
            if fault.reason not in SPOILED or not sales:
                raise
        for sale in sales:
            sale.alone()
        kept = await self._sell(purses, book, sales, header, 1)
        if all(sale.spoiled for sale in sales if sale.provable and sale.route) and not await self._tells(purses[0].wallet, header):
            raise ChainFault(INCONSISTENT, "no sale of the book makes sense, nor does wrapping a wei: it is the node's doing")
        return kept

    async def _tells(self, wallet: str, header: Header) -> bool:
        """Whether the node makes sense where no token has a say. Raises: ChainFault."""
        wrapping = Wrapping(self.network, header, wallet)
        (answer,) = await self.rpc.batch([wrapping.simulation.request()])
        return wrapping.told(_trusted(wrapping.simulation, answer))

    async def _sell(self, purses: Sequence[Purse], book: Book, sales: Sequence[Sale], header: Header, size: int) -> bytes:
        """Sell so many in one request, and again where a route died or another promised more; returns the evidence.

        Beside each request the same by every other reading of shared words, `purses` after the first, and by another random word."""
        kept: list[Any] = []
        chunks = [sales[at : at + size] for at in range(0, len(sales), size)]
        quotes = [Quotes(self.network, header, chunk, purses[0].echo) for chunk in chunks]
        for left in reversed(range(SELL_OUT_ROUNDS_MAX if sales else 0)):
            outs = [SellOut(self.network, header, purses[0], chunk, book.approvals) for chunk in chunks]
            others = [
                [SellOut(self.network, header, purse, chunk, book.approvals, number + 1) for chunk in chunks] for number, purse in enumerate(purses)
            ]  # fmt: skip
            simulations = [part.simulation for part in (*outs, *quotes, *(other for each in others for other in each))]
            answers = await self.rpc.batch([simulation.request() for simulation in simulations])
            done = [_trusted_or_spoiled(*each, size) for each in zip(simulations, answers, strict=True)]
            kept = [evidence(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
            for quote, simulated in zip(quotes, done[len(outs) :], strict=False):
                if simulated is not None:
                    quote.read(simulated)
            died = [out.read(simulated) if simulated is not None else out.spoil() for out, simulated in zip(outs, done, strict=False)]
            moved = left > 0 and better_routes(sales)
            again = iter(done[len(outs) + len(quotes) :])
            quotes = []
            if not any(died) and not moved:
                for number, each in enumerate(others):
                    for other in each:
                        other.compare(next(again), SHARED_STATE if number else CHANCE)
                break
        return dumped(kept)


Back = tuple[tuple[BalanceSlot, int], ...]
"""Where tokens keep the wallet's balance, and how many units come there."""


def with_more(reading: Reading, back: Back) -> Reading:
    """A reading with more in some balances."""
    held = {(write.contract, write.slot): write.value for write in reading}
    more = (SlotWrite(slot.contract, slot.slot, held.get((slot.contract, slot.slot), 0) + slot.write(raw).value) for slot, raw in back)
    return (*reading, *more)


def _trusted_or_spoiled(simulation: Simulation, answer: Any, size: int) -> Simulated | None:
    """A checked answer; none where a holding that is sold by itself spoiled it. Raises: ChainFault."""
    try:
        return _trusted(simulation, answer)
    except ChainFault as fault:
        if size > 1 or fault.reason not in SPOILED:
            raise
        return None


def _trusted(simulation: Simulation, answer: Any) -> Simulated:
    try:
        return answered(simulation, answer)
    except SimulationRefused as refused:
        raise ChainFault(refused.word, "the node refused to simulate a sell-out") from None
