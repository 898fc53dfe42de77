"""The gate: what a buy brings must be sellable at no more than the loss limit, and provably so by a wallet on paper (ONC-08, ONC-11)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from chain import calldata
from chain.network import READER
from chain.honeypot import CLEAR, FLAGGED, HELD_ROUNDING_RAW, GhostTrip, OwnTrip, Sale, Verdict, ghost_of, override_of, verdict_of
from chain.router import Route, route_of, sell_routes
from chain.simulate import AMOUNT_MAX, NATIVE_LOG, Simulation, answered
from chain.trade import Purse
from ledgers.errors import ChainFault
from tests.chain.market import PURSE_WEI, WALLET, MarketStall

SPEND = 10**18
LIMIT_BPS = 5_000
ARRIVED = 77
SPENT = 10**16


def sold(gross: int, gas: int = 10**12, held: int | None = ARRIVED) -> Sale:
    return Sale(True, "", gross - gas, gross, held)


def judged(own: Sale, ghost: Sale | None = None, arrived: int = ARRIVED, board: int = ARRIVED) -> Verdict:
    return verdict_of(SPEND, board, arrived, own, ghost, LIMIT_BPS)


# --- the loss limit -------------------------------------------------------------------------------------------------


def test_a_round_trip_that_loses_exactly_the_limit_is_clear_and_a_wei_more_is_flagged():
    kept = SPEND * (10_000 - LIMIT_BPS) // 10_000
    at, over = (judged(sold(gross), sold(gross)) for gross in (kept, kept - 1))
    assert (at.verdict, at.loss_bps, at.cause) == (CLEAR, LIMIT_BPS, "")
    assert (over.verdict, over.loss_bps, over.cause) == (FLAGGED, LIMIT_BPS + 1, "round_trip_loss")


@pytest.mark.parametrize("spend", [1, 3, 7, 9_999, 10_001, 10**18 + 1])
def test_the_limit_is_exact_for_any_spend(spend):
    lost_at_most = spend * LIMIT_BPS // 10_000
    for lost, verdict in ((lost_at_most, CLEAR), (lost_at_most + 1, FLAGGED)):
        sale = sold(spend - lost)
        assert verdict_of(spend, ARRIVED, ARRIVED, sale, sale, LIMIT_BPS).verdict == verdict


def test_the_loss_is_counted_before_gas():
    kept = SPEND * (10_000 - LIMIT_BPS) // 10_000
    costly = sold(kept, gas=kept)
    assert judged(costly, costly).verdict == CLEAR


def test_a_gain_is_a_negative_loss():
    assert judged(sold(SPEND + SPEND // 10), sold(SPEND + SPEND // 10)).loss_bps == -1_000


def test_a_sale_that_reverts_is_flagged_with_its_reason():
    verdict = judged(Sale(False, "reverted: no", 0, 0), Sale(False, "reverted: no", 0, 0))
    assert (verdict.verdict, verdict.cause, verdict.exit_cause, verdict.loss_bps) == (FLAGGED, "sale reverted: no", "", -1)


# --- the ghost ------------------------------------------------------------------------------------------------------


def test_a_ghost_that_brings_the_same_proves_the_exit():
    verdict = judged(sold(SPEND), sold(SPEND))
    assert (verdict.exit_provable, verdict.exit_cause) == (True, "")


@pytest.mark.parametrize("delta", [1, -1])
def test_a_ghost_that_differs_by_one_wei_is_holder_state(delta):
    verdict = judged(sold(SPEND), sold(SPEND + delta))
    assert (verdict.verdict, verdict.exit_provable, verdict.exit_cause) == (CLEAR, False, "holder_state")


@pytest.mark.parametrize("delta", [1, -1])
def test_a_ghost_whose_sale_costs_other_gas_is_holder_state(delta):
    assert judged(sold(SPEND), sold(SPEND, gas=10**12 + delta)).exit_cause == "holder_state"


def test_a_ghost_that_cannot_sell_is_holder_state_and_so_is_one_that_alone_can():
    unsold = Sale(False, "reverted: no", 0, 0)
    assert judged(sold(SPEND), unsold).exit_cause == "holder_state"
    assert (judged(unsold, sold(SPEND)).verdict, judged(unsold, sold(SPEND)).exit_cause) == (FLAGGED, "holder_state")


def test_an_override_that_makes_another_balance_is_holder_state_beyond_rounding():
    own = sold(SPEND, held=100)
    for rounding, provable in ((0, [True, False]), (HELD_ROUNDING_RAW, [True] * (HELD_ROUNDING_RAW + 1) + [False])):
        verdicts = [verdict_of(SPEND, ARRIVED, ARRIVED, own, sold(SPEND, held=100 + more), LIMIT_BPS, rounding) for more in range(len(provable))]
        assert [verdict.exit_provable for verdict in verdicts] == provable
    assert judged(own, sold(SPEND, held=101)).exit_cause == "holder_state"
    assert judged(sold(SPEND, held=None), sold(SPEND)).exit_cause == judged(sold(SPEND), sold(SPEND, held=None)).exit_cause == "holder_state"


def test_without_a_slot_there_is_no_ghost_and_the_exit_is_unprovable():
    verdict = judged(sold(SPEND), None)
    assert (verdict.verdict, verdict.exit_provable, verdict.exit_cause, verdict.ghost_wei) == (CLEAR, False, "slot", 0)


def test_a_ghost_is_another_address_of_its_wallet_alone():
    assert len({WALLET, ghost_of(WALLET, READER), ghost_of(WALLET, WALLET)}) == 3 and len(ghost_of(WALLET, READER)) == 42


# --- the same buy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("board", "arrived"), [(ARRIVED, ARRIVED + 1), (ARRIVED, ARRIVED - 1), (0, 0), (-5, -5), (AMOUNT_MAX, AMOUNT_MAX)])
def test_a_buy_that_brings_something_else_in_the_gate_is_a_fault(board, arrived):
    with pytest.raises(ChainFault, match="inconsistent"):
        judged(sold(SPEND), sold(SPEND), arrived=arrived, board=board)


# --- on the real chain ----------------------------------------------------------------------------------------------


class Trips:
    """The gate of one buy, as the real node answers it."""

    def __init__(self, own: OwnTrip, ghost: GhostTrip, board_raw: int, answers: list[Any]) -> None:
        self.own, self.ghost, self.board_raw = own, ghost, board_raw
        self.answers = copy.deepcopy(answers)

    def verdict(self) -> Verdict:
        done = [answered(trip.simulation, answer) for trip, answer in zip((self.own, self.ghost), self.answers, strict=True)]
        own, ghost = self.own.sale(done[0]), self.ghost.sale(done[1])
        return verdict_of(SPENT, self.board_raw, self.own.arrival_raw(done[0]), own, ghost, LIMIT_BPS)

    def fault(self) -> str:
        with pytest.raises(ChainFault) as caught:
            self.verdict()
        return caught.value.reason

    def sales(self) -> list[tuple[Simulation, list[dict[str, Any]]]]:
        """The calls of both trips' second block."""
        return [(trip.simulation, answer[1]["calls"]) for trip, answer in zip((self.own, self.ghost), self.answers, strict=True)]


@pytest.fixture
async def stall(chain):
    opened = await MarketStall.on(chain)
    yield opened
    await opened.door.close()


async def gate_of(stall: MarketStall, name: str) -> Trips:
    buy: Route = next(route for route in stall.routes("buy", name, SPENT) if not route.parts)
    (board,) = await stall.outcomes(await stall.trade(buy))
    assert board.arrival_raw and board.units_raw
    sales = sell_routes(stall.network, stall.graph, buy.token, board.arrival_raw, WALLET)
    sale = next(route for route in sales if [hop.pool for hop in reversed(route.hops)] == [hop.pool for hop in buy.hops])
    purse = Purse(WALLET, PURSE_WEI, ())
    slot = await stall.slot(name)
    own = OwnTrip(stall.network, stall.pin, purse, buy, sale)
    ghost = GhostTrip(stall.network, stall.pin, purse, route_of(stall.network, buy, ghost_of(WALLET, stall.network.reader)), sale, override_of(slot, 0, board.units_raw))
    return Trips(own, ghost, board.arrival_raw, await stall.answers(own.simulation, ghost.simulation))


VERDICTS = {
    "LEAF": (CLEAR, ""), "RUNE": (CLEAR, ""), "PINE": (CLEAR, ""), "tax_10": (CLEAR, ""), "cooldown_block": (CLEAR, ""), "shares": (CLEAR, ""),
    "interest": (CLEAR, ""), "reflection": (CLEAR, ""), "packed_middle": (CLEAR, ""), "stored_elsewhere": (CLEAR, ""),
    "honeypot": (FLAGGED, ""), "sim_aware": (FLAGGED, ""), "tax_sell_60": (FLAGGED, ""), "cooldown_60s": (FLAGGED, "holder_state"),
    "early_seller": (CLEAR, "holder_state"), "registered_buyers": (CLEAR, "holder_state"), "two_mappings": (CLEAR, "holder_state"),
}  # fmt: skip


async def test_verdicts_on_real_tokens(stall):
    found = {name: (await gate_of(stall, name)).verdict() for name in VERDICTS}
    assert {name: (verdict.verdict, verdict.exit_cause) for name, verdict in found.items()} == VERDICTS


async def test_a_round_trip_over_one_pool_loses_its_fee_twice(stall):
    verdict = (await gate_of(stall, "LEAF")).verdict()
    assert 0 < verdict.loss_bps < 70


@pytest.mark.parametrize("delta", [1, 10**15])
async def test_ether_that_the_trace_of_a_sale_does_not_explain_is_a_fault(stall, delta):
    trips = await gate_of(stall, "tax_sell_60")
    for _, calls in trips.sales():
        calls[-1]["returnData"] = "0x" + calldata.word(int(calls[-1]["returnData"], 16) + delta)
    assert trips.fault() == "inconsistent"


async def test_native_transfers_left_out_of_a_sale_are_a_fault(stall):
    trips = await gate_of(stall, "LEAF")
    for _, calls in trips.sales():
        calls[-2]["logs"] = [log for log in calls[-2]["logs"] if log["address"] != NATIVE_LOG]
    assert trips.fault() == "inconsistent"


async def test_a_sale_said_to_revert_although_ether_moved_is_a_fault(stall):
    trips = await gate_of(stall, "LEAF")
    for _, calls in trips.sales():
        calls[-2]["status"] = "0x0"
    assert trips.fault() == "inconsistent"


async def test_a_reverted_sale_said_to_have_worked_is_no_clear_verdict(stall):
    trips = await gate_of(stall, "honeypot")
    for _, calls in trips.sales():
        calls[-2].update(status="0x1", error=None)
    assert trips.fault() == "inconsistent"


async def test_another_arrival_than_the_boards_is_a_fault(stall):
    trips = await gate_of(stall, "LEAF")
    after = trips.answers[0][0]["calls"][2]
    after["returnData"] = "0x" + calldata.word(int(after["returnData"], 16) + 1)
    assert trips.fault() == "inconsistent"


async def test_shares_that_do_not_make_the_balance_that_arrived_are_no_proof(stall):
    trips = await gate_of(stall, "shares")
    _, calls = trips.sales()[1]
    calls[0]["returnData"] = "0x" + calldata.word(int(calls[0]["returnData"], 16) * 2)
    assert trips.verdict().exit_cause == "holder_state"


async def test_a_buy_that_reverts_in_the_gate_is_a_fault(stall):
    trips = await gate_of(stall, "LEAF")
    trips.answers[0][0]["calls"][1]["status"] = "0x0"
    assert trips.fault() == "state_moved"
