"""Windows: real ones, played by the product's own daemon in a process of their own. Rows 5 (replay) and 6 of the table.

Wake lag is what the journal says: how long after its time each stack was woken, or found to have missed its tick, and how
long after it had been shown its bundle. Memory a stack is the peak of a process with many stacks over that of one with a single stack.
Run as a script it plays one window file in one home and prints the peak of its memory.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledgers.clock import SystemClock
from ledgers.journal import Record, verify
from ledgers.store import Store
from ops.daemon import play_file
from ops.settings import Settings
from referee.onchain.events import BundleShown, TickMissed, Woken
from referee.onchain.replay import replay
from referee.onchain.state import decoded
from tests.bench.turns import Result

WAKE_P99_MS_MAX, STACK_MB_MAX = 100, 2
REPLAY_RATE_MIN = 20_000
COPIES_AT_ONCE = 50
REPLAYS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """A window to be played."""

    baseline: str
    stacks: int
    length_s: int
    interval_s: int

    def toml(self) -> str:
        """Its window file."""
        shares = [min(COPIES_AT_ONCE, self.stacks - start) for start in range(0, self.stacks, COPIES_AT_ONCE)]
        entries = [f'[[stack]]\nname = "s{at}"\nbaseline = "{self.baseline}"\ncopies = {share}\n' for at, share in enumerate(shares)]
        head = f'name = "bench"\nnetwork = "devnet"\nlength_s = {self.length_s}\ninterval_s = {self.interval_s}\nseed = 7\n'
        return head + "\n".join(entries)


@dataclass(frozen=True, slots=True)
class Played:
    """What a window left."""

    records: list[Record]
    peak_bytes: int


async def window_results(stacks: int, length_s: int, traders: int, *, at_once: bool) -> list[Result]:
    """Wake lag, memory a stack, and replay, of three windows; the first is played alone unless all are to be played at once."""
    plans = [Plan("hold", stacks, length_s, 3), Plan("hold", 1, length_s, 3), Plan("random", traders, length_s, 2)]
    with tempfile.TemporaryDirectory(prefix="bench-windows-") as directory:
        homes = [Path(directory) / str(at) for at in range(len(plans))]
        if at_once:
            many, one, traded = await asyncio.gather(*map(_play, homes, plans))
        else:
            many = await _play(homes[0], plans[0])
            one, traded = await asyncio.gather(*map(_play, homes[1:], plans[1:]))
    return [*_wakes(many, stacks), _memory(many, one, stacks), *_replays(traded)]


async def _play(home: Path, plan: Plan) -> Played:
    home.mkdir()
    (home / "window.toml").write_text(plan.toml())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.windows", str(home), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"a window of the bench did not play: {errors.decode()[-2_000:]}")
    with Store(home / "journal.db", exclusive=False) as store:
        return Played(list(store.journal("w1").read()), json.loads(out)["peak_bytes"])


def _wakes(played: Played, stacks: int) -> list[Result]:
    events = [decoded(record) for record in played.records]
    woken = [event for event in events if isinstance(event, Woken)]
    missed = [event for event in events if isinstance(event, TickMissed)]
    lags_ms = [event.lag_ms for event in woken] + [event.ts_ms - event.scheduled_ts_ms for event in missed]
    due = {(event.run_id, event.tick): event.scheduled_ts_ms for event in woken}
    shown = [event.ts_ms - due[event.run_id, event.tick] for event in events if isinstance(event, BundleShown)]
    against = f"{len(woken):,} wakes, {len(missed)} missed"
    return [
        _lag(f"wake lag p99, {stacks} stacks", lags_ms, against, WAKE_P99_MS_MAX),
        _lag(f"lag until shown p99, {stacks} stacks", shown, against, None),
    ]


def _lag(what: str, lags_ms: Sequence[int], against: str, limit: int | None) -> Result:
    p99 = statistics.quantiles(lags_ms, n=100, method="inclusive")[98]
    return Result(what=what, ours=f"median {statistics.median(lags_ms):.0f} ms", against=against, value=p99, unit="ms", limit=limit)


def _memory(many: Played, one: Played, stacks: int) -> Result:
    each = (many.peak_bytes - one.peak_bytes) / max(stacks - 1, 1) / 1e6
    return Result(
        what=f"memory a stack, {stacks} stacks", ours=f"peak {many.peak_bytes / 1e6:.0f} MB", against=f"{one.peak_bytes / 1e6:.0f} MB with one",
        value=each, unit="MB", limit=STACK_MB_MAX,
    )  # fmt: skip


def _replays(played: Played) -> list[Result]:
    events = len(played.records)
    seconds = []
    for _ in range(REPLAYS):
        begun = time.perf_counter()
        found = replay(played.records)
        seconds.append(time.perf_counter() - begun)
        assert found.difference is None, f"a window of the bench replays differently: {found.difference}"
    begun = time.perf_counter()
    verify(played.records)
    checked = time.perf_counter() - begun
    return [
        Result(
            what="replay of a real window", ours=f"{statistics.median(seconds) * 1e3:.0f} ms", against=f"{events:,} events of traders",
            value=events / statistics.median(seconds), unit="events/s", limit=REPLAY_RATE_MIN, at_least=True,
        ),
        Result(what="verify of a real window", ours=f"{checked * 1e3:.1f} ms", against=f"{sum(len(each.body) for each in played.records):,} bytes", value=events / checked, unit="events/s"),
    ]  # fmt: skip


async def _played_here(home: Path) -> int:
    await play_file(Settings(home=home), home / "window.toml", SystemClock())
    return peak_bytes()


def peak_bytes() -> int:
    """The peak of this process's memory; where the kernel does not keep it by program, it may be the parent's."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    return int(status.split("VmHWM:")[1].split()[0]) * 1_024


if __name__ == "__main__":
    print(json.dumps({"peak_bytes": asyncio.run(_played_here(Path(sys.argv[1])))}))
