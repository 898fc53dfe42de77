"""Events: frozen facts, and their one encoding.

An event is a frozen, keyword-only dataclass whose class name is its kind. Fields are: str, bool, int (within ±(2^53 − 1)),
a Money type (a decimal string in JSON), None-able versions of these, nested frozen dataclasses, and tuples of these.
Nothing else: no floats, no dicts. A bench passes its closed tuple of kinds to `decode`. A field with a default is one that
older journals do not have: it is always written, and may be missing when read.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import orjson

from ledgers.errors import CorruptJournal
from ledgers.identity import INTEGER_MAX
from ledgers.money import Money

DIGITS_MAX = 100
"""Longest decimal string of a money field; 2^256 has 78 digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of every event."""

    run_id: str
    """The run it belongs to; for events of a whole window, the window's id."""
    ts_ms: int
    """When it was recorded, Unix milliseconds; never below the one before it."""


def kind_of(event: Event) -> str:
    """Name an event's kind: its class name."""
    return type(event).__name__


def encode(event: Event) -> bytes:
    """Encode an event's fields as canonical JSON. Raises: TypeError, ValueError when a field holds what its type forbids."""
    fields_said = _writer(type(event))(event)
    try:
        return orjson.dumps(fields_said, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"{kind_of(event)} has text that is not valid Unicode: {error}") from error


def decode(kind: str, body: bytes, kinds: tuple[type[Event], ...]) -> Event:
    """Decode an event of a closed tuple of kinds. Raises: CorruptJournal for unknown kinds, fields and types."""
    read = _readers(kinds).get(kind)
    if read is None:
        raise CorruptJournal(f"unknown event kind {kind[:60]!r}; this version knows {len(kinds)} kinds")
    try:
        return read(orjson.loads(body))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptJournal(f"{kind} does not decode: {error}") from error


@cache
def _readers(kinds: tuple[type[Event], ...]) -> dict[str, Callable[[Any], Any]]:
    return {kind.__name__: _reader(kind) for kind in kinds}


@cache
def _writer(annotation: Any) -> Callable[[Any], Any]:
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = _writer(_not_none(annotation))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _writer(_item(annotation))
        return lambda value: [item(part) for part in _expect(value, tuple)]
    if is_dataclass(annotation):
        return _dataclass_writer(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Money):
        return lambda value: int.__repr__(_expect(value, annotation))
    if annotation is int:
        return _small
    if annotation in (str, bool):
        return lambda value: _expect(value, annotation)
    raise TypeError(f"events have no field of type {annotation!r}")


def _dataclass_writer(annotation: Any) -> Callable[[Any], Any]:
    parts = [(name, _writer(hint)) for name, hint in _hints(annotation).items()]

    def write(value: Any) -> dict[str, Any]:
        _expect(value, annotation)
        return {name: write_part(getattr(value, name)) for name, write_part in parts}

    return write


@cache
def _reader(annotation: Any) -> Callable[[Any], Any]:
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        inner = _reader(_not_none(annotation))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _reader(_item(annotation))
        return lambda value: tuple([item(part) for part in _expect(value, list)])
    if is_dataclass(annotation):
        return _dataclass_reader(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Money):
        return _money_reader(annotation)
    if annotation is int:
        return _small
    return _text if annotation is str else lambda value: _expect(value, annotation)


def _dataclass_reader(annotation: Any) -> Callable[[Any], Any]:
    parts = {name: _reader(hint) for name, hint in _hints(annotation).items()}
    known_before = {field.name for field in fields(annotation) if field.default is MISSING}

    def read(value: Any) -> Any:
        if type(value) is not dict or not (known_before <= value.keys() <= parts.keys()):
            raise ValueError(f"{annotation.__name__} takes an object with {sorted(parts)}, got {str(value)[:200]}")
        for name, part in value.items():
            value[name] = parts[name](part)
        return annotation(**value)

    return read


def _money_reader(unit: type[Money]) -> Callable[[Any], Money]:
    def read(value: Any) -> Money:
        if type(value) is not str or len(value) > DIGITS_MAX:
            raise TypeError(f"expected a decimal string, got {str(value)[:40]!r}")
        amount = int.__new__(unit, value)
        if int.__repr__(amount) != value:
            raise ValueError(f"{value!r} is not a canonical decimal string")
        return amount

    return read


def _hints(annotation: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(annotation)
    return {field.name: hints[field.name] for field in fields(annotation)}


def _not_none(annotation: Any) -> Any:
    (inner,) = [part for part in typing.get_args(annotation) if part is not type(None)]
    return inner


def _item(annotation: Any) -> Any:
    item, ellipsis = typing.get_args(annotation)
    if ellipsis is not Ellipsis:
        raise TypeError(f"tuples in events are tuple[T, ...], got {annotation!r}")
    return item


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _small(value: Any) -> int:
    if type(value) is not int or not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise TypeError(f"expected an int within ±(2^53 − 1), got {type(value).__name__} {str(value)[:40]}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected str, got {type(value).__name__}")
    return value
