"""The journal's speed, as ratios in one run: appends against a bare SQLite append, verify and decode in events/s.

Bare is Python's own sqlite3 on the same table with the same rows, WAL and synchronous FULL, one commit an event. Ours
encodes, chains, hands over to the writer thread, commits and wakes the task that waits. Both take turns, so that both
meet the same disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ledgers.events import decode, encode, kind_of
from ledgers.journal import Journal, Record, verify
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, Entry, Ledger, eth_posting, token_posting
from ledgers.seal import export, verify_export
from ledgers.store import Store
from referee.onchain.events import LEDGERS, FillCredited, TickMissed
from referee.onchain.kinds import KINDS

ROUNDS, ROUND_EVENTS, READ_EVENTS = 40, 64, 20_000
TOKEN = "0x" + "ab" * 20

Result = tuple[str, float, str]
"""What was measured, the number, and what it is a number of."""


def run(rounds: int = ROUNDS, events: int = READ_EVENTS) -> list[Result]:
    """Measure everything: so many rounds of appends, and reads of so many events."""
    with tempfile.TemporaryDirectory(prefix="bench-journal-") as directory:
        return [*asyncio.run(_appends(Path(directory), rounds)), *_reads(Path(directory), events)]


def fill(number: int) -> FillCredited:
    """A fill as large as real ones are."""
    entry = Entry(ledgers=LEDGERS, postings=(
        eth_posting(BOOK, Wei(-(10**15))), eth_posting("market", Wei(10**15 - 10**12)), eth_posting("gas", Wei(10**12)),
        token_posting(BOOK, TOKEN, TokenRaw(10**20)), token_posting("market", TOKEN, TokenRaw(-(10**20))),
    ))  # fmt: skip
    return FillCredited(
        run_id="w1-random-1", ts_ms=1_790_000_000_000 + number, order_id=f"w1-random-1/{number}/0", ledgers=LEDGERS, proven=True,
        tag="", side="buy", token=TOKEN, route="v3 0.3% weth>token", spent_raw=TokenRaw(10**15), arrival_raw=TokenRaw(10**20),
        gas_wei=Wei(10**12), approvals=(), entry=entry,
    )  # fmt: skip


async def _appends(directory: Path, rounds: int) -> list[Result]:
    bare = _bare(directory / "bare.db")
    handing, seqs, body = ThreadPoolExecutor(1), itertools.count(1), encode(fill(0))
    seconds: dict[str, list[float]] = {"bare": [], "handed": [], "1": [], "8": [], "32": []}
    with Store(directory / "journal.db", exclusive=True) as store:
        journal = store.journal("w1")
        for _ in range(rounds):
            started = time.perf_counter()
            for _ in range(ROUND_EVENTS):
                _append_bare(bare, ("w1", next(seqs), "FillCredited", body, "00" * 32))
            seconds["bare"].append((time.perf_counter() - started) / ROUND_EVENTS)
            started = time.perf_counter()
            for _ in range(ROUND_EVENTS):
                row = ("w1", next(seqs), "FillCredited", body, "00" * 32)
                await asyncio.get_running_loop().run_in_executor(handing, _append_bare, bare, row)
            seconds["handed"].append((time.perf_counter() - started) / ROUND_EVENTS)
            for tasks in (1, 8, 32):
                shares = [list(map(fill, range(ROUND_EVENTS // tasks))) for _ in range(tasks)]
                started = time.perf_counter()
                await asyncio.gather(*(_append_ours(journal, share) for share in shares))
                seconds[str(tasks)].append((time.perf_counter() - started) / ROUND_EVENTS)
    handing.shutdown()
    bare.close()
    each = {name: statistics.median(rounds) for name, rounds in seconds.items()}
    return [
        ("bare SQLite append", each["bare"] * 1e6, "µs per event"),
        ("bare SQLite append, in another thread", each["handed"] / each["bare"], "× a bare append: what handing over costs"),
        ("append at concurrency 1", (each["1"] - each["bare"]) * 1e6, "µs more than a bare append"),
        *((f"append at concurrency {tasks}", each[tasks] / each["bare"], "× a bare append (target ≤ 1.5)") for tasks in ("1", "8", "32")),
    ]


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE events (window_id TEXT, seq INTEGER, kind TEXT, body BLOB, link TEXT, PRIMARY KEY (window_id, seq)) WITHOUT ROWID"
    )
    return connection


def _append_bare(connection: sqlite3.Connection, row: tuple[str, int, str, bytes, str]) -> None:
    connection.execute("BEGIN")
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", row)
    connection.execute("COMMIT")


async def _append_ours(journal: Journal, fills: list[FillCredited]) -> None:
    for each in fills:
        await journal.append(each)


def _reads(directory: Path, events: int) -> list[Result]:
    records = asyncio.run(_chain(directory, events))
    with Store(directory / "read.db", exclusive=False) as store:
        journal = store.journal("w1")
        export(journal, directory / "w1.jsonl")
        bare = _rate(events, lambda: _bare_hashes(records))
        chain, stored = _rate(events, lambda: verify(records)), _rate(events, lambda: verify(journal.read()))
    return [
        ("verify a chain in memory", chain, "events/s (target ≥ 200,000)"),
        ("verify a chain in memory", bare / chain, "× the time of bare SHA-256 over the same bytes"),
        ("verify a chain in the store", stored, "events/s"),
        ("verify an export", _rate(events, lambda: verify_export(directory / "w1.jsonl")), "events/s"),
        ("decode fills", _rate(events, lambda: _decode(records)), "events/s (target ≥ 20,000)"),
        ("decode small events", _rate(events, lambda: _decode_small(events)), "events/s"),
        ("decode and fold fills into both ledgers", _rate(events, lambda: _fold(records)), "events/s"),
    ]


async def _chain(directory: Path, events: int) -> list[Record]:
    with Store(directory / "read.db", exclusive=True) as store:
        return list(await store.journal("w1").append(*map(fill, range(events))))


def _rate(events: int, work: Callable[[], object]) -> float:
    return events / min(_seconds(work) for _ in range(3))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _bare_hashes(records: list[Record]) -> None:
    link = bytes(32)
    for record in records:
        link = hashlib.sha256(link + record.kind.encode() + record.body).digest()


def _decode(records: list[Record]) -> None:
    for record in records:
        decode(record.kind, record.body, KINDS)


def _decode_small(events: int) -> None:
    event = TickMissed(run_id="w1-random-1", ts_ms=1, tick=1, scheduled_ts_ms=1, reason="late")
    kind, body = kind_of(event), encode(event)
    for _ in range(events):
        decode(kind, body, KINDS)


def _fold(records: list[Record]) -> None:
    ledgers = [Ledger(name) for name in LEDGERS]
    for ledger in ledgers:
        ledger.post(Entry(ledgers=LEDGERS, postings=(eth_posting(BOOK, Wei(10**30)), eth_posting("stake", Wei(-(10**30))))))
    for record in records:
        event = decode(record.kind, record.body, KINDS)
        for ledger in ledgers:
            ledger.post(event.entry)


if __name__ == "__main__":
    for name, number, meaning in run():
        print(f"{name:42}{number:>14,.2f}  {meaning}")
