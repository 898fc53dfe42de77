"""Regulars: who trades in the annex, so that its pools, forks and curve have logs like the others.

Their chance is a stream of its own: the plain market of a seed is the same with and without them. Each move is like a
trader's: it reads, then decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from chain.devnet.annex import Exchange, Launched, Stall
from chain.devnet.calls import Tx, encode
from chain.devnet.forks import fork_swap
from chain.devnet.hooks import GRADUATE, HOURS_S
from chain.devnet.places import ETH, Deployment, Market
from chain.devnet.swaps import call, reads, swap, view, word_at
from chain.devnet.traders import (
    WORTH_PPM,
    Move,
    Scene,
    balance,
    log_uniform,
    reserves,
    side,
)
from chain.devnet.venues import NATIVE

STALL_BLOCKS, FORK_BLOCKS, LEVEL_BLOCKS, CURVE_BLOCKS = 2, 4, 6, 5
"""How often each happens, in blocks."""
CURVE_GAS = 2_500_000
SPEND_WEI, SPEND_RAW = ETH // 100, 30 * 10**6
"""About what is spent at a stall, of ETH and of dollars."""
SALE_CUT = 3


def visits(deployment: Deployment, scene: Scene, block: int, time_s: int, rng: Random) -> Iterator[tuple[str, Move]]:
    """What happens in the annex in one block."""
    annex, regulars = deployment.annex, deployment.cast.regulars
    if block % STALL_BLOCKS == 0:
        round_, index = divmod(block // STALL_BLOCKS, len(annex.stalls))
        stall = annex.stalls[index]
        if at_work(stall, time_s):
            yield "regular", customer(deployment, stall, regulars[round_ % len(regulars)], rng)
    pools = [(fork, market) for fork in annex.forks for market in fork.markets]
    if block % FORK_BLOCKS == 1:
        fork, market = pools[rng.randrange(len(pools))]
        yield "fork", fork_noise(fork, market, rng.choice(regulars), rng)
    if block % LEVEL_BLOCKS == 3:
        fork, market = pools[block // LEVEL_BLOCKS % len(pools)]
        yield "fork", leveller(deployment, scene, fork, market, regulars[0])
    if block % CURVE_BLOCKS == 2:
        yield "curve", curve_buyer(deployment, annex.launched[0], rng.choice(regulars), rng)


def at_work(stall: Stall, time_s: int) -> bool:
    """Whether a plain buy goes through there now."""
    if stall.hook is None:
        return True
    return stall.hook.buys and (stall.name != "hours" or time_s % HOURS_S[0] >= HOURS_S[1])


def customer(deployment: Deployment, stall: Stall, trader: str, rng: Random) -> Move:
    """Buy a little, or sell a part of what is held where that can be sold."""
    token, place = stall.token.address, stall.place
    spend = SPEND_WEI if place.other(token) == NATIVE else SPEND_RAW
    size, sells = spend * (50 + rng.randrange(100)) // 100, rng.randrange(100) < 40
    [held] = yield [balance(token, trader)]
    amount_raw = word_at(held, 0) // SALE_CUT
    if sells and amount_raw and stall.sold_back:
        return [swap(deployment.venues, trader, place, token, amount_raw)]
    return [swap(deployment.venues, trader, place, place.other(token), size)]


def fork_noise(fork: Exchange, market: Market, trader: str, rng: Random) -> Move:
    """Buy or sell for no reason, of every size."""
    assert market.token is not None
    token, place, buys, size = market.token.address, market.place, rng.randrange(100) < 55, log_uniform(rng)
    *state, held = yield [*reads(fork.venues, place), balance(token, trader)]
    hub_raw, token_raw = reserves(view(place, *state), place.token0 == token)
    amount_raw = min(word_at(held, 0) // SALE_CUT, size(token_raw))
    if buys or not amount_raw:
        return [fork_swap(fork.shape, fork.venues, trader, place, place.other(token), size(hub_raw))]
    return [fork_swap(fork.shape, fork.venues, trader, place, token, amount_raw)]


def leveller(deployment: Deployment, scene: Scene, fork: Exchange, market: Market, trader: str) -> Move:
    """Bring a fork's pool to the edge of its fee's band around what its token is worth; rarely, so that it is off at times."""
    place = market.place
    state = view(place, *(yield reads(fork.venues, place)))
    target = scene.paths.ratio(*side(deployment, market, place.token0), *side(deployment, market, place.token1))
    pays0, amount_raw = state.spent_to(target, place.fee_ppm)
    if amount_raw * 1_000_000 < (state.raw0 if pays0 else state.raw1) * WORTH_PPM:
        return []
    return [fork_swap(fork.shape, fork.venues, trader, place, place.token0 if pays0 else place.token1, amount_raw)]


def curve_buyer(deployment: Deployment, launch: Launched, trader: str, rng: Random) -> Move:
    """Buy on the curve, sometimes sell there; where it is over, buy in the pool it ended in."""
    wei, sells = ETH * (2 + rng.randrange(14)) // 100, rng.randrange(100) < 25
    over, held = yield [call(launch.curve, encode("graduated()")), balance(launch.token, trader)]
    if word_at(over, 0):
        place = deployment.venues.hooked(NATIVE, launch.token, 0, 200, GRADUATE.address)
        return [swap(deployment.venues, trader, place, NATIVE, wei)]
    amount_raw = word_at(held, 0) // SALE_CUT
    if sells and amount_raw:
        data = encode("sell(uint256,uint256,address)", amount_raw, 0, trader)
        return [Tx(sender=trader, to=launch.curve, data=data, gas=CURVE_GAS)]
    return [Tx(sender=trader, to=launch.curve, data=encode("buy(uint256,uint256,address)", wei, 0, trader), value_wei=wei, gas=CURVE_GAS)]
