"""Paths: the ways through pools between ETH and a token, and what each promises for a size.

ETH goes in and ETH comes out, directly, through the dollar token, or around: through a token that is no hub. Which ways there are follows from which pools there are
and is worked out once; what they promise follows from cached states and is worked out for every order. A promise ranks a
way and proves nothing.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chain.network import Network
from chain.pools import DYNAMIC_FEE, NATIVE, Pool, PoolGraph, PoolState

FEE_WHOLE_PPM = 1_000_000
STEEP_FEE_PPM = 500_000
"""From this static fee on a pool takes at least half of every swap: bait, not a market."""
PAIR_POOLS_MAX, OLDEST_KEPT = 48, 16
"""Most v4 pools of one pair that are looked at, and how many of them for their age; the others for their depth."""
V4_LEGS_MAX = 2
"""Most v4 pools between ETH and the dollar token that ways go through."""
NEIGHBOURS_MAX, WAYS_ROUND_MAX = 4, 2
"""Most pools against tokens that are no hubs that ways go through, and most ways to such a token."""

SWAP_ROUTER_02, V2_ROUTER_02, UNIVERSAL, CURVE = "swap_router_02", "v2_router02", "universal_router", "curve"
"""Shapes of routers; a launchpad's curve trades itself."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One pool crossed in one direction."""

    pool: Pool
    token_in: str
    token_out: str


Path = tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class Router:
    """Who trades a way in one transaction."""

    shape: str
    address: str


@dataclass(frozen=True, slots=True)
class Way:
    """One path with what does not change while its pools stay the same."""

    label: str
    path: Path
    router: Router
    token_pool: str
    """Key of the pool that holds the traded token."""
    made: bool
    """A v4 pool is crossed: anybody can make any number of those."""
    hooked: bool
    steep: bool
    """A pool of it takes half or more by its own fee."""
    foreign: bool
    """Another exchange's."""
    around: bool
    """Through a token that is no hub."""
    born_block: int
    """Birth of the youngest pool crossed: nobody can make a way older than it is."""
    pools: frozenset[str]
    """Keys of the pools crossed."""


def ways_of(network: Network, graph: PoolGraph, side: str, token: str) -> tuple[Way, ...]:
    """Every way to trade a token that some router takes in one transaction, kept until a pool comes or goes."""
    return graph.settled(("ways", side, token), lambda: _ways(network, graph, side, token))


def _ways(network: Network, graph: PoolGraph, side: str, token: str) -> tuple[Way, ...]:
    bought = dict.fromkeys(_paths_from_eth(network, graph, token))
    routed = [(path if side == "buy" else reversed_path(path), router) for path in bought if (router := router_of(network, path)) is not None]
    names = Counter(label_of(network, path) for path, _ in routed)
    return tuple(_way(network, side, path, router, whole=names[label_of(network, path)] > 1) for path, router in routed)


def _way(network: Network, side: str, path: Path, router: Router, *, whole: bool) -> Way:
    pools, hubs = [hop.pool for hop in path], (network.weth, NATIVE, network.usdg)
    return Way(
        label=label_of(network, path, whole=whole), path=path, router=router, token_pool=pools[-1 if side == "buy" else 0].key,
        made=any(pool.venue == "v4" for pool in pools), hooked=any(pool.hooked for pool in pools),
        steep=any(STEEP_FEE_PPM <= pool.fee_ppm < DYNAMIC_FEE for pool in pools), foreign=any(pool.fork for pool in pools),
        around=any(hop.token_out not in hubs for hop in path[:-1]), born_block=max(pool.born_block for pool in pools),
        pools=frozenset(pool.key for pool in pools),
    )  # fmt: skip


def _paths_from_eth(network: Network, graph: PoolGraph, token: str) -> Iterator[Path]:
    if token in (network.weth, NATIVE):
        return
    for ether in (network.weth, NATIVE):
        for pool in _few(graph, graph.pools_between(ether, token), ether):
            yield (Hop(pool, ether, token),)
    if token == network.usdg:
        return
    legs = _legs(network, graph)
    for second in _few(graph, graph.pools_between(network.usdg, token), network.usdg):
        for first in legs:
            if bool(first.pool.fork) == bool(second.fork):
                yield first, Hop(second, network.usdg, token)
    for last in _neighbours(network, graph, token):
        other = last.other(token)
        for way in _ways_round(network, graph, legs, other, last):
            yield *way, Hop(last, other, token)


def _neighbours(network: Network, graph: PoolGraph, token: str) -> list[Pool]:
    """Deepest plain pools of a token against tokens that are no hubs."""
    found = [pool for pool in graph.pools_of(token) if pool.other(token) not in graph.hubs and not pool.fork and not pool.hooked]
    return sorted(found, key=lambda pool: (-_depth(graph, pool, token), pool.key))[:NEIGHBOURS_MAX]


def _ways_round(network: Network, graph: PoolGraph, legs: list[Hop], token: str, last: Pool) -> list[Path]:
    """Plain ways from ETH to a token on the way to another: into its deepest pools, on the dollar's side over the deepest leg."""
    found: list[Path] = [
        (Hop(pool, hub, token),) for hub in (network.weth, NATIVE) for pool in graph.pools_between(hub, token) if not pool.fork and not pool.hooked
    ]
    found.sort(key=lambda way: (-_depth(graph, way[0].pool, way[0].token_in), way[0].pool.key))
    own = [hop for hop in legs if not hop.pool.fork]
    leg = max(own, key=lambda hop: (_depth(graph, hop.pool, hop.token_in), hop.pool.key), default=None)
    dollar = [pool for pool in graph.pools_between(network.usdg, token) if not pool.fork and not pool.hooked]
    if leg and dollar:
        deepest = max(dollar, key=lambda pool: (_depth(graph, pool, network.usdg), pool.key))
        found.insert(1, (leg, Hop(deepest, network.usdg, token)))
    return [way for way in found if last.key not in {hop.pool.key for hop in way}][:WAYS_ROUND_MAX]


def _legs(network: Network, graph: PoolGraph) -> list[Hop]:
    """Hops from ETH to the dollar token; of v4 only the deepest that no hook can change."""
    hops = [Hop(pool, ether, network.usdg) for ether in (network.weth, NATIVE) for pool in graph.pools_between(ether, network.usdg)]
    plain = [hop for hop in hops if hop.pool.venue != "v4"]
    made = [hop for hop in hops if hop.pool.venue == "v4" and not hop.pool.hooked]
    return [*plain, *sorted(made, key=lambda hop: (-_depth(graph, hop.pool, hop.token_in), hop.pool.key))[:V4_LEGS_MAX]]


def _few(graph: PoolGraph, pools: Iterable[Pool], hub: str) -> list[Pool]:
    """All pools of a pair, but of v4 pools without number the oldest and the deepest."""
    plain, made = [], []
    for pool in pools:
        (made if pool.venue == "v4" else plain).append(pool)
    if len(made) > PAIR_POOLS_MAX:
        old = sorted(made, key=lambda pool: (pool.born_block, pool.key))[:OLDEST_KEPT]
        deep = sorted(set(made) - set(old), key=lambda pool: (-_depth(graph, pool, hub), pool.key))[: PAIR_POOLS_MAX - OLDEST_KEPT]
        made = [*old, *deep]
    return [*plain, *made]


def _depth(graph: PoolGraph, pool: Pool, token: str) -> int:
    state = graph.states.get(pool.key)
    return state.depth_raw(pool, token) if state else 0


def reversed_path(path: Path) -> Path:
    """The same way back."""
    return tuple(Hop(hop.pool, hop.token_out, hop.token_in) for hop in reversed(path))


def router_of(network: Network, path: Sequence[Hop]) -> Router | None:
    """Who trades a path in one transaction; None where nobody known does."""
    venues, names = {hop.pool.venue for hop in path}, {hop.pool.fork for hop in path}
    if venues == {CURVE}:
        return Router(CURVE, path[0].pool.key)
    if names == {""}:
        if "v4" not in venues:
            return Router(SWAP_ROUTER_02, network.swap_router_02)
        return Router(UNIVERSAL, network.universal_router) if network.universal_router and network.v4_quoter else None
    routers = {Router(fork.router_shape, fork.router) for fork in network.forks if fork.name in names and fork.router and fork.router_shape}
    known = names <= {fork.name for fork in network.forks if fork.router}
    return next(iter(routers)) if known and len(routers) == 1 else None


def label_of(network: Network, path: Path, *, whole: bool = False) -> str:
    """Name a path by its pools, with whole keys where short ones could be two pools."""
    names = {network.weth: "eth", NATIVE: "eth", network.usdg: "usdg"}
    text = names.get(path[0].token_in, "token")
    for hop in path:
        key = hop.pool.key if whole else hop.pool.key[:10]
        text += f" >{hop.pool.fork or hop.pool.venue} {_fee(hop.pool)} {key}> {names.get(hop.token_out, 'token')}"
    return text


def _fee(pool: Pool) -> str:
    percent = f"{pool.fee_ppm // 10_000}.{pool.fee_ppm % 10_000:04d}".rstrip("0").rstrip(".")
    fee = "dynamic" if pool.fee_ppm >= DYNAMIC_FEE else f"{percent}%"
    return f"{fee} hook" if pool.hooked else fee


# --- what a path promises ---------------------------------------------------------------------------------------------


def promise(graph: PoolGraph, path: Path, amount: int) -> int:
    """What a path would bring for an amount if its pools were as their cached states say; 0 where one is unknown."""
    for hop in path:
        known = _crossing(graph, hop)
        if known is None or known[0] is None:
            return 0
        of, held = known
        amount = of.out(amount)
        if held is not None and amount > held:
            amount = held
    return amount


def _crossing(graph: PoolGraph, hop: Hop) -> tuple[Response | None, int | None] | None:
    """A hop's response by its pool's state, none where that is empty or takes everything, and the most that it can pay out."""
    return graph.of_state(hop.pool.key, hop.token_in, lambda state: (_response(state, hop), _held(state, hop)))


def _response(state: PoolState, hop: Hop) -> Response | None:
    kept, (reserve_in, reserve_out) = _kept_ppm(state, hop.pool), _reserves(state, hop)
    return Response(kept * reserve_out, kept, FEE_WHOLE_PPM * reserve_in) if kept > 0 and reserve_in and reserve_out else None


def _held(state: PoolState, hop: Hop) -> int | None:
    return state.held1_raw if hop.token_in == hop.pool.token0 else state.held0_raw


def _reserves(state: PoolState, hop: Hop) -> tuple[int, int]:
    reserves = (state.reserve0_raw, state.reserve1_raw)
    return reserves if hop.token_in == hop.pool.token0 else reserves[::-1]


def _kept_ppm(state: PoolState, pool: Pool) -> int:
    """What of an input the pool's fee leaves; of a fee that a hook sets, as it stood last."""
    if pool.fee_ppm < FEE_WHOLE_PPM:
        return FEE_WHOLE_PPM - pool.fee_ppm
    return max(FEE_WHOLE_PPM - (state.fee_ppm or 0), 0)


@dataclass(frozen=True, slots=True)
class Response:
    """What a path brings as a function of what goes in: `a·x / (c·x + d)`, which pools of constant product in a row are."""

    a: int
    c: int
    d: int

    def out(self, amount_in: int) -> int:
        """What comes out, rounded down."""
        return self.a * amount_in // (self.c * amount_in + self.d)

    def inverse(self, amount_out: int) -> int:
        """What must go in, rounded up, for an amount that can come out."""
        return -(-self.d * amount_out // (self.a - self.c * amount_out))

    def then(self, after: Response) -> Response:
        """Both, one after the other."""
        return Response(after.a * self.a, after.c * self.a + after.d * self.c, after.d * self.d)


WHOLE = Response(1, 0, 1)
"""Nothing crossed: all of it comes out."""


def response(graph: PoolGraph, path: Path) -> Response | None:
    """The path's response by cached states; None where a pool is unknown, empty or takes everything."""
    whole = WHOLE
    for hop in path:
        known = _crossing(graph, hop)
        if known is None or known[0] is None:
            return None
        whole = known[0] if whole is WHOLE else whole.then(known[0])
    return whole
