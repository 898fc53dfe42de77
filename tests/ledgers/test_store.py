"""The store: what was acknowledged stays, whatever happens to the process, the disk or the file."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ledgers.errors import CorruptJournal, StoreFault
from ledgers.identity import sha256_hex
from ledgers.journal import GENESIS, Record, verify
from ledgers.store import MIGRATIONS, EmptyStore, RunRow, Store, WindowRow
from tests.ledgers.given import counted, python

NOBODY = 65_534

APPENDING = """
import asyncio, sys
from pathlib import Path
from ledgers.identity import sha256_hex
from ledgers.store import Store
from tests.ledgers.given import counted

async def append(journal, task):
    for step in range(1_000_000):
        data = f"{task}-{step}".encode() * 500
        records = await journal.append(counted(step), counted(task), blobs={sha256_hex(data): data})
        print(records[-1].seq, sha256_hex(data), flush=True)

async def main():
    journal = Store(Path(sys.argv[1]), exclusive=True).journal("w1")
    await asyncio.gather(*(append(journal, task) for task in range(4)))

asyncio.run(main())
"""

FILLING = """
import asyncio, resource, signal, sys
from pathlib import Path
from ledgers.errors import StoreFault
from ledgers.store import Store
from tests.ledgers.given import counted

async def main():
    store = Store(Path(sys.argv[1]), exclusive=True)
    journal = store.journal("w1")
    await journal.append(counted(0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    done = 1
    try:
        while True:
            await journal.append(counted(done, "x" * 2_000))
            done += 1
    except StoreFault as fault:
        print(done, journal.head()[0], fault, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await journal.append(counted(done, "room again"))
    store.close()

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"


async def filled(path: Path, length: int, note: str = "a note") -> None:
    """Make a store with one window."""
    with Store(path, exclusive=True) as store:
        for count in range(length):
            await store.journal("w1").append(counted(count, note))


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_a_killed_process_loses_nothing_it_acknowledged_and_its_chain_holds(path, lines):
    with python(APPENDING, path) as process:
        acknowledged = [process.stdout.readline().split() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        acknowledged += [line.split() for line in process.stdout if line.endswith("\n")]
    with Store(path, exclusive=True) as store:
        journal = store.journal("w1")
        last = verify(journal.read())
        assert last.seq >= max(int(seq) for seq, _ in acknowledged) and last.seq % 2 == 0
        assert all(journal.blob(blob) is not None for _, blob in acknowledged)


async def test_a_store_goes_on_where_a_killed_process_left_it(path):
    with python(APPENDING, path) as process:
        process.stdout.readline()
        process.kill()
    with Store(path, exclusive=True) as store:
        journal = store.journal("w1")
        seq, _ = journal.head()
        await journal.append(counted(1))
        assert verify(journal.read()).seq == seq + 1


def test_a_second_daemon_is_refused_and_told_who_holds_the_store(path):
    with python(APPENDING, path) as process:
        process.stdout.readline()
        with pytest.raises(StoreFault, match=f"in use by process {process.pid}; .* REFEREE_HOME"):
            Store(path, exclusive=True)
        process.kill()
    Store(path, exclusive=True).close()


async def test_readers_look_on_while_the_daemon_writes(path):
    with Store(path, exclusive=True) as store:
        await store.journal("w1").append(counted(1))
        with Store(path, exclusive=False) as reader:
            journal = reader.journal("w1")
            assert journal.head()[0] == 1
            await store.journal("w1").append(counted(2))
            assert (journal.head()[0], verify(journal.read()).seq, reader.window_ids()) == (2, 2, ["w1"])


async def test_a_reader_cannot_write(path):
    await filled(path, 1)
    with Store(path, exclusive=False) as reader:
        with pytest.raises(StoreFault, match="reading only"):
            await reader.journal("w1").append(counted(2))
        with pytest.raises(StoreFault, match="reading only"):
            reader.rebuild("w1", [])


def test_a_full_disk_is_a_fault_and_the_chain_stays_whole(path):
    with python(FILLING, path) as process:
        out, errors = process.communicate()
    assert process.returncode == 0, errors
    done, head, fault = out.split(maxsplit=2)
    assert done == head and "could not be written" in fault and "Make room" in fault
    with Store(path, exclusive=True) as store:
        assert verify(store.journal("w1").read()).seq == int(done) + 1


async def test_an_append_that_fails_fails_alone(path):
    with Store(path, exclusive=True) as store:
        journal = store.journal("w1")
        bad = journal.append(counted(0), blobs={"00" * 32: b"other"})
        outcomes = await asyncio.gather(*(journal.append(counted(1)) for _ in range(5)), bad, *(journal.append(counted(2)) for _ in range(5)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [tuple] * 5 + [ValueError] + [tuple] * 5
        assert verify(journal.read()).seq == 10


async def test_a_store_that_was_removed_acknowledges_nothing(path):
    with Store(path, exclusive=True) as store:
        journal = store.journal("w1")
        await journal.append(counted(1))
        path.unlink()
        with pytest.raises(StoreFault, match="could not be written"):
            await journal.append(counted(2))


async def test_a_daemon_whose_lock_was_taken_away_writes_no_more(path):
    with Store(path, exclusive=True) as store:
        journal = store.journal("w1")
        await journal.append(counted(1))
        path.with_name("journal.db.lock").unlink()
        with pytest.raises(StoreFault, match="removed or replaced"):
            await journal.append(counted(2))
        assert journal.head()[0] == 1


async def test_a_closed_store_takes_no_append(path):
    store = Store(path, exclusive=True)
    journal = store.journal("w1")
    store.close()
    with pytest.raises(StoreFault, match="closed"):
        await journal.append(counted(1))


async def test_closing_commits_what_waits(path):
    store = Store(path, exclusive=True)
    waiting = [asyncio.ensure_future(store.journal("w1").append(counted(count))) for count in range(20)]
    await asyncio.sleep(0)
    store.close()
    await asyncio.gather(*waiting)
    with Store(path, exclusive=False) as reader:
        assert reader.journal("w1").head()[0] == 20


async def test_windows_have_chains_of_their_own(path):
    with Store(path, exclusive=True) as store:
        await asyncio.gather(*(store.journal(f"w{window}").append(counted(step)) for step in range(5) for window in (2, 1, 3)))
        assert store.window_ids() == ["w1", "w2", "w3"]
        assert [verify(store.journal(window).read()).seq for window in store.window_ids()] == [5, 5, 5]


async def test_a_long_journal_reads_through_in_order(path):
    with Store(path, exclusive=True) as store:
        await store.journal("w1").append(*map(counted, range(4_500)))
        assert [record.seq for record in store.journal("w1").read(after_seq=3)] == list(range(4, 4_501))


COLUMNS = {"kind": 0, "body": 0, "link": 0}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("seq", [1, 4, 9])
async def test_a_bit_flipped_in_a_record_is_named_by_its_seq(path, column, seq):
    await filled(path, 9)
    database = sqlite3.connect(path)
    (value,) = database.execute(f"SELECT {column} FROM events WHERE seq = ?", (seq,)).fetchone()
    raw = value.encode() if isinstance(value, str) else value
    flipped = bytes([raw[0], raw[1] ^ 0x80, *raw[2:]])
    kept_as = "BLOB" if column == "body" else "TEXT"
    database.execute(f"UPDATE events SET {column} = CAST(? AS {kept_as}) WHERE seq = ?", (flipped, seq))
    database.commit()
    database.close()
    with Store(path, exclusive=False) as reader, pytest.raises(CorruptJournal) as caught:
        verify(reader.journal("w1").read())
    assert caught.value.seq == seq


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
async def test_damage_anywhere_in_the_file_is_never_read_as_truth(path, place):
    await filled(path, 200, "y" * 300)
    with Store(path, exclusive=False) as reader:
        truth = list(reader.journal("w1").read())
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * place))
        file.write(os.urandom(64))
    read: list[Record] = []
    with Store(path, exclusive=False) as reader, contextlib.suppress(CorruptJournal):
        verify(each for each in reader.journal("w1").read() if not read.append(each))
    held = [record for record, true in zip(read, truth, strict=False) if record == true]
    assert len(read) - len(held) <= 1, "only the record that verify refused may differ"


async def test_a_blob_that_changed_is_corrupt(path):
    data = b"evidence" * 50
    with Store(path, exclusive=True) as store:
        await store.journal("w1").append(counted(1), blobs={sha256_hex(data): data})
        database = sqlite3.connect(path)
        database.execute("UPDATE blobs SET data = substr(data, 1, 10)")
        database.commit()
        database.close()
        with pytest.raises(CorruptJournal, match=sha256_hex(data)):
            store.journal("w1").blob(sha256_hex(data))


async def test_a_blob_of_many_windows_is_kept_once_and_packed(path):
    data = b"0123456789abcdef" * 10_000
    with Store(path, exclusive=True) as store:
        for window in ("w1", "w2"):
            await store.journal(window).append(counted(1), blobs={sha256_hex(data): data})
    ((count, size),) = sqlite3.connect(path).execute("SELECT count(*), sum(length(data)) FROM blobs").fetchall()
    assert count == 1 and size < len(data) // 10


def run_row(run_id: str, **changed: object) -> RunRow:
    """A run as lists show it."""
    values = {"window_id": "w1", "stack": "hold", "stack_sha256": "ab", "copy_number": 1, "status": "SCORED", "reason": "", "stake_wei": str(2**70)}
    return RunRow(**{**values, "run_id": run_id, "turns_answered": 1, "turns_total": 1, "fills": 0, **changed})


async def test_a_bug_in_one_job_leaves_the_writer_at_work(path):
    with Store(path, exclusive=True) as store:
        with pytest.raises(ZeroDivisionError):
            await store._writer.written(lambda: 1 // 0)
        await store.journal("w1").append(counted(1))
        assert store.journal("w1").head()[0] == 1


async def test_a_path_may_hold_any_characters(tmp_path):
    await filled(tmp_path / "a home?x=1#%41" / "journal.db", 1)
    assert (tmp_path / "a home?x=1#%41" / "journal.db").stat().st_size > 0


def test_read_tables_are_replaced_window_by_window(path):
    with Store(path, exclusive=True) as store:
        store.rebuild("w1", [run_row("w1-b"), run_row("w1-a")])
        store.rebuild("w2", [run_row("w2-a", window_id="w2")])
        store.rebuild("w1", [run_row("w1-c", headline_wei=str(2**70))])
        assert [(row.run_id, row.headline_wei) for row in store.rows(RunRow)] == [("w1-c", str(2**70)), ("w2-a", None)]
        assert store.rows(WindowRow) == []


def test_a_rebuild_that_cannot_be_written_changes_nothing(path):
    with Store(path, exclusive=True) as store:
        store.rebuild("w1", [run_row("w1-a")])
        with pytest.raises(StoreFault):
            store.rebuild("w1", [run_row("w1-b"), run_row("w1-b")])
        assert [row.run_id for row in store.rows(RunRow)] == ["w1-a"]


async def test_a_store_of_a_newer_version_is_refused_and_untouched(path):
    await filled(path, 1)
    database = sqlite3.connect(path)
    database.execute("UPDATE schema_version SET version = ?", (len(MIGRATIONS) + 1,))
    database.commit()
    database.close()
    for exclusive in (True, False):
        with pytest.raises(StoreFault, match="newer version"):
            Store(path, exclusive=exclusive)


def test_a_reader_without_a_store_is_told_so_and_makes_none(path):
    with pytest.raises(StoreFault, match="nothing has been run"):
        Store(path, exclusive=False)
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(path):
    path.parent.mkdir()
    path.write_bytes(b"this is not a database " * 1_000)
    with pytest.raises(StoreFault, match="cannot be opened"):
        Store(path, exclusive=True)
    assert path.read_bytes().startswith(b"this is not")


async def test_damage_that_shows_when_the_store_is_opened_is_corruption(path):
    await filled(path, 200)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 8)
    with pytest.raises(CorruptJournal, match="damaged"):
        Store(path, exclusive=False)


@pytest.mark.parametrize("left", [b"", "WAL"])
def test_a_store_whose_maker_was_killed_before_its_first_table_is_empty(path, left):
    path.parent.mkdir()
    path.write_bytes(b"")
    if left:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(EmptyStore, match="nothing has been run"):
        Store(path, exclusive=False)
    with Store(path, exclusive=True) as store:
        assert store.window_ids() == []


async def test_appends_are_written_ahead_and_synced_in_full(path):
    with Store(path, exclusive=True) as store:
        await store.journal("w1").append(counted(1))
        assert path.with_name("journal.db-wal").stat().st_size > 0
        assert store.journal("w2").head() == (0, GENESIS)
        modes = [store._writing.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
        assert modes == ["wal", 2]


READING_AS_NOBODY = """
import os, sys
from pathlib import Path
from ledgers.errors import StoreFault
from ledgers.store import Store
Store(Path(sys.argv[1]), exclusive=False).close()
os.setuid(int(sys.argv[2])) if os.getuid() == 0 else os.chmod(Path(sys.argv[1]).parent, 0o555)
try:
    with Store(Path(sys.argv[1]), exclusive=False) as store:
        print([store.window_ids(), store.journal("w1").head()[0]])
except StoreFault as fault:
    print(fault)
"""


@pytest.fixture
def public_folder():
    """A folder that everybody may look into, and only its owner may write."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        yield Path(made)


def read_as_nobody(path: Path) -> str:
    done = subprocess.run([sys.executable, "-c", READING_AS_NOBODY, str(path), str(NOBODY)], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60)
    os.chmod(path.parent, 0o755)
    return done.stdout + done.stderr


async def test_a_closed_journal_reads_where_nothing_may_be_written(public_folder):
    with Store(public_folder / "journal.db", exclusive=True) as store:
        await store.journal("w1").append(counted(0))
    assert read_as_nobody(public_folder / "journal.db") == "[['w1'], 1]\n"


async def test_a_journal_that_was_not_closed_says_why_it_cannot_be_read_there(public_folder):
    with Store(public_folder / "journal.db", exclusive=True) as store:
        await store.journal("w1").append(counted(0))
        said = read_as_nobody(public_folder / "journal.db")
    assert "was not closed there" in said and "REFEREE_HOME" in said
