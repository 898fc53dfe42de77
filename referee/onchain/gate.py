"""The gate of a buy: which sales are tried, and what the verdict is.

Pure: it builds the wallet's own round trip over each sale and judges what came back. A sale that its buyer cannot make is looked
at a second time. The gate warns; what later sales bring hangs on what the wallet really wrote, not on it. What outside sources
say against a token may only worsen the verdict; that a rival's row cannot be judged costs it alone.
Source: 001 §2.2, §5.4; ONC-08, ONC-11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chain.header import Header
from chain.honeypot import CLEAR, FLAGGED, UNKNOWN, OwnTrip, Verdict, verdict_of
from chain.network import Network
from chain.router import Route
from chain.second_look import COOLDOWN, COOLDOWN_OR_LOCK, SecondLook
from chain.simulate import Simulation, SimulationRefused, answered
from chain.trade import evidence
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import GateTaken, Row
from referee.onchain.rows import Variant, dumped
from referee.onchain.rules import Rules

SALES_MAX = 3
"""Sale routes that are tried side by side."""


class Gate:
    """The simulations of one buy's gate."""

    def __init__(self, network: Network, pin: Header, variant: Variant, buy: Route, row: Row, sales: Sequence[Route], untold: str = "") -> None:
        """Prepare the simulations; `untold` says why what the buy wrote is not known, empty where it is."""
        self._variant, self._buy, self._row, self._untold = variant, buy, row, untold
        routes = _reverse_first(buy, sales)[:SALES_MAX]
        self._sales, self._usual = _by_approvals(routes, variant.book.approvals), len(routes)
        self._own = [OwnTrip(network, pin, variant.purse, buy, sale, paid=paid) for sale, paid in self._sales]
        self.simulations: list[Simulation] = [trip.simulation for trip in self._own]
        self._look_again = partial(SecondLook, network, pin, variant.purse, buy)
        self._again: SecondLook | None = None
        self._kept: list[Any] = []
        self.verdict, self._label = Verdict(UNKNOWN, "no_route_back"), ""

    @property
    def foreign(self) -> bool:
        """Whether a rival's transaction is gated."""
        return not self._buy.hops

    def hear(self, answers: Sequence[Any], rules: Rules) -> list[Simulation]:
        """Judge the answers; what is asked once more, where the sale reverts and the rules look again.

        Raises: ChainFault when the node contradicts itself, of our own row."""
        self._keep(self.simulations, answers)
        try:
            self.verdict, self._label = self._judge(answers, rules)
        except ChainFault as fault:
            if not self.foreign:
                raise
            self.verdict = Verdict(UNKNOWN, f"fault: {fault.reason}")
        return self._again.simulations if self._again else []

    def hear_again(self, answers: Sequence[Any]) -> None:
        """Judge the second look; one that tells nothing changes nothing."""
        assert self._again is not None
        self._keep(self._again.simulations, answers)
        try:
            word = self._again.word([answered(simulation, answer) for simulation, answer in zip(self._again.simulations, answers, strict=True)])
        except (ChainFault, SimulationRefused):
            return
        if word:
            self.verdict = replace(self.verdict, verdict=UNKNOWN if word in (COOLDOWN, COOLDOWN_OR_LOCK) else FLAGGED, cause=word)

    def taken(self, run_id: str, order_id: str, now_ms: int, outside: tuple[str, ...]) -> tuple[GateTaken, bytes]:
        """Write the gate down; the bytes are the evidence."""
        kept, verdict = dumped(self._kept), self.verdict
        if outside and verdict.verdict == CLEAR:
            verdict = replace(verdict, verdict=FLAGGED, cause=outside[0])
        event = GateTaken(
            run_id=run_id, ts_ms=now_ms, order_id=order_id, ledgers=self._variant.ledgers, route=self._buy.label,
            verdict=verdict.verdict, cause=verdict.cause, exit_provable=not self._untold, exit_cause=self._untold,
            buy_arrival_raw=TokenRaw(verdict.buy_arrival_raw), loss_bps=verdict.loss_bps, sell_route=self._label,
            own_wei=Wei(verdict.own_wei), ghost_wei=Wei(0), digest=sha256_hex(kept), outside=outside,
        )  # fmt: skip
        return event, kept

    def _keep(self, simulations: Sequence[Simulation], answers: Sequence[Any]) -> None:
        self._kept += [evidence(simulation, _jsonable(answer)) for simulation, answer in zip(simulations, answers, strict=True)]

    def _judge(self, answers: Sequence[Any], rules: Rules) -> tuple[Verdict, str]:
        if not self._sales:
            return Verdict(UNKNOWN, "no_route_back"), ""
        try:
            done = [answered(simulation, answer) for simulation, answer in zip(self.simulations, answers, strict=True)]
        except SimulationRefused as refused:
            return Verdict(UNKNOWN, refused.word), ""
        own = [trip.sale(simulated) for trip, simulated in zip(self._own, done, strict=True)]
        arrivals = {trip.arrival_raw(simulated) for trip, simulated in zip(self._own, done, strict=True)}
        best = max(range(len(own)), key=lambda index: (own[index].ok, index < self._usual, own[index].net_wei, -index))
        board_arrival = int(self._row.arrival_raw or 0)
        differing = next((arrival for arrival in arrivals if arrival != board_arrival), board_arrival)
        verdict = verdict_of(self._variant.size_raw, board_arrival, differing, own[best], rules.gate_loss_bps_max)
        if not own[best].ok and rules.later_blocks is not None and rules.later_s is not None:
            sale, paid = self._sales[best]
            self._again = self._look_again(sale, (rules.later_blocks, rules.later_s), paid)
        return verdict, self._sales[best][0].label


def _reverse_first(buy: Route, sales: Sequence[Route]) -> list[Route]:
    """Sales over the buy's own pools before any others, and those over all of them first: a buy may be split, and its sale not."""
    back = {hop.pool.key for hop in buy.hops}
    pools = {route.label: {hop.pool.key for hop in route.hops} for route in sales}
    return sorted(sales, key=lambda route: (pools[route.label] != back, not pools[route.label] <= back))


def _by_approvals(sales: Sequence[Route], paid: frozenset[str]) -> list[tuple[Route, frozenset[str]]]:
    """Each sale with the approvals that were paid before and stand; and, where there are any, with all of them sent again, should they not."""
    stood = [(sale, paid & {approval.key for approval in sale.approvals}) for sale in sales]
    return [*stood, *((sale, frozenset[str]()) for sale, standing in stood if standing)]


def _jsonable(answer: Any) -> Any:
    return answer if isinstance(answer, (list, dict)) else str(answer)
