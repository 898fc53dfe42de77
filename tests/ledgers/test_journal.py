"""The journal: one chain a window, appended whole or not at all, the same in memory and on disk."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.errors import CorruptJournal
from ledgers.events import decode, encode
from ledgers.identity import sha256_hex
from ledgers.journal import GENESIS, Journal, MemoryJournal, Record, link_of, verify
from ledgers.store import Store
from tests.ledgers.given import KINDS, counted, seal


@pytest.fixture(params=["memory", "store"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal("w1")
    else:
        with Store(tmp_path / "journal.db", exclusive=True) as store:
            yield store.journal("w1")


def chain(length: int) -> list[Record]:
    """A true chain."""
    records, link = [], GENESIS
    for seq in range(1, length + 1):
        body = encode(counted(seq))
        link = link_of(link, "Counted", body)
        records.append(Record(seq, "Counted", body, link))
    return records


async def test_an_empty_journal_stands_at_genesis(journal):
    assert (journal.head(), list(journal.read()), verify(journal.read())) == ((0, GENESIS), [], None)


async def test_appended_events_read_back_in_order_from_any_seq(journal):
    first = await journal.append(counted(1), counted(2))
    second = await journal.append(counted(3))
    assert list(journal.read()) == [*first, *second]
    assert list(journal.read(after_seq=2)) == [*second]
    assert [decode(record.kind, record.body, KINDS) for record in journal.read()] == [counted(1), counted(2), counted(3)]


async def test_the_head_is_the_last_record(journal):
    records = await journal.append(counted(1), counted(2))
    assert journal.head() == (2, records[-1].link)


async def test_the_link_is_the_sha256_of_link_kind_and_body(journal):
    first, second = await journal.append(counted(1), counted(2))
    link = hashlib.sha256(bytes(32) + b"Counted" + first.body).digest()
    assert first.link == link.hex()
    assert second.link == hashlib.sha256(link + b"Counted" + second.body).hexdigest()


async def test_an_append_with_one_bad_event_appends_nothing(journal):
    await journal.append(counted(1))
    with pytest.raises(TypeError):
        await journal.append(counted(2), replace(counted(3), count=1.5))
    assert journal.head()[0] == 1


async def test_an_append_of_nothing_changes_nothing(journal):
    assert await journal.append() == () and journal.head() == (0, GENESIS)


async def test_nothing_follows_the_seal(journal):
    await journal.append(counted(1))
    await seal(journal)
    with pytest.raises(CorruptJournal, match="sealed at record 2"):
        await journal.append(counted(2))
    assert journal.head()[0] == 2


async def test_nothing_follows_the_seal_inside_one_append(journal):
    with pytest.raises(CorruptJournal):
        await journal.append(*[decode("WindowSealed", b'{"events":0,"root":"","run_id":"w1","ts_ms":1}', KINDS)], counted(1))
    assert journal.head() == (0, GENESIS)


async def test_blobs_come_back_by_their_hash(journal):
    data = b"evidence " * 1_000
    await journal.append(counted(1), blobs={sha256_hex(data): data, sha256_hex(b""): b""})
    assert (journal.blob(sha256_hex(data)), journal.blob(sha256_hex(b"")), journal.blob("00" * 32)) == (data, b"", None)


async def test_a_blob_under_another_name_is_refused_with_its_events(journal):
    with pytest.raises(ValueError, match="name blobs by their SHA-256"):
        await journal.append(counted(1), blobs={"00" * 32: b"data"})
    assert journal.head() == (0, GENESIS)


async def test_many_tasks_append_to_one_unforked_chain(journal):
    async def append(task: int) -> None:
        for step in range(10):
            await journal.append(counted(task), counted(step))

    await asyncio.gather(*(append(task) for task in range(20)))
    assert verify(journal.read()) == list(journal.read())[-1] and journal.head()[0] == 400


@given(st.integers(1, 12), st.data())
def test_any_change_inside_is_named_by_its_seq(length, data):
    records = chain(length)
    at = data.draw(st.integers(0, length - 1))
    part = data.draw(st.sampled_from(["kind", "body", "link"]))
    if part == "body":
        bit = data.draw(st.integers(0, len(records[at].body) * 8 - 1))
        body = bytearray(records[at].body)
        body[bit // 8] ^= 1 << bit % 8
        records[at] = replace(records[at], body=bytes(body))
    else:
        records[at] = replace(records[at], **{part: {"kind": "Counter", "link": "ab" * 32}[part]})
    with pytest.raises(CorruptJournal) as caught:
        verify(records)
    assert caught.value.seq == at + 1


@given(st.integers(2, 12), st.data())
def test_a_missing_doubled_or_swapped_record_is_named_by_its_seq(length, data):
    records = chain(length)
    at = data.draw(st.integers(0, length - 2))
    how = data.draw(st.sampled_from(["missing", "doubled", "swapped"]))
    if how == "missing":
        del records[at]
    elif how == "doubled":
        records.insert(at, records[at])
        at += 1
    else:
        records[at], records[at + 1] = records[at + 1], records[at]
    with pytest.raises(CorruptJournal) as caught:
        verify(records)
    assert caught.value.seq == at + 1


def test_the_seam_between_kind_and_body_cannot_be_moved():
    (record,) = chain(1)
    text = record.kind.encode() + record.body
    moved = replace(record, kind=text[:8].decode(), body=text[8:])
    with pytest.raises(CorruptJournal):
        verify([moved])


def test_a_chain_is_verified_from_where_it_was_left():
    records = chain(5)
    assert verify(records[3:], after=(3, records[2].link)) == records[-1]
    with pytest.raises(CorruptJournal):
        verify(records[3:], after=(3, GENESIS))
