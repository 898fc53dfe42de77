"""The origin: whether what a foreign transaction brought came out of pools, and for no more than was given.

A rival may fill from a stock of its own, or add to what is traded, which no fill on paper uses up, whatever its answer says.
So only pools that are known count as pools, and over all of them together: what is bought came out of them, what is sold
went into them up to what was given, nothing else went in from outside, and no liquidity was moved beside the swaps. Read
from the Transfer logs of the tokens and of native ETH, beside the pools' own Swap logs.
Source: 001 §5.1; events of Uniswap v2 pairs, v3 pools and the v4 PoolManager, and of their forks.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from chain.calldata import hex_bytes, uint_at
from chain.logs import topic
from chain.network import Network
from chain.router import Route
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, CallAnswer
from chain.swaps import V2_SWAP, V3_BURN, V3_MINT, V3_SWAP, V4_LIQUIDITY_MODIFIED, V4_SWAP

V2_MINT, V2_BURN = topic("Mint(address,uint256,uint256)"), topic("Burn(address,uint256,uint256,address)")
V3_COLLECT = topic("Collect(address,address,int24,int24,uint128,uint128)")
V4_DONATE = topic("Donate(bytes32,address,uint256,uint256)")
LIQUIDITY_MOVED = frozenset({V2_MINT, V2_BURN, V3_MINT, V3_BURN, V3_COLLECT, V4_LIQUIDITY_MODIFIED, V4_DONATE})


@dataclass(frozen=True, slots=True)
class ForeignRoute(Route):
    """A rival's transaction: the way it takes is not known, only which pools there are."""

    pools: Container[str] = field(default=(), compare=False)
    """Every pool that is known, by address or v4 id."""


def from_pools(network: Network, swap: CallAnswer, route: Route, given: int, arrival: int) -> bool:
    """Say whether known pools alone brought what arrived, for no more than was given.

    Units: `given` and `arrival` in wei or token units, by the route's side."""
    known: Container[str] = route.pools if isinstance(route, ForeignRoute) else ()
    logs = [log for log in swap.logs if log["topics"]]
    pools = _swapping(network, logs, known)
    if not pools or any(log["topics"][0] in LIQUIDITY_MOVED and _emitter(log) in pools for log in logs):
        return False
    paid = _paid(network, logs, pools)
    ether, token = paid.pop(network.weth, 0), paid.pop(route.token, 0)
    out, taken = (token, -ether) if route.side == "buy" else (ether, -token)
    return out >= arrival and taken <= given and all(amount >= 0 for amount in paid.values())


def _swapping(network: Network, logs: list[Any], known: Container[str]) -> set[str]:
    """Known pools that logged a swap; the v4 manager only when each of its swaps was in one."""
    manager = network.v4_pool_manager
    shapes = {V2_SWAP, V3_SWAP, *(fork.swap_topic for fork in network.forks if fork.swap_topic)}
    pools = {_emitter(log) for log in logs if log["topics"][0] in shapes and _emitter(log) in known}
    v4 = [log["topics"][1:2] for log in logs if log["topics"][0] == V4_SWAP and _emitter(log) == manager]
    return pools | {manager} if manager and v4 and all(each and each[0] in known for each in v4) else pools


def _paid(network: Network, logs: list[Any], pools: set[str]) -> dict[str, int]:
    """What pools paid out less what they took in, by token; native ETH counts as wrapped."""
    paid: dict[str, int] = {}
    for log in logs:
        topics, token = log["topics"], _emitter(log)
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC:
            token = network.weth if token == NATIVE_LOG else token
            out = ("0x" + topics[1][26:] in pools) - ("0x" + topics[2][26:] in pools)
            paid[token] = paid.get(token, 0) + out * (uint_at(hex_bytes(log.get("data")), 0) or 0)
    return paid


def _emitter(log: Any) -> str:
    return str(log["address"]).lower()
