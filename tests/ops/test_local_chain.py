"""The local chain alone: it is not taken from under a window that is being played."""

from __future__ import annotations

import asyncio
import os
from io import StringIO

import pytest

from ledgers.errors import StoreFault
from ledgers.lock import StoreLock
from ledgers.store import Store
from ops.local_chain import ProgressLine, steer
from ops.settings import Settings
from tests.ops.told import opening


@pytest.mark.parametrize("action", ["down", "up"])
def test_a_chain_in_use_is_left_alone_and_its_window_and_process_are_named(tmp_path, action):
    with Store(tmp_path / "journal.db", exclusive=True) as store:
        asyncio.run(store.journal("w1").append(*opening()))
        with pytest.raises(StoreFault, match=f"in use by window w1, process {os.getpid()}"):
            steer(Settings(home=tmp_path), action)


def test_a_home_that_nobody_plays_in_has_no_holder_and_its_chain_may_end(tmp_path):
    with Store(tmp_path / "journal.db", exclusive=True):
        pass
    assert StoreLock.holder(tmp_path / "journal.db") == ""
    assert steer(Settings(home=tmp_path), "down")[0] == "no local chain was running"


def test_without_a_terminal_only_a_long_building_is_told_and_a_line_now_and_then():
    short, long = StringIO(), StringIO()
    for file, target in ((short, 60), (long, 1_400)):
        line = ProgressLine(file)
        for height in range(31, target + 1):
            line(height, target)
        line.end()
    assert short.getvalue() == ""
    assert long.getvalue().splitlines() == [f"local chain: block {height} of 1400" for height in range(31, 1_400, 250)]
