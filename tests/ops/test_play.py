"""A window played by the command, from a file to its report: paused, taken up after its close, checked."""

from __future__ import annotations

import csv
import hashlib
import json
import signal
import subprocess
import sys

import pytest

from ledgers.store import Store
from tests.ops.test_cli import ROOT, environment_of, is_one_sentence, referee

WINDOW = """
name = "played"
network = "devnet"
length_s = 10
interval_s = 2
seed = 11
[[stack]]
name = "hold"
baseline = "hold"
[[stack]]
name = "equal"
baseline = "equal-weight"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home in which a window was paused while it held tokens, and taken up after its close."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "played.toml").write_text(WINDOW)
    home = folder / "home"
    yield home
    referee("devnet", "down", home=home)


@pytest.fixture(scope="module")
def paused(home):
    """What the command said when it was interrupted after the first fills."""
    command = [sys.executable, "-m", "ops.cli", "run", str(home.parent / "played.toml"), "--plain"]
    playing = subprocess.Popen(command, cwd=ROOT, env=environment_of(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    while " bought " not in said and (line := playing.stdout.readline()):
        said += line
    playing.send_signal(signal.SIGINT)
    rest, complaint = playing.communicate(timeout=60)
    return playing.returncode, said + rest, complaint


@pytest.fixture(scope="module")
def resumed(home, paused):
    """What the command said when it took the window up after its close."""
    with Store(home / "journal.db", exclusive=False) as store:
        closing = next(json.loads(record.body)["close_ts_ms"] for record in store.journal("w1").read() if record.kind == "WindowOpened")
    waiting = f"import time; time.sleep(max(0, {closing / 1000} + 0.5 - time.time()))"
    subprocess.run([sys.executable, "-c", waiting], check=True, timeout=60)
    return referee("run", "--resume", "--accept-code-change", home=home)


@pytest.mark.slow
def test_interrupt_pauses_and_says_how_to_go_on(paused):
    code, said, complaint = paused
    assert (code, complaint) == (4, "") and "pausing: nobody is woken any more" in said and said.endswith("`referee run --resume` takes it up again\n")


@pytest.mark.slow
def test_window_taken_up_after_its_close_sells_what_it_holds(resumed, home):
    assert resumed.returncode == 0, resumed.stderr
    events = [json.loads(line) for line in referee("export", "w1", home=home).stdout.splitlines()]
    sold = [holding for event in events if event["kind"] == "WindowLiquidated" for holding in event["body"]["holdings"]]
    assert sold and {holding["status"] for holding in sold} == {"proven"}


@pytest.mark.slow
def test_report_is_printed_and_written_in_every_form(resumed, home):
    reports = home / "reports" / "w1"
    assert {path.name for path in reports.iterdir()} == {"report.txt", "report.json", "scores.csv", "further.csv", "gaps.csv", "turns.csv", "outcomes.csv", "runs.csv", "marks.csv", "equity.png"}
    assert (reports / "report.txt").read_text() in resumed.stdout
    assert (reports / "equity.png").read_bytes().startswith(b"\x89PNG")
    runs = {row["run_id"]: row for row in csv.DictReader((reports / "runs.csv").open())}
    assert runs["w1-hold-1"]["headline_ppm"] == "0" and runs["w1-hold-1"]["label"] == "devnet"


@pytest.mark.slow
def test_played_window_verifies_and_replays_equal(resumed, home):
    assert referee("verify", "w1", home=home).returncode == 0
    replayed = json.loads(referee("replay", "w1", "--json", home=home).stdout)
    assert replayed["equal"] and {run["run_id"] for run in replayed["runs"]} == {"w1-hold-1", "w1-equal-1"}


@pytest.mark.slow
def test_every_fill_of_a_played_window_is_proven_offline(resumed, home, tmp_path):
    proved = referee("prove", "w1", "--json", home=home)
    told = json.loads(proved.stdout)
    assert (proved.returncode, told["differs"], told["others_differ"]) == (0, 0, 0)
    assert told["fills"] == told["by_witness"] == len(told["rows"]) > 0, [row["reason"] for row in told["rows"]]
    (tmp_path / "hashes").write_text(f"{told['rows'][0]['block']} 0x{'5e' * 32}\n")
    forged = referee("prove", "w1-equal-1", "--hashes", str(tmp_path / "hashes"), home=home)
    assert forged.returncode == 1 and "DIFFERS: w1-equal-1/" in forged.stdout and "published block hash" in forged.stdout


@pytest.mark.slow
def test_every_order_of_a_played_window_has_a_story(resumed, home):
    orders = json.loads(referee("show", "w1-equal-1", "--json", home=home).stdout)["orders"]
    told = referee("show", "w1-equal-1", "--order", str(len(orders)), home=home)
    assert orders and told.returncode == 0 and "why" in told.stdout


@pytest.mark.slow
def test_changed_export_replays_as_different_or_corrupt(resumed, home, tmp_path):
    whole = referee("export", "w1", home=home).stdout
    (tmp_path / "changed.jsonl").write_text(whole.replace('"side":"buy"', '"side":"sell"', 1))
    changed = referee("replay", str(tmp_path / "changed.jsonl"), home=home)
    assert changed.returncode == 1 and is_one_sentence(changed)


@pytest.mark.slow
def test_sealed_window_is_not_resumed(resumed, home):
    done = referee("run", "--resume", home=home)
    assert done.returncode == 2 and is_one_sentence(done) and "sealed" in done.stderr


@pytest.mark.slow
def test_the_secret_is_committed_to_at_the_opening_and_revealed_at_the_seal_alone(home, resumed):
    with Store(home / "journal.db", exclusive=False) as store:
        bodies = [(record.kind, json.loads(record.body)) for record in store.journal("w1").read()]
    (opened,), (sealed,) = ([body for kind, body in bodies if kind == wanted] for wanted in ("WindowOpened", "WindowSealed"))
    assert hashlib.sha256(sealed["secret"].encode()).hexdigest() == opened["secret_sha256"] != ""
    assert not [kind for kind, body in bodies if kind != "WindowSealed" and sealed["secret"] in json.dumps(body)]
    assert (home / "secret").read_text() not in json.dumps([body for _, body in bodies])
