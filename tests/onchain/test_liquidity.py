"""Liquidity orders on the real local chain: what is booked is what really opening, holding and closing would have been (ONC-21)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from chain.pools import Pool
from chain.positions import is_eth
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw
from ledgers.postings import BOOK, ETH
from referee.onchain.board import Desk, header_of_pin
from referee.onchain.events import HEADLINE, LEDGERS
from referee.onchain.liquidity import LP, LP_FEES
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityOpened
from referee.onchain.marks import Valued
from tests.onchain.given import outcome, said
from tests.onchain.ground import Run
from tests.onchain.pooling import TWIN, Twin, around, churn, closing, opening, pool_of, pooled, sizes

POOLS = ("v3 weth LEAF", "v3 MOSS USDG", "v4 eth PINE", "v4 BRIM USDG")
TICKS_CLEARED_GAS = 25_000
"""What the last position between two ticks pays to clear them: the twin does, one on paper beside it does not."""


@pytest.fixture
def run(ground):
    return Run(ground, stake="10 eth")


async def funded_twin(run: Run, pool: Pool) -> Twin:
    """A real wallet with what the run's book holds of the pool's tokens, and ETH."""
    ground, twin = run.ground, Twin(run.ground, pool)
    header = header_of_pin(await ground.desk.pin())
    for token in (token for token in (pool.token0, pool.token1) if not is_eth(ground.network, token)):
        twin.hold(token, int(run.book().held(token).units_raw), await ground.desk.slots.of(token, TWIN, header))
    ground.chain.fund(TWIN, 10**19)
    return twin


async def with_tokens(run: Run, pool: Pool, spend: str = "0.05 eth") -> None:
    """Buy what the pool is made of beside ETH."""
    for token in (token for token in (pool.token0, pool.token1) if not is_eth(run.ground.network, token)):
        await run.fill(replace(run.buy("LEAF", spend), token=token))


def balances(run: Run) -> dict[tuple[str, str], int]:
    """Every account of the headline ledger."""
    return {key: int(amount) for key, amount in run.books.runs[run.run_id].ledgers[HEADLINE].balances.items() if int(amount)}


# --- as it really happens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, -9_000, 9_000], ids=["in range", "below", "above"])
@pytest.mark.parametrize("kind", POOLS)
async def test_onc_21_opening_and_closing_are_booked_as_they_really_happen_to_the_wei(ground, run, kind, shift):
    pool = pool_of(ground, kind)
    await with_tokens(run, pool)
    ticks, amounts = around(ground, pool, shift=shift), sizes(ground, run, pool)
    twin = await funded_twin(run, pool)
    ground.settle()
    before = balances(run)
    opened = outcome((await run.decide(opening(pool, ticks, amounts)))[0])
    closed = outcome((await run.decide(closing(opened.position)))[0])
    took, gas = twin.open(opened, amounts)
    assert (opened.ledgers, (int(opened.amount0_raw), int(opened.amount1_raw))) == (LEDGERS, took)
    assert int(opened.gas_wei) == gas * int(opened.pin.base_fee_wei)
    came, gas = twin.close(opened)
    assert ((int(closed.amount0_raw), int(closed.amount1_raw)), int(closed.gas_wei)) == (came, gas * int(closed.pin.base_fee_wei))
    after = balances(run)
    for asset, put, back in zip((opened.asset0, opened.asset1), took, came, strict=True):
        gas_wei = int(opened.gas_wei) + int(closed.gas_wei) if asset == ETH else 0
        assert after.get((BOOK, asset), 0) - before.get((BOOK, asset), 0) == back - put - gas_wei
        assert after.get((LP, asset), 0) == put - back <= 2


@pytest.mark.parametrize("kind", POOLS)
async def test_onc_21_principal_follows_the_real_price_path_and_fees_are_the_real_ones_less_the_positions_own_share(ground, run, kind):
    """The twin is really in the pool; the paper position beside it thins the fees by what it is of the liquidity."""
    pool = pool_of(ground, kind)
    await with_tokens(run, pool)
    amounts, ticks = sizes(ground, run, pool), around(ground, pool, ticks=6_000)
    twin = await funded_twin(run, pool)
    ground.settle()
    opened = outcome((await run.decide(opening(pool, ticks, amounts)))[0])
    twin.open(opened, amounts)
    for _ in range(4):
        churn(ground, pool)
        ground.chain.step(2)
    ground.settle()
    (events,) = await run.decide(closing(opened.position))
    (accrued,), closed = [event for event in events if isinstance(event, LiquidityAccrued)], outcome(events)
    came, gas = twin.close(opened)
    principal = (int(closed.amount0_raw), int(closed.amount1_raw))
    fees = (int(closed.fees0_raw), int(closed.fees1_raw))
    assert accrued.swaps >= 8 and all(fees) and accrued.from_block == opened.pin.block + 1 and accrued.to_block == closed.pin.block
    for real, told, held in zip(came, fees, principal, strict=True):
        earned = real - held
        assert earned * (1_000_000 - 2 * opened.share_ppm) // 1_000_000 - 10 <= told <= earned
    assert gas * int(closed.pin.base_fee_wei) <= int(closed.gas_wei)
    after = balances(run)
    for asset, fee in zip((opened.asset0, opened.asset1), fees, strict=True):
        assert after.get((LP_FEES, asset), 0) == -fee


@pytest.mark.parametrize("kind", POOLS)
async def test_onc_21_a_position_is_never_marked_above_what_really_closing_and_selling_everything_brings(ground, run, kind):
    pool = pool_of(ground, kind)
    await with_tokens(run, pool)
    amounts, ticks = sizes(ground, run, pool, part=1), around(ground, pool, ticks=6_000)
    twin = await funded_twin(run, pool)
    ground.settle()
    opened = outcome((await run.decide(opening(pool, ticks, amounts)))[0])
    twin.open(opened, amounts)
    tokens = [token for token in (pool.token0, pool.token1) if not is_eth(ground.network, token)]
    for token in tokens:
        held = run.book().held(token)
        twin.hold(token, int(held.units_raw) if held else 0, await ground.desk.slots.of(token, TWIN, header_of_pin(opened.pin)))
    for blocks in (1, 10, 10):
        ground.chain.step(blocks)
        ground.settle()
        worth = await run.worth()
        (mark,) = worth.positions
        here, before = ground.chain.snapshot(), ground.eth_of(TWIN)
        twin.close(opened)
        twin.sell_as(worth, run.book().approvals)
        really = ground.eth_of(TWIN) - before + TICKS_CLEARED_GAS * 10_000_000
        ground.chain.revert(here)
        assert mark.status == "proven" and not mark.reason
        assert really * 99 // 100 < int(worth.value_wei) - int(worth.eth_wei) <= really
        assert 0 < int(mark.value_wei) <= really


async def test_onc_21_fees_and_impermanent_loss_stand_apart_in_a_mark(ground, run):
    pool = pool_of(ground, "v4 eth PINE")
    opened = await pooled(run, pool)
    ground.settle()
    (fresh,) = (await run.worth()).positions
    assert abs(int(fresh.principal_wei) - int(fresh.held_wei)) <= 2 and int(fresh.fees_wei) == 0
    ground.chain.step(40)
    ground.settle()
    (mark,) = (await run.worth()).positions
    assert int(mark.principal_wei) < int(mark.held_wei) and int(mark.fees_wei) > 0
    assert (mark.fees0_raw, mark.fees1_raw) != (TokenRaw(0), TokenRaw(0)) and mark.position == opened.position


async def test_onc_12_what_the_book_holds_and_what_positions_return_is_sold_in_one_sale(ground, run):
    """Marked apart, both would be sold into an unmoved pool."""
    pool = pool_of(ground, "v3 weth LEAF")
    await pooled(run, pool, spend="2 eth")
    ground.settle()
    together = await run.worth()
    (holding,), (mark,) = together.holdings, together.positions
    assert holding.amount_raw == run.book().held(holding.token).units_raw and not mark.unsold
    alone = run.copy()
    (events,) = await alone.decide(closing(mark.position))
    assert said(events) == "closed"
    (sold,) = (await alone.worth()).holdings
    parts = int(holding.gross_wei) + int(mark.gross_wei)
    assert int(sold.gross_wei) - 2 <= parts <= int(sold.gross_wei)
    assert int(together.value_wei) == int(together.eth_wei) + int(holding.value_wei) + int(mark.value_wei)


# --- one after another ----------------------------------------------------------------------------------------------


async def test_onc_24_tokens_bought_in_a_decision_may_be_pooled_in_it_and_what_is_pooled_is_gone(ground, run):
    pool = pool_of(ground, "v4 eth PINE")
    await run.fill(run.buy("PINE", "0.05 eth"))
    units = run.held("PINE")
    fresh = Run(ground, run_id="w1-b-1", stake="10 eth")
    ticks = around(ground, pool)
    say = await fresh.say(fresh.buy("PINE", "0.05 eth"), opening(pool, ticks, (10**16, units)), fresh.sell("PINE", units))
    assert say == ["filled", "opened", "insufficient_tokens"]


async def test_onc_24_own_liquidity_on_paper_never_makes_the_own_sale_better(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    ground.keep(lambda known: known.key == pool.key)
    await run.fill(run.buy("LEAF", "1 eth"))
    part = run.held("LEAF") // 3
    plain = run.copy()
    (alone,) = await plain.fill(plain.sell("LEAF", part))
    events = await run.decide(opening(pool, around(ground, pool, ticks=12_000), (10**18, part)), run.sell("LEAF", part))
    assert [said(each) for each in events] == ["opened", "filled"]
    assert outcome(events[1]).arrival_raw == alone.arrival_raw


async def test_onc_24_what_closing_brings_can_be_sold_in_the_same_decision(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    opened = await pooled(run, pool)
    held = run.held("LEAF")
    events = await run.decide(closing(opened.position), run.sell("LEAF"))
    assert [said(each) for each in events] == ["closed", "filled"]
    assert int(outcome(events[1]).spent_raw) > held and not run.book().holdings and not run.book().positions


async def test_onc_21_a_price_that_only_the_runs_own_orders_moved_pays_no_closing(ground, run):
    """A great buy in the same decision would leave the position with more ETH than it can have at the real price."""
    pool = pool_of(ground, "v3 weth LEAF")
    opened = await pooled(run, pool)
    ground.settle()
    plain = run.copy()
    told = outcome((await plain.decide(closing(opened.position)))[0])
    events = await run.decide(run.buy("LEAF", "4 eth"), closing(opened.position))
    closed = outcome(events[1])
    assert (closed.amount0_raw, closed.amount1_raw) == (told.amount0_raw, told.amount1_raw)


async def test_onc_21_several_positions_of_a_run_share_the_limit_and_thin_each_other(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    first = await pooled(run, pool)
    (events,) = await run.decide(opening(pool, (first.tick_lower, first.tick_upper), sizes(ground, run, pool, part=2)))
    second = outcome(events)
    assert isinstance(second, LiquidityOpened) and second.share_ppm > int(second.liquidity_raw) * 10**6 // int(first.liquidity_raw + second.liquidity_raw + second.pool_liquidity_raw)
    for _ in range(3):
        churn(ground, pool)
    ground.settle()
    unread = run.copy()
    both = await run.worth()
    run.fold(both.accrued)
    assert [mark.position for mark in both.positions] == [first.position, second.position]
    alone = unread
    alone.books.runs[run.run_id].positions.open = {key: held for key, held in alone.books.runs[run.run_id].positions.open.items() if key[1] == first.position}
    lonely = await another_desk(run).value(alone.run_id, alone.wallet, (alone.book(),), await ground.desk.pin())
    earned = [int(mark.fees0_raw) for mark in (both.positions[0], lonely[0].positions[0])]
    assert 0 < earned[0] < earned[1]


def another_desk(run: Run) -> Desk:
    """The desk of a process that knows nothing yet but what the journal holds."""
    desk = run.ground.desk
    another = Desk(desk.rpc, desk.network, desk.graph, desk.rules, desk.clock, desk.clock_offset_ms)
    kept = {digest: blob for refereed in run.refereed for digest, blob in refereed.blobs.items()}
    another.liquidity.follower.recall = kept.get
    return another


async def test_onc_21_a_process_that_takes_over_counts_the_same_fees(ground, run):
    pool = pool_of(ground, "v4 eth PINE")
    opened = await pooled(run, pool)
    for blocks in (7, 11):
        ground.chain.step(blocks)
        ground.settle()
        run.fold((await run.worth()).accrued)
    ground.chain.step(9)
    ground.settle()
    pin = await ground.desk.pin()
    ours = await run.worth()
    (theirs,) = await another_desk(run).value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    unbroken = run.copy()
    unbroken.books.runs[run.run_id].positions.open = {
        key: replace(held, block=held.opened_block, block_hash=opened.pin.block_hash, growth_x128=(0, 0), fees=(TokenRaw(0), TokenRaw(0)))
        for key, held in run.books.runs[run.run_id].positions.open.items()
    }
    (anew,) = await another_desk(run).value(run.run_id, run.wallet, tuple(unbroken.books.both(run.run_id).values()), pin)
    assert ours.positions == theirs.positions == anew.positions and int(ours.positions[0].fees_wei) > 0
    assert ours.accrued == theirs.accrued and anew.accrued[0].growth0_x128 == ours.accrued[0].growth0_x128


async def test_onc_21_amounts_put_in_by_price_lie_within_the_prices_on_the_pools_grid(ground, run):
    pool = pool_of(ground, "v3 MOSS USDG")
    await with_tokens(run, pool)
    (events,) = await run.decide(replace(opening(pool, (0, 0), sizes(ground, run, pool)), price_lower="0.5", price_upper="2"))
    opened = outcome(events)
    assert isinstance(opened, LiquidityOpened), opened
    assert 1.0001**opened.tick_lower >= 0.5 > 1.0001 ** (opened.tick_lower - pool.tick_spacing)
    assert 1.0001**opened.tick_upper <= 2 < 1.0001 ** (opened.tick_upper + pool.tick_spacing)


# --- blocks that come late, or go -----------------------------------------------------------------------------------


async def test_onc_21_a_mark_on_a_block_before_the_last_one_counts_what_was_there_then(ground, run):
    """A pin may be older than one that was valued first."""
    pool = pool_of(ground, "v4 eth PINE")
    await pooled(run, pool)
    ground.settle()
    run.fold((await run.worth()).accrued)
    churn(ground, pool)
    ground.settle()
    pin = await ground.desk.pin()
    books = tuple(run.books.both(run.run_id).values())
    (before,) = await another_desk(run).value(run.run_id, run.wallet, books, pin)
    churn(ground, pool)
    ground.settle()
    later = await run.worth()
    run.fold(later.accrued)
    (late,) = await ground.desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    assert late.positions == before.positions and not late.accrued
    assert late.positions[0].fees1_raw < later.positions[0].fees1_raw
    with pytest.raises(ChainFault, match="behind"):
        await another_desk(run).value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)


@pytest.mark.parametrize("kind", ["v3 weth LEAF", "v4 eth PINE"])
@pytest.mark.parametrize("known", [True, False], ids=["same process", "another process"])
async def test_onc_21_fees_of_blocks_that_are_lost_are_counted_again_on_the_chain_that_stays(ground, run, kind, known):
    pool = pool_of(ground, kind)
    await pooled(run, pool)
    ground.settle()
    run.fold((await run.worth()).accrued)
    fork = ground.chain.snapshot()
    churn(ground, pool, 10**18)
    ground.settle()
    lost = await run.worth()
    run.fold(lost.accrued)
    ground.chain.revert(fork)
    churn(ground, pool, 10**17)
    churn(ground, pool, 10**17)
    ground.settle()
    pin = await ground.desk.pin()
    desk = ground.desk if known else another_desk(run)
    (told,) = await desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    clean = run.copy()
    clean.books, clean.events = type(run.books)(), []
    clean.fold([event for event in run.events if not isinstance(event, LiquidityAccrued)])
    (truth,) = await another_desk(run).value(run.run_id, run.wallet, tuple(clean.books.both(run.run_id).values()), pin)
    assert told.positions == truth.positions and told.positions[0].fees1_raw < lost.positions[0].fees1_raw
    assert [event.healed for event in told.accrued] == ["reorg"]


EVERY = (*POOLS, "v3 weth BARK", "v4 eth DUSK")


@pytest.mark.parametrize("seed", [1, 4])
async def test_onc_21_positions_in_several_pools_are_counted_alike_by_who_followed_them_and_who_begins_anew(ground, run, seed):
    chance = Random(seed)
    for kind in chance.sample(EVERY, 3):
        pool = pool_of(ground, kind)
        await with_tokens(run, pool)
        ticks = around(ground, pool, ticks=chance.choice([400, 2_000, 9_000]), shift=chance.choice([0, 3_000, -3_000]))
        assert await run.say(opening(pool, ticks, sizes(ground, run, pool, part=3))) == ["opened"]
    for _ in range(3):
        ground.chain.step(chance.randint(1, 12))
        for kind in chance.sample(EVERY, 2):
            churn(ground, pool_of(ground, kind), chance.choice([10**17, 10**18]))
        ground.settle()
        ours = await run.worth()
        (theirs,) = await another_desk(run).value(run.run_id, run.wallet, (run.book(),), await ground.desk.pin())
        run.fold(ours.accrued)
        assert counted(theirs) == counted(ours) and theirs.accrued[0].fees0_raw == ours.accrued[0].fees0_raw
    for position in run.book().positions:
        assert await run.say(closing(position.id)) == ["closed"]


def counted(worth: Valued) -> list[tuple]:
    """What of marked positions does not rest on the route of the sale."""
    return [(mark.position, mark.status, mark.amount0_raw, mark.amount1_raw, mark.fees0_raw, mark.fees1_raw, mark.close_gas_wei) for mark in worth.positions]
