"""Fresh exam turns: captured from a chain that was never played before, so that nobody can have looked them up.

Two short windows of the local chain are played under a random seed in a folder of their own, one over honest tokens and one
over tokens that lie, tax, refuse and instruct; three turns of them, of the kinds of the published ones, become sheets.
What the published turns show is the ability to read and answer; what these show is that it was done on data not seen.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from exam.sheets import Sheet
from ledgers.clock import Clock
from ledgers.store import Store
from ops.capturing import capture
from ops.daemon import play_file
from ops.local_chain import steer
from ops.settings import Settings

WINDOWS = Path(__file__).parent / "windows"
LENGTH_S, INTERVAL_S = 18, 4
KINDS = (
    ("exam-calm", (("hold", 2, "4-fresh-book", "a book without holdings, on a chain that nobody had seen"),
                   ("equal", 3, "5-fresh-book-to-sell", "a book with holdings, on a chain that nobody had seen"))),
    ("exam-hostile", (("equal", 3, "6-fresh-hostile-texts", "tokens that lie and instruct, on a chain that nobody had seen"),)),
)  # fmt: skip
"""The windows, and of each the stack, the tick, the name and the purpose of the sheets."""


def fresh_sheets(clock: Clock) -> tuple[Sheet, ...]:
    """Play and capture them; takes about a minute and a half. Raises: whatever playing a window does."""
    with tempfile.TemporaryDirectory(prefix="referee-exam-") as folder:
        return tuple(_captured(Path(folder), clock))


def _captured(folder: Path, clock: Clock) -> Iterator[Sheet]:
    for name, turns in KINDS:
        settings = Settings(home=folder / name)
        file = folder / f"{name}.toml"
        file.write_text(_window(name))
        try:
            played = asyncio.run(play_file(settings, file, clock))
            with Store(settings.store_path, exclusive=False) as store:
                journal = store.journal(played.window_id)
                for stack, tick, sheet, purpose in turns:
                    yield asyncio.run(capture(journal, f"{played.window_id}-{stack}-1", tick, sheet, purpose, clock))
        finally:
            steer(settings, "down")


def _window(name: str) -> str:
    """The window of the published turns, shorter and under a seed of its own."""
    lines = (WINDOWS / f"{name}.toml").read_text("utf-8").splitlines()
    new = {"length_s": LENGTH_S, "interval_s": INTERVAL_S, "seed": secrets.randbelow(2**31)}
    return "\n".join(f"{key} = {new[key]}" if (key := line.partition(" = ")[0]) in new else line for line in lines) + "\n"
