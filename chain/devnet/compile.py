"""The local chain's own contracts, compiled: Solidity by npm's solc through node, Vyper by PyPI's vyper.

One invocation of each compiler for all sources; the answer is kept in the toolchain's folder under a name that
hashes sources, libraries and compilers, so that only a change compiles again. Deterministic: no metadata hash.
`python -m chain.devnet.compile DIR` is the command for set-up.
"""

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ledgers.errors import ChainFault

SOURCES = Path(__file__).parent / "contracts"
SETTINGS = {
    "optimizer": {"enabled": True, "runs": 200},
    "evmVersion": "cancun",
    "metadata": {"bytecodeHash": "none", "appendCBOR": False},
}
LIBRARIES = ("solc", "@openzeppelin/contracts", "solady", "@uniswap/v4-core")
COMPILE_S_MAX = 300


@dataclass(frozen=True, slots=True)
class Artifact:
    """One deployable contract."""

    name: str
    abi: list
    bytecode: str
    """Creation code, 0x-prefixed; constructor arguments are appended by who deploys."""

    @property
    def constructor_types(self) -> tuple[str, ...]:
        """Types of the constructor's arguments, in their order."""
        inputs = [entry["inputs"] for entry in self.abi if entry["type"] == "constructor"]
        return tuple(argument["type"] for argument in inputs[0]) if inputs else ()


def artifacts(toolchain_dir: Path, node: str = "", folder: Path = SOURCES) -> dict[str, Artifact]:
    """Compile all contracts of a folder, ours by default, or read them from the cache.

    Shapes: by contract name. `node` is the executable; empty means `<toolchain_dir>/node` if there is one, else PATH's.
    Raises: ChainFault("compile") with the compilers' own words, ChainFault("toolchain") when a package is missing.
    """
    toolchain_dir = Path(toolchain_dir)
    sources = _sources(folder)
    cache = toolchain_dir / f"artifacts-{_identity(sources, toolchain_dir)}.json"
    if not cache.exists():
        found = _solidity(sources, toolchain_dir, node or _node(toolchain_dir)) | _vyper(sources)
        _write(cache, found)
    kept = json.loads(cache.read_bytes())
    return {name: Artifact(name, entry["abi"], entry["bytecode"]) for name, entry in kept.items()}


def _sources(folder: Path) -> dict[str, str]:
    found = sorted([*folder.rglob("*.sol"), *folder.rglob("*.vy")])
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in found}


def _identity(sources: Mapping[str, str], toolchain_dir: Path) -> str:
    versions = {name: _package_version(toolchain_dir, name) for name in LIBRARIES}
    versions["vyper"] = importlib.metadata.version("vyper")
    whole = json.dumps([sources, versions, SETTINGS], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _package_version(toolchain_dir: Path, package: str) -> str:
    path = toolchain_dir / "node_modules" / package / "package.json"
    try:
        return json.loads(path.read_bytes())["version"]
    except FileNotFoundError:
        raise ChainFault("toolchain", f"npm package {package} expected in the toolchain, found none: run set-up") from None


def _node(toolchain_dir: Path) -> str:
    own = toolchain_dir / "node"
    return str(own.resolve()) if own.is_file() else "node"


def _solidity(sources: Mapping[str, str], toolchain_dir: Path, node: str) -> dict[str, dict]:
    ours = [name for name in sources if name.endswith(".sol")]
    asked = {
        "language": "Solidity",
        "sources": {name: {"content": sources[name]} for name in ours},
        "settings": SETTINGS | {"outputSelection": {name: {"*": ["abi", "evm.bytecode.object"]} for name in ours}},
    }
    answer = json.loads(_run_node(node, (toolchain_dir / "node_modules").resolve(), json.dumps(asked)))
    errors = [error["formattedMessage"] for error in answer.get("errors", ()) if error["severity"] == "error"]
    if errors:
        raise ChainFault("compile", "\n".join(errors))
    return _deployable((name, entry) for name in ours for name, entry in answer["contracts"].get(name, {}).items())


def _deployable(contracts) -> dict[str, dict]:
    found: dict[str, dict] = {}
    for name, entry in contracts:
        code = entry["evm"]["bytecode"]["object"]
        if not code:  # an interface or an abstract contract
            continue
        if name in found:
            raise ChainFault("compile", f"contract names must be unique, found {name} twice")
        found[name] = {"abi": entry["abi"], "bytecode": f"0x{code}"}
    return found


def _run_node(node: str, modules: Path, asked: str) -> str:
    command = [node, str(SOURCES / "solc.js"), str(modules)]
    try:
        ran = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=COMPILE_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise ChainFault("compile", f"node could not be run to compile: {type(fault).__name__}") from fault
    if ran.returncode != 0:
        raise ChainFault("compile", f"node ended with {ran.returncode} while compiling: {ran.stderr[-2000:]}")
    return ran.stdout


def _vyper(sources: Mapping[str, str]) -> dict[str, dict]:
    from vyper import compile_code  # half a second to import: only when something must be compiled
    from vyper.compiler.settings import OptimizationLevel, Settings

    found = {}
    for path, text in sources.items():
        if not path.endswith(".vy"):
            continue
        settings = Settings(evm_version="cancun", optimize=OptimizationLevel.GAS)
        built = compile_code(text, output_formats=("abi", "bytecode"), settings=settings)
        found[Path(path).stem] = {"abi": built["abi"], "bytecode": built["bytecode"]}
    return found


def _write(cache: Path, found: dict[str, dict]) -> None:
    handle, name = tempfile.mkstemp(dir=cache.parent, prefix=".artifacts-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(dict(sorted(found.items())), file)
    os.replace(name, cache)


def main(arguments: list[str]) -> int:
    """Compile into the toolchain folder named by the only argument."""
    if len(arguments) != 1:
        print("usage: python -m chain.devnet.compile TOOLCHAIN_DIR", file=sys.stderr)
        return 2
    try:
        found = artifacts(Path(arguments[0]))
    except ChainFault as fault:
        print(fault, file=sys.stderr)
        return 3
    print(f"{len(found)} contracts compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
