"""Stacks without a model play through the same question, provider and parser as a model (001 §2.3.5)."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.manifest import load_harness
from harnesses.outcome import Outcome
from harnesses.question import Question
from harnesses.stack import NO_MODEL
from harnesses.turn import play
from ledgers.clock import VirtualClock
from ledgers.identity import sha256_hex
from referee.onchain.baselines import HOLD, TRADERS, Baseline, baseline, scripted
from referee.onchain.decision import Decision, of_turn, parse, reading
from tests.onchain.shown import ETHER, OPENED, RESERVE_WEI, STAKE_WEI, address, book, market, question, token

HARNESS = load_harness("baseline-1")
NAMES = [trader.NAME for trader in TRADERS]
ORDERS_MAX = 8


def stack(name: str, copy: int = 1, seed: int = 7, label: str | None = None, **params: int) -> Baseline:
    return baseline(name, params, HARNESS, window_seed=seed, copy=copy, label=label)


async def decided(player: Baseline, asked: Question) -> list[dict]:
    """What a stack decides, played as in a window."""
    clock = VirtualClock()
    turn = await play(player.stack, asked, player.provider(clock), clock, reading(ORDERS_MAX))
    assert turn.outcome == Outcome.ANSWERED, turn.reason
    assert isinstance(of_turn(turn, ORDERS_MAX), Decision)
    return json.loads(turn.answer)["orders"]


def rising(letter: str, **more):
    return token(letter, 1_000, 1_100, **more)


def falling(letter: str, **more):
    return token(letter, 1_100, 1_000, **more)


# --- all of them ----------------------------------------------------------------------------------------------------

TOKEN_MARKETS = st.lists(
    st.builds(
        lambda letter, prices, liquidity, decimals: token(letter, *prices, liquidity_wei=liquidity, decimals=decimals),
        st.sampled_from("abcdef"),
        st.lists(st.integers(0, 10**30), min_size=1, max_size=60),
        st.integers(0, 10**24),
        st.sampled_from([0, 6, 18, 24]),
    ),
    max_size=6,
    unique_by=lambda market: market.address,
)
BOOKS = st.builds(book, st.integers(0, 10**20), st.dictionaries(st.sampled_from("abcdef0"), st.integers(1, 10**40), max_size=7))


@settings(deadline=None, max_examples=40)
@pytest.mark.parametrize("name", NAMES)
@given(tokens=TOKEN_MARKETS, own=BOOKS, tick=st.integers(0, 10_000))
async def test_any_market_and_any_book_give_one_valid_affordable_decision(name: str, tokens: list, own, tick: int) -> None:
    orders = await decided(stack(name), question(market(*tokens), own, tick))
    buys = [order for order in orders if order["type"] == "buy"]
    held = {holding.token: int(holding.units_raw) for holding in own.holdings}
    kept = set(held) | {order["token"] for order in buys}
    assert not buys or sum(int(order["spend_wei"]) for order in buys) <= int(own.eth_wei) - len(kept) * RESERVE_WEI
    assert {order["token"] for order in buys} <= {offered.address for offered in tokens}
    for order in orders:
        if order["type"] == "sell":
            assert order["amount_raw"] == "all" or int(order["amount_raw"]) <= held[order["token"]]


@pytest.mark.parametrize("name", NAMES)
async def test_the_same_question_is_answered_the_same(name: str) -> None:
    asked = question(market(rising("a"), falling("b")), book(held={"b": 9}), tick=4)
    assert await decided(stack(name), asked) == await decided(stack(name), asked)


@pytest.mark.parametrize("name", NAMES)
def test_onc_01_a_stack_without_a_model_has_a_versioned_identity_and_is_exempt_from_the_exam(name: str) -> None:
    player = stack(name)
    assert (player.stack.model, player.stack.provider, player.stack.exempt_from_exam) == (NO_MODEL, f"baseline/{name}@1", True)
    assert player.stack.harness_sha256 == HARNESS.sha256
    assert player.turn_ms_max == 10_000


def test_onc_01_stacks_differ_by_name_and_by_parameter_and_copies_are_the_same_stack() -> None:
    identities = {stack(name).stack.sha256 for name in NAMES} | {stack("random", buy_ppm=1).stack.sha256}
    assert len(identities) == len(NAMES) + 1
    assert stack("random", copy=1).stack.sha256 == stack("random", copy=2, seed=8, label="other").stack.sha256


def test_defaults_written_out_are_the_same_stack() -> None:
    assert stack("random", buy_ppm=400_000).stack.sha256 == stack("random").stack.sha256


def test_copies_have_seeds_of_their_own() -> None:
    assert len({stack("random", copy=copy).seed for copy in range(1, 9)}) == 8
    assert stack("random").seed == stack("random").seed


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("genius", {}, "no baseline named 'genius'; known: hold, random, momentum, reversion, equal-weight"),
        ("script", {}, "no baseline named 'script'"),
        ("hold", {"speed": 1}, "baseline hold has no parameter 'speed'; known: none"),
        ("random", {"buy": 1}, "known: buy_ppm, sell_ppm, spend_ppm_min, spend_ppm_max"),
        ("random", {"buy_ppm": "400000"}, "buy_ppm is '400000', expected a whole number"),
        ("random", {"buy_ppm": True}, "expected a whole number"),
        ("random", {"buy_ppm": 0.4}, "expected a whole number"),
        ("random", {"buy_ppm": 1_000_001}, "buy_ppm is 1000001, expected 0 to 1000000"),
        ("random", {"buy_ppm": 700_001}, "sell_ppm (with buy_ppm at most 1000000) is 300000"),
        ("random", {"spend_ppm_min": 0}, "spend_ppm_min is 0, expected 1 to 1000000"),
        ("random", {"spend_ppm_max": 9_999}, "spend_ppm_max is 9999, expected 10000 to 1000000"),
        ("momentum", {"lookback_steps": 0}, "lookback_steps is 0, expected 1 to 60"),
        ("momentum", {"threshold_bps": -1}, "threshold_bps is -1"),
        ("reversion", {"spend_ppm": 0}, "spend_ppm is 0"),
        ("equal-weight", {"tokens": 8}, "tokens is 8, expected 1 to 7"),
        ("equal-weight", {"drift_bps": 0}, "drift_bps is 0"),
    ],
)
def test_a_baseline_or_parameter_that_does_not_exist_is_refused_in_one_sentence(name: str, params: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        baseline(name, params, HARNESS, window_seed=7, copy=1)
    assert said in str(refused.value)


def test_parameters_at_their_borders_are_taken() -> None:
    stack("random", buy_ppm=700_000)
    stack("random", buy_ppm=0, sell_ppm=0, spend_ppm_min=1, spend_ppm_max=1)
    stack("momentum", lookback_steps=60, threshold_bps=10_000, spend_ppm=1_000_000)
    stack("equal-weight", tokens=7, drift_bps=10_000)


async def test_what_a_version_decides_never_changes() -> None:
    """A difference here needs a new VERSION: the same identity must go on deciding the same."""
    snapshot = market(rising("a"), falling("b"), token("c", 1_000, 900, 950), token("d", 50, 70), token("e", 70, 50))
    asked = [question(snapshot, book(held={"a": 500, "b": 8, "f": 1}), tick) for tick in range(12)]
    said = {name: sha256_hex(json.dumps([await decided(stack(name), one) for one in asked]).encode())[:16] for name in NAMES}
    assert said == {
        "hold": "243b03250568a6d2",
        "random": "5966e4050f2c0d0e",
        "momentum": "ffe696fdf12fe92d",
        "reversion": "241bd31df7e74c24",
        "equal-weight": "bd7d2144309a235f",
    }


# --- hold -----------------------------------------------------------------------------------------------------------


async def test_hold_does_nothing() -> None:
    assert await decided(stack("hold"), question(market(rising("a")), book(held={"a": 5}))) == []


# --- random ---------------------------------------------------------------------------------------------------------


async def played_at_random(ticks: int, snapshot, own, **params: int) -> list[dict | None]:
    """One order or none for each tick."""
    provider, asked = stack("random", **params).provider(VirtualClock()), question(snapshot, own)
    answers = [await provider.answer(replace(asked, tick=tick)) for tick in range(ticks)]
    orders = [json.loads(answer.text)["orders"] for answer in answers]
    return [order[0] if order else None for order in orders]


async def test_random_buys_sells_and_does_nothing_in_the_manifest_s_shares() -> None:
    said = Counter(
        order["type"] if order else "nothing"
        for order in await played_at_random(1_000, market(token("a")), book(held={"a": 1_000}))
    )
    assert 340 < said["buy"] < 460 and 240 < said["sell"] < 360 and 240 < said["nothing"] < 360


@pytest.mark.parametrize(
    ("params", "only"),
    [
        ({"buy_ppm": 1_000_000, "sell_ppm": 0}, "buy"),
        ({"buy_ppm": 0, "sell_ppm": 1_000_000}, "sell"),
        ({"buy_ppm": 0, "sell_ppm": 0}, None),
    ],
)
async def test_random_follows_its_chances_to_the_border(params: dict, only: str | None) -> None:
    said = await played_at_random(20, market(token("a")), book(held={"a": 1_000}), **params)
    assert {order and order["type"] for order in said} == {only}


async def test_random_spends_one_to_twenty_five_percent_of_the_cash_that_may_be_spent() -> None:
    buys = await played_at_random(300, market(token("a")), book(), buy_ppm=1_000_000, sell_ppm=0)
    cash_wei = STAKE_WEI - RESERVE_WEI
    spent = [int(order["spend_wei"]) for order in buys]
    assert cash_wei // 100 <= min(spent) and max(spent) <= cash_wei // 4
    assert len(set(spent)) > 250


async def test_random_counts_the_exit_reserve_of_every_holding_once() -> None:
    sizes = {"buy_ppm": 1_000_000, "sell_ppm": 0, "spend_ppm_min": 1_000_000, "spend_ppm_max": 1_000_000}
    (held,) = await played_at_random(1, market(token("a")), book(held={"a": 5}), **sizes)
    (other,) = await played_at_random(1, market(token("a")), book(held={"b": 5}), **sizes)
    assert int(held["spend_wei"]) == STAKE_WEI - RESERVE_WEI
    assert int(other["spend_wei"]) == STAKE_WEI - 2 * RESERVE_WEI


@pytest.mark.parametrize(("eth_wei", "buys"), [(RESERVE_WEI, 0), (RESERVE_WEI + 3, 0), (RESERVE_WEI + 4, 1)])
async def test_random_does_nothing_when_nothing_may_be_spent(eth_wei: int, buys: int) -> None:
    sizes = {"buy_ppm": 1_000_000, "sell_ppm": 0, "spend_ppm_min": 250_000, "spend_ppm_max": 250_000}
    said = await played_at_random(1, market(token("a")), book(eth_wei), **sizes)
    assert len([order for order in said if order]) == buys


async def test_random_picks_tokens_by_their_liquidity_and_none_without_any() -> None:
    snapshot = market(token("a", liquidity_wei=3 * ETHER), token("b", liquidity_wei=ETHER), token("c", liquidity_wei=0))
    buys = await played_at_random(800, snapshot, book(), buy_ppm=1_000_000, sell_ppm=0)
    picked = Counter(order["token"] for order in buys)
    assert 540 < picked[address("a")] < 660 and picked[address("b")] == 800 - picked[address("a")]


async def test_random_sells_a_uniform_share_of_one_holding() -> None:
    sales = await played_at_random(800, market(token("a")), book(held={"a": 1_000, "b": 1}), buy_ppm=0, sell_ppm=1_000_000)
    picked = Counter(order["token"] for order in sales)
    amounts = [int(order["amount_raw"]) for order in sales if order["token"] == address("a")]
    assert 340 < picked[address("b")] < 460
    assert 1 <= min(amounts) and max(amounts) <= 1_000 and 440 < sum(amounts) // len(amounts) < 560


@pytest.mark.parametrize(("params", "own"), [({"buy_ppm": 1_000_000, "sell_ppm": 0}, book()), ({"buy_ppm": 0, "sell_ppm": 1_000_000}, book())])
async def test_random_does_nothing_when_there_is_nothing_to_buy_or_to_sell(params: dict, own) -> None:
    assert await played_at_random(5, market(), own, **params) == [None] * 5


async def test_random_draws_the_same_after_a_resume() -> None:
    whole = await played_at_random(20, market(token("a")), book(held={"a": 1_000}))
    resumed = await played_at_random(20, market(token("a")), book(held={"a": 1_000}))
    assert whole[10:] == resumed[10:]


# --- momentum and reversion -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "last"), [("momentum", 1_300), ("reversion", 700)])
async def test_a_pool_too_shallow_for_the_spend_is_left_alone(name: str, last: int) -> None:
    spend_wei = (STAKE_WEI - RESERVE_WEI) // 5 + 1
    for depth_wei, orders in ((20 * spend_wei, 1), (20 * (spend_wei - 1) - 1, 0)):
        shown = market(token("a", 1_000, last, liquidity_wei=depth_wei))
        assert len(await decided(stack(name), question(shown, book()))) == orders


async def test_momentum_buys_what_rose_most_and_sells_what_fell() -> None:
    snapshot = market(falling("a"), rising("b"), token("c", 1_000, 1_300))
    assert await decided(stack("momentum"), question(snapshot, book(held={"a": 5}))) == [
        {"type": "sell", "token": address("a"), "amount_raw": "all"},
        {"type": "buy", "token": address("c"), "spend_wei": str((STAKE_WEI - 2 * RESERVE_WEI) // 5)},
    ]


async def test_reversion_buys_what_lies_furthest_below_its_mean_and_sells_what_is_above() -> None:
    snapshot = market(rising("a"), falling("b"), token("c", 1_300, 1_000))
    assert await decided(stack("reversion"), question(snapshot, book(held={"a": 5}))) == [
        {"type": "sell", "token": address("a"), "amount_raw": "all"},
        {"type": "buy", "token": address("c"), "spend_wei": str((STAKE_WEI - 2 * RESERVE_WEI) // 5)},
    ]


@pytest.mark.parametrize(("price", "sides"), [(10_099, []), (10_100, ["buy"])])
async def test_momentum_takes_a_rise_at_its_threshold_and_none_below(price: int, sides: list[str]) -> None:
    orders = await decided(stack("momentum"), question(market(token("a", 10_000, price)), book()))
    assert [order["type"] for order in orders] == sides


@pytest.mark.parametrize(("price", "sides"), [(9_901, ["sell"]), (9_900, ["sell"]), (9_910, ["sell"]), (10_000, [])])
async def test_momentum_sells_what_fell_rounding_against_the_holding(price: int, sides: list[str]) -> None:
    orders = await decided(stack("momentum", threshold_bps=90), question(market(token("a", 10_000, price)), book(held={"a": 5})))
    assert [order["type"] for order in orders] == sides


async def test_momentum_looks_back_no_further_than_told() -> None:
    snapshot = market(token("a", 1_000, 2_000, 2_000))
    assert await decided(stack("momentum", lookback_steps=1), question(snapshot, book())) == []
    assert len(await decided(stack("momentum", lookback_steps=2), question(snapshot, book()))) == 1


@pytest.mark.parametrize("name", ["momentum", "reversion"])
async def test_what_is_held_is_not_bought_again(name: str) -> None:
    snapshot = market(rising("a") if name == "momentum" else falling("a"))
    assert await decided(stack(name), question(snapshot, book(held={"a": 5}))) == []


@pytest.mark.parametrize("name", ["momentum", "reversion"])
async def test_a_holding_that_is_not_on_offer_is_left_alone(name: str) -> None:
    assert await decided(stack(name), question(market(token("a")), book(held={"f": 5}))) == []


@pytest.mark.parametrize("name", ["momentum", "reversion"])
async def test_sales_and_the_buy_fit_in_one_decision(name: str) -> None:
    sold, bought = (falling, rising) if name == "momentum" else (rising, falling)
    snapshot = market(*(sold(letter) for letter in "12345678"), bought("9"))
    orders = await decided(stack(name), question(snapshot, book(held=dict.fromkeys("12345678", 5))))
    assert [order["type"] for order in orders] == ["sell"] * 7 + ["buy"]


# --- equal weight ---------------------------------------------------------------------------------------------------


async def test_equal_weight_spreads_its_stake_over_the_deepest_tokens_and_eth() -> None:
    snapshot = market(*(token(letter) for letter in "abcde"))
    orders = await decided(stack("equal-weight"), question(snapshot, book()))
    assert orders == [{"type": "buy", "token": address(letter), "spend_wei": str(STAKE_WEI // 5)} for letter in "abcd"]


async def test_equal_weight_sells_what_is_above_its_share_and_what_is_no_longer_chosen() -> None:
    snapshot = market(token("a", ETHER), token("b", ETHER))
    own = book(ETHER, {"a": 4 * ETHER, "b": ETHER, "f": 9})
    assert await decided(stack("equal-weight", tokens=2), question(snapshot, own)) == [
        {"type": "sell", "token": address("f"), "amount_raw": "all"},
        {"type": "sell", "token": address("a"), "amount_raw": str(2 * ETHER)},
        {"type": "buy", "token": address("b"), "spend_wei": str(ETHER - 3 * RESERVE_WEI)},
    ]


@pytest.mark.parametrize(("held", "orders"), [(1_200_000, 0), (1_500_001, 1)])
async def test_equal_weight_leaves_a_small_drift_alone(held: int, orders: int) -> None:
    snapshot = market(token("a", ETHER, decimals=6))
    own = book(ETHER, {"a": held})
    assert len(await decided(stack("equal-weight", tokens=1), question(snapshot, own))) == orders


async def test_equal_weight_never_spends_the_exit_reserve() -> None:
    snapshot = market(*(token(letter) for letter in "abcd"))
    orders = await decided(stack("equal-weight"), question(snapshot, book(4 * RESERVE_WEI + 10)))
    assert [int(order["spend_wei"]) for order in orders] == [10]
    assert await decided(stack("equal-weight"), question(snapshot, book(4 * RESERVE_WEI))) == []


# --- script ---------------------------------------------------------------------------------------------------------

SCRIPT = b'{"tick": 1, "decision": {"schema": "decision/1", "orders": [{"type": "stop"}]}}\n{"tick": 2, "answer": "sell it all!"}\n'


def player(script: bytes = SCRIPT) -> Baseline:
    return scripted(script, HARNESS, window_seed=7, copy=1, label="mine")


async def test_a_script_answers_its_ticks_and_holds_on_the_others() -> None:
    assert await decided(player(), question(market(), book(), 0)) == []
    assert await decided(player(), question(market(), book(), 1)) == [{"type": "stop"}]


async def test_a_script_has_no_side_door_past_the_parser() -> None:
    clock = VirtualClock()
    turn = await play(player().stack, question(market(), book(), 2), player().provider(clock), clock, reading(ORDERS_MAX))
    assert (turn.outcome, turn.reason.split(":")[0]) == (Outcome.MALFORMED, "not_json")


def test_onc_01_one_changed_byte_of_a_script_is_a_new_stack() -> None:
    assert player(SCRIPT + b"\n").stack.sha256 != player().stack.sha256
    assert player().stack.provider == "baseline/script@1" and player().stack.name == "mine"


@pytest.mark.parametrize(("script", "said"), [(b"{}", "script line 1"), (b"\xff", "not UTF-8 at byte 0")])
def test_a_script_that_does_not_read_is_refused(script: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        player(script)


def test_the_hold_that_stacks_fall_back_on_is_a_valid_decision() -> None:
    assert parse(HOLD, ORDERS_MAX) == Decision("decision/1", (), (), None)


def test_the_window_of_these_tests_leaves_room_for_a_reserve() -> None:
    assert RESERVE_WEI * 10 < int(OPENED.stake_wei)
