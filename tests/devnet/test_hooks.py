"""The hooks of the annex: each really does what its name says, by executed swaps."""

from __future__ import annotations

import pytest

from chain.devnet.hooks import (
    BEFORE_PPM,
    FEE_PPM,
    FLATTER_PPM,
    HOOKS,
    PASS_WORD,
    PERMISSIONS,
    REST_S,
    SIDE_PPM,
    SIZE_MAX,
    SNIPE_S,
)
from chain.devnet.node import Refused
from chain.devnet.swaps import swap
from chain.devnet.venues import NATIVE
from tests.devnet.guest import GAS, MILLI, Guest, with_hook_data

SPEND = 10 * MILLI
DOLLARS = 30 * 10**6


def guest(chain, name: str) -> Guest:
    return Guest(chain, chain.deployment.annex.stall(name)).endow()


def near(found: int | None, expected: int, ppm: int = 20) -> bool:
    return found is not None and abs(found - expected) * 1_000_000 <= expected * ppm


def cut(amount: int, ppm: int) -> int:
    return amount * (1_000_000 - ppm) // 1_000_000


def open_hours(chain) -> None:
    """Let time pass until the half of a minute in which every hook of hours is open."""
    while (chain.miner.time_of(chain.height + 1) % 60) not in range(20, 40):
        chain.mine()


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_permissions_are_the_low_bits_of_the_address_where_code_stands(devnet, hook):
    assert int(hook.address, 16) & PERMISSIONS == hook.flags
    assert len(devnet.node.call("eth_getCode", [hook.address, "latest"])) > 100


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook.buys], ids=lambda hook: hook.name)
def test_what_can_be_bought_arrives_and_is_sold_again_where_the_table_says_so(chain, hook):
    wallet = guest(chain, hook.name)
    open_hours(chain)
    bought = wallet.buy(DOLLARS if hook.hub == "usdg" else SPEND)
    assert bought
    chain.mine(REST_S)
    open_hours(chain)
    assert bool(wallet.sell(bought)) == hook.sells


def test_fee_after_takes_two_percent_of_what_arrives_though_the_pool_fee_is_0(chain):
    wallet = guest(chain, "fee_after")
    plain = wallet.plain_out(NATIVE, SPEND, 0)
    bought = wallet.buy(SPEND)
    assert wallet.stall.place.fee_ppm == 0 and near(bought, cut(plain, FEE_PPM))
    assert near(wallet.sell(bought), cut(cut(SPEND, FEE_PPM), FEE_PPM), 1_000)


def test_fee_before_takes_one_percent_of_what_is_paid(chain):
    wallet = guest(chain, "fee_before")
    assert near(wallet.buy(SPEND), wallet.plain_out(NATIVE, cut(SPEND, BEFORE_PPM), 0), 1_000)


def test_size_refuses_above_its_limit_and_not_at_it(chain):
    wallet = guest(chain, "size")
    assert wallet.buy(SIZE_MAX + 1) is None and wallet.buy(SIZE_MAX)


def test_hours_are_shut_in_the_first_quarter_of_each_minute(chain):
    wallet = guest(chain, "hours")
    found = {}
    for _ in range(60):
        second = chain.miner.time_of(chain.height + 1) % 60
        found[second] = wallet.buy(MILLI) is not None
    assert found == {second: second >= 15 for second in range(60)}


def test_sender_refuses_the_quoter_and_serves_the_universal_router(chain):
    wallet = guest(chain, "sender")
    with pytest.raises(Refused):
        wallet.quoted(NATIVE, SPEND)
    assert wallet.buy(SPEND)


def test_snipe_taxes_fall_from_99_percent_to_one(chain):
    for name in ("snipe_rate", "snipe_delta"):
        wallet = guest(chain, name)
        age = chain.miner.time_of(chain.height + 1) - chain.miner.time_of(chain.deployment.height)
        rate = 990_000 - 980_000 * age // SNIPE_S
        assert 0 < age < SNIPE_S and near(wallet.buy(MILLI), cut(wallet_out(chain, name), rate), 1_000)
    chain.mine(SNIPE_S)
    for name in ("snipe_rate", "snipe_delta"):
        assert near(Guest(chain, chain.deployment.annex.stall(name)).buy(MILLI), cut(wallet_out(chain, name), 10_000), 1_000)


def wallet_out(chain, name: str) -> int:
    return Guest(chain, chain.deployment.annex.stall(name)).plain_out(NATIVE, MILLI, 0)


def test_busy_rate_rises_with_every_swap_and_rests_again(chain):
    wallet = guest(chain, "busy_rate")
    chain.mine(400)
    assert wallet.buy(MILLI), "what it writes after a rest is 500 and 2,000"
    plain = wallet.plain_out(NATIVE, MILLI, 2_500)
    assert near(wallet.buy(MILLI), plain)
    for _ in range(20):
        wallet.buy(MILLI)
    dear = wallet.plain_out(NATIVE, MILLI, 20_000)
    assert (wallet.buy(MILLI) or 0) < dear


def test_side_rate_asks_more_of_sellers(chain):
    wallet = guest(chain, "side_rate")
    plain = wallet.plain_out(wallet.hub, DOLLARS, SIDE_PPM[0])
    bought = wallet.buy(DOLLARS)
    assert near(bought, plain)
    assert near(wallet.sell(bought), cut(cut(DOLLARS, SIDE_PPM[0]), SIDE_PPM[1]), 1_000)


def test_origin_must_rest_between_two_swaps_also_through_another_wallet_of_its_kind(chain):
    wallet = guest(chain, "origin")
    assert wallet.buy(MILLI) and wallet.buy(MILLI) is None
    chain.mine(REST_S)
    assert wallet.buy(MILLI)


def test_hook_data_opens_the_gate(chain):
    wallet = guest(chain, "hook_data")
    assert wallet.buy(SPEND) is None
    assert wallet.arrival(with_hook_data(wallet, SPEND, PASS_WORD), wallet.token)


def test_loud_refuses_sales_with_more_than_twenty_kilobytes(chain):
    wallet = guest(chain, "loud")
    bought = wallet.buy(SPEND)
    refused = swap(chain.deployment.venues, wallet.wallet, wallet.stall.place, wallet.token, bought)
    fields = {"from": refused.sender, "to": refused.to, "input": refused.data, "gas": hex(GAS)}
    [block] = chain.node.call("eth_simulateV1", [{"blockStateCalls": [{"calls": [fields]}]}, "latest"])
    [call] = block["calls"]
    assert call["status"] == "0x0" and len(call["error"].get("data") or call["returnData"]) > 40_000


def test_takes_all_is_quoted_as_the_largest_number_and_brings_nothing(chain):
    wallet = guest(chain, "takes_all")
    assert wallet.quoted(NATIVE, SPEND) == 2**128 - 1
    assert wallet.buy(SPEND) is None


def test_flatters_quotes_a_tenth_more_than_it_pays(chain):
    wallet = guest(chain, "flatters")
    told = wallet.quoted(NATIVE, SPEND)
    assert near(wallet.buy(SPEND), cut(told, FLATTER_PPM))


def test_liquidity_cut_takes_a_hundredth_of_what_is_added(chain):
    stall = chain.deployment.annex.stall("liquidity_cut")
    owner, view, pool = chain.deployment.cast.annexer, chain.addresses["v4_state_view"], bytes.fromhex(stall.place.key[2:])
    reader = Guest(chain, stall, owner)
    raw, before = (10**18, 3_000 * 10**18), reader.read(view, "getLiquidity(bytes32)", pool)
    held = reader.held(stall.token.address)
    [receipt] = chain.send(chain.deployment.venues.add_v4(owner, stall.place, stall.place.full_range, *raw))
    added, paid = reader.read(view, "getLiquidity(bytes32)", pool) - before, held - reader.held(stall.token.address)
    assert receipt["status"] == "0x1" and near(paid, reader.plain_amount1(added) * 101 // 100, 1_000)


@pytest.mark.parametrize("name", ["plain_usdg", "odd_fee", "no_fee", "wide"])
def test_odd_pools_trade_at_the_fee_that_they_say(chain, name):
    wallet = guest(chain, name)
    size = DOLLARS if name == "plain_usdg" else SPEND
    plain = wallet.plain_out(wallet.hub, size, wallet.stall.place.fee_ppm)
    assert near(wallet.buy(size), plain)


@pytest.mark.parametrize("name", ["copy_pine_50", "copy_pine_99", "copy_dusk_80"])
def test_copies_keep_most_of_what_is_paid(chain, name):
    wallet = guest(chain, name)
    plain = wallet.plain_out(NATIVE, SPEND, wallet.stall.place.fee_ppm)
    assert wallet.stall.place.fee_ppm >= 500_000 and near(wallet.buy(SPEND), plain)
