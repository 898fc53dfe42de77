"""A trade credits what arrives by balance difference; where a node's own words disagree, it is a fault and nothing is credited (design §6, §9)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from chain import calldata
from chain.router import Tx
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, answered
from chain.trade import PROVEN, REVERTED, Held, Outcome, Purse, TradeSimulation, gas_headroom_wei, route_txs, shown_wei
from ledgers.errors import ChainFault
from tests.chain.market import PURSE_WEI, WALLET, MarketStall

SPEND = 10**16
MUCH = 2**256 - 1
LEAVES = 50 * 10**18


class Told:
    """One trade and its node's answer, of which single words can be changed."""

    def __init__(self, trade: TradeSimulation, answer: Any) -> None:
        self.trade, self.answer = trade, copy.deepcopy(answer)
        asked = trade.simulation.blocks[0]["calls"]
        self.swap_at = max(at for at, call in enumerate(asked) if call["from"] == WALLET)
        balances = [at for at, call in enumerate(asked) if call["data"] == calldata.balance_of(WALLET)]
        self.places = {
            "before": balances[0], "eth before": balances[0] + 1, "swap": self.swap_at, "after": self.swap_at + 1, "eth after": self.swap_at + 2,
        }  # fmt: skip

    def call(self, place: str) -> dict[str, Any]:
        return self.answer[0]["calls"][self.places[place]]

    def number(self, place: str) -> int:
        return int(self.call(place)["returnData"], 16)

    def say(self, place: str, number: int) -> None:
        self.call(place)["returnData"] = "0x" + calldata.word(number)

    def outcome(self) -> Outcome:
        return self.trade.outcome(answered(self.trade.simulation, self.answer))

    def fault(self) -> str:
        with pytest.raises(ChainFault) as caught:
            self.outcome()
        return caught.value.reason


async def told(stall: MarketStall, side: str, name: str, size: int, units: int | None = None, venue: str = "") -> Told:
    """The best route's trade, or that of one venue, as the real node answers it."""
    units = units if units is not None else size if side == "sell" else 0
    routes = [route for route in stall.routes(side, name, size) if not route.parts and venue in ("", route.hops[0].pool.venue)]
    trade = await stall.trade(routes[0], units)
    return Told(trade, (await stall.answers(trade.simulation))[0])


@pytest.fixture
async def stall(chain):
    opened = await MarketStall.on(chain)
    yield opened
    await opened.door.close()


@pytest.fixture
async def sale(stall) -> Told:
    return await told(stall, "sell", "LEAF", LEAVES, venue="v2")


@pytest.fixture
async def buy(stall) -> Told:
    return await told(stall, "buy", "LEAF", SPEND, venue="v2")


def is_native(log: dict[str, Any]) -> bool:
    return log["address"] == NATIVE_LOG


# --- what is credited -----------------------------------------------------------------------------------------------


async def test_a_sale_is_credited_with_the_ether_difference_before_gas(sale):
    outcome = sale.outcome()
    approval_at = sale.swap_at - 1
    gas = sum(int(sale.answer[0]["calls"][at]["gasUsed"], 16) for at in (approval_at, sale.swap_at))
    difference = sale.number("eth after") - sale.number("eth before")
    assert (outcome.status, outcome.arrival_raw, outcome.units_raw) == (PROVEN, difference + gas * sale.trade.simulation.pin.base_fee_wei, LEAVES)


async def test_a_buy_is_credited_with_the_token_difference(buy):
    outcome = buy.outcome()
    assert (outcome.status, outcome.arrival_raw, outcome.flags) == (PROVEN, buy.number("after") - buy.number("before"), ())


async def test_a_wallet_may_spend_all_its_ether_because_gas_comes_on_top(stall):
    route = stall.routes("buy", "LEAF", PURSE_WEI)[0]
    (outcome,) = await stall.outcomes(await stall.trade(route))
    assert outcome.status == PROVEN


async def test_headroom_is_every_gas_limit_at_the_gas_price_and_every_value():
    assert gas_headroom_wei([Tx("0x", "0x", 10), Tx("0x", "0x", 5, value_wei=7)], 3) == 52


def test_a_wallet_shows_its_own_ether_and_more_only_where_it_would_not_be_let_run():
    txs = [Tx("0x", "0x", 10), Tx("0x", "0x", 5, value_wei=7)]
    assert [shown_wei(eth_wei, txs, 3) for eth_wei in (0, 51, 52, 53)] == [52, 52, 52, 53]


async def test_an_approval_that_was_sent_before_is_not_sent_again(stall):
    (route, *_) = stall.routes("sell", "LEAF", LEAVES)
    assert route_txs(route, [route.approvals[0].tx]) == [route.swap]
    assert route_txs(route) == [route.approvals[0].tx, route.swap]


async def test_what_a_token_takes_for_itself_does_not_arrive(stall):
    for kind, part in (("tax_5", 95), ("tax_10", 90)):
        taxed = await told(stall, "buy", kind, SPEND, venue="v2")
        outcome = taxed.outcome()
        assert outcome.arrival_raw and outcome.quoted_raw and outcome.arrival_raw == -(-outcome.quoted_raw * part // 100)
        assert outcome.flags == ("quoter_differs",)


async def test_lying_logs_of_a_token_are_flagged_and_not_credited(stall):
    outcome = (await told(stall, "buy", "event_liar", SPEND, venue="v2")).outcome()
    assert outcome.arrival_raw == outcome.quoted_raw != outcome.logged_raw and outcome.flags == ("logs_differ",)


@pytest.mark.parametrize("kind", ["honeypot", "sim_aware", "gas_aware"])
async def test_a_sale_that_reverts_is_no_fill(stall, kind):
    assert (await told(stall, "sell", kind, LEAVES)).outcome().status == REVERTED


async def test_an_earlier_order_that_no_longer_goes_through_is_a_fault(stall):
    route = stall.routes("buy", "LEAF", SPEND)[0]
    broken = Tx(stall.token("LEAF"), "0xdeadbeef", 100_000)
    trade = TradeSimulation(stall.network, stall.pin, Purse(WALLET, PURSE_WEI, (), (broken,)), route, Held(0, 0))
    with pytest.raises(ChainFault, match="state_moved"):
        await stall.outcomes(trade)


# --- one word of the answer changed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1, -1, 10**18])
async def test_an_ether_balance_that_the_trace_does_not_explain_is_a_fault(sale, buy, delta):
    for trade in (sale, buy):
        trade.say("eth after", trade.number("eth after") + delta)
        assert trade.fault() == "inconsistent"


@pytest.mark.parametrize("place", ["eth before", "eth after"])
async def test_more_ether_than_there_is_is_absurd(sale, place):
    sale.say(place, MUCH)
    assert sale.fault() == "absurd_amount"


@pytest.mark.parametrize("place", ["eth before", "eth after"])
async def test_an_ether_balance_that_is_not_told_is_a_fault(sale, place):
    sale.call(place).update(status="0x0")
    assert sale.fault() == "bad_answer"


async def test_native_transfers_left_out_of_the_trace_are_a_fault(sale, buy):
    for trade in (sale, buy):
        swap = trade.call("swap")
        assert any(map(is_native, swap["logs"]))
        swap["logs"] = [log for log in swap["logs"] if not is_native(log)]
        assert trade.fault() == "inconsistent"


@pytest.mark.parametrize("delta", [1, -1, -20_000])
async def test_gas_that_the_balances_do_not_explain_is_a_fault(sale, buy, delta):
    for trade in (sale, buy):
        swap = trade.call("swap")
        swap["gasUsed"] = hex(int(swap["gasUsed"], 16) + delta)
        assert trade.fault() == "inconsistent"


async def test_a_swap_that_is_said_to_revert_although_ether_moved_is_a_fault(sale, buy):
    for trade in (sale, buy):
        trade.call("swap").update(status="0x0")
        assert trade.fault() == "inconsistent"


async def test_a_reverted_swap_that_is_said_to_have_worked_brings_nothing(stall):
    pot = await told(stall, "sell", "honeypot", LEAVES)
    pot.call("swap").update(status="0x1")
    pot.call("swap").pop("error", None)
    assert pot.outcome().status == REVERTED


async def test_a_swap_without_a_word_from_its_pool_is_a_fault(sale, buy):
    for trade in (sale, buy):
        pool = trade.trade.route.hops[0].pool.key
        trade.call("swap")["logs"] = [log for log in trade.call("swap")["logs"] if log["address"] != pool]
        assert trade.fault() == "inconsistent"


@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_the_answer_to_another_routes_question_is_a_fault(stall, side):
    size = SPEND if side == "buy" else LEAVES
    one, other = [await told(stall, side, "LEAF", size, venue=venue) for venue in ("v2", "v3")]
    one.answer, other.answer = other.answer, one.answer
    assert (one.fault(), other.fault()) == ("inconsistent", "inconsistent")


async def test_the_answer_of_a_v4_pool_must_name_its_pool(stall):
    pine = await told(stall, "buy", "PINE", SPEND, venue="v4")
    assert pine.outcome().status == PROVEN
    manager = stall.network.v4_pool_manager
    for log in pine.call("swap")["logs"]:
        if log["address"] == manager:
            log["topics"][1] = "0x" + "11" * 32
    assert pine.fault() == "inconsistent"


def without_token_logs(trade: Told) -> None:
    swap, token = trade.call("swap"), trade.trade.route.token
    swap["logs"] = [log for log in swap["logs"] if not (log["address"] == token and log["topics"][0] == TRANSFER_TOPIC)]


def with_more_in_token_logs(trade: Told) -> None:
    for log in trade.call("swap")["logs"]:
        if log["address"] == trade.trade.route.token and log["topics"][0] == TRANSFER_TOPIC:
            log["data"] = "0x" + calldata.word(10**30)


@pytest.mark.parametrize("change", [without_token_logs, with_more_in_token_logs])
async def test_token_logs_are_a_cross_check_that_changes_no_credit(sale, buy, change: Callable[[Told], None]):
    for trade in (sale, buy):
        honest = trade.outcome()
        change(trade)
        found = trade.outcome()
        assert (found.status, found.arrival_raw, found.units_raw) == (PROVEN, honest.arrival_raw, honest.units_raw)
        assert found.flags == ("logs_differ",)


async def test_a_quoter_is_a_cross_check_that_changes_no_credit(sale, buy):
    for trade in (sale, buy):
        honest = trade.outcome()
        quoter = trade.answer[0]["calls"][trade.places["eth before"] + 1]
        for amount, flag in ((5, "quoter_differs"), (MUCH, "quoter_absurd")):
            body = [32, 2, 1, amount]
            quoter["returnData"] = "0x" + "".join(map(calldata.word, body))
            found = trade.outcome()
            assert (found.status, found.arrival_raw, found.flags) == (PROVEN, honest.arrival_raw, (flag,))


async def test_more_tokens_than_any_pool_can_count_are_absurd(buy):
    buy.say("after", MUCH)
    assert buy.fault() == "absurd_amount"


async def test_tokens_that_a_sale_is_said_to_have_left_behind_are_sold_all_the_same(sale):
    """Where the token's own logs say otherwise, at least what its pool was paid is gone."""
    for left in (1, LEAVES // 2, LEAVES - 1, LEAVES, 2 * LEAVES):
        sale.say("after", left)
        assert sale.outcome().units_raw == LEAVES


async def test_tokens_that_a_sale_takes_beyond_its_size_are_gone(stall):
    part = await told(stall, "sell", "LEAF", LEAVES // 2, units=LEAVES)
    part.say("after", LEAVES // 4)
    assert part.outcome().units_raw == LEAVES - LEAVES // 4


async def test_a_sale_of_a_part_of_what_there_is_takes_its_part_of_what_the_book_counts(stall):
    """A token may have made more or less of what it holds for the wallet since it was bought."""
    for counted in (LEAVES, 3 * LEAVES, LEAVES // 7):
        trade = await told(stall, "sell", "LEAF", LEAVES // 3, units=LEAVES)
        trade.trade._held = Held(LEAVES, counted)
        assert trade.outcome().units_raw == -(-counted * (LEAVES // 3) // LEAVES)
