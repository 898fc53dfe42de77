"""The journal: one hash chain of events per window, and the only truth; everything else is a fold over it.

Link formula: link = SHA-256(previous link's 32 bytes ‖ kind ‖ body), the first previous link being 32 zero bytes. A kind
is letters and digits, a body starts with `{`, so the seam between them cannot be moved. `ledgers/JOURNAL.md` says the
same for strangers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from ledgers.errors import CorruptJournal
from ledgers.events import Event, encode, kind_of
from ledgers.identity import sha256_hex

GENESIS = "00" * 32
"""The link before the first record."""

SEAL = "WindowSealed"
"""The kind that ends a window in every bench; nothing may follow it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One link of the chain."""

    seq: int
    """Place in the window, from 1, without gaps."""
    kind: str
    body: bytes
    """The event's fields as canonical JSON."""
    link: str
    """64 lower-case hex digits."""


class Journal(Protocol):
    """What a window may ask of its record."""

    window_id: str

    async def append(self, *events: Event, blobs: Mapping[str, bytes] | None = None) -> tuple[Record, ...]:
        """Append events and the blobs they name as one atomic transaction; return once it is durable.

        Shapes: records in the order of the events; blobs by their SHA-256. Raises: StoreFault when it could not be
        written, CorruptJournal when the window is sealed, TypeError or ValueError for an event that does not encode.
        When the awaiting task is cancelled, the append may still happen: read the journal to know."""
        ...

    def read(self, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records after a seq, in order."""
        ...

    def head(self) -> tuple[int, str]:
        """Return the last seq and link; (0, GENESIS) when empty."""
        ...

    def blob(self, sha256: str) -> bytes | None:
        """Return the bytes with this hash, or None when they were not kept."""
        ...


def is_sealed(journal: Journal) -> bool:
    """Tell whether a window's record has its end; reads the last record alone."""
    seq, _ = journal.head()
    return seq > 0 and any(record.kind == SEAL for record in journal.read(seq - 1))


def link_of(previous: str, kind: str, body: bytes) -> str:
    """Compute a record's link from the one before it."""
    return sha256(bytes.fromhex(previous) + kind.encode() + body).hexdigest()


def verify(records: Iterable[Record], after: tuple[int, str] = (0, GENESIS)) -> Record | None:
    """Walk a chain and return its last record, None when there is none.

    Shapes: records in order, following the seq and link in `after`. Raises: CorruptJournal naming the first bad seq."""
    seq, link = after
    last: Record | None = None
    for record in records:
        seq += 1
        if last is not None and last.kind == SEAL:
            raise CorruptJournal(f"record {seq} follows the seal of the window", seq)
        if record.seq != seq:
            raise CorruptJournal(f"expected record {seq}, found {record.seq}: records are missing or out of order", seq)
        if not (record.kind.isalnum() and record.kind.isascii() and record.body[:1] == b"{"):
            raise CorruptJournal(f"record {seq} is not a kind and a JSON object", seq)
        found = sha256(bytes.fromhex(link) + record.kind.encode() + record.body).hexdigest()
        if found != record.link:
            raise CorruptJournal(f"record {seq} ({record.kind}) does not link to the one before it", seq)
        link = found
        last = record
    return last


def encoded(events: Sequence[Event]) -> list[tuple[str, bytes]]:
    """Encode events to be chained. Shapes: (kind, body) in order. Raises: TypeError, ValueError."""
    return [(kind_of(event), encode(event)) for event in events]


def chained(head: tuple[int, str], parts: Sequence[tuple[str, bytes]], sealed: bool) -> tuple[Record, ...]:
    """Chain encoded events behind a head. Raises: CorruptJournal when something would follow a seal."""
    seq, link = head
    records = []
    for kind, body in parts:
        if sealed:
            raise CorruptJournal(f"{kind} cannot be appended: the window was sealed at record {seq}", seq + 1)
        seq, link, sealed = seq + 1, link_of(link, kind, body), kind == SEAL
        records.append(Record(seq, kind, body, link))
    return tuple(records)


def checked_blobs(blobs: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Copy blobs after checking that each stands under its own hash. Raises: ValueError."""
    for name, data in (blobs or {}).items():
        if sha256_hex(data) != name:
            raise ValueError(f"blob {name[:64]!r} hashes to {sha256_hex(data)}; name blobs by their SHA-256")
    return dict(blobs or {})


class MemoryJournal:
    """A journal that lives as long as the process; chains, seals and refuses exactly as the stored one."""

    def __init__(self, window_id: str) -> None:
        self.window_id = window_id
        self._records: list[Record] = []
        self._blobs: dict[str, bytes] = {}

    async def append(self, *events: Event, blobs: Mapping[str, bytes] | None = None) -> tuple[Record, ...]:
        kept = checked_blobs(blobs)
        sealed = bool(self._records) and self._records[-1].kind == SEAL
        records = chained(self.head(), encoded(events), sealed)
        self._records.extend(records)
        self._blobs.update(kept)
        return records

    def read(self, after_seq: int = 0) -> Iterator[Record]:
        yield from self._records[after_seq:]

    def head(self) -> tuple[int, str]:
        return (self._records[-1].seq, self._records[-1].link) if self._records else (0, GENESIS)

    def blob(self, sha256: str) -> bytes | None:
        return self._blobs.get(sha256)
