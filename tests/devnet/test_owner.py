"""The owner's schedule: blocks keep their distance from wall time; only what cannot be made up moves the anchor."""

from dataclasses import replace

import pytest

from chain.devnet.owner import AHEAD_BLOCKS_MAX, STALL_BLOCKS_MAX, anchored, due_block
from chain.devnet.standing import LIVE, Standing

HELD = Standing(
    phase=LIVE,
    reason="",
    url="",
    owner_pid=1,
    node_pid=2,
    seed=7,
    block_time_ms=250,
    anchor_ms=10_000,
    block0_hash="",
    height=0,
    target_block=0,
)


@pytest.mark.parametrize(("now_ms", "block"), [(10_000, 0), (10_249, 0), (10_250, 1), (9_999, -1)])
def test_a_block_is_due_from_its_own_millisecond_on(now_ms, block):
    assert due_block(now_ms, HELD.anchor_ms, HELD.block_time_ms) == block


@pytest.mark.parametrize("behind", [0, 1, STALL_BLOCKS_MAX, -AHEAD_BLOCKS_MAX])
def test_a_stall_that_can_be_made_up_keeps_the_anchor(behind):
    assert anchored(HELD, 100, HELD.anchor_ms + (100 + behind) * 250) == HELD


@pytest.mark.parametrize("behind", [STALL_BLOCKS_MAX + 1, -AHEAD_BLOCKS_MAX - 1])
def test_a_longer_one_or_a_clock_set_back_moves_it(behind):
    now_ms = HELD.anchor_ms + (100 + behind) * 250
    moved = anchored(HELD, 100, now_ms)
    assert moved == replace(HELD, anchor_ms=HELD.anchor_ms + behind * 250) and due_block(now_ms, moved.anchor_ms, 250) == 100
