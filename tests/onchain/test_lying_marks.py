"""A mark that a node lies about, refuses or does not answer is a fault and never a value (ONC-12, design §9)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ledgers.errors import ChainFault
from tests.onchain.lies import LIES, MANNERS, REFUSED, SHAPES, lie, more_ether
from tests.onchain.scene import SIMULATE, Scene, scene_on, simulating


@pytest.fixture
async def scene(chain) -> AsyncIterator[Scene]:
    async with scene_on(chain) as opened:
        yield opened


MARK_LIES = {name: change for name, change in LIES.items() if name not in ("no_pool_logs", "less_ether_before")} | SHAPES


@pytest.mark.parametrize("change", MARK_LIES.values(), ids=MARK_LIES.keys())
async def test_a_mark_that_a_node_lies_about_is_a_fault_and_never_a_value(scene, change):
    scene.node.by(SIMULATE, change)
    with pytest.raises(ChainFault):
        await scene.run.value()


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS.keys())
async def test_a_mark_that_a_node_does_not_answer_properly_is_a_fault_and_never_a_value(scene, manner):
    scene.node.lie(when=simulating, **manner)
    scene.be_short()
    with pytest.raises(ChainFault):
        await scene.run.value()


@pytest.mark.parametrize("code", [*REFUSED, -32601])
async def test_a_mark_that_a_node_refuses_is_a_fault_and_never_a_value(scene, code):
    def refuse(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": code, "message": "no"}} if method == SIMULATE else row

    scene.node.lie(alter=refuse)
    with pytest.raises(ChainFault):
        await scene.run.value()


async def test_a_mark_is_taken_by_the_next_lane(scene):
    (honest,) = await scene.run.value()
    scene.reach(*scene.nodes)
    scene.node.lie(stop="hang_up")
    (valued,) = await scene.run.value()
    assert valued.value_wei == honest.value_wei


async def test_a_lane_that_lied_about_a_mark_is_left_for_the_next_mark(scene):
    (honest,) = await scene.run.value()
    scene.reach(*scene.nodes)
    scene.node.by(SIMULATE, lie(more_ether))
    with pytest.raises(ChainFault):
        await scene.run.value()
    (valued,) = await scene.run.value()
    assert valued.value_wei == honest.value_wei
