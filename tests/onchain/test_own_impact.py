"""ONC-23: the run's own earlier trades run again before each later one, held against really executing all of them, to the wei."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chain.devnet.calls import Tx
from ledgers.money import Wei
from referee.onchain.events import HEADLINE, IMPACT
from referee.onchain.rules import DEFAULT
from tests.onchain.followed import FollowedRun, headline_moves, moved
from tests.onchain.given import said
from tests.onchain.ground import WALLET, Ground

VENUES = {"v2": ("v2", "weth"), "v3": ("v3", "weth"), "v4": ("v4", "native"), "via usdg": ("v3", "usdg"), "any": None}
SPEND = Wei(3 * 10**16)


def reach(ground: Ground, venue: str) -> None:
    if VENUES[venue]:
        ground.keep_venue("plain_oz", *VENUES[venue])


@pytest.mark.parametrize("venue", VENUES)
async def test_onc_23_the_impact_of_one_trade_is_zero(ground, venue):
    reach(ground, venue)
    run = FollowedRun(ground)
    await run.play(run.buy("plain_oz", SPEND), run.buy("plain_oz", SPEND), ledgers=[IMPACT])
    assert [moved(fill) for fill in run.fills(IMPACT)] == headline_moves(run) and len(headline_moves(run)) == 2
    assert [board.earlier for board in run.boards(IMPACT)] == [(), ()]


async def test_onc_23_a_trade_elsewhere_is_not_felt(ground):
    """Its pools are not those of the next order, so that nothing at all differs."""
    ground.keep(lambda pool: pool.venue == "v2" and ground.network.weth in (pool.token0, pool.token1))
    run = FollowedRun(ground)
    await run.play(run.buy("LEAF", SPEND), ledgers=[IMPACT])
    await run.play(run.buy("FERN", SPEND), ledgers=[IMPACT])
    assert [moved(fill) for fill in run.fills(IMPACT)] == headline_moves(run)
    assert [board.earlier for board in run.boards(IMPACT)] == [(), ()]


@pytest.mark.parametrize("venue", VENUES)
async def test_onc_23_equal_buys_and_a_full_sale_bring_what_really_executing_them_brings_to_the_wei(chain, venue):
    chain.fund(WALLET, 2 * 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    reach(ground, venue)
    run = FollowedRun(ground)
    for _ in range(5):
        await run.play(run.buy("plain_oz", SPEND), ledgers=[IMPACT])
    bought = run.held("plain_oz", IMPACT)
    await run.play(run.sell("plain_oz"), ledgers=[IMPACT])
    await ground.close()
    chain.revert(here)
    before, sent = ground.eth_of(WALLET), run.sent()
    really = [really_sent(ground, txs) for txs in sent]
    assert [gained for gained, _ in really[:-1]] == [int(fill.arrival_raw) for fill in run.fills(IMPACT)[:-1]]
    assert len(really) == 6 and sum(gained for gained, _ in really) == 0 < bought
    assert ground.eth_of(WALLET) - before == int(run.book(IMPACT).eth_wei) - 10**18
    arrivals = [int(fill.arrival_raw) for fill in run.fills(IMPACT)[:-1]]
    assert arrivals == sorted(arrivals, reverse=True) and arrivals[0] > arrivals[-1]
    assert len({int(fill.arrival_raw) for fill in run.fills(HEADLINE)[:-1]}) == 1


def really_sent(ground: Ground, txs: list[Tx]) -> tuple[int, list[str]]:
    """Tokens gained by really sending a decision's transactions, in a block of their own."""
    before = ground.tokens_of("plain_oz", WALLET)
    receipts = ground.chain.send(*txs)
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    return ground.tokens_of("plain_oz", WALLET) - before, [receipt["gasUsed"] for receipt in receipts]


async def test_onc_23_a_mark_meets_the_runs_own_trades_and_the_sale_then_brings_it(ground):
    ground.keep_venue("plain_oz", "v2", "weth")
    run = FollowedRun(ground)
    for _ in range(3):
        await run.play(run.buy("plain_oz", SPEND), ledgers=[IMPACT])
    worth, at_headline = await run.valued(IMPACT), await run.worth(HEADLINE)
    await run.play(run.sell("plain_oz"), ledgers=[IMPACT])
    assert worth.value_wei == run.book(IMPACT).eth_wei and at_headline.value_wei == run.book(HEADLINE).eth_wei
    assert worth.holdings[0].status == "proven" and worth.value_wei != at_headline.value_wei


async def test_onc_23_a_mark_without_earlier_trades_is_the_headlines(ground):
    run = FollowedRun(ground)
    await run.play(run.buy("LEAF", SPEND), run.buy("FERN", SPEND), ledgers=[IMPACT])
    run.trades.clear()
    assert (await run.valued(IMPACT)).value_wei == (await run.worth(HEADLINE)).value_wei


async def test_onc_23_trades_fade_and_are_gone_in_time(ground):
    """Ten minutes in full, half-way between at half, nothing after an hour."""
    ground.keep_venue("plain_oz", "v2", "weth")
    run = FollowedRun(ground)
    await run.play(run.buy("plain_oz", SPEND), ledgers=[IMPACT])
    first, weights = run.trades[0], []
    for age_s in (600, 601, 2_100, 3_599, 3_600):
        run.trades[:] = [at_age(run, first, age_s)]
        await run.play(run.buy("plain_oz", SPEND), ledgers=[IMPACT])
        weights.append(run.boards(IMPACT)[-1].earlier_weights_ppm)
    assert weights == [(1_000_000,), (999_666,), (500_000,), (333,), ()]
    arrivals = [int(fill.arrival_raw) for fill in run.fills(IMPACT)[1:]]
    assert arrivals == sorted(arrivals) and arrivals[-1] == int(run.fills(HEADLINE)[-1].arrival_raw)


def at_age(run: FollowedRun, trade, age_s: int):
    newest = run.boards(IMPACT)[-1].pin.block_ts_s
    return replace(trade, block_ts_s=newest - age_s)


async def test_onc_23_a_sale_is_run_again_too(chain):
    """Sold in two halves: the second half meets the first, as really selling both does."""
    chain.fund(WALLET, 2 * 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    ground.keep_venue("plain_oz", "v3", "weth")
    run = FollowedRun(ground)
    await run.play(run.buy("plain_oz", Wei(2 * 10**17)), ledgers=[IMPACT])
    half = run.held("plain_oz", IMPACT) // 2
    await run.play(run.sell("plain_oz", half), ledgers=[IMPACT])
    await run.play(run.sell("plain_oz"), ledgers=[IMPACT])
    await ground.close()
    chain.revert(here)
    before = ground.eth_of(WALLET)
    buying, first, second = run.sent()
    for txs in (buying, first, second[-1:]):  # the allowance stands already
        really_sent(ground, txs)
    assert ground.eth_of(WALLET) - before == int(run.book(IMPACT).eth_wei) - 10**18
    assert run.held("plain_oz", IMPACT) == 0


ODD = ("tax_5", "tax_v4", "tax_usdg", "swap_back", "max_wallet", "max_sell", "reflection", "shares", "gons", "stored_elsewhere", "decimals_0", "plain_usdg_v2")


@pytest.mark.parametrize("name", ODD)
async def test_onc_23_odd_tokens_bought_sold_and_bought_again_come_to_what_really_doing_so_does(chain, name):
    """Each earlier trade has a stand-in of its own, so that limits on holdings bind no earlier than they did for the wallet."""
    chain.fund(WALLET, 2 * 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    run = FollowedRun(ground)
    for order in (run.buy(name, SPEND), run.buy(name, SPEND), run.sell(name), run.buy(name, SPEND), run.sell(name)):
        await run.play(order, ledgers=[IMPACT])
    await ground.close()
    chain.revert(here)
    before, done = ground.eth_of(WALLET), set()
    for txs in run.sent():
        fresh = [tx for tx in txs if tx is txs[-1] or (tx.to, tx.data) not in done]  # what was allowed stands
        done |= {(tx.to, tx.data) for tx in txs}
        assert {receipt["status"] for receipt in chain.send(*fresh)} == {"0x1"}
    assert len(run.fills(IMPACT)) == 5 and ground.eth_of(WALLET) - before == int(run.book(IMPACT).eth_wei) - 10**18


async def test_onc_23_what_cannot_be_run_again_fills_nothing(ground):
    run = FollowedRun(ground)
    await run.play(run.buy("pausable", SPEND), ledgers=[IMPACT])
    run.trades[:] = [gone(trade) for trade in run.trades]
    await run.play(run.buy("pausable", SPEND), ledgers=[IMPACT])
    assert said(run.followed[IMPACT][-1].events, IMPACT) == "impact_unrepeatable"


def gone(trade):
    """The trade as if it had crossed a pool too that is no longer known."""
    return replace(trade, ways=tuple(replace(way, pools=(*way.pools, "0x" + "00" * 20)) for way in trade.ways))


async def test_onc_23_only_so_many_trades_are_run_again(ground):
    assert DEFAULT.impact_trades_max == 64
    ground.keep_venue("plain_oz", "v2", "weth")
    run = FollowedRun(ground)
    await run.play(run.buy("plain_oz", Wei(10**15)), ledgers=[IMPACT])
    run.trades *= 70
    await run.play(run.buy("plain_oz", Wei(10**15)), ledgers=[IMPACT])
    assert len(run.boards(IMPACT)[-1].earlier) == 64 and said(run.followed[IMPACT][-1].events, IMPACT) == "filled"
