"""Routes: how often the router's best row is as good as the best that an exhaustive search finds, all of it simulated.

An order is a token, a size and a side. The search simulates every path of up to three hops through hubs over every pool of
the local chain, the last hop also from any other token, and shares of one hundredth over the best pairs of ways. Within one
basis point counts as found; gas is left out. Not searched: ways that change ETH into dollars over a third token, which is
to trade that token against its own two pools beside the order.
Against others, where they are installed: what they would quote, over the same pools, beside what our best row brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from chain.candidates import Part
from chain.paths import Hop, Path
from chain.pools import NATIVE
from chain.router import Route, buy_routes, route_over, sell_routes
from chain.simulate import SimulationRefused, answered
from chain.trade import PROVEN, Held, Purse, TradeSimulation
from ledgers.errors import ChainFault
from referee.onchain.board import header_of_pin
from tests.bench.ground import WALLET, Ground
from tests.bench.turns import Result

ETH = 10**18
PURSE_WEI = 20 * ETH
BPS_WHOLE, NEAR_BPS = 10_000, 1
FOUND_PERCENT_MIN = 95
HOPS_MAX = 3
WAYS_SPLIT = 5
"""Best ways of the search whose pairs are split."""
COARSE, FINE = range(5, 100, 5), range(-4, 5)
"""Shares in hundredths that are tried, then those around the best."""
HONEST = ("LEAF", "ACRN", "FERN", "BARK", "MOSS", "RUNE", "PINE", "DUSK", "BRIM", "HAZE", "MOTE", "GLIM")
SIZES_MILLI = (10, 100, 1_000, 4_000)
"""Sizes of orders in thousandths of an ETH."""
REQUESTS_AT_ONCE = 40


@dataclass(frozen=True, slots=True)
class Asked:
    """An order of the bench."""

    symbol: str
    token: str
    side: str
    amount: int


def asked_of(ground: Ground, sizes_milli: Sequence[int], tokens_max: int | None = None) -> Iterator[Asked]:
    """Every token that can be traded both ways, in every size, on both sides."""
    deployment = ground.chain.deployment
    stalls = [stall.token for stall in deployment.annex.stalls if stall.hook is None or (stall.hook.buys and stall.hook.sells)]
    off_path = [market.token for market in deployment.annex.off_path if market.token]
    tokens = list(dict.fromkeys([*(deployment.token(symbol) for symbol in HONEST), *off_path, *stalls]))[:tokens_max]
    for token, milli, side in product(tokens, sizes_milli, ("buy", "sell")):
        amount = milli * ETH // 1_000 if side == "buy" else milli * 3 * 10 ** (18 + token.decimals) // token.price
        if amount:
            yield Asked(token.symbol, token.address.lower(), side, amount)


class Search:
    """Simulates routes of one order at a time at the ground's block."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.simulated = ground, 0

    async def arrivals(self, asked: Asked, routes: Sequence[Route]) -> list[int]:
        """What each route brings; 0 for nothing."""
        ground, header = self.ground, header_of_pin(self.ground.pin)
        slot = await ground.desk.slots.of(asked.token, WALLET, header)
        held = asked.amount if asked.side == "sell" else 0
        purse = Purse(WALLET, PURSE_WEI, (slot.write(held),) if slot else ())
        trades = [TradeSimulation(ground.network, header, purse, route, Held(held, held)) for route in routes]
        found: list[int] = []
        for at in range(0, len(trades), REQUESTS_AT_ONCE):
            some = trades[at : at + REQUESTS_AT_ONCE]
            answers = await ground.desk.rpc.batch([trade.simulation.request() for trade in some])
            found += [_arrival(trade, answer) for trade, answer in zip(some, answers, strict=True)]
        self.simulated += len(trades)
        return found

    async def ours(self, asked: Asked) -> int:
        """What the best of the router's candidates brings."""
        of = buy_routes if asked.side == "buy" else sell_routes
        routes = of(self.ground.network, self.ground.graph, asked.token, asked.amount, WALLET)
        return max(await self.arrivals(asked, routes), default=0)

    async def best(self, asked: Asked) -> int:
        """What the best of everything brings."""
        paths = list(self._paths(asked))
        whole = [(path, route) for path in paths if (route := self._route(asked, Part(asked.amount, path))) is not None]
        arrived = await self.arrivals(asked, [route for _, route in whole])
        ranked = sorted(zip(arrived, whole, strict=True), key=lambda row: -row[0])
        best = max(arrived, default=0)
        for one, other in combinations([path for brought, (path, _) in ranked[:WAYS_SPLIT] if brought], 2):
            best = max(best, await self._split(asked, one, other))
        return best

    async def _split(self, asked: Asked, one: Path, other: Path) -> int:
        shares = {share: route for share in COARSE if (route := self._shared(asked, one, other, share)) is not None}
        if not shares:
            return 0
        arrived = dict(zip(shares, await self.arrivals(asked, list(shares.values())), strict=True))
        middle = max(arrived, key=lambda share: arrived[share])
        near = [route for step in FINE if step and (route := self._shared(asked, one, other, middle + step)) is not None]
        return max([*arrived.values(), *await self.arrivals(asked, near)])

    def _shared(self, asked: Asked, one: Path, other: Path, share: int) -> Route | None:
        first = asked.amount * share // 100
        parts = Part(first, one), Part(asked.amount - first, other)
        return self._route(asked, *parts) if all(part.amount > 0 for part in parts) else None

    def _route(self, asked: Asked, *parts: Part) -> Route | None:
        return route_over(self.ground.network, asked.side, asked.token, parts, WALLET)

    def _paths(self, asked: Asked) -> Iterator[Path]:
        """Every path of up to three hops between ETH, wrapped or native, and the token."""
        ether = (self.ground.network.weth, NATIVE)
        for start in ether if asked.side == "buy" else (asked.token,):
            goals = {asked.token} if asked.side == "buy" else set(ether)
            found = self._further((), start, goals, {start, *ether} if asked.side == "buy" else {start})
            yield from (path for path in found if self._through_hubs(asked, path))

    def _through_hubs(self, asked: Asked, path: Path) -> bool:
        """Whether all that is crossed but the token next to the traded one is a hub."""
        crossed = [hop.token_out for hop in path[:-1]]
        further = crossed[:-1] if asked.side == "buy" else crossed[1:]
        return all(token in self.ground.graph.hubs for token in further)

    def _further(self, path: Path, at: str, goals: set[str], seen: set[str]) -> Iterator[Path]:
        for pool in self.ground.graph.pools_of(at):
            other = pool.other(at)
            if other in seen:
                continue
            longer = (*path, Hop(pool, at, other))
            if other in goals:
                yield longer
            elif len(longer) < HOPS_MAX:
                yield from self._further(longer, other, goals, seen | {other})


def _arrival(trade: TradeSimulation, answer: object) -> int:
    try:
        outcome = trade.outcome(answered(trade.simulation, answer))
    except (SimulationRefused, ChainFault):
        return 0
    return outcome.arrival_raw or 0 if outcome.status == PROVEN else 0


async def route_results(ground: Ground, sizes_milli: Sequence[int], tokens_max: int | None = None) -> list[Result]:
    """How often ours is as good as the best, and how far off it is where it is not."""
    search, near, gaps = Search(ground), 0, []
    orders = list(asked_of(ground, sizes_milli, tokens_max))
    for asked in orders:
        ours, best = await search.ours(asked), await search.best(asked)
        near += ours * BPS_WHOLE >= best * (BPS_WHOLE - NEAR_BPS)
        gaps.append(0.0 if ours >= best else BPS_WHOLE * (best - ours) / best)
    worst = max(gaps, default=0.0)
    return [
        Result(
            what="router, orders within 1 bp of the best", ours=f"{near} of {len(orders)}", against=f"{search.simulated:,} simulated, worst {worst:.1f} bp",
            value=100 * near / len(orders), unit="%", limit=FOUND_PERCENT_MIN, at_least=True,
        )
    ]  # fmt: skip
