"""Any history of trades and positions keeps its books: nothing below zero, every entry balanced, and a liquidation that brings what its mark says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from ledgers.money import Wei
from ledgers.postings import BOOK, ETH, imbalance
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE
from referee.onchain.liquidity import LP_FEES
from referee.onchain.liquidity_events import LiquidityOpened
from referee.onchain.valuation import liquidations
from tests.onchain.ground import Ground, Run
from tests.onchain.pooling import around, closing, opening, pool_of

POOLS = ("v3 weth LEAF", "v3 MOSS USDG", "v4 eth PINE", "v4 BRIM USDG")
SIZES = (0, 1, 10**6, 10**6, 10**15, 10**15, 10**18)
NAMES = ("LEAF", "MOSS", "PINE", "BRIM", "USDG", "checkpointed", "pausable")


def an_order(run: Run, random: Random):
    """Anything that a stack may order, sensible or not."""
    ground, roll = run.ground, random.random()
    named = random.choice(NAMES)
    token = ground.network.usdg if named == "USDG" else ground.token(named)
    if roll < 0.35:
        return replace(run.buy("LEAF", Wei(random.choice([1, 10**13, 10**15, 10**16, 10**18]))), token=token)
    if roll < 0.5:
        held = run.book().held(token)
        some = random.choice([None, 1, int(held.units_raw) // 3 + 1 if held else 7])
        return replace(run.sell("LEAF", some), token=token)
    if roll < 0.8:
        pool = pool_of(ground, random.choice(POOLS))
        ticks = around(ground, pool, ticks=random.choice([60, 600, 6_000]), shift=random.choice([0, 0, 0, -6_000, 6_000]))
        return opening(pool, ticks, (random.choice(SIZES), random.choice(SIZES)))
    open_ = [position.id for ledger in LEDGERS for position in run.book(ledger).positions]
    return closing(random.choice([*open_, "w1-b-1/1/0"]))


@pytest.mark.parametrize("seed", range(6))
async def test_onc_21_any_history_keeps_its_books_and_is_liquidated_for_what_it_is_marked_at(chain, seed):
    random, ground = Random(seed), await Ground.on(chain)
    run = Run(ground, stake="1 eth")
    await run.decide(*(replace(run.buy("LEAF", Wei(2 * 10**16)), token=ground.network.usdg if name == "USDG" else ground.token(name)) for name in NAMES))
    for _ in range(16):
        await run.decide(*(an_order(run, random) for _ in range(random.randint(1, 4))))
        chain.step(random.randint(0, 3))
        ground.settle()
        if random.random() < 0.5:
            for valued in await run.value():
                run.fold(valued.accrued)
    assert any(isinstance(event, LiquidityOpened) for event in run.events)
    assert all(imbalance(event.entry.postings) == {} for event in run.events if hasattr(event, "entry") and not hasattr(event, "window_id"))
    pin, valued = await ground.desk.pin(), await run.value()
    run.fold(liquidations(run.run_id, pin, valued, False, 0))
    for ledger in (HEADLINE, PERMISSIVE):
        worth = next(each for each in valued if ledger in each.ledgers)
        balances = run.books.runs[run.run_id].ledgers[ledger].balances
        assert int(run.book(ledger).eth_wei) == int(worth.value_wei)
        assert all(int(amount) >= 0 for (account, _), amount in balances.items() if account == BOOK)
        sums: dict[str, int] = {}
        for (_, asset), amount in balances.items():
            sums[asset] = sums.get(asset, 0) + int(amount)
        assert not any(sums.values())
        assert int(balances.get((LP_FEES, ETH), 0)) <= 0
        counted = {mark.position for mark in worth.positions if mark.status in ("proven", "unprovable")}
        assert {position.id for position in run.book(ledger).positions} == {mark.position for mark in worth.positions} - counted
    await ground.close()
