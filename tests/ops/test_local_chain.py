"""The local chain alone: it is not taken from under a window that is being played."""

from __future__ import annotations

import asyncio
import os

import pytest

from ledgers.errors import StoreFault
from ledgers.lock import StoreLock
from ledgers.store import Store
from ops.local_chain import steer
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
