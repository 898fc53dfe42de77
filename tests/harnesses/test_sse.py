"""Server-sent events (WHATWG HTML): however the bytes are cut, the events are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.sse import EventReader, ServerEvent

TEXT = b"\xef\xbb\xbf: hi\r\nevent: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata:3\n\nid: 9\nretry: 5\n\rdata: \xc3\xa9\r\rdata\n\ndata: last"
EVENTS = [ServerEvent("a", "1\n2"), ServerEvent("", "3"), ServerEvent("", "é"), ServerEvent("", ""), ServerEvent("", "last")]


def read(chunks: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)] + list(reader.end())


def test_every_line_end_and_field_is_read() -> None:
    assert read([TEXT]) == EVENTS


@given(st.lists(st.integers(0, len(TEXT))))
def test_where_the_bytes_are_cut_makes_no_difference(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(TEXT)]
    assert read([TEXT[start:end] for start, end in zip(places, places[1:], strict=False)]) == EVENTS


@pytest.mark.parametrize("chunks", [[b""], [b": only a comment\n\n"], [b"\r"], [b"event: named\n\n"]])
def test_without_data_there_is_no_event(chunks: list[bytes]) -> None:
    assert read(chunks) == []


def test_bytes_that_are_no_text_are_not_mended() -> None:
    assert read([b"data: a\xff\n\n"]) == [ServerEvent("", "a\udcff")]
