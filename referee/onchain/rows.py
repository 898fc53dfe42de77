"""Rows: one order's board under construction, for the ledgers that share a size and a history.

Pure: it builds what is asked of the node and reads what came back.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from chain.gas import APPROVE_GAS_ESTIMATE, fee_wei, swap_gas_estimate
from chain.header import Header
from chain.network import Network
from chain.router import Route
from chain.rpc import RpcRefused
from chain.simulate import AMOUNT_MAX, Simulated, Simulation, SimulationRefused, answered
from chain.trade import FAILED, PROVEN, UNPROVABLE, Held, Outcome, Purse, TradeSimulation, evidence
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei, mul_div_ceil
from referee.onchain.book import Book
from referee.onchain.credit import best_row
from referee.onchain.events import BoardTaken, OrderAsked, Pin, Row


@dataclass(frozen=True, slots=True)
class Variant:
    """The ledgers of an order that share its size, holdings and history within the decision."""

    ledgers: tuple[str, ...]
    book: Book
    """The running book of the first of them; the others hold the same of this token."""
    asked: OrderAsked
    size_raw: int
    """Wei to spend or token units to sell."""
    purse: Purse
    held: Held
    cause: str
    """Why a sale cannot be proven, else empty."""

    @property
    def shares(self) -> bool:
        return bool(self.held.slot and self.held.slot.shares)

    @property
    def size_units_raw(self) -> int:
        """Storage units behind the size of a sale; the size itself when units are amounts."""
        if self.asked.side == "buy" or not self.shares or not self.held.amount_raw:
            return self.size_raw
        return mul_div_ceil(self.held.units_raw, self.size_raw, self.held.amount_raw)


class _Question(Protocol):
    simulation: Simulation

    def outcome(self, done: Simulated) -> Outcome: ...


class QuoteOnly:
    """A sale that no override can prove: only its quoter is asked."""

    def __init__(self, network: Network, pin: Header, route: Route, cause: str) -> None:
        self._route, self._cause = route, cause
        self.simulation = Simulation(network, pin)
        self.simulation.block(balances_wei={})
        self._handle = self.simulation.view(route.quoter.to, route.quoter.data) if route.quoter else None

    def outcome(self, done: Simulated) -> Outcome:
        quoted = self._route.quoted(done[self._handle].data) if self._handle and done[self._handle].ok else None
        return Outcome(UNPROVABLE, self._cause, quoted if quoted and quoted < AMOUNT_MAX else None)


@dataclass(slots=True)
class Rows:
    """The rows of one variant's board."""

    variant: Variant
    routes: tuple[Route, ...]
    questions: list[_Question]
    rows: list[Row] = field(default_factory=list)
    _kept: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, network: Network, pin: Header, variant: Variant, routes: tuple[Route, ...]) -> Rows:
        """Prepare one question per candidate route."""
        if variant.cause:
            return cls(variant, routes, [QuoteOnly(network, pin, route, variant.cause) for route in routes])
        return cls(variant, routes, [TradeSimulation(network, pin, variant.purse, route, variant.held) for route in routes])

    def read(self, answers: Iterable[Any], gas_price_wei: Wei) -> None:
        """Read one answer per route. Raises: ChainFault when the node contradicts itself."""
        for route, question, answer in zip(self.routes, self.questions, answers, strict=True):
            kept = dumped(evidence(question.simulation, None if isinstance(answer, RpcRefused) else answer))
            digest = sha256_hex(kept)
            self._kept[digest] = kept
            try:
                outcome = question.outcome(answered(question.simulation, answer))
            except SimulationRefused as refused:
                outcome = Outcome(FAILED, refused.word)
            self.rows.append(self._row(route, outcome, digest, gas_price_wei))

    def _row(self, route: Route, outcome: Outcome, digest: str, gas_price_wei: Wei) -> Row:
        unpaid = tuple(approval.key for approval in route.approvals if approval.key not in self.variant.book.approvals)
        if outcome.status == PROVEN:
            swap_gas, approve_gas = outcome.swap_gas, sum(gas for key, gas in outcome.approve_gas if key in unpaid)
        else:
            swap_gas, approve_gas = swap_gas_estimate(len(route.hops)), len(unpaid) * APPROVE_GAS_ESTIMATE
        return Row(
            source="router", route=route.label, status=outcome.status, reason=outcome.reason,
            quoted_raw=_raw(outcome.quoted_raw), arrival_raw=_raw(outcome.arrival_raw), units_raw=_raw(outcome.units_raw),
            logged_raw=_raw(outcome.logged_raw), swap_gas=swap_gas, approve_gas=approve_gas,
            gas_wei=fee_wei(swap_gas + approve_gas, gas_price_wei), approvals=unpaid, flags=outcome.flags, digest=digest,
        )  # fmt: skip

    def without_simulation(self) -> list[tuple[int, Route]]:
        """Sales that the node could not even try, because it has no such method; their quoters can still be asked."""
        if self.variant.asked.side == "buy":
            return []
        return [(at, self.routes[at]) for at, row in enumerate(self.rows) if row.reason == "method_missing" and self.routes[at].quoter]

    def quoted(self, at: int, quoted: int | None, gas_price_wei: Wei) -> None:
        """Replace a row by its bare quote: the lane, not the token, is why it is unprovable."""
        self.rows[at] = self._row(self.routes[at], Outcome(UNPROVABLE, "lane", quoted), self.rows[at].digest, gas_price_wei)

    def board(self, run_id: str, order_id: str, pin: Pin, exit_reserve: Wei, arrived_ts_ms: int, now_ms: int, age_ms: int) -> BoardTaken:
        """Write the board down."""
        variant = self.variant
        return BoardTaken(
            run_id=run_id, ts_ms=now_ms, order_id=order_id, ledgers=variant.ledgers, side=variant.asked.side,
            token=variant.asked.token, size_raw=TokenRaw(variant.size_raw), size_units_raw=TokenRaw(variant.size_units_raw),
            shares=variant.shares, pin=pin, gas_price_wei=pin.base_fee_wei, arrived_ts_ms=arrived_ts_ms, age_ms=age_ms,
            exit_reserve_wei=exit_reserve, rows=tuple(self.rows),
        )  # fmt: skip

    def best_proven(self, board: BoardTaken) -> tuple[Route, Row] | None:
        """The proven row that a buy would fill at."""
        row = best_row(board, [row for row in self.rows if row.status == PROVEN])
        return (self.routes[self.rows.index(row)], row) if row else None

    def route_named(self, label: str) -> Route:
        """Find a route by its label."""
        return next(route for route in self.routes if route.label == label)

    def evidence_of(self, outcome: Sequence[Event]) -> dict[str, bytes]:
        """Keep whole only what the outcome stands on; the rest is in the rows by digest."""
        named = {getattr(event, "evidence_sha256", "") for event in outcome}
        return {digest: kept for digest, kept in self._kept.items() if digest in named}


def dumped(value: Any) -> bytes:
    """Evidence as JSON bytes."""
    return orjson.dumps(value)


def _raw(value: int | None) -> TokenRaw | None:
    return None if value is None else TokenRaw(value)
