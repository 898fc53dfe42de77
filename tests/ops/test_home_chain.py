"""The chain under a window: ended with the window that brought it up, whoever waited for it; a person's chain stays."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from chain.devnet import process
from chain.network import load_network
from chain.pools import PoolGraph
from chain.rpc import RpcDoor
from ledgers.clock import SystemClock
from ops.home_chain import HomeChain
from referee.onchain.board import Desk
from referee.onchain.rules import DEFAULT
from referee.onchain.state import folded

CLOCK = SystemClock()
SEED = 21


@pytest.fixture
async def home(tmp_path):
    yield tmp_path
    await process.down(tmp_path, clock=CLOCK)


def home_chain(home) -> HomeChain:
    return HomeChain(home=home, seed=SEED, clock=CLOCK)


async def test_a_chain_begun_by_a_window_process_that_was_killed_is_ended_by_the_next(home):
    begun = await process.ensure(home, clock=CLOCK, seed=SEED, of_window=True)
    lane = await home_chain(home).up(folded([]))
    assert lane.url == begun.url
    await home_chain(home).down()
    assert process.status(home) is None


async def test_a_chain_that_a_person_brought_up_stays(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    await home_chain(home).up(folded([]))
    await home_chain(home).down()
    assert process.status(home).owner_pid == up.owner_pid


async def test_a_chain_built_again_after_a_long_gap_has_no_backlog_when_it_is_measured(home):
    """Its clock is measured by its newest block: one that had still to make up the time of its building would run ahead of that."""
    anchor_ms = CLOCK.now_ms() - 300 * 1_000
    built = await process.ensure(home, clock=CLOCK, seed=SEED, anchor_ms=anchor_ms)
    assert built.anchor_ms == anchor_ms and (CLOCK.now_ms() - anchor_ms) // 1_000 - built.height <= process.BEHIND_BLOCKS_MAX


async def test_a_chain_that_stood_still_is_waited_for_until_it_has_made_up_what_it_missed(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    os.kill(up.owner_pid, signal.SIGSTOP)
    await CLOCK.sleep_until(up.anchor_ms + (up.height + 2 * process.BEHIND_BLOCKS_MAX) * 1_000)
    told = []
    waiting = asyncio.ensure_future(process.ensure(home, clock=CLOCK, seed=SEED, progress=lambda height, target: told.append((height, target))))
    while not told:
        await CLOCK.sleep_until(CLOCK.now_ms() + 5)
    os.kill(up.owner_pid, signal.SIGCONT)
    found = await waiting
    assert (CLOCK.now_ms() - found.anchor_ms) // 1_000 - found.height <= process.BEHIND_BLOCKS_MAX + 1
    assert told[0][1] - told[0][0] > process.BEHIND_BLOCKS_MAX


async def test_when_the_anchor_moves_the_desks_clock_moves_with_it_once(home):
    up, held, network = await process.up(home, clock=CLOCK, seed=SEED), home_chain(home), load_network("devnet")
    lane = await held.up(folded([]))
    desk = Desk(RpcDoor([lane], clock=CLOCK), network, PoolGraph(network), DEFAULT, CLOCK, -up.anchor_ms)
    for standing in (up, replace(up, anchor_ms=up.anchor_ms + 9_000_000), replace(up, anchor_ms=up.anchor_ms + 9_000_000)):
        held.follow_clock(desk, standing)
    assert desk.clock_offset_ms == -up.anchor_ms - 9_000_000
    await desk.rpc.close()
