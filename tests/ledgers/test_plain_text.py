"""Outside words are bounded and printable before anything records or shows them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.plain_text import plain_text


@pytest.mark.parametrize(
    ("outside", "plain"),
    [
        ("PEPE", "PEPE"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("a" + "\u0301" * 50, "á\u0301\u0301"),
        ("\u3164\ufffd", ""),
        ("a\u202eb\u2066c\u200bd\ufeff", "abcd"),
        ("line\none\r\n\ttwo", "line one two"),
        ("  lead  and   trail ", "lead and trail"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("hidden\ufe01\U000e0101", "hidden"),
        ("half\ud800", "half"),
        ("nul\x00\x07", "nul"),
        ("\u2028\u2029\u00a0", ""),
        ("Привет 猫 🐸", "Привет 猫 🐸"),
        ("<b>=1+1</b> [bold]", "<b>=1+1</b> [bold]"),
    ],
)
def test_what_does_not_print_is_stripped(outside: str, plain: str) -> None:
    assert plain_text(outside, 64) == plain


def test_text_at_the_bound_stays_and_one_more_is_cut() -> None:
    assert plain_text("x" * 32, 32) == "x" * 32
    assert plain_text("x" * 33, 32) == "x" * 31 + "…"


def test_a_megabyte_is_cut_without_being_read_whole() -> None:
    assert plain_text("\u200b" * 1_000_000 + "x", 32) == "…"


@given(st.text(), st.integers(0, 40))
def test_plain_text_is_bounded_printable_and_stable(outside: str, chars_max: int) -> None:
    plain = plain_text(outside, chars_max)
    assert len(plain) <= max(chars_max, 1)
    assert all(unicodedata.category(character)[0] not in "C" for character in plain)
    assert plain_text(plain, max(chars_max, 1)) == plain
