"""Shares: what holdings that a token keeps in shares come to in token units, read in the very block they would be sold in.

Such a token's balances change by themselves, so a book counts shares and every order and mark asks anew.
Source: design §6.
"""

from __future__ import annotations

from collections.abc import Mapping

from chain.balance_slot import BalanceSlot
from chain.header import Header
from chain.network import Network
from chain.simulate import AMOUNT_MAX, Simulated, Simulation
from chain.trade import UNREPEATABLE, Purse, repeated, shown_wei
from ledgers.errors import ChainFault
from referee.onchain.book import Holding


class Amounts:
    """One simulation that tells the amounts behind all shares of a wallet, after what was filled before."""

    def __init__(self, network: Network, pin: Header, purse: Purse, held: Mapping[Holding, BalanceSlot | None]) -> None:
        self._held = held
        sim = self.simulation = Simulation(network, pin)
        self._echo = purse.echo.begin(sim) if purse.echo else []
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, purse.prefix, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        self._reads = {holding: sim.token_balance(holding.token, purse.wallet) for holding, slot in held.items() if _told(holding, slot)}

    @property
    def empty(self) -> bool:
        """True when nothing need be asked."""
        return not self._reads

    def read(self, done: Simulated | None) -> dict[str, int]:
        """Token units by token; a holding in shares that cannot be told is left out, because its shares say nothing.

        Raises: ChainFault when the node contradicts itself."""
        if done is not None and not repeated(done, self._echo):
            raise ChainFault(UNREPEATABLE, "an earlier trade of the run does not go through again")
        if done is not None and not all(done[handle].ok for handle in self._prefix):
            raise ChainFault("state_moved", "a filled order of the same decision no longer goes through at its own block")
        told = {holding.token: int(holding.units_raw) for holding in self._held if not holding.shares}
        for holding, handle in self._reads.items() if done is not None else ():
            try:
                amount = done.amount(handle, 2**256)
            except LookupError:
                continue
            if amount < AMOUNT_MAX:
                told[holding.token] = amount
        return told


def _told(holding: Holding, slot: BalanceSlot | None) -> bool:
    return holding.shares and slot is not None and slot.shares
