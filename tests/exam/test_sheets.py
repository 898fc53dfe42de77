"""The sheets: exam turns as data, read exactly as written, and tools that answer from them without a network."""

from __future__ import annotations

import json

import pytest

from exam.kept_tools import KeptTools
from exam.sheets import BadSheet, ToolRecord, asked_key, exam_sha256, read_sheet
from harnesses.tools import ToolAnswer, ToolSpec
from tests.exam.given import LEAF, a_sheet

SPECS = tuple(ToolSpec(name, name, {"type": "object"}) for name in ("quote", "gas", "token"))
QUOTE = ToolRecord(name="quote", arguments={"side": "buy", "token": LEAF, "spend_wei": "10"}, ok=True, reason="", answer={"arrival_raw": "7"})
SHEET = a_sheet(answers=(QUOTE, ToolRecord(name="token", arguments={"token": "0x1"}, ok=False, reason="unknown_token", answer={"error": "unknown_token"})))


def test_a_sheet_is_read_back_as_it_was_written():
    assert read_sheet(SHEET.encoded, "x") == SHEET


@pytest.mark.parametrize("old,new", [(b"sheet/1", b"sheet/2"), (b'"tick":0', b'"tack":0'), (b'"name":', b'"nome":'), (b'{"answers"', b'{ "answers"'), (b"}\n", b"")])
def test_a_sheet_in_any_other_form_is_refused(old, new):
    with pytest.raises(BadSheet, match="exam sheet x does not read"):
        read_sheet(SHEET.encoded.replace(old, new, 1), "x")


def test_one_changed_byte_is_another_sheet_and_another_exam():
    other = a_sheet(answers=SHEET.answers, orders_max=7)
    assert other.sha256 != SHEET.sha256 and exam_sha256((other,)) != exam_sha256((SHEET,))


@pytest.mark.parametrize(
    "arguments",
    [{"token": LEAF, "side": "buy", "spend_wei": "10"}, {"token": LEAF.upper().replace("X", "x"), "side": "BUY", "spend_wei": "10"}, {"token": LEAF, "side": "buy", "spend_wei": 10}],
)
def test_equal_questions_are_equal_in_any_order_case_and_number_form(arguments):
    assert asked_key("quote", arguments) == QUOTE.key


def test_another_size_is_another_question():
    assert asked_key("quote", {**QUOTE.arguments, "spend_wei": "11"}) != QUOTE.key


async def test_a_captured_question_is_answered_with_its_bytes():
    assert await KeptTools(SHEET, SPECS, 20).use("quote", dict(QUOTE.arguments)) == ToolAnswer(b'{"arrival_raw":"7"}', True)


async def test_a_captured_refusal_is_refused_again():
    said = await KeptTools(SHEET, SPECS, 20).use("token", {"token": "0x1"})
    assert (said.ok, said.reason) == (False, "unknown_token")


async def test_what_was_never_asked_is_not_captured():
    said = await KeptTools(SHEET, SPECS, 20).use("gas", {"x": 1})
    assert (said.ok, said.reason, json.loads(said.text)) == (False, "not_captured", {"error": "not_captured"})


async def test_quotes_are_spent_as_on_a_live_turn():
    tools = KeptTools(SHEET, SPECS, 2)
    said = [(await tools.use("quote", dict(QUOTE.arguments))).reason for _ in range(3)]
    assert said == ["", "", "quotes_spent"]
