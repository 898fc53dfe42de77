"""Rows: one order's board under construction, for the ledgers that share a size and a history.

Pure: it builds what is asked of the node and reads what came back.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import orjson

from chain.gas import APPROVE_GAS_ESTIMATE, fee_wei, swap_gas_estimate
from chain.header import Header
from chain.network import Network
from chain.router import Route, Tx
from chain.rpc import RpcRefused
from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from chain.trade import FAILED, INCONSISTENT, PROVEN, QUOTED_MAX, QUOTER_ABSURD, REVERTED, UNPROVABLE, Outcome, Purse, TradeSimulation, evidence, shown_wei
from ledgers.errors import ChainFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.credit import HOOKED, LANE, ROUTER, SALE_SIZE_LIMITED, considered
from referee.onchain.events import HEADLINE, BoardTaken, Pin, Row, WordKept
from referee.onchain.rival_rows import RivalRow, tx_sha256
from referee.onchain.variant import Variant

METHOD_MISSING = "method_missing"


class _Question(Protocol):
    simulation: Simulation

    def outcome(self, done: Simulated) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """What a route's quoter promises for a sale that cannot be proven, on top of earlier claims of the same decision (ONC-24)."""

    whole: Route
    """For everything claimed so far, this sale included."""
    earlier: Route | None
    """For what was claimed before it."""

    @property
    def quoters(self) -> list[Tx]:
        """What to ask; empty when no quoter knows the shape, or a hook could tell it anything."""
        asked = [route.sound_quoter for route in (self.whole, self.earlier) if route is not None]
        return [] if None in asked else [tx for tx in asked if tx is not None]

    def read(self, answers: Sequence[bytes | None], paid_in_wei: int = 0) -> int | None:
        """Wei that this sale adds; None when a quoter is silent or absurd."""
        routes = [self.whole, *([self.earlier] if self.earlier else [])]
        amounts = [route.payable(route.quoted(data), paid_in_wei) if data is not None else None for route, data in zip(routes, answers, strict=False)]
        known = [amount for amount in amounts if amount is not None]
        if not known or len(known) < len(amounts):
            return None
        return max(known[0] - sum(known[1:]), 0)


class QuoteOnly:
    """A sale that no override can prove: only quoters are asked, after what was filled before it."""

    def __init__(self, network: Network, pin: Header, purse: Purse, claim: Claim, cause: str) -> None:
        self._claim, self._cause, self._paid_in_wei = claim, cause, sum(tx.value_wei for tx in purse.prefix)
        sim = self.simulation = Simulation(network, pin)
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, purse.prefix, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        self._views = [sim.view(tx.to, tx.data) for tx in claim.quoters]

    def outcome(self, done: Simulated) -> Outcome:
        if not all(done[handle].ok for handle in self._prefix):
            raise ChainFault("state_moved", "a filled order of the same decision no longer goes through at its own block")
        told = [done[handle].data if done[handle].ok else None for handle in self._views]
        return Outcome(UNPROVABLE, self._cause, self._claim.read(told, self._paid_in_wei))


@dataclass(slots=True)
class Rows:
    """The rows of one variant's board."""

    variant: Variant
    routes: tuple[Route, ...]
    claims: list[Claim]
    """One per route of a sale."""
    questions: list[_Question]
    rows: list[Row] = field(default_factory=list)
    """Of our own router."""
    rivals: list[RivalRow] = field(default_factory=list)
    _kept: dict[str, bytes] = field(default_factory=dict)
    _answers: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, network: Network, pin: Header, variant: Variant, routes_of: Callable[[int], tuple[Route, ...]]) -> Rows:
        """Prepare one question per candidate route; `routes_of` names the candidates for a size."""
        routes = routes_of(variant.size_raw)
        claims = claims_of(variant, routes, routes_of) if variant.asked.side == "sell" else []
        if variant.cause:
            return cls(variant, routes, claims, [QuoteOnly(network, pin, variant.purse, claim, variant.cause) for claim in claims])
        return cls(variant, routes, claims, [TradeSimulation(network, pin, variant.purse, route, variant.held, variant.book.approvals) for route in routes])

    def read(self, answers: Iterable[Any], gas_price_wei: Wei) -> None:
        """Read one answer per route. Raises: ChainFault when the node contradicts itself."""
        self._answers = list(answers)
        self.rows = [self._read(place, gas_price_wei) for place in range(len(self.routes))]

    def _read(self, place: int, gas_price_wei: Wei) -> Row:
        route, question, answer = self.routes[place], self.questions[place], self._answers[place]
        digest = self._keep(evidence(question.simulation, None if isinstance(answer, RpcRefused) else answer))
        try:
            outcome = question.outcome(answered(question.simulation, answer))
        except SimulationRefused as refused:
            outcome = Outcome(FAILED, refused.word)
        except ChainFault as fault:
            if fault.reason != INCONSISTENT or not route.hooked:
                raise
            outcome = Outcome(FAILED, INCONSISTENT)  # a hook may give what a node does not trace; other pools' rows stand
        return self._row(route, outcome, digest, gas_price_wei)

    def approving_again(self) -> list[tuple[int, TradeSimulation]]:
        """Routes that reverted on approvals paid before, which may no longer stand: the same with all approvals sent again."""
        found = []
        for place, (row, question) in enumerate(zip(self.rows, self.questions, strict=True)):
            if row.status == REVERTED and isinstance(question, TradeSimulation) and (again := question.with_all_approvals()) is not None:
                found.append((place, again))
        return found

    def read_again(self, place: int, question: TradeSimulation, answer: Any, gas_price_wei: Wei) -> None:
        """Take a route's second try where it went through. Raises: ChainFault."""
        before = self.questions[place], self._answers[place]
        self.questions[place], self._answers[place] = question, answer
        row = self._read(place, gas_price_wei)
        if row.status == PROVEN:
            self.rows[place] = row
        else:
            self.questions[place], self._answers[place] = before

    def asked_of(self, row: Row) -> tuple[TradeSimulation, Any] | None:
        """The simulation of a row of ours or of a rival's, and what was answered."""
        for at, own in enumerate(self.rows):
            if own.route == row.route and own.source == row.source and isinstance(question := self.questions[at], TradeSimulation):
                return question, self._answers[at]
        rival = next((rival for rival in self.rivals if rival.label == row.route and rival.question is not None), None)
        return (rival.question, rival.answered) if rival is not None and rival.question is not None else None

    def tell(self, row: Row, words: tuple[WordKept, ...], gas_limit: int) -> None:
        """Note what a row's transactions wrote, and the gas limit that its swap needs."""
        self._change(row, kept=words, gas_limit=gas_limit)

    def charge(self, row: Row, swap_gas: int) -> None:
        """Charge a row the most gas that any reading of it used."""
        if swap_gas > row.swap_gas:
            self._change(row, swap_gas=swap_gas, gas_wei=fee_wei(swap_gas + row.approve_gas, Wei(int(row.gas_wei) // (row.swap_gas + row.approve_gas))))

    def unknown(self, row: Row, reason: str, worst_raw: int | None) -> None:
        """Note that what a row brings is not known; `worst_raw` is the least that any reading brought, where all brought something."""
        self._change(row, status=UNPROVABLE, reason=reason, quoted_raw=_raw(worst_raw), arrival_raw=None, units_raw=None, logged_raw=None)

    def _change(self, row: Row, **changed: Any) -> None:
        for at, own in enumerate(self.rows):
            if own.route == row.route and own.source == row.source:
                self.rows[at] = replace(own, **changed)
        for rival in self.rivals:
            if rival.label == row.route and row.source != ROUTER:
                rival.change(**changed)

    def _row(self, route: Route, outcome: Outcome, digest: str, gas_price_wei: Wei) -> Row:
        unpaid = tuple(approval.key for approval in route.approvals if approval.key not in self.variant.book.approvals)
        if outcome.status == PROVEN:
            swap_gas, approve_gas = outcome.swap_gas, sum(gas for _, gas in outcome.approve_gas)
            unpaid = tuple(key for key, _ in outcome.approve_gas)
        else:
            swap_gas, approve_gas = swap_gas_estimate(len(route.hops)), len(unpaid) * APPROVE_GAS_ESTIMATE
        return Row(
            source=ROUTER, route=route.label, status=outcome.status, reason=outcome.reason,
            quoted_raw=_raw(outcome.quoted_raw), arrival_raw=_raw(outcome.arrival_raw), units_raw=_raw(outcome.units_raw),
            logged_raw=_raw(outcome.logged_raw), swap_gas=swap_gas, approve_gas=approve_gas,
            gas_wei=fee_wei(swap_gas + approve_gas, gas_price_wei), approvals=unpaid, flags=outcome.flags + ((HOOKED,) if route.hooked else ()), digest=digest,
            to=route.swap.to, tx_sha256=tx_sha256(route.swap),
            sold_raw=_raw(outcome.sold_raw),
        )  # fmt: skip

    def _rival_row(self, rival: RivalRow, gas_price_wei: Wei, now_ms: int) -> Row:
        """A rival's row as it stands now."""
        outcome, route = rival.outcome, rival.route
        unpaid = tuple(approval.key for approval in (route.approvals if route else ()) if approval.key not in self.variant.book.approvals)
        proven = outcome.status == PROVEN
        swap_gas = outcome.swap_gas if proven else rival.gas_estimate
        approve_gas = sum(gas for _, gas in outcome.approve_gas) if proven else len(unpaid) * APPROVE_GAS_ESTIMATE
        unpaid = tuple(key for key, _ in outcome.approve_gas) if proven else unpaid
        differs = ("quoter_differs",) if proven and rival.out_raw != outcome.arrival_raw else ()
        absurd = (QUOTER_ABSURD,) if (rival.out_raw or 0) >= QUOTED_MAX else ()
        return Row(
            source=rival.answer.source, route=rival.label, status=outcome.status, reason=outcome.reason, quoted_raw=_raw(rival.out_raw),
            arrival_raw=_raw(outcome.arrival_raw), units_raw=_raw(outcome.units_raw), logged_raw=_raw(outcome.logged_raw), swap_gas=swap_gas,
            approve_gas=approve_gas, gas_wei=fee_wei(swap_gas + approve_gas, gas_price_wei), approvals=unpaid, flags=outcome.flags + differs + absurd,
            digest=self._keep(rival.evidence) if rival.evidence else "", to=route.swap.to if route else "",
            tx_sha256=tx_sha256(route.swap) if route else "", age_ms=rival.age_ms(now_ms), via=rival.via, kept=rival.kept,
            gas_limit=rival.gas_limit, sold_raw=_raw(outcome.sold_raw),
        )  # fmt: skip

    def _keep(self, kept: Any) -> str:
        """Hold evidence ready; returns its digest."""
        dump = dumped(kept)
        digest = sha256_hex(dump)
        self._kept[digest] = dump
        return digest

    def best_asked(self, board: BoardTaken) -> tuple[Simulation, Any] | None:
        """The simulation of the best proven row of our own router, and what was answered; none where there is none."""
        best = next((row for row in considered(board, HEADLINE) if row.source == ROUTER and row.status == PROVEN), None)
        if best is None:
            return None
        place = next(at for at, row in enumerate(self.rows) if row.route == best.route)
        return self.questions[place].simulation, self._answers[place]

    @property
    def proven(self) -> bool:
        """Whether our own router has a proven row."""
        return any(row.status == PROVEN for row in self.rows)

    @property
    def ran(self) -> bool:
        """Whether any row went through in simulation, or reverted there."""
        return any(row.status in (PROVEN, REVERTED) for row in self.rows) or any(rival.outcome.status == PROVEN for rival in self.rivals)

    def all_reverted(self) -> Route | None:
        """The first route of a sale of which nothing is proven and something reverted."""
        if self.variant.asked.side == "buy" or self.proven or any(rival.outcome.status == PROVEN for rival in self.rivals):
            return None
        return next((route for route, row in zip(self.routes, self.rows, strict=True) if row.status == REVERTED), None)

    def limited(self, route: Route) -> None:
        """Note that a smaller part of a sale goes through."""
        at = self.routes.index(route)
        if SALE_SIZE_LIMITED not in self.rows[at].flags:
            self.rows[at] = replace(self.rows[at], flags=(*self.rows[at].flags, SALE_SIZE_LIMITED))

    def without_simulation(self) -> list[tuple[int, Claim]]:
        """Sales that the node could not even try, because it has no such method; their quoters can still be asked.

        Not after a filled order of the same decision, which a bare quote would not know of."""
        if self.variant.asked.side == "buy" or self.variant.purse.prefix:
            return []
        return [(at, self.claims[at]) for at, row in enumerate(self.rows) if row.reason == METHOD_MISSING]

    def claimed(self, at: int, answers: Sequence[bytes | None], gas_price_wei: Wei) -> None:
        """Replace a row by its bare quote: the lane, not the token, is why it is unprovable."""
        claim = Outcome(UNPROVABLE, LANE, self.claims[at].read(answers))
        self.rows[at] = self._row(self.routes[at], claim, self.rows[at].digest, gas_price_wei)

    def board(self, run_id: str, order_id: str, pin: Pin, exit_reserve: Wei, arrived_ts_ms: int, now_ms: int, age_ms: int) -> BoardTaken:
        """Write the board down; a rival's answer ages it as its block does."""
        variant = self.variant
        rivals = tuple(self._rival_row(rival, pin.base_fee_wei, now_ms) for rival in self.rivals)
        return BoardTaken(
            run_id=run_id, ts_ms=now_ms, order_id=order_id, ledgers=variant.ledgers, side=variant.asked.side,
            token=variant.asked.token, size_raw=TokenRaw(variant.size_raw), size_units_raw=TokenRaw(variant.size_units_raw),
            shares=variant.shares, pin=pin, gas_price_wei=pin.base_fee_wei, arrived_ts_ms=arrived_ts_ms,
            age_ms=max(age_ms, *(row.age_ms for row in rivals if row.status == PROVEN), 0), exit_reserve_wei=exit_reserve, rows=(*self.rows, *rivals),
        )  # fmt: skip

    def fillable(self, board: BoardTaken) -> list[Row]:
        """The proven rows that some ledger may fill at, best first."""
        return [row for row in considered(board, HEADLINE) if row.status == PROVEN]

    def gated(self, board: BoardTaken) -> list[tuple[Route, Row]]:
        """The proven rows of a buy that are gated: the best, our own best, and our own best without hooks."""
        ranked = considered(board, HEADLINE)
        chosen = [*ranked[:1], *(row for row in ranked[1:] if row.source == ROUTER)]
        return [(self.route_named(row.route), row) for row in chosen]

    def route_named(self, label: str) -> Route:
        """Find a route by its label."""
        rivals = (rival.route for rival in self.rivals if rival.route is not None)
        return next(route for route in (*self.routes, *rivals) if route.label == label)

    def evidence_of(self, outcome: Sequence[Event]) -> dict[str, bytes]:
        """Keep whole only what the outcome stands on; the rest is in the rows by digest."""
        named = {getattr(event, "evidence_sha256", "") for event in outcome}
        return {digest: kept for digest, kept in self._kept.items() if digest in named}


def part_sale(network: Network, pin: Header, variant: Variant, part: Route) -> TradeSimulation:
    """Try a part of a sale."""
    return TradeSimulation(network, pin, variant.purse, part, variant.held, variant.book.approvals)


def claims_of(variant: Variant, routes: Sequence[Route], routes_of: Callable[[int], tuple[Route, ...]]) -> list[Claim]:
    """Pair each route of a sale with its quotes for everything claimed so far, with and without this sale; shares have no quotes."""
    if variant.shares:
        return [Claim(replace(route, quoter=None), None) for route in routes]
    if not variant.claimed_raw:
        return [Claim(route, None) for route in routes]
    sizes = (variant.claimed_raw + variant.size_raw, variant.claimed_raw)
    whole, earlier = ({route.label: route for route in routes_of(size)} for size in sizes)
    silent = [replace(route, quoter=None) for route in routes]
    return [Claim(whole.get(route.label, route), earlier.get(route.label, route)) for route in silent]


def dumped(value: Any) -> bytes:
    """Evidence as JSON bytes."""
    return orjson.dumps(value)


def _raw(value: int | None) -> TokenRaw | None:
    return None if value is None else TokenRaw(value)
