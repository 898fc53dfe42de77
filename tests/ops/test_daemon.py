"""The daemon's signals: the first pauses a window that plays, the second ends it, and what is taken down is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from ledgers.clock import SystemClock
from ledgers.store import Store
from ops.daemon import SIGNALS, heeding_signals, left_alone, play_on
from ops.settings import Settings
from referee.onchain.events import WindowPaused, WindowResumed
from referee.onchain.opening import Refused
from tests.ops.told import OPEN, opening


async def heard(number: signal.Signals) -> None:
    """Send this process a signal and let its loop hear it."""
    os.kill(os.getpid(), number)
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", SIGNALS)
async def test_the_first_signal_pauses_a_window_that_plays(number):
    with heeding_signals() as signals:
        signals.pausing = asyncio.Event()
        await heard(number)
        await signals.pausing.wait()
    assert not signals.ended


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("playing", [True, False])
def test_a_second_one_and_one_before_the_window_plays_end_it_with_everything_taken_down(number, playing):
    taken_down = []

    async def play() -> None:
        with heeding_signals() as signals:
            try:
                if playing:
                    signals.pausing = asyncio.Event()
                    signals.pausing.set()
                os.kill(os.getpid(), number)
                await asyncio.get_running_loop().create_future()
            finally:
                await heard(number)
                taken_down.append(number)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(play())
    assert taken_down == [number]


@pytest.mark.parametrize("number", SIGNALS)
async def test_what_is_being_taken_down_is_left_alone(number):
    with heeding_signals() as signals:
        signals.pausing, signals.ending = asyncio.Event(), True
        await heard(number)
    assert not signals.ended and not signals.pausing.is_set()


async def test_under_nohup_a_lost_terminal_means_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with heeding_signals() as signals:
            signals.pausing = asyncio.Event()
            await heard(signal.SIGHUP)
        assert not signals.pausing.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("recorded", [(), (WindowResumed(run_id="w1", ts_ms=OPEN + 1, clock_offset_ms=0, down_ms=1, code_sha256="05" * 32),)])
async def test_a_change_of_the_code_is_refused_before_anything_is_built(tmp_path, recorded):
    with Store(tmp_path / "journal.db", exclusive=True) as store:
        await store.journal("w1").append(*opening(), *recorded)
    expected = recorded[0].code_sha256 if recorded else "04" * 32
    with pytest.raises(Refused, match=f"expected {expected}, found [0-9a-f]{{64}}; it was not resumed \\(accept the change with --accept-code-change\\)"):
        await play_on(Settings(home=tmp_path), SystemClock())
    assert not (tmp_path / "devnet").exists()


async def test_windows_that_are_left_alone_are_named_with_what_becomes_of_them(tmp_path):
    with Store(tmp_path / "journal.db", exclusive=True) as store:
        await store.journal("w1").append(*opening(), WindowPaused(run_id="w1", ts_ms=OPEN + 1, reason="operator"))
        await store.journal("w2").append(*[replace(event, run_id=event.run_id.replace("w1", "w2")) for event in opening()])
        open_, late = (list(left_alone(store, OPEN + at)) for at in (20_000, 90_000))
    assert open_[0].startswith("w1 is paused: its clock goes on and it closes in 40 s; `referee run --resume w1` takes it up")
    assert open_[1].startswith("w2 is not sealed: its clock goes on")
    assert late[0].startswith("w1 is paused: its window closed 30 s ago and its runs are not liquidated")
