"""Further ledgers by their rules alone: whom they follow, quotes and bounds, and how much of a trade is still felt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgers.money import TokenRaw, Wei
from referee.onchain.credit import not_filled, refusal
from referee.onchain.events import FURTHER_LEDGERS, LEDGERS
from referee.onchain.further import SKIPPED, felt, felt_raw, least_of, quote_of, size_raw, skipped, weight_ppm
from referee.onchain.rules import DEFAULT, FIRST
from referee.onchain.state import Trade
from tests.onchain.given import ORDER, RUN, T0, bought, buying, filled, selling

FILLED = bought("LEAF", 10, 100)
REFUSED = refusal(RUN, ORDER, LEDGERS, "gate_flagged", "sale_reverts", T0)
NOT_FILLED = not_filled(RUN, ORDER, LEDGERS, "reverted", "", T0)


def reason(asked, *outcomes) -> tuple[str, str] | None:
    told = skipped(asked, ORDER, outcomes, FURTHER_LEDGERS, RUN, T0)
    return (told[0].reason, told[0].detail) if told else None


def test_what_headline_filled_is_followed_and_what_it_refused_or_did_not_fill_is_skipped_with_the_reason():
    permissive = replace(FILLED, ledgers=("permissive",))
    asked = buying("LEAF", "1 eth")
    assert reason(asked, FILLED) is None
    assert reason(asked, REFUSED) == ("headline_refused", "gate_flagged")
    assert reason(asked, NOT_FILLED) == ("headline_not_filled", "reverted")
    assert reason(asked, permissive, replace(REFUSED, ledgers=("headline",))) == ("headline_refused", "gate_flagged")


@pytest.mark.parametrize("side", ["open-lp", "close-lp"])
def test_liquidity_orders_are_skipped(side):
    asked = replace(selling("LEAF"), side=side)
    assert (reason(asked), reason(asked, REFUSED)) == (("liquidity_order", ""), ("headline_refused", "gate_flagged"))


def test_rules_without_further_ledgers_skip_nothing():
    assert (FIRST.further_ledgers, DEFAULT.further_ledgers) == ((), FURTHER_LEDGERS)
    assert skipped(buying("LEAF", "1 eth"), ORDER, [REFUSED], FIRST.further_ledgers, RUN, T0) == ()


def test_every_reason_to_skip_has_its_words():
    assert set(SKIPPED) == {"headline_refused", "headline_not_filled", "liquidity_order", "not_held"}


@pytest.mark.parametrize(("asked", "held", "size"), [(buying("LEAF", "7 wei"), 0, 7), (selling("LEAF"), 9, 9), (selling("LEAF", 5), 9, 5), (selling("LEAF", 5), 3, 3)])
def test_an_order_has_its_own_size_and_a_sale_never_more_than_is_held(asked, held, size):
    assert size_raw(asked, held) == size


@settings(deadline=None)
@given(st.integers(1, 10**30), st.integers(1, 10**30), st.integers(1, 10**30))
def test_onc_22_a_quote_for_another_size_is_in_proportion_and_rounded_down_and_its_bound_up(arrived, spent, size):
    fill = replace(filled({}, token="x"), side="sell", spent_raw=TokenRaw(spent), arrival_raw=TokenRaw(arrived))
    quote = quote_of(fill, size)
    assert quote * spent <= arrived * size < (quote + 1) * spent
    least = least_of(DEFAULT, quote)
    assert (least - 1) * 10_000 < quote * 9_900 <= least * 10_000


@pytest.mark.parametrize(("age_ms", "weight"), [(0, 1_000_000), (600_000, 1_000_000), (600_001, 999_999), (2_100_000, 500_000), (3_599_999, 0), (3_600_000, 0), (10**9, 0)])
def test_onc_23_a_trade_is_felt_in_full_then_evenly_less_then_not_at_all(age_ms, weight):
    assert weight_ppm(DEFAULT, age_ms) == weight


def test_onc_23_only_the_latest_trades_that_are_felt_are_run_again_oldest_first():
    trades = [Trade(f"w1-a-1/{at}/0", "buy", "x", 100, 1, "v3", at) for at in range(4_000)]
    told = felt(replace(DEFAULT, impact_trades_max=3), trades, 4_000)
    assert [(trade.block_ts_s, weight) for trade, weight in told] == [(3_997, 1_000_000), (3_998, 1_000_000), (3_999, 1_000_000)]
    assert felt(DEFAULT, trades[:300], 4_000) == ()
    assert felt_raw(100, 999_999) == 99 and Wei(0) == Wei(felt_raw(100, 0))
