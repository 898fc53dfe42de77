"""The liquidity desk: positions opened, followed and closed on one chain (ONC-21).

Opening runs after the filled orders of its decision; what it put in leaves the wallet before the next one by plain transfers, so
that liquidity on paper never serves its own run. Closing stands on the pinned block alone: a price that only the run's own orders
moved pays nobody. What real swaps left a position is followed in the pool's own logs up to the same block; where that cannot be
told, nothing is closed and nothing is marked.
Source: 001 §2.2, §5.10; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chain.balance_slot import BalanceSlot, SlotBook
from chain.evm import LocalEvm
from chain.gas import fee_wei
from chain.header import Header
from chain.liquidity import carriers
from chain.liquidity.amounts import amounts_of, liquidity_for
from chain.liquidity.record import path_bytes
from chain.network import Network
from chain.pools import NATIVE, Pool, PoolGraph
from chain.position_proofs import COLLECT_GAS, Closing, ClosingProof, Opening, OpeningProof, PoolNow, PoolReading, Stopped
from chain.positions import Placed, approvals_of, away_txs, is_eth
from chain.router import Tx
from chain.rpc import RpcDoor
from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from chain.tokens import read_facts
from chain.trade import Purse, evidence
from chain.words import Reading, Word, begun, look, merged, own
from chain.written import Asked, Market, Told, Untold, alike, told
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from ledgers.postings import ETH
from referee.onchain.book import Book, Holding, words_kept
from referee.onchain.credit import not_filled
from referee.onchain.decision import OPEN_LP
from referee.onchain.events import OrderAsked, Pin
from referee.onchain.liquidity import (
    NO_OBJECTION, Objection, Range, asset_of_side, closing_entry, eth_objection, lp_refusal, opening_entry, pool_objection, range_objection,
    own_liquidity, range_of, share_objection, share_ppm, sides_objection,
)  # fmt: skip
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened
from referee.onchain.position import Accrued, Position, pool_of
from referee.onchain.position_marks import Exit, WayOut, with_exits
from referee.onchain.positions_followed import Follower
from referee.onchain.rows import dumped
from referee.onchain.rules import Rules

UNREADABLE, REVERTED = "unreadable", "reverted"
UNTOLD_DECIMALS: Objection = ("lp_range", "a token of the pool does not tell its decimals: give the range in ticks")


@dataclass(frozen=True, slots=True)
class Sitting:
    """One liquidity order and where it stands in its decision."""

    run_id: str
    wallet: str
    order_id: str
    pin: Pin
    header: Header
    opening: Mapping[str, Book]
    """The books that the decision began with, by ledger."""
    prefix: Mapping[str, tuple[Tx, ...]]
    """What the decision filled so far, by ledger."""
    graph: PoolGraph
    age_ms: Callable[[Pin], int]


@dataclass(slots=True)
class Done:
    """What became of one order, and what the decision's later orders stand on."""

    events: list[Event] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    opening: dict[str, Book] = field(default_factory=dict)
    prefix: dict[str, tuple[Tx, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class LiquidityDesk:
    """Referees liquidity orders and says what positions would bring."""

    rpc: RpcDoor
    network: Network
    rules: Rules
    clock: Clock
    slots: SlotBook
    evm: LocalEvm
    follower: Follower = field(init=False)

    def __post_init__(self) -> None:
        self.follower = Follower(self.rpc, self.network)

    async def order(self, at: Sitting, asked: OrderAsked, books: Mapping[str, Book]) -> Done:
        """Referee one order on every ledger. Raises: ChainFault."""
        done = Done()
        if asked.side == OPEN_LP:
            await self._open(done, at, asked, books)
        else:
            await self._close(done, at, asked, books)
        return done

    # --- open -------------------------------------------------------------------------------------------------------

    async def _open(self, done: Done, at: Sitting, asked: OrderAsked, books: Mapping[str, Book]) -> None:
        pool = at.graph.pools.get(asked.pool)
        objection = pool_objection(self.network, pool, carriers.refusal(pool) if pool else "")
        span = Range(0, 0)
        if pool and not objection[0]:
            decimals = await self._decimals(asked, pool, at.header)
            span = range_of(asked, pool, decimals) if decimals else span
            objection = range_objection(pool, span) if decimals else UNTOLD_DECIMALS
        if pool is None or objection[0]:
            self._refuse(done, at, tuple(books), objection)
            return
        placed = Placed(pool, span.lower, span.upper)
        for ledgers in _alike(at, books):
            await self._open_on(done, at, asked, placed, ledgers, books[ledgers[0]])

    async def _decimals(self, asked: OrderAsked, pool: Pool, header: Header) -> tuple[int, int] | None:
        """Decimals of both tokens, where the order speaks of prices; None when a token does not tell."""
        if not asked.price_lower:
            return 0, 0
        facts = await read_facts(self.rpc, [token for token in (pool.token0, pool.token1) if token != NATIVE], header.block)
        told = [18 if token == NATIVE else facts[token].decimals for token in (pool.token0, pool.token1)]
        return None if told[0] is None or told[1] is None else (told[0], told[1])

    async def _open_on(self, done: Done, at: Sitting, asked: OrderAsked, placed: Placed, ledgers: tuple[str, ...], book: Book) -> None:
        assert asked.amount0_raw is not None and asked.amount1_raw is not None
        amounts, pool = (int(asked.amount0_raw), int(asked.amount1_raw)), placed.pool
        slots = await self._slots(pool, at)
        slotless = [token for token in _tokens(self.network, pool) if token not in slots or slots[token].shares]
        if (objection := sides_objection(self.rules, self.network, pool, amounts, book, slotless, at.pin.base_fee_wei))[0]:
            self._refuse(done, at, ledgers, objection)
            return
        purse = await self._purse(at, ledgers[0])
        now = await self._now(at, purse, pool)
        liquidity = liquidity_for(now.sqrt_price_x96, placed.lower, placed.upper, *amounts)
        if (objection := self._liquidity_objection(liquidity, book, pool, now))[0]:
            self._refuse(done, at, ledgers, objection)
            return
        held = {holding.token: int(holding.units_raw) for holding in book.holdings if holding.token in slots}
        proof = OpeningProof(self.network, at.header, purse, placed, amounts, liquidity, held, book.approvals)
        owed = amounts_of(liquidity, now.sqrt_price_x96, placed.lower, placed.upper, round_up=True)
        (simulated,), kept = await self._proven([proof.simulation])
        opening = proof.read(simulated, liquidity, owed)
        if isinstance(opening, Stopped):
            self._stop(done, at, ledgers, opening)
            return
        opened = await self.follower.begin(at.run_id, pool, at.header)
        if (objection := await self._way_out_objection(at, placed, liquidity, opened.sqrt_price_x96, slots, book))[0]:
            self._refuse(done, at, ledgers, objection)
            return
        words = await self._words(at, proof, simulated, at.opening[ledgers[0]].words)
        if words is None:
            self._refuse(done, at, ledgers, ("lp_token", "what opening the position writes is not told, so that nothing could be sold later"))
            return
        path = path_bytes(opened)
        event = replace(
            self._opened(at, ledgers, placed, opening, now, share_ppm(liquidity, book, pool.key, now.liquidity), (sha256_hex(path), sha256_hex(kept))),
            kept=words_kept(words),
        )  # fmt: skip
        self._open_or_refuse(done, at, event, pool, book, (path, kept))

    async def _way_out_objection(self, at: Sitting, placed: Placed, liquidity: int, sqrt_price_x96: int, slots: Mapping[str, BalanceSlot], book: Book) -> Objection:
        """Say why a position could not be closed again where it is opened: a hook that lets nobody go, a token that does not come back."""
        held = {token: int(holding.units_raw) if (holding := book.held(token)) else 0 for token in slots}
        carried = own(book.words)
        proof = ClosingProof(self.network, at.header, at.wallet, int(book.eth_wei), placed, liquidity, sqrt_price_x96, slots, held, carried)
        found, _, _ = await self._either_way([proof])
        out = found[proof]
        return ("lp_token", f"the position could not be closed again: {out.reason}") if isinstance(out, Stopped) else NO_OBJECTION

    async def _words(self, at: Sitting, proof: OpeningProof | ClosingProof, done: Simulated, carried: Sequence[Word]) -> tuple[Word, ...] | None:
        """Every word that opening or closing a position wrote beside the market's; none where that is not told. Raises: ChainFault."""
        balances = [Word(slot.contract, slot.slot, 0, 0) for slot in (await self._slots(proof.pool, at)).values()]
        started = begun(carried, await look(self.evm, balances, at.header))
        executed = await alike(self.evm, await self.evm.run(proof.simulation, proven=False), done)
        if isinstance(executed, Untold):
            return None
        asked = Asked(proof.simulation, proof.sent, at.wallet, (proof.pool.token0, proof.pool.token1), positions=True)
        found = await told(self.evm, Market(self.network, at.graph), asked, executed, started, 0)
        return found.words if isinstance(found, Told) else None

    async def _now(self, at: Sitting, purse: Purse, pool: Pool) -> PoolNow:
        """The pool after what the decision did before, with no more liquidity than others have at the price that is really there."""
        readings = [PoolReading(self.network, at.header, each, pool) for each in ((purse, replace(purse, prefix=())) if purse.prefix else (purse,))]
        told = [reading.read(done) for reading, done in zip(readings, await self._asked([reading.simulation for reading in readings]), strict=True)]
        return replace(told[0], liquidity=min(now.liquidity for now in told))

    def _liquidity_objection(self, liquidity: int, book: Book, pool: Pool, now: PoolNow) -> Objection:
        if not liquidity:
            return "lp_range", f"the amounts make no liquidity in this range while the price is at tick {now.tick}"
        return share_objection(self.rules, own_liquidity(liquidity, book, pool.key), now.liquidity)

    def _open_or_refuse(self, done: Done, at: Sitting, event: LiquidityOpened, pool: Pool, book: Book, kept: tuple[bytes, bytes]) -> None:
        """Take an opening in that leaves the exits paid and stands on a young block."""
        amounts, gas_wei = (int(event.amount0_raw), int(event.amount1_raw)), int(event.gas_wei)
        eth_wei = sum(raw for asset, raw in zip((event.asset0, event.asset1), amounts, strict=True) if asset == ETH)
        objection = self._too_old(at) or eth_objection(self.rules, self.network, pool, book, eth_wei, gas_wei, at.pin.base_fee_wei)
        if objection[0]:
            self._refuse(done, at, event.ledgers, objection)
            return
        done.events.append(event)
        done.blobs |= dict(zip((event.path_sha256, event.evidence_sha256), kept, strict=True))
        approvals = tuple(each.tx for each in approvals_of(self.network, pool) if each.key in event.approvals)
        done.prefix |= {ledger: (*at.prefix[ledger], *approvals, *away_txs(self.network, pool, amounts, gas_wei)) for ledger in event.ledgers}

    def _opened(self, at: Sitting, ledgers: tuple[str, ...], placed: Placed, opening: Opening, now: PoolNow, share: int, digests: tuple[str, str]) -> LiquidityOpened:
        pool, gas_price = placed.pool, at.pin.base_fee_wei
        gas_wei = fee_wei(opening.mint_gas + sum(gas for _, gas in opening.approve_gas), gas_price)
        assets = asset_of_side(self.network, pool.token0), asset_of_side(self.network, pool.token1)
        return LiquidityOpened(
            run_id=at.run_id, ts_ms=self.clock.now_ms(), order_id=at.order_id, ledgers=ledgers, position=at.order_id, venue=pool.venue,
            pool=pool.key, token0=pool.token0, token1=pool.token1, asset0=assets[0], asset1=assets[1], fee_ppm=pool.fee_ppm,
            tick_spacing=pool.tick_spacing, hooks=pool.hooks, tick_lower=placed.lower, tick_upper=placed.upper,
            liquidity_raw=TokenRaw(opening.liquidity), amount0_raw=TokenRaw(opening.amounts[0]), amount1_raw=TokenRaw(opening.amounts[1]),
            pool_liquidity_raw=TokenRaw(now.liquidity), share_ppm=share, gas_wei=gas_wei,
            approvals=tuple(key for key, _ in opening.approve_gas), pin=at.pin,
            path_sha256=digests[0], evidence_sha256=digests[1], sqrt_price_x96=TokenRaw(now.sqrt_price_x96),
            entry=opening_entry(ledgers, assets, opening.amounts, int(gas_wei)),
        )  # fmt: skip

    # --- close ------------------------------------------------------------------------------------------------------

    async def _close(self, done: Done, at: Sitting, asked: OrderAsked, books: Mapping[str, Book]) -> None:
        holding = {ledger: book for ledger, book in books.items() if book.position(asked.position)}
        if missing := tuple(ledger for ledger in books if ledger not in holding):
            self._refuse(done, at, missing, ("no_position", f"no open position {asked.position}"))
        for ledgers in _alike(at, holding):
            await self._close_on(done, at, asked.position, ledgers, holding[ledgers[0]])

    async def _close_on(self, done: Done, at: Sitting, position_id: str, ledgers: tuple[str, ...], book: Book) -> None:
        position = book.position(position_id)
        assert position is not None
        beside = [other for other in book.positions if other.pool == position.pool]
        accrued = await self.follower.to(at.run_id, ledgers, beside, at.header, self.clock.now_ms())
        done.events += accrued.events
        done.blobs |= accrued.blobs
        proofs = [await self._closing(at.wallet, book, position, at.header, accrued)]
        ((exit_, stopped),), kept, done_at = await self._exits(proofs, [position], accrued)
        if stopped:
            self._stop(done, at, ledgers, stopped)
            return
        gas_wei = fee_wei(exit_.gas, at.pin.base_fee_wei)
        objection = self._too_old(at) or NO_OBJECTION
        if gas_wei > book.eth_wei:
            objection = "insufficient_eth", f"gas {gas_wei} wei > {book.eth_wei} held"
        if objection[0]:
            self._refuse(done, at, ledgers, objection)
            return
        digest = sha256_hex(kept)
        done.blobs[digest] = kept
        words = await self._closed_words(at, book, exit_, *done_at[0]) if done_at else ()
        done.events.append(LiquidityClosed(
            run_id=at.run_id, ts_ms=self.clock.now_ms(), order_id=at.order_id, ledgers=ledgers, position=position_id,
            amount0_raw=TokenRaw(exit_.principal[0]), amount1_raw=TokenRaw(exit_.principal[1]), fees0_raw=TokenRaw(exit_.fees[0]),
            fees1_raw=TokenRaw(exit_.fees[1]), gas_wei=gas_wei, pin=at.pin, evidence_sha256=digest,
            entry=closing_entry(ledgers, position, exit_.principal, exit_.fees, int(gas_wei)), sqrt_price_x96=TokenRaw(exit_.sqrt_price_x96),
            kept=words_kept(words),
        ))  # fmt: skip
        done.opening |= {ledger: _brought(at.opening[ledger], book, exit_, int(gas_wei), words) for ledger in ledgers}

    async def _closed_words(self, at: Sitting, book: Book, exit_: Exit, proof: ClosingProof, done: Simulated) -> tuple[Word, ...]:
        """What closing wrote, with all that it brings in the wallet's balances, fees too; nothing where it is not told. Raises: ChainFault."""
        written = await self._words(at, proof, done, book.words)
        if written is None:
            return ()
        slots = await self._slots(proof.pool, at)
        sides = {asset: raw for asset, raw in exit_.sides if asset != ETH}
        chain = begun(book.words, await look(self.evm, (Word(slots[token].contract, slots[token].slot, 0, 0) for token in sides), at.header))
        held = {word.place: word.value for word in book.words}
        balances = []
        for token, raw in sides.items():
            slot = slots[token]
            before = chain[slot.contract, slot.slot]
            balances.append(Word(slot.contract, slot.slot, before, held.get((slot.contract, slot.slot), before) + slot.write(raw).value))
        return merged(written, balances)

    # --- what positions would bring ---------------------------------------------------------------------------------

    async def exits(self, run_id: str, wallet: str, ledgers: tuple[str, ...], book: Book, header: Header) -> WayOut:
        """Follow every position of a book to a block and close all of them in simulation, each by itself. Raises: ChainFault."""
        if not book.positions:
            return WayOut(book)
        accrued = Accrued()
        for pool in dict.fromkeys(position.pool for position in book.positions):
            beside = [position for position in book.positions if position.pool == pool]
            accrued.add(await self.follower.to(run_id, ledgers, beside, header, self.clock.now_ms()))
        carried = own(book.words)
        proofs = [await self._closing(wallet, book, position, header, accrued, carried) for position in book.positions]
        found, kept, _ = await self._exits(proofs, book.positions, accrued)
        exits = tuple(exit_ for exit_, _ in found)
        return WayOut(with_exits(book, exits), exits, accrued, kept)

    async def _exits(
        self, proofs: Sequence[ClosingProof | Stopped], positions: Sequence[Position], accrued: Accrued
    ) -> tuple[list[tuple[Exit, Stopped | None]], bytes, list[tuple[ClosingProof, Simulated]]]:
        """What closings bring, the evidence, and the simulations that say so."""
        asked = [proof for proof in proofs if isinstance(proof, ClosingProof)]
        told, kept, done = await self._either_way(asked)
        exits = [self._exit(position, told[proof] if isinstance(proof, ClosingProof) else proof, accrued) for position, proof in zip(positions, proofs, strict=True)]
        return exits, kept, [done[proof] for proof in asked if proof in done]

    async def _either_way(
        self, asked: Sequence[ClosingProof]
    ) -> tuple[dict[ClosingProof, Closing | Stopped], bytes, dict[ClosingProof, tuple[ClosingProof, Simulated]]]:
        """What closings bring, straight to the wallet where the usual way reverts."""
        told, kept, done = await self._closed(asked)
        others = {proof: other for proof in asked if _reverted(told[proof]) and (other := proof.straight())}
        if others:
            again, more, done_again = await self._closed(list(others.values()))
            told |= {proof: again[other] for proof, other in others.items() if not isinstance(again[other], Stopped)}
            done |= {proof: done_again[other] for proof, other in others.items() if not isinstance(again[other], Stopped)}
            kept = b'{"closings":%b,"straight":%b}' % (kept, more)
        return told, kept, done

    async def _closed(
        self, asked: Sequence[ClosingProof]
    ) -> tuple[dict[ClosingProof, Closing | Stopped], bytes, dict[ClosingProof, tuple[ClosingProof, Simulated]]]:
        """What closings bring, each asked twice; and the evidence."""
        numbered, _ = await self._proven([proof.simulation for proof in asked])
        stopped = {proof: stop for proof, told in zip(asked, numbered, strict=True) if (stop := proof.numbered(told))}
        whole = [proof for proof in asked if proof not in stopped]
        told, kept = await self._proven([proof.simulation for proof in whole])
        done = dict(zip(whole, told, strict=True))
        return stopped | {proof: proof.read(each) for proof, each in done.items()}, kept, {proof: (proof, each) for proof, each in done.items()}

    def _exit(self, position: Position, told: Closing | Stopped, accrued: Accrued) -> tuple[Exit, Stopped | None]:
        price, fees = accrued.price_of[position.pool], accrued.fees_of[position.id]
        if isinstance(told, Stopped):
            principal = amounts_of(position.liquidity, price, position.tick_lower, position.tick_upper)
            failure = REVERTED if told.word == REVERTED else UNREADABLE
            return Exit(position, price, principal, fees, 0, failure, told.reason), told
        gas = told.gas + (COLLECT_GAS[position.venue] if any(fees) else 0)
        return Exit(position, price, told.amounts, told.arriving(fees), gas), None

    async def _closing(
        self, wallet: str, book: Book, position: Position, header: Header, accrued: Accrued, carried: Reading | None = None
    ) -> ClosingProof | Stopped:
        carried = own(book.words) if carried is None else carried
        placed = Placed(pool_of(position), position.tick_lower, position.tick_upper)
        slots, held = {}, {}
        for token in _tokens(self.network, placed.pool):
            slot, holding = await self.slots.of(token, wallet, header), book.held(token)
            if slot is None or slot.shares or book.unproven(token):
                return Stopped("unprovable", f"the balance of {token} cannot be put in place")
            slots[token], held[token] = slot, int(holding.units_raw) if holding else 0
        price = accrued.price_of[position.pool]
        return ClosingProof(self.network, header, wallet, int(book.eth_wei), placed, position.liquidity, price, slots, held, carried)

    # --- the wallet and the node ------------------------------------------------------------------------------------

    async def _slots(self, pool: Pool, at: Sitting) -> dict[str, BalanceSlot]:
        found = {token: await self.slots.of(token, at.wallet, at.header) for token in _tokens(self.network, pool)}
        return {token: slot for token, slot in found.items() if slot is not None}

    async def _purse(self, at: Sitting, ledger: str) -> Purse:
        """The wallet as it stood before the decision, and what ran since."""
        opening = at.opening[ledger]
        return Purse(at.wallet, int(opening.eth_wei), own(opening.words), at.prefix[ledger])

    async def _proven(self, simulations: Sequence[Simulation]) -> tuple[list[Simulated], bytes]:
        """Ask simulations in one round trip; what they did, and the evidence. Raises: ChainFault when the node refuses."""
        answers = await self.rpc.batch([simulation.request() for simulation in simulations]) if simulations else []
        told = [_trusted(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)]
        return told, dumped([evidence(simulation, answer) for simulation, answer in zip(simulations, answers, strict=True)])

    async def _asked(self, simulations: Sequence[Simulation]) -> list[Simulated]:
        return (await self._proven(simulations))[0]

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def _too_old(self, at: Sitting) -> Objection | None:
        age_ms = at.age_ms(at.pin)
        return ("board_too_old", f"{age_ms} ms old, at most {self.rules.board_age_ms_max}") if age_ms > self.rules.board_age_ms_max else None

    def _refuse(self, done: Done, at: Sitting, ledgers: Sequence[str], objection: Objection) -> None:
        done.events.append(lp_refusal(at.run_id, at.order_id, ledgers, objection, self.clock.now_ms()))

    def _stop(self, done: Done, at: Sitting, ledgers: Sequence[str], stopped: Stopped) -> None:
        reason = REVERTED if stopped.word == REVERTED else "unprovable_no_quote"
        done.events.append(not_filled(at.run_id, at.order_id, ledgers, reason, stopped.reason, self.clock.now_ms()))


def _reverted(told: Closing | Stopped) -> bool:
    return isinstance(told, Stopped) and told.word == REVERTED


def _tokens(network: Network, pool: Pool) -> list[str]:
    return [token for token in (pool.token0, pool.token1) if not is_eth(network, token)]


def _alike(at: Sitting, books: Mapping[str, Book]) -> list[tuple[str, ...]]:
    """Ledgers that stand alike in everything, so that one simulation says it for all of them."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for ledger, book in books.items():
        key = (replace(book, ledger=""), replace(at.opening[ledger], ledger=""), at.prefix[ledger])
        groups.setdefault(key, []).append(ledger)
    return [tuple(group) for group in groups.values()]


def _brought(book: Book, running: Book, exit_: Exit, gas_wei: int, words: Sequence[Word]) -> Book:
    """A decision's opening book with what a closing brought, so that later orders find it there after what ran since."""
    held = {holding.token: holding for holding in book.holdings}
    eth_wei = int(book.eth_wei) - gas_wei
    for asset, raw in exit_.sides:
        if asset == ETH:
            eth_wei += raw
        elif raw:
            holding = held.get(asset, Holding(asset, TokenRaw(0), False, ""))
            held[asset] = replace(holding, units_raw=holding.units_raw + TokenRaw(raw))
    holdings = tuple(sorted(held.values(), key=lambda holding: holding.token))
    known, later = ({word.place: word.value for word in each.words} for each in (book, running))
    moved = (
        replace(word, value=max(known.get(word.place, word.before) + word.value - later.get(word.place, word.before), 0)) for word in words
    )
    return replace(book, eth_wei=Wei(max(eth_wei, 0)), holdings=holdings, words=merged(book.words, moved))


def _trusted(simulation: Simulation, answer: Any) -> Simulated:
    try:
        return answered(simulation, answer)
    except SimulationRefused as refused:
        raise ChainFault(refused.word, "the node refused to simulate a position") from None
