"""The sheets: exam turns captured from a real run, complete enough to be played again without a network (001 §2.3.1).

A sheet holds what the stack was shown (bundle, book, the run's pinned facts) and what the tools answered on the same
chain at the same block. It is data: one JSON file a sheet, named by its bytes' SHA-256; a changed byte is another exam.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgers.errors import Corrupt
from ledgers.identity import canonical_bytes, identity_of, sha256_hex

SCHEMA = "sheet/1"
TURNS = Path(__file__).parent / "turns"
"""Where the shipped sheets live."""
FIELDS = {"schema", "name", "purpose", "captured", "orders_max", "facts", "bundle", "book", "answers"}


class BadSheet(Corrupt):
    """A sheet that does not read; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Where a sheet comes from."""

    run_id: str
    tick: int
    label: str
    """Of the network, e.g. devnet."""
    block: int
    block_hash: str
    window_sha256: str
    ts_ms: int
    """When it was captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """One tool answer, kept."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    reason: str
    answer: Any
    """The answer's JSON."""

    @property
    def key(self) -> str:
        """What was asked, as one word."""
        return asked_key(self.name, self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One exam turn."""

    name: str
    purpose: str
    """Why this turn is in the exam."""
    captured: Captured
    orders_max: int
    facts: Mapping[str, Any]
    """What the run had pinned; the limits are the sitting harness's own."""
    bundle: bytes
    book: bytes
    answers: tuple[ToolRecord, ...]

    @property
    def encoded(self) -> bytes:
        """The sheet as its file holds it."""
        body = {
            "schema": SCHEMA,
            "name": self.name,
            "purpose": self.purpose,
            "captured": {name: getattr(self.captured, name) for name in Captured.__slots__},
            "orders_max": self.orders_max,
            "facts": dict(self.facts),
            "bundle": self.bundle.decode(),
            "book": self.book.decode(),
            "answers": [_recorded(answer) for answer in self.answers],
        }
        return canonical_bytes(body) + b"\n"

    @property
    def sha256(self) -> str:
        """Identity of the sheet."""
        return sha256_hex(self.encoded)


def asked_key(name: str, arguments: Mapping[str, Any]) -> str:
    """Name one question to a tool; equal questions have equal keys."""
    return identity_of({"name": name, "arguments": dict(arguments)})


def read_sheet(data: bytes, name: str) -> Sheet:
    """Read a sheet. Raises: BadSheet naming it and what is wrong."""
    try:
        body = json.loads(data)
        if body.get("schema") != SCHEMA or set(body) != FIELDS:
            raise ValueError(f"expected {SCHEMA} with {sorted(FIELDS)}")
        sheet = Sheet(
            name=body["name"],
            purpose=body["purpose"],
            captured=Captured(**body["captured"]),
            orders_max=body["orders_max"],
            facts=body["facts"],
            bundle=body["bundle"].encode(),
            book=body["book"].encode(),
            answers=tuple(ToolRecord(**answer) for answer in body["answers"]),
        )
        if sheet.encoded != data:
            raise ValueError("it is not in its canonical form")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadSheet(f"exam sheet {name} does not read: {error}") from None
    return sheet


def load_sheet(path: Path) -> Sheet:
    """Read a sheet's file. Raises: BadSheet, OSError."""
    return read_sheet(path.read_bytes(), path.name)


def exam_sheets(folder: Path = TURNS) -> tuple[Sheet, ...]:
    """Load the exam. Shapes: in the order of the file names. Raises: BadSheet."""
    return tuple(load_sheet(path) for path in sorted(folder.glob("*.json")))


def every_sheet(folder: Path = TURNS) -> tuple[Sheet, ...]:
    """Load every published turn, those of earlier exams too: sittings on them are judged again for as long as anybody keeps them.

    Raises: BadSheet."""
    return (*exam_sheets(folder), *(sheet for earlier in sorted(folder.iterdir()) if earlier.is_dir() for sheet in exam_sheets(earlier)))


def exam_sha256(sheets: tuple[Sheet, ...]) -> str:
    """Identity of an exam: of its sheets, in order."""
    return identity_of([sheet.sha256 for sheet in sheets])


def _recorded(answer: ToolRecord) -> dict[str, Any]:
    return {"name": answer.name, "arguments": dict(answer.arguments), "ok": answer.ok, "reason": answer.reason, "answer": answer.answer}
