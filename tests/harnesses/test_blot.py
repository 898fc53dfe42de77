"""Secrets are taken out in every form in which they come back, where they stand and nowhere else, in linear work."""

import base64
import json
import sys
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.address import Address
from harnesses.blot import BLOT, Blotter
from tests.harnesses.wire import KEY

ODD = "Ab+/9-_.~=&%x0123456789"
BLOTTER = Blotter((KEY,))

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "its first eight characters": lambda key: key[:8],
    "its first twelve characters": lambda key: key[:12],
    "escaped for addresses": lambda key: quote(key, safe=""),
    "every character escaped for addresses": lambda key: "".join(f"%{ord(letter):02x}" for letter in key),
    "the same in capitals": lambda key: "".join(f"%{ord(letter):02X}" for letter in key),
    "escaped for addresses twice": lambda key: "".join(f"%25{ord(letter):02x}" for letter in key),
    "escaped in JSON": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "some escaped in JSON": lambda key: "".join(
        f"\\u{ord(letter):04x}" if place % 3 else letter for place, letter in enumerate(key)
    ),
    "escaped in JSON inside JSON": lambda key: "".join(f"\\\\u{ord(letter):04X}" for letter in key),
    "escaped in Python": lambda key: "".join(f"\\x{ord(letter):02x}" for letter in key),
    "escaped in HTML": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "escaped in HTML by sixteens": lambda key: "".join(f"&#x{ord(letter):04X};" for letter in key),
    "escaped in HTML inside HTML": lambda key: "".join(f"&amp;#{ord(letter)};" for letter in key),
    "HTML escaped in JSON": lambda key: "".join(f"\\u0026#{ord(letter)};" for letter in key),
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in base64 without its end": lambda key: base64.b64encode(key.encode()).decode().rstrip("="),
    "in base64 safe for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "in base64 behind a name": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "in base64 behind two letters": lambda key: base64.b64encode(f"ab{key}cd".encode()).decode(),
    "in base64 behind a letter, safe for addresses": lambda key: base64.urlsafe_b64encode(f"?{key}".encode()).decode(),
    "its beginning in base64": lambda key: base64.b64encode(key[:9].encode()).decode(),
    "base64 escaped for addresses": lambda key: quote(base64.b64encode(key.encode()).decode(), safe=""),
    "base64 in JSON of PHP": lambda key: base64.b64encode(key.encode()).decode().replace("/", "\\/"),
}


@pytest.mark.parametrize("key", [KEY, ODD], ids=["usual", "odd"])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_blotted_in_every_form(form: str, key: str) -> None:
    told = FORMS[form](key)
    address = Address("http://host/v1", key)
    blotted = address.blotted(f'{{"said": "before {told} behind"}}'.encode()).decode()
    assert blotted.startswith('{"said": "before ') and blotted.endswith(' behind"}') and BLOT.decode() in blotted
    left = blotted.removeprefix('{"said": "before ').removesuffix(' behind"}').split(BLOT.decode())
    assert [len(part) <= 8 for part in left] == [True, True], left
    assert address.blotted_text(f"before {told} behind") == f"before {blotted[17:-9]} behind"


@pytest.mark.parametrize(
    "form", ["as it is", "escaped in JSON", "escaped in HTML", "every character escaped for addresses", "in base64"]
)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_key_in_pieces_is_blotted_where_it_stands(form: str, size: int) -> None:
    told = FORMS[form](KEY)
    unit = len(told) // len(KEY) if form == "escaped in JSON" else 1
    pieces = ["a ", *(told[place : place + size * unit] for place in range(0, len(told), size * unit)), " z"]
    events = [
        f'data: {{"id": "x-{place}", "delta": {{"content": "{piece}"}}}}\n\n' for place, piece in enumerate(pieces)
    ]
    blotted = BLOTTER.blotted("".join(events).encode()).decode()
    said = [json.loads(event.removeprefix("data: ")) for event in blotted.split("\n\n") if event]
    assert (
        "".join(event["delta"]["content"] for event in said) == "a [secret] z"
        if form != "in base64"
        else BLOT.decode() in blotted
    )
    assert [event["id"] for event in said] == [f"x-{place}" for place in range(len(pieces))]


@given(st.text('sk-te"\\{}:%&;#u0012 ', max_size=60))
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert "sk-test-" in text or BLOTTER.blotted_text(text) == text


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.text(st.characters(codec="utf-8"), max_size=20))
def test_nothing_but_the_secret_is_taken_out(before: str, behind: str) -> None:
    assert BLOTTER.blotted_text(f"{before} {KEY} {behind}") == f"{before} [secret] {behind}"


def test_a_beginning_that_begins_itself_again_leaves_no_end() -> None:
    assert Blotter(("abababab-rest-of-it",)).blotted_text("x abababababab-rest-of-it y") == "x [secret] y"


def test_only_keys_are_told_by_their_beginning() -> None:
    address = Address("https://host/deployments/a-model-of-2026-11-30/v1?version=2026-11-30", KEY)
    assert address.blotted_text("a-model-of-2026 of 2026-11-") == "a-model-of-2026 of 2026-11-"
    assert address.blotted_text("at a-model-of-2026-11-30") == "at [secret]"


def test_a_short_key_is_a_word() -> None:
    assert Address("http://host", "none").blotted_text("none of it") == "none of it"


FLOODS = {
    "beginnings": "sk-test-",
    "escapes": "%73",
    "backslashes": "\\",
    "quotes": '"',
    "pairs": '"a":"s",',
    "blanks": '"a" ',
    "references": "&#x0000",
    "nested": "&amp;",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_the_work_grows_with_the_length_and_no_faster(flood: str) -> None:
    def work(times: int) -> int:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        data = (FLOODS[flood] * times).encode()
        sys.setprofile(count)
        try:
            BLOTTER.blotted(data)
        finally:
            sys.setprofile(None)
        return calls

    work(1)
    assert work(4_000) <= 5 * max(work(1_000), 200)
