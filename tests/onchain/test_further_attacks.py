"""Attacks on the further ledgers (ONC-22, ONC-23): whatever a run orders in whatever order, each comes to what really doing it would."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from chain.pools import NATIVE
from chain.router import sell_routes
from ledgers.clock import VirtualClock
from ledgers.events import encode, kind_of
from ledgers.money import TokenRaw, Wei
from ledgers.seal import export
from referee.onchain.events import FURTHER_LEDGERS, HEADLINE, IMPACT, LEDGERS, FillCredited, RunOpened, RunScored, WindowOpened, WindowScored, WindowSealed
from referee.onchain.further_desk import pools_of
from referee.onchain.further_events import OrderSkipped, WayTaken
from referee.onchain.replay import replay
from referee.onchain.rules import DEFAULT, FIRST
from referee.onchain.run import open_window, play_window, resume
from referee.onchain.state import OrderOutcome, Trade
from tests.onchain import recount
from tests.onchain.followed import FollowedRun
from tests.onchain.ground import WALLET, Ground, Run
from tests.onchain.paper import T0, PaperChain, Said, a_buy, buying, events_of, live_on, ordering, selling, to_the_end
from tests.onchain.test_liquidity_window import Mortal

SPEND = Wei(3 * 10**16)


def pools_for(ground: Ground, name: str, amount: int) -> frozenset[str]:
    routes = sell_routes(ground.network, ground.graph, ground.token(name), amount, WALLET)
    return frozenset().union(*(pools_of(route) for route in routes))


# --- what is met ----------------------------------------------------------------------------------------------------


async def test_onc_23_a_small_sale_of_much_meets_the_trades_of_its_own_ways(ground):
    """Which ways are candidates rests on what is sold, not on what is held."""
    small, much = 10**18, 10**22
    pool = min(key for key in pools_for(ground, "ACRN", small) - pools_for(ground, "ACRN", much) if ground.network.weth in ends(ground, key) or NATIVE in ends(ground, key))
    run = FollowedRun(ground)
    await run.grant("ACRN", much)
    await run.grant("ACRN", much, ledgers=FURTHER_LEDGERS)
    (bought,) = ends(ground, pool) - {ground.network.weth, NATIVE}
    run.trades.append(replace(a_trade(ground, "ACRN", pool), token=bought))
    await run.play(replace(run.sell("ACRN"), sell_all=False, amount_raw=TokenRaw(small)), ledgers=[IMPACT])
    (board,) = run.boards(IMPACT)
    assert board.earlier == ("w1-a-1/0/0",)


def ends(ground: Ground, key: str) -> set[str]:
    return {ground.graph.pools[key].token0, ground.graph.pools[key].token1}


def a_trade(ground: Ground, name: str, pool: str) -> Trade:
    """A buy of an earlier decision through one pool."""
    now_s = int(ground.chain.node.call("eth_getBlockByNumber", ["latest", False])["timestamp"], 16)
    return Trade(order_id="w1-a-1/0/0", side="buy", token=ground.token(name), route="made", amount_raw=10**15, units_raw=1, block_ts_s=now_s, ways=(WayTaken(amount_raw=TokenRaw(10**15), pools=(pool,)),))


# --- headline is what it is -----------------------------------------------------------------------------------------


def script(run: Run) -> list[list]:
    """Decisions of every kind, odd tokens among them."""
    return [
        [run.buy("MOSS", SPEND), run.buy("LEAF", SPEND)],
        [run.buy("tax_5", SPEND), run.sell("LEAF", 10**17)],
        [run.buy("shares", SPEND), run.buy("stored_elsewhere", SPEND), run.sell("MOSS")],
        [run.sell("shares"), run.buy("ACRN", SPEND), run.buy("honeypot", SPEND)],
        [run.sell("LEAF"), run.sell("tax_5"), run.sell("stored_elsewhere"), run.sell("ACRN")],
    ]


def told(run: Run) -> list[bytes]:
    """What headline and permissive recorded, but for the clock."""
    return [encode(replace(event, ts_ms=0)) for event in run.events if not set(getattr(event, "ledgers", FURTHER_LEDGERS)) <= set(FURTHER_LEDGERS)]


async def scripted(chain, run_of) -> tuple[list[bytes], list[bytes]]:
    """Play the script with a mark after each decision."""
    here, ground = chain.snapshot(), await Ground.on(chain)
    run, marks = run_of(ground), []
    for orders in script(run):
        if isinstance(run, FollowedRun):
            await run.play(*orders, meanwhile=lambda: None)
            for ledger in FURTHER_LEDGERS:
                await run.valued(ledger)
        else:
            await run.decide(*orders)
            ground.settle()
        chain.step(2)
        ground.settle()
        marks.append(await run.worth())
    await ground.close()
    chain.revert(here)
    return told(run), [repr((mark.value_wei, mark.holdings, mark.unproven_wei, mark.entry)).encode() for mark in marks]


async def test_no_number_of_headline_changes_because_further_ledgers_exist(chain):
    alone, with_them = await scripted(chain, Run), await scripted(chain, FollowedRun)
    assert alone[1] == with_them[1]
    assert alone[0] == with_them[0] and len(alone[0]) > 20


async def windowed(rules) -> list[tuple[str, bytes]]:
    """A window on paper, played through; what was recorded of the ledgers that share boards."""
    chain = PaperChain(VirtualClock(T0), order_ms=1_500, follow_ms=4_000)
    trader = {0: ordering(a_buy(10**16), a_buy(10**15)), 1: buying(10**15), 2: selling(), 3: "nothing", 4: buying(2 * 10**15)}
    other = {0: buying(10**16), 2: buying(10**15), 4: selling()}
    live = live_on(chain, {"trader": Said(chain.clock, trader), "other": Said(chain.clock, other, delay_ms=700)})
    live.rules = rules
    await open_window(live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    return [(kind_of(event), encode(told_of(event))) for event in events_of(live.journal) if not isinstance(event, WindowOpened | RunOpened | RunScored | WindowScored | WindowSealed | OrderSkipped) and concerns(event)]


def concerns(event) -> bool:
    return bool(set(getattr(event, "ledgers", LEDGERS)) - set(FURTHER_LEDGERS))


def told_of(event):
    """An event as far as it speaks of ledgers that share boards."""
    changes = {"ledgers": tuple(ledger for ledger in event.ledgers if ledger in LEDGERS)} if hasattr(event, "ledgers") else {}
    if hasattr(event, "entry"):
        changes["entry"] = replace(event.entry, ledgers=tuple(ledger for ledger in event.entry.ledgers if ledger in LEDGERS))
    return replace(event, **changes)


async def test_a_window_that_keeps_further_ledgers_records_the_same_of_the_others_at_the_same_times():
    kept = await windowed(DEFAULT)
    without = await windowed(FIRST)
    assert [name for name, _ in kept] == [name for name, _ in without]
    assert kept == without


# --- as really executed ---------------------------------------------------------------------------------------------

SHARED = ("MOSS", "BRIM", "BARK", "plain_usdg_v2", "tax_usdg", "ACRN", "LEAF")
"""Some share pools on the way to ETH."""


@pytest.mark.parametrize("seed", range(6))
async def test_onc_23_any_trades_through_shared_pools_come_to_what_really_doing_them_does_to_the_wei(chain, seed):
    random = Random(seed)
    chain.fund(WALLET, 2 * 10**18)
    here, ground = chain.snapshot(), await Ground.on(chain)
    run = FollowedRun(ground)
    for _ in range(14):
        name = random.choice(SHARED)
        held = run.held(name, IMPACT)
        if held and random.random() < 0.5:
            order = run.sell(name) if random.random() < 0.5 else run.sell(name, max(held // random.randint(2, 9), 1))
        else:
            order = run.buy(name, Wei(random.choice([10**15, 10**16, 6 * 10**16])))
        await run.play(order, ledgers=[IMPACT])
    await ground.close()
    chain.revert(here)
    before, done = ground.eth_of(WALLET), set()
    for txs in run.sent():
        fresh = [tx for tx in txs if tx is txs[-1] or (tx.to, tx.data) not in done]  # what was allowed stands
        done |= {(tx.to, tx.data) for tx in txs}
        assert {receipt["status"] for receipt in chain.send(*fresh)} == {"0x1"}
    assert len(run.fills(IMPACT)) >= 10
    assert ground.eth_of(WALLET) - before == int(run.book(IMPACT).eth_wei) - 10**18
    assert [ground.tokens_of(name, WALLET) for name in SHARED] == [run.held(name, IMPACT) for name in SHARED]


# --- a process that ends --------------------------------------------------------------------------------------------

TRADER = {0: ordering(a_buy(10**16), a_buy(10**15)), 1: buying(10**15), 2: selling(), 3: "nothing", 4: buying(2 * 10**15), 5: selling()}


@pytest.mark.parametrize("life", [12, 20, 31, 44, 57, 73, 90])
async def test_wherever_a_process_ends_each_order_of_headline_ends_once_on_every_further_ledger(life, tmp_path):
    chain = PaperChain(VirtualClock(T0), order_ms=1_500, follow_ms=1_000)
    said = {"trader": Said(chain.clock, TRADER), "other": Said(chain.clock, {0: buying(10**16), 3: selling()}, delay_ms=700)}
    journal = Mortal("w1")
    live = live_on(chain, said, journal=journal)
    await open_window(live)
    journal.life = life
    with pytest.raises(BaseExceptionGroup, match="unhandled"):
        await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    journal.life, live = -1, live_on(chain, said, journal=journal)
    await to_the_end(chain, asyncio.ensure_future(resume(live)))
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    assert replay(journal.read()).difference is None
    filled = [fill.order_id for fill in events_of(journal, FillCredited) if HEADLINE in fill.ledgers]
    for ledger in FURTHER_LEDGERS:
        ended = [event.order_id for event in events_of(journal, OrderOutcome) if ledger in event.ledgers]
        assert len(set(ended)) == len(ended) and set(filled) <= set(ended)
    export(journal, tmp_path / "w1.jsonl")
    assert recount.recount(str(tmp_path / "w1.jsonl")).keys() == {"w1-trader-1", "w1-other-1"}
