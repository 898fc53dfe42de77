"""The router in the shape of UniversalRouter 2.1.1: takes the longer encodings, refuses the classic ones, heeds least prices."""

from __future__ import annotations

import pytest

from chain.devnet.calls import arguments, selector
from chain.devnet.venues import NATIVE, POOL_KEY
from tests.devnet.guest import MILLI, Guest
from tests.devnet.hop_price import (
    MEMBERS_V2,
    MEMBERS_V3,
    SEVERAL,
    USER,
    V2_IN,
    V3_IN,
    execute,
    packed,
    pair,
    unwrap,
    v2_in,
    v3_in,
    v4_plan,
    v4_single,
    wrap,
)  # fmt: skip

SPEND = 10 * MILLI
WORDS = ("address", "uint256")
SETTLE = ("address", "uint256", "bool")
TAKE = ("address", "address", "uint256")


@pytest.fixture
def guest(chain) -> Guest:
    """A wallet at a plain stall, with LEAF, ACRN and dollars approved for this router."""
    made = Guest(chain, chain.deployment.annex.stall("wide")).endow()
    at, venues, router = chain.addresses, chain.deployment.venues, chain.deployment.annex.hop_price_router
    for symbol in ("LEAF", "ACRN", "BARK"):
        chain.send(*venues.approve(made.wallet, chain.deployment.token(symbol).address, (at["permit2"], router)))
    return made


def token(guest: Guest, symbol: str) -> str:
    return guest.chain.deployment.token(symbol).address


def weth(guest: Guest) -> str:
    return guest.chain.addresses["weth"]


def reason(guest: Guest, tx) -> str:
    """What a call answers when it reverts, by its first four bytes."""
    call = {"from": tx.sender, "to": tx.to, "input": tx.data, "value": hex(tx.value_wei), "gas": hex(tx.gas)}
    [block] = guest.chain.node.call("eth_simulateV1", [{"blockStateCalls": [{"calls": [call]}]}, "latest"])
    return (block["calls"][0]["error"].get("data") or block["calls"][0]["returnData"])[:10]


def test_buys_through_v3_and_v2_and_sells_again_for_ether(guest):
    leaf = token(guest, "LEAF")
    by_v3 = execute(guest, SPEND, wrap(SPEND), v3_in(packed(weth(guest), 3_000, leaf), SPEND, False, []))
    by_v2 = execute(guest, SPEND, wrap(SPEND), v2_in([weth(guest), leaf], SPEND, False, []))
    first, second = guest.arrival(by_v3, leaf), guest.arrival(by_v2, leaf)
    assert first and second
    back = execute(guest, 0, v2_in([leaf, weth(guest)], first + second, True, [], to="0x" + "00" * 19 + "02"), unwrap())
    assert (guest.arrival(back, NATIVE) or 0) > SPEND * 2 * 98 // 100


def test_several_hops_go_through_both_versions(guest):
    usdg, bark = guest.chain.addresses["usdg"], token(guest, "BARK")
    three = packed(weth(guest), 500, usdg, 500, bark)
    assert guest.arrival(execute(guest, SPEND, wrap(SPEND), v3_in(three, SPEND, False, [0, 0])), bark)
    rune = token(guest, "RUNE")
    assert guest.arrival(execute(guest, SPEND, wrap(SPEND), v2_in([weth(guest), usdg, rune], SPEND, False, [1, 1])), rune)


@pytest.mark.parametrize("venue", ["v3", "v2"])
def test_classic_encodings_are_refused_as_out_of_bounds(guest, venue):
    leaf = token(guest, "LEAF")
    path = packed(weth(guest), 3_000, leaf) if venue == "v3" else [weth(guest), leaf]
    members = (MEMBERS_V3 if venue == "v3" else MEMBERS_V2)[:5]
    short = arguments(members, (USER, SPEND, 0, path, False))
    tx = execute(guest, SPEND, wrap(SPEND), (V3_IN if venue == "v3" else V2_IN, short))
    assert guest.arrival(tx, leaf) is None and reason(guest, tx) == "0x3b99b53d"


def test_classic_v4_order_of_two_tokens_fails_and_one_of_native_ether_passes_unnoticed(chain, guest):
    def classic(place, token_in: str) -> str:
        return arguments((f"({POOL_KEY},bool,uint128,uint128,bytes)",), ((place.pool_key, token_in == place.token0, SPEND, 0, b""),))

    ending = (pair(WORDS, NATIVE, SPEND), pair(WORDS, guest.token, 0))
    assert guest.arrival(execute(guest, SPEND, v4_plan(b"\x06\x0c\x0f", classic(guest.stall.place, NATIVE), *ending)), guest.token)
    side = Guest(chain, chain.deployment.annex.stall("plain_usdg")).endow()
    first, second = side.stall.place.token0, side.stall.place.token1
    order = classic(side.stall.place, first)
    tx = execute(side, 0, v4_plan(b"\x06\x0c\x0f", order, pair(WORDS, first, SPEND), pair(WORDS, second, 0)))
    assert reason(side, tx) == "0x"


@pytest.mark.parametrize("version", ["v2", "v3", "v4"])
def test_least_price_of_a_hop_is_heeded(guest, version):
    bought = token(guest, "LEAF") if version != "v4" else guest.token

    def order(price: int):
        if version == "v4":
            return execute(guest, SPEND, v4_buy(guest, price=price))
        if version == "v3":
            return execute(guest, SPEND, wrap(SPEND), v3_in(packed(weth(guest), 3_000, bought), SPEND, False, [price]))
        return execute(guest, SPEND, wrap(SPEND), v2_in([weth(guest), bought], SPEND, False, [price]))

    fair = guest.arrival(order(0), bought) * 10**36 // SPEND
    assert guest.arrival(order(fair * 2), bought) is None
    assert reason(guest, order(fair * 2)) == "0x" + selector("TooLittleReceivedPerHop(uint256,uint256,uint256)").hex()
    assert guest.arrival(order(fair * 99 // 100), bought)


def v4_buy(guest: Guest, *, price: int = 0, least: int = 0) -> tuple[int, str]:
    swap = v4_single(guest.stall.place, NATIVE, SPEND, price=price, least=least)
    return v4_plan(b"\x06\x0c\x0f", swap, pair(WORDS, NATIVE, SPEND), pair(WORDS, guest.token, 0))


def test_v4_single_buys_and_sells_by_what_was_settled(guest):
    bought = guest.arrival(execute(guest, SPEND, v4_buy(guest)), guest.token)
    assert bought
    sale = v4_plan(
        b"\x0b\x06\x0f",
        pair(SETTLE, guest.token, bought, True),
        v4_single(guest.stall.place, guest.token, 0),
        pair(WORDS, NATIVE, 0),
    )
    assert (guest.arrival(execute(guest, 0, sale), NATIVE) or 0) > SPEND * 98 // 100


def test_v4_several_hops_carry_a_price_each(guest):
    stalls = guest.chain.deployment.annex
    usdg, side = guest.chain.addresses["usdg"], stalls.stall("plain_usdg")
    pool = next(market.place for market in guest.chain.deployment.markets if market.place.venue == "v4" and market.token is None)
    path = [(usdg, pool.fee_ppm, pool.tick_spacing, NATIVE, b""), (side.token.address, side.place.fee_ppm, side.place.tick_spacing, NATIVE, b"")]

    def order(prices: list[int]):
        swap = arguments((SEVERAL,), ((NATIVE, path, prices, SPEND, 0),))
        take = pair(TAKE, side.token.address, USER, 0)
        return execute(guest, SPEND, v4_plan(b"\x07\x0c\x0e", swap, pair(WORDS, NATIVE, SPEND), take))

    assert guest.arrival(order([]), side.token.address) and guest.arrival(order([1, 1]), side.token.address)
    assert guest.arrival(order([0, 10**60]), side.token.address) is None


def test_too_little_is_refused_with_the_name_that_the_real_router_has(guest):
    tx = execute(guest, SPEND, v4_buy(guest, least=10**30))
    assert reason(guest, tx) == "0x8b063d73"
