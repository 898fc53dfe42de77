"""The second look: why somebody who just bought cannot sell: it is too early, it is too much at once, or it is for good.

Asked only where the buyer's own sale reverts: the same sale long after the buy, where somebody who never bought can sell;
and the sale of a half and of a tenth. A cooldown counted in blocks cannot be waited out where contracts see another number
than the simulated one: Nitro tells them an estimate of the number of the chain beneath.
Source: 001 §5.4; ONC-08.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.header import Header
from chain.honeypot import OwnTrip
from chain.network import Network
from chain.router import Route, route_of
from chain.simulate import Simulated, Simulation
from chain.trade import Purse

COOLDOWN, COOLDOWN_OR_LOCK, SALE_SIZE_LIMITED = "cooldown", "cooldown_or_lock", "sale_size_limited"
PARTS = (2, 10)
"""A half and a tenth of the sale are tried."""
TELLER = "0x00000000000000000000000000000000005eade6"
TELL_NUMBER = "0x435f5260205ff3"
"""Code that returns the block's number as contracts see it."""


def smaller_sales(network: Network, sale: Route, wallet: str) -> list[Route]:
    """The same sale of a half and of a tenth."""
    return [route_of(network, sale, wallet, sale.amount // part) for part in PARTS if sale.amount // part]


class SecondLook:
    """The simulations, and what they say."""

    def __init__(
        self, network: Network, pin: Header, purse: Purse, buy: Route, sale: Route, leap: tuple[int, int] | None, paid: frozenset[str] = frozenset()
    ) -> None:  # fmt: skip
        """Prepare it; `leap` are blocks and seconds that pass before the later sale, none where it need not be tried."""
        self._leap = leap
        self._later = [OwnTrip(network, pin, purse, buy, sale, leap, paid)] if leap else []
        self._smaller = [OwnTrip(network, pin, purse, buy, part, paid=paid) for part in smaller_sales(network, sale, purse.wallet)]
        self.simulations: list[Simulation] = [trip.simulation for trip in (*self._later, *self._smaller)]
        if leap:
            self._number = _Number(network, pin, leap)
            self.simulations.append(self._number.simulation)

    def word(self, done: Sequence[Simulated]) -> str:
        """Name why the sale reverts; empty when it is for good. Raises: ChainFault."""
        if any(trip.sale(simulated).ok for trip, simulated in zip(self._later, done, strict=False)):
            return COOLDOWN
        if any(trip.sale(simulated).ok for trip, simulated in zip(self._smaller, done[len(self._later) :], strict=False)):
            return SALE_SIZE_LIMITED
        return COOLDOWN_OR_LOCK if self._leap and not self._number.moves(done[-1]) else ""


class _Number:
    """Whether contracts see a simulated block's own number."""

    def __init__(self, network: Network, pin: Header, leap: tuple[int, int]) -> None:
        self._blocks = leap[0]
        sim = self.simulation = Simulation(network, pin)
        code = {TELLER: TELL_NUMBER}
        sim.block(balances_wei={}, code=code)
        self._first = sim.view(TELLER, "0x")
        sim.block(balances_wei={}, code=code, leap=leap)
        self._later = sim.view(TELLER, "0x")

    def moves(self, done: Simulated) -> bool:
        return done.word(self._later) - done.word(self._first) == self._blocks + 1
