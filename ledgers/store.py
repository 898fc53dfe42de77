"""The store: journals of all windows in one SQLite database, and read tables made from them.

WAL with synchronous FULL: what was acknowledged survives a crash of the process or of the machine. One writer thread
commits in groups. The read tables hold nothing that the journal does not: they may be dropped and rebuilt.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, LargeBinary, create_engine, event, insert, inspect
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Column, Field, Session, SQLModel, delete, func, select

from ledgers.errors import CorruptJournal, StoreFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.journal import GENESIS, SEAL, Record, chained, checked_blobs, encoded
from ledgers.lock import StoreLock
from ledgers.writer import Job, Writer, run_job

READ_CHUNK = 2_000
"""Records fetched at once, so that a long read neither fills memory nor holds the write-ahead log."""

ZLIB_LEVEL = 1
"""Evidence is hex and JSON: level 1 makes it about a fifth, several times faster than level 6."""

# --- tables: the journal ----------------------------------------------------------------------------------------------


class SchemaRow(SQLModel, table=True):
    """Which layout the database has; one row."""

    __tablename__ = "schema_version"
    version: int = Field(primary_key=True)


class EventRow(SQLModel, table=True):
    """One record of one window's chain."""

    __tablename__ = "events"
    __table_args__ = {"sqlite_with_rowid": False}
    window_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    kind: str
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    link: str


class BlobRow(SQLModel, table=True):
    """Bytes kept under their SHA-256, compressed with zlib."""

    __tablename__ = "blobs"
    sha256: str = Field(primary_key=True)
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


# --- tables: read side ------------------------------------------------------------------------------------------------


class WindowRow(SQLModel, table=True):
    """A window as lists show it. Amounts are decimal strings."""

    __tablename__ = "windows"
    window_id: str = Field(primary_key=True)
    network: str
    label: str
    status: str
    open_ts_ms: int
    close_ts_ms: int
    stake_wei: str
    runs: int
    scored: int
    events: int
    root: str


class RunRow(SQLModel, table=True):
    """A run as lists show it. Amounts are decimal strings; None means not measured."""

    __tablename__ = "runs"
    run_id: str = Field(primary_key=True)
    window_id: str = Field(index=True)
    stack: str
    stack_sha256: str
    copy_number: int
    status: str
    reason: str
    stake_wei: str
    headline_wei: str | None = None
    permissive_wei: str | None = None
    headline_ppm: int | None = None
    permissive_ppm: int | None = None
    turns_answered: int
    turns_total: int
    fills: int


READ_TABLES: tuple[type[SQLModel], ...] = (WindowRow, RunRow)
Row = TypeVar("Row", bound=SQLModel)

Head = tuple[int, str, bool]
"""Last seq, last link, and whether the window is sealed."""


def _text_of(statement: Any) -> str:
    """Compile a Core statement once; compiling per append would cost more than the append."""
    return str(statement.compile(dialect=SQLiteDialect_pysqlite()))


INSERT_EVENT = _text_of(insert(EventRow))

OUTSIDE = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_PERM", "SQLITE_READONLY")
"""A disk or a lock in the way; any other error on reading means bytes that are wrong."""

DAMAGED = "SQLITE_CORRUPT"
"""A database whose bytes are wrong already where it is opened."""

# --- layout -----------------------------------------------------------------------------------------------------------


def _first_layout(connection: Connection) -> None:
    tables = [model.__table__ for model in (SchemaRow, EventRow, BlobRow, *READ_TABLES)]  # type: ignore[attr-defined]
    SQLModel.metadata.create_all(connection, tables=tables)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first_layout,)
"""Function k brings layout k to layout k + 1; an empty database is layout 0. Never edited once released."""


def _layout_of(connection: Connection) -> int:
    if not inspect(connection).has_table("schema_version"):
        return 0
    return connection.execute(select(func.max(SchemaRow.version))).scalar_one() or 0


def _migrate(connection: Connection, layout: int) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # the driver begins by itself only before rows change, not tables
    for step in MIGRATIONS[layout:]:
        step(connection)
    connection.execute(delete(SchemaRow))
    connection.execute(insert(SchemaRow).values(version=len(MIGRATIONS)))


def _locked(path: Path) -> StoreLock:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return StoreLock(path)
    except OSError as error:
        raise StoreFault(f"cannot write in {path.parent} ({error.strerror}); set REFEREE_HOME to a directory that can be written") from error


class EmptyStore(StoreFault):
    """Nothing was ever written: there is no file, or a process ended before it had made its tables."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no journal at {path}: nothing has been run with this home yet")


def _opened(path: Path, exclusive: bool) -> Engine:
    if not exclusive and not path.is_file():
        raise EmptyStore(path)
    engine = create_engine(_address(path, exclusive))
    event.listen(engine, "connect", lambda raw, _: _configure(raw, exclusive))
    try:
        with engine.begin() as connection:
            _check_layout(connection, path, exclusive)
    except SQLAlchemyError as error:
        engine.dispose()
        if _error_name(error).startswith(DAMAGED):
            raise _read_error(path, error) from error
        raise StoreFault(f"{path} cannot be opened as a journal store: {_cause(error)}") from error
    except StoreFault:
        engine.dispose()
        raise
    return engine


def _address(path: Path, exclusive: bool) -> URL:
    """Where SQLite finds the database. Beside one that nobody may write it cannot keep its log, and reads it as it is.

    Raises: StoreFault when records may still be in a log that only a writer can read back."""
    if exclusive or os.access(path.parent, os.W_OK):
        return URL.create("sqlite+pysqlite", database=str(path))
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreFault(f"{path.parent} cannot be written, and {path.name} was not closed there; copy the directory to a place that can be written, and name it by REFEREE_HOME")
    return URL.create("sqlite+pysqlite", database=f"file:{quote(str(path.absolute()))}", query={"mode": "ro", "immutable": "1", "uri": "true"})


def _configure(raw: Any, exclusive: bool) -> None:
    if exclusive:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
    else:
        raw.execute("PRAGMA query_only = ON")


def _check_layout(connection: Connection, path: Path, exclusive: bool) -> None:
    layout, known = _layout_of(connection), len(MIGRATIONS)
    if layout > known:
        raise StoreFault(
            f"{path.name} has layout {layout}, written by a newer version; this one knows up to {known}: "
            "update the program, or set REFEREE_HOME to another directory"
        )
    if not layout and not exclusive:
        raise EmptyStore(path)
    if layout < known and not exclusive:
        raise StoreFault(f"{path.name} has layout {layout}, older than {known}: run a window once to bring it up to date")
    if layout < known:
        _migrate(connection, layout)


def _head_of(connection: Connection, window_id: str) -> Head:
    query = select(EventRow.seq, EventRow.link, EventRow.kind).where(EventRow.window_id == window_id)
    row = connection.execute(query.order_by(EventRow.seq.desc()).limit(1)).first()  # type: ignore[attr-defined]
    return (row.seq, row.link, row.kind == SEAL) if row else (0, GENESIS, False)


def _error_name(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlite_errorname", None) or ""


def _cause(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error)


def _read_error(path: Path, error: BaseException) -> StoreFault | CorruptJournal:
    if _error_name(error).startswith(OUTSIDE):
        return StoreFault(f"{path.name} cannot be read: {_cause(error)}")
    return CorruptJournal(f"{path.name} is damaged: {_cause(error)}")


def _write_fault(path: Path, error: BaseException) -> StoreFault:
    return StoreFault(
        f"{path.name} could not be written: {_cause(error)}; the chain is intact up to the last acknowledged record. "
        "Make room or bring the disk back, then resume"
    )


# --- the store --------------------------------------------------------------------------------------------------------


class Store:
    """The database of one home directory. `exclusive` writes and keeps every other writer out; else it only reads.

    Raises: StoreFault when it is held by another daemon, missing, unreadable, or of a newer layout."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        self.path = Path(path)
        self._lock = _locked(self.path) if exclusive else None
        try:
            self._engine = _opened(self.path, exclusive)
            self._writing = self._engine.connect() if exclusive else None
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        self._file = os.stat(self.path)
        self._file_name = str(self.path)
        self._heads: dict[str, Head] = {}
        self._staged = _Staged()
        self._writer = Writer(self._commit)
        if exclusive:
            self._writer.start()

    def journal(self, window_id: str) -> SqlJournal:
        """Return the journal of a window; it begins empty."""
        return SqlJournal(self, window_id)

    def window_ids(self) -> list[str]:
        """List the windows that have records, sorted by id."""
        found: list[str] = []
        query = select(func.min(EventRow.window_id))
        with self.reading() as connection:
            last = connection.execute(query).scalar()
            while last is not None:
                found.append(last)
                last = connection.execute(query.where(EventRow.window_id > last)).scalar()
        return found

    def rows(self, table: type[Row]) -> list[Row]:
        """Read a read table, sorted by its key."""
        with self.reading() as connection, Session(connection) as session:
            return list(session.exec(select(table).order_by(*table.__table__.primary_key)))  # type: ignore[attr-defined]

    def rebuild(self, window_id: str, rows: Iterable[SQLModel]) -> None:
        """Replace everything the read tables say about a window. Blocks until it is durable. Raises: StoreFault."""
        fresh = [(type(row), row.model_dump()) for row in rows]
        self._writable().written_now(lambda: self._replace(window_id, fresh))

    def close(self) -> None:
        """Commit what waits, close the database, let the next daemon in."""
        self._writer.close()
        if self._writing is not None:
            self._writing.close()
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection. Raises: StoreFault when disk or lock are in the way, CorruptJournal when the bytes are wrong."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except (DBAPIError, TypeError, ValueError) as error:
            raise _read_error(self.path, error) from error

    def _writable(self) -> Writer:
        if self._writing is None:
            raise StoreFault(f"the store {self.path.name} is open for reading only; nothing was written")
        return self._writer

    # The rest runs in the writer thread, inside the one open transaction.

    def _commit(self, group: Sequence[Job]) -> None:
        assert self._writing is not None
        self._staged = _Staged()
        transaction = self._writing.begin()
        try:
            for job in group:
                run_job(job)
            self._staged.flush(self._writing)
            self._check_still_ours()
            transaction.commit()
        except Exception as error:
            self._heads.clear()
            with contextlib.suppress(SQLAlchemyError):
                transaction.rollback()
            if isinstance(error, SQLAlchemyError | sqlite3.Error):
                raise _write_fault(self.path, error) from error
            raise
        self._heads.update(self._staged.heads)

    def _check_still_ours(self) -> None:
        """Look whether the files are still there: an unlinked one still takes writes, and loses them. Raises: StoreFault."""
        try:
            ours = os.path.samestat(self._file, os.stat(self._file_name)) and self._lock is not None and self._lock.holds()
        except OSError:
            ours = False
        if not ours:
            raise StoreFault(
                f"{self.path.name} could not be written: it or its lock file was removed or replaced while in use; "
                "put it back where it was, then resume"
            )

    def _append(self, window_id: str, parts: Sequence[tuple[str, bytes]], blobs: Mapping[str, bytes]) -> tuple[Record, ...]:
        seq, link, sealed = self._staged.heads.get(window_id) or self._head(window_id, self._writing)
        kept = checked_blobs(blobs)
        records = chained((seq, link), parts, sealed)
        self._staged.blobs.update(kept)
        self._staged.add(window_id, records)
        return records

    def _replace(self, window_id: str, rows: Sequence[tuple[type[SQLModel], dict[str, Any]]]) -> None:
        assert self._writing is not None
        for table in READ_TABLES:
            self._writing.execute(delete(table).where(table.window_id == window_id))  # type: ignore[attr-defined]
        for table, values in rows:
            self._writing.execute(insert(table).values(values))

    def _head(self, window_id: str, connection: Connection | None = None) -> Head:
        if head := self._heads.get(window_id):
            return head
        if connection is not None:
            return _head_of(connection, window_id)
        with self.reading() as reader:
            return _head_of(reader, window_id)


@dataclass(slots=True)
class _Staged:
    """What the open transaction will hold."""

    rows: list[tuple[str, int, str, bytes, str]] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    heads: dict[str, Head] = field(default_factory=dict)

    def add(self, window_id: str, records: Sequence[Record]) -> None:
        self.rows += [(window_id, record.seq, record.kind, record.body, record.link) for record in records]
        if records:
            self.heads[window_id] = (records[-1].seq, records[-1].link, records[-1].kind == SEAL)

    def flush(self, connection: Connection) -> None:
        for name, data in self.blobs.items():
            if connection.execute(select(BlobRow.sha256).where(BlobRow.sha256 == name)).first() is None:
                connection.execute(insert(BlobRow).values(sha256=name, data=zlib.compress(data, ZLIB_LEVEL)))
        if self.rows:
            connection.connection.cursor().executemany(INSERT_EVENT, self.rows)  # the driver's own call halves its cost


class SqlJournal:
    """The journal of one window in a store."""

    def __init__(self, store: Store, window_id: str) -> None:
        self.window_id = window_id
        self._store = store

    async def append(self, *events: Event, blobs: Mapping[str, bytes] | None = None) -> tuple[Record, ...]:
        """Append as the Journal protocol says."""
        parts, window_id, store = encoded(events), self.window_id, self._store
        return await store._writable().written(lambda: store._append(window_id, parts, blobs or {}))

    def read(self, after_seq: int = 0) -> Iterator[Record]:
        """Yield the records after a seq. Raises: CorruptJournal, naming the seq, where the database is damaged."""
        while chunk := self._chunk(after_seq, READ_CHUNK):
            yield from chunk
            after_seq = chunk[-1].seq

    def head(self) -> tuple[int, str]:
        """Return the last durable seq and link; (0, GENESIS) when empty."""
        return self._store._head(self.window_id)[:2]

    def blob(self, sha256: str) -> bytes | None:
        """Return the bytes with this hash. Raises: CorruptJournal when they no longer hash to it."""
        with self._store.reading() as connection:
            packed = connection.execute(select(BlobRow.data).where(BlobRow.sha256 == sha256)).scalar()
        if packed is None:
            return None
        try:
            data = zlib.decompress(packed)
        except zlib.error as error:
            raise CorruptJournal(f"blob {sha256} does not unpack: {error}") from error
        if sha256_hex(data) != sha256:
            raise CorruptJournal(f"blob {sha256} hashes to {sha256_hex(data)}")
        return data

    def _chunk(self, after_seq: int, size: int) -> list[Record]:
        query = select(EventRow.seq, EventRow.kind, EventRow.body, EventRow.link)
        query = query.where(EventRow.window_id == self.window_id, EventRow.seq > after_seq)
        try:
            with self._store.reading() as connection:
                rows = connection.execute(query.order_by(EventRow.seq).limit(size))  # type: ignore[arg-type]
                return [Record(*row) for row in rows]
        except CorruptJournal as error:
            if size > 1:
                return self._readable_prefix(after_seq)
            raise CorruptJournal(f"record {after_seq + 1} of {self.window_id}: {error}", after_seq + 1) from error

    def _readable_prefix(self, after_seq: int) -> list[Record]:
        """Read record by record up to the damage; the next chunk then starts on it and names it."""
        prefix = self._chunk(after_seq, 1)
        try:
            while len(prefix) < READ_CHUNK and (more := self._chunk(prefix[-1].seq if prefix else after_seq, 1)):
                prefix += more
        except CorruptJournal:
            pass
        return prefix
