"""The assembly and the daemon: what cannot be played leaves nothing behind, and the code that plays is named."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chain.balance_slot import throw_away
from chain.network import load_network
from chain.simulate import lens_of
from chain.unforeseen import watched_from
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import ChainFault, StoreFault
from ledgers.store import Store
from ops.assembly import ROOT, SECRET, code_sha256, held_store, seats, window_secret
from ops.daemon import NothingToResume, play_file, play_on
from ops.scheduler import TickAlarm
from ops.models import Models
from ops.settings import BadSettings, Settings
from referee.onchain.events import WindowPaused
from referee.onchain.window import BadWindow, load_window

TEXT = """
name = "plain"
network = "{network}"
length_s = 10
interval_s = 5
seed = 7
[[stack]]
name = "one"
{stack}
copies = 2
"""


def written(folder: Path, network: str = "robinhood", stack: str = 'baseline = "hold"') -> Path:
    path = folder / "window.toml"
    path.write_text(TEXT.format(network=network, stack=stack))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("network", "stack", "sentence"),
    [
        ("nowhere", 'baseline = "hold"', "no network named 'nowhere'; known: devnet, robinhood"),
        ("robinhood", 'baseline = "genius"', "stack one: no baseline named 'genius'; known: hold, random, momentum, reversion, equal-weight"),
        ("robinhood", 'baseline = "hold"\nparams = { x = 1 }', "stack one: baseline hold has no parameter 'x'; known: none"),
    ],
)
async def test_a_window_that_cannot_be_played_is_said_and_leaves_nothing(tmp_path, home, network, stack, sentence):
    with pytest.raises(BadWindow) as refused:
        await play_file(Settings(home=home), written(tmp_path, network, stack), SystemClock())
    assert str(refused.value) == f"window.toml: {sentence}" and not home.exists()


async def test_a_bad_script_is_said_with_its_line(tmp_path, home):
    (tmp_path / "moves.jsonl").write_text('{"tick": 0, "decision": {}}\n{"tick": 0, "answer": "x"}\n')
    with pytest.raises(BadWindow, match="stack one: script line 2: tick 0 has a line already"):
        await play_file(Settings(home=home), written(tmp_path, stack='script = "moves.jsonl"'), SystemClock())


async def test_a_real_chain_without_an_address_is_said_and_leaves_nothing(tmp_path, home):
    with pytest.raises(BadSettings, match="set REFEREE_RPC_URLS"):
        await play_file(Settings(home=home), written(tmp_path), SystemClock())
    assert not home.exists()


async def test_a_dead_node_is_a_fault_and_leaves_nothing(tmp_path, home):
    with pytest.raises(ChainFault):
        await play_file(Settings(home=home, rpc_urls="http://127.0.0.1:9/key"), written(tmp_path), SystemClock())
    assert not home.exists()


async def test_a_second_daemon_is_refused_by_lock(tmp_path, home):
    settings = Settings(home=home, rpc_urls="http://127.0.0.1:9")
    with held_store(settings), pytest.raises(StoreFault, match="in use by process"):
        await play_file(settings, written(tmp_path), SystemClock())


async def test_there_is_nothing_to_resume_in_a_fresh_home(home):
    with pytest.raises(NothingToResume):
        await play_on(Settings(home=home), SystemClock())
    assert not home.exists()


def test_a_store_in_which_something_came_to_be_stays(home):
    with held_store(Settings(home=home)) as store:
        asyncio.run(store.journal("w1").append(*an_opening()))
    with Store(home / "journal.db", exclusive=False) as store:
        assert store.window_ids() == ["w1"]


def an_opening():
    return (WindowPaused(run_id="w1", ts_ms=1, reason="operator"),)


def test_copies_share_an_identity_and_draw_differently(tmp_path):
    one, two = seats(load_window(written(tmp_path, stack='baseline = "random"')), "w1", Models(Settings(home=tmp_path), VirtualClock())).values()
    assert one.stack.sha256 == two.stack.sha256 and one.seed != two.seed


def test_the_code_tree_is_named_by_what_can_change_a_result(tmp_path):
    for package in ("ledgers", "referee"):
        shutil.copytree(ROOT / package, tmp_path / package)
    before = code_sha256(tmp_path)
    (tmp_path / "referee" / "notes.md").write_text("words")
    assert code_sha256(tmp_path) == before
    (tmp_path / "referee" / "onchain" / "rules.py").write_text("DEFAULT = None")
    assert code_sha256(tmp_path) != before


# --- the alarm --------------------------------------------------------------------------------------------------------


async def test_the_alarm_returns_when_its_time_has_come_and_not_before():
    clock = SystemClock()
    alarm, due_ms = TickAlarm(clock), clock.now_ms() + 60
    await alarm.until(due_ms)
    assert clock.now_ms() >= due_ms
    alarm.close()


async def test_the_alarm_returns_at_once_for_a_time_that_is_past():
    alarm = TickAlarm(SystemClock())
    await alarm.until(0)
    alarm.close()


async def test_an_alarm_that_rings_early_because_the_clock_was_set_back_waits_on():
    clock = VirtualClock(int(datetime.now(UTC).timestamp() * 1_000) - 3_600_000)
    alarm, due_ms = TickAlarm(clock), clock.now_ms() + 500
    waiting = asyncio.ensure_future(alarm.until(due_ms))
    await clock.advance_to(due_ms - 1)
    assert not waiting.done()
    await clock.advance_to(due_ms)
    await waiting
    alarm.close()


class SetBack(SystemClock):
    """A wall clock that can be set; the scheduler library is shown the same."""

    def __init__(self) -> None:
        self.off_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.off_ms


async def test_a_clock_set_back_and_right_again_costs_the_alarm_no_more_than_one_short_wait():
    clock = SetBack()
    alarm, begun_ms = TickAlarm(clock), clock.monotonic_ms()
    waiting = asyncio.ensure_future(alarm.until(clock.now_ms() + 1_200))
    await clock.within(5_000, asyncio.sleep(0.2))
    clock.off_ms = -60_000
    await clock.within(5_000, asyncio.sleep(1))
    assert not waiting.done()
    clock.off_ms = 0
    await clock.within(10_000, waiting)
    assert clock.monotonic_ms() - begun_ms >= 1_200
    alarm.close()


# --- what no token can know -----------------------------------------------------------------------------------------------


def test_a_window_s_secret_is_its_home_s_alone_and_the_same_when_it_is_taken_up(tmp_path):
    one, other = Settings(home=tmp_path / "one"), Settings(home=tmp_path / "other")
    assert window_secret(one, "w1") == window_secret(one, "w1")
    assert len({window_secret(one, "w1"), window_secret(one, "w2"), window_secret(other, "w1")}) == 3
    assert (tmp_path / "one" / SECRET).stat().st_mode & 0o777 == 0o600


def test_readers_lenses_ghosts_and_seekers_differ_from_window_to_window():
    network = load_network("devnet")
    one, two = watched_from(network, "a"), watched_from(network, "b")
    token = "0x" + "22" * 20
    for told in (lambda seen: seen.reader, lambda seen: lens_of(token, seen.reader)[0], lambda seen: throw_away(token, 1, seen.reader)):
        assert len({told(one), told(two), told(network)}) == 3
    assert watched_from(network, "") == network
