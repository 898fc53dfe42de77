"""The sheets: exam turns as data, read exactly as written, and tools that answer from them without a network."""

from __future__ import annotations

import json

import pytest

from exam.kept_tools import KeptTools
from exam.sheets import BadSheet, ToolRecord, exam_sha256, read_sheet
from referee.onchain.toolbox import specs_of
from tests.exam.given import ETH, LEAF, MOSS, RESERVE, a_sheet

SPECS = specs_of(["quote", "gas", "token", "pools", "candles", "book", "plan"])


def a_quote(spend: int, arrives: int, gas: int = 3) -> ToolRecord:
    rows = [{"route": "v3", "status": "proven", "reason": "", "arrival_raw": str(arrives), "quoted_raw": str(arrives), "gas_wei": str(gas)}]
    told = {"tool": "quote", "side": "buy", "token": LEAF, "spend_wei": str(spend), "rows": rows, "quotes_left": 99}
    return ToolRecord(name="quote", arguments={"side": "buy", "token": LEAF, "spend_wei": str(spend)}, ok=True, reason="", answer=told)


QUOTE = a_quote(1_000, 700)
POOLS = [{"token": LEAF, "untrusted_symbol": "LEAF"}, {"token": MOSS, "untrusted_symbol": "MOSS"}, {"token": LEAF, "untrusted_symbol": "LEAF"}]
SHEET = a_sheet(
    answers=(
        QUOTE, a_quote(3_000, 1_900, 5),
        ToolRecord(name="token", arguments={"token": MOSS}, ok=False, reason="unknown_token", answer={"error": "unknown_token"}),
        ToolRecord(name="pools", arguments={"sort": "liquidity"}, ok=True, reason="", answer={"tool": "pools", "found": 3, "pools": POOLS}),
        ToolRecord(name="candles", arguments={"token": LEAF, "span": "1m"}, ok=True, reason="", answer={"tool": "candles", "candles": [[n] for n in range(120)]}),
    )
)  # fmt: skip


async def said(name: str, quotes_max: int = 20, **arguments):
    answer = await KeptTools(SHEET, SPECS, quotes_max).use(name, arguments)
    return answer.reason, json.loads(answer.text)


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
    [{"token": LEAF, "side": "buy", "spend_wei": "1000"}, {"spend_wei": "1000", "token": "0x" + "11" * 20, "side": "buy", "amount_raw": None}],
)
async def test_a_captured_question_is_answered_with_what_was_captured_and_what_is_left(arguments):
    assert await said("quote", **arguments) == ("", QUOTE.answer | {"quotes_left": 19})


async def test_a_captured_refusal_is_refused_again():
    assert (await said("token", token=MOSS))[0] == "unknown_token"


async def test_what_was_never_asked_is_not_captured():
    assert (await said("gas"))[0] == "not_captured"


@pytest.mark.parametrize("arguments", [{"side": "buy"}, {"side": "buy", "token": LEAF, "spend_wei": 5}, {"side": "buy", "token": LEAF, "spend_wei": "5", "x": 1}])
async def test_arguments_are_read_as_on_a_live_turn(arguments):
    assert (await said("quote", **arguments))[0] == "bad_arguments"


async def test_quotes_are_spent_as_on_a_live_turn():
    tools = KeptTools(SHEET, SPECS, 2)
    words = [(await tools.use("quote", dict(QUOTE.arguments))).reason for _ in range(3)]
    assert words == ["", "", "allowance_spent"]


@pytest.mark.parametrize(
    ("spend", "arrives", "gas", "sizes"),
    [("2000", "1300", "5", ["1000", "3000"]), ("1001", "700", "5", ["1000", "3000"]), ("500", "350", "3", ["0", "1000"]), ("6000", "3800", "5", ["3000", "3000"])],
)  # fmt: skip
async def test_a_quote_of_another_size_lies_between_the_captured_ones_rounded_down(spend, arrives, gas, sizes):
    _, told = await said("quote", side="buy", token=LEAF, spend_wei=spend)
    assert (told["rows"][0]["arrival_raw"], told["rows"][0]["gas_wei"], told["kept_sizes"], told["spend_wei"]) == (arrives, gas, sizes, spend)


@pytest.mark.parametrize(("spend", "cannot"), [(ETH - RESERVE, None), (ETH - RESERVE + 1, "insufficient_eth")])
async def test_a_quote_says_whether_the_own_book_could_carry_it(spend, cannot):
    dear = a_quote(10 * ETH, 7)
    sheet = a_sheet(answers=(ToolRecord(name="quote", arguments=dear.arguments, ok=True, reason="", answer=dear.answer | {"own_book_cannot": "insufficient_eth"}),))
    said = await KeptTools(sheet, SPECS, 20).use("quote", {"side": "buy", "token": LEAF, "spend_wei": str(spend)})
    assert json.loads(said.text)["own_book_cannot"] == cannot


async def test_a_quote_of_another_token_is_not_captured():
    assert (await said("quote", side="buy", token=MOSS, spend_wei="5"))[0] == "not_captured"


@pytest.mark.parametrize(("arguments", "count"), [({}, 30), ({"limit": 7}, 7), ({"limit": 120}, 120), ({"span": "1m"}, 30)])
async def test_a_list_has_as_many_rows_as_are_asked_for(arguments, count):
    assert len((await said("candles", token=LEAF, **arguments))[1]["candles"]) == count


@pytest.mark.parametrize(("arguments", "found"), [({}, 3), ({"token": LEAF}, 2), ({"search": "mos"}, 1), ({"search": "0x11"}, 2), ({"search": "x" * 9}, 0)])
async def test_pools_are_searched_as_on_a_live_turn(arguments, found):
    assert (await said("pools", **arguments))[1]["found"] == found


async def test_the_book_is_the_one_shown_and_there_is_no_plan():
    assert (await said("book"))[1]["book"] == json.loads(SHEET.book) and (await said("plan"))[0] == "no_plan"
