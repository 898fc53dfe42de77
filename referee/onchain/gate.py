"""The gate of a buy: which sales are tried, and what the verdict is.

Pure: it builds the two trips of each sale and judges what came back. A sale that its buyer cannot make is looked at a second
time. What outside sources say against a token may only worsen the verdict; that a rival's row cannot be judged costs it alone.
Source: 001 §2.2, §5.4; ONC-08, ONC-11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chain.balance_slot import BalanceSlot
from chain.header import Header
from chain.history import HistoryTrip, is_without_history
from chain.holder_state import HolderState, HolderStateTrips
from chain.honeypot import CLEAR, FLAGGED, HELD_ROUNDING_RAW, UNKNOWN, GhostTrip, OwnTrip, Sale, Verdict, alike, ghost_of, override_of, verdict_of
from chain.network import Network
from chain.router import Route
from chain.second_look import COOLDOWN, COOLDOWN_OR_LOCK, SecondLook
from chain.simulate import Simulated, Simulation, SimulationRefused, SlotWrite, answered
from chain.trade import ROUNDING_PART, Purse, evidence
from ledgers.errors import ChainFault
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.book import words_kept
from referee.onchain.events import GateTaken, Row, WordKept
from referee.onchain.rows import Variant, dumped
from referee.onchain.rules import Rules

SALES_MAX = 3
"""Sale routes that are tried side by side."""
HOLDING_CHANGES = "holding_changes_the_buy"
HOLDER_STATE, STATE_MOVED = "holder_state", "state_moved"


class Gate:
    """The simulations of one buy's gate."""

    def __init__(self, network: Network, pin: Header, variant: Variant, buy: Route, ghost_buy: Route, row: Row, sales: Sequence[Route], later_s: int | None = None, gift_raw: int = 0) -> None:
        """Prepare the simulations; `later_s` is how much later the sale is tried too, none where the rules look at one time only.

        `gift_raw` are token units that the decision's earlier fills left in the wallet and no book knows of."""
        self._variant, self._buy, self._row = variant, buy, row
        self._sales = _reverse_first(buy, sales)[:SALES_MAX]
        slot, purse = variant.held.slot, variant.purse
        alone = slot is not None and not slot.shares and not gift_raw and not _touched(purse, buy.token)
        if alone:
            purse = _without(purse, slot)
        self._lightened = alone and variant.held.units_raw > 0
        self._own = [OwnTrip(network, pin, purse, buy, sale) for sale in self._sales]
        self._ghost: list[GhostTrip] = []
        if slot is not None:
            assert row.units_raw is not None
            write = override_of(slot, 0 if alone else variant.held.units_raw + gift_raw, int(row.units_raw))
            self._ghost = [GhostTrip(network, pin, purse, ghost_buy, sale, write) for sale in self._sales]
        ghosts = ("", ghost_of(purse.wallet, network.reader)) if _tells_history(variant, self._sales) else ()
        self._history = [HistoryTrip(network, pin, purse, buy, self._sales[0], ghost, ghost_buy) for ghost in ghosts]
        self.simulations: list[Simulation] = [trip.simulation for trip in (*self._own, *self._ghost, *self._history)]
        self._state: HolderStateTrips | None = None
        self._words: tuple[WordKept, ...] = ()
        self._state_writes: tuple[SlotWrite, ...] = ()
        if slot is not None and sales:
            self._state = HolderStateTrips(network, pin, variant.purse, buy, ghost_buy, slot, variant.held.units_raw + gift_raw + int(row.units_raw or 0))
            self.simulations += self._state.simulations
        self._aged: list[OwnTrip | GhostTrip] = []
        if self._ghost and later_s is not None:
            self._age = partial(GhostTrip, network, pin, purse, ghost_buy, self._sales[0], write, (0, later_s))
            self._aged = [OwnTrip(network, pin, purse, buy, self._sales[0], (0, later_s)), self._age()]
            self.simulations += [trip.simulation for trip in self._aged]
        self._aged_with_words: GhostTrip | None = None
        self._look_again = partial(SecondLook, network, pin, purse, buy)
        self._again: SecondLook | None = None
        self._ghost_alike = True
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
        if self._again:
            return self._again.simulations
        return [self._aged_with_words.simulation] if self._aged_with_words else []

    def hear_again(self, answers: Sequence[Any]) -> None:
        """Judge the second look; one that tells nothing changes nothing."""
        if self._aged_with_words is not None:
            return self._hear_aged(answers)
        assert self._again is not None
        self._keep(self._again.simulations, answers)
        try:
            word = self._again.word([answered(simulation, answer) for simulation, answer in zip(self._again.simulations, answers, strict=True)])
        except (ChainFault, SimulationRefused):
            return
        if word:
            self.verdict = replace(self.verdict, verdict=UNKNOWN if word in (COOLDOWN, COOLDOWN_OR_LOCK) else FLAGGED, cause=word)

    def taken(self, run_id: str, order_id: str, now_ms: int, own: GateTaken | None, outside: tuple[str, ...]) -> tuple[GateTaken, bytes]:
        """Write the gate down; the bytes are the evidence.

        `own` is the gate of our own row: it says whether the exit can be proven where no ghost can buy as a rival does."""
        kept, verdict = dumped(self._kept), self.verdict
        if self.foreign and not self._ghost_alike and verdict.verdict == CLEAR:
            provable, cause = (own.exit_provable, own.exit_cause) if own is not None else (False, HOLDER_STATE)
            verdict = replace(verdict, exit_provable=provable, exit_cause="" if provable else cause or HOLDER_STATE)
        if outside and verdict.verdict == CLEAR:
            verdict = replace(verdict, verdict=FLAGGED, cause=outside[0])
        event = GateTaken(
            run_id=run_id, ts_ms=now_ms, order_id=order_id, ledgers=self._variant.ledgers, route=self._buy.label,
            verdict=verdict.verdict, cause=verdict.cause, exit_provable=verdict.exit_provable, exit_cause=verdict.exit_cause,
            buy_arrival_raw=TokenRaw(verdict.buy_arrival_raw), loss_bps=verdict.loss_bps, sell_route=self._label,
            own_wei=Wei(verdict.own_wei), ghost_wei=Wei(verdict.ghost_wei), digest=sha256_hex(kept), outside=outside,
            kept=self._words or (own.kept if self.foreign and own else ()),
        )  # fmt: skip
        return event, kept

    def _keep(self, simulations: Sequence[Simulation], answers: Sequence[Any]) -> None:
        self._kept += [evidence(simulation, _jsonable(answer)) for simulation, answer in zip(simulations, answers, strict=True)]

    def _judge(self, answers: Sequence[Any], rules: Rules) -> tuple[Verdict, str]:
        if not self._sales:
            return Verdict(UNKNOWN, "no_route_back"), ""
        at_once = len(self.simulations) - len(self._aged)
        try:
            done = [answered(simulation, answer) for simulation, answer in zip(self.simulations[:at_once], answers, strict=False)]
        except SimulationRefused as refused:
            return Verdict(UNKNOWN, refused.word), ""
        count = len(self._sales)
        history = done[count + len(self._ghost) :][: len(self._history)]
        arrivals = self._arrivals(done)
        if self._holding_changes_the_buy(arrivals, history):
            return Verdict(UNKNOWN, HOLDING_CHANGES), ""
        if not arrivals:
            raise ChainFault(STATE_MOVED, "a buy that went through on the board reverts in the gate at the same block")
        own = [trip.sale(simulated) for trip, simulated in zip(self._own, done, strict=False)]
        ghost = [trip.sale(simulated) for trip, simulated in zip(self._ghost, done[count:], strict=False)]
        best = max(range(count), key=lambda index: (own[index].ok, own[index].net_wei, -index))
        verdict = self._judged(arrivals, own[best], ghost[best] if ghost else None, rules.gate_loss_bps_max)
        if not own[best].ok and rules.later_blocks is not None and rules.later_s is not None:
            leap = (rules.later_blocks, rules.later_s) if any(sale.ok for sale in ghost) else None
            self._again = self._look_again(self._sales[best], leap)
        if self.foreign:
            same = [trip.buys_like(simulated, verdict.buy_arrival_raw) for trip, simulated in zip(self._ghost, done[count:], strict=False)]
            self._ghost_alike = not self._ghost or all(same) and self._tells_both(history)
        if verdict.exit_provable and not self._without_history(history):
            verdict = replace(verdict, exit_provable=False, exit_cause=HOLDER_STATE)
        if rules.later_blocks is not None and not self._told(done) and verdict.exit_provable:
            verdict = replace(verdict, exit_provable=False, exit_cause=HOLDER_STATE)
        if verdict.exit_provable and not self._ages_alike(answers[at_once:]):
            verdict = replace(verdict, exit_provable=False, exit_cause=HOLDER_STATE)
        return verdict, self._sales[best].label

    def _ages_alike(self, answers: Sequence[Any]) -> bool:
        """Whether somebody who bought long ago sells as one who never bought; a node that does not tell changes nothing.

        Where not, it is tried again with what the buy wrote about its buyer."""
        try:
            sales = [trip.sale(answered(trip.simulation, answer)) for trip, answer in zip(self._aged, answers, strict=True)]
        except SimulationRefused:
            return True
        if not sales or self._same(*sales):
            return True
        self._old = sales[0]
        self._aged_with_words = self._age(kept=self._state_writes) if self._state_writes else None
        return False

    def _same(self, own: Sale, ghost: Sale) -> bool:
        return alike(own, ghost, HELD_ROUNDING_RAW if self._variant.shares else 0) if own.ok else not ghost.ok

    def _hear_aged(self, answers: Sequence[Any]) -> None:
        """Judge the later sale of one who never bought and of whom what a buy writes is said."""
        trip = self._aged_with_words
        assert trip is not None
        self._keep([trip.simulation], answers)
        try:
            done = answered(trip.simulation, answers[0])
        except (ChainFault, SimulationRefused):
            return
        if self._same(self._old, trip.sale(done)):
            self.verdict = replace(self.verdict, exit_provable=True, exit_cause="")

    def _told(self, done: Sequence[Simulated]) -> bool:
        """Note what the buy wrote about its buyer; false when that is more than later trades can be given."""
        if self._state is None:
            return True
        state: HolderState = self._state.read(done[-len(self._state.simulations) :])
        self._state_writes, self._words = state.writes, words_kept(state.writes)
        return not state.untold

    def _tells_both(self, history: Sequence[Simulated]) -> bool:
        """Whether a rival's transaction could be sent a second time, so that two pasts could be compared at all."""
        later = [trip.later(simulated) for trip, simulated in zip(self._history, history, strict=True)]
        return all(each.buy.brought is not None and each.sale.brought is not None for each in later)

    def _arrivals(self, done: Sequence[Simulated]) -> set[int]:
        """What the buys brought; none at all when a wallet without its holding cannot buy."""
        try:
            return {trip.arrival_raw(simulated) for trip, simulated in zip(self._own, done, strict=False)}
        except ChainFault as fault:
            if not self._lightened or fault.reason != STATE_MOVED:
                raise
            return set()

    def _holding_changes_the_buy(self, arrivals: set[int], history: Sequence[Simulated]) -> bool:
        """Whether a wallet without its holding is brought something else, as two answers say alike: then it is the token's doing."""
        if not self._lightened or not self._history or arrivals == {int(self._row.arrival_raw or 0)}:
            return False
        told = self._history[0].first_raw(history[0])
        return arrivals == (set() if told is None else {told})

    def _without_history(self, done: Sequence[Simulated]) -> bool:
        """Whether the wallet's past changes nothing; shares are rounded wherever they are counted out."""
        if not self._history:
            return True
        own, ghost = (trip.later(simulated) for trip, simulated in zip(self._history, done, strict=True))
        rounding_raw = HELD_ROUNDING_RAW + int(self._row.arrival_raw or 0) // ROUNDING_PART if self._variant.shares else 0
        return is_without_history(own, ghost, rounding_raw)

    def _judged(self, arrivals: set[int], own: Sale, ghost: Sale | None, loss_bps_max: int) -> Verdict:
        board_arrival = int(self._row.arrival_raw or 0)
        differing = next((arrival for arrival in arrivals if arrival != board_arrival), board_arrival)
        rounding_raw = HELD_ROUNDING_RAW if self._variant.shares else 0
        return verdict_of(self._variant.size_raw, board_arrival, differing, own, ghost, loss_bps_max, rounding_raw)


def _tells_history(variant: Variant, sales: Sequence[Route]) -> bool:
    """Whether two histories can be compared; with shares in hand they cannot, since a buy then brings the wallet more than a ghost."""
    slot = variant.held.slot
    return slot is not None and not (slot.shares and variant.held.units_raw) and bool(sales) and sales[0].amount > 1


def _touched(purse: Purse, token: str) -> bool:
    return any(token[2:] in tx.data for tx in purse.prefix)


def _without(purse: Purse, slot: BalanceSlot) -> Purse:
    """The wallet without what it held of the token: then the sale of what arrived cannot be paid out of that."""
    others = tuple(write for write in purse.writes if (write.contract, write.slot) != (slot.contract, slot.slot))
    return replace(purse, writes=(*others, slot.write(0)))


def _reverse_first(buy: Route, sales: Sequence[Route]) -> list[Route]:
    """Sales over the buy's own pools before any others, and those over all of them first: a buy may be split, and its sale not."""
    back = {hop.pool.key for hop in buy.hops}
    pools = {route.label: {hop.pool.key for hop in route.hops} for route in sales}
    return sorted(sales, key=lambda route: (pools[route.label] != back, not pools[route.label] <= back))


def _jsonable(answer: Any) -> Any:
    return answer if isinstance(answer, (list, dict)) else str(answer)
