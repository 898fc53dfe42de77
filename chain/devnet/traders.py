"""Traders: who acts on the local chain, and how each decides from what it reads of the chain.

A trader's move is a generator: it yields requests, is sent their answers, and returns the transactions it wants in the
next block. All moves of a block read the same state. Sizes are integers; chance comes from the block's own generator.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from chain.devnet.calls import Tx, encode
from chain.devnet.places import ETH, Deployment, Market
from chain.devnet.node import Request
from chain.devnet.prices import ETHER, Paths
from chain.devnet.swaps import View, call, reads, swap, view, word_at
from chain.devnet.venues import FOREVER, MAX, NATIVE

Move = Generator[list[Request], list[Any], list[Tx]]

WORTH_PPM = 400
"""An arbitrageur leaves alone what is less than this part of a pool."""
FEED_PPM = 2_000
"""The keeper answers anew when the price is this far from the last answer."""
FEED_BLOCKS = 30
FEED_UNIT = 10**10
"""From price units to the feed's eight decimals."""
HOLDING_CUT = 5
"""The most that a trader sells of a holding at once: one in so many."""
TREND_PPM = 3_000
"""What a momentum trader calls a move."""
POSITIONS_MAX = 3
"""Positions that a provider keeps open."""
SHARE_CUT = 4
"""How many shares of a pair a provider takes out at once: one in so many."""
MAX_128 = 2**128 - 1
REMOVE_GAS = 900_000
ODD_GAS = 6_000_000
"""Some odd tokens burn a lot."""


@dataclass(slots=True)
class Scene:
    """What the driver remembers between blocks; copied with every snapshot."""

    paths: Paths
    feed_answer: int = 0
    feed_block: int = 0
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Pool reserves when a momentum trader last looked."""
    launches: list[Launch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Launch:
    """A token that was started while the market ran."""

    market: Market
    born_block: int
    pulled_block: int
    """When its maker takes the liquidity away; 0 for never."""


def arbitrageur(deployment: Deployment, scene: Scene, market: Market) -> Move:
    """Bring a pool to the edge of its fee's band around what both tokens are worth."""
    place, paths = market.place, scene.paths
    state = view(place, *(yield reads(deployment.venues, place)))
    target = paths.ratio(*side(deployment, market, place.token0), *side(deployment, market, place.token1))
    pays0, amount_raw = state.spent_to(target, place.fee_ppm)
    reserve = state.raw0 if pays0 else state.raw1
    if amount_raw * 1_000_000 < reserve * WORTH_PPM:
        return []
    return [swap(deployment.venues, deployment.cast.arbitrageur, place, place.token0 if pays0 else place.token1, amount_raw)]


def side(deployment: Deployment, market: Market, token: str) -> tuple[str, int]:
    """Symbol and decimals of one token of a pool."""
    if token == deployment.at["usdg"]:
        return "USDG", 6
    if token in (NATIVE, deployment.at["weth"]):
        return ETHER, 18
    assert market.token is not None and market.token.address == token, f"{token} is not of this pool"
    return market.token.symbol, market.token.decimals


def keeper(deployment: Deployment, scene: Scene, block: int) -> Move:
    """Write the price of ETH into the feed when it moved or grew old."""
    yield []
    answer = scene.paths.now[ETHER] // FEED_UNIT
    moved = abs(answer - scene.feed_answer) * 1_000_000 > scene.feed_answer * FEED_PPM
    if not moved and block - scene.feed_block < FEED_BLOCKS:
        return []
    scene.feed_answer, scene.feed_block = answer, block
    return [Tx(sender=deployment.cast.deployer, to=deployment.at["feed"], data=encode("set(int256)", answer))]


def noise(deployment: Deployment, market: Market, trader: str, rng: Random) -> Move:
    """Buy with ETH or dollars, or sell some of what is held, for no reason."""
    assert market.token is not None
    buys, size = rng.randrange(100) < 55, log_uniform(rng)
    token, place = market.token.address, market.place
    *state, held = yield [*reads(deployment.venues, place), balance(token, trader)]
    hub_raw, token_raw = reserves(view(place, *state), place.token0 == token)
    amount_raw = min(word_at(held, 0) // HOLDING_CUT, size(token_raw))
    if buys or not amount_raw:
        return [swap(deployment.venues, trader, place, place.other(token), size(hub_raw), ether=True)]
    return [swap(deployment.venues, trader, place, token, amount_raw, ether=True)]


def log_uniform(rng: Random):
    """A size as a part of a reserve: one in 80 to one in 10,000, every scale as likely."""
    halvings, within = rng.randrange(7), rng.randrange(64)
    return lambda reserve: reserve * (64 + within) // (128 * 80 << halvings)


def reserves(state: View, token_first: bool) -> tuple[int, int]:
    """The hub's side and the token's side."""
    return (state.raw1, state.raw0) if token_first else (state.raw0, state.raw1)


def balance(token: str, owner: str) -> Request:
    return call(token, encode("balanceOf(address)", owner))


def momentum(deployment: Deployment, scene: Scene, market: Market, trader: str) -> Move:
    """Buy what rose since the last look, sell what fell."""
    assert market.token is not None
    token, place = market.token.address, market.place
    *state, held = yield [*reads(deployment.venues, place), balance(token, trader)]
    hub_raw, token_raw = reserves(view(place, *state), place.token0 == token)
    before, scene.seen[place.key] = scene.seen.get(place.key), (hub_raw, token_raw)
    if before is None:
        return []
    change_ppm = hub_raw * before[1] * 1_000_000 // (token_raw * before[0]) - 1_000_000
    if change_ppm > TREND_PPM:
        return [swap(deployment.venues, trader, place, place.other(token), hub_raw // 400)]
    amount_raw = min(word_at(held, 0) // HOLDING_CUT, token_raw // 400)
    if change_ppm < -TREND_PPM and amount_raw:
        return [swap(deployment.venues, trader, place, token, amount_raw)]
    return []


def pair_provider(deployment: Deployment, market: Market, provider: str, rng: Random) -> Move:
    """Add to a v2 pair, or take a part of one's shares out."""
    place, adds, cut = market.place, rng.randrange(100) < 60, 50 + rng.randrange(150)
    *state, held = yield [*reads(deployment.venues, place), balance(place.key, provider)]
    shares = word_at(held, 0) // SHARE_CUT
    if adds or not shares:
        pool = view(place, *state)
        return [deployment.venues.add_v2(provider, place, pool.raw0 // cut, pool.raw1 // cut)]
    return pull_pair(deployment, market, provider, shares)


def pull_pair(deployment: Deployment, market: Market, owner: str, shares: int) -> list[Tx]:
    """Take liquidity out of a v2 pair."""
    place, router, weth = market.place, deployment.at["v2_router"], deployment.at["weth"]
    approve = Tx(sender=owner, to=place.key, data=encode("approve(address,uint256)", router, shares))
    if weth in (place.token0, place.token1):
        signature = "removeLiquidityETH(address,uint256,uint256,uint256,address,uint256)"
        data = encode(signature, place.other(weth), shares, 0, 0, owner, FOREVER)
    else:
        signature = "removeLiquidity(address,address,uint256,uint256,uint256,address,uint256)"
        data = encode(signature, place.token0, place.token1, shares, 0, 0, owner, FOREVER)
    return [approve, Tx(sender=owner, to=router, data=data, gas=REMOVE_GAS)]


def range_provider(deployment: Deployment, market: Market, provider: str, rng: Random) -> Move:
    """Open a v3 position around the price, or close the oldest one when there are enough."""
    place, positions = market.place, deployment.at["v3_positions"]
    cut, width = 60 + rng.randrange(120), place.tick_spacing * max(4, (300 + rng.randrange(2_000)) // place.tick_spacing)
    *state, held = yield [*reads(deployment.venues, place), balance(positions, provider)]
    if word_at(held, 0) < POSITIONS_MAX:
        pool = view(place, *state)
        middle = pool.tick // place.tick_spacing * place.tick_spacing
        ticks = (middle - width, middle + width)
        return [deployment.venues.add_v3(provider, place, ticks, pool.raw0 // cut, pool.raw1 // cut)]
    [first] = yield [call(positions, encode("tokenOfOwnerByIndex(address,uint256)", provider, 0))]
    position = word_at(first, 0)
    [state] = yield [call(positions, encode("positions(uint256)", position))]
    return [close_range(positions, provider, position, word_at(state, 7))]


def close_range(positions: str, owner: str, position: int, liquidity: int) -> Tx:
    """Take everything out of a v3 position and burn it."""
    steps = (
        encode("decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))", (position, liquidity, 0, 0, FOREVER)),
        encode("collect((uint256,address,uint128,uint128))", (position, owner, MAX_128, MAX_128)),
        encode("burn(uint256)", position),
    )
    data = encode("multicall(bytes[])", [bytes.fromhex(step[2:]) for step in steps])
    return Tx(sender=owner, to=positions, data=data, gas=REMOVE_GAS)


def sniper(deployment: Deployment, launch: Launch, trader: str, rng: Random) -> Move:
    """Buy a young token with ETH, sometimes sell some of it again."""
    market, buys = launch.market, rng.randrange(100) < 70
    assert market.token is not None
    token, place, spend_wei = market.token.address, market.place, ETH * (1 + rng.randrange(20)) // 100
    *_, held = yield [balance(token, trader)]
    amount_raw = word_at(held, 0) // 2
    if buys or not amount_raw:
        return [swap(deployment.venues, trader, place, deployment.at["weth"], spend_wei, ether=True)]
    approve = Tx(sender=trader, to=token, data=encode("approve(address,uint256)", deployment.at["swap_router_02"], MAX))
    return [approve, swap(deployment.venues, trader, place, token, amount_raw, ether=True)]


def gambler(deployment: Deployment, market: Market, trader: str, sells: bool, rng: Random) -> Move:
    """Buy an odd token for a little ETH, and sell half again where its kind lets one."""
    assert market.token is not None
    token, place, spend_wei = market.token.address, market.place, ETH * (1 + rng.randrange(20)) // 200
    if not (sells and rng.randrange(2)):
        yield []
        return [replace(swap(deployment.venues, trader, place, place.other(token), spend_wei, ether=True), gas=ODD_GAS)]
    [held] = yield [balance(token, trader)]
    amount_raw = word_at(held, 0) // 2
    if not amount_raw:
        return []
    approve = Tx(sender=trader, to=token, data=encode("approve(address,uint256)", deployment.at["swap_router_02"], MAX))
    return [approve, replace(swap(deployment.venues, trader, place, token, amount_raw, ether=True), gas=ODD_GAS)]


def rug(deployment: Deployment, launch: Launch) -> Move:
    """Take all liquidity out of one's own launch."""
    owner = deployment.cast.launcher
    [held] = yield [balance(launch.market.place.key, owner)]
    return pull_pair(deployment, launch.market, owner, word_at(held, 0))
