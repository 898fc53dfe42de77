"""A second lane is asked of one order in twenty; where it says otherwise of the same block, nothing is filled on the first."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest

from chain import calldata
from chain.rpc import Lane, RpcDoor
from ledgers.errors import ChainFault
from ops.assembly import drawn
from referee.onchain.board import Desk
from referee.onchain.events import FillCredited, LanesCompared, OrderNotFilled
from referee.onchain.second_opinion import ONE_IN
from tests.onchain.given import outcome
from tests.onchain.ground import Ground, Run, Wire


class TwoLanes(Wire):
    """Two lanes of one node, of which one may lie or be dead."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.lying = self.dead = self.mumbling = ""

    async def post(self, lane, body: bytes, deadline_ms: int) -> bytes:
        self.asked[lane.name] += b"eth_simulateV1" in body
        if lane.name == self.dead:
            raise ChainFault("dead", "no answer")
        raw = await super().post(lane, body, deadline_ms)
        if lane.name == self.mumbling and b"eth_simulateV1" in body:
            return raw.replace(b'"topics"', b'"subjects"')
        if lane.name != self.lying or b"eth_simulateV1" not in body:
            return raw
        told = orjson.loads(raw)
        for row in told if isinstance(told, list) else [told]:
            for block in row["result"] if isinstance(row.get("result"), list) else ():
                for call in block["calls"]:
                    if len(call["returnData"]) == 66 and int(call["returnData"], 16) > 10**15:
                        call["returnData"] = "0x" + calldata.word(int(call["returnData"], 16) + 1)
        return orjson.dumps(told)


@pytest.fixture
async def two(ground):
    wire = TwoLanes()
    door = RpcDoor([Lane("a", ground.chain.url), Lane("b", ground.chain.url)], clock=ground.clock, transport=wire)
    desk = Desk(door, ground.network, ground.graph, ground.desk.rules, ground.clock, ground.desk.clock_offset_ms, compared=lambda: True)
    other = Ground(ground.chain, ground.network, ground.graph, ground.clock, wire, desk)
    other.settle()
    yield other
    await other.close()


async def decided(two, *orders) -> list:
    (events,) = await Run(two).decide(*(orders or (Run(two).buy("LEAF", "0.01 eth"),)))
    return events


async def test_an_order_that_both_lanes_say_the_same_of_is_filled_and_the_comparison_recorded(two):
    events = await decided(two)
    (compared,) = [event for event in events if isinstance(event, LanesCompared)]
    assert (compared.lane, compared.other, compared.differs) == ("a", "b", "") and isinstance(outcome(events), FillCredited)
    assert two.wire.asked["b"] == 1 and two.desk.rpc.lane == "a"


@pytest.mark.parametrize("liar", ["a", "b"])
async def test_an_order_that_they_say_otherwise_of_is_a_fault_and_its_lane_fills_nothing_more(two, liar):
    two.wire.lying = liar
    run = Run(two)
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    ended = outcome(events)
    assert isinstance(ended, OrderNotFilled) and ended.reason == "fault" and "lanes_differ: a and b" in ended.detail
    assert [event.differs != "" for event in events if isinstance(event, LanesCompared)] == [True]
    assert [state.barred for state in two.desk.rpc.lanes] == [True, False]
    two.wire.lying = ""
    two.wire.asked.clear()
    (again,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    assert isinstance(outcome(again), FillCredited) and two.wire.asked["a"] == 0


async def test_a_second_lane_that_is_dead_says_nothing(two):
    two.wire.dead = "b"
    events = await decided(two)
    assert isinstance(outcome(events), FillCredited) and not [event for event in events if isinstance(event, LanesCompared)]


async def test_a_second_lane_whose_logs_are_none_says_nothing(two):
    two.wire.mumbling = "b"
    events = await decided(two)
    assert isinstance(outcome(events), FillCredited) and not [event for event in events if isinstance(event, LanesCompared)]
    assert two.wire.asked["b"] == 1 and not any(state.barred for state in two.desk.rpc.lanes)


async def test_one_lane_has_nobody_to_be_compared_with(ground):
    ground.desk.compared = lambda: True
    run = Run(ground)
    (events,) = await run.decide(run.buy("LEAF", "0.01 eth"))
    assert isinstance(outcome(events), FillCredited) and not [event for event in events if isinstance(event, LanesCompared)]


async def test_where_every_lane_is_barred_nothing_is_asked(two):
    for state in two.desk.rpc.lanes:
        two.desk.rpc.bar(state.lane.name)
    with pytest.raises(ChainFault, match="barred"):
        await two.desk.rpc.call("eth_chainId", [])


def test_about_one_order_in_twenty_is_drawn():
    assert 0.5 / ONE_IN < sum(drawn() for _ in range(20_000)) / 20_000 < 2 / ONE_IN
