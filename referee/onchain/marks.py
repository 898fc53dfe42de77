"""Marks: what a book is worth when all of it is sold in simulation, one holding after another, net of gas.

A mark and the final liquidation are one function. A sale that reverts or brings less than its gas counts 0 and is named; an
exit that cannot be proven counts its quote less gas and is named too. A fault is not a value.
Source: 001 §2.2; ONC-12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from chain.balance_slot import BalanceSlot
from chain.gas import APPROVE_GAS_ESTIMATE, fee_wei, swap_gas_estimate
from chain.header import Header
from chain.network import Network
from chain.router import Route
from chain.simulate import NATIVE_LOG, Handle, Simulated, Simulation, SlotWrite, logged_net, revert_word
from chain.trade import BALANCE_READ_MAX, INCONSISTENT, UNREPEATABLE, Echo, repeated, route_txs, shown_wei
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry
from referee.onchain.book import Book, Holding, asset_of, entry_of
from referee.onchain.credit import GAS, MARKET
from referee.onchain.events import HoldingMark, PositionMark
from referee.onchain.liquidity_events import LiquidityAccrued
from referee.onchain.position import COUNTED
from referee.onchain.position_marks import WayOut, claimed_wei, split


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
    """Token units that the wallet holds; 0 when the token does not tell."""
    slot: BalanceSlot | None
    """None when its exit cannot be proven."""
    cause: str
    routes: tuple[Route, ...]
    route: Route | None
    misplaced: bool = False
    """True when the wallet was not found to hold what the known slot was set to: a sale then proves nothing, but bounds its claim."""
    dead: set[str] = field(default_factory=set)
    """Routes that reverted."""
    reason: str = ""
    quotes: dict[str, int] = field(default_factory=dict)
    """ETH that each route's quoter promises."""
    tried: dict[str, int] = field(default_factory=dict)
    """ETH that a sale over a route really brought."""
    gross_wei: int = 0
    swap_gas: int = 0
    approve_gas: int = 0
    isolated: bool = False
    """Whether it is sold by itself, because a holding beside it spoiled the sale of all."""
    spoiled: bool = False
    """Whether its own sale by itself could not be told either."""

    def alone(self) -> None:
        """Begin again, sold by itself."""
        self.isolated, self.dead, self.reason, self.gross_wei = True, set(), "", 0

    @property
    def provable(self) -> bool:
        return self.slot is not None and not self.cause


def sale_of(holding: Holding, amount_raw: int | None, slot: BalanceSlot | None, routes: tuple[Route, ...], remembered: str | None) -> Sale:
    """Prepare a holding's sale on the route that was best the last time, else on the one that promises most."""
    if amount_raw is None:
        return Sale(holding, 0, None, "slot", (), None, reason="the token does not tell what the shares come to")
    cause = holding.cause or ("" if slot else "slot")
    route = next((route for route in routes if route.label == remembered), routes[0] if routes else None)
    return Sale(holding, amount_raw, slot, cause, routes, route)


def in_order_of_value(sales: Sequence[Sale], last_wei: Mapping[str, int]) -> list[Sale]:
    """Largest last mark first; unmarked ones after, by address."""
    return sorted(sales, key=lambda sale: (-last_wei.get(sale.holding.token, -1), sale.holding.token))


class SellOut:
    """All provable sales of a book in one simulated block; approvals that are paid already are only set up."""

    def __init__(
        self, network: Network, pin: Header, wallet: str, eth_wei: Wei, sales: Sequence[Sale], approved: frozenset[str], echo: Echo | None = None,
        kept: Sequence[SlotWrite] = (),
    ) -> None:  # fmt: skip
        self._wallet, self._price = wallet, pin.base_fee_wei
        self._sales = [sale for sale in sales if sale.provable and sale.route]
        sim = self.simulation = Simulation(network, pin)
        self._echo = echo.begin(sim) if echo else []
        txs = [tx for sale in self._sales if sale.route for tx in route_txs(sale.route)]
        writes = [*(sale.slot.write(int(sale.holding.units_raw)) for sale in sales if sale.slot), *kept]
        sim.block(balances_wei={wallet: shown_wei(int(eth_wei), txs, self._price)}, writes=writes)
        for approval in (approval for sale in self._sales if sale.route for approval in sale.route.approvals if approval.key in approved):
            sim.send(wallet, approval.tx)
        self._held = [sim.token_balance(sale.holding.token, wallet) for sale in self._sales]
        self._eth = [sim.eth_balance(wallet)]
        self._sends: list[list[Handle]] = []
        for sale in self._sales:
            assert sale.route is not None
            unpaid = [approval.tx for approval in sale.route.approvals if approval.key not in approved]
            self._sends.append([sim.send(wallet, tx) for tx in (*unpaid, sale.route.swap)])
            self._eth.append(sim.eth_balance(wallet))

    def spoil(self) -> bool:
        """Note on sales by themselves that what they do cannot be told; True when another route should be tried."""
        return any([_spoiled(sale, "it leaves no gas, or no sense, to its own sale") for sale in self._sales])

    def read(self, done: Simulated) -> bool:
        """Note on each sale what it brought; True when a route died and another should be tried.

        Raises: ChainFault when the node contradicts itself, or an earlier trade does not go through again."""
        if not repeated(done, self._echo):
            raise ChainFault(UNREPEATABLE, "an earlier trade of the run does not go through again")
        retry = False
        eth = [done.eth_wei(handle) for handle in self._eth]
        for index, sale in enumerate(self._sales):
            if self._unprovable(done, sale, self._held[index]):
                continue
            gained = eth[index + 1] - eth[index]
            retry |= self._note(done, sale, self._sends[index], gained)
        return retry

    def _unprovable(self, done: Simulated, sale: Sale, handle: Handle) -> bool:
        try:
            held = done.amount(handle, BALANCE_READ_MAX)
        except LookupError:
            held = -1
        sale.misplaced = held != sale.amount_raw
        if held < sale.amount_raw:
            sale.cause = "slot"
        return held < sale.amount_raw

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
            sale.dead.add(sale.route.label)
            sale.reason = revert_word(failed) if failed else "nothing_arrived"
            return _take_next(sale)
        *approvals, swap = sends
        sale.reason, sale.gross_wei, sale.swap_gas = "", gross, done[swap].gas_used
        sale.approve_gas = sum(done[handle].gas_used for handle in approvals)
        sale.tried[sale.route.label] = gross
        return False


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


def marked(sale: Sale, approved: frozenset[str], gas_price_wei: Wei) -> HoldingMark:
    """Write down what a sale brought, or would by its quote."""
    status, reason = _status(sale)
    route = sale.route
    gross, gas = sale.gross_wei, fee_wei(sale.swap_gas + sale.approve_gas, gas_price_wei)
    if status == "unprovable":
        assert route is not None
        unpaid = sum(approval.key not in approved for approval in route.approvals)
        quote = sale.quotes.get(route.label, 0)
        gross = min(quote, sale.gross_wei) if sale.provable else quote
        gas = fee_wei(swap_gas_estimate(len(route.hops)) + unpaid * APPROVE_GAS_ESTIMATE, gas_price_wei)
    value = max(gross - int(gas), 0)
    if status in COUNTED and value == 0:
        status, reason = "below_gas", f"{gross} wei arrive, gas is {gas}"
    return HoldingMark(
        token=sale.holding.token,
        amount_raw=TokenRaw(sale.amount_raw),
        status=status,
        reason=reason,
        route=route.label if route else "",
        gross_wei=Wei(gross),
        gas_wei=gas,
        value_wei=Wei(value),
    )


def _status(sale: Sale) -> tuple[str, str]:
    if sale.route is None:
        return "no_route", sale.reason or "no pool reaches this token"
    if not sale.provable:
        return "unprovable", sale.cause
    if sale.route.label in sale.dead:
        return "reverted", sale.reason
    return ("unprovable", "slot") if sale.misplaced else ("proven", "")


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
    book: Book, ledgers: tuple[str, ...], sales: Sequence[Sale], gas_price_wei: Wei, digest: str, evidence: bytes, out: WayOut | None = None
) -> Valued:
    """Sum a book's marks; `out` is how its positions are closed, where it has any."""
    marks = tuple(marked(sale, book.approvals, gas_price_wei) for sale in sales)
    if out is None or not out.exits:
        value = sum((mark.value_wei for mark in marks), book.eth_wei)
        return Valued(ledgers, book.eth_wei, marks, value, unproven_wei(marks), sell_out_entry(ledgers, book, marks), digest, evidence)
    parts = split(book, out.whole, marks, out.exits, gas_price_wei)
    value = sum((mark.value_wei for mark in (*parts.holdings, *parts.positions)), book.eth_wei)
    unproven = sum((claimed_wei(mark) for mark in parts.positions), unproven_wei(parts.holdings))
    entry = sell_out_entry(ledgers, book, parts.holdings, parts.moves)
    return Valued(ledgers, book.eth_wei, parts.holdings, value, unproven, entry, digest, evidence, parts.positions, tuple(out.accrued.events), out.accrued.blobs)


def unproven_wei(marks: Iterable[HoldingMark]) -> Wei:
    """Part of marks that rests on claims."""
    return sum((mark.value_wei for mark in marks if mark.status == "unprovable"), Wei(0))
