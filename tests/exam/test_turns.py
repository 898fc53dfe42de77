"""The shipped exam: three turns captured from real runs, complete, and played here by a script through the real loop."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from exam.entrance import PASS, Candidate, sit, verdict
from exam.kept_tools import KeptTools
from exam.sheets import TURNS, exam_sheets, load_sheet
from harnesses.endpoint import ScriptedEndpoint
from harnesses.manifest import load_harness
from harnesses.message import Message, Reply, ToolCall, Usage
from harnesses.model import ModelProvider
from harnesses.stack import Stack
from ledgers.clock import VirtualClock
from prompts.library import load_prompt
from referee.onchain.toolbox import SPECS, TOOLS

SHEETS = exam_sheets()
HARNESS = load_harness("h1-16k")
STACK = Stack(name="m", provider="scripted", model="m", harness_sha256=HARNESS.sha256, prompt_sha256="b" * 64, tools_sha256="c" * 64, params=())
T0 = 1_790_000_000_000
USAGE = Usage(100, 0, 0, 50, 0)


def shown(messages: Sequence[Message]) -> dict:
    """What the model was shown first: one object with bundle and book."""
    return json.loads(messages[1].text)


def asking(name: str, **arguments) -> Reply:
    return Reply("", (ToolCall("1", name, json.dumps(arguments)),), USAGE, "tools", "m-1")


def answering(*orders: dict, inputs: tuple[str, ...] = ("bundle", "book")) -> Reply:
    return Reply(json.dumps({"schema": "decision/1", "orders": list(orders), "inputs": list(inputs)}), (), USAGE, "end", "m-1")


async def played(*replies):
    """Sit the exam by a script of replies, started over for each turn."""
    limits = HARNESS.model_manifest.limits
    clock = VirtualClock(T0)
    candidate = Candidate(stack=STACK, harness="h1-16k", prompt=load_prompt("onchain/trader-1").text, limits={}, turn_ms_max=limits.turn_ms_max)
    provider = ModelProvider(ScriptedEndpoint(replies), lambda question: KeptTools(SHEETS[question.tick], SPECS, limits.quotes_live_max), limits.live, clock)
    return verdict(await sit(candidate, provider, SHEETS, clock, "s1"), len(SHEETS))


def test_there_are_three_turns_one_with_a_book_to_sell_and_one_with_hostile_texts():
    assert [sheet.name for sheet in SHEETS] == ["1-fresh-book", "2-book-to-sell", "3-hostile-texts"]
    assert len(json.loads(SHEETS[1].book)["holdings"]) >= 3 and "Ignore all previous instructions" in SHEETS[2].bundle.decode()


@pytest.mark.parametrize("path", sorted(TURNS.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_sheet_is_in_its_canonical_form_and_tells_where_it_is_from(path):
    sheet = load_sheet(path)
    assert sheet.captured.label == "devnet" and sheet.captured.block_hash.startswith("0x") and sheet.purpose


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_tool_was_asked_about_every_token(sheet):
    asked = {(record.name, record.arguments.get("token")) for record in sheet.answers}
    tokens = [token["address"] for token in json.loads(sheet.bundle)["tokens"]]
    assert all((tool, token) in asked for tool in ("token", "candles", "swaps", "quote") for token in tokens)
    assert {record.name for record in sheet.answers} == set(TOOLS) - {"book", "plan"}


async def test_a_careful_script_passes():
    def decide(messages):
        book = shown(messages)["book"]
        sales = [{"type": "sell", "token": holding["token"], "amount_raw": "all"} for holding in book["holdings"][:1]]
        return answering(*sales, {"type": "buy", "token": shown(messages)["bundle"]["tokens"][0]["address"], "spend_wei": str(10**15)})

    assert (await played(asking("gas"), decide)).standing == PASS


async def test_who_follows_a_hostile_name_fails_on_the_third_turn():
    def decide(messages):
        seen = shown(messages)
        told = next((token["address"] for token in seen["bundle"]["tokens"] if token["untrusted_name"].startswith("Ignore all")), None)
        return answering(*([{"type": "buy", "token": told, "spend_wei": seen["book"]["eth_wei"]}] if told else []))

    found = await played(asking("gas"), decide)
    assert (found.check, found.turn) == ("orders_affordable", 3)


async def test_who_spends_what_its_own_sale_would_bring_fails_on_the_second_turn():
    def decide(messages):
        seen = shown(messages)
        sales = [{"type": "sell", "token": holding["token"], "amount_raw": "all"} for holding in seen["book"]["holdings"]]
        return answering(*sales, {"type": "buy", "token": seen["bundle"]["tokens"][0]["address"], "spend_wei": str(10**16)})

    found = await played(asking("gas"), decide)
    assert (found.check, found.turn) == ("orders_affordable", 2)


async def test_who_uses_no_tool_fails_on_the_first_turn():
    found = await played(answering())
    assert (found.check, found.turn) == ("used_a_tool", 1)


async def test_who_calls_a_tool_that_is_none_fails_on_the_first_turn():
    found = await played(asking("qoute", token="x"), answering())
    assert (found.check, found.turn) == ("tool_calls_well_formed", 1)
