"""Compute: tokens at list price, the golden case and both sides of every border."""

from __future__ import annotations

import pytest

from ledgers.compute import TokensUsed, cost_of, list_price
from ledgers.money import MicroUsd


def used(plain: int, cached: int = 0, written: int = 0, output: int = 0) -> TokensUsed:
    return TokensUsed(input_tokens=plain + cached + written, cached_tokens=cached, cache_write_tokens=written, output_tokens=output)


def test_the_golden_turn_costs_one_dollar_sixty_ONC_19():
    assert cost_of("claude-opus-5", [used(100_000, 200_000, output=40_000)]) == MicroUsd(1_600_000)


def test_cached_and_cache_written_tokens_have_their_own_prices():
    assert cost_of("claude-opus-5", [used(0, 0, 1_000_000)]) == MicroUsd(6_250_000)


def test_a_turn_is_the_sum_of_its_requests():
    assert cost_of("claude-opus-5", [used(1), used(1)]) == MicroUsd(10)


def test_part_of_a_micro_dollar_is_a_whole_one():
    assert cost_of("gpt-5.6-luna", [used(1)]) == MicroUsd(1)


@pytest.mark.parametrize("model", ["no-such-model", "gemma-3-270m-q4_k_m.gguf", ""])
def test_an_unlisted_model_is_unpriced_and_never_free(model):
    assert cost_of(model, [used(1_000)]) is None


def test_a_request_whose_tokens_nobody_knows_makes_the_turn_unpriced():
    assert cost_of("claude-opus-5", [used(1), None]) is None


def test_a_turn_without_requests_costs_nothing_at_a_priced_model():
    assert cost_of("claude-opus-5", []) == MicroUsd(0)


@pytest.mark.parametrize(("plain", "dollars"), [(272_000, 5), (272_001, 10)])
def test_a_tier_prices_the_whole_request_once_its_input_is_above_it(plain, dollars):
    assert cost_of("gpt-5.5", [used(plain)]) == MicroUsd(plain * dollars)


@pytest.mark.parametrize("name", ["claude-opus-5", "anthropic/claude-opus-5", "claude-opus-5-20260901"])
def test_a_price_is_found_under_every_name_of_a_model_and_is_the_labs_own(name):
    price = list_price(name)
    assert price and (price.provider, price.as_of, price.source) == ("anthropic", "2026-11-29", "genai-prices 0.2.3")
