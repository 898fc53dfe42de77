"""Marks: what a book is worth when all of it is sold in simulation, one holding after another, net of gas.

A mark and the final liquidation are one function. A sale that reverts, brings less than its gas or cannot pay for it counts 0
and is named; what nobody can tell counts 0 too, but on permissive, which may claim it. A fault is not a value.
Source: 001 §2.2; ONC-11, ONC-12, ONC-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from chain.gas import APPROVE_GAS_ESTIMATE, VIEW_GAS_LIMIT, fee_wei, least_gas_of, swap_gas_estimate
from chain.header import Header
from chain.network import Network
from chain.router import Approval, Route, Tx
from chain.simulate import NATIVE_LOG, Handle, Simulated, Simulation, logged_net, revert_word
from chain.trade import INCONSISTENT, PROVEN, UNPROVABLE, UNREPEATABLE, Echo, Purse, gas_headroom_wei, repeated, shown_wei
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry
from referee.onchain.book import Book, Holding, asset_of, entry_of
from referee.onchain.credit import GAS, MARKET
from referee.onchain.events import HoldingMark, PositionMark
from referee.onchain.liquidity_events import LiquidityAccrued
from referee.onchain.position import COUNTED
from referee.onchain.position_marks import WayOut, claimed_wei, split

WRAP = "0xd0e30db0"
"""Calldata of WETH's `deposit()`."""
UNKNOWN = "unknown"
"""Status of a holding whose sale nobody can tell, on a ledger where claims count for nothing."""


@dataclass(frozen=True, slots=True)
class Valued:
    """A book sold out in simulation, for the ledgers that hold the same."""

    ledgers: tuple[str, ...]
    eth_wei: Wei
    holdings: tuple[HoldingMark, ...]
    """In the order of their sale."""
    value_wei: Wei
    """ETH plus what the holdings would bring."""
    unproven_wei: Wei
    entry: Entry
    """The sales as postings, for a liquidation."""
    digest: str
    evidence: bytes
    positions: tuple[PositionMark, ...] = ()
    accrued: tuple[LiquidityAccrued, ...] = ()
    """What positions earned up to the block, to be recorded before the value."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """Logs behind that, by SHA-256."""


@dataclass(slots=True)
class Sale:
    """One holding on its way out."""

    holding: Holding
    amount_raw: int
    """Token units that the wallet holds, as the token says."""
    cause: str
    """Why its sale cannot be tried, else empty."""
    routes: tuple[Route, ...]
    route: Route | None
    dead: set[str] = field(default_factory=set)
    """Routes that reverted."""
    approving: set[str] = field(default_factory=set)
    """Routes over which approvals that were paid before are sent again, since they no longer stand."""
    reason: str = ""
    quotes: dict[str, int] = field(default_factory=dict)
    """ETH that each route's quoter promises."""
    tried: dict[str, int] = field(default_factory=dict)
    """ETH that a sale over a route really brought."""
    gross_wei: int = 0
    swap_gas: int = 0
    """The most that its swap used by any reading of shared words."""
    swap_gas_least: int = 0
    approve_gas: int = 0
    isolated: bool = False
    """Whether it is sold by itself, because a holding beside it spoiled the sale of all."""
    spoiled: bool = False
    """Whether its own sale by itself could not be told either."""
    objection: str = ""
    """Why what it brings is not known, where the readings of shared words or of chance do not agree."""
    worst_wei: int = 0
    """The least that any reading brought."""

    def alone(self) -> None:
        """Begin again, sold by itself."""
        self.isolated, self.dead, self.approving, self.reason, self.gross_wei = True, set(), set(), "", 0

    @property
    def provable(self) -> bool:
        return not self.cause

    @property
    def charged_gas(self) -> int:
        """What its swap is charged: more than the most of all readings by as much as they differ."""
        return 2 * self.swap_gas - self.swap_gas_least

    def unpaid(self, approved: frozenset[str]) -> tuple[Approval, ...]:
        """Approvals that its sale sends."""
        if self.route is None:
            return ()
        return tuple(each for each in self.route.approvals if each.key not in approved or self.route.label in self.approving)


def sale_of(holding: Holding, amount_raw: int, cause: str, routes: tuple[Route, ...], remembered: str | None) -> Sale:
    """Prepare a holding's sale on the route that was best the last time, else on the one that promises most."""
    route = next((route for route in routes if route.label == remembered), routes[0] if routes else None)
    return Sale(holding, amount_raw, cause, routes, route, reason="" if amount_raw else "the wallet holds none of it any more")


def in_order_of_value(sales: Sequence[Sale], last_wei: Mapping[str, int]) -> list[Sale]:
    """Largest last mark first; unmarked ones after, by address."""
    return sorted(sales, key=lambda sale: (-last_wei.get(sale.holding.token, -1), sale.holding.token))


class SellOut:
    """All sales of a book that can be tried, in one simulated block, by one reading of what the wallet wrote."""

    def __init__(self, network: Network, pin: Header, purse: Purse, sales: Sequence[Sale], approved: frozenset[str], chance: int = 0) -> None:
        """Prepare the sales; approvals that the book paid are not sent again, unless they were found not to stand."""
        wallet, self._wallet, self._price, self._approved = purse.wallet, purse.wallet, pin.base_fee_wei, approved
        self._sales = [sale for sale in sales if sale.provable and sale.route]
        sim = self.simulation = Simulation(network, pin, chance=chance)
        self._echo = purse.echo.begin(sim) if purse.echo else []
        unpaid = [[approval.tx for approval in sale.unpaid(approved)] for sale in self._sales]
        txs = [tx for sale, approvals in zip(self._sales, unpaid, strict=True) if sale.route for tx in (*approvals, sale.route.swap)]
        sim.block(balances_wei={wallet: shown_wei(purse.eth_wei, txs, self._price)}, writes=purse.writes)
        self._eth = [sim.eth_balance(wallet)]
        self._sends: list[list[Handle]] = []
        for sale, approvals in zip(self._sales, unpaid, strict=True):
            assert sale.route is not None
            self._sends.append([sim.send(wallet, tx) for tx in (*approvals, sale.route.swap)])
            self._eth.append(sim.eth_balance(wallet))

    def spoil(self) -> bool:
        """Note on sales by themselves that what they do cannot be told; True when another route should be tried."""
        return any([_spoiled(sale, "it leaves no gas, or no sense, to its own sale") for sale in self._sales])

    def read(self, done: Simulated) -> bool:
        """Note on each sale what it brought; True when a route died and another should be tried.

        Raises: ChainFault when the node contradicts itself, or an earlier trade does not go through again."""
        if not repeated(done, self._echo):
            raise ChainFault(UNREPEATABLE, "an earlier trade of the run does not go through again")
        eth = [done.eth_wei(handle) for handle in self._eth]
        notes = [self._note(done, sale, sends, after - before) for sale, sends, before, after in zip(self._sales, self._sends, eth, eth[1:], strict=False)]
        return any(notes)

    def compare(self, done: Simulated | None, word: str) -> None:
        """Note on each sale where this reading brings something else than the sale was found to."""
        for sale, sends, (before, after) in zip(self._sales, self._sends, pairwise(self._eth), strict=True):
            if sale.spoiled:
                continue
            gross = None
            if done is not None and all(done[handle].ok for handle in sends):
                gross = done.eth_wei(after) - done.eth_wei(before) + sum(done[handle].gas_used for handle in sends) * self._price
            if gross is not None and done is not None:
                used = done[sends[-1]].gas_used
                sale.swap_gas, sale.swap_gas_least = max(sale.swap_gas, used), min(sale.swap_gas_least, used)
            if (gross or 0) != sale.gross_wei:
                worst = max(min(gross or 0, sale.worst_wei if sale.objection else sale.gross_wei), 0)
                sale.objection, sale.worst_wei = sale.objection or word, worst

    def _note(self, done: Simulated, sale: Sale, sends: list[Handle], gained: int) -> bool:
        assert sale.route is not None
        gross = gained + sum(done[handle].gas_used for handle in sends) * self._price
        if gross != sum(logged_net(done[handle], NATIVE_LOG, self._wallet) for handle in sends):
            sale.dead.add(sale.route.label)
            if sale.route.hooked and _take_next(sale):
                return True  # a hook may give what a node does not trace; other pools are tried
            if sale.isolated:
                return _spoiled(sale, "balances and transfer trace of its sale differ")
            raise ChainFault(INCONSISTENT, "balances and transfer trace of a sale differ")
        failed = next((done[handle] for handle in sends if not done[handle].ok), None)
        if failed is not None or gross <= 0:
            if sale.route.label not in sale.approving and any(each.key in self._approved for each in sale.route.approvals):
                sale.approving.add(sale.route.label)
                return True  # approvals that were paid before may no longer stand
            sale.dead.add(sale.route.label)
            sale.reason = revert_word(failed) if failed else "nothing_arrived"
            return _take_next(sale)
        *approvals, swap = sends
        sale.reason, sale.gross_wei = "", gross
        sale.swap_gas = sale.swap_gas_least = done[swap].gas_used
        sale.approve_gas = sum(done[handle].gas_used for handle in approvals)
        sale.tried[sale.route.label] = gross
        return False


class Wrapping:
    """One wei wrapped by the wallet: whether a node tells what nothing but itself can spoil."""

    def __init__(self, network: Network, pin: Header, wallet: str) -> None:
        self._wallet, self._price = wallet, pin.base_fee_wei
        wrap = Tx(network.weth, WRAP, VIEW_GAS_LIMIT, 1)
        sim = self.simulation = Simulation(network, pin)
        sim.block(balances_wei={wallet: gas_headroom_wei([wrap], self._price)})
        self._before, self._sent, self._after = sim.eth_balance(wallet), sim.send(wallet, wrap), sim.eth_balance(wallet)

    def told(self, done: Simulated) -> bool:
        """Whether balances and transfer trace both say that it went. Raises: ChainFault."""
        gained = done.eth_wei(self._after) - done.eth_wei(self._before) + done[self._sent].gas_used * self._price
        return done[self._sent].ok and gained == logged_net(done[self._sent], NATIVE_LOG, self._wallet) == -1


def _spoiled(sale: Sale, reason: str) -> bool:
    """Give a holding up that is sold by itself: what its sale brings cannot be told on any route, so it counts for nothing."""
    assert sale.route is not None
    sale.dead |= {route.label for route in sale.routes} | {sale.route.label}
    sale.reason, sale.spoiled, sale.gross_wei = reason, True, 0
    return False


def _take_next(sale: Sale) -> bool:
    alive = [route for route in sale.routes if route.label not in sale.dead]
    sale.gross_wei = 0
    if not alive:
        return False
    sale.route = max(alive, key=lambda route: (sale.quotes.get(route.label, 0), -sale.routes.index(route)))
    return True


class Quotes:
    """What the quoters promise for every route of every holding that crosses no hook, read beside the sales."""

    def __init__(self, network: Network, pin: Header, sales: Sequence[Sale], echo: Echo | None = None) -> None:
        sim = self.simulation = Simulation(network, pin)
        if echo:
            echo.begin(sim)
        sim.block(balances_wei={})
        self._asked = [
            (sale, route, sim.view(quoter.to, quoter.data)) for sale in sales for route in sale.routes if (quoter := route.sound_quoter)
        ]

    def read(self, done: Simulated) -> None:
        for sale, route, handle in self._asked:
            amount = route.payable(route.quoted(done[handle].data)) if done[handle].ok else None
            if amount is not None:
                sale.quotes[route.label] = amount


def better_routes(sales: Iterable[Sale]) -> bool:
    """Move each sale to the living route that is expected to bring most; True when any moved.

    What a route really brought stands against what its quoter said, which a hook may flatter; others are expected to bring as
    much of what is said of them as the routes without hooks that were tried."""
    moved = False
    for sale in sales:
        expected = {route.label: amount for route in sale.routes if (amount := _expected(sale, route)) is not None}
        if not expected or sale.route is None:
            continue
        best = max(expected, key=lambda label: expected[label])
        if best != sale.route.label and expected[best] > expected.get(sale.route.label, sale.gross_wei):
            sale.route = next(route for route in sale.routes if route.label == best)
            moved = True
    return moved


def _expected(sale: Sale, route: Route) -> int | None:
    """ETH that a living route brought, or may be expected to; None when nothing is said of it."""
    if route.label in sale.dead:
        return None
    if route.label in sale.tried:
        return sale.tried[route.label]
    said = _said(sale, route)
    parts = [(sale.tried[each.label], _said(sale, each)) for each in sale.routes if each.label in sale.tried and not each.hooked]
    shares = [said * gross // of for gross, of in parts if of] if said is not None else []
    return max(shares, default=said)


def _said(sale: Sale, route: Route) -> int | None:
    """What is said of a route: by its quoter, or where it has none and sales are tried, by the pools' states."""
    return sale.quotes.get(route.label, (route.promised or None) if sale.tried and route.sound_quoter is None else None)


def marked(sale: Sale, approved: frozenset[str], gas_price_wei: Wei, eth_wei: int, claims: bool) -> HoldingMark:
    """Write down what a sale brought, or would by its quote where claims count.

    Units: `eth_wei` is what the book has by then to pay its gas with."""
    status, reason = _status(sale, claims)
    gross, gas = sale.gross_wei, fee_wei(sale.charged_gas + sale.approve_gas, gas_price_wei)
    if status == UNPROVABLE:
        gross, gas = _claimed(sale, approved, gas_price_wei)
    if status not in COUNTED:
        gross, gas = 0, Wei(0) if status == UNKNOWN else gas
    needed = fee_wei(least_gas_of(sale.charged_gas) + sale.approve_gas, gas_price_wei)
    if status == PROVEN and int(needed) > eth_wei:
        status, reason, gross = "below_gas", f"its gas of {needed} wei cannot be paid from {eth_wei}", 0
    value = max(gross - int(gas), 0)
    if status in COUNTED and value == 0:
        status, reason = "below_gas", f"{gross} wei arrive, gas is {gas}"
    return HoldingMark(
        token=sale.holding.token,
        amount_raw=TokenRaw(sale.amount_raw),
        status=status,
        reason=reason,
        route=sale.route.label if sale.route else "",
        gross_wei=Wei(gross),
        gas_wei=gas,
        value_wei=Wei(value),
    )


def _claimed(sale: Sale, approved: frozenset[str], gas_price_wei: Wei) -> tuple[int, Wei]:
    """What is claimed for a sale that is not proven, and its gas: the worst reading, or the quote where nothing could be tried."""
    assert sale.route is not None
    if sale.objection:
        return sale.worst_wei, fee_wei(sale.charged_gas + sale.approve_gas, gas_price_wei)
    gas = swap_gas_estimate(len(sale.route.hops)) + len(sale.unpaid(approved)) * APPROVE_GAS_ESTIMATE
    return sale.quotes.get(sale.route.label, 0), fee_wei(gas, gas_price_wei)


def _status(sale: Sale, claims: bool) -> tuple[str, str]:
    if sale.route is None:
        return "no_route", sale.reason or "no pool reaches this token"
    if not sale.provable:
        return (UNPROVABLE, sale.cause) if claims and not sale.holding.shares else (UNKNOWN, sale.cause)
    if sale.objection:
        return (UNPROVABLE, sale.objection) if claims else (UNKNOWN, f"{sale.objection}: {sale.worst_wei} wei by the worst reading")
    if sale.route.label in sale.dead:
        return "reverted", sale.reason
    return PROVEN, ""


def sell_out_entry(ledgers: tuple[str, ...], book: Book, marks: Sequence[HoldingMark], more: Mapping[tuple[str, str], int] = MappingProxyType({})) -> Entry:
    """Book the sales that count, and what positions move; what could not be sold stays in the book at no value."""
    moves: dict[tuple[str, str], int] = {(BOOK, ETH): 0, (MARKET, ETH): 0, (GAS, ETH): 0}
    moves |= more
    for mark in marks:
        holding = book.held(mark.token)
        if mark.status not in COUNTED or holding is None:
            continue
        asset, units = asset_of(holding.token, holding.shares), int(holding.units_raw)
        sale = {(BOOK, ETH): int(mark.gross_wei) - int(mark.gas_wei), (MARKET, ETH): -int(mark.gross_wei), (GAS, ETH): int(mark.gas_wei)}
        for key, amount in (sale | {(BOOK, asset): -units, (MARKET, asset): units}).items():
            moves[key] = moves.get(key, 0) + amount
    return entry_of(ledgers, moves)


def valued(
    book: Book, ledgers: tuple[str, ...], sales: Sequence[Sale], gas_price_wei: Wei, digest: str, evidence: bytes, out: WayOut | None = None, claims: bool = True
) -> Valued:
    """Sum a book's marks; `out` is how its positions are closed, where it has any; with `claims` what is not proven counts too."""
    marks = tuple(_paid_in_order(sales, (out.whole if out else book), gas_price_wei, claims))
    if out is None or not out.exits:
        value = sum((mark.value_wei for mark in marks), book.eth_wei)
        return Valued(ledgers, book.eth_wei, marks, value, unproven_wei(marks), sell_out_entry(ledgers, book, marks), digest, evidence)
    parts = split(book, out.whole, marks, out.exits, gas_price_wei)
    value = sum((mark.value_wei for mark in (*parts.holdings, *parts.positions)), book.eth_wei)
    unproven = sum((claimed_wei(mark) for mark in parts.positions), unproven_wei(parts.holdings))
    entry = sell_out_entry(ledgers, book, parts.holdings, parts.moves)
    return Valued(ledgers, book.eth_wei, parts.holdings, value, unproven, entry, digest, evidence, parts.positions, tuple(out.accrued.events), out.accrued.blobs)


def _paid_in_order(sales: Sequence[Sale], book: Book, gas_price_wei: Wei, claims: bool) -> Iterator[HoldingMark]:
    """Mark sales one after another, each paying its gas from the ETH that the book has by then."""
    eth_wei = int(book.eth_wei)
    for sale in sales:
        mark = marked(sale, book.approvals, gas_price_wei, eth_wei, claims)
        eth_wei += int(mark.value_wei) if mark.status == PROVEN else 0
        yield mark


def unproven_wei(marks: Iterable[HoldingMark]) -> Wei:
    """Part of marks that rests on claims."""
    return sum((mark.value_wei for mark in marks if mark.status == "unprovable"), Wei(0))
