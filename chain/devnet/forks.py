"""Forks: other exchanges of the annex in the shapes of v2 and v3, with pools of honest tokens.

`grove` is v2 and `thicket` is v3 from the same packages by another deployer; `griddle` is our own contract in v3's shape
whose pools log swaps as Pancake's do. Its router and quoter are the packages' own with the hash of its pools' code in
the place of Uniswap's, as a fork has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path

from eth_utils import keccak

from chain.devnet.assets import ETH_USD
from chain.devnet.calls import Tx, arguments, encode, topic
from chain.devnet.compile import Artifact
from chain.devnet.packages import code_hash, creation_code
from chain.devnet.places import ETH, Deployment, Market
from chain.devnet.swaps import SWAP_GAS, swap
from chain.devnet.venues import FOREVER, POOL_GAS, Place, Venues

PANCAKE_SWAP = topic("Swap(address,address,int256,int256,uint160,uint128,int24,uint128,uint128)")
GROVE = (("LEAF", 3_000, 120), ("MOTE", 3_000, 6))
THICKET = (("ACRN", 500, 150), ("FERN", 3_000, 50))
GRIDDLE = (("HAZE", 2_500, 40), ("LEAF", 500, 60))
"""Pools against WETH: symbol, fee and depth in ETH."""
FORKED = frozenset(symbol for symbol, _, _ in (*GROVE, *THICKET, *GRIDDLE))
ADD_GAS = 1_000_000

Create = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan:
    """One of them, as it will be built."""

    name: str
    shape: str
    venues: Venues
    """Its contracts in the places of Uniswap's."""
    factory: str
    router: str
    quoter: str | None = None
    swap_topic: str | None = None
    markets: tuple[Market, ...]
    adder: str
    """Who must be approved to add liquidity; each pool itself where empty."""

    def approvals(self, owner: str) -> list[Tx]:
        tokens = [(token, market) for market in self.markets for token in (market.place.token0, market.place.token1)]
        pairs = dict.fromkeys((token, self.adder or market.place.key) for token, market in tokens)
        return [tx for token, spender in pairs for tx in self.venues.approve(owner, token, (spender,))]

    def openings(self, owner: str) -> list[Tx]:
        if self.adder:
            return [tx for market in self.markets for tx in self.venues.open(owner, market.place, *market.raw)]
        return [tx for market in self.markets for tx in griddle_opening(owner, self.factory, market)]


def griddle_opening(owner: str, factory: str, market: Market) -> list[Tx]:
    """Make a pool of ours, start it at its price and fill it over the whole range."""
    place, (raw0, raw1) = market.place, market.raw
    start = isqrt((raw1 << 192) // raw0)
    made = encode("createPool(address,address,uint24)", place.token0, place.token1, place.fee_ppm)
    return [
        Tx(sender=owner, to=factory, data=made, gas=POOL_GAS),
        Tx(sender=owner, to=place.key, data=encode("initialize(uint160)", start), gas=ADD_GAS),
        Tx(sender=owner, to=place.key, data=encode("mint(address,uint128)", owner, isqrt(raw0 * raw1)), gas=ADD_GAS),
    ]


def plan_forks(create: Create, toolchain: Path, compiled: Mapping[str, Artifact], built: Deployment) -> list[ForkPlan]:
    """Deploy the contracts of all three, in this order."""
    return [
        plan_grove(create, toolchain, built),
        plan_thicket(create, toolchain, built),
        plan_griddle(create, toolchain, compiled, built),
    ]


def plan_grove(create: Create, toolchain: Path, built: Deployment) -> ForkPlan:
    at = built.at
    factory = create(creation_code(toolchain, "UniswapV2Factory") + arguments(("address",), (built.cast.annexer,)))
    router = create(creation_code(toolchain, "UniswapV2Router02") + arguments(("address",) * 2, (factory, at["weth"])))
    venues = replace(built.venues, at={**at, "v2_factory": factory, "v2_router": router})
    markets = fork_markets(built, venues, "v2", GROVE)
    return ForkPlan(name="grove", shape="v2", venues=venues, factory=factory, router=router, markets=markets, adder=router)


def plan_thicket(create: Create, toolchain: Path, built: Deployment) -> ForkPlan:
    at, two, four = built.at, ("address",) * 2, ("address",) * 4
    weth = at["weth"]
    factory = create(creation_code(toolchain, "UniswapV3Factory"))
    positions = create(
        creation_code(toolchain, "NonfungiblePositionManager") + arguments(("address",) * 3, (factory, weth, at["v3_descriptor"]))
    )
    quoter = create(creation_code(toolchain, "QuoterV2") + arguments(two, (factory, weth)))
    router = create(creation_code(toolchain, "SwapRouter02") + arguments(four, (at["v2_factory"], factory, positions, weth)))
    venues = replace(
        built.venues, at={**at, "v3_factory": factory, "v3_positions": positions, "quoter_v2": quoter, "swap_router_02": router}
    )
    markets = fork_markets(built, venues, "v3", THICKET)
    return ForkPlan(
        name="thicket", shape="v3", venues=venues, factory=factory, router=router, quoter=quoter, markets=markets, adder=positions
    )


def plan_griddle(create: Create, toolchain: Path, compiled: Mapping[str, Artifact], built: Deployment) -> ForkPlan:
    at, weth = built.at, built.at["weth"]
    ours = "0x" + keccak(bytes.fromhex(compiled["GriddlePool"].bytecode[2:])).hex()
    uniswaps = code_hash(toolchain, "UniswapV3Pool")

    def forked(name: str) -> str:
        code = creation_code(toolchain, name)
        assert uniswaps[2:] in code, f"{name} carries no hash of the pools' code"
        return code.replace(uniswaps[2:], ours[2:])

    factory = create(compiled["GriddleFactory"].bytecode)
    quoter = create(forked("QuoterV2") + arguments(("address",) * 2, (factory, weth)))
    router = create(forked("SwapRouter02") + arguments(("address",) * 4, (at["v2_factory"], factory, at["v3_positions"], weth)))
    venues = replace(built.venues, at={**at, "v3_factory": factory, "quoter_v2": quoter, "swap_router_02": router}, pool_hash=ours)
    return ForkPlan(
        name="griddle",
        shape="v3",
        venues=venues,
        factory=factory,
        router=router,
        quoter=quoter,
        swap_topic=PANCAKE_SWAP,
        markets=fork_markets(built, venues, "v3", GRIDDLE),
        adder="",
    )


def fork_markets(built: Deployment, venues: Venues, venue: str, pools: tuple[tuple[str, int, int], ...]) -> tuple[Market, ...]:
    found = []
    for symbol, fee_ppm, depth_eth in pools:
        token, depth_wei = built.token(symbol), depth_eth * ETH
        token_raw = depth_wei * ETH_USD * 10**token.decimals // (token.price * ETH)
        place = venues.place(venue, token.address, built.at["weth"], fee_ppm)
        raw = (token_raw, depth_wei) if place.token0 == token.address else (depth_wei, token_raw)
        found.append(Market(token=token, hub="weth", place=place, depth_wei=depth_wei, raw=raw))
    return tuple(found)


def fork_swap(shape: str, venues: Venues, sender: str, place: Place, token_in: str, amount_raw: int) -> Tx:
    """Sell an exact amount to a fork's pool through its own router."""
    if shape == "v3":
        return swap(venues, sender, place, token_in, amount_raw)
    signature = "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)"
    data = encode(signature, amount_raw, 0, [token_in, place.other(token_in)], sender, FOREVER)
    return Tx(sender=sender, to=venues.at["v2_router"], data=data, gas=SWAP_GAS)
