"""A window from its opening to its seal: ticks, misses, orders, marks, liquidation, faults, each on both sides of its border."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from harnesses.scripted import ScriptedProvider
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault, FeedFault
from ledgers.journal import verify
from ledgers.money import MicroUsd, Wei
from referee.onchain.events import (
    HEADLINE, BundleShown, ClockJumped, DecisionMalformed, FillCredited, MarkTaken, NetworkFaulted, NetworkRecovered,
    OrderNotFilled, OrderRefused, ReorgSeen, RunOpened, RunScored, TickMissed, TurnPlayed, TurnUnavailable, WindowLiquidated,
    WindowOpened, WindowPaused, WindowScored, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.opening import Refused
from referee.onchain.rules import FIRST
from referee.onchain.run import open_window, play_window
from tests.onchain.paper import (
    ETH_USD, STAKE, T0, TOKEN, PaperChain, Said, a_buy, a_window, again, buying, events_of, live_on, ordering, selling, to_the_end,
)  # fmt: skip


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(T0)


@pytest.fixture
def chain(clock: VirtualClock) -> PaperChain:
    return PaperChain(clock)


async def played(chain: PaperChain, providers, window=None, meanwhile=None):
    """Play a whole window; `meanwhile` runs beside it."""
    live = live_on(chain, providers, window)
    await open_window(live)
    beside = asyncio.ensure_future(meanwhile(live)) if meanwhile else None
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    if beside:
        beside.cancel()
    return live


async def at(chain: PaperChain, after_ms: int) -> None:
    await chain.clock.sleep_until(T0 + after_ms)


# --- open -------------------------------------------------------------------------------------------------------------


async def test_the_stake_is_100_dollars_of_eth_on_both_ledgers_ONC_02(chain):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    assert {book.eth_wei for book in live.state.books.both("w1-a-1").values()} == {STAKE}


async def test_a_window_does_not_open_when_the_feed_disagrees_ONC_28(chain):
    chain.feed_gap = True
    live = live_on(chain, {"a": Said(chain.clock)})
    with pytest.raises(FeedFault):
        await open_window(live)
    assert live.journal.head()[0] == 0


async def test_a_window_does_not_open_without_a_node_and_leaves_nothing(chain):
    chain.down = True
    live = live_on(chain, {"a": Said(chain.clock)})
    with pytest.raises(ChainFault):
        await open_window(live)
    assert live.journal.head()[0] == 0


async def test_a_wallet_in_use_keeps_the_window_shut(chain):
    first = live_on(chain, {"a": Said(chain.clock)})
    await open_window(first)
    chain.used = {first.state.runs["w1-a-1"].opened.wallet}
    live = live_on(chain, {"a": Said(chain.clock)})
    with pytest.raises(Refused, match="1 paper wallets"):
        await open_window(live)
    assert live.journal.head()[0] == 0


async def test_every_run_has_its_own_wallet(chain):
    live = live_on(chain, {"a": Said(chain.clock), "b": Said(chain.clock)})
    await open_window(live)
    wallets = [opened.wallet for opened in events_of(live.journal, RunOpened)]
    assert len(set(wallets)) == 2 and all(len(wallet) == 42 for wallet in wallets)


# --- a whole window ---------------------------------------------------------------------------------------------------


async def test_holding_scores_exactly_0_ONC_16(chain):
    live = await played(chain, {"a": Said(chain.clock)})
    (score,) = events_of(live.journal, RunScored)
    assert (score.status, score.headline_ppm, score.permissive_ppm, score.headline_wei) == ("SCORED", 0, 0, STAKE)


async def test_the_events_of_a_window_come_in_the_order_of_the_paper(chain):
    live = await played(chain, {"a": Said(chain.clock, {0: buying(10**16)})}, a_window(length_s=10, interval_s=10))
    first = [type(event).__name__ for event in events_of(live.journal) if not isinstance(event, MarkTaken) or event.clock == "turn"]
    assert first == [
        "WindowOpened", "RunOpened", "Woken", "BundleShown", "StepTaken", "TurnPlayed", "DecisionTaken",
        "BoardTaken", "GateTaken", "RouteSimulated", "FillCredited", "BoardTaken", "GateTaken", "RouteSimulated", "FillCredited",
        "MarkTaken", "FurtherBoardTaken", "RouteSimulated", "FillCredited", "FurtherBoardTaken", "RouteSimulated", "FillCredited",
        "MarkTaken", "MarkTaken", "WindowLiquidated", "WindowLiquidated", "WindowLiquidated", "RunScored", "WindowScored", "WindowSealed",
    ]  # fmt: skip


async def test_the_seal_counts_what_came_before_and_names_its_link(chain):
    live = await played(chain, {"a": Said(chain.clock)})
    *before, last = live.journal.read()
    (seal,) = events_of(live.journal, WindowSealed)
    assert (seal.events, seal.root) == (before[-1].seq, before[-1].link) and verify(live.journal.read()) == last


async def test_the_live_state_is_the_fold_of_the_journal(chain):
    live = await played(chain, {"a": Said(chain.clock, {0: buying(10**16), 2: selling()}), "b": Said(chain.clock)})
    assert again(live) == live.state


async def test_a_bought_and_sold_token_is_booked_with_gas_and_price(chain):
    def rising():
        chain.wei_per_token = 2 * 10**15

    async def rise(live):
        await at(chain, 15_000)
        rising()

    live = await played(chain, {"a": Said(chain.clock, {0: buying(10**16), 2: selling()})}, meanwhile=rise)
    (score,) = events_of(live.journal, RunScored)
    assert score.headline_wei == STAKE + Wei(10**16) - Wei(2 * 10**12)
    assert score.fills == 2


async def test_what_is_still_held_at_the_close_is_sold_and_its_gas_counts(chain):
    live = await played(chain, {"a": Said(chain.clock, {0: buying(10**16)})})
    (score,) = events_of(live.journal, RunScored)
    assert score.headline_wei == STAKE - Wei(2 * 10**12)
    assert all(not book.holdings for book in live.state.books.both("w1-a-1").values())


# --- ticks ------------------------------------------------------------------------------------------------------------


async def test_ticks_fall_at_open_plus_k_intervals_and_none_at_the_close_ONC_03(chain):
    said = Said(chain.clock)
    live = await played(chain, {"a": said}, a_window(length_s=60, interval_s=10))
    assert [woken.scheduled_ts_ms - T0 for woken in events_of(live.journal, Woken)] == [0, 10_000, 20_000, 30_000, 40_000, 50_000]
    assert all(woken.lag_ms == 0 for woken in events_of(live.journal, Woken))
    assert [question.tick for question in said.asked] == [0, 1, 2, 3, 4, 5]


async def test_a_last_interval_that_is_cut_short_still_begins_with_a_tick(chain):
    live = await played(chain, {"a": Said(chain.clock)}, a_window(length_s=25, interval_s=10))
    assert events_of(live.journal, WindowOpened)[0].ticks == 3
    assert [woken.tick for woken in events_of(live.journal, Woken)] == [0, 1, 2]


@pytest.mark.parametrize(("late_ms", "reason"), [(1_000, None), (1_001, "late")])
async def test_a_tick_is_played_when_begun_within_a_tenth_of_the_interval(chain, late_ms, reason):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 9_999)
    chain.clock.jump(late_ms + 1)
    await to_the_end(chain, playing)
    woken = [event for event in events_of(live.journal, Woken) if event.tick == 1]
    missed = [event.reason for event in events_of(live.journal, TickMissed) if event.tick == 1]
    assert ([event.lag_ms for event in woken], missed) == (([late_ms], []) if reason is None else ([], [reason]))


async def test_a_clock_set_forward_over_several_ticks_misses_each_of_them_once(chain):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 5_000)
    chain.clock.jump(40_000)
    await to_the_end(chain, playing)
    assert [(event.tick, event.reason) for event in events_of(live.journal, TickMissed)] == [(1, "late"), (2, "late"), (3, "late"), (4, "late")]
    assert [jump.delta_ms for jump in events_of(live.journal, ClockJumped)] == [40_000]


async def test_a_clock_set_back_is_said_and_time_stamps_never_fall(chain):
    live = live_on(chain, {"a": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 25_000)
    chain.clock.jump(-7_000)
    await to_the_end(chain, playing)
    stamps = [event.ts_ms for event in events_of(live.journal)]
    assert stamps == sorted(stamps)
    assert [jump.delta_ms for jump in events_of(live.journal, ClockJumped)] == [-7_000]
    assert [woken.tick for woken in events_of(live.journal, Woken)] == [0, 1, 2, 3, 4, 5]


async def test_a_stack_that_is_still_at_its_turn_misses_the_tick_as_busy_and_others_do_not(chain):
    slow, quick = Said(chain.clock, delay_ms={0: 15_000}), Said(chain.clock)
    live = await played(chain, {"slow": slow, "quick": quick})
    assert [(event.run_id, event.tick, event.reason) for event in events_of(live.journal, TickMissed)] == [("w1-slow-1", 1, "busy")]
    assert [question.tick for question in quick.asked] == [0, 1, 2, 3, 4, 5]
    assert [question.tick for question in slow.asked] == [0, 2, 3, 4, 5]


async def test_every_tick_is_woken_or_missed_exactly_once_for_every_run(chain):
    slow = Said(chain.clock, delay_ms=12_000)
    live = await played(chain, {"slow": slow, "quick": Said(chain.clock), "third": Said(chain.clock)})
    counted = Counter((event.run_id, event.tick) for event in events_of(live.journal, Woken, TickMissed))
    assert set(counted.values()) == {1} and len(counted) == 3 * 6


async def test_the_stacks_of_a_tick_see_the_same_block_and_bytes_and_run_at_the_same_time_ONC_15(chain):
    a, b = Said(chain.clock, delay_ms=3_000), Said(chain.clock, delay_ms=3_000)
    live = await played(chain, {"a": a, "b": b})
    assert [question.bundle for question in a.asked] == [question.bundle for question in b.asked]
    first = [event.ts_ms - T0 for event in events_of(live.journal, TurnPlayed)][:2]
    assert first == [3_000, 3_000]
    pins = {(shown.tick, shown.pin.block, shown.bundle_sha256) for shown in events_of(live.journal, BundleShown)}
    assert len(pins) == 6


async def test_turn_order_rotates_so_that_each_run_is_first_equally_often_ONC_15(chain):
    live = await played(chain, {name: Said(chain.clock) for name in ("a", "b", "c")})
    places = Counter((woken.run_id, woken.order_index) for woken in events_of(live.journal, Woken))
    assert set(places.values()) == {2}


async def test_decisions_of_one_moment_are_refereed_in_rotation(chain):
    live = await played(chain, {name: Said(chain.clock, {0: buying(10**15)}) for name in ("a", "b", "c")})
    order = [woken.run_id for woken in events_of(live.journal, Woken) if woken.tick == 0]
    fills = [fill.run_id for fill in events_of(live.journal, FillCredited) if HEADLINE in fill.ledgers]
    assert fills == order


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_an_answer_that_is_no_decision_trades_nothing_and_is_told(chain):
    live = await played(chain, {"a": Said(chain.clock, {0: "buy it all!"})})
    assert [event.outcome for event in events_of(live.journal, TurnPlayed)][0] == "MALFORMED"
    (malformed,) = events_of(live.journal, DecisionMalformed)
    assert live.journal.blob(malformed.answer_sha256) == b"buy it all!"
    assert events_of(live.journal, RunScored)[0].turns_answered == 5


async def test_a_provider_that_is_down_is_unavailable_and_not_a_result(chain):
    live = await played(chain, {"a": ScriptedProvider({}, chain.clock)})
    (score,) = events_of(live.journal, RunScored)
    assert len(events_of(live.journal, TurnUnavailable)) == 6
    assert (score.turns_answered, score.turns_total, score.headline_ppm) == (0, 6, 0)


async def test_the_book_shown_is_the_headline_book_with_what_happened_last(chain):
    said = Said(chain.clock, {0: buying(10**16)})
    await played(chain, {"a": said})
    assert b'"eth_wei":"40000000000000000"' in said.asked[0].book
    assert b'"eth_wei":"29999000000000000"' in said.asked[1].book and b'"happened":"filled"' in said.asked[1].book


@pytest.mark.parametrize(("delay_ms", "outcome"), [(10_000, "ANSWERED"), (10_001, "OUT_OF_TIME")])
async def test_a_turn_that_runs_at_the_close_is_out_of_time(chain, delay_ms, outcome):
    live = await played(chain, {"a": Said(chain.clock, {5: buying(10**15)}, delay_ms={5: delay_ms})})
    assert events_of(live.journal, TurnPlayed)[-1].outcome == outcome
    assert not events_of(live.journal, FillCredited)


@pytest.mark.parametrize(("delay_ms", "filled"), [(9_999, True), (10_000, False)])
async def test_an_order_begun_at_the_close_is_refused_window_closed(chain, delay_ms, filled):
    live = await played(chain, {"a": Said(chain.clock, {5: buying(10**15)}, delay_ms={5: delay_ms})})
    assert bool(events_of(live.journal, FillCredited)) is filled
    assert [refused.reason for refused in events_of(live.journal, OrderRefused)] == ([] if filled else ["window_closed"])


async def test_orders_that_follow_a_slow_one_over_the_close_are_refused(chain):
    chain.order_ms = 600
    two = ordering(a_buy(10**15), a_buy(10**15))
    live = await played(chain, {"a": Said(chain.clock, {5: two}, delay_ms={5: 9_500})})
    assert [fill.order_id for fill in events_of(live.journal, FillCredited) if HEADLINE in fill.ledgers] == ["w1-a-1/5/0"]
    assert [(refused.order_id, refused.reason) for refused in events_of(live.journal, OrderRefused)] == [("w1-a-1/5/1", "window_closed")]


@pytest.mark.parametrize(
    ("order", "reason", "rule"),
    [
        ('{"type":"stop-loss","token":"%s","price":"1"}' % TOKEN, "standing_order", "ONC-26"),
        ('{"type":"limit"}', "standing_order", "ONC-26"),
        ('{"type":"open-lp","pool":"%s","amount0_raw":"1","amount1_raw":"0","tick_lower":"0","tick_upper":"60"}' % TOKEN, "not_yet", "ONC-21"),
        ('{"type":"close-lp","position":"w1-a-1/0/0"}', "not_yet", "ONC-21"),
    ],
)
async def test_standing_and_liquidity_orders_are_refused_by_name_ONC_26(chain, order, reason, rule):
    """Liquidity orders by the rules that came before them."""
    live = live_on(chain, {"a": Said(chain.clock, {0: ordering(order)})})
    live.rules = FIRST
    await open_window(live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    (refused,) = events_of(live.journal, OrderRefused)
    assert (refused.reason, refused.rule, refused.ledgers) == (reason, rule, ("headline", "permissive"))


async def test_every_order_has_exactly_one_outcome_on_each_ledger(chain):
    said = {0: buying(10**16), 1: buying(10**18), 2: selling(), 3: selling()}
    live = await played(chain, {"a": Said(chain.clock, said)})
    outcomes = Counter(
        (event.order_id, ledger)
        for event in events_of(live.journal, FillCredited, OrderRefused, OrderNotFilled, OrderSkipped, DelayedReverted)
        for ledger in event.ledgers
    )
    assert set(outcomes.values()) == {1} and len(outcomes) == 4 * 4


# --- faults -----------------------------------------------------------------------------------------------------------


async def away(chain: PaperChain, from_ms: int, to_ms: int):
    await at(chain, from_ms)
    chain.down = True
    await at(chain, to_ms)
    chain.down = False


async def test_a_network_that_is_away_is_said_once_and_its_return_once(chain):
    live = await played(chain, {"a": Said(chain.clock), "b": Said(chain.clock)}, meanwhile=lambda live: away(chain, 5_000, 35_000))
    assert [fault.reason for fault in events_of(live.journal, NetworkFaulted)] == ["dead"]
    assert [back.down_ms for back in events_of(live.journal, NetworkRecovered)] == [30_000]


async def test_without_a_network_a_turn_is_unavailable_and_its_mark_has_no_value(chain):
    said = Said(chain.clock)
    live = await played(chain, {"a": said}, meanwhile=lambda live: away(chain, 5_000, 15_000))
    assert [(event.tick, event.reason) for event in events_of(live.journal, TurnUnavailable)] == [(1, "no_bundle: dead")]
    assert [question.tick for question in said.asked] == [0, 2, 3, 4, 5]
    unmeasured = [mark for mark in events_of(live.journal, MarkTaken) if mark.value_wei is None]
    assert unmeasured and all(mark.fault and mark.pin is None and mark.eth_wei == STAKE for mark in unmeasured)


async def test_an_order_without_a_network_is_not_filled_and_never_guessed(chain):
    said = Said(chain.clock, {0: buying(10**16)}, delay_ms={0: 6_000})
    live = await played(chain, {"a": said}, meanwhile=lambda live: away(chain, 5_000, 8_000))
    assert [(event.reason, event.ledgers) for event in events_of(live.journal, OrderNotFilled)] == [("fault", ("headline", "permissive"))]
    assert not events_of(live.journal, FillCredited)


# --- marks ------------------------------------------------------------------------------------------------------------


async def test_marks_are_taken_after_each_turn_and_every_sixth_of_the_window_ONC_12(chain):
    live = await played(chain, {"a": Said(chain.clock)}, a_window(length_s=60, interval_s=15))
    marks = [(mark.clock, mark.ts_ms - T0, mark.tick) for mark in events_of(live.journal, MarkTaken)]
    assert [mark for mark in marks if mark[0] == "turn"] == [("turn", 0, 0), ("turn", 15_000, 1), ("turn", 30_000, 2), ("turn", 45_000, 3)]
    assert [at_ms for clock, at_ms, _ in marks if clock == "clock"] == [10_000, 20_000, 30_000, 40_000, 50_000]


async def test_marks_on_the_clock_are_never_further_apart_than_half_an_hour_ONC_12(chain):
    live = await played(chain, {"a": Said(chain.clock)}, a_window(length_s=6 * 3_600, interval_s=3_600 * 6))
    clocked = [mark.ts_ms - T0 for mark in events_of(live.journal, MarkTaken) if mark.clock == "clock"]
    assert clocked == [k * 1_800_000 for k in range(1, 12)]


# --- the close --------------------------------------------------------------------------------------------------------


async def test_all_runs_are_liquidated_at_one_block(chain):
    live = await played(chain, {name: Said(chain.clock, {0: buying(10**16)}) for name in ("a", "b")})
    assert len({sold.pin.block for sold in events_of(live.journal, WindowLiquidated)}) == 1


async def test_a_liquidation_that_faults_is_tried_again_at_later_blocks(chain):
    live = await played(chain, {"a": Said(chain.clock)}, meanwhile=lambda live: away(chain, 58_000, 90_000))
    (sold,) = events_of(live.journal, WindowLiquidated)
    assert (sold.pin.block_ts_s * 1_000 - T0, sold.late) == (90_000, False)
    assert events_of(live.journal, RunScored)[0].status == "SCORED"


@pytest.mark.parametrize(("back_ms", "status"), [(60_000 + 900_000, "SCORED"), (60_000 + 900_001, "UNSCORED")])
async def test_a_liquidation_is_retried_for_15_minutes_and_then_the_run_is_unscored(chain, back_ms, status):
    async def stay_away(live):
        await at(chain, 55_000)
        chain.values_down = {"w1-a-1"}
        await at(chain, back_ms)
        chain.values_down = set()

    live = await played(chain, {"a": Said(chain.clock), "b": Said(chain.clock)}, meanwhile=stay_away)
    scores = {score.run_id: score for score in events_of(live.journal, RunScored)}
    assert scores["w1-a-1"].status == status and scores["w1-b-1"].status == "SCORED"
    assert (scores["w1-a-1"].headline_ppm, scores["w1-a-1"].reason) == ((0, "") if status == "SCORED" else (None, "slow"))
    assert events_of(live.journal, WindowScored)[0].scored == (2 if status == "SCORED" else 1)
    assert live.state.runs["w1-a-1"].marks[HEADLINE].value_wei == STAKE


@pytest.mark.parametrize(("gap", "dollars"), [(False, MicroUsd(100_000_000)), (True, None)])
async def test_the_score_in_dollars_is_at_the_closing_price_and_none_without_one(chain, gap, dollars):
    async def lose_the_feed(live):
        await at(chain, 55_000)
        chain.feed_gap = gap

    live = await played(chain, {"a": Said(chain.clock)}, meanwhile=lose_the_feed)
    assert events_of(live.journal, RunScored)[0].close_usd_micro_usd == dollars
    assert events_of(live.journal, WindowScored)[0].close_eth_usd_micro_usd == (None if gap else ETH_USD)


async def test_fills_on_a_lost_block_are_marked_and_the_run_too(chain):
    async def fork(live):
        await at(chain, 30_000)
        chain.fork, chain.forked_at = "fork", 1_000

    live = await played(chain, {"a": Said(chain.clock, {0: buying(10**15)})}, meanwhile=fork)
    assert [reorg.block for reorg in events_of(live.journal, ReorgSeen)] == [1_000, 1_002]  # the delayed ledger's fill too
    (score,) = events_of(live.journal, RunScored)
    assert (score.fills, score.reorged_fills, score.reason) == (1, 1, "reorged")


# --- pause ------------------------------------------------------------------------------------------------------------


async def test_a_pause_abandons_what_is_being_asked_and_ends_cleanly(chain):
    live = live_on(chain, {"slow": Said(chain.clock, delay_ms=8_000), "quick": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 12_000)
    live.pausing.set()
    assert await to_the_end(chain, playing) is False
    kinds = [type(event).__name__ for event in events_of(live.journal)]
    assert kinds[-2:] == ["TurnAbandoned", "WindowPaused"] and events_of(live.journal, WindowPaused)[0].reason == "operator"


async def test_a_pause_lets_orders_under_way_end(chain):
    chain.order_ms = 2_000
    live = live_on(chain, {"a": Said(chain.clock, {1: buying(10**15)})})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 11_000)
    live.pausing.set()
    assert await to_the_end(chain, playing) is False
    assert [fill.order_id for fill in events_of(live.journal, FillCredited) if HEADLINE in fill.ledgers] == ["w1-a-1/1/0"]
