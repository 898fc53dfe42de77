"""A pool that runs out takes a part of a sale: the book loses what the wallet really parts with (ONC-10)."""

from __future__ import annotations

from math import floor, log

import pytest

from chain.devnet.calls import Tx, encode
from tests.onchain.given import outcome, said
from tests.onchain.ground import WALLET, Ground, Run, transactions

TOKEN = "plain_snek"
HELD = 5_000 * 10**18
FEE_PPM, SPACING = 500, 10


@pytest.fixture
async def ground(chain):
    """A v3 pool with some 200 tokens' worth of ETH within two ticks, and nothing beyond."""
    chain.fund(WALLET, 10**18)
    venues, keeper, weth = chain.deployment.venues, chain.deployment.cast.zookeeper, chain.addresses["weth"]
    token = chain.deployment.token(TOKEN).address.lower()
    place = venues.place("v3", token, weth, FEE_PPM)
    raw0, raw1 = ({token: 200 * 10**18, weth: 10**16}[side] for side in (place.token0, place.token1))
    tick = floor(log(raw1 / raw0) / log(1.0001)) // SPACING * SPACING
    made, _ = venues.open(keeper, place, raw0, raw1)
    wrap = Tx(sender=keeper, to=weth, data=encode("deposit()"), value_wei=10**16)
    grants = [grant for side in (token, weth) for grant in venues.approvals(keeper, side, "v3")]
    receipts = chain.send(wrap, *grants, made, venues.add_v3(keeper, place, (tick, tick + 2 * SPACING), raw0, raw1))
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    ground = await Ground.on(chain)
    ground.keep(lambda pool: token in (pool.token0, pool.token1) and pool.venue == "v3")
    yield ground
    await ground.close()


def hand_out(ground: Ground) -> None:
    """Let the wallet really hold tokens."""
    keeper = ground.chain.deployment.cast.zookeeper
    (receipt,) = ground.chain.send(Tx(sender=keeper, to=ground.token(TOKEN), data=encode("transfer(address,uint256)", WALLET, HELD)))
    assert receipt["status"] == "0x1"


@pytest.mark.parametrize("amount, whole", [(10**18, True), (1_000 * 10**18, False), (None, False)])
async def test_onc_10_a_sale_takes_from_the_book_what_really_leaves_the_wallet(ground, amount, whole):
    run = Run(ground)
    await run.grant(TOKEN, HELD)
    (fill,) = await run.fill(run.sell(TOKEN, amount))
    hand_out(ground)
    chain = ground.chain
    eth, paid = ground.eth_of(WALLET), 0
    for receipt in chain.send(*transactions(run.refereed[-1])):
        assert receipt["status"] == "0x1"
        paid += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert ground.eth_of(WALLET) - eth + paid == int(fill.arrival_raw)
    assert run.held(TOKEN) == ground.tokens_of(TOKEN, WALLET) == HELD - int(fill.spent_raw)
    assert (int(fill.spent_raw) == amount) == whole


async def test_onc_24_what_a_pool_left_over_can_be_sold_in_the_same_decision(ground):
    run = Run(ground)
    await run.grant(TOKEN, HELD)
    first, second = await run.decide(run.sell(TOKEN, 1_000 * 10**18), run.sell(TOKEN, 1_000 * 10**18))
    assert (said(first), outcome(second).reason) == ("filled", "reverted")


async def test_what_a_stranger_sent_to_the_wallet_is_not_in_its_way(ground):
    """The wallet of this test really holds tokens that are in no book."""
    hand_out(ground)
    ground.settle()
    run = Run(ground)
    (fill,) = await run.fill(run.buy(TOKEN, "0.001 eth"))
    assert fill.proven and run.held(TOKEN) == int(fill.arrival_raw)
    assert (await run.worth()).holdings[0].status == "proven"
