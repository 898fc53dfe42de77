"""Further ledgers in a window: they follow beside the turns, wait for nobody's sake but the close's, and never touch the score."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault
from referee.onchain.events import (
    DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT, LEDGERS, FillCredited, MarkTaken, OrderNotFilled, OrderRefused, RunOpened, RunScored, TickMissed,
    WindowLiquidated,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped
from referee.onchain.replay import replay
from referee.onchain.rules import FIRST
from referee.onchain.run import open_window, play_window
from tests.onchain.paper import STAKE, T0, PaperChain, Said, a_buy, a_window, again, buying, events_of, live_on, ordering, selling, to_the_end


@pytest.fixture
def chain() -> PaperChain:
    return PaperChain(VirtualClock(T0))


async def played(chain: PaperChain, said, window=None, rules=None, meanwhile=None, delay_ms=0):
    live = live_on(chain, {"a": Said(chain.clock, said, delay_ms)}, window)
    live.rules = rules or live.rules
    await open_window(live)
    beside = asyncio.ensure_future(meanwhile(live)) if meanwhile else None
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    if beside:
        beside.cancel()
    assert again(live) == live.state and replay(live.journal.read()).difference is None
    return live


def of(journal, kind, ledger: str) -> list:
    return [event for event in events_of(journal, kind) if ledger in event.ledgers]


async def test_the_stake_is_booked_on_every_ledger_that_the_rules_keep(chain):
    live = await played(chain, {})
    assert events_of(live.journal, RunOpened)[0].entry.ledgers == (*LEDGERS, *FURTHER_LEDGERS)
    (score,) = events_of(live.journal, RunScored)
    assert (score.delayed_wei, score.impact_wei, score.delayed_ppm, score.impact_ppm) == (STAKE, STAKE, 0, 0)


async def test_older_rules_keep_two_ledgers(chain):
    live = await played(chain, {0: buying(10**15)}, rules=FIRST)
    (score,) = events_of(live.journal, RunScored)
    assert events_of(live.journal, RunOpened)[0].entry.ledgers == LEDGERS and (score.delayed_wei, score.impact_ppm) == (None, None)
    assert {ledger for fill in events_of(live.journal, FillCredited) for ledger in fill.ledgers} == set(LEDGERS)


@pytest.mark.parametrize(("price", "ended"), [(10**15 * 99 // 100, "better"), (10**15 * 101 // 100, "worse"), (10**15 * 103 // 100, "reverted")])
async def test_onc_22_a_delayed_order_meets_the_price_two_seconds_later(chain, price, ended):
    async def move(live):
        await chain.clock.sleep_until(T0 + 1_000)
        chain.wei_per_token = price

    live = await played(chain, {0: buying(10**15)}, meanwhile=move)
    (board,) = of(live.journal, FurtherBoardTaken, DELAYED)
    headline, fills, reverts = of(live.journal, FillCredited, HEADLINE)[0], of(live.journal, FillCredited, DELAYED), of(live.journal, DelayedReverted, DELAYED)
    assert (board.ts_ms - T0, board.delay_ms) == (2_000, 2_000)
    word = "reverted" if reverts else "better" if fills[0].arrival_raw > headline.arrival_raw else "worse"
    assert word == ended
    assert not reverts or live.state.runs["w1-a-1"].scored.delayed_wei == STAKE - reverts[0].gas_wei


async def test_nobody_waits_for_a_delay(chain):
    """Woken every second, with a delay of two: no tick is missed, and decisions are delayed in their order."""
    said = {tick: buying(10**15) for tick in range(9)}
    live = await played(chain, said, a_window(length_s=10, interval_s=1))
    assert not events_of(live.journal, TickMissed)
    assert [fill.order_id for fill in of(live.journal, FillCredited, DELAYED)] == [f"w1-a-1/{tick}/0" for tick in range(9)]
    assert [fill.ts_ms - T0 for fill in of(live.journal, FillCredited, HEADLINE)] == [1_000 * tick for tick in range(9)]


async def test_an_order_decided_before_the_close_is_delayed_in_full_and_then_all_is_liquidated(chain):
    live = await played(chain, {5: buying(10**15)}, delay_ms={5: 9_500})
    (late,) = of(live.journal, FillCredited, DELAYED)
    assert late.ts_ms - T0 == 61_000 and min(sold.ts_ms for sold in events_of(live.journal, WindowLiquidated)) >= late.ts_ms


async def test_own_impact_is_simulated_at_headlines_own_block(chain):
    live = await played(chain, {0: ordering(a_buy(10**15), a_buy(10**15)), 2: selling()})
    blocks = {order.order_id: order.pin.block for order in of(live.journal, FurtherBoardTaken, IMPACT)}
    assert blocks == {"w1-a-1/0/0": 1_000, "w1-a-1/0/1": 1_000, "w1-a-1/2/0": 1_020}


async def test_what_headline_refuses_is_skipped_in_the_same_append(chain):
    live = await played(chain, {0: buying(10**18), 1: selling(), 2: ordering('{"type":"limit"}')})
    skips = {event.order_id: (event.ledgers, event.reason, event.detail) for event in events_of(live.journal, OrderSkipped)}
    assert skips == {
        "w1-a-1/0/0": (FURTHER_LEDGERS, "headline_refused", "insufficient_eth"),
        "w1-a-1/1/0": (FURTHER_LEDGERS, "headline_refused", "not_held"),
        "w1-a-1/2/0": (FURTHER_LEDGERS, "headline_refused", "standing_order"),
    }


async def test_a_network_that_goes_away_costs_the_delayed_ledger_its_order_and_headline_nothing(chain):
    async def away(live):
        await chain.clock.sleep_until(T0 + 1_000)
        chain.down = True
        await chain.clock.sleep_until(T0 + 5_000)
        chain.down = False

    live = await played(chain, {0: buying(10**15), 1: selling()}, meanwhile=away)
    assert [(event.reason, event.ledgers) for event in events_of(live.journal, OrderNotFilled)] == [("fault", (DELAYED,))]
    skips = [(event.order_id, event.ledgers, event.reason) for event in events_of(live.journal, OrderSkipped)]
    assert skips == [("w1-a-1/1/0", (DELAYED,), "not_held")]
    assert len(of(live.journal, FillCredited, HEADLINE)) == len(of(live.journal, FillCredited, IMPACT)) == 2


async def test_a_chain_without_a_block_that_is_late_enough_is_a_fault_after_half_a_minute(chain):
    class Stuck(PaperChain):
        async def pin(self):
            pin = await super().pin()
            return pin if self.clock.now_ms() < T0 + 500 else type(pin)(**{name: getattr(pin, name) for name in pin.__slots__} | {"block_ts_s": T0 // 1_000})

    stuck = Stuck(VirtualClock(T0))
    live = live_on(stuck, {"a": Said(stuck.clock, {0: buying(10**15)})})
    await open_window(live)
    await to_the_end(stuck, asyncio.ensure_future(play_window(live)))
    (event,) = of(live.journal, OrderNotFilled, DELAYED)
    assert event.reason == "fault" and "too early" in event.detail and event.ts_ms - T0 == 32_000


# --- marks and liquidation --------------------------------------------------------------------------------------------


async def test_ledgers_that_hold_nothing_share_one_mark_and_one_liquidation(chain):
    live = await played(chain, {})
    assert {mark.ledgers for mark in events_of(live.journal, MarkTaken)} == {(*LEDGERS, *FURTHER_LEDGERS)}
    assert [sold.ledgers for sold in events_of(live.journal, WindowLiquidated)] == [(*LEDGERS, *FURTHER_LEDGERS)]


async def test_a_turns_mark_of_a_further_ledger_comes_after_its_orders(chain):
    live = await played(chain, {0: buying(10**15)})
    turn = [(mark.ledgers, mark.ts_ms - T0) for mark in events_of(live.journal, MarkTaken) if mark.clock == "turn" and mark.tick == 0]
    assert turn == [(LEDGERS, 0), ((DELAYED,), 2_000), ((IMPACT,), 2_000)]


async def test_a_mark_on_the_clock_leaves_out_what_is_still_followed(chain):
    live = await played(chain, {1: buying(10**15)})
    at_ten = [mark.ledgers for mark in events_of(live.journal, MarkTaken) if mark.clock == "clock" and mark.ts_ms - T0 == 10_000]
    assert at_ten in ([LEDGERS], [(*LEDGERS, *FURTHER_LEDGERS)])
    later = Counter(ledger for mark in events_of(live.journal, MarkTaken) if mark.clock == "clock" and mark.ts_ms - T0 == 20_000 for ledger in mark.ledgers)
    assert later == dict.fromkeys((*LEDGERS, *FURTHER_LEDGERS), 1)


@pytest.mark.parametrize("ledger", FURTHER_LEDGERS)
async def test_a_further_ledger_that_cannot_be_liquidated_has_no_value_and_the_run_its_score(chain, ledger):
    chain.values_down = {ledger}
    live = await played(chain, {0: buying(10**15)})
    (score,) = events_of(live.journal, RunScored)
    assert (score.status, getattr(score, f"{ledger}_wei"), getattr(score, f"{ledger}_ppm")) == ("SCORED", None, None)
    other = next(name for name in FURTHER_LEDGERS if name != ledger)
    assert getattr(score, f"{other}_wei") is not None and chain.clock.now_ms() - T0 < 60_000 + 10_000
    unmeasured = [mark for mark in of(live.journal, MarkTaken, ledger) if mark.value_wei is None]
    assert unmeasured and all(mark.fault == "slow" for mark in unmeasured)


async def test_a_liquidation_that_can_never_be_measured_is_not_tried_again(chain):
    class Unrepeatable(PaperChain):
        asked = 0

        def follower(self):
            real = super().follower()
            value = real.value

            async def refuse(run_id, wallet, book, pin, trades=()):
                if book.ledger == IMPACT and self.clock.now_ms() >= T0 + 60_000:
                    self.asked += 1
                    raise ChainFault("impact_unrepeatable", "")
                return await value(run_id, wallet, book, pin, trades)

            real.value = refuse
            return real

    stuck = Unrepeatable(VirtualClock(T0))
    live = live_on(stuck, {"a": Said(stuck.clock, {0: buying(10**15)})})
    await open_window(live)
    await to_the_end(stuck, asyncio.ensure_future(play_window(live)))
    assert (stuck.asked, live.state.runs["w1-a-1"].scored.impact_wei, stuck.clock.now_ms()) == (1, None, T0 + 60_000)


async def test_a_further_ledger_that_is_sold_out_at_a_second_try_has_its_value(chain):
    async def back(live):
        await chain.clock.sleep_until(T0 + 55_000)
        chain.values_down = {DELAYED}
        await chain.clock.sleep_until(T0 + 61_000)
        chain.values_down = set()

    live = await played(chain, {0: buying(10**15)}, meanwhile=back)
    assert live.state.runs["w1-a-1"].scored.delayed_wei is not None
    assert [sold.ts_ms - T0 for sold in of(live.journal, WindowLiquidated, HEADLINE)] == [60_000]
    assert not events_of(live.journal, OrderRefused)


async def test_a_pause_lets_a_delay_under_way_end(chain):
    live = live_on(chain, {"a": Said(chain.clock, {1: buying(10**15)})})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 11_000)
    live.pausing.set()
    assert await to_the_end(chain, playing) is False
    assert [fill.ts_ms - T0 for fill in of(live.journal, FillCredited, DELAYED)] == [12_000] and not live.state.runs["w1-a-1"].owed


async def test_own_impact_lets_the_orders_of_others_go_first(chain):
    """Two runs decide at once: what the first one felt is simulated after the second one's orders."""
    chain.order_ms = 300
    live = live_on(chain, {name: Said(chain.clock, {0: buying(10**15)}, delay_ms=delay) for name, delay in (("a", 0), ("b", 200))}, a_window(("a", "b")))
    await open_window(live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    first = {ledger: {fill.run_id: fill.ts_ms - T0 for fill in of(live.journal, FillCredited, ledger)} for ledger in (HEADLINE, IMPACT)}
    assert first == {HEADLINE: {"w1-a-1": 300, "w1-b-1": 500}, IMPACT: {"w1-a-1": 500, "w1-b-1": 500}}
