"""A market on paper: one token at a set price, one block a second, no node. Everything behind a run's doors, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harnesses.provider import Answer, Provider
from harnesses.question import Question
from harnesses.stack import NO_PROMPT_SHA256, Stack
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault, FeedFault
from ledgers.identity import sha256_hex
from ledgers.journal import Journal, MemoryJournal
from ledgers.money import MicroUsd, TokenRaw, Wei
from ledgers.postings import BOOK, ETH
from referee.onchain.book import Book, entry_of
from referee.onchain.credit import carried, not_filled, refusal, settle
from referee.onchain.doors import NetworkSeen
from referee.onchain.events import DELAYED, BoardTaken, FillCredited, GateTaken, HoldingMark, OrderAsked, Pin, Row
from referee.onchain.further import NOT_HELD, least_of, quote_of, settle_further, size_raw, skip
from referee.onchain.further_events import FurtherBoardTaken
from referee.onchain.live import LiveWindow, Seat
from referee.onchain.marks import Valued
from referee.onchain.rules import DEFAULT
from referee.onchain.state import WindowState, decoded, folded
from referee.onchain.window import StackPlan, Window

T0 = 1_790_000_000_000
TOKEN = "0x" + "11" * 20
ETH_USD = MicroUsd(2_500_000_000)
STAKE = Wei(40_000_000_000_000_000)
"""US$100 at US$2,500 per ETH."""
GAS = Wei(1_000_000_000_000)
BASE_FEE = Wei(10_000_000)
HOLD = '{"schema":"decision/1","orders":[]}'


def ordering(*orders: str) -> str:
    """A decision of these orders."""
    return f'{{"schema":"decision/1","orders":[{",".join(orders)}]}}'


def a_buy(spend_wei: int) -> str:
    return f'{{"type":"buy","token":"{TOKEN}","spend_wei":"{spend_wei}"}}'


def buying(spend_wei: int) -> str:
    """A decision that buys."""
    return ordering(a_buy(spend_wei))


def selling() -> str:
    """A decision that sells all of the holding."""
    return ordering(f'{{"type":"sell","token":"{TOKEN}","amount_raw":"all"}}')


@dataclass(frozen=True)
class PaperPrice:
    micro_usd: MicroUsd = ETH_USD
    feed_micro_usd: MicroUsd = ETH_USD
    pools: tuple[str, ...] = ("pool",)


@dataclass
class PaperChain:
    """A chain of one block a second whose blocks can be lost, and that can be away."""

    clock: VirtualClock
    down: bool = False
    fork: str = ""
    """Marks block hashes, so that a changed one is another chain from `forked_at` on."""
    forked_at: int = 10**9
    block0_hash: str = "0x" + "00" * 32
    chain_id: int = 4663
    wei_per_token: int = 10**15
    """Price of one whole token of 18 decimals."""
    feed_gap: bool = False
    used: set[str] = field(default_factory=set)
    order_ms: int = 0
    """How long the referee takes over an order."""
    follow_ms: int = 0
    """And how long a further ledger does."""
    values_down: set[str] = field(default_factory=set)
    """Runs that cannot be valued."""
    look_ms: int = 0
    unprovable: bool = False
    pinned: int = 0
    clock_offset_ms: int = 0
    lane: str = "paper"

    @property
    def block(self) -> int:
        return (self.clock.now_ms() - T0) // 1_000 + 1_000

    def hash_of(self, block: int) -> str:
        return "0x" + sha256_hex(f"{block}{self.fork if block >= self.forked_at else ''}".encode())

    # --- the desk

    async def pin(self) -> Pin:
        if self.down:
            raise ChainFault("dead", "lane paper is away")
        self.pinned += 1
        return Pin(
            block=self.block, block_hash=self.hash_of(self.block), block_ts_s=self.clock.now_ms() // 1_000,
            base_fee_wei=BASE_FEE, head_block=self.block, lane=self.lane,
        )  # fmt: skip

    def decision(self, run_id: str, wallet: str, tick: int, pin: Pin, arrived_ts_ms: int, books: Mapping[str, Book]) -> PaperDecision:
        return PaperDecision(self, run_id, tick, pin, arrived_ts_ms)

    async def value(self, run_id: str, wallet: str, books: Sequence[Book], pin: Pin) -> tuple[Valued, ...]:
        if self.down or run_id in self.values_down:
            raise ChainFault("slow", "no value")
        groups: dict[tuple, list[Book]] = {}
        for book in books:
            groups.setdefault((book.eth_wei, book.holdings), []).append(book)
        return tuple(self._valued(group) for group in groups.values())

    def follower(self) -> PaperFurther:
        """The desk of the further ledgers."""
        return PaperFurther(self)

    def _valued(self, group: Sequence[Book]) -> Valued:
        book, evidence = group[0], f"{group[0].holdings}".encode()
        marks, moves = [], {(BOOK, ETH): 0, ("market", ETH): 0, ("gas", ETH): 0}
        for holding in book.holdings:
            gross = int(holding.units_raw) * self.wei_per_token // 10**18
            value = max(gross - int(GAS), 0)
            status = "below_gas" if not value else "unprovable" if holding.cause else "proven"
            marks.append(
                HoldingMark(token=holding.token, amount_raw=holding.units_raw, status=status, reason=holding.cause, route="paper",
                            gross_wei=Wei(gross), gas_wei=GAS, value_wei=Wei(value))
            )  # fmt: skip
            if value:
                moves[BOOK, ETH] += gross - int(GAS)
                moves["market", ETH] -= gross
                moves["gas", ETH] += int(GAS)
                moves[BOOK, holding.token], moves["market", holding.token] = -int(holding.units_raw), int(holding.units_raw)
        ledgers = tuple(each.ledger for each in group)
        value_wei = sum((mark.value_wei for mark in marks), book.eth_wei)
        unproven = sum((mark.value_wei for mark in marks if mark.status == "unprovable"), Wei(0))
        return Valued(ledgers, book.eth_wei, tuple(marks), value_wei, unproven, entry_of(ledgers, moves), sha256_hex(evidence), evidence)

    # --- the market

    async def network(self) -> NetworkSeen:
        if self.down:
            raise ChainFault("dead", "lane paper is away")
        return NetworkSeen(name="devnet", label="devnet", chain_id=self.chain_id, block0_hash=self.block0_hash, client="paper/1", clock_offset_ms=0)

    async def eth_usd(self, pin: Pin) -> PaperPrice:
        if self.feed_gap:
            raise FeedFault("pools and feed differ by more than 100 bps")
        return PaperPrice()

    async def follow(self, pin: Pin) -> None:
        """Paper has no pools."""

    async def pools_crossed(self, fill, route, block: int) -> tuple:
        return ()

    async def used_addresses(self, addresses: Sequence[str], pin: Pin) -> set[str]:
        return self.used & set(addresses)

    async def hashes(self, blocks: Sequence[int]) -> dict[int, str]:
        return {block: self.hash_of(block) for block in blocks}

    async def bundle(self, opened, tick: int, pin: Pin) -> bytes:
        if self.look_ms:
            await self.clock.sleep_until(self.clock.now_ms() + self.look_ms)
        return f'{{"block":{pin.block},"tick":{tick}}}'.encode()


@dataclass
class PaperDecision:
    """Fills every order at the set price, by the product's own rules of credit."""

    chain: PaperChain
    run_id: str
    tick: int
    pin: Pin
    arrived_ts_ms: int
    filled: dict = field(default_factory=dict)

    async def order(self, asked: OrderAsked, books: Mapping[str, Book]):
        if self.chain.order_ms:
            await self.chain.clock.sleep_until(self.chain.clock.now_ms() + self.chain.order_ms)
        order_id, now_ms = f"{self.run_id}/{self.tick}/{asked.index}", self.chain.clock.now_ms()
        if self.chain.down:
            return PaperRefereed((not_filled(self.run_id, order_id, tuple(books), "fault", "dead", now_ms),))
        events = []
        for ledger, book in books.items():
            held = book.held(asked.token)
            held_raw = held.units_raw if held else TokenRaw(0)
            word, detail = carried(DEFAULT, asked, book, held_raw, BASE_FEE)
            if word:
                events.append(refusal(self.run_id, order_id, (ledger,), word, detail, now_ms))
                continue
            board = self._board(asked, order_id, book, held_raw, now_ms)
            gate = self._gate(board) if asked.side == "buy" else None
            events += [board, *([gate] if gate else []), *settle(DEFAULT, board, [gate] if gate else [], books, now_ms)]
        return PaperRefereed(tuple(events))

    def _board(self, asked: OrderAsked, order_id: str, book: Book, held_raw: TokenRaw, now_ms: int) -> BoardTaken:
        buy = asked.side == "buy"
        size = int(asked.spend_wei) if buy else int(asked.amount_raw or held_raw)
        arrival = size * 10**18 // self.chain.wei_per_token if buy else size * self.chain.wei_per_token // 10**18
        cause = "" if buy or not (held := book.held(asked.token)) else held.cause
        row = a_row(arrival, cause)
        return BoardTaken(
            run_id=self.run_id, ts_ms=now_ms, order_id=order_id, ledgers=(book.ledger,), side=asked.side, token=asked.token,
            size_raw=TokenRaw(size), size_units_raw=TokenRaw(size), shares=False, pin=self.pin, gas_price_wei=BASE_FEE,
            arrived_ts_ms=self.arrived_ts_ms, age_ms=0, exit_reserve_wei=Wei(0), rows=(row,),
        )  # fmt: skip

    def _gate(self, board: BoardTaken) -> GateTaken:
        provable = not self.chain.unprovable
        return GateTaken(
            run_id=self.run_id, ts_ms=board.ts_ms, order_id=board.order_id, ledgers=board.ledgers, route="paper", verdict="CLEAR",
            cause="", exit_provable=provable, exit_cause="" if provable else "slot", buy_arrival_raw=board.rows[0].arrival_raw or TokenRaw(0),
            loss_bps=0, sell_route="paper", own_wei=Wei(1), ghost_wei=Wei(1), digest="",
        )  # fmt: skip


def a_row(arrival: int, cause: str = "") -> Row:
    """The one row there is."""
    return Row(
        source="router", route="paper", status="unprovable" if cause else "proven", reason=cause, quoted_raw=TokenRaw(arrival),
        arrival_raw=None if cause else TokenRaw(arrival), units_raw=None, logged_raw=None, swap_gas=100_000, approve_gas=0,
        gas_wei=GAS, approvals=(), flags=(), digest="",
    )  # fmt: skip


@dataclass
class PaperFurther:
    """The further ledgers on paper, where no trade moves a price."""

    chain: PaperChain

    def decision(self, ledger: str, run_id: str, wallet: str, tick: int, pin: Pin, book: Book, trades: Sequence = ()) -> PaperFollowing:
        return PaperFollowing(self.chain, ledger, run_id, pin)

    async def value(self, run_id: str, wallet: str, book: Book, pin: Pin, trades: Sequence = ()) -> tuple[Valued, ...]:
        if book.ledger in self.chain.values_down:
            raise ChainFault("slow", "no value")
        return await self.chain.value(run_id, wallet, (book,), pin)


@dataclass
class PaperFollowing:
    """Fills what headline filled at the price of the moment, by the product's own rules."""

    chain: PaperChain
    ledger: str
    run_id: str
    pin: Pin

    async def follow(self, asked: OrderAsked, fill: FillCredited, route: object, quoted_pin: Pin, book: Book):
        if self.chain.follow_ms:
            await self.chain.clock.sleep_until(self.chain.clock.now_ms() + self.chain.follow_ms)
        about, now_ms = (self.run_id, fill.order_id, (self.ledger,)), self.chain.clock.now_ms()
        held = book.held(asked.token)
        if self.chain.down:
            return PaperRefereed((not_filled(*about, "fault", "dead", now_ms),))
        if asked.side == "sell" and held is None:
            return PaperRefereed((skip(*about, NOT_HELD, "", now_ms),))
        size = size_raw(asked, int(held.units_raw) if held else 0)
        arrival = size * 10**18 // self.chain.wei_per_token if asked.side == "buy" else size * self.chain.wei_per_token // 10**18
        quote = quote_of(fill, size) if self.ledger == DELAYED else None
        board = FurtherBoardTaken(
            run_id=self.run_id, ts_ms=now_ms, order_id=fill.order_id, ledgers=(self.ledger,), side=asked.side, token=asked.token,
            size_raw=TokenRaw(size), size_units_raw=TokenRaw(size), shares=False, pin=self.pin, gas_price_wei=BASE_FEE,
            delay_ms=(self.pin.block_ts_s - quoted_pin.block_ts_s) * 1_000, quote_raw=None if quote is None else TokenRaw(quote),
            least_raw=None if quote is None else TokenRaw(least_of(DEFAULT, quote)), earlier=(), earlier_weights_ppm=(), rows=(a_row(arrival),),
        )  # fmt: skip
        return PaperRefereed((board, *settle_further(DEFAULT, board, book, now_ms)))


@dataclass(frozen=True)
class PaperRefereed:
    events: tuple
    blobs: Mapping[str, bytes] = field(default_factory=dict)


class Said:
    """A provider that says what it is given for a tick, after a delay, and remembers what it was asked."""

    def __init__(self, clock: VirtualClock, answers: Mapping[int, str] | None = None, delay_ms: int | Mapping[int, int] = 0) -> None:
        self.clock, self.answers, self.delay_ms = clock, answers or {}, delay_ms
        self.asked: list[Question] = []

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        delay_ms = self.delay_ms if isinstance(self.delay_ms, int) else self.delay_ms.get(question.tick, 0)
        if delay_ms:
            await self.clock.sleep_until(self.clock.now_ms() + delay_ms)
        return Answer(self.answers.get(question.tick, HOLD))


@dataclass
class ClockAlarm:
    """Wakes by the clock alone."""

    clock: VirtualClock

    async def until(self, ts_ms: int) -> None:
        await self.clock.sleep_until(ts_ms)


def a_stack(name: str) -> Stack:
    """A stack without a model."""
    return Stack(
        name=name, provider=f"said/{name}@1", model="none", harness_sha256=sha256_hex(b"h"), prompt_sha256=NO_PROMPT_SHA256,
        tools_sha256=sha256_hex(b"[]"), params=(),
    )  # fmt: skip


def a_window(names: Sequence[str] = ("a",), length_s: int = 60, interval_s: int = 10, seed: int = 7) -> Window:
    """A window of one copy of each named stack."""
    return Window(
        name="paper", network="devnet", length_ms=length_s * 1_000, interval_ms=interval_s * 1_000, board="always", rules="onc/default",
        seed=seed, tokens=None,
        stacks=tuple(StackPlan(name=name, baseline="hold", script=None, copies=1, params=()) for name in names),
    )  # fmt: skip


def live_on(
    chain: PaperChain, providers: Mapping[str, Provider], window: Window | None = None, journal: Journal | None = None, code: str = "c" * 64
) -> LiveWindow:
    """A window on paper, fresh or as its journal left it."""
    window = window or a_window(tuple(providers))
    journal = journal or MemoryJournal("w1")
    seats = {
        plan.run_id: Seat(
            run_id=plan.run_id, copy=plan.copy, stack=a_stack(plan.stack.name), provider=providers[plan.stack.name], prompt="",
            seed=1, turn_ms_max=300_000,
        )
        for plan in window.runs(journal.window_id)
    }  # fmt: skip
    return LiveWindow(
        window=window, rules=DEFAULT, seats=seats, journal=journal, clock=chain.clock, alarm=ClockAlarm(chain.clock), desk=chain,
        further=chain.follower(), market=chain, code_sha256=code, state=folded(journal.read()),
    )  # fmt: skip


def events_of(journal: Journal, *kinds: type) -> list:
    """The journal's events, of these kinds if any are named."""
    events = [decoded(record) for record in journal.read()]
    return [event for event in events if not kinds or isinstance(event, kinds)]


async def to_the_end(chain: PaperChain, playing: asyncio.Task, limit_ms: int = 8 * 86_400_000) -> bool:
    """Advance the clock from one sleeper to the next until the window has ended."""
    end_ms = chain.clock.now_ms() + limit_ms
    await chain.clock.advance_to(chain.clock.now_ms())
    while not playing.done():
        due_ms = chain.clock.next_due_ms
        assert due_ms is not None and due_ms <= end_ms, f"the window is stuck at {chain.clock.now_ms() - T0} ms"
        await chain.clock.advance_to(due_ms)
    return await playing


def again(live: LiveWindow) -> WindowState:
    """The state as a fresh fold of the journal."""
    return folded(live.journal.read())
