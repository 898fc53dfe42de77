"""Rivals on the board: a better one really wins, and one that is slow, broken or lying costs nothing but its row (ONC-05, ONC-06)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest
from aiohttp import web

from chain import calldata
from chain.aggregators.ask import RivalQuote
from chain.aggregators.rivals import Rivals, rivals_named
from chain.devnet.annex import OFF_PATH
from chain.devnet.calls import Tx
from chain.devnet.rival import KEY
from chain.devnet.tricks import TRICKS
from chain.router import buy_routes
from ledgers.clock import SystemClock, VirtualClock
from referee.onchain.events import LEDGERS, BoardTaken, FillCredited, OrderAsked
from referee.onchain.rules import DEFAULT, FIRST, PAPER, rules_named
from tests.onchain.given import outcome, said, wei
from tests.onchain.ground import WALLET, Ground, Run, boards, gates, transactions
from tests.onchain.rival import CHOOSY, ROUTER, THIEF, Call, RivalServer, Told, Wanted, gives, listed, moves, rival_server
from tests.onchain.test_two_ledgers import check_order


class FastClock(VirtualClock):
    """A clock whose monotonic side runs on, so that no budget is used up."""

    def monotonic_ms(self) -> int:
        self._beat = getattr(self, "_beat", 0) + 10_000
        return self._beat


SPEND = "0.5 eth"
DEEP, THIN = "v3", "v2"


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


def honest(rival: RivalServer, wanted: Wanted, router: str = ROUTER) -> Told:
    """Trade over the whole market, paying the wallet."""
    return Told(1, listed(trades(rival, wanted, router)), router)


def trades(rival: RivalServer, wanted: Wanted, router: str = ROUTER) -> list[Call]:
    way = next(route for route in rival.ways(wanted) if [hop.pool.venue for hop in route.hops] == [DEEP])
    if wanted.side == "buy":
        return [Call(way.swap.to, way.swap.data, way.swap.value_wei)]
    return [moves(wanted.token, wanted.wallet, router, wanted.amount), Call(wanted.token, calldata.approve(way.swap.to)), Call(way.swap.to, way.swap.data)]


def rows_of(board: BoardTaken, source: str):
    return [row for row in board.rows if row.source == source]


async def row_of(run: Run, *orders, end: str = "filled") -> str:
    """How the rival's row of one order ended, while the order itself ends on our own row."""
    *before, order = orders or (run.buy("ACRN", SPEND),)
    events = (await run.decide(*before, order))[-1]
    (row,) = rows_of(boards(events)[0], "kyberswap")
    own = outcome(events)
    assert said(events) == end, events
    assert not isinstance(own, FillCredited) or own.route in {each.route for each in rows_of(boards(events)[0], "router")}
    return row.reason or row.status


# --- a rival that is better ---------------------------------------------------------------------------------------------


async def test_onc_06_a_better_rival_wins_and_is_credited_what_its_transaction_really_brings(ground, rival, run):
    (fill,) = await run.fill(run.buy("ACRN", SPEND))
    (row,) = rows_of(boards(run.refereed[0].events)[0], "kyberswap")
    assert (fill.route, fill.ledgers, row.status, row.to, row.via) == ("kyberswap > uniswapv3", LEDGERS, "proven", ROUTER, ("uniswapv3",))
    assert executed(ground, run, "ACRN") == (int(fill.arrival_raw), -int(wei(SPEND)), int(fill.gas_wei))


async def test_onc_06_a_better_rival_wins_a_sale_and_its_approval_is_paid_once(ground, rival, run):
    await run.fill(run.buy("ACRN", SPEND))
    part = run.held("ACRN") // 3
    twin, (fill,) = run.copy(), await run.fill(run.sell("ACRN", part))
    assert (fill.route, fill.approvals, int(fill.spent_raw)) == ("kyberswap > uniswapv3", (f"{ground.token('ACRN')}>{ROUTER}",), part)
    (again,) = await run.fill(run.sell("ACRN", part))
    assert again.approvals == () and again.gas_wei < fill.gas_wei
    give_really(ground, "ACRN", twin.held("ACRN"))
    assert executed(ground, run, "ACRN", 1) == (-part, int(fill.arrival_raw), int(fill.gas_wei))


def give_really(ground: Ground, name: str, units: int) -> None:
    token, issuer = ground.token(name), ground.chain.deployment.cast.issuer
    (receipt,) = ground.chain.send(Tx(sender=issuer, to=token, data=gives(token, WALLET, units).data))
    assert receipt["status"] == "0x1"


def executed(ground: Ground, run: Run, name: str, at: int = 0) -> tuple[int, int, int]:
    """Really send what an order's chosen route sent: tokens and ETH gained before gas, and the gas."""
    ground.chain.fund(WALLET, 10**19)
    before = ground.tokens_of(name, WALLET), ground.eth_of(WALLET)
    receipts = ground.chain.send(*transactions(run.refereed[at]))
    assert all(receipt["status"] == "0x1" for receipt in receipts)
    gas = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
    return ground.tokens_of(name, WALLET) - before[0], ground.eth_of(WALLET) - before[1] + gas, gas


@pytest.mark.parametrize("router", [ROUTER, CHOOSY, THIEF])
async def test_what_is_made_of_a_rivals_rows_can_be_computed_again(rival, run, router):
    rival.tell = lambda wanted: honest(rival, wanted, router)
    for order in (run.buy("ACRN", SPEND), run.sell("ACRN")):
        before = run.books.both(run.run_id)
        (events,) = await run.decide(order)
        check_order(events, before)


async def test_the_evidence_of_a_rivals_fill_holds_what_it_answered(rival, run):
    await run.fill(run.buy("ACRN", SPEND))
    (kept,) = [told for told in map(orjson.loads, run.refereed[0].blobs.values()) if isinstance(told, dict)]
    assert (kept["rival"]["source"], kept["rival"]["tx"]["to"], kept["method"]) == ("kyberswap", ROUTER, "eth_simulateV1")


async def test_onc_24_a_rivals_fill_is_what_the_next_order_of_the_decision_runs_after(ground, rival, run):
    bought, sold = await run.fill(run.buy("ACRN", SPEND), run.sell("ACRN"))
    assert bought.route.startswith("kyberswap") and run.held("ACRN") == 0
    assert executed(ground, run, "ACRN", 1) == (0, int(sold.arrival_raw) - int(wei(SPEND)), int(bought.gas_wei + sold.gas_wei))


async def test_onc_08_the_best_row_and_our_own_best_are_gated_in_one_round_trip(ground, rival, run):
    desk = await run.sit_down()
    await run.order(desk, run.buy("ACRN", "0.001 eth"))
    desk = await run.sit_down()
    ground.trips()
    events = await run.order(desk, run.buy("ACRN", SPEND))
    trips = [set(trip) - {"eth_call"} for trip in ground.trips()]
    assert (trips[0], trips[-1]) == ({"eth_simulateV1"}, {"eth_simulateV1"}) and {"eth_getCode", "eth_simulateV1"} in trips[1:-1]
    assert [gate.route.split(" ")[0] for gate in gates(events)] == ["kyberswap", "eth"]
    assert all(gate.verdict == "CLEAR" and gate.exit_provable for gate in gates(events))


async def test_onc_11_a_rival_that_serves_this_wallet_only_is_proven_by_our_own_routes_gate(rival, run):
    rival.tell = lambda wanted: honest(rival, wanted, CHOOSY)
    (fill,) = await run.fill(run.buy("ACRN", SPEND))
    assert (fill.route, fill.proven, fill.ledgers) == ("kyberswap > uniswapv3", True, LEDGERS)


async def test_onc_29_and_without_one_by_what_it_wrote_itself(ground, rival, run):
    ground.desk.rules = replace(PAPER)
    ground.wire.answer = reverts(ground, run)
    rival.tell = lambda wanted: honest(rival, wanted, CHOOSY)
    (events,) = await run.decide(run.buy("ACRN", SPEND))
    assert [said(events, ledger) for ledger in LEDGERS] == ["filled", "filled"]
    assert outcome(events).kept


# --- one that is not asked, or says nothing -----------------------------------------------------------------------------


async def test_onc_05_rivals_are_asked_only_where_the_rules_say_so(ground, rival, run):
    ground.desk.rules = FIRST
    await run.fill(run.buy("ACRN", SPEND))
    assert rival.asked == 0


async def test_onc_05_as_a_fallback_they_are_asked_only_where_our_router_has_no_proven_row(ground, rival, run):
    ground.desk.rules = rules_named("onc/paper")
    await run.fill(run.buy("ACRN", SPEND))
    assert rival.asked == 0
    ground.wire.answer = reverts(ground, run)
    (fill,) = await run.fill(run.buy("ACRN", "0.1 eth"))
    assert (rival.asked, fill.route) == (1, "kyberswap > uniswapv3")


def reverts(ground: Ground, run: Run):
    """Let our own thin route revert on the board, whatever it really does."""
    thin = ground.network.swap_router_02

    def changed(asked: dict, told: dict) -> dict:
        if asked["method"] != "eth_simulateV1" or len(asked["params"][0]["blockStateCalls"]) != 1:
            return told
        calls = asked["params"][0]["blockStateCalls"][0]["calls"]
        for question, call in zip(calls, told["result"][0]["calls"], strict=True):
            if question["from"] == run.wallet and question["to"] == thin:
                call.update(status="0x0", logs=[], returnData="0x")
            elif question["data"] == calldata.eth_balance(run.wallet) and any(each["to"] == thin for each in calls):
                call["returnData"] = told["result"][0]["calls"][1]["returnData"]
        swap = next((call for question, call in zip(calls, told["result"][0]["calls"], strict=True) if question["from"] == run.wallet), None)
        if swap is not None and swap["status"] == "0x0":
            after = [call for question, call in zip(calls, told["result"][0]["calls"], strict=True) if question["data"] == calldata.eth_balance(run.wallet)]
            after[-1]["returnData"] = "0x" + calldata.word(int(after[0]["returnData"], 16) - int(swap["gasUsed"], 16) * 10_000_000)
        return told

    return changed


async def test_onc_07_a_rivals_answer_ages_the_board_as_its_block_does(ground, run):
    class Aged:
        """A rival that answered long before the board is taken."""

        names = ("aged",)

        async def ask(self, ask):
            way = next(route for route in ways if not route.parts)
            return (RivalQuote(
                source="aged", out_raw=1, tx=way.swap, spender=None, gas_estimate=None, via=(), rfq=False,
                answered_ts_ms=ground.clock.now_ms() - self.age_ms, latency_ms=1,
            ),)  # fmt: skip

    ways = buy_routes(ground.network, ground.graph, ground.token("LEAF"), int(wei("0.01 eth")), WALLET)
    aged = ground.desk.rivals = Aged()
    ends = []
    for aged.age_ms in (30_000, 30_001):
        (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
        (row,) = rows_of(boards(events)[0], "aged")
        ends.append((boards(events)[0].age_ms >= 30_000, row.age_ms, row.reason or row.status, said(events)))
    assert ends == [(True, 30_000, "proven", "filled"), (False, 30_001, "too_old", "filled")]


async def test_without_rivals_nothing_but_simulations_and_state_is_asked(ground, run):
    await run.fill(run.buy("LEAF", "0.01 eth"))
    ground.trips()
    for asked in (run.buy("LEAF", "0.01 eth"), run.sell("LEAF")):
        await run.decide(asked)
    assert {method for trip in ground.trips() for method in trip} <= {"eth_simulateV1", "eth_getBlockByNumber", "eth_getTransactionCount", "eth_getCode"}


async def page(status: int = 200, body: bytes = b"<html>", **headers) -> web.Response:
    return web.Response(status=status, body=body, headers=headers)


@pytest.mark.parametrize("status, body, headers, reason", [
    (200, b"<html>", {}, "html"), (500, b"", {}, "http_500"), (302, b"", {"Location": "/api/v1/routes"}, "redirect"), (429, b"", {}, "rate_limited"),
    (200, b"{", {}, "bad_answer"), (200, b'{"code":4008}', {}, "no_route"), (200, b"[" * 2_000_000, {}, "too_long"), (200, b"null", {}, "refused"),
])  # fmt: skip
async def test_onc_05_a_rival_that_says_nothing_usable_costs_its_row(rival, run, status, body, headers, reason):
    rival.page = lambda request: page(status, body, **headers)
    assert await row_of(run) == reason


async def test_onc_05_a_rival_that_is_away_costs_its_row(ground, rival, run):
    rival.page = lambda request: hung_up(request)
    assert await row_of(run) == "dead"


async def hung_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_onc_05_a_rival_that_never_answers_is_waited_for_no_longer_than_the_rules_say(ground, rival, run):
    ended = asyncio.Event()

    async def hangs(request: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    rival.page = hangs
    ground.desk.rules, ground.desk.rivals = replace(DEFAULT, rival_answer_ms_max=20), rival.rivals(SystemClock())
    assert await row_of(run) == "slow"
    ended.set()


# --- one that lies ------------------------------------------------------------------------------------------------------


def telling(rival: RivalServer, *calls: Call, out_raw: int = 2**90, router: str = ROUTER, value_wei: int | None = None) -> None:
    rival.tell = lambda wanted: Told(out_raw, listed(calls or [Call(THIEF, "0x")]), router, value_wei)


async def test_a_claim_is_worth_nothing(rival, run):
    telling(rival)
    assert await row_of(run) == "nothing_arrived"


async def test_calldata_that_sends_the_tokens_elsewhere_brings_nothing(rival, run):
    rival.tell = lambda wanted: Told(2**90, listed(trades(rival, replace(wanted, wallet=THIEF))))
    assert await row_of(run) == "nothing_arrived"


async def test_a_rival_that_keeps_most_of_it_is_proven_and_loses(ground, rival, run):
    def keeps(wanted: Wanted) -> Told:
        mine = trades(rival, replace(wanted, amount=wanted.amount // 10))
        return Told(2**90, listed([*mine, *trades(rival, replace(wanted, amount=wanted.amount - wanted.amount // 10, wallet=THIEF))]))

    rival.tell = keeps
    assert await row_of(run) == "proven"


async def test_a_market_that_no_log_told_of_is_known_by_its_factory_and_is_no_stock(ground, rival, run):
    for key in [key for key, pool in ground.graph.pools.items() if pool.venue == DEEP]:
        del ground.graph.pools[key]
    ground.trips()
    (fill,) = await run.fill(run.buy("ACRN", SPEND))
    assert fill.route.startswith("kyberswap")


async def test_a_makers_firm_quote_is_left_out(rival, run):
    rival.exchange = "kyberswap-limit-order-v2"
    assert await row_of(run) == "rfq"


async def test_tokens_from_a_stock_of_its_own_are_no_fill(ground, rival, run):
    give_stock(ground, "ACRN", 10**24)
    rival.tell = lambda wanted: Told(2**80, listed([gives(wanted.token, wanted.wallet, 10**22), Call(THIEF, "0x", wanted.amount)]))
    assert await row_of(run) == "private_inventory"


def give_stock(ground: Ground, name: str, units: int) -> None:
    token, issuer = ground.token(name), ground.chain.deployment.cast.issuer
    (receipt,) = ground.chain.send(Tx(sender=issuer, to=token, data=gives(token, ROUTER, units).data))
    assert receipt["status"] == "0x1"
    ground.settle()


async def test_a_little_from_pools_does_not_hide_a_stock(ground, rival, run):
    give_stock(ground, "ACRN", 10**24)
    rival.tell = lambda wanted: Told(2**80, listed([*trades(rival, wanted), gives(wanted.token, wanted.wallet, 1)]))
    assert await row_of(run) == "private_inventory"


async def test_a_buy_that_takes_another_holding_is_no_row(ground, rival, run):
    """It was approved for LEAF in a sale of the same decision, and takes the rest of it along with a good trade."""
    leaf = ground.token("LEAF")
    ground.graph = rival.whole
    ground.keep(lambda pool: pool.venue == THIN and ground.network.weth in (pool.token0, pool.token1) and {leaf, ground.token("ACRN")} & {pool.token0, pool.token1})
    await run.fill(run.buy("LEAF", SPEND))
    asking = iter((
        lambda wanted: honest(rival, wanted),
        lambda wanted: Told(2**90, listed([*trades(rival, wanted), moves(leaf, wanted.wallet, THIEF, 10**18)])),
    ))  # fmt: skip
    rival.tell = lambda wanted: next(asking)(wanted)
    first, second = await run.decide(run.sell("LEAF", run.held("LEAF") // 2), run.buy("ACRN", "0.1 eth"))
    assert outcome(first).route.startswith("kyberswap") and said(second) == "filled"
    (row,) = rows_of(boards(second)[0], "kyberswap")
    assert row.reason == "touches_other_tokens"


async def test_a_sale_that_takes_more_than_the_size_is_no_row(ground, rival, run):
    await run.fill(run.buy("ACRN", SPEND))
    held = run.held("ACRN")
    rival.tell = lambda wanted: Told(2**90, listed(trades(rival, replace(wanted, amount=held // 2))))
    assert await row_of(run, run.sell("ACRN", held // 10)) == "size_differs"


async def test_a_sale_that_pays_from_a_stock_of_its_own_is_no_row(ground, rival, run):
    await run.fill(run.buy("ACRN", SPEND))
    ground.chain.fund(ROUTER, 10**19)
    ground.settle()
    rival.tell = lambda wanted: Told(2**60, listed([moves(wanted.token, wanted.wallet, ROUTER, wanted.amount), Call(wanted.wallet, "0x", 10**18)]))
    assert await row_of(run, run.sell("ACRN")) == "private_inventory"


@pytest.mark.parametrize("name", ["weth", "usdg", "permit2", "multicall3"])
async def test_a_transaction_to_where_no_swap_is_made_is_not_simulated(ground, rival, run, name):
    telling(rival, router=getattr(ground.network, name))
    assert await row_of(run) == "bad_transaction"


@pytest.mark.parametrize("name", ["LEAF", "plain_oz"])
async def test_nor_is_one_to_a_token_of_the_market_or_the_book(ground, rival, run, name):
    await run.grant(name, 10**20)
    telling(rival, router=ground.token(name))
    assert await row_of(run) == "bad_transaction"


async def test_nor_is_one_to_an_address_without_code(rival, run):
    telling(rival, router=THIEF)
    assert await row_of(run) == "bad_transaction"


@pytest.mark.parametrize("value_wei", [0, 10**17, 10**18])
async def test_a_transaction_that_spends_another_amount_is_refused(rival, run, value_wei):
    telling(rival, value_wei=value_wei)
    assert await row_of(run) == "wrong_value"


async def test_a_transaction_that_reverts_is_no_row(rival, run):
    telling(rival, Call(rival.ground.network.swap_router_02, "0xdeadbeef"))
    assert (await row_of(run)).startswith("reverted")


async def test_a_transaction_that_gives_eth_back_spends_something_else(rival, run):
    rival.tell = lambda wanted: Told(1, listed([*trades(rival, replace(wanted, amount=wanted.amount // 2)), Call(wanted.wallet, "0x", wanted.amount // 2)]))
    assert await row_of(run) == "spend_differs"


async def test_a_token_that_cannot_be_sold_again_is_not_bought_from_a_rival_either(ground, rival, run):
    rival.tell = lambda wanted: any_route(rival, wanted)
    ground.graph = ground.desk.graph = rival.whole
    (events,) = await run.decide(run.buy("honeypot", "0.01 eth"))
    assert [said(events, ledger) for ledger in LEDGERS] == ["gate_flagged"] * 2 and len(gates(events)) >= 1


def any_route(rival: RivalServer, wanted: Wanted) -> Told:
    way = rival.ways(wanted)[0]
    return Told(1, listed([Call(way.swap.to, way.swap.data, way.swap.value_wei)]))


# --- the node and the rival ---------------------------------------------------------------------------------------------


def about_the_rival(change):
    """Alter the node's answer to the simulation of the rival's transaction, and to nothing else."""

    def changed(asked: dict, told: dict) -> dict:
        if asked["method"] != "eth_simulateV1" or not any(call["to"] == ROUTER for block in asked["params"][0]["blockStateCalls"] for call in block["calls"]):
            return told
        return change(told)

    return changed


@pytest.mark.parametrize("change, reason", [
    (lambda told: {"jsonrpc": "2.0", "id": told["id"], "error": {"code": -38014, "message": "insufficient funds"}}, "insufficient_funds"),
    (lambda told: told | {"result": []}, "bad_answer"),
    (lambda told: told | {"result": [told["result"][0] | {"calls": [call | {"logs": []} for call in told["result"][0]["calls"]]}]}, "inconsistent"),
])  # fmt: skip
async def test_what_the_node_says_of_a_rivals_transaction_is_no_fault_of_the_order(ground, rival, run, change, reason):
    ground.wire.answer = about_the_rival(change)
    assert await row_of(run) == reason


async def test_a_node_that_is_away_for_the_rivals_round_trip_costs_rows_only(ground, rival, run):
    await run.fill(run.buy("ACRN", SPEND))
    ground.wire.answer = lambda asked, told: told | {"error": {"code": -32005, "message": "rate limit"}} if asked["method"] == "eth_getCode" else told
    events = (await run.decide(run.sell("ACRN")))[-1]
    (row,) = rows_of(boards(events)[0], "kyberswap")
    assert (said(events), row.status) == ("filled", "failed")


async def test_a_node_that_takes_no_gate_with_a_rival_in_it_gates_our_own_row_alone(ground, rival, run):
    def refuses(asked: dict, told: dict) -> dict:
        blocks = asked["params"][0]["blockStateCalls"] if asked["method"] == "eth_simulateV1" else []
        heavy = len(blocks) > 1 and any(call["to"] == ROUTER for block in blocks for call in block["calls"])
        return told | {"error": {"code": -32005, "message": "too much"}} if heavy else told

    ground.wire.answer = refuses
    (events,) = await run.decide(run.buy("ACRN", SPEND))
    assert said(events) == "filled" and outcome(events).route in {row.route for row in rows_of(boards(events)[0], "router")}


async def test_calldata_past_the_bound_is_not_simulated(rival, run):
    telling(rival, *[Call(THIEF, "0x")] * 400)
    assert await row_of(run) == "bad_transaction"


async def test_a_failed_rival_does_not_turn_no_route_or_a_revert_into_a_fault(ground, rival, run):
    rival.page = lambda request: page()
    assert await run.say(run.buy("pausable_paused", "0.01 eth")) == ["no_route"]
    ground.graph = ground.desk.graph = rival.whole
    assert await run.say(run.buy("pausable_paused", "0.01 eth")) == ["reverted"]


# --- the local chain's own rival, in two wire shapes --------------------------------------------------------------------


@pytest.fixture
async def local(ground):
    """Asks the rival that stands beside the local chain: each call is a way to it with a budget of its own."""
    with ground.chain.rival() as standing:
        opened = []

        def asking() -> Rivals:
            opened.append(Rivals(rivals_named(["kyberswap", "0x"], "devnet", {"0x": KEY}, standing.base_urls), SystemClock()))
            return opened[-1]

        ground.desk.rules = replace(DEFAULT, rival_answer_ms_max=1_000)
        yield asking
        for rivals in opened:
            await rivals.close()


async def test_onc_06_the_local_rival_is_credited_what_it_really_brings_where_it_is_better(ground, local, run):
    """It goes where two hubs alone do not reach as deep."""
    wins = set()
    for name in OFF_PATH:
        ground.desk.rivals = local()
        (events,) = await run.decide(run.buy(name, "0.1 eth"))
        fill = outcome(events)
        assert isinstance(fill, FillCredited), fill
        wins.add(fill.route.split(" ")[0])
        assert executed(ground, run, name, -1) == (int(fill.arrival_raw), -int(wei("0.1 eth")), int(fill.gas_wei))
        ground.settle()
    assert wins & {"kyberswap", "0x"}, wins


async def test_onc_05_each_trick_of_the_local_rival_costs_nothing_but_its_row(ground, local):
    told = {}
    for trick in ground.chain.deployment.annex.tricks:
        order = OrderAsked(index=0, side="buy", token=trick.token.address.lower(), spend_wei=wei("0.01 eth"), amount_raw=None, sell_all=False)
        ends = []
        for ground.desk.rivals in (None, local()):
            (events,) = await Run(ground).decide(order)
            ends.append([said(events, ledger) for ledger in LEDGERS])
        assert ends[0] == ends[1] == ["filled", "filled"], (trick.name, ends)
        told[trick.name] = {row.reason or row.status for row in boards(events)[0].rows if row.source != "router"}
    assert {name for name, words in told.items() if "proven" in words} <= {"promises_more", "other_units"}, told
    assert set(told) == set(TRICKS)
