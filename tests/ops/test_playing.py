"""What is shown of a window never disturbs it: a reader that goes away, a view that fails, and nothing is told twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers.clock import VirtualClock
from ops.playing import Showing
from ops.tail import follow
from tests.ops.told import OPEN, told

ROOT = Path(__file__).parents[2]
JOURNAL = told()


class BrokenScreen:
    """A screen whose first drawing fails."""

    def __init__(self) -> None:
        self.times = 0

    def see(self, seen) -> None:
        self.times += 1
        raise ValueError("no room")


async def test_a_view_that_fails_is_said_once_and_others_go_on_watching(capsys):
    screen, seen = BrokenScreen(), []
    await follow(JOURNAL, VirtualClock(OPEN), [Showing(asyncio.Event(), screen), seen.extend])
    assert len(seen) == JOURNAL.head()[0] and screen.times == 1
    assert capsys.readouterr().err.count("the view failed (ValueError: no room); the window goes on without it") == 1


async def test_no_event_is_told_twice_when_a_watcher_fails():
    seen = []

    def failing(news) -> None:
        seen.extend(news)
        raise ValueError

    with pytest.raises(ValueError):
        await follow(JOURNAL, VirtualClock(OPEN), [failing])
    assert len(seen) == JOURNAL.head()[0]


GONE = """
import asyncio
from ledgers.clock import VirtualClock
from ops.playing import Showing
from ops.tail import follow
from ops.view import screen_for
from tests.ops.told import OPEN, told
import sys
journal = told()
sys.stdin.readline()
with screen_for(journal, VirtualClock(OPEN), 0, sys.stdout, True, {}) as screen:
    seen = []
    asyncio.run(follow(journal, VirtualClock(OPEN), [Showing(asyncio.Event(), screen), seen.extend]))
print("a report that nobody reads")
sys.stdout.flush()
sys.exit(len(seen) != journal.head()[0])
"""


def test_a_reader_that_goes_away_is_said_once_and_the_window_goes_on():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", GONE], cwd=ROOT, text=True, **pipes) as process:
        process.stdout.close()
        process.stdin.write("\n")
        process.stdin.flush()
        said = process.stderr.read()
    assert process.returncode == 0 and said == "referee: nobody reads the output any more; the window goes on, and its report is written as ever\n"
