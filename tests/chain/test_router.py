"""Candidate routes for an exact size: direct and through the dollar token, ranked, bounded, and packed as the ABI says (design §6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from eth_abi import decode, encode
from eth_utils import keccak
from hypothesis import given
from hypothesis import strategies as st

from chain import calldata
from chain.network import load_network
from chain.pools import DYNAMIC_FEE, NATIVE, Pool, PoolGraph, PoolState, v4_id
from chain.candidates import CANDIDATES_MAX, V4_CANDIDATES_MAX
from chain.router import Route, buy_routes, route_of, sell_routes
from chain.swap_router import ROUTER_ITSELF
from chain.trade import PROVEN
from tests.chain.market import WALLET, MarketStall

NETWORK = load_network("devnet")
WETH, USDG = NETWORK.weth, NETWORK.usdg
TOKEN, OTHER, HOOK, THIRD = ("0x" + digit * 40 for digit in "3574")
ETH = 10**18
HONEST = ("LEAF", "ACRN", "FERN", "BARK", "MOSS", "RUNE", "PINE", "DUSK", "BRIM", "HAZE", "MOTE", "GLIM")


def pool(venue: str, one: str, other: str, fee_ppm: int = 3_000, **changes) -> Pool:
    token0, token1 = sorted((one, other))
    key = "0x" + keccak(text=f"{venue} {token0} {token1} {fee_ppm} {changes}").hex()[:40]
    made = Pool(venue=venue, key=key, token0=token0, token1=token1, fee_ppm=fee_ppm, tick_spacing=60, hooks=NATIVE, born_block=0)
    made = replace(made, **changes)
    return replace(made, key=v4_id(made)) if venue == "v4" else made


def graph_of(*pools: Pool, depth: int = 100 * ETH) -> PoolGraph:
    graph = PoolGraph(NETWORK)
    for each in pools:
        graph.add(each)
        graph.states[each.key] = PoolState(depth, depth, 0, depth)
    return graph


def both_ways(graph: PoolGraph, size: int = ETH) -> tuple[tuple[Route, ...], tuple[Route, ...]]:
    """Routes that are not split, of a buy and of a sale."""
    return whole(buy_routes(NETWORK, graph, TOKEN, size, WALLET)), whole(sell_routes(NETWORK, graph, TOKEN, size, WALLET))


def whole(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    return tuple(route for route in routes if not route.parts)


def splits(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    return tuple(route for route in routes if route.parts)


def ways(routes: tuple[Route, ...]) -> list[str]:
    """The venues crossed by each route."""
    return [" ".join(hop.pool.venue for hop in route.hops) for route in routes]


# --- which routes ---------------------------------------------------------------------------------------------------


def test_pools_against_weth_native_and_dollars_all_make_routes():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH, 500), pool("v4", TOKEN, NATIVE), pool("v2", TOKEN, USDG), pool("v3", WETH, USDG))
    buys, sells = both_ways(graph)
    assert sorted(ways(buys)) == ["v2", "v3", "v3 v2", "v4"]
    assert sorted(ways(sells)) == ["v2", "v2 v3", "v3", "v4"]


@pytest.mark.parametrize(("hub", "own"), [*product(("v2", "v3"), repeat=2)])
def test_a_dollar_pool_is_reached_over_any_pool_of_ether_and_dollars(hub, own):
    buys, sells = both_ways(graph_of(pool(own, TOKEN, USDG), pool(hub, WETH, USDG)))
    assert ways(buys) == [f"{hub} {own}"] and ways(sells) == [f"{own} {hub}"]


def test_a_token_without_a_way_to_ether_has_no_route():
    lost = graph_of(pool("v2", TOKEN, OTHER), pool("v2", TOKEN, USDG))
    assert both_ways(lost) == ((), ())


def test_routes_have_at_most_three_hops():
    around = [pool("v2", WETH, USDG), pool("v3", USDG, OTHER), pool("v2", OTHER, TOKEN)]
    assert ways(both_ways(graph_of(*around))[0]) == ["v2 v3 v2"]
    assert both_ways(graph_of(*around[:2], pool("v2", OTHER, THIRD), pool("v2", THIRD, TOKEN))) == ((), ())


def test_a_way_around_is_left_out_where_it_promises_less_than_the_others():
    around, direct = [pool("v2", WETH, OTHER), pool("v2", OTHER, TOKEN)], pool("v2", TOKEN, WETH)
    graph = graph_of(*around, direct)
    assert ways(both_ways(graph)[0]) == ["v2", "v2 v2"]
    graph.states[around[1].key] = PoolState(80 * ETH, 100 * ETH, 0, ETH)
    assert (around[1].token0, ways(both_ways(graph)[0])) == (TOKEN, ["v2"])


@pytest.mark.parametrize(("changes", "shown"), [({"hooks": HOOK}, "0.3% hook"), ({"hooks": HOOK, "fee_ppm": DYNAMIC_FEE}, "dynamic hook")])
def test_a_pool_with_a_hook_is_routed_and_named_as_one(changes, shown):
    hooked = pool("v4", TOKEN, NATIVE, **changes)
    buys, sells = both_ways(graph_of(hooked))
    assert [route.label for route in (*buys, *sells)] == [f"eth >v4 {shown} {hooked.key[:10]}> token", f"token >v4 {shown} {hooked.key[:10]}> eth"]


@pytest.mark.parametrize(("one", "other"), [(NATIVE, USDG), (WETH, TOKEN), (USDG, TOKEN)])
def test_v4_pools_of_tokens_make_routes_too(one, other):
    pools = [pool("v4", one, other), pool("v3", TOKEN, USDG), pool("v2", WETH, USDG)]
    buys, sells = both_ways(graph_of(*pools))
    assert any("v4" in way for way in ways(buys)) and any("v4" in way for way in ways(sells))


def test_a_hook_on_the_way_to_dollars_is_not_used():
    assert both_ways(graph_of(pool("v4", NATIVE, USDG, hooks=HOOK), pool("v3", TOKEN, USDG))) == ((), ())


def test_v4_is_not_used_where_the_network_has_no_router_or_quoter_for_it():
    graph = graph_of(pool("v4", TOKEN, NATIVE))
    for missing in ({"universal_router": None}, {"v4_quoter": None}):
        assert buy_routes(replace(NETWORK, **missing), graph, TOKEN, ETH, WALLET) == ()


def test_ether_itself_has_no_way_round():
    graph = graph_of(pool("v2", WETH, USDG), pool("v3", WETH, USDG))
    assert buy_routes(NETWORK, graph, WETH, ETH, WALLET) == ()


def test_dollars_are_bought_in_one_hop():
    graph = graph_of(pool("v2", WETH, USDG), pool("v3", WETH, USDG))
    assert sorted(ways(whole(buy_routes(NETWORK, graph, USDG, ETH, WALLET)))) == ["v2", "v3"]


# --- how many, in which order ---------------------------------------------------------------------------------------


def test_candidates_are_bounded_and_the_best_promises_stay():
    pools = [pool("v3", TOKEN, WETH, fee) for fee in range(100, 1_100, 100)]
    buys, _ = both_ways(graph_of(*pools))
    assert [route.hops[0].pool.fee_ppm for route in buys] == [100 * (place + 1) for place in range(CANDIDATES_MAX)]


def test_the_deeper_pool_is_tried_first():
    shallow, deep = pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH)
    graph = graph_of(shallow, deep)
    graph.states[shallow.key] = PoolState(ETH, ETH, 0, ETH)
    assert ways(both_ways(graph)[0]) == ["v3", "v2"]


def test_a_promise_beyond_what_a_pool_holds_does_not_count():
    narrow, honest = pool("v3", TOKEN, WETH), pool("v2", TOKEN, WETH)
    graph = graph_of(narrow, honest)
    held = {"held0_raw": 5, "held1_raw": 5}
    graph.states[narrow.key] = PoolState(10**30, 10**30, 2**96, 10**30, **held)
    assert ways(both_ways(graph)[1]) == ["v2", "v3"]


def test_v4_pools_do_not_crowd_out_the_others():
    flood = [pool("v4", TOKEN, NATIVE, tick_spacing=spacing) for spacing in range(1, 40)]
    honest = [pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v3", TOKEN, WETH, 500)]
    graph = graph_of(*flood, *honest)
    for each in honest:
        graph.states[each.key] = PoolState(ETH, ETH, 0, ETH)
    for routes in both_ways(graph):
        assert len(routes) == CANDIDATES_MAX and ways(routes).count("v4") == V4_CANDIDATES_MAX


def test_v4_pools_take_the_places_that_nobody_else_wants():
    flood = [pool("v4", TOKEN, NATIVE, tick_spacing=spacing) for spacing in range(1, 40)]
    assert ways(both_ways(graph_of(*flood, pool("v2", TOKEN, WETH)))[0]).count("v4") == CANDIDATES_MAX - 1


def test_a_pool_of_unknown_state_is_tried_last():
    unknown, known = pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH)
    graph = graph_of(unknown, known)
    del graph.states[unknown.key]
    assert ways(both_ways(graph)[0]) == ["v3", "v2"]


@given(st.permutations([pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v3", TOKEN, WETH, 500), pool("v4", TOKEN, NATIVE), pool("v2", TOKEN, USDG), pool("v2", WETH, USDG)]))
def test_candidates_do_not_depend_on_the_order_in_which_pools_were_learned(pools):
    usual = graph_of(*sorted(pools, key=lambda each: each.key))
    assert [route.label for route in both_ways(graph_of(*pools))[0]] == [route.label for route in both_ways(usual)[0]]


def test_labels_are_unique_even_where_pools_look_alike():
    twins = [pool("v2", TOKEN, WETH, key="0x12345678" + digit * 32) for digit in "ab"]
    routes = both_ways(graph_of(*twins))[0]
    assert [route.label for route in routes] == [f"eth >v2 0.3% {twin.key}> token" for twin in twins]


@pytest.mark.parametrize(("fee_ppm", "shown"), [(100, "0.01%"), (500, "0.05%"), (3_000, "0.3%"), (10_000, "1%"), (100_000, "10%"), (0, "0%"), (1, "0.0001%")])
def test_a_label_tells_venue_fee_and_pool(fee_ppm, shown):
    only = pool("v3", TOKEN, WETH, fee_ppm)
    (route,), _ = both_ways(graph_of(only))
    assert route.label == f"eth >v3 {shown} {only.key[:10]}> token"


# --- transactions ---------------------------------------------------------------------------------------------------


def the_sale(*pools: Pool) -> Route:
    return both_ways(graph_of(*pools))[1][0]


def test_a_buy_sends_its_spend_and_needs_no_approval():
    for route in both_ways(graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v4", TOKEN, NATIVE)), 12_345)[0]:
        assert (route.swap.value_wei, route.approvals) == (12_345, ())


def test_a_sale_sends_no_ether_and_names_each_approval_once():
    v2, v4 = the_sale(pool("v2", TOKEN, WETH)), the_sale(pool("v4", TOKEN, NATIVE))
    assert (v2.swap.value_wei, v4.swap.value_wei) == (0, 0)
    assert [approval.key for approval in v2.approvals] == [f"{TOKEN}>{NETWORK.swap_router_02}"]
    assert [approval.key for approval in v4.approvals] == [f"{TOKEN}>{NETWORK.permit2}", f"{TOKEN}>{NETWORK.permit2}>{NETWORK.universal_router}"]
    assert [approval.tx.to for approval in v4.approvals] == [TOKEN, NETWORK.permit2]


def multicalled(data: str) -> list[bytes]:
    assert data.startswith("0x" + calldata.MULTICALL)
    (calls,) = decode(["bytes[]"], bytes.fromhex(data[10:]))
    return list(calls)


def test_a_sale_through_the_router_ends_in_unwrapped_ether():
    for route in both_ways(graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v2", TOKEN, USDG), pool("v3", WETH, USDG)))[1]:
        *swaps, unwrap = multicalled(route.swap.data)
        assert unwrap.hex() == calldata.unwrap_weth(WALLET)[2:]
        assert ROUTER_ITSELF[2:] in swaps[-1].hex() and WALLET[2:] not in b"".join(swaps).hex()


def test_hops_of_one_venue_share_a_call_and_mixed_ones_hand_over_all_that_came():
    same = both_ways(graph_of(pool("v3", TOKEN, USDG), pool("v3", WETH, USDG)))[0][0]
    mixed = both_ways(graph_of(pool("v2", TOKEN, USDG), pool("v3", WETH, USDG)), 777)[0][0]
    assert same.swap.data.startswith("0x" + calldata.SWAP_V3_PATH)
    first, second = multicalled(mixed.swap.data)
    assert first.hex() == calldata.swap_v3_single(WETH, USDG, 3_000, ROUTER_ITSELF, 777)[2:]
    assert second.hex() == calldata.swap_v2([USDG, TOKEN], WALLET, 0)[2:]


def test_mixed_routes_have_no_quoter_and_the_others_have():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v4", TOKEN, NATIVE), pool("v2", TOKEN, USDG), pool("v3", WETH, USDG))
    assert {way: route.quoter is not None for routes in both_ways(graph) for way, route in zip(ways(routes), routes, strict=True)} == {
        "v2": True, "v3": True, "v4": True, "v3 v2": False, "v2 v3": False,
    }  # fmt: skip


def test_a_quoter_is_no_word_for_a_swap_where_a_hook_is_crossed():
    hooked, plain = pool("v4", TOKEN, NATIVE, hooks=HOOK), pool("v4", TOKEN, NATIVE)
    routes = [route for routes in both_ways(graph_of(hooked, plain)) for route in routes]
    assert {(route.hooked, route.quoter is not None, route.sound_quoter is not None) for route in routes} == {(True, True, False), (False, True, True)}


def test_the_same_route_for_another_wallet_differs_in_the_wallet_only():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v4", TOKEN, NATIVE), pool("v2", TOKEN, USDG), pool("v3", WETH, USDG))
    for route in (route for routes in both_ways(graph) for route in routes):
        twin = route_of(NETWORK, route, OTHER)
        assert (twin.label, twin.amount, twin.approvals) == (route.label, route.amount, route.approvals)
        assert twin.swap.data == route.swap.data.replace(WALLET[2:], OTHER[2:])


@given(st.booleans(), st.integers(1, 2**128 - 1), st.integers(0, 2**20), st.integers(1, 2**15 - 1))
def test_a_v4_swap_equals_the_abi(zero_for_one, amount, fee_ppm, spacing):
    made = pool("v4", TOKEN, NATIVE, fee_ppm, tick_spacing=spacing)
    buys, sells = both_ways(graph_of(made), amount)
    (route,) = buys if zero_for_one else sells
    (hop,) = route.hops
    key = (made.token0, made.token1, fee_ppm, spacing, NATIVE)
    swap = encode(["((address,address,uint24,int24,address),bool,uint128,uint128,bytes)"], [(key, zero_for_one, amount, 0, b"")])
    settle, take = encode(["address", "uint256"], [hop.token_in, amount]), encode(["address", "uint256"], [hop.token_out, 0])
    plan = encode(["bytes", "bytes[]"], [bytes.fromhex("060c0f"), [swap, settle, take]])
    if not zero_for_one:
        swap = encode(["((address,address,uint24,int24,address),bool,uint128,uint128,bytes)"], [(key, False, 0, 0, b"")])
        settle, left = encode(["address", "uint256", "bool"], [hop.token_in, amount, True]), encode(["address", "uint256"], [hop.token_in, 0])
        plan = encode(["bytes", "bytes[]"], [bytes.fromhex("0b060f0f"), [settle, swap, take, left]])
    wanted = encode(["bytes", "bytes[]", "uint256"], [b"\x10", [plan], 2**64 - 1])
    assert route.swap.data == f"0x{calldata.UNIVERSAL_EXECUTE}{wanted.hex()}"


def test_the_quoter_reader_takes_the_last_amount_and_refuses_garbage():
    route = both_ways(graph_of(pool("v2", TOKEN, WETH)))[0][0]
    assert route.quoted(encode(["uint256[]"], [[5, 7]])) == 7
    for garbage in (b"", b"\0" * 31, (2**256 - 1).to_bytes(32) * 4, encode(["uint256[]"], [[5]])):
        assert route.quoted(garbage) is None


# --- on the real chain ----------------------------------------------------------------------------------------------


async def test_every_candidate_brings_what_its_quoter_says_for_plain_tokens(chain):
    stall = await MarketStall.on(chain)
    tried: list[tuple[str, str, str]] = []
    for name, side in product(HONEST, ("buy", "sell")):
        size = ETH // 50 if side == "buy" else 10 ** (chain.deployment.token(name).decimals + 1) // 7
        routes = stall.routes(side, name, size)
        for route, outcome in zip(routes, await stall.outcome(side, name, size), strict=True):
            assert outcome.status == PROVEN, (name, side, route.label, outcome)
            assert outcome.flags == () and outcome.quoted_raw in (None, outcome.arrival_raw), (name, side, route.label, outcome)
            tried.append((name, side, ways((route,))[0]))
    assert {way for _, _, way in tried} >= {"v2", "v3", "v4", "v2 v2", "v3 v3", "v2 v3", "v3 v2"}
    await stall.door.close()
