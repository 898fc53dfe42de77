"""Which ways are tried: bounded, honest ones never crowded out; splits exact, and never promised for less than their ways alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chain.candidates import (
    AROUND_CANDIDATES_MAX,
    CANDIDATES_MAX,
    FOREIGN_CANDIDATES_MAX,
    SPLIT_GAIN_PART,
    SPLITS_MAX,
    V4_CANDIDATES_MAX,
    candidates,
    even_shares,
    split_of,
)
from chain.network import Fork
from chain.paths import PAIR_POOLS_MAX, Hop, promise, response
from chain.pools import DYNAMIC_FEE, NATIVE, PoolState
from chain.router import buy_routes, route_of, sell_routes
from tests.chain.test_router import ETH, HOOK, NETWORK, OTHER, THIRD, TOKEN, USDG, WALLET, WETH, both_ways, graph_of, pool, splits, ways

DEPTHS = st.integers(ETH, 10_000 * ETH)
FEES = st.sampled_from((0, 100, 500, 3_000, 10_000, 100_000))
FORK = Fork(name="grove", shape="v2", factory=THIRD, router=OTHER, router_shape="v2_router02", fee_ppm=3_000, source="a test")


def deep(graph, found, reserve0: int, reserve1: int) -> None:
    graph.states[found.key] = PoolState(reserve0, reserve1, 0, reserve0)


# --- who has a place --------------------------------------------------------------------------------------------------


def test_hostile_v4_pools_that_promise_much_leave_the_honest_and_oldest_one_its_place():
    honest = pool("v4", TOKEN, NATIVE)
    flood = [pool("v4", TOKEN, NATIVE, tick_spacing=spacing, hooks=hooks, born_block=9) for spacing in range(1, 40) for hooks in (NATIVE, HOOK)]
    plain = [pool("v2", TOKEN, WETH), *(pool("v3", TOKEN, WETH, fee) for fee in (100, 500, 3_000, 10_000))]
    graph = graph_of(honest, *flood, *plain)
    for each in (honest, *plain):
        deep(graph, each, ETH, ETH)
    for routes in both_ways(graph):
        assert honest.key in {hop.pool.key for route in routes for hop in route.hops}
        assert ways(routes).count("v4") == V4_CANDIDATES_MAX and len(routes) == CANDIDATES_MAX


def test_of_v4_pools_one_with_a_hook_and_one_without_have_a_place_whatever_the_others_promise():
    plain = [pool("v2", TOKEN, WETH), *(pool("v3", TOKEN, WETH, fee) for fee in (100, 500, 3_000, 10_000))]
    honest = pool("v4", TOKEN, NATIVE, born_block=5)
    flood = [pool("v4", TOKEN, NATIVE, tick_spacing=spacing, hooks=HOOK, born_block=spacing) for spacing in range(1, 20)]
    graph = graph_of(honest, *flood, *plain)
    deep(graph, honest, ETH, ETH)
    assert honest.key in {route.hops[0].pool.key for route in both_ways(graph)[0]}


def test_pools_whose_fee_takes_half_come_after_all_other_v4_pools():
    bait = [pool("v4", TOKEN, NATIVE, fee, tick_spacing=spacing) for spacing, fee in enumerate((500_000, 800_000, 990_000), 1)]
    usual = [pool("v4", TOKEN, NATIVE, fee, born_block=9) for fee in (100, 10_000, 400_000)]
    plain = [pool("v2", TOKEN, WETH), *(pool("v3", TOKEN, WETH, fee) for fee in (100, 500, 3_000, 10_000))]
    graph = graph_of(*bait, *usual, *plain, depth=ETH)
    for each in bait:
        deep(graph, each, 10**6 * ETH, 10**6 * ETH)
    for routes in both_ways(graph):
        assert {each.key for each in bait} & {hop.pool.key for route in routes for hop in route.hops} == set()


def test_a_pool_without_number_of_siblings_keeps_its_place_by_age():
    honest = pool("v4", TOKEN, NATIVE, 500)
    flood = [pool("v4", TOKEN, NATIVE, tick_spacing=spacing, born_block=9) for spacing in range(1, 3 * PAIR_POOLS_MAX)]
    graph = graph_of(*flood, honest)
    deep(graph, honest, ETH, ETH)
    assert honest.key in {route.hops[0].pool.key for route in both_ways(graph)[0]}


def test_one_deep_dollar_pool_does_not_take_every_place_by_its_many_ways_to_ether():
    legs = [pool("v2", WETH, USDG), *(pool("v3", WETH, USDG, fee) for fee in (100, 500, 3_000, 10_000))]
    deep_one, honest = pool("v3", TOKEN, USDG), [pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH)]
    graph = graph_of(*legs, deep_one, pool("v3", TOKEN, USDG, 500), *honest)
    for each in honest:
        deep(graph, each, ETH, ETH)
    for routes in both_ways(graph):
        assert {each.key for each in honest} <= {hop.pool.key for route in routes for hop in route.hops} and len(routes) == CANDIDATES_MAX


def test_other_exchanges_and_ways_around_come_on_top_and_are_few():
    network = replace(NETWORK, forks=tuple(replace(FORK, name=f"grove-{place}", factory=f"0x{place:040x}") for place in range(1, 9)))
    foreign = [pool("v2", TOKEN, WETH, fork=fork.name) for fork in network.forks]
    plain = [pool("v2", TOKEN, WETH), *(pool("v3", TOKEN, WETH, fee) for fee in (50, 100, 200, 500, 3_000, 10_000))]
    around = [part for digit in "6789" for part in (pool("v3", WETH, "0x" + digit * 40, 0), pool("v3", "0x" + digit * 40, TOKEN, 0))]
    routes = buy_routes(network, graph_of(*foreign, *plain, *around), TOKEN, ETH, WALLET)
    whole = [route for route in routes if not route.parts]
    assert sum(any(hop.pool.fork for hop in route.hops) for route in whole) == FOREIGN_CANDIDATES_MAX
    assert sum(len(route.hops) == 2 for route in whole) == AROUND_CANDIDATES_MAX
    assert len(whole) == CANDIDATES_MAX + FOREIGN_CANDIDATES_MAX + AROUND_CANDIDATES_MAX and len(routes) <= len(whole) + SPLITS_MAX


def test_an_exchange_without_a_router_is_known_and_not_traded():
    network = replace(NETWORK, forks=(replace(FORK, router=None, router_shape=None),))
    assert buy_routes(network, graph_of(pool("v2", TOKEN, WETH, fork="grove")), TOKEN, ETH, WALLET) == ()


def test_pools_of_two_exchanges_make_no_way_together():
    network = replace(NETWORK, forks=(FORK,))
    mixed = graph_of(pool("v2", TOKEN, USDG, fork="grove"), pool("v2", WETH, USDG))
    same = graph_of(pool("v2", TOKEN, USDG, fork="grove"), pool("v2", WETH, USDG, fork="grove"))
    assert buy_routes(network, mixed, TOKEN, ETH, WALLET) == ()
    assert [route.swap.to for route in buy_routes(network, same, TOKEN, ETH, WALLET)] == [OTHER]


def test_a_fee_that_a_hook_sets_is_the_one_that_stood_last():
    set_by_hook = pool("v4", TOKEN, NATIVE, DYNAMIC_FEE, hooks=HOOK)
    graph = graph_of(set_by_hook)
    graph.states[set_by_hook.key] = replace(graph.states[set_by_hook.key], fee_ppm=500_000)
    taken = promise(graph, (Hop(set_by_hook, NATIVE, TOKEN),), ETH)
    graph.states[set_by_hook.key] = replace(graph.states[set_by_hook.key], fee_ppm=0)
    assert 2 * taken * 101 // 100 >= promise(graph, (Hop(set_by_hook, NATIVE, TOKEN),), ETH) > 2 * taken * 98 // 100


# --- splits -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**24), *([DEPTHS] * 4), FEES, FEES)
def test_a_split_adds_up_and_promises_more_than_its_ways_alone(amount, here0, here1, there0, there1, fee, other_fee):
    one, other = pool("v2", TOKEN, WETH, fee), pool("v3", TOKEN, WETH, other_fee)
    graph = graph_of(one, other)
    deep(graph, one, here0, here1)
    deep(graph, other, there0, there1)
    for side, of in (("buy", buy_routes), ("sell", sell_routes)):
        routes = of(NETWORK, graph, TOKEN, amount, WALLET)
        alone = max(promise(graph, route.hops, amount) for route in routes if not route.parts)
        for split in splits(routes):
            assert sum(part.amount for part in split.parts) == split.amount == amount and all(part.amount > 0 for part in split.parts)
            together = sum(promise(graph, part.path, part.amount) for part in split.parts)
            assert together * SPLIT_GAIN_PART >= alone * SPLIT_GAIN_PART and abs(together - split.promised) <= 2, side


@given(st.integers(10**6, 10**24), *([DEPTHS] * 4), FEES, FEES)
def test_no_share_nearby_promises_more(amount, here0, here1, there0, there1, fee, other_fee):
    one, other = pool("v2", TOKEN, WETH, fee), pool("v3", TOKEN, WETH, other_fee)
    graph = graph_of(one, other)
    deep(graph, one, here0, here1)
    deep(graph, other, there0, there1)
    paths = (Hop(one, WETH, TOKEN),), (Hop(other, WETH, TOKEN),)
    found = split_of(graph, *paths, amount)
    first, second = (response(graph, path) for path in paths)
    best = first.out(found[0]) + second.out(amount - found[0]) if found else max(first.out(amount), second.out(amount))
    for part in range(0, 101):
        share = amount * part // 100
        assert first.out(share) + second.out(amount - share) <= best + 2


@given(st.integers(10**15, 10**19), st.integers(10**9, 10**13), DEPTHS, DEPTHS)
def test_a_way_over_dollars_and_one_without_are_split_where_that_is_better(amount, dollars, here, there):
    direct, leg, second = pool("v3", TOKEN, WETH), pool("v3", WETH, USDG, 500), pool("v2", TOKEN, USDG)
    graph = graph_of(direct, leg, second)
    deep(graph, direct, here, here)
    deep(graph, leg, *((there, dollars) if leg.token0 == WETH else (dollars, there)))
    deep(graph, second, *((there, dollars) if second.token0 == TOKEN else (dollars, there)))
    one, other = (Hop(direct, WETH, TOKEN),), (Hop(leg, WETH, USDG), Hop(second, USDG, TOKEN))
    first, last = (response(graph, path) for path in (one, other))
    found = split_of(graph, one, other, amount)
    best = found[1] if found else max(first.out(amount), last.out(amount))
    tried = [first.out(amount * part // 50) + last.out(amount - amount * part // 50) for part in range(51)]
    assert max(tried) * 1_000_000 <= best * 1_000_001 + 1_000_000


@given(st.integers(10**6, 10**23), st.lists(st.tuples(DEPTHS, DEPTHS, FEES), min_size=3, max_size=3))
def test_an_order_over_three_ways_adds_up_and_no_unit_is_better_elsewhere(amount, pools):
    graph = graph_of(*(made := [pool("v3", TOKEN, WETH, fee, tick_spacing=spacing, key=f"0x{spacing:040x}") for spacing, (_, _, fee) in enumerate(pools, 1)]))
    for each, (reserve0, reserve1, _) in zip(made, pools, strict=True):
        deep(graph, each, reserve0, reserve1)
    curves = [response(graph, (Hop(each, WETH, TOKEN),)) for each in made]
    shares = even_shares(curves, amount)
    assert sum(shares) == amount
    if min(shares) > 0:
        brought = sum(curve.out(share) for curve, share in zip(curves, shares, strict=True))
        for one, other in ((0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)):
            step = shares[one] // 50
            moved = [share + step * (place == other) - step * (place == one) for place, share in enumerate(shares)]
            assert sum(curve.out(share) for curve, share in zip(curves, moved, strict=True)) <= brought + 3


def test_three_thin_pools_share_a_large_order_in_one_transaction():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH), pool("v3", TOKEN, WETH, 500), depth=20 * ETH)
    found = splits(buy_routes(NETWORK, graph, TOKEN, 6 * ETH, WALLET))
    assert sorted(len(split.parts) for split in found) == [2, 3]
    wide = max(found, key=lambda split: split.promised)
    assert len(wide.parts) == 3 and wide.label.count("%") == 6 and sum(part.amount for part in wide.parts) == 6 * ETH
    smaller = route_of(NETWORK, wide, WALLET, 5 * ETH + 1)
    assert sum(part.amount for part in smaller.parts) == 5 * ETH + 1 and len(smaller.parts) == 3


@given(st.integers(10**12, 10**22), st.sampled_from(("buy", "sell")))
def test_ways_that_share_their_way_to_the_dollar_are_split_where_they_part(amount, side):
    pools = [pool("v3", WETH, USDG, 500), pool("v2", TOKEN, USDG), pool("v3", TOKEN, USDG)]
    graph = graph_of(*pools, depth=50 * ETH)
    of = buy_routes if side == "buy" else sell_routes
    for split in splits(of(NETWORK, graph, TOKEN, amount, WALLET)):
        assert sum(part.amount for part in split.parts) == amount and len({hop.pool.key for hop in split.hops}) == 3
        bought = [promise(graph, split.parts[0].path[:1], split.parts[0].amount), promise(graph, split.parts[0].path[:1], amount)]
        shares = [bought[0], bought[1] - bought[0]] if side == "buy" else [part.amount for part in split.parts]
        assert min(shares) * 100 >= sum(shares) * 49


def test_a_split_for_another_amount_keeps_its_proportion_and_adds_up():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH))
    (split,) = splits(sell_routes(NETWORK, graph, TOKEN, 10 * ETH + 1, WALLET))
    half = route_of(NETWORK, split, WALLET, split.amount // 2)
    assert half.label == split.label and sum(part.amount for part in half.parts) == half.amount == 5 * ETH
    assert route_of(NETWORK, split, OTHER).parts == split.parts


def test_a_split_names_both_shares():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH))
    (split,) = splits(buy_routes(NETWORK, graph, TOKEN, 10 * ETH, WALLET))
    one, other = (part.path[0].pool for part in split.parts)
    assert split.label == f"split 50% eth >{one.venue} 0.3% {one.key[:10]}> token + 50% eth >{other.venue} 0.3% {other.key[:10]}> token"


def test_hostile_promises_take_no_place_of_a_split_over_plain_pools():
    plain, flood = [pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH)], [pool("v4", TOKEN, NATIVE, tick_spacing=spacing) for spacing in range(1, 20)]
    graph = graph_of(*plain, *flood)
    for each in flood:
        deep(graph, each, 10**6 * ETH, 10**6 * ETH)
    found = splits(buy_routes(NETWORK, graph, TOKEN, 10 * ETH, WALLET))
    assert any({hop.pool.key for hop in split.hops} == {each.key for each in plain} for split in found) and len(found) <= SPLITS_MAX


def test_ways_of_one_size_are_found_again_without_working_them_out_anew():
    graph = graph_of(pool("v2", TOKEN, WETH), pool("v3", TOKEN, WETH))
    first = candidates(NETWORK, graph, "buy", TOKEN, ETH)
    paths = [candidate.parts[0].path for candidate in first]
    again = [candidate.parts[0].path for candidate in candidates(NETWORK, graph, "buy", TOKEN, 2 * ETH)]
    assert {id(path) for path in paths} == {id(path) for path in again}
