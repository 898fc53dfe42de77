"""A v4 swap is packed by hand exactly as the ABI says."""

from __future__ import annotations

import pytest
from eth_abi import encode

from chain.network import load_network
from chain.pools import NATIVE, Pool, PoolGraph
from chain.router import buy_routes, route_of, sell_routes
from chain.universal_router import AMOUNT_V4_MAX, DEADLINE_NEVER

TOKEN, WALLET, OTHER = "0x" + "ab" * 20, "0x" + "7c" * 20, "0x" + "0b" * 20
SWAP = "((address,address,uint24,int24,address),bool,uint128,uint128,bytes)"


def by_the_abi(zero_for_one: bool, amount: int) -> str:
    key, every = (NATIVE, TOKEN, 3_000, 60, NATIVE), ["address", "uint256"]
    if zero_for_one:
        actions, steps = (0x06, 0x0C, 0x0F), [encode([SWAP], [(key, True, amount, 0, b"")]), encode(every, [NATIVE, amount]), encode(every, [TOKEN, 0])]
    else:
        settle = encode([*every, "bool"], [TOKEN, amount, True])
        actions, steps = (0x0B, 0x06, 0x0F, 0x0F), [settle, encode([SWAP], [(key, False, 0, 0, b"")]), encode(every, [NATIVE, 0]), encode(every, [TOKEN, 0])]
    plan = encode(["bytes", "bytes[]"], [bytes(actions), steps])
    return "0x3593564c" + encode(["bytes", "bytes[]", "uint256"], [b"\x10", [plan], DEADLINE_NEVER]).hex()


def graph() -> PoolGraph:
    known = PoolGraph(load_network("devnet"))
    known.add(Pool(venue="v4", key="0x" + "11" * 32, token0=NATIVE, token1=TOKEN, fee_ppm=3_000, tick_spacing=60, hooks=NATIVE, born_block=0))
    return known


@pytest.mark.parametrize("amount", [1, 10**18, AMOUNT_V4_MAX, AMOUNT_V4_MAX + 1])
@pytest.mark.parametrize("side", ["buy", "sell"])
def test_a_v4_swap_equals_the_abi(side, amount):
    routes = buy_routes if side == "buy" else sell_routes
    (route,) = routes(load_network("devnet"), graph(), TOKEN, amount, WALLET)
    assert route.swap.data == by_the_abi(side == "buy", min(amount, AMOUNT_V4_MAX))


@pytest.mark.parametrize("side", ["buy", "sell"])
def test_a_route_for_another_wallet_is_what_that_wallet_would_have_been_given(side):
    network, routes = load_network("devnet"), buy_routes if side == "buy" else sell_routes
    known = graph()
    known.add(Pool(venue="v2", key="0x" + "22" * 20, token0=TOKEN, token1=network.weth, fee_ppm=3_000, tick_spacing=0, hooks=NATIVE, born_block=0))
    mine, theirs = (routes(network, known, TOKEN, 10**18, wallet) for wallet in (WALLET, OTHER))
    assert [route_of(network, route, OTHER) for route in mine] == list(theirs)
