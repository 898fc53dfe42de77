"""The background chain: brought up, reused, noticed when dead, rebuilt where it must be, ended with nothing left."""

import asyncio
import http.client
import json
import os
import select
import shutil
import signal
import subprocess
from dataclasses import asdict, replace

import pytest

from chain.devnet import process, standing
from chain.devnet.devnet import Devnet
from chain.devnet.node import Line, command_of
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault

CLOCK = SystemClock()
SEED = 21
ALONE = standing.Standing(
    phase=standing.LIVE, reason="", url="", owner_pid=1, node_pid=2, seed=SEED, block_time_ms=1_000, anchor_ms=0, block0_hash="", height=0, target_block=0
)  # fmt: skip


@pytest.fixture
async def home(tmp_path):
    """A home whose chain is ended after the test, whatever happened."""
    yield tmp_path
    await process.down(tmp_path, clock=CLOCK)


def wait_for_end(pid: int) -> None:
    """Return when the process has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([handle], [], [], 30)
    os.close(handle)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)


async def with_its_node(home, building: asyncio.Future) -> standing.Standing:
    """The chain that is being built, as soon as its node is up."""
    while (begun := process.status(home)) is None or not begun.url:
        assert not building.done(), building
        await CLOCK.sleep_until(CLOCK.now_ms() + 5)
    return begun


def block_hash(found: standing.Standing, block: int) -> str:
    port = int(found.url.rsplit(":", 1)[1])
    return Line(port).call("eth_getBlockByNumber", [hex(block), False])["hash"]


async def test_up_is_live_and_played_from_its_seed(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    with Devnet.build(SEED, up.height) as same:
        assert (up.alive, up.block0_hash, block_hash(up, up.height)) == (True, same.block_hash(0), same.block_hash(up.height))


async def test_blocks_come_when_they_are_due(home):
    up = await process.up(home, clock=CLOCK, seed=SEED, block_time_ms=250)
    await CLOCK.sleep_until(up.anchor_ms + (up.height + 8) * 250)
    assert (found := process.status(home)) and found.alive and found.height >= up.height + 6
    assert found.height <= (CLOCK.now_ms() - found.anchor_ms) // 250


async def test_a_living_chain_with_the_same_seed_is_reused(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    again = await process.ensure(home, clock=CLOCK, seed=SEED, min_height=up.height)
    assert (again.owner_pid, again.url) == (up.owner_pid, up.url)


async def test_two_that_want_it_at_once_share_one_chain(home):
    first = asyncio.ensure_future(process.up(home, clock=CLOCK, seed=SEED))
    while process.status(home) is None:
        await CLOCK.sleep_until(CLOCK.now_ms() + 5)
    second = await process.up(home, clock=CLOCK, seed=SEED)
    assert (await first).owner_pid == second.owner_pid


async def test_another_seed_is_refused_while_a_chain_is_up(home):
    await process.up(home, clock=CLOCK, seed=SEED)
    with pytest.raises(ChainFault, match="has seed 21 .* wanted 22"):
        await process.ensure(home, clock=CLOCK, seed=22)


async def test_a_dead_node_is_said_and_the_chain_rebuilt_with_the_same_blocks(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    known = block_hash(up, up.height)
    kill(up.node_pid)
    dead = process.status(home)
    assert dead and not dead.alive and dead.reason
    rebuilt = await process.ensure(home, clock=CLOCK, seed=SEED, min_height=up.height + 5)
    assert (rebuilt.anchor_ms, block_hash(rebuilt, up.height)) == (up.anchor_ms, known) and rebuilt.height >= up.height + 5


async def test_a_chain_is_rebuilt_up_to_the_block_that_is_due(home):
    anchor_ms = CLOCK.now_ms() - 200 * 1_000
    built = await process.ensure(home, clock=CLOCK, seed=SEED, min_height=80, anchor_ms=anchor_ms)
    assert built.anchor_ms == anchor_ms and built.height >= 200


async def test_after_too_long_a_gap_the_anchor_moves_and_the_height_does_not_fall(home):
    built = await process.ensure(home, clock=CLOCK, seed=SEED, min_height=80, anchor_ms=CLOCK.now_ms() - 20_000 * 1_000)
    assert 80 <= built.height < 100 and abs(built.anchor_ms + built.height * 1_000 - CLOCK.now_ms()) < 60_000


async def test_a_killed_owner_leaves_no_node(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    kill(up.owner_pid)
    wait_for_end(up.node_pid)
    found = process.status(home)
    assert found and found.reason == "its process is gone" and "anvil" not in command_of(up.node_pid)


async def test_down_ends_owner_and_node_and_forgets(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    assert await process.down(home, clock=CLOCK)
    wait_for_end(up.node_pid)
    assert process.status(home) is None and not standing.owner_runs(up, standing.folder_of(home).resolve())
    assert not await process.down(home, clock=CLOCK)


async def test_progress_is_told_while_a_chain_is_built(home):
    told = []
    up = await process.up(home, clock=CLOCK, seed=SEED, progress=lambda height, target: told.append((height, target)))
    assert told and all(height <= target == up.target_block for height, target in told)


async def test_an_interrupted_build_leaves_no_owner_and_no_node(home):
    building = asyncio.ensure_future(process.up(home, clock=CLOCK, seed=SEED))
    begun = await with_its_node(home, building)
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    wait_for_end(begun.node_pid)
    assert command_of(begun.owner_pid) == command_of(begun.node_pid) == ""


async def test_a_builder_that_is_killed_is_said_with_its_signal(home):
    building = asyncio.ensure_future(process.up(home, clock=CLOCK, seed=SEED))
    begun = await with_its_node(home, building)
    os.kill(begun.owner_pid, signal.SIGKILL)
    with pytest.raises(ChainFault, match="did not come up: its process was ended by signal 9"):
        await building


async def test_a_chain_whose_folder_is_removed_ends_and_writes_into_no_other(home):
    up = await process.up(home, clock=CLOCK, seed=SEED, block_time_ms=250)
    shutil.rmtree(standing.folder_of(home))
    next_one = await process.up(home, clock=CLOCK, seed=SEED, block_time_ms=250)
    wait_for_end(up.owner_pid)
    assert (process.status(home).owner_pid, command_of(up.node_pid)) == (next_one.owner_pid, "")


async def test_a_process_that_only_looks_like_the_owner_or_the_node_by_its_number_is_left_alone(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    await process.down(home, clock=CLOCK)
    folder = standing.folder_of(home)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        standing.write(folder, replace(up, owner_pid=stranger.pid, node_pid=stranger.pid))
        (folder / "node.pid").write_text(f"{stranger.pid} 8545\n")
        assert process.status(home).reason == "its process is gone" and not await process.down(home, clock=CLOCK)
        assert stranger.poll() is None
        stranger.kill()


def test_a_torn_standing_is_no_standing(tmp_path):
    (tmp_path / "chain.json").write_text('{"phase": "li')
    assert standing.read(tmp_path) is None


async def test_rival_is_up_with_the_chain_and_ends_with_it(home):
    up = await process.up(home, clock=CLOCK, seed=SEED)
    assert up.rival_url.startswith("http://127.0.0.1:") and process.status(home).rival_url == up.rival_url
    port = int(up.rival_url.rsplit(":", 1)[1])
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request("GET", "/swap/allowance-holder/quote")
    assert line.getresponse().status == 401
    line.close()
    await process.down(home, clock=CLOCK)
    with pytest.raises(OSError, match="."):
        line.request("GET", "/")


def test_standing_of_an_older_chain_has_no_rival(tmp_path):
    fields = {name: value for name, value in asdict(ALONE).items() if name != "rival_url"}
    (tmp_path / "chain.json").write_text(json.dumps(fields))
    assert standing.read(tmp_path) == ALONE
