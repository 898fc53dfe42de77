"""The chain under a window: ended with the window that brought it up, whoever waited for it; a person's chain stays."""

import pytest

from chain.devnet import process
from ledgers.clock import SystemClock
from ops.home_chain import HomeChain
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
