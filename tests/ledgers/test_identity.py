"""Canonical JSON: one form for each value, and nothing that JSON blurs."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.identity import INTEGER_MAX, canonical_bytes, identity_of

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_canonical_bytes_are_what_the_standard_library_writes_with_sorted_keys(value):
    assert canonical_bytes(value) == json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


@given(values)
def test_canonical_bytes_read_back_and_write_again_equal(value):
    assert canonical_bytes(json.loads(canonical_bytes(value))) == canonical_bytes(value)


@given(st.dictionaries(texts, st.integers(0, 9), min_size=2))
def test_the_order_of_keys_does_not_matter(value):
    assert identity_of(value) == identity_of(dict(reversed(value.items())))


@given(st.floats())
def test_floats_are_refused(number):
    with pytest.raises(TypeError):
        canonical_bytes({"deep": [number]})


@pytest.mark.parametrize("number", [INTEGER_MAX + 1, -INTEGER_MAX - 1, 2**256])
def test_integers_that_a_reader_may_round_are_refused(number):
    with pytest.raises(ValueError):
        canonical_bytes([number])


def test_the_largest_safe_integers_pass():
    assert canonical_bytes([INTEGER_MAX, -INTEGER_MAX]) == b"[9007199254740991,-9007199254740991]"


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["ok", "\ud83d"]])
def test_lone_surrogates_are_refused(value):
    with pytest.raises(ValueError):
        canonical_bytes(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, b"bytes", {1, 2}, object()])
def test_what_json_does_not_know_is_refused(value):
    with pytest.raises(TypeError):
        canonical_bytes(value)


def test_an_identity_is_the_sha256_of_the_canonical_bytes():
    assert identity_of({"b": 1, "a": "é"}) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()
