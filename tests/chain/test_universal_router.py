"""UniversalRouter's commands are packed by hand exactly as the ABI says, in both shapes that are on chains under its name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_abi import decode, encode
from hypothesis import given
from hypothesis import strategies as st

from chain import calldata
from chain.candidates import Part
from chain.paths import Hop
from chain.pools import NATIVE
from chain.universal_router import ALL_HELD, AMOUNT_V4_MAX, universal_call
from tests.chain.test_router import HOOK, NETWORK, TOKEN, USDG, WETH, pool

SHAPES = (NETWORK, replace(NETWORK, universal_router_hop_prices=True))
SENDER, ROUTER = "0x" + "0" * 39 + "1", "0x" + "0" * 39 + "2"
AMOUNTS = st.integers(1, AMOUNT_V4_MAX)


def called(network, side: str, *parts: Part) -> list[tuple[int, bytes]]:
    """Commands and their inputs, as the ABI reads them."""
    data = universal_call(network, side, parts)
    assert data.startswith("0x" + calldata.UNIVERSAL_EXECUTE)
    commands, inputs, deadline = decode(["bytes", "bytes[]", "uint256"], bytes.fromhex(data[10:]))
    assert deadline == 2**64 - 1 and encode(["bytes", "bytes[]", "uint256"], [commands, inputs, deadline]).hex() == data[10:]
    return list(zip(commands, inputs, strict=True))


def planned(given: bytes) -> list[tuple[int, bytes]]:
    actions, steps = decode(["bytes", "bytes[]"], given)
    assert encode(["bytes", "bytes[]"], [actions, steps]) == given
    return list(zip(actions, steps, strict=True))


def swap_types(network, path: str) -> list[str]:
    return ["address", "uint256", "uint256", path, "bool", *(["uint256[]"] if network.universal_router_hop_prices else [])]


def swap_values(network, *values) -> list:
    return [*values, *([[]] if network.universal_router_hop_prices else [])]


def single(network, hop: Hop, amount: int) -> bytes:
    key = (hop.pool.token0, hop.pool.token1, hop.pool.fee_ppm, hop.pool.tick_spacing, hop.pool.hooks)
    prices, types = ((0,), "uint256,") if network.universal_router_hop_prices else ((), "")
    swap = f"((address,address,uint24,int24,address),bool,uint128,uint128,{types}bytes)"
    return encode([swap], [(key, hop.token_in == hop.pool.token0, amount, 0, *prices, b"")])


def v3_path(*hops: Hop) -> bytes:
    return bytes.fromhex(hops[0].token_in[2:]) + b"".join(hop.pool.fee_ppm.to_bytes(3) + bytes.fromhex(hop.token_out[2:]) for hop in hops)


V4, HOOKED = pool("v4", NATIVE, USDG, 500, tick_spacing=10), pool("v4", USDG, TOKEN, hooks=HOOK)
V3, V2 = pool("v3", WETH, USDG, 500), pool("v2", TOKEN, USDG)
V3_TOKEN, V4_WETH = pool("v3", USDG, TOKEN, 100), pool("v4", WETH, TOKEN)


@pytest.mark.parametrize("network", SHAPES)
@given(amount=AMOUNTS)
def test_a_buy_over_v3_then_v4(network, amount):
    path = (Hop(V3, WETH, USDG), Hop(HOOKED, USDG, TOKEN))
    wrap, first, second = called(network, "buy", Part(amount, path))
    assert wrap == (0x0B, encode(["address", "uint256"], [ROUTER, amount]))
    assert first == (0x00, encode(swap_types(network, "bytes"), swap_values(network, ROUTER, amount, 0, v3_path(path[0]), False)))
    assert second[0] == 0x10 and planned(second[1]) == [
        (0x0B, encode(["address", "uint256", "bool"], [USDG, ALL_HELD, False])),
        (0x06, single(network, path[1], 0)),
        (0x0F, encode(["address", "uint256"], [TOKEN, 0])),
    ]


@pytest.mark.parametrize("network", SHAPES)
@given(amount=AMOUNTS)
def test_a_buy_over_v4_then_v2_and_v3_beside_it(network, amount):
    one, other = (Hop(V4, NATIVE, USDG), Hop(V2, USDG, TOKEN)), (Hop(V4, NATIVE, USDG), Hop(V3_TOKEN, USDG, TOKEN))
    taken, swapped, again, last = called(network, "buy", Part(amount, one), Part(7, other))
    for command, size in ((taken, amount), (again, 7)):
        assert command[0] == 0x10 and planned(command[1]) == [
            (0x06, single(network, one[0], size)),
            (0x0C, encode(["address", "uint256"], [NATIVE, size])),
            (0x0E, encode(["address", "address", "uint256"], [USDG, ROUTER, 0])),
        ]
    assert swapped == (0x08, encode(swap_types(network, "address[]"), swap_values(network, SENDER, ALL_HELD, 0, [USDG, TOKEN], False)))
    assert last == (0x00, encode(swap_types(network, "bytes"), swap_values(network, SENDER, ALL_HELD, 0, v3_path(other[1]), False)))


@pytest.mark.parametrize("network", SHAPES)
@given(amount=AMOUNTS)
def test_a_sale_over_v4_then_v3_and_one_over_v2_then_v4(network, amount):
    one, other = (Hop(HOOKED, TOKEN, USDG), Hop(V3, USDG, WETH)), (Hop(V2, TOKEN, USDG), Hop(V4, USDG, NATIVE))
    sold, swapped, older, taken, unwrap = called(network, "sell", Part(amount, one), Part(9, other))
    assert planned(sold[1]) == [
        (0x0B, encode(["address", "uint256", "bool"], [TOKEN, amount, True])),
        (0x06, single(network, one[0], 0)),
        (0x0E, encode(["address", "address", "uint256"], [USDG, ROUTER, 0])),
        (0x0F, encode(["address", "uint256"], [TOKEN, 0])),
    ]
    assert swapped == (0x00, encode(swap_types(network, "bytes"), swap_values(network, ROUTER, ALL_HELD, 0, v3_path(one[1]), False)))
    assert older == (0x08, encode(swap_types(network, "address[]"), swap_values(network, ROUTER, 9, 0, [TOKEN, USDG], True)))
    assert planned(taken[1])[0] == (0x0B, encode(["address", "uint256", "bool"], [USDG, ALL_HELD, False]))
    assert planned(taken[1])[-1] == (0x0F, encode(["address", "uint256"], [NATIVE, 0]))
    assert unwrap == (0x0C, encode(["address", "uint256"], [SENDER, 0]))


@pytest.mark.parametrize("network", SHAPES)
@given(amount=AMOUNTS)
def test_v4_pools_of_wrapped_ether_are_wrapped_for_and_unwrapped_after(network, amount):
    wrap, bought = called(network, "buy", Part(amount, (Hop(V4_WETH, WETH, TOKEN),)))
    sold, unwrap = called(network, "sell", Part(amount, (Hop(V4_WETH, TOKEN, WETH),)))
    assert (wrap[0], unwrap[0]) == (0x0B, 0x0C)
    assert [action for action, _ in planned(bought[1])] == [0x06, 0x0B, 0x0F]
    assert planned(bought[1])[1][1] == encode(["address", "uint256", "bool"], [WETH, 0, False])
    assert [action for action, _ in planned(sold[1])] == [0x0B, 0x06, 0x0E, 0x0F]


@pytest.mark.parametrize("network", SHAPES)
def test_hops_of_one_version_share_a_command(network):
    path = (Hop(V4, NATIVE, USDG), Hop(HOOKED, USDG, TOKEN))
    (swapped,) = called(network, "buy", Part(5, path))
    assert planned(swapped[1]) == [
        (0x06, single(network, path[0], 5)),
        (0x06, single(network, path[1], 0)),
        (0x0C, encode(["address", "uint256"], [NATIVE, 5])),
        (0x0F, encode(["address", "uint256"], [TOKEN, 0])),
    ]
