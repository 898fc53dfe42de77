"""The command: exit codes, one sentence an error, nothing left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers.errors import ChainFault, CorruptJournal, StoreFault
from ledgers.store import Store
from ops.cli import sentence_for
from referee.onchain.state import decoded
from tests.ops.told import ONE, told

ROOT = Path(__file__).parents[2]
WINDOW = """
name = "w"
network = "devnet"
length_s = 60
interval_s = 10
seed = 7
[[stack]]
name = "hold"
baseline = "hold"
"""


def environment_of(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REFEREE_")}
    return {**kept, "REFEREE_HOME": str(home), **more}


def referee(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ops.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment_of(home, **environment), capture_output=True, text=True, timeout=120)


def is_one_sentence(done: subprocess.CompletedProcess[str]) -> bool:
    return done.stdout == "" and done.stderr.startswith("referee: ") and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(scope="module")
def used_home(tmp_path_factory) -> Path:
    """A home with one window that is sealed."""
    import asyncio

    home = tmp_path_factory.mktemp("used")
    journal = told()
    with Store(home / "journal.db", exclusive=True) as store:
        events = [decoded(record) for record in journal.read()]
        blobs = {event.bundle_sha256: journal.blob(event.bundle_sha256) for event in events if hasattr(event, "bundle_sha256")}
        asyncio.run(store.journal("w1").append(*events, blobs=blobs))
    return home


# --- wrong use ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("fly",), ("show",), ("devnet", "sideways"), ("run", "--metrics", "0", "x.toml"), ("runs", "--jso")])
def test_wrong_use_exits_2_and_leaves_nothing(arguments, home):
    done = referee(*arguments, home=home)
    assert done.returncode == 2 and is_one_sentence(done) and "--help` says what can be asked" in done.stderr and not home.exists()


@pytest.mark.parametrize("arguments, said", [((), "commands:"), (("--version",), "referee 0.")])
def test_a_bare_command_says_what_can_be_asked_and_which_version_it_is(arguments, said, home):
    done = referee(*arguments, home=home)
    assert done.returncode == 0 and said in done.stdout and not done.stderr and not home.exists()


BAD_WINDOWS = {
    "not TOML": ("name = ", "is not TOML"),
    "unknown key": (WINDOW.replace("seed", "sed = 1\nseed"), "unknown key sed"),
    "unknown stack key": (WINDOW + "copys = 2\n", "unknown key [[stack]] 1: copys"),
    "impossible window": (WINDOW.replace("interval_s = 10", "interval_s = 100"), "longer than the window"),
    "no stack": (WINDOW.split("[[stack]]")[0], "write at least one [[stack]] table"),
    "unknown baseline": (WINDOW.replace('baseline = "hold"', 'baseline = "genius"'), "genius"),
    "unknown network": (WINDOW.replace('"devnet"', '"moon"'), "moon"),
    "fraction": (WINDOW.replace("length_s = 60", "length_s = 60.5"), "length_s"),
    "escape in a key": (WINDOW + '"\\u001b[31mred" = 1\n', "unknown key"),
}


@pytest.mark.parametrize(("command", "name"), [*(("check", name) for name in BAD_WINDOWS), ("run", "not TOML"), ("run", "unknown baseline"), ("run", "unknown network")])
def test_bad_window_is_one_sentence_and_exit_2(command, name, home, tmp_path):
    text, says = BAD_WINDOWS[name]
    (tmp_path / "bad.toml").write_text(text)
    done = referee(command, str(tmp_path / "bad.toml"), home=home)
    assert done.returncode == 2 and is_one_sentence(done) and says in done.stderr, done.stderr
    assert "\x1b" not in done.stderr and not home.exists()


@pytest.mark.parametrize("command", ["check", "run"])
def test_missing_window_file_is_exit_2(command, home):
    done = referee(command, "nowhere.toml", home=home)
    assert done.returncode == 2 and is_one_sentence(done) and "nowhere.toml" in done.stderr and not home.exists()


@pytest.mark.parametrize("arguments", [("show", "w1-hold-1"), ("verify", "w1"), ("replay", "w1"), ("export", "w1"), ("verify", "gone.jsonl"), ("run", "--resume")])
def test_what_is_not_there_is_exit_2_and_leaves_nothing(arguments, home):
    done = referee(*arguments, home=home)
    assert done.returncode == 2 and is_one_sentence(done) and not home.exists()


@pytest.mark.parametrize("arguments", [("show", "w2-hold-1"), ("show", "w1-hold-2"), ("show", "w1"), ("show", ONE, "--order", "99"), ("verify", "w9"), ("run",)])
def test_unknown_names_in_a_used_home_are_exit_2(arguments, used_home):
    done = referee(*arguments, home=used_home)
    assert done.returncode == 2 and is_one_sentence(done)


def test_a_window_that_is_shown_names_its_runs(used_home):
    assert f"w1 is a window; `referee show RUN` tells one of its runs: {ONE}, w1-hold-1" in referee("show", "w1", home=used_home).stderr


def test_a_home_with_one_window_is_said_to_have_that_one(used_home):
    assert "this home has w1, `referee runs` lists them" in referee("verify", "w9", home=used_home).stderr


def test_a_home_that_is_a_file_names_the_variable(tmp_path):
    (tmp_path / "file").write_text("")
    done = referee("runs", home=tmp_path / "file")
    assert done.returncode == 2 and is_one_sentence(done) and "REFEREE_HOME" in done.stderr


def test_bad_settings_are_one_sentence_without_the_address(home):
    done = referee("runs", home=home, REFEREE_METRICS_PORT="no-port")
    assert done.returncode == 2 and is_one_sentence(done) and "REFEREE_METRICS_PORT" in done.stderr


# --- outside faults -------------------------------------------------------------------------------------------------


def test_real_chain_without_an_address_is_one_sentence(home, tmp_path):
    (tmp_path / "real.toml").write_text(WINDOW.replace('"devnet"', '"robinhood"'))
    done = referee("run", str(tmp_path / "real.toml"), home=home)
    assert done.returncode in (2, 3) and is_one_sentence(done) and "REFEREE_RPC_URLS" in done.stderr


def test_missing_node_is_one_sentence_exit_3_without_its_address(home, tmp_path):
    (tmp_path / "real.toml").write_text(WINDOW.replace('"devnet"', '"robinhood"'))
    done = referee("run", str(tmp_path / "real.toml"), home=home, REFEREE_RPC_URLS="http://127.0.0.1:9/secret-key")
    assert done.returncode == 3 and is_one_sentence(done) and "secret-key" not in done.stderr and ":9" not in done.stderr
    assert referee("runs", "--json", home=home).stdout.count("window_id") == 0


def test_second_daemon_on_one_home_is_refused(home, tmp_path):
    (tmp_path / "w.toml").write_text(WINDOW)
    with Store(home / "journal.db", exclusive=True):
        done = referee("run", str(tmp_path / "w.toml"), home=home)
    assert done.returncode == 3 and is_one_sentence(done) and "in use by process" in done.stderr


def test_taken_metrics_port_is_one_sentence_before_anything_begins(home, tmp_path):
    (tmp_path / "w.toml").write_text(WINDOW)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = referee("run", str(tmp_path / "w.toml"), "--metrics", str(taken.getsockname()[1]), home=home)
    assert done.returncode == 3 and is_one_sentence(done) and "choose another one" in done.stderr and not home.exists()


def test_store_that_is_no_store_is_one_sentence(home):
    home.mkdir()
    (home / "journal.db").write_text("not a database, just some words to fill a page" * 100)
    done = referee("runs", home=home)
    assert done.returncode == 3 and is_one_sentence(done)


# --- reading --------------------------------------------------------------------------------------------------------


def test_empty_home_has_no_runs_and_stays_absent(home):
    done = referee("runs", "--json", home=home)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"windows": []}) and not home.exists()


READING = [("runs",), ("show", ONE), ("show", ONE, "--order", "1"), ("verify", "w1"), ("verify", ONE), ("rules",), ("devnet", "status")]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_reading_command_answers_as_text_and_as_json(arguments, used_home):
    text, data = referee(*arguments, home=used_home), referee(*arguments, "--json", home=used_home)
    assert text.returncode == data.returncode == 0, text.stderr + data.stderr
    assert text.stdout and isinstance(json.loads(data.stdout), dict)


def test_reading_shows_no_control_characters(used_home):
    shown = "".join(referee(*arguments, home=used_home).stdout for arguments in (("runs",), ("show", ONE), ("show", ONE, "--order", "2")))
    assert not any(character in shown for character in "\x1b\x07\u202e\r")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_standard_streams_a_command_does_its_work(closed, used_home, tmp_path):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "ops.cli", "export", "w1", "-o", str(tmp_path / "w1.jsonl")]
    done = subprocess.run(command, cwd=ROOT, env=environment_of(used_home), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and referee("verify", str(tmp_path / "w1.jsonl"), home=used_home).returncode == 0


def test_a_lost_report_is_written_again(used_home):
    done = referee("report", "w1", "--json", home=used_home)
    assert done.returncode == 0 and all(Path(path).is_file() for path in json.loads(done.stdout)["written"])


def test_an_empty_file_replays_as_no_journal(home, tmp_path):
    (tmp_path / "none.jsonl").touch()
    done = referee("replay", str(tmp_path / "none.jsonl"), home=home)
    assert done.returncode == 1 and is_one_sentence(done) and "holds no record" in done.stderr


@pytest.mark.parametrize(("arguments", "code"), [(("runs",), 0), (("verify", "w1"), 2), (("report", "w1"), 2), (("run", "--resume"), 2)])
def test_a_home_whose_first_process_was_killed_at_once_is_an_empty_one(arguments, code, home):
    home.mkdir()
    (home / "journal.db").touch()
    done = referee(*arguments, home=home)
    assert done.returncode == code and (is_one_sentence(done) or not code)


def test_exported_window_verifies_and_a_changed_one_is_exit_1(used_home, tmp_path):
    file = tmp_path / "w1.jsonl"
    assert referee("export", "w1", "-o", str(file), home=used_home).returncode == 0
    assert referee("verify", str(file), home=used_home).returncode == 0
    file.write_text(file.read_text().replace('"lag_ms":3', '"lag_ms":4'))
    changed = referee("verify", str(file), "--json", home=used_home)
    assert changed.returncode == 1 and json.loads(changed.stdout)["standing"] == "CORRUPT"


def test_cut_export_is_exit_1(used_home, tmp_path):
    whole = referee("export", "w1", home=used_home).stdout
    (tmp_path / "cut.jsonl").write_text("".join(whole.splitlines(keepends=True)[:-1]))
    cut = referee("verify", str(tmp_path / "cut.jsonl"), "--json", home=used_home)
    assert cut.returncode == 1 and json.loads(cut.stdout)["standing"] == "TRUNCATED"


def test_reader_that_goes_away_is_no_error(used_home):
    command = f"{sys.executable} -m ops.cli export w1 | head -c 10"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=ROOT, env={**os.environ, "REFEREE_HOME": str(used_home)}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_nothing_heavy():
    loaded = "import sys; from ops.cli import parser; parser().format_help(); print(*sorted({name.split('.')[0] for name in sys.modules}))"
    names = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout.split()
    assert not {"rich", "sqlmodel", "web3", "aiohttp", "pydantic", "matplotlib", "ledgers"} & set(names)


# --- sentences ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChainFault("dead", "lane lane-1"), 3),
        (ChainFault("owned", "another process already owns the local chain of this home"), 3),
        (StoreFault("disk full"), 3),
        (CorruptJournal("record 7", 7), 1),
        (ExceptionGroup("turns", [StoreFault("disk full"), ValueError()]), 3),
        (PermissionError(13, "Permission denied", "/x"), 3),
        (ZeroDivisionError(), 3),
    ],
)
def test_every_exception_is_one_sentence_with_an_exit_code(error, code):
    said, found = sentence_for(error)
    assert found == code and said and "\n" not in said


def test_a_fault_that_is_a_sentence_needs_no_machine_word_before_it():
    assert sentence_for(ChainFault("owned", "another process already owns the local chain of this home"))[0].startswith("another process")


def test_a_node_that_does_not_answer_names_the_variable():
    assert "REFEREE_RPC_URLS" in sentence_for(ChainFault("dead", "lane lane-1: ClientConnectorError"))[0]
