"""Rivals that attack: whatever one of them does, an order ends as it would without it, or truly better (ONC-05, ONC-06, ONC-24)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import orjson
import pytest
from aiohttp import web

from chain import calldata
from chain.aggregators.kyber import KyberSwap
from chain.aggregators.rivals import Rivals
from chain.aggregators.zerox import ZeroX
from chain.devnet.calls import Tx, encode
from chain.simulate import READER, lens_of
from ledgers.events import encode as encoded
from referee.onchain.events import LEDGERS, BoardTaken, FillCredited, OrderAsked
from referee.onchain.rules import rules_named
from tests.onchain.attacker import deployed, steps_of, told
from tests.onchain.given import outcome, said, wei
from tests.onchain.ground import WALLET, Ground, Run, boards
from tests.onchain.rival import ROUTER, THIEF, Call, RivalServer, Told, Wanted, gives, listed, moves, rival_server
from tests.onchain.test_rivals import SPEND, THIN, FastClock, executed, honest, rows_of, trades
from tests.onchain.test_two_ledgers import check_order

ETHER = 10**18


@pytest.fixture
async def rival(ground):
    """A rival that knows every pool of ACRN, while our own router is left with a thin one."""
    async with rival_server(ground, lambda wanted: honest(rival, wanted)) as rival:
        ground.keep_venue("ACRN", THIN, "weth")
        ground.settle()
        asking = ground.desk.rivals = rival.rivals(FastClock())
        yield rival
        await asking.close()


@pytest.fixture
def run(ground) -> Run:
    return Run(ground)


@pytest.fixture
def executor(ground, rival) -> str:
    """A contract of the attacker with a stock of everything."""
    address = deployed(ground, "Executor")
    give(ground, "ACRN", address, 10**24)
    ground.chain.fund(address, 10 * ETHER)
    ground.settle()
    return address


def give(ground: Ground, name: str, to: str, units: int) -> None:
    issuer = ground.chain.deployment.cast.issuer
    (receipt,) = ground.chain.send(Tx(sender=issuer, to=ground.token(name), data=gives(ground.token(name), to, units).data))
    assert receipt["status"] == "0x1"


async def beside(ground: Ground, run: Run, *orders: OrderAsked) -> tuple[BoardTaken, str]:
    """Referee orders with the rival and without: they end the same, but for the rival's own row of the last order."""
    alone = run.copy()
    rivals, ground.desk.rivals = ground.desk.rivals, None
    without = await alone.decide(*orders)
    ground.desk.rivals = rivals
    before = run.books.both(run.run_id)
    events = await run.decide(*orders)
    if len(orders) == 1:
        check_order(events[0], before)
    assert [[end(each, ledger) for ledger in LEDGERS] for each in events] == [[end(each, ledger) for ledger in LEDGERS] for each in without]
    (board,) = boards(events[-1])
    (row,) = rows_of(board, "kyberswap")
    return board, row.reason or row.status


def end(events, ledger: str) -> tuple:
    """How an order ended on a ledger: its word, and of a fill the route and what it brought and cost."""
    event = outcome(events, ledger)
    fill = (event.route, event.arrival_raw, event.gas_wei) if isinstance(event, FillCredited) else (event.reason, event.detail)
    return said(events, ledger), *fill


def telling(rival: RivalServer, data: str | Callable[[Wanted], str], router: str, out_raw: int = 2**90) -> None:
    rival.tell = lambda wanted: Told(out_raw, data if isinstance(data, str) else data(wanted), router)


# --- stock of its own, dressed as a market ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [2, 3, 4])
async def test_stock_that_is_logged_as_pools_log_swaps_is_stock(ground, rival, run, executor, shape):
    pool = next(pool for pool in ground.graph.pools.values() if pool.venue == "v2")
    telling(rival, lambda wanted: told("pretend(address,address,uint256,uint256,bytes32)", wanted.token, wanted.wallet, 10**22, shape, bytes.fromhex(pool.key[2:].rjust(64, "0"))), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


@pytest.mark.parametrize("shape", [2, 3, 4])
async def test_nor_does_a_sale_pay_from_one(ground, rival, run, executor, shape):
    await run.fill(run.buy("ACRN", SPEND))
    pretends = lambda wanted: told("pretend(address,address,uint256,uint256,bytes32)", "0x" + "00" * 20, wanted.wallet, ETHER, shape, bytes(32))
    telling(rival, lambda wanted: listed([moves(wanted.token, wanted.wallet, ROUTER, wanted.amount), Call(executor, pretends(wanted))]), ROUTER)
    assert (await beside(ground, run, run.sell("ACRN")))[1] == "private_inventory"


async def test_a_buy_that_is_topped_up_with_the_rivals_own_eth_is_none(ground, rival, run, executor):
    telling(rival, lambda wanted: told("run(STEPS)", steps_of(trades(rival, replace(wanted, amount=2 * wanted.amount), executor))), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_a_sale_to_which_the_rival_adds_tokens_of_its_own_is_none(ground, rival, run, executor):
    await run.fill(run.buy("ACRN", SPEND))

    def adds(wanted: Wanted) -> str:
        _, *rest = trades(rival, replace(wanted, amount=2 * wanted.amount), executor)
        return told("run(STEPS)", steps_of([moves(wanted.token, wanted.wallet, executor, wanted.amount), *rest]))

    telling(rival, adds, executor)
    assert (await beside(ground, run, run.sell("ACRN")))[1] == "private_inventory"


async def test_nor_is_one_whose_second_pool_is_paid_with_more_than_the_first_gave(ground, rival, run, executor):
    """Half of it goes over dollars and back, and dollars of the rival's own are added on the way."""
    network = ground.network
    usdg, weth = network.usdg, network.weth
    deployer = ground.chain.deployment.cast.deployer
    ground.chain.send(Tx(sender=deployer, to=usdg, data=encode("mint(address,uint64)", executor, 10**12)))
    ground.settle()

    def subsidised(wanted: Wanted) -> str:
        fees = {frozenset((pool.token0, pool.token1)): pool.fee_ppm for pool in rival.whole.pools.values() if pool.venue == "v3" and not pool.fork}
        first = calldata.swap_v3_single(weth, usdg, fees[frozenset((weth, usdg))], executor, wanted.amount // 2)
        second = calldata.swap_v3_single(usdg, weth, fees[frozenset((weth, usdg))], executor, 4 * 10**9)
        direct = trades(rival, replace(wanted, amount=wanted.amount // 2 + ETHER // 2))
        unwrap = Call(weth, encode("withdraw(uint256)", ETHER // 2))
        calls = [Call(network.swap_router_02, first, wanted.amount // 2), Call(usdg, calldata.approve(network.swap_router_02)), Call(network.swap_router_02, second), unwrap, *direct]
        return told("run(STEPS)", steps_of(calls))

    telling(rival, subsidised, executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_liquidity_that_is_taken_out_beside_a_swap_is_stock(ground, rival, run, executor):
    """A v2 pair pays out what the rival's own part of its liquidity is worth, and logs a swap too."""
    pair = next(pool for pool in ground.graph.pools_of(ground.token("ACRN")) if pool.venue == THIN)
    provider = next(owner for owner in (ground.chain.deployment.cast.issuer, ground.chain.deployment.cast.deployer, *ground.chain.deployment.cast.providers) if balance(ground, pair.key, owner))
    part = balance(ground, pair.key, provider) // 50
    ground.chain.send(Tx(sender=provider, to=pair.key, data=gives(pair.key, executor, part).data))
    ground.settle()

    def burns(wanted: Wanted) -> str:
        first = wanted.token == pair.token0
        held = part * balance(ground, wanted.token, pair.key) // int(ground.chain.node.call("eth_call", [{"to": pair.key, "data": "0x18160ddd"}, "latest"]), 16)
        calls = [
            *trades(rival, wanted, executor), gives(pair.key, pair.key, part), Call(pair.key, encode("burn(address)", executor)),
            gives(wanted.token, wanted.wallet, held * 9 // 10), Call(ground.network.swap_router_02, swap_v2(ground, wanted, 10**12), 10**12),
        ]  # fmt: skip
        assert first in (True, False)
        return told("run(STEPS)", steps_of(calls))

    telling(rival, burns, executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_claims_that_are_taken_out_of_the_v4_manager_are_stock(ground, rival, run, executor):
    """What was left in the manager is paid out beside a swap in one of its pools."""
    pool, token = v4_pool(rival, ground), ground.token("PINE")
    ground.graph = rival.whole
    ground.keep(lambda each: each.key == pool.key)
    claims = deployed(ground, "Claims", ground.network.v4_pool_manager)
    give(ground, "PINE", claims, 10**22)
    (receipt,) = ground.chain.send(Tx(sender=ground.chain.deployment.cast.visitor, to=claims, data=encode("load(address,uint256)", token, 10**22), gas=1_000_000))
    assert receipt["status"] == "0x1"
    ground.settle()

    def pays(wanted: Wanted) -> str:
        way = next(way for way in rival.ways(wanted) if [hop.pool.key for hop in way.hops] == [pool.key])
        return told("run(STEPS)", steps_of([Call(way.swap.to, way.swap.data, way.swap.value_wei), gives_all(wanted, executor), Call(claims, encode("pay(address,address,uint256)", wanted.token, wanted.wallet, 10**21))]))

    telling(rival, pays, executor)
    assert (await beside(ground, run, run.buy("PINE", "0.1 eth")))[1] == "private_inventory"


def gives_all(wanted: Wanted, executor: str) -> Call:
    return Call(executor, told("hand(address,address)", wanted.token, wanted.wallet))


def v4_pool(rival: RivalServer, ground: Ground):
    token = ground.token("PINE")
    return max((pool for pool in rival.whole.pools_between("0x" + "00" * 20, token) if not pool.hooked and pool.fee_ppm < 100_000), key=lambda pool: rival.whole.states[pool.key].liquidity)


async def test_a_surplus_that_is_skimmed_off_a_pair_is_stock(ground, rival, run, executor):
    pair = next(pool for pool in ground.graph.pools_of(ground.token("ACRN")) if pool.venue == THIN)
    give(ground, "ACRN", pair.key, 10**22)
    ground.settle()

    def skims(wanted: Wanted) -> str:
        calls = [Call(pair.key, encode("skim(address)", wanted.wallet)), Call(ground.network.swap_router_02, swap_v2(ground, wanted, wanted.amount), wanted.amount)]
        return told("run(STEPS)", steps_of(calls))

    telling(rival, skims, executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_stock_that_is_put_into_a_pair_before_the_swap_is_stock(ground, rival, run, executor):
    """The pair then sells cheaper, and its Swap log is as any other."""
    pair = next(pool for pool in ground.graph.pools_of(ground.token("ACRN")) if pool.venue == THIN)

    def shifts(wanted: Wanted) -> str:
        calls = [gives(wanted.token, pair.key, 10**22), Call(pair.key, encode("sync()")), Call(ground.network.swap_router_02, swap_v2(ground, wanted, wanted.amount), wanted.amount)]
        return told("run(STEPS)", steps_of(calls))

    telling(rival, shifts, executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_nor_is_it_a_market_where_the_stock_was_liquidity_before(ground, rival, run, executor):
    """Liquidity of the rival's own is taken out of the pair, and its tokens put back into it as a surplus."""
    pair = next(pool for pool in ground.graph.pools_of(ground.token("ACRN")) if pool.venue == THIN)
    cast = ground.chain.deployment.cast
    provider = next(owner for owner in (cast.issuer, cast.deployer, *cast.providers) if balance(ground, pair.key, owner))
    part, supply = balance(ground, pair.key, provider) // 20, int(ground.chain.node.call("eth_call", [{"to": pair.key, "data": "0x18160ddd"}, "latest"]), 16)
    ground.chain.send(Tx(sender=provider, to=pair.key, data=gives(pair.key, executor, part).data))
    ground.settle()
    worth = balance(ground, ground.token("ACRN"), pair.key) * part // supply - 1

    def shifts(wanted: Wanted) -> str:
        calls = [
            gives(pair.key, pair.key, part), Call(pair.key, encode("burn(address)", executor)), gives(wanted.token, pair.key, worth),
            Call(pair.key, encode("sync()")), Call(ground.network.swap_router_02, swap_v2(ground, wanted, wanted.amount), wanted.amount),
        ]  # fmt: skip
        return told("run(STEPS)", steps_of(calls))

    telling(rival, shifts, executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


async def test_claims_that_are_put_into_a_pair_are_stock(ground, rival, run, executor):
    """What one pool pays beside its swaps is what another takes beside its own: over both together nothing is missing."""
    pool, token = v4_pool(rival, ground), ground.token("PINE")
    pair = next(each for each in rival.whole.pools_of(token) if each.venue == "v2" and not each.fork and ground.network.weth in (each.token0, each.token1))
    ground.graph = rival.whole
    ground.keep(lambda each: each.key in (pool.key, pair.key))
    claims = deployed(ground, "Claims", ground.network.v4_pool_manager)
    give(ground, "PINE", claims, 10**22)
    (receipt,) = ground.chain.send(Tx(sender=ground.chain.deployment.cast.visitor, to=claims, data=encode("load(address,uint256)", token, 10**22), gas=1_000_000))
    assert receipt["status"] == "0x1"
    ground.settle()

    def shifts(wanted: Wanted) -> str:
        tiny = next(way for way in rival.ways(replace(wanted, amount=10**9)) if [hop.pool.key for hop in way.hops] == [pool.key])
        calls = [
            Call(tiny.swap.to, tiny.swap.data, tiny.swap.value_wei), Call(claims, encode("pay(address,address,uint256)", token, pair.key, 10**22)), Call(pair.key, encode("sync()")),
            Call(ground.network.swap_router_02, swap_v2(ground, wanted, wanted.amount - 10**9), wanted.amount - 10**9), gives_all(wanted, executor),
        ]  # fmt: skip
        return told("run(STEPS)", steps_of(calls))

    telling(rival, shifts, executor)
    assert (await beside(ground, run, run.buy("PINE", "0.1 eth")))[1] == "private_inventory"


@pytest.mark.parametrize("adds", [False, True])
async def test_what_a_hook_takes_is_no_room_for_stock(ground, rival, run, executor, adds):
    stall = ground.chain.deployment.annex.stall("fee_after")
    token = stall.token.address.lower()
    ground.graph = rival.whole
    ground.keep(lambda pool: pool.key == stall.place.key)
    if adds:
        ground.chain.send(Tx(sender=ground.chain.deployment.cast.annexer, to=token, data=gives(token, executor, ETHER).data))
    ground.settle()
    order = OrderAsked(index=0, side="buy", token=token, spend_wei=wei("0.1 eth"), amount_raw=None, sell_all=False)

    def tops_up(wanted: Wanted) -> str:
        (way, *_) = rival.ways(wanted)
        calls = [Call(way.swap.to, way.swap.data, way.swap.value_wei), gives_all(wanted, executor)]
        return told("run(STEPS)", steps_of(calls))

    telling(rival, tops_up, executor)
    (events,) = await run.decide(order)
    (row,) = rows_of(boards(events)[0], "kyberswap")
    assert (row.reason or row.status) == ("private_inventory" if adds else "proven")


def balance(ground: Ground, token: str, owner: str) -> int:
    return int(ground.chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", owner)}, "latest"]), 16)


def swap_v2(ground: Ground, wanted: Wanted, amount: int) -> str:
    return calldata.swap_v2([ground.network.weth, wanted.token], wanted.wallet, amount)


async def test_nor_may_a_pool_be_made_cheaper_for_a_later_order(ground, rival, run, executor):
    """Its stock goes into a pair that it does not trade in."""
    pair = next(pool for pool in rival.whole.pools_of(ground.token("LEAF")) if pool.venue == THIN and not pool.fork)
    give(ground, "LEAF", executor, 10**21)
    ground.settle()
    telling(rival, lambda wanted: told("run(STEPS)", steps_of([*trades(rival, wanted, executor), gives(ground.token("LEAF"), pair.key, 10**21), Call(pair.key, encode("sync()"))])), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "private_inventory"


# --- any mixture --------------------------------------------------------------------------------------------------------


def mixture(ground: Ground, rival: RivalServer, wanted: Wanted, executor: str, seed: int) -> list[Call]:
    """Some trades of what was given and of what the executor has, transfers, surpluses put in and taken out, and payment of some of it."""
    dice, network, token = Random(seed), ground.network, wanted.token
    pair = next(pool for pool in rival.whole.pools_of(token) if pool.venue == THIN and not pool.fork and network.weth in (pool.token0, pool.token1))
    share = lambda whole: whole * dice.choice((1, 5, 10, 12, 15)) // 10 + dice.choice((0, 0, 1))  # noqa: E731
    v2 = lambda: Call(network.swap_router_02, swap_v2(ground, wanted, part := share(wanted.amount // 2)), part)  # noqa: E731
    deep = lambda: trades(rival, replace(wanted, amount=share(wanted.amount // 2)), executor)[0]  # noqa: E731
    ways = (
        v2, deep, deep, lambda: gives(token, wanted.wallet, dice.choice((0, 1, 10**15, 10**19))), lambda: gives(token, pair.key, dice.choice((1, 10**18))),
        lambda: Call(pair.key, encode("sync()")), lambda: Call(pair.key, encode("skim(address)", dice.choice((executor, wanted.wallet)))),
        lambda: Call(network.weth, encode("deposit()"), 10**15), lambda: gives(network.weth, pair.key, 10**14),
    )  # fmt: skip
    return [dice.choice(ways)() for _ in range(dice.randint(1, 5))]


@pytest.mark.parametrize("seed", [*range(24), 244])
async def test_a_proven_row_leaves_the_rival_no_poorer_and_brings_what_it_really_brings(ground, rival, run, executor, seed):
    telling(rival, lambda wanted: told("run(STEPS)", steps_of(mixture(ground, rival, wanted, executor, seed))), executor)
    (events,) = await run.decide(run.buy("ACRN", SPEND))
    (row,) = rows_of(boards(events)[0], "kyberswap")
    print(seed, row.status, row.reason)
    if outcome(events).route == row.route:
        tokens = (ground.token("ACRN"), ground.network.weth, ground.network.usdg)
        before = [balance(ground, token, executor) for token in tokens], ground.eth_of(executor)
        fill = outcome(events)
        assert executed(ground, run, "ACRN") == (int(fill.arrival_raw), -int(wei(SPEND)), int(fill.gas_wei))
        after = [balance(ground, token, executor) for token in tokens], ground.eth_of(executor)
        assert all(now >= then for now, then in zip((*after[0], after[1]), (*before[0], before[1]), strict=True)), (before, after)


# --- answers that are too much ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("says", ["loud", "chatter"])
async def test_a_transaction_that_says_very_much_is_no_row(ground, rival, run, executor, says):
    telling(rival, lambda wanted: told(f"{says}(STEPS,uint256)", steps_of(trades(rival, wanted, executor)), 200_000), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "too_long"


@pytest.mark.parametrize("size", [1_500_000, 1_650_000])
async def test_nor_do_eight_of_them_in_one_decision_fault_an_order(ground, rival, executor, size):
    run = Run(ground, stake="9 eth")
    telling(rival, lambda wanted: told("loud(STEPS,uint256)", steps_of(trades(rival, wanted, executor)), size), executor)
    assert await run.say(*[run.buy("ACRN", SPEND)] * 8) == ["filled"] * 8


async def test_nor_do_eight_whose_calldata_is_as_long_as_may_be(ground, rival, executor):
    run = Run(ground, stake="9 eth")
    telling(rival, lambda wanted: told("run(STEPS)", steps_of(trades(rival, wanted, executor))) + "ab" * 60_000, executor)
    assert await run.say(*[run.buy("ACRN", SPEND)] * 8) == ["filled"] * 8


async def test_a_revert_with_a_megabyte_is_a_revert(ground, rival, run, executor):
    telling(rival, told("shout(uint256)", 1_500_000), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1].startswith("reverted")


async def test_a_transaction_that_burns_nearly_all_that_a_swap_may_use_is_no_row(ground, rival, run, executor):
    """Eight of them would leave no gas for the ninth in what a node lets one request use."""
    telling(rival, lambda wanted: told("guzzle(STEPS,uint256)", steps_of(trades(rival, wanted, executor)), 200_000), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "too_much_gas"


# --- another face for whoever looks -------------------------------------------------------------------------------------


async def test_what_sells_out_after_one_use_fills_once_a_decision(ground, rival, run, executor):
    telling(rival, lambda wanted: told("once(STEPS)", steps_of(trades(rival, wanted, executor))), executor)
    first, second = await run.decide(run.buy("ACRN", "0.1 eth"), run.buy("ACRN", "0.1 eth"))
    assert said(first) == said(second) == "filled"
    assert outcome(second).route in {row.route for row in rows_of(boards(second)[0], "router")}


async def test_a_rival_that_serves_only_this_origin_is_gated_by_our_own_row(ground, rival, run, executor):
    telling(rival, lambda wanted: told("choosy(address,STEPS)", WALLET, steps_of(trades(rival, wanted, executor))), executor)
    (fill,) = await run.fill(run.buy("ACRN", SPEND))
    assert executed(ground, run, "ACRN") == (int(fill.arrival_raw), -int(wei(SPEND)), int(fill.gas_wei))


async def test_a_rival_that_fails_in_the_gate_costs_its_row_alone(ground, rival, run, executor):
    """The lens through which the board reads what else is held stands in no gate."""
    lens, _ = lens_of(ground.network.usdg)

    def shows(wanted: Wanted) -> str:
        calls = trades(rival, wanted, executor)
        return told("run(STEPS)", steps_of([Call(lens, "0x"), *calls]))

    telling(rival, shows, executor)
    await run.fill(run.buy("ACRN", SPEND))


async def test_a_rival_that_knows_a_later_order_cannot_spoil_it(ground, rival, run, executor):
    """Its fill refuses to be run again where another token of the decision is looked at."""
    leaf, lens = ground.token("LEAF"), lens_of(ground.token("LEAF"))[0]
    ground.graph = rival.whole
    ground.keep(lambda pool: pool.venue == THIN and {pool.token0, pool.token1} in ({ground.network.weth, leaf}, {ground.network.weth, ground.token("ACRN")}))
    rivals, ground.desk.rivals = ground.desk.rivals, None
    await run.fill(run.buy("LEAF", "0.01 eth"))
    ground.desk.rivals = rivals
    telling(rival, lambda wanted: told("shy(address,STEPS)", lens, steps_of(trades(rival, wanted, executor))), executor)
    ends = await run.say(run.buy("ACRN", SPEND), run.sell("LEAF"))
    assert ends == ["filled", "filled"]


@pytest.mark.parametrize("side", ["sell", "buy"])
async def test_a_gift_of_another_token_changes_no_later_order_of_the_decision(ground, rival, run, executor, side):
    leaf = ground.token("LEAF")
    give(ground, "LEAF", executor, 10**18)
    ground.settle()
    ground.graph = rival.whole
    ground.keep(lambda pool: pool.venue == THIN and {pool.token0, pool.token1} in ({ground.network.weth, leaf}, {ground.network.weth, ground.token("ACRN")}))
    rivals, ground.desk.rivals = ground.desk.rivals, None
    await run.fill(run.buy("LEAF", "0.01 eth"))
    alone = run.copy()
    (_, wanted) = await alone.fill(run.buy("ACRN", SPEND), run.sell("LEAF") if side == "sell" else run.buy("LEAF", "0.01 eth"))
    ground.desk.rivals = rivals

    def gives_leaf(asked: Wanted) -> str:
        return told("run(STEPS)", steps_of([gives(leaf, asked.wallet, 7), *trades(rival, asked, executor)]) if asked.token != leaf else [])

    telling(rival, gives_leaf, executor)
    first, second = await run.fill(run.buy("ACRN", SPEND), run.sell("LEAF") if side == "sell" else run.buy("LEAF", "0.01 eth"))
    assert first.route.startswith("kyberswap") and second.proven
    assert (second.route, second.arrival_raw) == (wanted.route, wanted.arrival_raw)


async def test_a_rival_that_sees_the_reader_is_no_worse_than_one_that_reverts(ground, rival, run, executor):
    telling(rival, lambda wanted: told("poor(address,STEPS)", READER, steps_of(trades(rival, wanted, executor))), executor)
    assert (await beside(ground, run, run.buy("ACRN", SPEND)))[1] == "reverted: watched"


# --- what it says of itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sim_aware", "watched", "registered_buyers", "checkpointed"])
async def test_a_refused_buy_is_refused_by_what_our_own_row_says(ground, rival, run, executor, name):
    """A token that cannot be sold is flagged, whatever a rival's own gate could not tell."""
    only(ground, rival, name)
    lens, _ = lens_of(ground.network.usdg)
    telling(rival, lambda wanted: told("shown(address,STEPS)", lens, steps_of(halves(rival, wanted, executor))), executor)
    assert (await beside(ground, run, run.buy(name, "0.1 eth")))[1] == "proven"


def only(ground: Ground, rival: RivalServer, name: str) -> None:
    """Leave our own router with one of a token's two pools."""
    ground.graph = rival.whole
    ground.keep_venue(name, THIN, "weth")


def halves(rival: RivalServer, wanted: Wanted, router: str) -> list[Call]:
    """Half over the pair, half over the v3 pool: better than all of it over one of them."""
    half = replace(wanted, amount=wanted.amount // 2)
    ways = [next(way for way in rival.ways(half) if [hop.pool.venue for hop in way.hops] == [venue]) for venue in ("v2", "v3")]
    calls = [Call(way.swap.to, way.swap.data, way.swap.value_wei) for way in ways]
    if wanted.side == "buy":
        return calls
    return [moves(wanted.token, wanted.wallet, router, wanted.amount), *(Call(wanted.token, calldata.approve(way.swap.to)) for way in ways), *calls]


@pytest.mark.parametrize("name", ["tax_10", "eoa_only", "no_return", "one_use", "bounty", "event_liar", "namespaced_proxy", "stored_elsewhere", "gas_guzzler"])
async def test_odd_tokens_through_a_rival_are_credited_what_really_arrives(ground, rival, run, executor, name):
    only(ground, rival, name)
    telling(rival, lambda wanted: told("run(STEPS)", steps_of(halves(rival, wanted, executor))), executor)
    (events,) = await run.decide(run.buy(name, "0.1 eth"))
    (row,) = rows_of(boards(events)[0], "kyberswap")
    fill = outcome(events)
    assert isinstance(fill, FillCredited) and fill.proven, fill
    print(name, row.status, row.reason, fill.route)
    assert executed(ground, run, name) == (int(fill.arrival_raw), -int(wei("0.1 eth")), int(fill.gas_wei))


@pytest.mark.parametrize("name", ["tax_10", "eoa_only", "one_use", "bounty", "event_liar", "namespaced_proxy", "stored_elsewhere", "gas_guzzler"])
async def test_and_their_sales_are_credited_what_they_really_bring(ground, rival, run, executor, name):
    only(ground, rival, name)
    units = 3_210 * 10**18
    await run.grant(name, units)
    telling(rival, lambda wanted: told("run(STEPS)", steps_of(halves(rival, wanted, executor))), executor)
    (events,) = await run.decide(run.sell(name, units // 3))
    (row,) = rows_of(boards(events)[0], "kyberswap")
    fill = outcome(events)
    assert isinstance(fill, FillCredited) and fill.proven, fill
    print(name, row.status, row.reason, fill.route)
    keeper = ground.chain.deployment.cast.zookeeper
    (receipt,) = ground.chain.send(Tx(sender=keeper, to=ground.token(name), data=gives(ground.token(name), WALLET, units).data, gas=3_000_000))
    assert receipt["status"] == "0x1" and ground.tokens_of(name, WALLET) == units
    sold, eth, gas = executed(ground, run, name)
    assert (eth, gas) == (int(fill.arrival_raw), int(fill.gas_wei)) and sold >= -int(fill.spent_raw), (sold, fill)


NAMES = ("\u202eevil\u202c", "a" * 10_000, "\x1b[2J\x1b]0;pwn\x07", "eth >v2 0.3% 0x12345678> token", "x\n\r\ty", "\U000e0041" * 50, "|" * 200, "<script>alert(1)</script>", "=cmd|' /C calc'!A0")


@pytest.mark.parametrize("name", NAMES)
async def test_names_of_places_are_plain_bounded_and_unlike_our_own_routes(ground, rival, run, name):
    rival.exchange = name
    (events,) = await run.decide(run.buy("ACRN", SPEND))
    (board,) = boards(events)
    labels = [row.route for row in board.rows]
    (row,) = rows_of(board, "kyberswap")
    assert len(set(labels)) == len(labels) and row.route.startswith("kyberswap") and len(row.route) <= 130
    assert row.route.isprintable() and all(each.isprintable() and len(each) <= 40 for each in row.via)
    assert said(events) == "filled"


async def test_two_rivals_that_name_the_same_places_keep_their_own_rows(ground, rival, run):
    ground.desk.rivals = asking = Rivals((KyberSwap(rival.url), KyberSwap(rival.url)), FastClock())
    (fill,) = await run.fill(run.buy("ACRN", SPEND))
    rows = rows_of(boards(run.refereed[0].events)[0], "kyberswap")
    assert len({row.route for row in rows}) == 2 and {row.status for row in rows} == {"proven"} and fill.route == rows[0].route
    await asking.close()


async def test_a_claim_past_all_bounds_beside_nothing_loses_and_is_flagged(ground, rival, run):
    telling(rival, listed([Call(THIEF, "0x")]), ROUTER, 2**128 - 1)
    board, word = await beside(ground, run, run.buy("ACRN", SPEND))
    (row,) = rows_of(board, "kyberswap")
    assert word == "nothing_arrived" and row.flags == ("quoter_absurd",)


# --- keys ---------------------------------------------------------------------------------------------------------------

KEY = "sk-verysecret-0123456789abcdef"


class Echoing:
    """0x's shape, with the key it was asked with in one place of the answer."""

    def __init__(self, rival: RivalServer, where: str) -> None:
        self.rival, self.where, self.asked = rival, where, 0

    async def serve(self, request):
        self.asked += 1
        key = request.headers["0x-api-key"]
        query = request.query
        buy = query["sellToken"].lower() == "0x" + "ee" * 20
        wanted = Wanted("buy" if buy else "sell", (query["buyToken"] if buy else query["sellToken"]).lower(), int(query["sellAmount"]), query["taker"].lower())
        data = honest(self.rival, wanted).data
        source = f"Uni {key}" if self.where == "source" else f"Uni {key[:12]}" if self.where == "part" else "Uniswap_V3"
        if self.where == "calldata":
            data = listed([*trades(self.rival, wanted), Call(THIEF, "0x" + key.encode().hex())])
        body = {
            "liquidityAvailable": True, "sellToken": query["sellToken"], "buyToken": query["buyToken"], "sellAmount": query["sellAmount"], "buyAmount": "1",
            "allowanceTarget": ROUTER, "route": {"fills": [{"source": source}]}, "transaction": {"to": ROUTER, "data": data, "value": str(wanted.amount if buy else 0), "gas": "1"},
        }  # fmt: skip
        if self.where == "error":
            return web.Response(status=400, body=orjson.dumps({"message": f"bad {key}"}), content_type="application/json")
        return web.Response(body=orjson.dumps(body), content_type="application/json")


@pytest.mark.parametrize("where", ["source", "part", "calldata", "error"])
async def test_a_key_that_a_rival_repeats_stands_in_no_record(ground, rival, run, where):
    echo, app = Echoing(rival, where), web.Application()
    app.router.add_get("/swap/allowance-holder/quote", echo.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ground.desk.rivals = asking = Rivals((ZeroX(f"http://127.0.0.1:{runner.addresses[0][1]}", KEY),), FastClock())
    try:
        (events,) = await run.decide(run.buy("ACRN", SPEND))
    finally:
        await asking.close()
        await runner.cleanup()
    assert echo.asked == 1 and said(events) == "filled"
    record = b"".join([*map(encoded, events), *run.refereed[-1].blobs.values()])
    for part in (KEY, KEY[:12], KEY.encode().hex()):
        assert part.encode() not in record


# --- how often it is asked ----------------------------------------------------------------------------------------------


async def test_onc_05_each_order_and_size_is_asked_about_once(ground, rival, run):
    await run.decide(run.buy("ACRN", "0.1 eth"), run.buy("ACRN", "0.2 eth"), run.sell("ACRN"))
    assert rival.asked == 3


async def test_onc_05_as_a_fallback_it_is_never_asked_where_we_have_a_row_that_a_rule_refuses(ground, rival, run):
    ground.desk.rules = rules_named("onc/paper")
    ground.graph = ground.desk.graph = rival.whole
    await run.decide(run.buy("honeypot", "0.01 eth"))
    await run.fill(run.buy("ACRN", "0.1 eth"))
    await run.fill(run.sell("ACRN"))
    assert rival.asked == 0
