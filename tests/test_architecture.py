"""The architecture: the tree keeps its arrows, keepers, awaits, clocks and floats; and each guard fires on a planted violation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import guards

ROOT = Path(__file__).parents[1]
TREE = guards.read_tree(ROOT)
STANDARD = frozenset(sys.stdlib_module_names)


def planted(folder: Path, files: dict[str, str]) -> list[guards.Module]:
    """A small source tree of its own."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return guards.read_tree(folder)


# --- the tree -------------------------------------------------------------------------------------------------------


def test_the_tree_is_read():
    assert {module.package for module in TREE} == set(guards.PACKAGES)


def test_imports_follow_the_arrows():
    assert guards.broken_arrows(TREE) == []


def test_every_third_party_package_has_one_keeper():
    assert guards.homeless_packages(TREE) == []


def test_every_third_party_package_is_in_the_keepers_table():
    assert guards.unkept_packages(TREE, STANDARD) == []


def test_of_a_bench_only_run_and_board_await():
    assert guards.stray_awaits(TREE) == []


def test_only_shells_read_clocks_chance_and_environment():
    assert guards.stray_clocks(TREE) == []


def test_money_modules_have_no_floats():
    assert guards.stray_floats(TREE) == []


def test_no_import_cycles():
    assert guards.cycles(TREE) == []


def test_importing_a_module_holds_no_loose_statements():
    assert guards.busy_imports(TREE) == []


def test_no_module_hides_behind_a_banned_name():
    assert guards.banned_names(TREE) == []


def test_event_classes_are_frozen_and_listed():
    assert guards.thawed_events(TREE) == []


def test_allow_lists_name_files_that_exist():
    named = {*guards.CLOCK_SHELLS, *guards.FLOATS_ALLOWED, *guards.DEVNET_USERS}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


WATCH = """
import importlib, sys
QUIET = (sys.base_prefix + "/lib/", "<frozen", "<string>")
DEEDS = ("os.mkdir", "os.remove", "os.rename", "socket.connect", "socket.bind", "subprocess.Popen", "os.fork")
def doer():
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(QUIET):
        frame = frame.f_back
    return frame.f_code.co_filename if frame else ""
def watch(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if (writes or event in DEEDS) and "/site-packages/" not in doer():
        raise SystemExit(f"{doer()}: import did {event} {args[:1]}")
sys.addaudithook(watch)
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_importing_every_module_writes_connects_and_prints_nothing(tmp_path):
    names = [module.name for module in TREE if not module.name.endswith("__main__")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WATCH, *names], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_guard_fires(tmp_path):
    (tmp_path / "noisy.py").write_text("open('made', 'w')")
    done = subprocess.run([sys.executable, "-c", WATCH, "noisy"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "import did open ('made',)" in done.stderr


# --- lock files -----------------------------------------------------------------------------------------------------


def test_python_lock_pins_hashes_and_no_addresses():
    text = (ROOT / "requirements.lock").read_text("utf-8")
    pins = [line for line in text.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert pins and all(line.endswith("\\") for line in pins) and "://" not in text and "index" not in text.replace("index-", "")


def test_node_lock_pins_hashes_and_no_addresses():
    packages = json.loads((ROOT / "chain/devnet/package-lock.json").read_text("utf-8"))["packages"]
    assert [name for name, entry in packages.items() if "resolved" in entry or (name and "integrity" not in entry and not entry.get("link"))] == []


# --- each guard fires -----------------------------------------------------------------------------------------------

EVENT = "@dataclass(frozen=True, slots=True, kw_only=True)\nclass Rose(Event):\n    pass\n\nKINDS = (Rose,)\n"

PLANTED = [
    (guards.broken_arrows, {"ledgers/money.py": "import chain.rpc"}, "ledgers may import nothing of ours"),
    (guards.broken_arrows, {"prompts/library.py": "from harnesses import turn"}, "prompts may import ledgers"),
    (guards.broken_arrows, {"chain/rpc.py": "from referee.onchain import rules"}, "chain may import ledgers"),
    (guards.broken_arrows, {"exam/checks.py": "import chain.rpc"}, "exam may import"),
    (guards.broken_arrows, {"referee/onchain/score.py": "from ops import cli"}, "referee may import"),
    (guards.broken_arrows, {"referee/onchain/score.py": "from referee.perps import rules"}, "benches never import each other"),
    (guards.broken_arrows, {"referee/onchain/score.py": "from ..perps import rules"}, "benches never import each other"),
    (guards.broken_arrows, {"referee/perps/engine.py": "import chain.rpc"}, "only onchain stands on chain"),
    (guards.broken_arrows, {"referee/onchain/board.py": "from chain.devnet import node"}, "admin door"),
    (guards.broken_arrows, {"chain/rpc.py": "def late():\n    from chain.devnet import node"}, "admin door"),
    (guards.homeless_packages, {"referee/onchain/score.py": "import sqlmodel"}, "its keeper is ledgers/store.py"),
    (guards.homeless_packages, {"ops/cli.py": "from rich.table import Table"}, "its keeper is ops/view.py"),
    (guards.homeless_packages, {"harnesses/turn.py": "def late():\n    import web3"}, "its keeper is chain/"),
    (guards.stray_awaits, {"referee/onchain/score.py": "async def score(): ..."}, "awaits"),
    (guards.stray_awaits, {"referee/onchain/marks.py": "async def f():\n    async with x: ..."}, "awaits"),
    (guards.stray_clocks, {"referee/onchain/run.py": "import time\ntime.sleep(1)"}, "reads time.sleep"),
    (guards.stray_clocks, {"referee/onchain/run.py": "from time import time as t\nt()"}, "reads time.time"),
    (guards.stray_clocks, {"chain/rpc.py": "from datetime import datetime\ndatetime.now()"}, "reads datetime.datetime.now"),
    (guards.stray_clocks, {"chain/rpc.py": "import datetime as d\nd.datetime.utcnow()"}, "reads datetime.datetime.utcnow"),
    (guards.stray_clocks, {"harnesses/turn.py": "import random\nrandom.choice([1])"}, "reads random.choice"),
    (guards.stray_clocks, {"harnesses/turn.py": "import os\nos.environ['A']"}, "reads os.environ"),
    (guards.stray_clocks, {"harnesses/turn.py": "from os import getenv"}, "reads os.getenv"),
    (guards.stray_floats, {"referee/onchain/credit.py": "rate = 0.5"}, "holds the float 0.5"),
    (guards.stray_floats, {"ledgers/money.py": "def f(a): return float(a)"}, "uses float"),
    (guards.stray_floats, {"chain/router.py": "def f(a, b): return a / b"}, "divides with /"),
    (guards.stray_floats, {"chain/gas.py": "def f(a):\n    a /= 2"}, "divides with /"),
    (guards.cycles, {"chain/a.py": "import chain.b", "chain/b.py": "from chain import c", "chain/c.py": "from chain.a import x"}, "chain.a → chain.b → chain.c → chain.a"),
    (guards.busy_imports, {"ops/cli.py": "print('hello')"}, "does something on import"),
    (guards.busy_imports, {"ops/cli.py": "for x in range(3): pass"}, "does something on import"),
    (guards.busy_imports, {"ops/cli.py": "try:\n    import x\nexcept ImportError: pass"}, "does something on import"),
    (guards.banned_names, {"chain/utils.py": ""}, "no module is called utils"),
    (guards.banned_names, {"chain/rpc_helpers.py": ""}, "no module is called rpc_helpers"),
    (guards.banned_names, {"referee/core/rules.py": ""}, "no module is called core"),
    (guards.thawed_events, {"referee/onchain/events.py": EVENT.replace("frozen=True, ", "")}, "Rose is not a frozen"),
    (guards.thawed_events, {"referee/onchain/events.py": EVENT.replace("(Rose,)", "()")}, "Rose is missing from KINDS"),
]


@pytest.mark.parametrize(("guard", "files", "says"), PLANTED, ids=[f"{guard.__name__}-{says}" for guard, _, says in PLANTED])
def test_guard_fires_on_a_planted_violation(guard, files, says, tmp_path):
    found = guard(planted(tmp_path, files))
    assert any(says in line for line in found), found


def test_guard_fires_on_a_package_without_a_keeper(tmp_path):
    assert guards.unkept_packages(planted(tmp_path, {"ops/cli.py": "import leftpad"}), STANDARD)


ALLOWED = {
    "ledgers/clock.py": "import time\nnow = time.time_ns\n",
    "chain/price.py": "from random import Random\nimport os\nSEEDED = Random(7)\nHERE = os.path.join('a', 'b')\ndef half(a: float | None, b): return b // 2\n",
    "chain/rpc.py": "import typing\nif typing.TYPE_CHECKING:\n    from referee.onchain import rules\n",
    "referee/onchain/events.py": EVENT,
    "referee/onchain/run.py": "import chain.rpc\nasync def tick(): await x\n",
}


def test_guards_are_silent_on_what_is_allowed(tmp_path):
    tree = planted(tmp_path, ALLOWED)
    all_guards = {guard for guard, _, _ in PLANTED}
    assert {guard.__name__: found for guard in all_guards if (found := guard(tree))} == {}
