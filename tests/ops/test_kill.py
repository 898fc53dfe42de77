"""Real kills: the referee and the node are ended by SIGKILL at random moments of a real window; nothing is filled twice or lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chain.devnet import process, standing
from ledgers.clock import SystemClock
from ledgers.errors import StoreFault
from ledgers.journal import verify
from ledgers.seal import export
from ledgers.store import RunRow, Store, WindowRow
from referee.onchain.events import (
    FURTHER_LEDGERS, LEDGERS, DecisionTaken, FillCredited, OrderNotFilled, OrderRefused, ReorgSeen, RunScored, TickMissed, TurnAbandoned, TurnPlayed,
    WindowLiquidated, WindowOpened, WindowPaused, WindowResumed, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.replay import replay
from referee.onchain.state import decoded, order_id_of
from tests.onchain.recount import recount

ROOT = Path(__file__).parents[2]
RUNS, TICKS = 7, 10
WINDOW = """
name = "killed"
network = "devnet"
length_s = 10
interval_s = 1
seed = 11
[[stack]]
name = "hold"
baseline = "hold"
[[stack]]
name = "random"
baseline = "random"
copies = 4
[stack.params]
buy_ppm = 700000
sell_ppm = 250000
[[stack]]
name = "equal"
baseline = "equal-weight"
copies = 2
"""
PLAY = """
import asyncio, sys
from pathlib import Path
from ledgers.clock import SystemClock
from ledgers.errors import StoreFault
from ops.daemon import play_file, play_on
from ops.settings import Settings
settings, clock = Settings(home=Path(sys.argv[1])), SystemClock()
played = asyncio.run(play_file(settings, Path(sys.argv[2]), clock) if len(sys.argv) > 2 else play_on(settings, clock, accept_code_change=True))
print(played.window_id, played.sealed)
"""


@pytest.fixture
def home(tmp_path: Path):
    """A home whose local chain is gone at the end, whatever happened."""
    yield tmp_path / "home"
    asyncio.run(process.down(tmp_path / "home", clock=SystemClock()))


@pytest.fixture
def window(tmp_path: Path) -> Path:
    path = tmp_path / "killed.toml"
    path.write_text(WINDOW)
    return path


def life(home: Path, *arguments: Path) -> subprocess.Popen:
    """A process that plays the window, or takes it up."""
    return subprocess.Popen([sys.executable, "-c", PLAY, str(home), *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lived(playing: subprocess.Popen, seconds: float) -> bool:
    """Let a process run so long; True when it ended by itself."""
    try:
        playing.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def killed(playing: subprocess.Popen) -> None:
    playing.kill()
    playing.communicate()


def until_opened(home: Path, playing: subprocess.Popen) -> None:
    """Wait until the window is in the journal."""
    for _ in range(400):
        if lived(playing, 0.1):
            raise AssertionError(playing.communicate()[1])
        if _opened(home / "journal.db"):
            return
    raise AssertionError("the window did not open")


def _opened(path: Path) -> bool:
    try:
        with Store(path, exclusive=False) as store:
            return bool(store.window_ids())
    except StoreFault:
        return False


def ended(playing: subprocess.Popen) -> str:
    said, complaint = playing.communicate(timeout=120)
    assert playing.returncode == 0, complaint
    return said


def check(home: Path) -> list:
    """What must hold after any number of kills; returns the events."""
    with Store(home / "journal.db", exclusive=False) as store:
        journal = store.journal("w1")
        records = list(journal.read())
        assert verify(records).seq == len(records)
        events = [decoded(record) for record in records]
        ended = FillCredited | OrderRefused | OrderNotFilled | OrderSkipped | DelayedReverted
        outcomes = Counter((event.order_id, ledger) for event in events if isinstance(event, ended) for ledger in event.ledgers)
        decisions = [event for event in events if isinstance(event, DecisionTaken)]
        owed = {(order_id_of(taken.run_id, taken.tick, asked.index), ledger) for taken in decisions for asked in taken.orders for ledger in (*LEDGERS, *FURTHER_LEDGERS)}
        assert set(outcomes) == owed and set(outcomes.values()) <= {1}
        ticks = Counter((event.run_id, event.tick) for event in events if isinstance(event, Woken | TickMissed))
        assert len(ticks) == RUNS * TICKS and set(ticks.values()) == {1}
        woken = {(event.run_id, event.tick) for event in events if isinstance(event, Woken)}
        turns = Counter((event.run_id, event.tick) for event in events if isinstance(event, TurnPlayed | TurnAbandoned))
        assert set(turns) == woken and set(turns.values()) <= {1}
        found = replay(records)
        assert found.difference is None and found.records == len(records)
        export(journal, home / "w1.jsonl")
        counted = recount(str(home / "w1.jsonl"))
        assert {run_id: run.scored.headline_ppm for run_id, run in found.state.runs.items()} == {run: score["headline_ppm"] for run, score in counted.items()}
        assert [event for event in events if isinstance(event, ReorgSeen)] == []
        assert [row.status for row in store.rows(WindowRow)] == ["SEALED"]
        assert [row.status for row in store.rows(RunRow)] == ["SCORED"] * RUNS
        return events


def kinds(events: list, *wanted: type) -> list:
    return [event for event in events if isinstance(event, wanted)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_again_and_again_a_window_ends_with_nothing_twice_and_nothing_lost(home, window, seed):
    moments = random.Random(seed)
    playing, kills = life(home, window), 0
    until_opened(home, playing)
    while not lived(playing, moments.uniform(0.3, 2.5)) and kills < 3:
        killed(playing)
        kills += 1
        playing = life(home)
    ended(playing)
    events = check(home)
    assert len(kinds(events, WindowResumed)) >= 1 and len(kinds(events, RunScored)) == RUNS
    holds = [score for score in kinds(events, RunScored) if score.run_id == "w1-hold-1"]
    assert [score.headline_ppm for score in holds] == [0]
    assert standing.read(standing.folder_of(home)) is None, "the window's chain is still there"


@pytest.mark.slow
def test_a_node_that_is_killed_is_built_again_and_the_window_goes_on_with_the_same_blocks(home, window):
    playing = life(home, window)
    until_opened(home, playing)
    assert not lived(playing, 3)
    before = standing.read(standing.folder_of(home))
    os.kill(before.node_pid, signal.SIGKILL)
    ended(playing)
    events = check(home)
    assert kinds(events, FillCredited) and kinds(events, WindowLiquidated)
    assert events[0].block0_hash == before.block0_hash


@pytest.mark.slow
def test_node_and_process_killed_together_come_back_on_resume(home, window):
    playing = life(home, window)
    until_opened(home, playing)
    assert not lived(playing, 4)
    os.kill(standing.read(standing.folder_of(home)).node_pid, signal.SIGKILL)
    killed(playing)
    ended(life(home))
    events = check(home)
    assert kinds(events, WindowOpened)[0].block0_hash and len(kinds(events, WindowResumed)) == 1


@pytest.mark.slow
def test_an_interrupt_pauses_cleanly_and_the_window_goes_on(home, window):
    playing = life(home, window)
    until_opened(home, playing)
    assert not lived(playing, 2)
    playing.send_signal(signal.SIGINT)
    assert ended(playing) == "w1 False\n"
    assert standing.read(standing.folder_of(home)) is None, "a paused window leaves a chain behind"
    assert ended(life(home)) == "w1 True\n"
    events = check(home)
    assert len(kinds(events, WindowPaused)) == 1 and kinds(events, WindowSealed)
