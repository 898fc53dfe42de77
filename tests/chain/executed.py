"""What a route was simulated to bring beside what its transactions really bring in the very block that was simulated."""

from __future__ import annotations

from dataclasses import dataclass

from chain.devnet.calls import Tx, encode
from chain.devnet.devnet import Devnet
from chain.network import Network
from chain.router import Route, buy_routes, sell_routes
from chain.trade import PROVEN, Outcome, route_txs
from tests.chain.market import WALLET, MarketStall

ETH = 10**18
FUNDS_WEI = 3 * ETH


@dataclass(frozen=True, slots=True)
class Pair:
    """One route, simulated and executed."""

    route: Route
    simulated: Outcome
    ok: bool
    arrived: int
    gas: tuple[int, ...]
    """Of each transaction, the swap last."""

    @property
    def alike(self) -> bool:
        """Whether both went through with the same arrival and gas, or neither did."""
        if self.simulated.status != PROVEN:
            return not self.ok
        approved = sum(gas for _, gas in self.simulated.approve_gas)
        found = self.simulated.arrival_raw, self.simulated.swap_gas, approved
        return self.ok and found == (self.arrived, self.gas[-1], sum(self.gas[:-1]))


async def pairs_of(chain: Devnet, side: str, token: str, amount: int, *, owner: str = "", network: Network | None = None) -> list[Pair]:
    """Simulate every candidate of an order of the wallet, then execute each alone in the block that was simulated.

    A sale's tokens come from `owner`, or are there already. The chain is put back."""
    start = chain.snapshot()
    chain.fund(WALLET, FUNDS_WEI)
    if owner:
        chain.send(Tx(sender=owner, to=token, data=encode("transfer(address,uint256)", WALLET, amount)))
    here = chain.snapshot()
    stall = await MarketStall.on(chain)
    stall.network = network or stall.network
    routes = (buy_routes if side == "buy" else sell_routes)(stall.network, stall.graph, token, amount, WALLET)
    held = _tokens(chain, token) if side == "sell" else 0
    outcomes = await stall.outcomes(*[await stall.trade(route, held) for route in routes]) if routes else []
    await stall.door.close()
    chain.revert(here)
    found = []
    for route, outcome in zip(routes, outcomes, strict=True):
        mark = chain.snapshot()
        found.append(Pair(route, outcome, *_executed(chain, route)))
        chain.revert(mark)
    chain.revert(start)
    return found


def _executed(chain: Devnet, route: Route) -> tuple[bool, int, tuple[int, ...]]:
    before = _eth(chain), _tokens(chain, route.token)
    txs = [Tx(sender=WALLET, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=tx.gas_limit) for tx in route_txs(route)]
    receipts = chain.send(*txs)
    gas = tuple(int(receipt["gasUsed"], 16) for receipt in receipts)
    paid = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
    ok = all(receipt["status"] == "0x1" for receipt in receipts)
    arrived = _tokens(chain, route.token) - before[1] if route.side == "buy" else _eth(chain) - before[0] + paid
    return ok, arrived, gas


def _eth(chain: Devnet) -> int:
    return int(chain.node.call("eth_getBalance", [WALLET, "latest"]), 16)


def _tokens(chain: Devnet, token: str) -> int:
    return int(chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", WALLET)}, "latest"]), 16)
