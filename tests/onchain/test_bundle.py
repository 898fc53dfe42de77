"""The bundle: the same bytes for all stacks of a tick, exact numbers, and outside text that can do no harm (001 §2.2)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.outside.told import Told
from chain.tape import TapeView
from ledgers.identity import canonical_bytes
from ledgers.money import TokenRaw, Wei
from ledgers.postings import Entry
from referee.onchain import bundle
from referee.onchain.bundle import own_book, shared_bundle
from referee.onchain.costs import Costs
from referee.onchain.events import (
    DecisionMalformed, FillCredited, HoldingMark, MarkTaken, OrderNotFilled, OrderRefused, TickMissed, TurnUnavailable, Woken,
)  # fmt: skip
from referee.onchain.round_trip import RoundTrip
from referee.onchain.rules import DEFAULT
from referee.onchain.sight import look
from tests.onchain.shown import OPENED, PIN, RESERVE_WEI, STAKE_WEI, address, book, market, question, token

POOL = {"pool": "0x" + "a" * 39 + "0", "dex": "uniswap-v3", "fee_ppm": 3_000, "hooks": None, "quote": "ETH"}
NO_COST = {"cost_wei": None, "unrealised_wei": None}
NAMED = {"run_id": "w1-s-1", "ts_ms": 1_790_000_001_000}


def shown(snapshot=None, tick: int = 3) -> dict:
    return json.loads(shared_bundle(snapshot or market(token("a")), OPENED, tick, DEFAULT))


def mark(**changes) -> MarkTaken:
    holding = HoldingMark(
        token=address("a"), amount_raw=TokenRaw(900), status="proven", reason="", route="v3", gross_wei=Wei(60), gas_wei=Wei(10), value_wei=Wei(50)
    )
    taken = MarkTaken(
        **NAMED, clock="turn", tick=2, ledgers=("headline",), pin=PIN, eth_wei=Wei(5), holdings=(holding,), value_wei=Wei(55), fault="", digest=""
    )
    return replace(taken, **changes)


def filled(index: int = 0, ledgers: tuple[str, ...] = ("headline", "permissive")) -> FillCredited:
    return FillCredited(
        **NAMED, order_id=f"w1-s-1/2/{index}", ledgers=ledgers, proven=True, tag="", side="buy", token=address("a"), route="v3",
        spent_raw=TokenRaw(10), arrival_raw=TokenRaw(20), gas_wei=Wei(1), approvals=(), entry=Entry(ledgers=ledgers, postings=()),
    )  # fmt: skip


# --- the shared part ------------------------------------------------------------------------------------------------


def test_the_shared_part_is_canonical_and_depends_on_nothing_of_a_run() -> None:
    once, again = (shared_bundle(market(token("a"), token("b")), OPENED, 3, DEFAULT) for _ in range(2))
    assert once == again == canonical_bytes(json.loads(once))


def test_the_shared_part_says_when_it_is_and_what_a_buy_must_leave() -> None:
    said = shown()
    assert (said["schema"], said["network"], said["chain_id"]) == ("bundle/1", "devnet", 4663)
    assert said["block"] == {"number": 40, "hash": "0x" + "b" * 64, "ts_s": 1_790_000_040}
    assert said["window"] == {"tick": 3, "ticks": 10, "interval_ms": 6_000, "open_ts_ms": 1_790_000_000_000, "close_ts_ms": 1_790_000_060_000}
    assert (said["eth_usd_micro_usd"], said["gas_price_wei"]) == ("3500123456", "100000000")
    assert (said["exit_reserve_wei_per_holding"], said["orders_max"]) == (str(RESERVE_WEI), 8)


def test_a_price_of_eth_that_was_not_read_is_none_and_not_zero() -> None:
    assert shown(replace(market(), eth_usd_micro_usd=None))["eth_usd_micro_usd"] is None


def test_a_token_is_shown_with_its_pools_candles_and_history_in_exact_numbers() -> None:
    (said,) = shown(market(token("a", 10**18, 2**70, liquidity_wei=2**80)))["tokens"]
    assert said == {
        "address": address("a"),
        "untrusted_symbol": "TOK",
        "untrusted_name": "Token",
        "decimals": 18,
        "price_wei": str(2**70),
        "price_micro_usd": str(2**70 * 3_500_123_456 // 10**18),
        "liquidity_wei": str(2**80),
        **{"volume_5m_wei": "7", "buys_5m": 2, "sells_5m": 1, "volume_1h_wei": "7", "buys_1h": 2, "sells_1h": 1},
        **{"change_5m_bps": None, "change_1h_bps": None, "born_block": 2, "age_s": 38},
        "candles_1m": [[1_789_999_980 + 60, *[str(2**70)] * 4, "7", 2, 1]],
        "candles_5m": [[1_789_999_800, *[str(2**70)] * 4, "7", 2, 1]],
        "pools": [POOL | {"price_wei": str(2**70), "liquidity_wei": str(2**80)}],
        "history": [[1_790_000_039, str(10**18)], [1_790_000_040, str(2**70)]],
    }


def test_a_price_that_stands_is_told_once_and_every_step_can_be_read_from_it() -> None:
    prices = (5, 5, 5, 7, 7, 5, 5)
    snapshot = market(token("a", *prices))
    (said,) = shown(snapshot)["tokens"]
    assert said["history"] == [[1_790_000_034, "5"], [1_790_000_037, "7"], [1_790_000_039, "5"]]
    assert look(question(snapshot, book())).market.tokens[0].prices_wei == prices


def test_a_price_in_dollars_needs_a_price_of_eth() -> None:
    (said,) = shown(replace(market(token("a")), eth_usd_micro_usd=None))["tokens"]
    assert said["price_micro_usd"] is None


def test_the_newest_and_the_most_traded_pools_are_named_and_the_idle_left_out() -> None:
    old, new = token("a"), token("b")
    new = replace(new, pools=(replace(new.pools[0], born_block=30),))
    idle = token("c")
    idle = replace(idle, pools=(replace(idle.pools[0], trades=replace(idle.pools[0].trades, tape=TapeView())),))
    said = shown(market(old, new, idle))
    assert [pool["token"][2] for pool in said["new_pools"]] == ["b", "a", "c"]
    assert [pool["token"][2] for pool in said["most_traded_pools"]] == ["a", "b"]
    assert said["tokens_known"] == 3


def test_candles_are_shown_of_the_most_traded_tokens_only() -> None:
    tokens = [token(letter) for letter in "abcdef0"]
    said = shown(market(*tokens))["tokens"]
    assert [shown["address"][2] for shown in said if "candles_1m" in shown] == ["a", "b", "c", "d", "e", "0"]


@given(st.text(st.characters(), max_size=300), st.text(st.characters(), max_size=300))
def test_what_a_token_says_of_itself_is_bounded_printable_and_marked_untrusted(symbol: str, name: str) -> None:
    (said,) = shown(market(token("a", symbol=symbol, name=name)))["tokens"]
    assert len(said["untrusted_symbol"]) <= 24 and said["untrusted_symbol"].isprintable()
    assert len(said["untrusted_name"]) <= 48 and said["untrusted_name"].isprintable()
    assert "symbol" not in said and "name" not in said


def test_the_deepest_tokens_are_shown_and_the_rest_cut() -> None:
    many = [token("a")] * (bundle.TOKENS_MAX + 1)
    assert len(shown(market(*many))["tokens"]) == bundle.TOKENS_MAX
    assert len(shown(market(*many[:-1]))["tokens"]) == bundle.TOKENS_MAX


def test_the_newest_prices_are_shown_and_the_oldest_cut() -> None:
    (said,) = shown(market(token("a", *range(1, bundle.HISTORY_MAX + 2))))["tokens"]
    assert [said["history"][0][1], said["history"][-1][1]] == ["2", str(bundle.HISTORY_MAX + 1)]


def test_what_outside_sources_said_is_shown_apart_marked_and_of_shown_tokens_only() -> None:
    told = Told("dexscreener", {address("a"): {"price_usd": "1.5"}, address("b"): {"price_usd": "2"}}, (address("c"),) * 11, 1_789_999_999_000)
    said = json.loads(shared_bundle(market(token("a")), OPENED, 3, DEFAULT, [told]))["outside"]
    assert said == [
        {
            "source": "dexscreener",
            "told_ts_ms": 1_789_999_999_000,
            "untrusted_tokens": {address("a"): {"price_usd": "1.5"}},
            "untrusted_trending_pools": [address("c")] * 10,
        }
    ]
    assert shown()["outside"] == []


def test_every_field_of_bundle_and_book_is_on_the_page_that_explains_them() -> None:
    page = (Path(bundle.__file__).parent / "BUNDLE.md").read_text("utf-8")
    trip = RoundTrip(Wei(10), None, None)
    whole = json.loads(shared_bundle(market(token("a")), OPENED, 3, DEFAULT, [Told("one", {address("a"): {}})], {address("a"): trip}))
    happened = [filled(), OrderRefused(**NAMED, order_id="o", ledgers=("headline",), reason="x", rule="ONC-27", detail="")]
    own = json.loads(own_book(OPENED, 3, book(5, {"a": 1}), mark(), happened))
    assert [name for name in {*_names(whole), *_names(own)} if f"`{name}`" not in page and not name.startswith("0x")] == []


def _names(value) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_names, value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


def test_a_round_trip_that_was_tried_is_shown_with_its_block() -> None:
    trip = RoundTrip(Wei(10), None, None)
    (said,) = json.loads(shared_bundle(market(token("a")), OPENED, 3, DEFAULT, (), {address("a"): trip, address("b"): trip}))["tokens"]
    assert said["round_trip"] == {"block": None, "spend_wei": "10", "verdict": "UNKNOWN", "cause": "no_buy", "loss_bps": None, "exit_provable": None}


# --- the own book ---------------------------------------------------------------------------------------------------


def test_the_own_book_shows_what_is_held_and_what_it_was_marked_at() -> None:
    said = json.loads(own_book(OPENED, 3, book(5, {"a": 1_000, "c": 2}), mark()))
    assert (said["schema"], said["tick"], said["ledger"]) == ("book/1", 3, "headline")
    assert (said["stake_wei"], said["eth_wei"], said["marked_wei"]) == (str(STAKE_WEI), "5", "55")
    assert said["holdings"] == [
        {"token": address("a"), "amount_raw": "1000", "keeps_shares": False, "marked_wei": "50", "mark_status": "proven", **NO_COST},
        {"token": address("c"), "amount_raw": "2", "keeps_shares": False, "marked_wei": None, "mark_status": None, **NO_COST},
    ]


def test_the_own_book_shows_what_holdings_cost_and_what_sales_brought() -> None:
    costs = Costs({address("a"): (1_000, 70)}, -4)
    said = json.loads(own_book(OPENED, 3, book(5, {"a": 1_000, "c": 2}), mark(), (), costs))
    assert said["realised_wei"] == "-4"
    assert [(holding["cost_wei"], holding["unrealised_wei"]) for holding in said["holdings"]] == [("70", "-20"), (None, None)]


def test_a_mark_that_failed_is_none_and_not_zero() -> None:
    said = json.loads(own_book(OPENED, 3, book(5, {"a": 1_000}), mark(value_wei=None, holdings=(), fault="no_lane")))
    assert (said["marked_wei"], said["holdings"][0]["marked_wei"]) == (None, None)


def test_a_token_that_keeps_shares_is_shown_with_the_amount_last_read() -> None:
    shares = book(5, {"a": 1_000}, shares=True)
    assert json.loads(own_book(OPENED, 3, shares, mark()))["holdings"][0]["amount_raw"] == "900"
    assert json.loads(own_book(OPENED, 3, shares))["holdings"][0]["amount_raw"] == "1000"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            filled(),
            {"happened": "filled", "order_id": "w1-s-1/2/0", "side": "buy", "token": address("a"), "spent_raw": "10", "arrival_raw": "20", "gas_wei": "1"},
        ),
        (
            OrderRefused(**NAMED, order_id="o", ledgers=("headline",), reason="insufficient_eth", rule="ONC-27", detail="spend 7 + exit reserve 2 > 8 wei held"),
            {"happened": "refused", "order_id": "o", "reason": "insufficient_eth", "rule": "ONC-27", "untrusted_detail": "spend 7 + exit reserve 2 > 8 wei held"},
        ),
        (
            OrderNotFilled(**NAMED, order_id="o", ledgers=("headline",), reason="reverted", detail="x"),
            {"happened": "not_filled", "order_id": "o", "reason": "reverted", "untrusted_detail": "x"},
        ),
        (
            DecisionMalformed(**NAMED, tick=2, reason="cut_off", detail="x", answer_sha256=""),
            {"happened": "malformed", "tick": 2, "reason": "cut_off", "untrusted_detail": "x"},
        ),
        (TurnUnavailable(**NAMED, tick=2, reason="x"), {"happened": "unavailable", "tick": 2}),
        (TickMissed(**NAMED, tick=2, scheduled_ts_ms=1, reason="late"), {"happened": "missed", "tick": 2, "reason": "late"}),
    ],
    ids=lambda part: type(part).__name__,
)
def test_the_own_book_tells_what_became_of_the_run_s_last_turns(event, told: dict) -> None:
    assert json.loads(own_book(OPENED, 3, book(), recent=[event]))["recent"] == [told]


def test_what_happened_on_the_other_ledger_alone_is_not_told() -> None:
    only = [filled(0, ("permissive",)), OrderRefused(**NAMED, order_id="o", ledgers=("headline",), reason="unprovable", rule="ONC-11", detail="")]
    assert [told["happened"] for told in json.loads(own_book(OPENED, 3, book(), recent=only))["recent"]] == ["refused"]


def test_the_newest_happenings_are_told_and_others_passed_over() -> None:
    woken = Woken(**NAMED, tick=2, scheduled_ts_ms=1, lag_ms=0, order_index=0)
    recent = [filled(index) for index in range(bundle.RECENT_MAX + 1)] + [woken]
    told = json.loads(own_book(OPENED, 3, book(), recent=recent))["recent"]
    assert [entry["order_id"] for entry in told] == [f"w1-s-1/2/{index}" for index in range(1, bundle.RECENT_MAX + 1)]


def test_two_runs_with_the_same_book_are_shown_the_same_bytes() -> None:
    assert own_book(OPENED, 3, book(5, {"a": 1})) == own_book(OPENED, 3, book(5, {"a": 1}))
