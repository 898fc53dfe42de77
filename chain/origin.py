"""The origin: whether what a foreign transaction brought came out of pools, and for no more than was given.

A rival may fill from a stock of its own, or add to what is traded, which no fill on paper uses up, whatever its answer says.
So known pools alone are counted, and each only where what moved in and out of it is what its Swap logs say: a surplus that is
skimmed off or put in, liquidity that comes or goes and claims that are paid out beside a swap are no market's doing. Over all
of them together what is bought came out, what is sold went in up to what was given, and nothing else went in.
Source: 001 §5.1; events of Uniswap v2 pairs, v3 pools and the v4 PoolManager, and of their forks.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
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

Moves = dict[tuple[str, str], int]
"""Base units paid out less those taken in, by place and token."""


@dataclass(frozen=True, slots=True)
class ForeignRoute(Route):
    """A rival's transaction: the way it takes is not known, only which pools there are."""

    pools: Mapping[str, Pool] = field(default_factory=dict, compare=False)
    """Every pool that is known, by address or v4 id."""


def from_pools(network: Network, swap: CallAnswer, route: Route, given: int, arrival: int) -> bool:
    """Say whether swaps in known pools alone brought what arrived, for no more than was given.

    Units: `given` and `arrival` in wei or token units, by the route's side."""
    known: Mapping[str, Pool] = route.pools if isinstance(route, ForeignRoute) else {}
    logs = _logs(swap)
    swapped, hooks = _swapped(network, logs, known)
    places = {network.v4_pool_manager, *(at for at in _partners(logs) if at in known)}
    moved = _moved(logs, places, hooks)
    if not _as_logged(network, swapped, moved) or any(log["topics"][0] in LIQUIDITY_MOVED and _emitter(log) in places for log in logs):
        return False
    paid: dict[str, int] = {}
    for (_, token), amount in moved.items():
        hub = network.weth if token == NATIVE else token
        paid[hub] = paid.get(hub, 0) + amount
    ether, token = paid.pop(network.weth, 0), paid.pop(route.token, 0)
    out, taken = (token, -ether) if route.side == "buy" else (ether, -token)
    return out >= arrival and taken <= given and all(amount >= 0 for amount in paid.values())


def _logs(swap: CallAnswer) -> list[Any]:
    """Its logs, but for those without a topic or with topics that are none."""
    return [log for log in swap.logs if log["topics"] and all(isinstance(word, str) for word in log["topics"])]


def _partners(logs: Sequence[Any]) -> Iterator[str]:
    """Everybody who sent or received something, and who logged."""
    for log in logs:
        yield _emitter(log)
        if len(log["topics"]) == 3 and log["topics"][0] == TRANSFER_TOPIC:
            yield from ("0x" + word[26:] for word in log["topics"][1:])


def _swapped(network: Network, logs: Sequence[Any], known: Mapping[str, Pool]) -> tuple[Moves, set[str]]:
    """What known pools paid out less what they took in, by their Swap logs; and their hooks."""
    swapped: Moves = {}
    hooks: set[str] = set()
    for log in logs:
        if pool := _pool_of(network, log, known):
            hooks |= {pool.hooks} - {NATIVE}
            for token, amount in _paid(pool, log):
                at = _emitter(log), token
                swapped[at] = swapped.get(at, 0) + amount
    return swapped, hooks


def _moved(logs: Sequence[Any], places: Container[str | None], hooks: set[str]) -> Moves:
    """The same by the Transfer logs of the tokens and of native ETH; what a pool's hook takes is not paid out to anybody."""
    moved: Moves = {}
    for log in logs:
        topics, token = log["topics"], _emitter(log)
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC:
            sender, receiver = ("0x" + word[26:] for word in topics[1:])
            amount, what = uint_at(hex_bytes(log.get("data")), 0) or 0, NATIVE if token == NATIVE_LOG else token
            for place, sign, other in ((sender, 1, receiver), (receiver, -1, sender)):
                if place in places and other not in hooks:
                    moved[place, what] = moved.get((place, what), 0) + sign * amount
    return moved


def _as_logged(network: Network, swapped: Moves, moved: Moves) -> bool:
    """Whether nothing moved beside the swaps. The v4 manager may keep what a hook takes, and pays out no more than was swapped."""
    at_manager = [at for at in moved if at[0] == network.v4_pool_manager]
    return all(moved[at] <= swapped.get(at, 0) for at in at_manager) and all(
        moved.get(at, 0) == swapped.get(at, 0) for at in moved.keys() | swapped.keys() if at[0] != network.v4_pool_manager
    )


def said_bytes(swap: CallAnswer) -> int:
    """How much a transaction answered and logged."""
    texts = [swap.call.get("returnData"), *(log.get("data") for log in swap.logs)]
    return sum(len(text) for text in texts if isinstance(text, str)) // 2


def pairs_unknown(network: Network, swap: CallAnswer, route: Route) -> set[tuple[str, ...]]:
    """Pairs of tokens that swaps in unknown places may have traded: what moved in and out there, at most a few.

    Shapes: each pair in order."""
    known: Mapping[str, Pool] = route.pools if isinstance(route, ForeignRoute) else {}
    shapes = {V2_SWAP, V3_SWAP, V4_SWAP, *(fork.swap_topic for fork in network.forks if fork.swap_topic)}
    logs = _logs(swap)
    places = {_emitter(log) for log in logs if log["topics"][0] in shapes and _pool_of(network, log, known) is None}
    moved: dict[str, set[str]] = {place: set() for place in places}
    for log in logs:
        topics, token = log["topics"], _emitter(log)
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC:
            for place in {"0x" + topics[1][26:], "0x" + topics[2][26:]} & places:
                moved[place].add(NATIVE if token == NATIVE_LOG else token)
    pairs = {pair for tokens in moved.values() if len(tokens) <= TOKENS_MAX for pair in combinations(sorted(tokens), 2)}
    return set(sorted(pairs)[:PAIRS_MAX])


def _pool_of(network: Network, log: Any, known: Mapping[str, Pool]) -> Pool | None:
    """The known pool whose swap a log tells of; None for anything else."""
    topics, emitter = log["topics"], _emitter(log)
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


def _emitter(log: Any) -> str:
    return str(log["address"]).lower()
