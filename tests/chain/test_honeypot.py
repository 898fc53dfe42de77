"""The gate: what a buy brings must be sellable at no more than the loss limit (ONC-08)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from chain import calldata
from chain.honeypot import CLEAR, FLAGGED, OwnTrip, Sale, Verdict, verdict_of
from chain.router import Route, sell_routes
from chain.simulate import AMOUNT_MAX, NATIVE_LOG, answered
from chain.trade import Purse
from ledgers.errors import ChainFault
from tests.chain.market import PURSE_WEI, WALLET, MarketStall

SPEND = 10**18
LIMIT_BPS = 5_000
ARRIVED = 77
SPENT = 10**16


def sold(gross: int, gas: int = 10**12) -> Sale:
    return Sale(True, "", gross - gas, gross)


def judged(own: Sale, arrived: int = ARRIVED, board: int = ARRIVED) -> Verdict:
    return verdict_of(SPEND, board, arrived, own, LIMIT_BPS)


# --- the loss limit -------------------------------------------------------------------------------------------------


def test_a_round_trip_that_loses_exactly_the_limit_is_clear_and_a_wei_more_is_flagged():
    kept = SPEND * (10_000 - LIMIT_BPS) // 10_000
    at, over = (judged(sold(gross)) for gross in (kept, kept - 1))
    assert (at.verdict, at.loss_bps, at.cause) == (CLEAR, LIMIT_BPS, "")
    assert (over.verdict, over.loss_bps, over.cause) == (FLAGGED, LIMIT_BPS + 1, "round_trip_loss")


@pytest.mark.parametrize("spend", [1, 3, 7, 9_999, 10_001, 10**18 + 1])
def test_the_limit_is_exact_for_any_spend(spend):
    lost_at_most = spend * LIMIT_BPS // 10_000
    for lost, verdict in ((lost_at_most, CLEAR), (lost_at_most + 1, FLAGGED)):
        assert verdict_of(spend, ARRIVED, ARRIVED, sold(spend - lost), LIMIT_BPS).verdict == verdict


def test_the_loss_is_counted_before_gas():
    kept = SPEND * (10_000 - LIMIT_BPS) // 10_000
    assert judged(sold(kept, gas=kept)).verdict == CLEAR


def test_a_gain_is_a_negative_loss():
    assert judged(sold(SPEND + SPEND // 10)).loss_bps == -1_000


def test_a_sale_that_reverts_is_flagged_with_its_reason():
    verdict = judged(Sale(False, "reverted: no", 0, 0))
    assert (verdict.verdict, verdict.cause, verdict.loss_bps) == (FLAGGED, "sale reverted: no", -1)


# --- the same buy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("board", "arrived"), [(ARRIVED, ARRIVED + 1), (ARRIVED, ARRIVED - 1), (0, 0), (-5, -5), (AMOUNT_MAX, AMOUNT_MAX)])
def test_a_buy_that_brings_something_else_in_the_gate_is_a_fault(board, arrived):
    with pytest.raises(ChainFault, match="inconsistent"):
        judged(sold(SPEND), arrived=arrived, board=board)


# --- on the real chain ----------------------------------------------------------------------------------------------


class Trip:
    """The gate of one buy, as the real node answers it."""

    def __init__(self, own: OwnTrip, board_raw: int, answer: Any) -> None:
        self.own, self.board_raw, self.answer = own, board_raw, copy.deepcopy(answer)

    def verdict(self) -> Verdict:
        done = answered(self.own.simulation, self.answer)
        return verdict_of(SPENT, self.board_raw, self.own.arrival_raw(done), self.own.sale(done), LIMIT_BPS)

    def fault(self) -> str:
        with pytest.raises(ChainFault) as caught:
            self.verdict()
        return caught.value.reason

    @property
    def sale(self) -> list[dict[str, Any]]:
        """The calls of the second block."""
        return self.answer[1]["calls"]


@pytest.fixture
async def stall(chain):
    opened = await MarketStall.on(chain)
    yield opened
    await opened.door.close()


async def gate_of(stall: MarketStall, name: str) -> Trip:
    buy: Route = next(route for route in stall.routes("buy", name, SPENT) if not route.parts)
    (board,) = await stall.outcomes(await stall.trade(buy))
    assert board.arrival_raw and board.units_raw
    sales = sell_routes(stall.network, stall.graph, buy.token, board.arrival_raw, WALLET)
    sale = next(route for route in sales if [hop.pool for hop in reversed(route.hops)] == [hop.pool for hop in buy.hops])
    own = OwnTrip(stall.network, stall.pin, Purse(WALLET, PURSE_WEI, ()), buy, sale)
    (answer,) = await stall.answers(own.simulation)
    return Trip(own, board.arrival_raw, answer)


VERDICTS = {
    CLEAR: (
        "LEAF", "RUNE", "PINE", "tax_10", "cooldown_block", "shares", "interest", "reflection", "packed_middle", "stored_elsewhere", "early_seller",
        "registered_buyers", "two_mappings",
    ),
    FLAGGED: ("honeypot", "sim_aware", "tax_sell_60", "cooldown_60s"),
}  # fmt: skip


async def test_verdicts_on_real_tokens(stall):
    for verdict, names in VERDICTS.items():
        assert {name: (await gate_of(stall, name)).verdict().verdict for name in names} == dict.fromkeys(names, verdict)


async def test_a_round_trip_over_one_pool_loses_its_fee_twice(stall):
    verdict = (await gate_of(stall, "LEAF")).verdict()
    assert 0 < verdict.loss_bps < 70


@pytest.mark.parametrize("delta", [1, 10**15])
async def test_ether_that_the_trace_of_a_sale_does_not_explain_is_a_fault(stall, delta):
    trip = await gate_of(stall, "tax_sell_60")
    trip.sale[-1]["returnData"] = "0x" + calldata.word(int(trip.sale[-1]["returnData"], 16) + delta)
    assert trip.fault() == "inconsistent"


async def test_native_transfers_left_out_of_a_sale_are_a_fault(stall):
    trip = await gate_of(stall, "LEAF")
    trip.sale[-2]["logs"] = [log for log in trip.sale[-2]["logs"] if log["address"] != NATIVE_LOG]
    assert trip.fault() == "inconsistent"


async def test_a_sale_said_to_revert_although_ether_moved_is_a_fault(stall):
    trip = await gate_of(stall, "LEAF")
    trip.sale[-2]["status"] = "0x0"
    assert trip.fault() == "inconsistent"


async def test_a_reverted_sale_said_to_have_worked_is_no_clear_verdict(stall):
    trip = await gate_of(stall, "honeypot")
    trip.sale[-2].update(status="0x1", error=None)
    assert trip.fault() == "inconsistent"


async def test_another_arrival_than_the_boards_is_a_fault(stall):
    trip = await gate_of(stall, "LEAF")
    after = trip.answer[0]["calls"][2]
    after["returnData"] = "0x" + calldata.word(int(after["returnData"], 16) + 1)
    assert trip.fault() == "inconsistent"


async def test_a_buy_that_reverts_in_the_gate_is_a_fault(stall):
    trip = await gate_of(stall, "LEAF")
    trip.answer[0]["calls"][1]["status"] = "0x0"
    assert trip.fault() == "state_moved"
