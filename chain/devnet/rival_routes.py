"""The rival's routes: every way of up to three hops through all pools of the deployment, quoted at the newest block.

Unlike a router that goes through hubs only, it goes through any honest token, through forks, hooks and curves. Each hop
is asked of the node: v2 by its reserves, v3 and v4 by their quoters, a curve by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chain.devnet.calls import encode
from chain.devnet.node import Line, Request
from chain.devnet.places import HONEST, Deployment
from chain.devnet.swaps import call, word_at
from chain.devnet.venues import NATIVE, POOL_KEY, Place, Venues

HOPS_MAX = 3
PATHS_MAX = 60
HOP_GAS, BASE_GAS = 140_000, 90_000
UINT128_MAX = 2**128 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One pool of a route, in one direction."""

    exchange: str
    kind: str
    """v2, v3, v4 or curve."""
    place: Place
    """Of a curve: its token against native ETH, its own address as the key."""
    venues: Venues
    token_in: str

    @property
    def token_out(self) -> str:
        return self.place.other(self.token_in)

    def question(self, amount_raw: int) -> Request:
        """What to ask the node to know what comes out."""
        place, at = self.place, self.venues.at
        if self.kind == "v2":
            return call(place.key, encode("getReserves()"))
        if self.kind == "v3":
            order = (self.token_in, self.token_out, amount_raw, place.fee_ppm, 0)
            return call(at["quoter_v2"], encode("quoteExactInputSingle((address,address,uint256,uint24,uint160))", order))
        if self.kind == "v4":
            order = (place.pool_key, self.token_in == place.token0, amount_raw, b"")
            return call(at["v4_quoter"], encode(f"quoteExactInputSingle(({POOL_KEY},bool,uint128,bytes))", order))
        return call(place.key, encode("quoteBuy(uint256)" if self.token_in == NATIVE else "quoteSell(uint256)", amount_raw))

    def out_raw(self, amount_raw: int, answer: str | None) -> int:
        """What comes out by the node's answer; 0 when nothing does."""
        if answer is None or len(answer) < 66:
            return 0
        if self.kind == "v2":
            reserves = (word_at(answer, 0), word_at(answer, 1))
            given, kept = reserves if self.token_in == self.place.token0 else reserves[::-1]
            return kept * amount_raw * 997 // (given * 1_000 + amount_raw * 997) if given else 0
        if self.kind == "curve" and self.token_in == NATIVE and word_at(answer, 1) < amount_raw:
            return 0
        out = word_at(answer, 0)
        return 0 if out >= UINT128_MAX else out


@dataclass(frozen=True, slots=True)
class Quote:
    """A route with what it brings."""

    hops: tuple[Hop, ...]
    amounts: tuple[int, ...]
    """What goes into each hop, and at the end what comes out."""
    block: int

    @property
    def out_raw(self) -> int:
        return self.amounts[-1]

    @property
    def gas(self) -> int:
        return BASE_GAS + HOP_GAS * len(self.hops)


class Atlas:
    """All pools of a deployment as a graph in which WETH and native ETH are one place."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.weth = deployment.at["weth"]
        self.pools: dict[str, Hop] = {hop.place.key: hop for hop in pools_of(deployment)}
        self.through = {self.weth, deployment.at["usdg"], *(token.address for token in deployment.tokens if token.kind == HONEST)}
        self.known = {self.node_of(token) for hop in self.pools.values() for token in (hop.place.token0, hop.place.token1)}
        self._around: dict[str, list[Hop]] = {}
        for hop in self.pools.values():
            for token in (hop.place.token0, hop.place.token1):
                self._around.setdefault(self.node_of(token), []).append(hop)

    def node_of(self, token: str) -> str:
        return self.weth if token == NATIVE else token

    def direct(self, hop: Hop, token_in: str) -> Hop:
        """The pool, traded from a token's side."""
        place = hop.place
        side = place.token0 if self.node_of(place.token0) == self.node_of(token_in) else place.token1
        return Hop(exchange=hop.exchange, kind=hop.kind, place=place, venues=hop.venues, token_in=side)

    def paths(self, sold: str, bought: str) -> list[tuple[Hop, ...]]:
        """Ways from one token to another, short ones first."""
        found = sorted(self._paths(self.node_of(sold), self.node_of(bought), ()), key=len)
        return found[:PATHS_MAX]

    def _paths(self, at: str, bought: str, so_far: tuple[Hop, ...]) -> Iterator[tuple[Hop, ...]]:
        passed = {self.node_of(hop.token_in) for hop in so_far} | {at}
        for pool in self._around.get(at, ()):
            hop = self.direct(pool, at)
            after = self.node_of(hop.token_out)
            if after == bought:
                yield (*so_far, hop)
            elif len(so_far) + 1 < HOPS_MAX and after in self.through and after not in passed and (so_far or after != self.weth):
                yield from self._paths(after, bought, (*so_far, hop))

    def best(self, line: Line, sold: str, bought: str, amount_raw: int) -> Quote | None:
        """The way that brings most, all asked of the same node side by side."""
        block = int(line.call("eth_blockNumber", []), 16)
        live = [(path, (amount_raw,)) for path in self.paths(sold, bought)]
        done: list[Quote] = []
        for depth in range(HOPS_MAX):
            asked = [(path, amounts) for path, amounts in live if len(path) > depth]
            answers = line.tried([path[depth].question(amounts[-1]) for path, amounts in asked])
            live = []
            for (path, amounts), answer in zip(asked, answers, strict=True):
                out_raw = path[depth].out_raw(amounts[-1], answer)
                if out_raw and len(path) == depth + 1:
                    done.append(Quote(path, (*amounts, out_raw), block))
                elif out_raw:
                    live.append((path, (*amounts, out_raw)))
        return max(done, key=lambda quote: (quote.out_raw, -len(quote.hops)), default=None)


def pools_of(deployment: Deployment) -> Iterator[Hop]:
    """Every pool that a swap without hook data goes through."""
    annex = deployment.annex

    def hop(exchange: str, place: Place, venues: Venues, kind: str = "") -> Hop:
        return Hop(exchange=exchange, kind=kind or place.venue, place=place, venues=venues, token_in=place.token0)

    plain = (*deployment.markets, *annex.off_path, *(trick.market for trick in annex.tricks), *((annex.copycat,) if annex.copycat else ()))
    for market in plain:
        yield hop(f"uniswap-{market.place.venue}", market.place, deployment.venues)
    for stall in annex.stalls:
        if stall.hook is None or stall.hook.buys:
            yield hop("uniswap-v4", stall.place, deployment.venues)
    for fork in annex.forks:
        for market in fork.markets:
            yield hop(fork.name, market.place, fork.venues)
    for launch in annex.launched:
        place = Place(venue="curve", key=launch.curve, token0=NATIVE, token1=launch.token, fee_ppm=10_000)
        yield hop("launchpad", place, deployment.venues)
