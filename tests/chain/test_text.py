"""Outside text comes out bounded, on one line, and without anything that acts on a terminal or a reader's eye."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.text import clean


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("PEPE", "PEPE"),
        ("", ""),
        ("\x1b[31mRED\x1b[0m", "RED"),
        ("\x1b]0;title\x07TITLE", "TITLE"),
        ("A\x00B\x07C", "ABC"),
        ("line\r\nbreak", "line break"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tag\U000e0041s", "tags"),
        ("\u3164", ""),
        ("a" + "\u0301" * 50, "á\u0301\u0301"),
        (b"\xff\xfeOK", "OK"),
        ("half \ud800 pair", "half pair"),
        (None, ""),
        (7, ""),
    ],
)
def test_what_acts_is_removed(hostile, harmless):
    assert clean(hostile, 32) == harmless


def test_long_text_ends_in_an_ellipsis():
    assert clean("x" * 10_000, 8) == "xxxxxxx…"


@given(st.one_of(st.text(alphabet=st.characters(), max_size=300), st.binary(max_size=300)), st.integers(1, 64))
def test_nothing_that_acts_survives(hostile, length_max):
    harmless = clean(hostile, length_max)
    assert len(harmless) <= length_max
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") for character in harmless)
    harmless.encode("utf-8")
