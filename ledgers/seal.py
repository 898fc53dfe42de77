"""The seal: a window's chain as a file for strangers, and the verdict on a chain.

An export is UTF-8 text with one record a line, exactly `{"seq":1,"kind":"…","body":{…},"link":"…"}` and a line feed; the
body is the canonical JSON that was hashed. A whole chain ends in a `WindowSealed` that counts the records before it and
repeats the link before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import orjson

from ledgers.errors import CorruptJournal, StoreFault
from ledgers.journal import GENESIS, SEAL, Journal, Record, verify
from ledgers.whole_file import whole_file


LINE = re.compile(rb'\{"seq":([1-9]\d{0,14}),"kind":"([A-Za-z0-9]+)","body":(\{.*\}),"link":"([0-9a-f]{64})"\}\n')


class Standing(StrEnum):
    """How a chain stands."""

    COMPLETE = "COMPLETE"
    """Every link holds and the last record is the seal."""
    OPEN = "OPEN"
    """Every link of a kept journal holds, but it has no seal: its window is not finished."""
    TRUNCATED = "TRUNCATED"
    """Every link of an exported file holds, but the end is missing: exported too early, or cut off."""
    CORRUPT = "CORRUPT"
    """A record does not hold."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying a chain found."""

    standing: Standing
    seq: int
    """Last record that holds; 0 when none does."""
    root: str
    """Link of that record: the last link, by which a whole window is known."""
    first_bad_seq: int | None
    """First record that does not hold or is missing; None when COMPLETE."""
    message: str
    """One sentence for a person."""


def line_of(record: Record) -> bytes:
    """Write a record as its one export line."""
    head = f'{{"seq":{record.seq},"kind":"{record.kind}","body":'.encode()
    return head + record.body + f',"link":"{record.link}"}}\n'.encode()


def export(journal: Journal, target: Path | BinaryIO) -> int:
    """Write a journal as JSON lines and return how many records it has.

    A path is replaced only when all is written and on disk. Raises: StoreFault when it cannot be written."""
    if not isinstance(target, Path):
        return _write(journal, target)
    with whole_file(target) as file:
        return _write(journal, file)


def read_export(path: Path) -> Iterator[Record]:
    """Yield the records of an exported file. Raises: CorruptJournal at a line that is not exactly one record."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield _record_of(line, number)


def verify_export(path: Path) -> Verdict:
    """Judge an exported file. A last line without its line feed was cut off. Raises: StoreFault when it cannot be read."""
    try:
        return verdict(_whole_lines(path))
    except OSError as error:
        raise StoreFault(f"cannot read {path}: {error.strerror or error}") from error


def verify_journal(journal: Journal) -> Verdict:
    """Judge a journal where it is kept: there a missing seal means that the window is not finished."""
    found = verdict(journal.read())
    if found.standing is not Standing.TRUNCATED:
        return found
    message = f"{found.seq} records hold, last link {found.root}; the window is not finished: it runs, or waits for a resume"
    return replace(found, standing=Standing.OPEN, message=message)


def verdict(records: Iterable[Record]) -> Verdict:
    """Judge a chain, given in order."""
    walk = _Walk()
    try:
        verify(walk.over(records))
    except CorruptJournal as error:
        return Verdict(Standing.CORRUPT, walk.seq, walk.root, error.seq, str(error))
    if walk.sealed:
        return Verdict(Standing.COMPLETE, walk.seq, walk.root, None, f"{walk.seq} records hold, the last is the seal; last link {walk.root}")
    message = f"{walk.seq} records hold, last link {walk.root}, but there is no seal: exported before the window ended, or cut off"
    return Verdict(Standing.TRUNCATED, walk.seq, walk.root, walk.seq + 1, message)


class _Walk:
    """What was passed so far; a record counts once the next one is asked for, because then its link held."""

    def __init__(self) -> None:
        self.seq, self.root, self.sealed = 0, GENESIS, False

    def over(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            yield record
            if record.kind == SEAL:
                self._check_seal(record)
                self.sealed = True
            self.seq, self.root = record.seq, record.link

    def _check_seal(self, record: Record) -> None:
        said = orjson.loads(record.body)
        if (said.get("events"), said.get("root")) != (self.seq, self.root):
            raise CorruptJournal(
                f"the seal counts {said.get('events')} records up to {said.get('root')}, found {self.seq} up to {self.root}",
                record.seq,
            )


def _write(journal: Journal, file: BinaryIO) -> int:
    count = 0
    for record in journal.read():
        file.write(line_of(record))
        count += 1
    return count


def _whole_lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield _record_of(line, number)


def _record_of(line: bytes, number: int) -> Record:
    parts = LINE.fullmatch(line)
    if parts is None:
        raise CorruptJournal(f"line {number} is not a record in the one form", number)
    seq, kind, body, link = parts.groups()
    try:
        canonical = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    except ValueError as error:
        raise CorruptJournal(f"line {number} has a body that is not JSON: {error}", number) from error
    if canonical != body:
        raise CorruptJournal(f"line {number} has a body that is not in canonical form", number)
    return Record(int(seq), kind.decode(), body, link.decode())
