"""Tool calls: what a model wrote as one, made into a use of a tool or into a word for why it is none.

    what the model wrote                        what is done with it
    arguments as JSON text, or an object        carried out; no arguments at all count as {}
    a tool that is not on the list              `unknown_tool`
    arguments that are not JSON                 `arguments_not_json` (keys twice and non-finite numbers too)
    arguments that are not an object            `arguments_not_object`
    arguments beyond the bound                  `arguments_too_long`
    several calls in one step                   carried out in their order; those beyond the limit are `too_many_calls`
    an id that is missing or was used before    given one of ours, noted, carried out
    the same call again in one turn             answered with the first answer's bytes, noted `repeated`; costs nothing
    a call in the text instead of a call        `call_in_text`, not carried out; the model is told

Every one of them is answered to the model as data and recorded; none ends the turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NoReturn

from harnesses.one_object import CHARS_MAX
from harnesses.shallow import beyond_reading, cut_down, read_json, shallow
from ledgers.identity import canonical_bytes

ARGUMENTS_CHARS_MAX = 16_384
DEPTH_MAX = 16
ID_FORM = re.compile(r"[!-~]{1,200}")
"""An id that every provider, event and screen takes."""

CALL_MARKS = re.compile(
    r"<\|?(?:tool_call|tool_calls|function_call|function_calls|tool_use|invoke|tools?▁calls?▁begin)\b"
    r"|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|<｜tool|\bfunctions\.[A-Za-z_]\w*:\s*[\d{]"
    r"|<\|channel\|>commentary to=",
    re.IGNORECASE,
)
"""How models write a tool call when it ends up in their text."""

CALL_KEYS = frozenset(
    {"name", "arguments", "parameters", "tool", "tool_name", "function", "type", "id", "args", "input"}
)


class NotACall(ValueError):
    """A tool call cannot be carried out; `reason` is a word of `outcome.ILL_FORMED`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def read_arguments(text: str) -> dict[str, Any]:
    """Read a call's arguments. Raises: NotACall."""
    if len(text) > ARGUMENTS_CHARS_MAX:
        raise NotACall("arguments_too_long", f"{len(text)} characters, at most {ARGUMENTS_CHARS_MAX}")
    if not text.strip():
        return {}
    try:
        said = json.loads(
            cut_down(text, DEPTH_MAX + 1), object_pairs_hook=_unique, parse_constant=_not_finite, parse_int=_integer
        )
    except NotACall:
        raise
    except ValueError as error:
        raise NotACall("arguments_not_json", f"{str(error)[:80]}") from None
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise NotACall("arguments_not_object", f"the arguments are a {type(said).__name__}; send one JSON object")
    if not shallow(said, DEPTH_MAX):
        raise NotACall("arguments_not_json", f"nested deeper than {DEPTH_MAX}")
    return said


def same_call(name: str, arguments: dict[str, Any]) -> bytes:
    """What two identical calls have in common."""
    try:
        return canonical_bytes([name, arguments])
    except (TypeError, ValueError):
        return json.dumps([name, arguments], sort_keys=True).encode()


def is_call_in_text(text: str, names: Collection[str]) -> bool:
    """Whether a text without tool calls is meant as one: a model's own mark, or one object that names a tool."""
    if not names:
        return False
    body = _unfenced(text) if len(text) <= CHARS_MAX else ""
    try:
        said = read_json(body) if body.startswith(("{", "[")) else None
    except ValueError:
        said = None
    if said is None:
        return bool(CALL_MARKS.search(text[:ARGUMENTS_CHARS_MAX]))
    calls = said if isinstance(said, list) else [said]
    return bool(calls) and all(_names_a_tool(call, names) for call in calls)


def _names_a_tool(call: object, names: Collection[str]) -> bool:
    if not isinstance(call, dict) or not set(call) <= CALL_KEYS:
        return False
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    named = inner.get("name") or call.get("tool") or call.get("tool_name") or function
    return isinstance(named, str) and named in names


def _unfenced(text: str) -> str:
    body = text.strip()
    if body.startswith("```"):
        body = body.removeprefix("```").lstrip("abcdefghijklmnopqrstuvwxyz").lstrip()
    return body.removesuffix("```").rstrip()


def _integer(digits: str) -> int:
    if beyond_reading(digits):
        raise NotACall("arguments_not_json", f"an integer of {len(digits)} digits is beyond reading")
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise NotACall("arguments_not_json", "a key stands twice in one object")
    return read


def _not_finite(word: str) -> NoReturn:
    raise NotACall("arguments_not_json", f"{word} is not a JSON number")
