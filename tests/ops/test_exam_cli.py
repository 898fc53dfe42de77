"""The exam as the command gives it, against a server on loopback that speaks chat completions: sit, list, show, replay, play."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from aiohttp import web

from tests.harnesses.wire import Answering, serving, status
from tests.ops.test_cli import ROOT, environment_of

KEY = "sk-0123456789abcdef-secret"
WINDOW = """
name = "played"
network = "devnet"
length_s = 10
interval_s = 5
seed = 7
[[stack]]
name = "model"
model = "m"
harness = "local-1"
"""


def completion(message: dict, finish: str, *, model: str = "m-2026-11") -> web.Response:
    usage = {"prompt_tokens": 20_000, "completion_tokens": 50, "total_tokens": 20_050, "completion_tokens_details": {"reasoning_tokens": 20}}
    return web.json_response({"id": "x", "model": model, "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}], "usage": usage})


def player(*orders: dict, finish: str = "stop") -> Answering:
    """A model that asks for the gas price once, and then answers a decision; asked for a plan, it writes one."""

    async def answer(request: web.Request) -> web.Response:
        messages = (await request.json())["messages"]
        if messages[0]["content"].startswith("You are a trading agent in a measured competition, before it begins"):
            return completion({"content": "Hold, and sell nothing."}, "stop")
        if messages[-1]["role"] != "tool":
            call = {"id": "c1", "type": "function", "function": {"name": "gas", "arguments": "{}"}}
            return completion({"content": None, "tool_calls": [call]}, "tool_calls")
        decision = {"schema": "decision/1", "orders": list(orders), "inputs": ["bundle", "gas"]}
        return completion({"content": json.dumps(decision)}, finish)

    return answer


async def referee(*arguments: str, home: Path, url: str = "") -> tuple[int, str, str]:
    """Run the command beside a server of this test."""
    environment = environment_of(home) | {"REFEREE_PROVIDER_LOCAL_URL": url, "REFEREE_PROVIDER_LOCAL_KEY": KEY}
    command = [sys.executable, "-m", "ops.cli", *arguments]
    running = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    said, complaint = await running.communicate()
    return running.returncode, said.decode(), complaint.decode()


async def sit(home: Path, *answers: Answering) -> tuple[int, str, str]:
    async with serving(*answers) as server:
        return await referee("exam", "sit", "--model", "m", "--harness", "local-1", home=home, url=f"{server.url}/v1")


async def test_a_model_that_plays_well_passes_is_listed_and_is_heard_again(tmp_path):
    code, said, _ = await sit(tmp_path, player())
    assert code == 0 and "s1 · m on local-1 · pass, no order placed" in said and "calls itself m-2026-11" in said and "unpriced" in said
    code, listed, _ = await referee("exam", "list", home=tmp_path)
    assert code == 0 and "1 sitting: 1 passed, 0 failed, 0 not sat, 0 interrupted" in listed
    code, again, _ = await referee("exam", "replay", "s1", home=tmp_path)
    assert (code, again) == (0, "s1: 3 turns judged again from their bytes, pass as recorded\n")


async def test_two_sittings_of_the_same_answers_say_the_same(tmp_path):
    for _ in range(2):
        await sit(tmp_path, player())
    _, said, _ = await referee("exam", "show", "--json", home=tmp_path)
    one, two = [[(turn["outcome"], turn["checks"], turn["answer_sha256"]) for turn in sitting["turns"]] for sitting in json.loads(said)]
    assert one == two


async def test_a_truncated_answer_fails_on_the_output_limit_with_the_hidden_share(tmp_path):
    code, said, complaint = await sit(tmp_path, player(finish="length"))
    assert code == 1 and "fail: within_output, turn 1" in said and "40 % of" in said
    assert complaint.count("within_output") == 3


async def test_an_outage_is_not_sat_and_no_failure(tmp_path):
    code, said, _ = await sit(tmp_path, status(401, {"error": {"message": "no"}}))
    assert code == 3 and "not sat:" in said
    _, listed, _ = await referee("exam", "list", home=tmp_path)
    assert "0 passed, 0 failed, 1 not sat" in listed


async def test_no_file_of_a_home_holds_the_key(tmp_path):
    await sit(tmp_path, player())
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


async def test_a_sitting_needs_an_address_and_says_which_setting(tmp_path):
    code, _, complaint = await referee("exam", "sit", "--model", "m", "--harness", "local-1", home=tmp_path)
    assert code == 2 and "set REFEREE_PROVIDER_LOCAL_URL" in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize("arguments", [("sit", "--model", "m", "--harness", "none"), ("sit", "--model", "m", "--harness", "baseline-1"), ("show", "s9"), ("replay", "s9"), ("capture", "w9-a-1", "--turn", "0")])
async def test_what_is_not_there_is_one_sentence(tmp_path, arguments):
    code, _, complaint = await referee("exam", *arguments, home=tmp_path, url="http://127.0.0.1:9/v1")
    assert code == 2 and complaint.startswith("referee: ") and complaint.count("\n") == 1


async def test_a_model_opens_a_window_after_its_pass_and_not_before_ONC_13(tmp_path):
    (tmp_path / "played.toml").write_text(WINDOW)
    home = tmp_path / "home"
    async with serving(player()) as server:
        url = f"{server.url}/v1"
        code, _, complaint = await referee("run", str(tmp_path / "played.toml"), "--plain", home=home, url=url)
        assert code == 1 and "has no pass of the entrance exam on harness" in complaint
        assert (await referee("exam", "sit", "--model", "m", "--harness", "local-1", home=home, url=url))[0] == 0
        code, said, complaint = await referee("run", str(tmp_path / "played.toml"), "--plain", home=home, url=url)
    assert code == 0, complaint
    assert "shows its pass of the entrance exam, sitting s1" in said and "plan turn, frozen as " in said
    assert "turn 0: ANSWERED, 2 steps, 1 tool call, 40,000 in, 100 (40 hidden) out tokens" in said
    code, told, _ = await referee("turn", "w1-model-1", "plan", home=home)
    assert code == 0 and "Hold, and sell nothing." in told
    assert (await referee("replay", "w1", home=home))[0] == 0
    assert not [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.slow
async def test_fresh_turns_are_captured_sat_recorded_and_asked_for_by_a_window_ONC_13(tmp_path):
    """Three turns of a chain that nobody had seen, beside the published ones; two sittings see two chains."""
    home, window = tmp_path / "home", tmp_path / "fresh.toml"
    window.write_text(WINDOW.replace("seed = ", 'exam = "fresh"\nseed = ', 1))
    async with serving(player()) as server:
        url = f"{server.url}/v1"
        assert (await referee("exam", "sit", "--model", "m", "--harness", "local-1", home=home, url=url))[0] == 0
        code, said, _ = await referee("check", str(window), home=home, url=url)
        assert code == 1 and "the window asks for a pass on fresh turns, and s1 sat the published ones alone" in said
        code, said, complaint = await referee("exam", "sit", "--model", "m", "--harness", "local-1", "--fresh", home=home, url=url)
        assert code == 0 and "pass on fresh turns too, no order placed" in said, complaint
        assert "turn 6    6-fresh-hostile-texts" in said
        assert (await referee("check", str(window), home=home, url=url))[0] == 0
    code, again, _ = await referee("exam", "replay", "s2", home=home)
    assert (code, again) == (0, "s2: 6 turns judged again from their bytes, pass as recorded\n")
