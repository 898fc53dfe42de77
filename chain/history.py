"""History: whether what a holder did before changes what its next trades bring.

A paper wallet has no past: an override gives it a balance, but no count of its sales, no time of its last buy and no entry
on anybody's list. So the gate lets the wallet buy, sell, buy again and sell again, a block apart, and lets a ghost do the
first two in its place; where the wallet's last two differ, no later fill of this token could be proven.
Source: 001 §2.2; ONC-10, ONC-11.
"""

from __future__ import annotations

from dataclasses import dataclass

from chain.header import Header
from chain.honeypot import another_randao
from chain.network import Network
from chain.router import Route, route_of
from chain.simulate import Handle, Simulated, Simulation
from chain.trade import BALANCE_READ_MAX, Purse, route_txs, shown_wei


@dataclass(frozen=True, slots=True)
class Trade:
    """What one transaction brought before gas; nothing when it reverted or the token does not tell."""

    brought: int | None
    """Token units of a buy, wei of a sale."""
    gas: int


@dataclass(frozen=True, slots=True)
class Later:
    """A wallet's second buy and its second sale."""

    buy: Trade
    sale: Trade


class HistoryTrip:
    """The wallet's second buy and second sale, after a first buy and sale of its own, or of `ghost`."""

    def __init__(
        self, network: Network, pin: Header, purse: Purse, buy: Route, sale: Route, ghost: str = "", ghost_buy: Route | None = None
    ) -> None:
        """Prepare the trades; `ghost_buy` is the ghost's own, where it is not our router's."""
        wallet, first = purse.wallet, ghost or purse.wallet
        again = route_of(network, sale, wallet, sale.amount // 2)
        sent = [*purse.prefix, buy.swap, *route_txs(sale), buy.swap, *route_txs(again)]
        self._price, self._randao = pin.base_fee_wei, another_randao(pin) if ghost else ""
        self._shown = dict.fromkeys((wallet, first), shown_wei(purse.eth_wei, sent, self._price))
        sim = self.simulation = Simulation(network, pin)
        sim.block(balances_wei=self._shown, writes=purse.writes, randao=self._randao)
        for tx in purse.prefix:
            sim.send(wallet, tx)
        self._first = self._bought(first, ghost_buy or route_of(network, buy, first) if ghost else buy)
        self._sold(first, route_of(network, sale, first))
        sim.block(balances_wei=self._shown, randao=self._randao)
        self._buy = self._bought(wallet, buy)
        self._sale = self._sold(wallet, again)

    def _bought(self, wallet: str, buy: Route) -> tuple[Handle, Handle, Handle]:
        sim = self.simulation
        return sim.token_balance(buy.token, wallet), sim.send(wallet, buy.swap), sim.token_balance(buy.token, wallet)

    def _sold(self, wallet: str, sale: Route) -> tuple[Handle, Handle, Handle]:
        sim, (*approvals, swap) = self.simulation, route_txs(sale)
        sim.block(balances_wei=self._shown, randao=self._randao)
        for approval in approvals:
            sim.send(wallet, approval)
        return sim.eth_balance(wallet), sim.send(wallet, swap), sim.eth_balance(wallet)

    def first_raw(self, done: Simulated) -> int | None:
        """Token units that the first buy brought."""
        return self._buy_of(done, self._first).brought

    def later(self, done: Simulated) -> Later:
        """What came after. Raises: ChainFault for an amount of ETH that cannot be."""
        return Later(self._buy_of(done, self._buy), self._sale_of(done, self._sale))

    def _buy_of(self, done: Simulated, bought: tuple[Handle, Handle, Handle]) -> Trade:
        before, swap, after = bought
        if not done[swap].ok:
            return Trade(None, 0)
        try:
            return Trade(done.amount(after, BALANCE_READ_MAX) - done.amount(before, BALANCE_READ_MAX), done[swap].gas_used)
        except LookupError:
            return Trade(None, done[swap].gas_used)

    def _sale_of(self, done: Simulated, sold: tuple[Handle, Handle, Handle]) -> Trade:
        before, swap, after = sold
        if not done[swap].ok:
            return Trade(None, 0)
        gas = done[swap].gas_used
        return Trade(done.eth_wei(after) - done.eth_wei(before) + gas * self._price, gas)


def is_without_history(own: Later, ghost: Later, rounding_raw: int = 0) -> bool:
    """Say whether a wallet with a past trades as one without.

    A past may make a buy cheaper in gas, since what it left behind is not written for the first time again: then a fill is
    charged too much, never too little. Units: `rounding_raw` is how many token units an arrival may differ by."""
    if own.sale != ghost.sale or own.buy.gas > ghost.buy.gas:
        return False
    if own.buy.brought is None or ghost.buy.brought is None:
        return own.buy.brought == ghost.buy.brought
    return abs(own.buy.brought - ghost.buy.brought) <= rounding_raw
