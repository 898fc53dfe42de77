"""Depth is told in one way at every door, by text and by value, and no depth is too deep to be told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harnesses.asking import EXTRA_DEPTH_MAX, Asking
from harnesses.calls import DEPTH_MAX, NotACall, read_arguments
from harnesses.shallow import LEVELS_READ_MAX, Nesting, cut_down, read_json, shallow, text_shallow

LEVELS = [
    (7, 0),
    ("{[", 0),
    ({}, 1),
    ([], 1),
    ([7, "["], 1),
    ({"a": []}, 2),
    ([{}, [[]]], 3),
    ({"a": {"b": "}"}, "c": [[[1]]]}, 4),
]
JSON = st.recursive(
    st.none() | st.integers() | st.text('[]{}"\\ab', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=2), inner, max_size=3),
    max_leaves=12,
)


def depth(value: object) -> int:
    """As one would write it who may descend."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


@pytest.mark.parametrize(("value", "levels"), LEVELS)
def test_a_level_is_an_object_or_a_list(value: object, levels: int) -> None:
    text = json.dumps(value)
    bounds = range(6)
    assert (
        [shallow(value, most) for most in bounds]
        == [text_shallow(text, most) for most in bounds]
        == [most >= levels for most in bounds]
    )


@given(JSON, st.integers(0, 4))
def test_text_and_value_agree_and_what_is_cut_down_is_read(value: object, levels: int) -> None:
    text = json.dumps(value)
    assert shallow(value, levels) == text_shallow(text, levels) == (depth(value) <= levels)
    cut = json.loads(cut_down(text, levels))
    assert depth(cut) == min(depth(value), levels) and (cut == value or depth(value) > levels)


@given(st.text("[]{}\"\\a", max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_a_text_in_pieces_nests_as_the_whole(text: str, one: int, other: int) -> None:
    first, last = sorted((one, other))
    pieces, whole = Nesting(), Nesting().feed(text)
    for part in (text[:first], text[first:last], text[last:]):
        pieces.feed(part)
    assert (pieces.depth, pieces.deepest, pieces.open, pieces.closed) == (
        whole.depth,
        whole.deepest,
        whole.open,
        whole.closed,
    )


def test_any_depth_is_read_and_stays_too_deep() -> None:
    for levels in (LEVELS_READ_MAX + 1, 990, 100_000):
        assert depth(read_json('{"a":' * levels + "1" + "}" * levels)) == LEVELS_READ_MAX
    with pytest.raises(json.JSONDecodeError):
        read_json("[" * 100_000)


def test_an_integer_beyond_reading_is_none_that_counts() -> None:
    assert read_json("9" * 640) == int("9" * 640) and read_json("9" * 641) == float("inf")


def test_every_bound_allows_its_last_level_and_no_more() -> None:
    def nested(levels: int) -> dict:
        return json.loads('{"a":' * levels + "1" + "}" * levels)

    assert Asking(extra_body=nested(EXTRA_DEPTH_MAX)) and read_arguments(json.dumps(nested(DEPTH_MAX))) == nested(
        DEPTH_MAX
    )
    with pytest.raises(ValidationError, match=f"at most {EXTRA_DEPTH_MAX} levels"):
        Asking(extra_body=nested(EXTRA_DEPTH_MAX + 1))
    with pytest.raises(NotACall, match=f"deeper than {DEPTH_MAX}"):
        read_arguments(json.dumps(nested(DEPTH_MAX + 1)))
