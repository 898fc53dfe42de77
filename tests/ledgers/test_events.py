"""Events: frozen facts with one encoding."""

import json
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.errors import CorruptJournal
from ledgers.events import Event, decode, encode, kind_of
from ledgers.identity import INTEGER_MAX
from ledgers.money import TokenRaw, Wei
from tests.ledgers.given import KINDS, Counted, Part, counted

small = st.integers(-INTEGER_MAX, INTEGER_MAX)
big = st.integers(-(2**256), 2**256)
texts = st.text(st.characters(exclude_categories=["Cs"]))
parts = st.builds(Part, name=texts, amount_raw=st.none() | big.map(TokenRaw))
events = st.builds(
    Counted, run_id=texts, ts_ms=small, count=small, note=texts, value_wei=big.map(Wei),
    parts=st.lists(parts, max_size=3).map(tuple), sure=st.booleans(),
)  # fmt: skip


@given(events)
def test_an_event_decodes_to_itself_with_the_types_it_had(event):
    again = decode(kind_of(event), encode(event), KINDS)
    assert again == event and type(again.value_wei) is Wei and type(again.parts) is tuple


@given(events)
def test_an_event_encodes_as_canonical_json(event):
    body = encode(event)
    assert body == json.dumps(json.loads(body), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


@given(events)
def test_money_is_a_decimal_string_in_json(event):
    assert json.loads(encode(event))["value_wei"] == str(int(event.value_wei))


@pytest.mark.parametrize("change", [
    {"count": 1.0}, {"count": True}, {"count": INTEGER_MAX + 1}, {"count": Wei(1)}, {"note": 5}, {"note": None},
    {"value_wei": 5}, {"value_wei": TokenRaw(5)}, {"sure": 1}, {"parts": []}, {"parts": ("x",)}, {"note": "\ud800"},
])  # fmt: skip
def test_a_field_of_another_type_does_not_encode(change):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        encode(replace(counted(1), **change))


@pytest.mark.parametrize("change", [
    {"count": 1.0}, {"count": True}, {"count": "1"}, {"count": 2**53}, {"count": None}, {"note": 5}, {"value_wei": 5},
    {"value_wei": "05"}, {"value_wei": "+5"}, {"value_wei": " 5"}, {"value_wei": "5_0"}, {"value_wei": "٥"}, {"value_wei": "-0"},
    {"value_wei": "9" * 101}, {"value_wei": ""}, {"sure": 1}, {"parts": {}}, {"parts": [5]}, {"parts": [{"name": "one"}]},
    {"parts": [{"name": "one", "amount_raw": None, "more": 1}]}, {"more": 1},
])  # fmt: skip
def test_a_body_that_differs_from_its_kind_is_corrupt(change):
    body = json.loads(encode(counted(1))) | change
    with pytest.raises(CorruptJournal, match="Counted does not decode"):
        decode("Counted", json.dumps(body).encode(), KINDS)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"5", b'{"run_id":"a"}', b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_the_object_is_corrupt(body):
    with pytest.raises(CorruptJournal):
        decode("Counted", body, KINDS)


def test_an_unknown_kind_is_corrupt():
    with pytest.raises(CorruptJournal, match="unknown event kind 'Counted'"):
        decode("Counted", encode(counted(1)), KINDS[1:])


def test_events_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        counted(1).count = 2


@pytest.mark.parametrize("annotation", [float, dict, list[int], tuple[int, int], bytes, object])
def test_a_kind_cannot_declare_a_field_that_json_blurs(annotation):
    cls = dataclass(frozen=True, slots=True, kw_only=True)(type("Odd", (Event,), {"__annotations__": {"field": annotation}, "__module__": __name__}))
    with pytest.raises((TypeError, ValueError)):
        encode(cls(run_id="a", ts_ms=1, field=None))
