"""The honeypot gate: can what a buy brings be sold again?

A simulation at the buy's own block: the wallet buys and, one block and one second later, sells what arrived.
Source: 001 §2.2, §5.4; design §6, ONC-08.
"""

from __future__ import annotations

from dataclasses import dataclass

from chain.header import Header
from chain.network import Network
from chain.router import Route
from chain.simulate import AMOUNT_MAX, NATIVE_LOG, Simulated, Simulation, logged_net, revert_word
from chain.trade import BALANCE_READ_MAX, INCONSISTENT, Purse, crossed, route_txs, shown_wei
from ledgers.errors import ChainFault

CLEAR, FLAGGED, UNKNOWN = "CLEAR", "FLAGGED", "UNKNOWN"
BPS_WHOLE = 10_000


@dataclass(frozen=True, slots=True)
class Sale:
    """What selling the arrival brought."""

    ok: bool
    reason: str
    net_wei: int
    """ETH difference with gas; 0 when it reverted."""
    gross_wei: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says. Units as in the journal's `GateTaken`."""

    verdict: str
    cause: str = ""
    buy_arrival_raw: int = 0
    loss_bps: int = -1
    own_wei: int = 0


class OwnTrip:
    """The wallet buys, then sells what arrived, one block and one second later, or after a leap of more blocks and seconds."""

    def __init__(
        self, network: Network, pin: Header, purse: Purse, buy: Route, sale: Route, leap: tuple[int, int] = (0, 0), paid: frozenset[str] = frozenset()
    ) -> None:  # fmt: skip
        """Prepare the trip; approvals that are `paid` were written before and are not sent again."""
        self._price = pin.base_fee_wei
        sim = self.simulation = Simulation(network, pin)
        wallet, token = purse.wallet, buy.token
        sim.block(balances_wei={wallet: shown_wei(purse.eth_wei, [*purse.prefix, buy.swap], self._price)}, writes=purse.writes)
        self._prefix = [sim.send(wallet, tx) for tx in purse.prefix]
        self._before = sim.token_balance(token, wallet)
        self._buy = sim.send(wallet, buy.swap)
        self._after = sim.token_balance(token, wallet)
        self._sale = _SaleBlock(sim, purse, buy, sale, self._price, leap, paid)

    def arrival_raw(self, done: Simulated) -> int:
        """Token units that the buy brought. Raises: ChainFault when it does not go through as it did before."""
        if not all(done[handle].ok for handle in (*self._prefix, self._buy)):
            raise ChainFault("state_moved", "a buy that went through on the board reverts in the gate at the same block")
        try:
            return done.amount(self._after, BALANCE_READ_MAX) - done.amount(self._before, BALANCE_READ_MAX)
        except LookupError:
            raise ChainFault("state_moved", "a balance that was readable on the board is not in the gate") from None

    def sale(self, done: Simulated) -> Sale:
        return self._sale.read(done)


class _SaleBlock:
    def __init__(self, sim: Simulation, purse: Purse, buy: Route, sale: Route, price: int, leap: tuple[int, int], paid: frozenset[str]) -> None:
        self._network, self._route, self._price = sim.network, sale, price
        self._wallet, txs = purse.wallet, route_txs(sale, purse.prefix, paid)
        wallet = self._wallet
        left_wei = purse.eth_wei - buy.swap.value_wei
        sim.block(balances_wei={wallet: shown_wei(left_wei, txs, price)}, leap=leap)
        self._before = sim.eth_balance(wallet)
        self._sends = [sim.send(wallet, tx) for tx in txs]
        self._after = sim.eth_balance(wallet)

    def read(self, done: Simulated) -> Sale:
        net = done.eth_wei(self._after) - done.eth_wei(self._before)
        gross = net + sum(done[handle].gas_used for handle in self._sends) * self._price
        if gross != sum(logged_net(done[handle], NATIVE_LOG, self._wallet) for handle in self._sends):
            if self._route.hooked:
                return Sale(False, INCONSISTENT, 0, 0)  # a hook may give what a node does not trace; other sales stand
            raise ChainFault(INCONSISTENT, "balances and transfer trace of a sale differ")
        for handle in self._sends:
            if not done[handle].ok:
                return Sale(False, revert_word(done[handle]), 0, 0)
        if not crossed(self._network, self._route, done[self._sends[-1]]):
            raise ChainFault(INCONSISTENT, "a swap went through without a word from its pools")
        return Sale(True, "", net, gross)


def verdict_of(spend_wei: int, board_arrival_raw: int, arrival_raw: int, own: Sale, loss_bps_max: int) -> Verdict:
    """Judge one buy-and-sell.

    Units: wei; `arrival_raw` token units. Raises: ChainFault when the gate's buy is not the board's buy."""
    if arrival_raw != board_arrival_raw or not 0 < arrival_raw < AMOUNT_MAX:
        raise ChainFault(INCONSISTENT, f"the same buy at the same block brought {board_arrival_raw}, then {arrival_raw}")
    if not own.ok:
        return Verdict(FLAGGED, f"sale {own.reason}", buy_arrival_raw=arrival_raw)
    lost_wei = spend_wei - own.gross_wei
    loss_bps = -(-lost_wei * BPS_WHOLE // spend_wei)
    flagged = lost_wei * BPS_WHOLE > loss_bps_max * spend_wei
    return Verdict(FLAGGED if flagged else CLEAR, "round_trip_loss" if flagged else "", arrival_raw, loss_bps, own.net_wei)
