"""The seal: an export that a stranger can judge, and a verdict that names the first bad record."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgers.errors import CorruptJournal, StoreFault
from ledgers.events import decode
from ledgers.journal import MemoryJournal
from ledgers.journal_md import PATH
from ledgers.seal import Standing, export, line_of, read_export, verdict, verify_export, verify_journal
from tests.ledgers.given import KINDS, WindowSealed, counted, seal

NOTES = ("plain", 'quote " and \\ and /', "control \x00\x1f\x7f\b\f\n\r\t", "\u2028\u2029 line ends", "日本 🦊 \U0010ffff", "")


async def window(length: int = 6, sealed: bool = True) -> MemoryJournal:
    """A window of some events, sealed or not."""
    journal = MemoryJournal("w1")
    for count in range(length):
        await journal.append(counted(count, NOTES[count % len(NOTES)]))
    if sealed:
        await seal(journal)
    return journal


async def test_an_export_reads_back_record_by_record(tmp_path):
    journal = await window()
    assert export(journal, tmp_path / "w1.jsonl") == 7
    assert list(read_export(tmp_path / "w1.jsonl")) == list(journal.read())


async def test_a_sealed_window_is_complete(tmp_path):
    journal = await window()
    export(journal, tmp_path / "w1.jsonl")
    found = verify_export(tmp_path / "w1.jsonl")
    assert found == verify_journal(journal)
    assert (found.standing, found.seq, found.root, found.first_bad_seq) == (Standing.COMPLETE, 7, journal.head()[1], None)


@pytest.mark.parametrize("length", [0, 1, 6])
async def test_a_window_without_its_seal_is_truncated(tmp_path, length):
    journal = await window(length, sealed=False)
    export(journal, tmp_path / "w1.jsonl")
    found = verify_export(tmp_path / "w1.jsonl")
    assert (found.standing, found.seq, found.first_bad_seq) == (Standing.TRUNCATED, length, length + 1)


async def test_a_kept_journal_without_its_seal_is_open_not_cut_off():
    found = verify_journal(await window(3, sealed=False))
    assert (found.standing, found.seq, found.first_bad_seq) == (Standing.OPEN, 3, 4) and "not finished" in found.message


async def test_every_cut_is_truncated_and_says_where(tmp_path):
    journal = await window(3)
    whole = b"".join(map(line_of, journal.read()))
    for size in range(len(whole)):
        (tmp_path / "cut.jsonl").write_bytes(whole[:size])
        found = verify_export(tmp_path / "cut.jsonl")
        assert (found.standing, found.first_bad_seq) == (Standing.TRUNCATED, whole[:size].count(b"\n") + 1)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_every_flipped_bit_is_named_by_its_seq(tmp_path, data):
    whole = b"".join(map(line_of, (await window(3)).read()))
    at = data.draw(st.integers(0, len(whole) - 2))  # without its last line feed a file is cut off, not corrupt
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    (tmp_path / "flipped.jsonl").write_bytes(flipped)
    found = verify_export(tmp_path / "flipped.jsonl")
    assert (found.standing, found.first_bad_seq) == (Standing.CORRUPT, whole[:at].count(b"\n") + 1)


@pytest.mark.parametrize("line", [
    b"\n", b"{}\n", b"[]\n", b"null\n", b'{"seq":1}\n', b"\xff\n", b'{"seq":1,"kind":"A","body":{"a":1e3},"link":""}\n',
    b'{"seq":1,"kind":"A","body":{"a":1,"a":2},"link":"00"}\n', b'{"seq": 1,"kind":"A","body":{},"link":"00"}\n',
    b'{"seq":1,"kind":"A","body":' + b"[" * 2_000 + b"]" * 2_000 + b',"link":"00"}\n',
])  # fmt: skip
def test_a_line_that_is_not_exactly_a_record_is_corrupt(tmp_path, line):
    (tmp_path / "odd.jsonl").write_bytes(line)
    assert verify_export(tmp_path / "odd.jsonl").standing is Standing.CORRUPT
    with pytest.raises(CorruptJournal, match="line 1"):
        list(read_export(tmp_path / "odd.jsonl"))


@pytest.mark.parametrize("said", [{"events": 4}, {"root": "ab" * 32}])
async def test_a_seal_that_says_something_untrue_is_corrupt(said):
    journal = await window(3, sealed=False)
    seq, root = journal.head()
    await journal.append(WindowSealed(**{"run_id": "w1", "ts_ms": 1, "events": seq, "root": root, **said}))
    found = verify_journal(journal)
    assert (found.standing, found.seq, found.first_bad_seq) == (Standing.CORRUPT, 3, 4)


async def test_a_record_after_the_seal_is_corrupt():
    sealed, longer = await window(3), await window(4, sealed=False)
    records = [*sealed.read(), *longer.read(after_seq=3)]
    records[-1] = type(records[-1])(5, records[-1].kind, records[-1].body, records[-1].link)
    assert verdict(records).first_bad_seq == 5


async def test_an_export_that_cannot_be_finished_leaves_nothing_behind(tmp_path):
    class Broken(MemoryJournal):
        def read(self, after_seq: int = 0):
            yield from super().read(after_seq)
            raise CorruptJournal("damaged")

    journal = Broken("w1")
    await journal.append(counted(1))
    with pytest.raises(CorruptJournal):
        export(journal, tmp_path / "w1.jsonl")
    assert list(tmp_path.iterdir()) == []


async def test_an_export_replaces_an_older_one_only_when_complete(tmp_path):
    path = tmp_path / "w1.jsonl"
    export(await window(2), path)
    export(await window(3), path)
    assert verify_export(path).seq == 4 and list(tmp_path.iterdir()) == [path]


async def test_an_export_into_nowhere_is_a_fault(tmp_path):
    with pytest.raises(StoreFault, match="nothing was left behind"):
        export(await window(1), tmp_path / "missing" / "w1.jsonl")


def test_an_export_that_is_not_there_is_a_fault(tmp_path):
    with pytest.raises(StoreFault, match="cannot read"):
        verify_export(tmp_path / "missing.jsonl")


async def test_the_program_printed_for_strangers_agrees(tmp_path):
    program = tmp_path / "stranger.py"
    program.write_text(re.search(r"```python\n(.*?)```", PATH.read_text("utf-8"), re.DOTALL)[1], "utf-8")

    def judged(path: Path) -> str:
        done = subprocess.run([sys.executable, "-I", program, path], capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    journal = await window()
    export(journal, tmp_path / "w1.jsonl")
    export(await window(sealed=False), tmp_path / "open.jsonl")
    (tmp_path / "bad.jsonl").write_bytes((tmp_path / "w1.jsonl").read_bytes().replace(b'"count":3', b'"count":4'))
    assert judged(tmp_path / "w1.jsonl") == f"COMPLETE 7 {journal.head()[1]}"
    assert judged(tmp_path / "open.jsonl").startswith("TRUNCATED 6 ")
    assert judged(tmp_path / "bad.jsonl") == "AssertionError: record 4 does not hold"


async def test_exported_events_decode(tmp_path):
    export(await window(), tmp_path / "w1.jsonl")
    events = [decode(record.kind, record.body, KINDS) for record in read_export(tmp_path / "w1.jsonl")]
    assert events[:6] == [counted(count, NOTES[count]) for count in range(6)]
