"""JOURNAL.md: the journal explained to a stranger, written from the code so that it cannot drift.

`python -m ledgers.journal_md referee.onchain.kinds` rewrites it; every argument is a module with a closed tuple `KINDS`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from ledgers.events import Event
from ledgers.journal import GENESIS, link_of
from ledgers.money import Bps, MicroUsd, Money, TokenRaw, Wei

PATH = Path(__file__).with_name("JOURNAL.md")
PREFACE = Path(__file__).with_name("JOURNAL.preface.md")
"""The part that people write: canonical form, links, files, how to recompute."""

WORD = re.compile(r"^\| `(\w+)` \| ([^|]+) \|$", re.MULTILINE)
"""A row of the preface's table of words that mean the same in every kind."""

UNITS_BY_TYPE = {Wei: "wei", TokenRaw: "token base units", MicroUsd: "10⁻⁶ US dollars", Bps: "10⁻⁴"}
UNITS_BY_ENDING = (
    ("ts_ms", "Unix time, ms, UTC"), ("_ts_s", "Unix time, s, UTC"), ("_ms", "ms"), ("_s", "s"), ("_bps", "10⁻⁴"),
    ("_ppm", "10⁻⁶"), ("_gas", "gas"), ("block", "block number"), ("_sha256", "SHA-256, 64 hex digits"),
    ("_hash", "0x and 64 hex digits"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of a kind or of a value inside one."""

    name: str
    type: str
    """As JSON shows it."""
    unit: str
    meaning: str


def document(benches: Sequence[tuple[str, Sequence[type[Event]]]], preface: str) -> str:
    """Write the whole page. Shapes: (module name, kinds in the order of the code)."""
    words = dict(WORD.findall(preface))
    parts = [preface.rstrip(), _example(), "## What every event has", _section(Event, words)]
    for name, kinds in benches:
        parts += [f"## Kinds of `{name}`", "Each has the fields of every event, and these.", *(_section(kind, words) for kind in kinds)]
        parts += [f"## Values inside events of `{name}`", *(_section(value, words) for value in values_inside(kinds))]
    return "\n\n".join(parts) + "\n"


def field_lines(shape: type, words: dict[str, str]) -> list[FieldLine]:
    """Describe the own fields of an event or value, in the order of the code; `words` speaks where the code says nothing."""
    hints, said = typing.get_type_hints(shape), dict(_field_docstrings(shape))
    return [
        FieldLine(name, json_type(hints[name]), _unit(name, hints[name]), said.get(name) or words.get(name, ""))
        for name in (field.name for field in fields(shape))
        if name in shape.__annotations__
    ]


def json_type(hint: Any) -> str:
    """Name what a field looks like in JSON."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return f"{json_type(_inner(hint))} or null"
    if origin is tuple:
        return f"list of {json_type(typing.get_args(hint)[0])}"
    if is_dataclass(hint):
        return f"object {hint.__name__}"  # type: ignore[union-attr]
    if issubclass(hint, Money):
        return "decimal string"
    return {str: "string", bool: "boolean", int: "integer"}[hint]


def values_inside(kinds: Sequence[type[Event]]) -> list[type]:
    """List the value shapes that events hold, sorted by name."""
    found: dict[str, type] = {}
    waiting: list[type] = list(kinds)
    while waiting:
        for hint in typing.get_type_hints(waiting.pop()).values():
            inner = _inner(hint)
            if is_dataclass(inner) and inner.__name__ not in found:  # type: ignore[union-attr]
                found[inner.__name__] = inner  # type: ignore[union-attr, assignment]
                waiting.append(inner)  # type: ignore[arg-type]
    return [found[name] for name in sorted(found)]


def _section(shape: type, words: dict[str, str]) -> str:
    rows = [f"| `{line.name}` | {line.type} | {line.unit} | {_cell(line.meaning)} |" for line in field_lines(shape, words)]
    head = [f"### {shape.__name__}", "", inspect.getdoc(shape) or "", "", "| field | type | unit | meaning |", "|---|---|---|---|"]
    return "\n".join(head + rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _unit(name: str, hint: Any) -> str:
    inner = _inner(hint)
    if inner in UNITS_BY_TYPE:
        return UNITS_BY_TYPE[inner]
    return next((unit for ending, unit in UNITS_BY_ENDING if name.endswith(ending)), "number" if inner is int else "–")


def _inner(hint: Any) -> Any:
    """Strip `| None` and `tuple[…, ...]` off a type."""
    while typing.get_origin(hint) is not None:
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _field_docstrings(shape: type) -> Iterator[tuple[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[shape.__module__]))
    (body,) = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == shape.__name__]
    for field, said in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant):
            yield field.target.id, said.value.value  # type: ignore[union-attr]


def _example() -> str:
    kind, body = "TickMissed", b'{"reason":"late","run_id":"w1-random-1","scheduled_ts_ms":1790000000000,"tick":3,"ts_ms":1790000004000}'
    first = link_of(GENESIS, kind, body)
    lines = [f"record 1  kind {kind}  body {body.decode()}", f"link      {first}", "record 2  the same kind and body again"]
    return "\n".join(["A worked example, for checking other code:", "", "```", *lines, f"link      {link_of(first, kind, body)}", "```"])


def main(modules: Sequence[str]) -> None:
    """Rewrite the page from the modules named."""
    benches = [(name, importlib.import_module(name).KINDS) for name in modules]
    PATH.write_text(document(benches, PREFACE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
