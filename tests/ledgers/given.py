"""A tiny bench of its own: two kinds, and events of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ledgers.events import Event
from ledgers.journal import Journal
from ledgers.money import TokenRaw, Wei

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    amount_raw: TokenRaw | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Event):
    count: int
    note: str
    value_wei: Wei
    parts: tuple[Part, ...]
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSealed(Event):
    events: int
    root: str


KINDS = (Counted, WindowSealed)


def counted(count: int, note: str = "a note") -> Counted:
    """An event with a bit of everything."""
    parts = (Part(name="one", amount_raw=TokenRaw(10**20 + count)), Part(name="two", amount_raw=None))
    return Counted(run_id="w1-hold-1", ts_ms=1_790_000_000_000 + count, count=count, note=note, value_wei=Wei(-count), parts=parts, sure=True)


async def seal(journal: Journal) -> None:
    """End a window truthfully."""
    seq, root = journal.head()
    await journal.append(WindowSealed(run_id=journal.window_id, ts_ms=1_790_000_999_999, events=seq, root=root))


def python(program: str, *args: object) -> subprocess.Popen[str]:
    """Start a program of ours in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, args)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
