"""One object: read an answer that must be exactly one JSON object and nothing else.

Nothing is repaired, searched for or cut out: what is not one clean object has a reason instead. JSON numbers are not
read at all, because readers disagree about them; numbers travel as decimal strings.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from harnesses.shallow import Nesting

CHARS_MAX = 262_144
DEPTH_MAX = 8
"""Deepest nesting of objects and lists, the object itself counted."""

OBJECT_REASONS = (
    "not_text",
    "too_long",
    "empty",
    "byte_order_mark",
    "lone_surrogate",
    "fenced",
    "text_around",
    "two_objects",
    "not_an_object",
    "cut_off",
    "not_json",
    "too_deep",
    "duplicate_key",
    "not_finite",
    "float",
    "bare_number",
)
"""Every reason why text is not one object."""

_JSON_BLANKS = " \t\r\n"


class NotOneObject(ValueError):
    """The text is not exactly one clean JSON object; `reason` is one of `OBJECT_REASONS`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def read_object(text: str) -> dict[str, Any]:
    """Read the one object that the text is.

    Shapes: values are strings, booleans, none, lists and objects; never numbers. Raises: NotOneObject."""
    body = _trimmed(text)
    nesting = Nesting().feed(body)
    if nesting.deepest > DEPTH_MAX:
        raise NotOneObject("too_deep", f"nested deeper than {DEPTH_MAX}")
    if not body.startswith("{"):
        _explain_other_start(body)
    value, end = _decoded(body, nesting.open)
    if rest := body[end:].strip(_JSON_BLANKS):
        _explain_rest(rest)
    _refuse_halves(value)
    return value


def _trimmed(text: str) -> str:
    if type(text) is not str:
        raise NotOneObject("not_text", f"the answer is a {type(text).__name__}")
    if len(text) > CHARS_MAX:
        raise NotOneObject("too_long", f"{len(text)} characters, at most {CHARS_MAX}")
    if text.startswith("\ufeff"):
        raise NotOneObject("byte_order_mark", "the answer begins with U+FEFF")
    _refuse_halves(text)
    body = text.strip(_JSON_BLANKS)
    if not body:
        raise NotOneObject("empty", "the answer is empty")
    return body


def _decoded(body: str, open_at_end: bool) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(body)
    except json.JSONDecodeError as error:
        if open_at_end:
            raise NotOneObject("cut_off", f"ends inside the object after {len(body)} characters") from None
        raise NotOneObject("not_json", f"{error.msg} at character {error.pos}") from None


def _explain_other_start(body: str) -> NoReturn:
    if body.startswith("```"):
        raise NotOneObject("fenced", "the answer is a code block; send the object alone")
    try:
        value = json.loads(body, parse_int=str, parse_float=str)
    except ValueError:
        if "{" in body:
            raise NotOneObject("text_around", f"text before the object: {body[:40]!r}") from None
        raise NotOneObject("not_json", f"no object in the answer: {body[:40]!r}") from None
    raise NotOneObject("not_an_object", f"the answer is JSON, but a {type(value).__name__}")


def _explain_rest(rest: str) -> NoReturn:
    if rest.startswith("{"):
        raise NotOneObject("two_objects", "another object follows the first")
    if rest.startswith("```"):
        raise NotOneObject("fenced", "a code fence follows the object")
    raise NotOneObject("text_around", f"text after the object: {rest[:40]!r}")


def _refuse_halves(value: Any) -> None:
    """Refuse lone surrogates, which no UTF-8 can carry, wherever they stand."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise NotOneObject("lone_surrogate", f"half a character pair at {error.start}") from None
    elif isinstance(value, list):
        for item in value:
            _refuse_halves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_halves(key)
            _refuse_halves(item)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise NotOneObject("duplicate_key", f"{key[:40]!r} stands twice in one object")
        read[key] = value
    return read


def _not_finite(word: str) -> NoReturn:
    raise NotOneObject("not_finite", f"{word} is not a number")


def _float(digits: str) -> NoReturn:
    raise NotOneObject("float", f"{digits[:40]} is a JSON float; write a decimal string")


def _bare_number(digits: str) -> NoReturn:
    raise NotOneObject("bare_number", f"{digits[:40]} is a JSON number; write a decimal string")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_not_finite, parse_float=_float, parse_int=_bare_number
)
