"""Every kind of route brings in simulation what it really brings, to the wei and the gas: v2, v3, v4 with and without hooks, mixed, split, other exchanges, curves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from chain.candidates import CANDIDATES_MAX, SPLITS_MAX
from chain.devnet.calls import Tx, encode
from chain.network import load_network
from chain.paths import CURVE
from chain.router import Route
from chain.trade import PROVEN, QUOTER_ABSURD
from tests.chain.executed import ETH, Pair, pairs_of
from tests.chain.market import WALLET

NETWORK = load_network("devnet")
SPEND_WEI = ETH // 20
HONEST = ("LEAF", "ACRN", "FERN", "BARK", "MOSS", "RUNE", "PINE", "DUSK", "BRIM", "HAZE", "MOTE", "GLIM")
MIXED = ("RUNE", "BRIM", "MOSS", "PINE")
STALLS = (
    "fee_after", "fee_after_usdg", "fee_before", "size", "hours", "sender", "no_sale", "snipe_rate", "snipe_delta", "busy_rate", "side_rate", "origin",
    "hook_data", "loud", "takes_all", "flatters", "liquidity_cut", "plain_usdg", "odd_fee", "no_fee", "wide",
)  # fmt: skip


def kind(route: Route) -> str:
    ways = [" ".join(hop.pool.fork or hop.pool.venue for hop in part.path) for part in route.ways]
    return " + ".join(sorted(ways))


def unlike(pairs: list[Pair]) -> list[tuple]:
    return [(pair.route.label, pair.simulated, pair.ok, pair.arrived, pair.gas) for pair in pairs if not pair.alike]


def worth(token, eth_milli: int = 50) -> int:
    """Units of a token worth about so many thousandths of an ETH at the opening."""
    return eth_milli * 3 * 10 ** (18 + token.decimals) // token.price


async def test_honest_tokens_over_every_kind_of_route(chain):
    seen: set[str] = set()
    for name, side in product(HONEST, ("buy", "sell")):
        token = chain.deployment.token(name)
        size, owner = (SPEND_WEI, "") if side == "buy" else (worth(token), chain.deployment.cast.issuer)
        pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner)
        assert unlike(pairs) == [] and pairs and all(pair.simulated.status == PROVEN for pair in pairs), (name, side)
        seen |= {kind(pair.route) for pair in pairs}
    assert seen >= {"v2", "v3", "v4", "v2 v2", "v3 v3", "v2 v3", "v3 v2", "v3 v4", "v4 v3", "v4 v2", "v2 v4", "v4 v4", "grove", "thicket", "griddle"}
    assert {"v2 + v4", "v3 + v4"} <= seen and any(" + " in way and "v4" not in way for way in seen)


@pytest.mark.parametrize("name", STALLS)
async def test_pools_with_hooks_and_odd_fees(chain, name):
    stall = chain.deployment.annex.stall(name)
    for side in ("buy", "sell"):
        size, owner = (SPEND_WEI, "") if side == "buy" else (worth(stall.token), chain.deployment.cast.annexer)
        pairs = await pairs_of(chain, side, stall.token.address.lower(), size, owner=owner)
        assert pairs and unlike(pairs) == []
        if name not in ("hours", "snipe_rate", "snipe_delta") and stall.hook is not None:
            assert {pair.ok for pair in pairs} == {stall.hook.buys if side == "buy" else stall.hook.sells}


async def test_a_quoter_that_a_hook_made_absurd_is_flagged_beside_a_swap_that_fails(chain):
    stall = chain.deployment.annex.stall("takes_all")
    (pair,) = await pairs_of(chain, "buy", stall.token.address.lower(), SPEND_WEI)
    assert (pair.ok, pair.simulated.quoted_raw, pair.simulated.flags) == (False, None, (QUOTER_ABSURD,))


async def test_copies_with_half_of_everything_as_fee_never_stand_before_the_honest_pool(chain):
    for name, side in product(("PINE", "DUSK"), ("buy", "sell")):
        token = chain.deployment.token(name)
        size, owner = (SPEND_WEI, "") if side == "buy" else (worth(token), chain.deployment.cast.issuer)
        pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner)
        fees = [max(hop.pool.fee_ppm for hop in pair.route.hops) for pair in pairs]
        assert max(pairs, key=lambda pair: pair.arrived).route.hops[0].pool.fee_ppm < 500_000 and fees == sorted(fees, key=lambda fee: fee >= 500_000)


async def test_tokens_off_the_beaten_path_are_reached_over_other_tokens(chain):
    for token in dict.fromkeys(market.token for market in chain.deployment.annex.off_path):
        for side in ("buy", "sell"):
            size, owner = (SPEND_WEI, "") if side == "buy" else (worth(token), chain.deployment.cast.annexer)
            pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner)
            best = max(pairs, key=lambda pair: pair.arrived)
            assert unlike(pairs) == [] and any(len(part.path) > 1 for part in best.route.ways), (token.symbol, side)


@pytest.mark.parametrize("name", [*MIXED, "fee_after_usdg", "plain_usdg"])
async def test_the_router_that_takes_hop_prices_takes_its_own_shape(chain, name):
    annex = chain.deployment.annex
    shaped = replace(NETWORK, universal_router=annex.hop_price_router, universal_router_hop_prices=True)
    token, owner = (chain.deployment.token(name), chain.deployment.cast.issuer) if name in MIXED else (annex.stall(name).token, chain.deployment.cast.annexer)
    for side in ("buy", "sell"):
        size = SPEND_WEI if side == "buy" else worth(token)
        pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner if side == "sell" else "", network=shaped)
        through = [pair for pair in pairs if pair.route.swap.to == annex.hop_price_router]
        assert through and unlike(through) == [] and all(pair.ok for pair in through)


async def test_a_token_on_its_curve_is_bought_and_sold_there(chain):
    launched = chain.deployment.annex.launched[1]
    (buy,) = await pairs_of(chain, "buy", launched.token, SPEND_WEI)
    assert buy.alike and buy.ok and buy.route.hops[0].pool.venue == CURVE
    chain.fund(WALLET, ETH)
    chain.send(Tx(sender=WALLET, to=launched.curve, data=encode("buy(uint256,uint256,address)", ETH // 10, 0, WALLET), value_wei=ETH // 10, gas=1_000_000))
    (sale,) = await pairs_of(chain, "sell", launched.token, buy.arrived)
    assert sale.alike and sale.ok


# --- splits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_a_large_order_over_three_pools_brings_more_than_over_two(chain, side):
    token, milli = chain.deployment.token("HAZE"), 2_500
    size, owner = (milli * ETH // 1_000, "") if side == "buy" else (worth(token, milli), chain.deployment.cast.issuer)
    pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner)
    own = [pair for pair in pairs if not any(hop.pool.fork for hop in pair.route.hops)]
    by_ways = {count: max(pair.arrived for pair in own if len(pair.route.ways) == count) for count in (1, 2, 3)}
    assert unlike(pairs) == [] and by_ways[1] < by_ways[2] < by_ways[3]


@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_a_split_is_better_than_its_ways_alone_and_sells_exactly_the_size(chain, side):
    better = 0
    for name, milli in product(MIXED, (500, 2_000)):
        token = chain.deployment.token(name)
        size, owner = (milli * ETH // 1_000, "") if side == "buy" else (worth(token, milli), chain.deployment.cast.issuer)
        pairs = await pairs_of(chain, side, token.address.lower(), size, owner=owner)
        alone = {pair.route.hops: pair.arrived for pair in pairs if not pair.route.parts}
        for pair in pairs:
            if pair.route.parts:
                assert sum(part.amount for part in pair.route.parts) == size and pair.alike
                assert all(pair.arrived >= alone.get(part.path, 0) for part in pair.route.parts)
                better += 1
        assert len(pairs) <= CANDIDATES_MAX + SPLITS_MAX + 4
    assert better >= 4
