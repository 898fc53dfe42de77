"""Quirks: what one host does differently, declared in its manifest instead of guessed.

    give_back        fields of a message that the host wants back unchanged with the next step, beside those that always
                     go back
    reasoning_tags   the marks between which a model writes its reasoning into the text; what stands between them at the
                     beginning of an answer is reasoning, counted as output and no part of the answer
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,59}$")]
OWN_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "function_call"})
"""Fields of a message that are written by us alone."""
DEPTH_MAX = 32
"""Levels of what a host attaches to a message; what is deeper does not go back to it."""


class ReasoningTags(BaseModel):
    """Where reasoning begins and ends in a text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    begin: str = Field(min_length=1, max_length=40)
    end: str = Field(min_length=1, max_length=40)

    def taken_out(self, text: str) -> tuple[str, str]:
        """Split a text into answer and reasoning; a text that does not begin with reasoning is all answer.

        A model whose template opens the mark for it ends reasoning that it never began."""
        body = text.lstrip()
        head = len(self.begin) if body.startswith(self.begin) else 0
        end = body.find(self.end)
        if end < head or (not head and self.begin in body[:end]):
            return text, ""
        return body[end + len(self.end) :], body[head:end]


class Quirks(BaseModel):
    """What a host does differently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    give_back: list[FieldName] = Field([], max_length=16)
    reasoning_tags: ReasoningTags | None = None

    @field_validator("give_back")
    @classmethod
    def _names_no_field_of_our_own(cls, names: list[str]) -> list[str]:
        if taken := sorted(OWN_FIELDS & set(names)):
            raise ValueError(f"{taken[0]} is written by the harness itself")
        return names


def joined(before: Any, piece: Any) -> Any:
    """Put a piece of an attached field to those before it: texts and lists grow, objects are filled in, all else is
    said anew.

    Neighbours in a list that are parts of one item, by their `index` and `type`, become one item."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, dict) and isinstance(piece, dict):
        return before | piece
    if isinstance(before, list) and isinstance(piece, list):
        items = list(before)
        for item in piece:
            if items and _same_item(items[-1], item):
                items[-1] = _grown(items[-1], item)
            else:
                items.append(item)
        return items
    return piece


def _same_item(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)) or one.get("index") is None:
        return False
    return (one["index"], one.get("type")) == (other.get("index"), other.get("type"))


def _grown(item: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    grown = dict(item)
    for name, value in piece.items():
        if name in ("text", "summary", "data") and isinstance(grown.get(name), str) and isinstance(value, str):
            grown[name] += value
        elif value is not None:
            grown[name] = value
    return grown
