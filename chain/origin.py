"""The origin: whether what a foreign transaction brought came out of pools, and for no more than was given.

A rival may fill from a stock of its own, or add to what is traded, which no fill on paper uses up, whatever its answer says.
So known pools alone are counted, over all of them together, by their own Swap logs and by the tokens' Transfer logs alike:
what is bought came out of them, what is sold went into them up to what was given, and nothing else went in that they did not
pay out before. What a pool pays or takes beside its swaps (a surplus, liquidity, claims) is no market's doing.
Source: 001 §5.1; Swap events of Uniswap v2 pairs, v3 pools and the v4 PoolManager, and of their forks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from chain.calldata import hex_bytes, uint_at
from chain.logs import signed, topic
from chain.network import Network
from chain.pools import NATIVE, Pool
from chain.router import Route
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, CallAnswer
from chain.swaps import V2_SWAP, V3_BURN, V3_MINT, V3_SWAP, V4_LIQUIDITY_MODIFIED, V4_SWAP, swap_topic

LIQUIDITY_MOVED = frozenset({
    topic("Mint(address,uint256,uint256)"), topic("Burn(address,uint256,uint256,address)"), V3_MINT, V3_BURN,
    topic("Collect(address,address,int24,int24,uint128,uint128)"), V4_LIQUIDITY_MODIFIED, topic("Donate(bytes32,address,uint256,uint256)"),
})  # fmt: skip
"""Events by which liquidity comes or goes."""
TOKENS_MAX, PAIRS_MAX = 4, 12
"""How many tokens one unknown place may have moved, and pairs that its factories are asked about."""


@dataclass(frozen=True, slots=True)
class ForeignRoute(Route):
    """A rival's transaction: the way it takes is not known, only which pools there are."""

    pools: Mapping[str, Pool] = field(default_factory=dict, compare=False)
    """Every pool that is known, by address or v4 id."""


def from_pools(network: Network, swap: CallAnswer, route: Route, given: int, arrival: int) -> bool:
    """Say whether swaps in known pools alone brought what arrived, for no more than was given.

    Units: `given` and `arrival` in wei or token units, by the route's side."""
    known: Mapping[str, Pool] = route.pools if isinstance(route, ForeignRoute) else {}
    swaps = [(pool, log) for log in swap.logs if (pool := _pool_of(network, log, known))]
    places = {str(log["address"]).lower() for _, log in swaps} | {pool.hooks for pool, _ in swaps if pool.hooks != NATIVE}
    if any(log["topics"][:1] and log["topics"][0] in LIQUIDITY_MOVED and str(log["address"]).lower() in places for log in swap.logs):
        return False
    swapped = [each for pool, log in swaps for each in _paid(pool, log)]
    return all(_is_fair(network, paid, route, given, arrival) for paid in (swapped, _moved(swap, places)))


def _is_fair(network: Network, paid: Sequence[tuple[str, int]], route: Route, given: int, arrival: int) -> bool:
    """Whether what pools paid, less what they took in, by token, covers what arrived for what was given, and nothing else came in."""
    net: dict[str, int] = {}
    for token, amount in paid:
        hub = network.weth if token in (NATIVE, NATIVE_LOG) else token
        net[hub] = net.get(hub, 0) + amount
    ether, token = net.pop(network.weth, 0), net.pop(route.token, 0)
    out, taken = (token, -ether) if route.side == "buy" else (ether, -token)
    return out >= arrival and taken <= given and all(amount >= 0 for amount in net.values())


def _moved(swap: CallAnswer, places: set[str]) -> list[tuple[str, int]]:
    """What left pools, and with a minus what came to them, by the tokens' own Transfer logs."""
    moved = []
    for log in swap.logs:
        topics = log["topics"]
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC:
            out = ("0x" + topics[1][26:] in places) - ("0x" + topics[2][26:] in places)
            moved.append((str(log["address"]).lower(), out * (uint_at(hex_bytes(log.get("data")), 0) or 0)))
    return moved


def pairs_unknown(network: Network, swap: CallAnswer, route: Route) -> set[tuple[str, ...]]:
    """Pairs of tokens that swaps in unknown places may have traded: what moved in and out there, at most a few.

    Shapes: each pair in order."""
    known: Mapping[str, Pool] = route.pools if isinstance(route, ForeignRoute) else {}
    shapes = {V2_SWAP, V3_SWAP, V4_SWAP, *(fork.swap_topic for fork in network.forks if fork.swap_topic)}
    places = {str(log["address"]).lower() for log in swap.logs if log["topics"][:1] and log["topics"][0] in shapes and _pool_of(network, log, known) is None}
    moved: dict[str, set[str]] = {place: set() for place in places}
    for log in swap.logs:
        topics, token = log["topics"], str(log["address"]).lower()
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC:
            for place in {"0x" + topics[1][26:], "0x" + topics[2][26:]} & places:
                moved[place].add(NATIVE if token == NATIVE_LOG else token)
    pairs = {pair for tokens in moved.values() if len(tokens) <= TOKENS_MAX for pair in combinations(sorted(tokens), 2)}
    return set(sorted(pairs)[:PAIRS_MAX])


def _pool_of(network: Network, log: Any, known: Mapping[str, Pool]) -> Pool | None:
    """The known pool whose swap a log tells of; None for anything else."""
    topics, emitter = log["topics"], str(log["address"]).lower()
    if topics[:1] == [V4_SWAP]:
        pool = known.get(topics[1]) if emitter == network.v4_pool_manager and len(topics) > 1 else None
        return pool if pool is not None and pool.venue == "v4" else None
    pool = known.get(emitter)
    wanted = {"v2": V2_SWAP, "v3": swap_topic(pool)}.get(pool.venue) if pool is not None else None
    return pool if wanted is not None and topics[:1] == [wanted] else None


def _paid(pool: Pool, log: Any) -> tuple[tuple[str, int], tuple[str, int]]:
    """What a pool paid out in one swap, less what it took in, of its two tokens."""
    data = hex_bytes(log.get("data"))
    first, second, third, fourth = (uint_at(data, at) or 0 for at in range(4))
    if pool.venue == "v2":
        return (pool.token0, third - first), (pool.token1, fourth - second)
    sign = -1 if pool.venue == "v3" else 1  # v3 logs the pool's own balance, v4 the swapper's
    return (pool.token0, sign * signed(first)), (pool.token1, sign * signed(second))
