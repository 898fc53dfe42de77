"""Holder state: what a buy writes about its buyer beside the balance.

A paper wallet that sells later has its balance by override; what the buy wrote elsewhere (the time of the last buy, a list
of buyers, a count) must be set too, or a token or hook that taxes buyers late takes it for somebody who never bought. So the
wallet buys, a ghost buys the same, and after each the storage of the token and of the route's hooks is read by a program put
in their place: words under the wallet's name in mappings at the usual positions, and the first words of the contract, which
are under nobody's name. What differs is about the buyer. Mappings further down, contracts that those call and words that
only a sale writes are not seen.
Source: 001 §2.2; design §6; ONC-10, ONC-11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chain import calldata
from chain.balance_slot import BalanceSlot
from chain.header import Header
from chain.honeypot import ghost_of
from chain.network import Network
from chain.pools import NATIVE
from chain.router import Route
from chain.simulate import Handle, Simulated, Simulation, SlotWrite
from chain.trade import Purse, shown_wei

UNNAMED = 512
"""Words below are under nobody's name: the first 256 of the contract, then the last word of the list that each may be the length of."""
KEYS_MAX, CONTRACTS_MAX = 4, 8
CARRIED_MAX = 16
READ_GAS = 4_000_000
"""Reading a contract takes 2,700,000 at most."""
WORDS_CODE = (
    "0x60805f355f5b61010081106100e657505f5b601c811061002257607f1983016080f35b80601782116100d5575b61006f61006361004d61004684875f5260205260405f2090565b968761"
    "0161565b61005e86855f5260205260405f2090565b610161565b855f5260205f20610161565b936020915b36831061008657505050600101610011565b9092946100c960209161005e6100"
    "bc856100af889a98359461005e8b875f5260205260405f2090565b935f5260205260405f2090565b865f5260205260405f2090565b94019193949290610074565b50603260161982010260"
    "010161002c565b916100f19083610133565b918054815f5263ffffffff5f1982011115610110575b50600101610005565b6001919361012c915f199060205f200101548561010001610190"
    "565b9290610107565b919091805b600181830310610146575050565b909260016101578192865487610190565b9401919050610138565b919091805b600381830310610174575050565b90"
    "926001610186600392865487610190565b9401919050610166565b908093929182946101a057505050565b82526020820152604001915056"
)
"""Code that returns slot and value of every word that is not zero, compiled from `holder_state.yul`."""


@dataclass(frozen=True, slots=True)
class HolderState:
    """What a buy left behind about its buyer."""

    writes: tuple[SlotWrite, ...] = ()
    """Words under the wallet's name, and bits beside its balance, as they are after the buy."""
    untold: bool = False
    """True when there is more than can be set by override, or nothing could be read."""


class HolderStateTrips:
    """The wallet's buy and a ghost's, and what storage then says."""

    def __init__(self, network: Network, pin: Header, purse: Purse, buy: Route, ghost_buy: Route, slot: BalanceSlot, units_raw: int) -> None:
        """Prepare both; `units_raw` is what the balance slot holds after the wallet's buy."""
        self._balance, self._shares = slot.write(units_raw), slot.shares
        hooks = [hop.pool.hooks for hop in buy.hops if hop.pool.hooks != NATIVE]
        self._contracts = tuple(dict.fromkeys((buy.token, slot.contract, *hooks)))
        self._asked = ["0x" + "".join(_words_of(purse.wallet, buy, contract)) for contract in self._contracts]
        buys = ((purse.wallet, buy), (ghost_of(purse.wallet, network.reader), ghost_buy))
        self._trips = [self._trip(Simulation(network, pin), purse, sender, route) for sender, route in buys]
        self.simulations: list[Simulation] = [sim for sim, _, _ in self._trips]

    def _trip(self, sim: Simulation, purse: Purse, sender: str, buy: Route) -> tuple[Simulation, Handle, list[Handle]]:
        shown = dict.fromkeys((purse.wallet, sender), shown_wei(purse.eth_wei, [*purse.prefix, buy.swap], sim.pin.base_fee_wei))
        sim.block(balances_wei=shown, writes=purse.writes)
        for tx in purse.prefix:
            sim.send(purse.wallet, tx)
        bought = sim.send(sender, buy.swap)
        sim.block(balances_wei={}, code=dict.fromkeys(self._contracts, WORDS_CODE))
        return sim, bought, [sim.view(contract, asked, READ_GAS) for contract, asked in zip(self._contracts, self._asked, strict=True)]

    def read(self, done: Sequence[Simulated]) -> HolderState:
        """What the buy wrote about the wallet."""
        own, ghost = (self._words(simulated, trip) for simulated, trip in zip(done, self._trips, strict=True))
        if own is None or ghost is None or len(self._contracts) > CONTRACTS_MAX:
            return HolderState(untold=True)
        place = (self._balance.contract, self._balance.slot)
        beside = 0 if self._shares else own.get(place, self._balance.value) - self._balance.value
        differing = sorted(key for key in own.keys() | ghost.keys() if own.get(key, 0) != ghost.get(key, 0) and key != place)
        low = any(int(slot, 16) < UNNAMED for _, slot in differing)
        if len(differing) > CARRIED_MAX:
            return HolderState(untold=True)
        writes = tuple(SlotWrite(contract, slot, own.get((contract, slot), 0)) for contract, slot in differing if int(slot, 16) >= UNNAMED)
        if beside > 0:
            writes += (SlotWrite(*place, beside, beside=True),)
        return HolderState(untold=True) if low or beside < 0 else HolderState(writes)

    def _words(self, done: Simulated, trip: tuple[Simulation, Handle, list[Handle]]) -> dict[tuple[str, str], int] | None:
        """Words by contract and slot; None when the buy did not go through or something was not read."""
        _, bought, reads = trip
        if not all(done[handle].ok for handle in (bought, *reads)):
            return None
        found = {}
        for contract, handle in zip(self._contracts, reads, strict=True):
            data = done[handle].data
            for at in range(0, len(data) - len(data) % 64, 64):
                found[contract, "0x" + data[at : at + 32].hex()] = int.from_bytes(data[at + 32 : at + 64])
        return found


def _words_of(wallet: str, buy: Route, contract: str) -> list[str]:
    """The wallet, and what mappings may be keyed by beside it: the token and the pools, of a hook its own."""
    own = [hop.pool.key for hop in buy.hops if hop.pool.hooks == contract]
    pools = dict.fromkeys(own or [hop.pool.key for hop in buy.hops])
    return [calldata.address_word(wallet), *(key[2:].rjust(64, "0") for key in (buy.token, *pools))][: KEYS_MAX + 1]
