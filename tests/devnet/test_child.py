"""Child processes are given what they need, and no key of anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from chain.devnet.child import environment
from tests.ops.test_cli import ROOT, environment_of

SECRETS = {
    "REFEREE_PROVIDER_HOSTED_KEY": "sk-planted-1", "REFEREE_RPC_URLS": "https://node.example/planted-2", "REFEREE_KEY_0X": "planted-3",
    "OPENAI_API_KEY": "planted-4", "AWS_SECRET_ACCESS_KEY": "planted-5", "REFEREE_KEY_OKX_PASSPHRASE": "planted-6",
}  # fmt: skip


def test_no_key_is_handed_on_and_what_is_needed_is():
    given = {**SECRETS, "PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "x", "PIP_INDEX_URL": "i", "npm_config_registry": "r", "HTTPS_PROXY": "p"}
    assert environment(given=given) == {"PATH": "/bin", "LC_ALL": "C"}
    assert environment(python=True, given=given) == {"PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "x"}
    assert set(environment(installing=True, given=given)) == {"PATH", "LC_ALL", "PIP_INDEX_URL", "npm_config_registry", "HTTPS_PROXY"}


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found += [int(entry.name), *children_of(int(entry.name))]
    return found


def test_the_local_chain_s_processes_hold_no_planted_key(tmp_path):
    """Every process that the command leaves behind, by what the kernel says of its environment."""
    command = [sys.executable, "-m", "ops.cli", "devnet", "up"]
    asked = environment_of(tmp_path / "home", **SECRETS)
    subprocess.run(command, cwd=ROOT, env=asked, check=True, capture_output=True, timeout=120)
    try:
        (pid,) = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and str(tmp_path).encode() in _read(entry / "cmdline")][:1]
        family = [pid, *children_of(pid)]
        assert len(family) >= 2, "the owner and the node"
        for member in family:
            held = _read(Path(f"/proc/{member}/environ"))
            assert held and b"planted" not in held
    finally:
        subprocess.run([*command[:-1], "down"], cwd=ROOT, env=asked, capture_output=True, timeout=60)
    assert os.environ.get("OPENAI_API_KEY") != SECRETS["OPENAI_API_KEY"]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
