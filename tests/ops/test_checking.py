"""Checking a window file: scripts are read as they will be, and what will not do is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgers.clock import SystemClock
from ops.checking import checked
from ops.settings import Settings
from tests.ops.test_cli import referee

ROOT = Path(__file__).parents[2]
WINDOW = 'name = "w"\nnetwork = "{network}"\nlength_s = 60\ninterval_s = 10\nseed = 7\n{more}\n[[stack]]\nname = "s"\n{stack}\n'


def notes_of(folder: Path, script: str = "", network: str = "devnet", more: str = "") -> str:
    (folder / "x.jsonl").write_text(script)
    (folder / "w.toml").write_text(WINDOW.format(network=network, more=more, stack='script = "x.jsonl"' if script else 'baseline = "hold"'))
    text, data, _ = checked(Settings(home=folder / "home"), folder / "w.toml", SystemClock())
    assert all(note in text for note in data["notes"])
    return "\n".join(data["notes"])


def test_a_tick_beyond_the_end_of_the_window_is_said(tmp_path):
    said = notes_of(tmp_path, '{"tick": 5, "answer": "{}"}\n{"tick": 6, "fault": "x"}\n{"tick": 99, "fault": "x"}')
    assert "the script has lines for ticks 6, 99, but the window's last tick is 5" in said


@pytest.mark.parametrize("line", ['{"tick": 1, "decision": {"orders": []}}', '{"tick": 1, "answer": "I would buy"}'])
def test_a_script_line_that_is_no_decision_is_said_with_its_reason(tmp_path, line):
    assert "to tick 1 is not a decision and will be recorded as malformed" in notes_of(tmp_path, line)


def test_what_is_to_fail_on_purpose_is_not_remarked(tmp_path):
    assert notes_of(tmp_path, '{"tick": 0, "fault": "down"}\n{"tick": 1, "out_of": "steps"}') == ""


def test_a_real_network_without_an_address_names_the_variable(tmp_path):
    (tmp_path / "w.toml").write_text(WINDOW.format(network="robinhood", more="", stack='baseline = "hold"'))
    text, data, opens = checked(Settings(home=tmp_path / "home"), tmp_path / "w.toml", SystemClock())
    assert not opens and not data["opens"]
    assert "will not open" in text.splitlines()[0] and "before it opens: network robinhood needs REFEREE_RPC_URLS" in text


def test_the_first_line_is_the_verdict_and_the_exit_code_says_the_same(tmp_path):
    (tmp_path / "w.toml").write_text('name = "w"\nnetwork = "devnet"\nlength_s = 60\ninterval_s = 10\nseed = 7\n[[stack]]\nname = "m"\nmodel = "m-1"\nharness = "h1-16k"\n')
    environment = {"REFEREE_PROVIDER_HOSTED_URL": "http://127.0.0.1:9/v1"}
    refused = referee("check", str(tmp_path / "w.toml"), home=tmp_path / "home", **environment)
    assert (refused.returncode, "w.toml will not open" in refused.stdout.splitlines()[0]) == (1, True)
    assert "m-1 has no pass of the entrance exam" in refused.stdout
    fine = referee("check", "ops/windows/first.toml", home=tmp_path / "home")
    assert (fine.returncode, "can be played" in fine.stdout.splitlines()[0]) == (0, True)


def test_tokens_are_seen_only_when_played(tmp_path):
    assert "its 1 token can be traded" in notes_of(tmp_path, more=f'tokens = ["0x{"ab" * 20}"]')


@pytest.mark.parametrize("name", ["first", "scripted", "liquidity"])
def test_shipped_windows_have_nothing_to_remark(tmp_path, name):
    assert checked(Settings(home=tmp_path), ROOT / f"ops/windows/{name}.toml", SystemClock())[1]["notes"] == []


CLOSING = '{{"tick": 3, "decision": {{"schema": "decision/1", "orders": [{{"type": "close-lp", "position": "{position}"}}]}}}}'


@pytest.mark.parametrize("position, said", [
    ("s-1", "a position is RUN/TICK/INDEX"), ("w1-other-1/0/0", "no run of this stack"), ("w1-s-2/0/0", "no run of this stack"),
    ("w1-s-1/3/0", "opened at tick 3, not before"), ("w7-s-1/0/0", ""),
])  # fmt: skip
def test_a_position_that_no_run_of_the_stack_can_have_is_said(tmp_path, position, said):
    notes = notes_of(tmp_path, CLOSING.format(position=position))
    assert said in notes and bool(said) == bool(notes)


def test_rivals_that_the_local_chain_does_not_have_are_said(tmp_path):
    settings = Settings(home=tmp_path, rivals="lifi, 0x")
    text, _, _ = checked(settings, ROOT / "ops/windows/first.toml", SystemClock())
    assert "REFEREE_RIVALS names lifi, which the local chain does not know; it has kyberswap and 0x" in text
