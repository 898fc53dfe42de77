"""Attacks on the further ledgers (ONC-22, ONC-23): whatever a run orders in whatever order, each comes to what really doing it would."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chain.pools import NATIVE
from chain.router import sell_routes
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT
from referee.onchain.further_desk import pools_of
from referee.onchain.further_events import FurtherBoardTaken, WayTaken
from referee.onchain.rules import DEFAULT
from referee.onchain.state import Trade
from tests.onchain.followed import FollowedRun, moved
from tests.onchain.ground import WALLET, Ground, Run

SPEND = Wei(3 * 10**16)


@pytest.fixture
async def ground(chain):
    ground = await Ground.on(chain)
    yield ground
    await ground.close()


def pools_for(ground: Ground, name: str, amount: int) -> frozenset[str]:
    routes = sell_routes(ground.network, ground.graph, ground.token(name), amount, WALLET)
    return frozenset().union(*(pools_of(route) for route in routes))


# --- what is met ----------------------------------------------------------------------------------------------------


async def test_onc_23_a_small_sale_of_much_meets_the_trades_of_its_own_ways(ground):
    """Which ways are candidates rests on what is sold, not on what is held."""
    small, much = 10**18, 10**22
    pool = min(key for key in pools_for(ground, "ACRN", small) - pools_for(ground, "ACRN", much) if ground.network.weth in ends(ground, key) or NATIVE in ends(ground, key))
    run = FollowedRun(ground)
    run.grant("ACRN", much)
    run.grant("ACRN", much, ledgers=FURTHER_LEDGERS)
    run.trades.append(a_trade(ground, "ACRN", pool))
    await run.play(replace(run.sell("ACRN"), sell_all=False, amount_raw=TokenRaw(small)), ledgers=[IMPACT])
    (board,) = run.boards(IMPACT)
    assert board.earlier == ("w1-a-1/0/0",)


def ends(ground: Ground, key: str) -> set[str]:
    return {ground.graph.pools[key].token0, ground.graph.pools[key].token1}


def a_trade(ground: Ground, name: str, pool: str) -> Trade:
    """A buy of an earlier decision through one pool."""
    now_s = int(ground.chain.node.call("eth_getBlockByNumber", ["latest", False])["timestamp"], 16)
    return Trade(order_id="w1-a-1/0/0", side="buy", token=ground.token(name), route="made", amount_raw=10**15, units_raw=1, block_ts_s=now_s, ways=(WayTaken(amount_raw=TokenRaw(10**15), pools=(pool,)),))
