"""The honeypot gate: can what a buy brings be sold again, and can a paper wallet prove it later?

Two simulations at the buy's own block. In the first the wallet buys and, one block and one second later, sells what
arrived. In the second a ghost buys the same and the wallet gets the amount by override, then sells. A token whose two sales
differ by one wei keeps state per holder that no override carries: its exit is unprovable.
Source: 001 §2.2, §5.4; design §6, ONC-08, ONC-11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from chain.address import derived
from chain.balance_slot import BalanceSlot
from chain.header import Header
from chain.network import Network
from chain.router import Route
from chain.simulate import AMOUNT_MAX, NATIVE_LOG, Simulated, Simulation, SlotWrite, logged_net, revert_word
from chain.trade import BALANCE_READ_MAX, INCONSISTENT, Purse, crossed, route_txs, shown_wei
from ledgers.errors import ChainFault

CLEAR, FLAGGED, UNKNOWN = "CLEAR", "FLAGGED", "UNKNOWN"
BPS_WHOLE = 10_000
HELD_ROUNDING_RAW = 8
"""How far the holders of shares may differ before the two sales: shares are rounded once per order of a decision."""


@dataclass(frozen=True, slots=True)
class Sale:
    """What selling the arrival brought."""

    ok: bool
    reason: str
    net_wei: int
    """ETH difference with gas; 0 when it reverted."""
    gross_wei: int
    held_raw: int | None = None
    """Token units that the wallet held before the sale; none when the token does not tell."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says. Units as in the journal's `GateTaken`."""

    verdict: str
    cause: str = ""
    exit_provable: bool = False
    exit_cause: str = ""
    buy_arrival_raw: int = 0
    loss_bps: int = -1
    own_wei: int = 0
    ghost_wei: int = 0


def ghost_of(wallet: str, reader: str) -> str:
    """The address that buys in the wallet's place; as little known as the reader's."""
    return derived(f"ghost of {wallet} for {reader}")


def another_randao(pin: Header) -> str:
    """A random word that no other trip sees: what a token does by chance must not look like what it does."""
    return "0x" + hashlib.sha256(f"chance at {pin.block_hash}".encode()).hexdigest()


class OwnTrip:
    """The wallet buys, then sells what arrived, one block and one second later, or after a leap of more blocks and seconds."""

    def __init__(self, network: Network, pin: Header, purse: Purse, buy: Route, sale: Route, leap: tuple[int, int] = (0, 0)) -> None:
        self._price = pin.base_fee_wei
        sim = self.simulation = Simulation(network, pin)
        wallet, token = purse.wallet, buy.token
        sim.block(balances_wei={wallet: shown_wei(purse.eth_wei, [*purse.prefix, buy.swap], self._price)}, writes=purse.writes)
        self._prefix = [sim.send(wallet, tx) for tx in purse.prefix]
        self._before = sim.token_balance(token, wallet)
        self._buy = sim.send(wallet, buy.swap)
        self._after = sim.token_balance(token, wallet)
        self._sale = _SaleBlock(sim, purse, buy, sale, self._price, leap=leap)

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


class GhostTrip:
    """A ghost buys; the wallet holds the amount by override and sells it, one block and one second later or after a leap.

    What the ghost was brought is read where its transaction is a foreign one, made for it by changing the address."""

    def __init__(
        self, network: Network, pin: Header, purse: Purse, ghost_buy: Route, sale: Route, write: SlotWrite, leap: tuple[int, int] = (0, 0),
        kept: Sequence[SlotWrite] = (),
    ) -> None:  # fmt: skip
        """Prepare the trip; `kept` is what a buy writes about its buyer beside the balance, where that is set too."""
        sim = self.simulation = Simulation(network, pin)
        wallet, ghost, price = purse.wallet, ghost_of(purse.wallet, network.reader), pin.base_fee_wei
        sent, randao = [*purse.prefix, ghost_buy.swap], another_randao(pin)
        sim.block(balances_wei=dict.fromkeys((wallet, ghost), shown_wei(purse.eth_wei, sent, price)), writes=purse.writes, randao=randao)
        self._prefix = [sim.send(wallet, tx) for tx in purse.prefix]
        before = None if ghost_buy.hops else sim.token_balance(ghost_buy.token, ghost)
        self._buy = sim.send(ghost, ghost_buy.swap)
        self._balances = None if before is None else (before, sim.token_balance(ghost_buy.token, ghost))
        self._sale = _SaleBlock(sim, purse, ghost_buy, sale, price, (write, *kept), randao, leap)

    def buys_like(self, done: Simulated, arrival_raw: int) -> bool:
        """Whether the ghost was brought what the wallet is; not asked of our own routes, which depend on nobody's address."""
        if self._balances is None:
            return True
        if not done[self._buy].ok:
            return False
        try:
            before, after = (done.amount(handle, BALANCE_READ_MAX) for handle in self._balances)
        except LookupError:
            return False
        return after - before == arrival_raw

    def sale(self, done: Simulated) -> Sale:
        if not done[self._buy].ok:
            return Sale(False, "ghost cannot buy", 0, 0)
        return self._sale.read(done)


class _SaleBlock:
    def __init__(
        self, sim: Simulation, purse: Purse, buy: Route, sale: Route, price: int, writes: tuple[SlotWrite, ...] = (), randao: str = "",
        leap: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        self._network, self._route, self._price = sim.network, sale, price
        self._wallet, txs = purse.wallet, route_txs(sale, purse.prefix)
        wallet = self._wallet
        left_wei = purse.eth_wei - buy.swap.value_wei
        sim.block(balances_wei={wallet: shown_wei(left_wei, txs, price)}, writes=writes, randao=randao, leap=leap)
        self._held = sim.token_balance(sale.token, wallet)
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
        return Sale(True, "", net, gross, self._tokens(done))

    def _tokens(self, done: Simulated) -> int | None:
        try:
            return done.amount(self._held, BALANCE_READ_MAX)
        except LookupError:
            return None


def verdict_of(spend_wei: int, board_arrival_raw: int, arrival_raw: int, own: Sale, ghost: Sale | None, loss_bps_max: int, rounding_raw: int = 0) -> Verdict:
    """Judge one buy-and-sell.

    Units: wei; `arrival_raw` token units, by as many of which as `rounding_raw` the two holders may differ. `ghost` is None
    when the balance slot is not known.
    Raises: ChainFault when the gate's buy is not the board's buy."""
    if arrival_raw != board_arrival_raw or not 0 < arrival_raw < AMOUNT_MAX:
        raise ChainFault(INCONSISTENT, f"the same buy at the same block brought {board_arrival_raw}, then {arrival_raw}")
    if not own.ok:
        only_holders = "holder_state" if ghost is not None and ghost.ok else ""
        return Verdict(FLAGGED, f"sale {own.reason}", exit_cause=only_holders, buy_arrival_raw=arrival_raw)
    lost_wei = spend_wei - own.gross_wei
    loss_bps = -(-lost_wei * BPS_WHOLE // spend_wei)
    flagged = lost_wei * BPS_WHOLE > loss_bps_max * spend_wei
    exit_cause = "slot" if ghost is None else "" if alike(own, ghost, rounding_raw) else "holder_state"
    return Verdict(
        FLAGGED if flagged else CLEAR,
        "round_trip_loss" if flagged else "",
        not exit_cause,
        exit_cause,
        arrival_raw,
        loss_bps,
        own.net_wei,
        ghost.net_wei if ghost else 0,
    )


def alike(own: Sale, ghost: Sale, rounding_raw: int = 0) -> bool:
    """Whether the override made the wallet the holder that a real buy makes.

    Units: token units that both may differ by before the sale."""
    if not ghost.ok or ghost.net_wei != own.net_wei or own.held_raw is None or ghost.held_raw is None:
        return False
    return abs(ghost.held_raw - own.held_raw) <= rounding_raw


def override_of(slot: BalanceSlot, held_units: int, arrived_units: int) -> SlotWrite:
    """What the wallet's slot holds after the buy."""
    return slot.write(held_units + arrived_units)
