"""JOURNAL.md says what the code does: every kind, field, type and unit, in both directions."""

import dataclasses
import json
import re
import types
import typing

import pytest

from ledgers.events import Event, encode
from ledgers.journal import GENESIS, link_of
from ledgers.journal_md import PATH, PREFACE, document
from ledgers.money import MicroUsd, Money, TokenRaw, Wei
from referee.onchain.events import TickMissed
from referee.onchain.kinds import KINDS

COMMAND = "rewrite the page with: .venv/bin/python -m ledgers.journal_md referee.onchain.kinds"
PAGE = PATH.read_text("utf-8")


def documented() -> dict[str, dict[str, tuple[str, str]]]:
    """Read the page with code of its own: type and unit per field per section."""
    sections = re.split(r"^### (\w+)$", PAGE.partition("## What every event has")[2], flags=re.MULTILINE)[1:]
    row = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \|", re.MULTILINE)
    return {name: {field: (kind, unit) for field, kind, unit in row.findall(text)} for name, text in zip(sections[::2], sections[1::2], strict=True)}


def shapes(root: type, found: dict[str, type]) -> dict[str, type]:
    """Collect an event and the values inside it."""
    found[root.__name__] = root
    for hint in typing.get_type_hints(root).values():
        for part in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(part) and part.__name__ not in found:
                shapes(part, found)
    return found


def described(hint: object) -> str:
    """Say how JSON shows a type."""
    if isinstance(hint, types.UnionType):
        return described(typing.get_args(hint)[0]) + " or null"
    if typing.get_origin(hint) is tuple:
        return "list of " + described(typing.get_args(hint)[0])
    if dataclasses.is_dataclass(hint):
        return "object " + hint.__name__
    return "decimal string" if issubclass(hint, Money) else {int: "integer", str: "string", bool: "boolean"}[hint]


def in_code() -> dict[str, dict[str, str]]:
    """Describe what the code holds."""
    found: dict[str, type] = {"Event": Event}
    for kind in KINDS:
        shapes(kind, found)
    base = {field.name for field in dataclasses.fields(Event)}
    return {
        name: {field: described(hint) for field, hint in typing.get_type_hints(shape).items() if name == "Event" or field not in base}
        for name, shape in found.items()
    }


def test_the_page_and_the_code_have_the_same_kinds_and_values():
    assert set(documented()) == set(in_code()), COMMAND


def test_every_field_of_the_code_is_on_the_page_with_its_type_and_no_other():
    page = {name: {field: kind for field, (kind, _) in rows.items()} for name, rows in documented().items()}
    assert page == in_code(), COMMAND


def test_money_says_its_unit_and_numbers_say_theirs():
    units = {Wei: "wei", TokenRaw: "token base units", MicroUsd: "10⁻⁶ US dollars"}
    for kind in KINDS:
        for field, hint in typing.get_type_hints(kind).items():
            bare = next(part for part in (*typing.get_args(hint), hint) if part is not type(None))
            if field in documented()[kind.__name__] and bare in units:
                assert documented()[kind.__name__][field][1] == units[bare], (kind, field)
            if field.endswith("_ts_ms"):
                assert documented()[kind.__name__][field][1] == "Unix time, ms, UTC", (kind, field)


def test_the_page_is_what_the_code_writes():
    assert document([("referee.onchain.kinds", KINDS)], PREFACE.read_text("utf-8")) == PAGE, COMMAND


def test_the_worked_example_is_true():
    body, *links = re.search(r"body (\{.*\})\nlink +(\w+)\n.*\nlink +(\w+)", PAGE).groups()
    assert encode(TickMissed(**json.loads(body))) == body.encode()
    first = link_of(GENESIS, "TickMissed", body.encode())
    assert links == [first, link_of(first, "TickMissed", body.encode())]


@pytest.mark.parametrize("said", ["SHA-256(link(n−1) ‖ kind(n) ‖ body(n))", "32 zero bytes", "Integers within ±(2^53 − 1)"])
def test_the_page_tells_a_stranger_how_to_recompute(said):
    assert said in PAGE
