"""Every reason for which an order is refused or not filled is produced here by a real one, or named with the test that does.

The lists are closed: a reason that the code gains, and nothing here produces, fails."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ledgers.money import Wei
from ledgers.postings import ETH
from referee.onchain.credit import NOT_FILLED, REFUSALS
from referee.onchain.events import FillCredited, OrderNotFilled, OrderRefused
from tests.onchain.given import outcome
from tests.onchain.ground import Ground, Run
from tests.onchain.pooling import around, closing, opening, pool_of
from tests.onchain.test_positions_held import an_opening

HERE = Path(__file__).parent
BY_THE_RUN = {
    "standing_order": "test_run.py::test_standing_and_liquidity_orders_are_refused_by_name_ONC_26",
    "not_yet": "test_run.py::test_standing_and_liquidity_orders_are_refused_by_name_ONC_26",
    "window_closed": "test_run.py::test_an_order_begun_at_the_close_is_refused_window_closed",
    "impact_unrepeatable": "test_own_impact.py::test_onc_23_what_cannot_be_run_again_fills_nothing",
    "interrupted": "test_resume.py::test_an_order_without_an_observation_is_interrupted_on_both_ledgers_and_never_priced_late",
}
"""Reasons that the window itself gives before anything is quoted, and their tests."""

Ended = FillCredited | OrderRefused | OrderNotFilled


async def insufficient_eth(ground: Ground, run: Run) -> Ended:
    return await last(run, run.buy("LEAF", "1 eth"))


async def not_held(ground: Ground, run: Run) -> Ended:
    return await last(run, run.sell("LEAF"))


async def insufficient_tokens(ground: Ground, run: Run) -> Ended:
    await run.grant("LEAF", 99)
    return await last(run, run.sell("LEAF", 100))


async def board_too_old(ground: Ground, run: Run) -> Ended:
    desk = await run.sit_down()
    ground.desk.clock_offset_ms += 30_001
    return outcome(await run.order(desk, run.buy("LEAF", "0.01 eth")))


async def gate_flagged(ground: Ground, run: Run) -> Ended:
    return await last(run, run.buy("honeypot", "0.01 eth"))


async def gate_unknown(ground: Ground, run: Run) -> Ended:
    ground.keep_venue("balance_reverts", "v3", "weth")
    return await last(run, run.buy("balance_reverts", "0.01 eth"))


async def gas_exceeds_value(ground: Ground, run: Run) -> Ended:
    return await last(run, run.buy("LEAF", Wei(1_000_000)))


async def unprovable_exit(ground: Ground, run: Run) -> Ended:
    ground.keep_venue("masked", "v2", "weth")
    return await last(run, run.buy("masked", "0.01 eth"))


async def no_route(ground: Ground, run: Run) -> Ended:
    ground.keep(lambda pool: False)
    return await last(run, run.buy("LEAF", "0.01 eth"))


async def reverted(ground: Ground, run: Run) -> Ended:
    return await last(run, run.buy("unstarted", "0.01 eth"))


async def fault(ground: Ground, run: Run) -> Ended:
    ground.wire.missing = {"eth_simulateV1"}
    return await last(run, run.buy("LEAF", "0.01 eth"))


async def unprovable(ground: Ground, run: Run) -> Ended:
    """Nobody knows what its buy wrote: headline does not sell it on a quote."""
    await run.grant("LEAF", 10**20, told=False)
    return await last(run, run.sell("LEAF"))


async def unprovable_no_quote(ground: Ground, run: Run) -> Ended:
    """The node cannot simulate, and its quoters promise more than any pool holds."""
    await run.grant("LEAF", 10**20)
    ground.wire.missing, token = {"eth_simulateV1"}, ground.token("LEAF")
    ground.wire.answer = lambda asked, told: (
        told | {"result": "0x" + "ff" * 32 * 4} if asked["method"] == "eth_call" and asked["params"][0]["to"] != token else told
    )
    return await last(run, run.sell("LEAF"))


async def lp_pool(ground: Ground, run: Run) -> Ended:
    await run.grant("LEAF", 10**20)
    return await last(run, opening(pool_of(ground, "v2 weth LEAF"), (-60, 60), (10**16, 10**18)))


async def lp_range(ground: Ground, run: Run) -> Ended:
    await run.grant("LEAF", 10**20)
    return await last(run, opening(pool_of(ground, "v3 weth LEAF"), (-61, 60), (10**16, 10**18)))


async def lp_share(ground: Ground, run: Run) -> Ended:
    await run.grant("LEAF", 10**24)
    pool = pool_of(ground, "v3 weth LEAF")
    return await last(run, opening(pool, around(ground, pool, ticks=60), (10**17, 10**24)))


async def lp_token(ground: Ground, run: Run) -> Ended:
    await run.grant("balance_reverts", 10**20)
    return await last(run, opening(pool_of(ground, "v3 weth balance_reverts"), (-60, 60), (10**16, 10**18)))


async def too_many_positions(ground: Ground, run: Run) -> Ended:
    await run.grant("LEAF", 10**21)
    held = [an_opening(f"{run.run_id}/0/{at}", (0, 1), gas=0, assets=(ETH, ground.token("LEAF"))) for at in range(16)]
    run.fold(replace(opened, run_id=run.run_id) for opened in held)
    pool = pool_of(ground, "v3 weth LEAF")
    return await last(run, opening(pool, around(ground, pool), (10**12, 10**18)))


async def no_position(ground: Ground, run: Run) -> Ended:
    return await last(run, closing("w1-a-1/0/0"))


async def last(run: Run, *orders) -> Ended:
    return outcome((await run.decide(*orders))[-1])


PRODUCERS: dict[str, Callable[[Ground, Run], Awaitable[Ended]]] = {
    producer.__name__: producer
    for producer in (
        insufficient_eth, not_held, insufficient_tokens, board_too_old, gate_flagged, gate_unknown, gas_exceeds_value, unprovable_exit,
        no_route, reverted, fault, unprovable, unprovable_no_quote, lp_pool, lp_range, lp_share, lp_token, no_position,
        too_many_positions,
    )
}  # fmt: skip


@pytest.mark.parametrize("reason", PRODUCERS)
async def test_an_order_ends_for_this_reason_and_names_its_rule(chain, reason):
    ground = await Ground.on(chain)
    run = Run(ground)
    ended = await PRODUCERS[reason](ground, run)
    await ground.close()
    expected = (OrderRefused, REFUSALS[reason]) if reason in REFUSALS else (OrderNotFilled, None)
    assert not isinstance(ended, FillCredited) and (ended.reason, type(ended), getattr(ended, "rule", None)) == (reason, *expected)
    assert run.book().eth_wei == Wei(10**18)


def test_every_reason_is_produced_by_a_test():
    assert PRODUCERS.keys() | BY_THE_RUN.keys() == REFUSALS.keys() | set(NOT_FILLED)
    assert not PRODUCERS.keys() & BY_THE_RUN.keys() and not REFUSALS.keys() & set(NOT_FILLED)


@pytest.mark.parametrize("reason", BY_THE_RUN)
def test_the_test_of_a_reason_that_the_window_gives_exists_and_names_it(reason):
    file, _, name = BY_THE_RUN[reason].partition("::")
    text = (HERE / file).read_text("utf-8")
    before, _, after = text.partition(f"def {name}(")
    body = before[-2_000:] + re.split(r"\n(?:async )?def |\n@pytest|\n# ---", after)[0]
    assert after and reason.upper() in body.upper()
