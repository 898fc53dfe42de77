"""The guards that hold the architecture: each takes the parsed tree and returns violations as `file:line what`.

Source: design §3. The tables below are the architecture written as data; a line in
an allow-list says why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("ledgers", "prompts", "harnesses", "chain", "referee", "exam", "ops")

ARROWS: dict[str, tuple[str, ...]] = {
    "ledgers": (),
    "prompts": ("ledgers",),
    "harnesses": ("ledgers", "prompts"),
    "chain": ("ledgers",),
    "referee": ("ledgers", "prompts", "harnesses", "chain"),
    "exam": ("ledgers", "prompts", "harnesses", "referee"),
    "ops": ("ledgers", "prompts", "harnesses", "chain", "referee", "exam"),
}
"""What a package may import besides itself."""

CHAIN_BENCHES = ("onchain",)
"""Benches that may import `chain`."""

DEVNET_USERS = ("chain/devnet/", "ops/")
"""The local chain's admin door stays with these."""

KEEPERS: dict[str, tuple[str, ...]] = {
    "sqlmodel": ("ledgers/store.py",),
    "sqlalchemy": ("ledgers/store.py",),
    "sqlite3": ("ledgers/store.py",),
    "matplotlib": ("ledgers/report.py",),
    "orjson": ("ledgers/", "chain/", "harnesses/", "referee/onchain/", "ops/"),
    "aiohttp": ("chain/rpc.py", "chain/devnet/", "chain/outside/source.py", "chain/aggregators/web.py", "harnesses/mcp_door.py"),
    "httpx": ("harnesses/http.py",),
    "tenacity": ("harnesses/http.py",),
    "web3": ("chain/",),
    "eth_abi": ("chain/",),
    "eth_utils": ("chain/",),
    "eth_hash": ("chain/",),
    "rlp": ("chain/evm/serial.py",),
    "trie": ("chain/evm/proofs.py",),
    "Crypto": ("chain/evm/precompiles.py",),
    "vyper": ("chain/devnet/compile.py",),
    "apscheduler": ("ops/scheduler.py",),
    "pydantic_settings": ("ops/settings.py",),
    "rich": ("ops/view.py",),
    "prometheus_client": ("ops/metrics.py",),
    "pydantic": ("chain/network.py", "harnesses/", "referee/", "ops/settings.py"),
}
"""Where a package may be imported. orjson and pydantic are the form of every text border, so a few doors keep them."""

CLOCK_SHELLS: dict[str, str] = {
    "ledgers/clock.py": "is the clock",
    "chain/devnet/": "runs processes and mines; its randomness is seeded",
    "ops/": "the shell: settings, command, terminal",
}
"""Where a clock, the environment or unseeded randomness may be read, and why."""

MONEY = (
    "ledgers/money.py", "ledgers/postings.py", "referee/onchain/", "chain/router.py", "chain/simulate.py",
    "chain/honeypot.py", "chain/liquidity/", "chain/evm/", "chain/gas.py", "chain/balance_slot.py", "chain/price.py", "chain/pools.py", "chain/aggregators/",
)  # fmt: skip
"""Modules without floats: no literal, no `float`, no `/`."""

FLOATS_ALLOWED: dict[str, str] = {}
"""Modules of MONEY that may use floats, and why."""

AWAITING = ("run.py", "board.py", "decision_desk.py", "rival_desk.py", "crossing.py", "witnessing.py", "recording.py", "following.py", "valuing.py", "further_desk.py", "liquidity_desk.py", "positions_followed.py", "telling.py")
"""The modules of a bench that may await: the run with what it appends through and what runs beside it, and the desks."""

BANNED_NAMES = ("util", "utils", "helper", "helpers", "common", "misc", "base", "core", "manager", "managers", "handler", "handlers")

STILL = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
"""Statements that a module may hold at its top."""


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    name: str
    path: str
    """Relative to the tree, with slashes."""
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.path.split("/")[0]

    @property
    def bench(self) -> str:
        parts = self.path.split("/")
        return parts[1] if parts[0] == "referee" and len(parts) > 2 else ""


def read_tree(root: Path) -> list[Module]:
    """Parse every module of the product's packages, sorted by path."""
    paths = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py") if "node_modules" not in path.parts)
    return [_module(root, path) for path in paths]


def _module(root: Path, path: Path) -> Module:
    relative = path.relative_to(root)
    name = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
    return Module(name, relative.as_posix(), ast.parse(path.read_text("utf-8"), filename=str(relative)))


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Name what a module imports, line by line; `from a import b` counts as `a.b`, imports for types only are passed over."""
    skipped = {id(node) for guard in ast.walk(module.tree) if _is_type_checking(guard) for node in ast.walk(guard)}
    for node in ast.walk(module.tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.endswith("__init__.py")
    parts = module.name.split(".")[: None if is_package and node.level == 1 else -(node.level - is_package)]
    return ".".join([*parts, node.module] if node.module else parts)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def broken_arrows(modules: Iterable[Module]) -> list[str]:
    """Imports against the arrows, between benches, or of the local chain's admin door."""
    found = []
    for module in modules:
        for line, target in imports(module):
            parts = target.split(".")
            if parts[0] not in PACKAGES:
                continue
            where = f"{module.path}:{line} imports {target}"
            if parts[0] not in (module.package, *ARROWS[module.package]):
                found.append(f"{where}: {module.package} may import {', '.join(ARROWS[module.package]) or 'nothing of ours'}")
            elif module.bench and parts[0] == "referee" and parts[1:2] != [module.bench]:
                found.append(f"{where}: benches never import each other")
            elif module.package == "referee" and parts[0] == "chain" and module.bench not in CHAIN_BENCHES:
                found.append(f"{where}: only {', '.join(CHAIN_BENCHES)} stands on chain")
            elif parts[:2] == ["chain", "devnet"] and not module.path.startswith(DEVNET_USERS):
                found.append(f"{where}: the local chain's admin door is for {' and '.join(DEVNET_USERS)} only")
    return found


def homeless_packages(modules: Iterable[Module]) -> list[str]:
    """Third-party imports outside their keeper."""
    found = []
    for module in modules:
        for line, target in imports(module):
            keepers = KEEPERS.get(target.split(".")[0])
            if keepers and not module.path.startswith(keepers):
                found.append(f"{module.path}:{line} imports {target}: its keeper is {', '.join(keepers)}")
    return found


def unkept_packages(modules: Iterable[Module], standard: frozenset[str]) -> list[str]:
    """Third-party imports that no keeper is named for."""
    known = {*PACKAGES, *KEEPERS, *standard, "__future__"}
    return [
        f"{module.path}:{line} imports {target}: name its keeper in tests/guards.py"
        for module in modules
        for line, target in imports(module)
        if target.split(".")[0] not in known
    ]


def stray_awaits(modules: Iterable[Module]) -> list[str]:
    """async or await in a bench outside its two shells."""
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return [
        f"{module.path}:{node.lineno} awaits: of a bench only {' and '.join(AWAITING)} do"
        for module in modules
        if module.bench and module.path.split("/")[-1] not in AWAITING
        for node in ast.walk(module.tree)
        if isinstance(node, kinds)
    ]


CLOCKS = {
    "time": None,
    "datetime.datetime": ("now", "utcnow", "today"),
    "datetime.date": ("today",),
    "os": ("environ", "getenv", "environb", "urandom"),
    "uuid": ("uuid1", "uuid4"),
    "secrets": None,
    "random": ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "seed", "getrandbits", "SystemRandom", "gauss"),
}
"""What only a shell may touch, by full name; None means all of it. `random.Random(seed)` is a value and stays free."""


def stray_clocks(modules: Iterable[Module]) -> list[str]:
    """Reads of a clock, the environment or unseeded randomness outside the shells."""
    found = []
    for module in modules:
        if not module.path.startswith(tuple(CLOCK_SHELLS)):
            found += [f"{module.path}:{line} reads {name}: time and chance are arguments" for line, name in _names(module) if _is_clock(name)]
    return found


def _is_clock(name: str) -> bool:
    for source, members in CLOCKS.items():
        if name.startswith(f"{source}.") and (members is None or name.removeprefix(f"{source}.").split(".")[0] in members):
            return True
    return False


def _names(module: Module) -> Iterator[tuple[int, str]]:
    """Full dotted names that a module mentions, imports resolved."""
    known: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            head, _, rest = name.partition(".")
            if head in known:
                yield node.lineno, f"{known[head]}.{rest}"


def stray_floats(modules: Iterable[Module]) -> list[str]:
    """Float literals, `float` and true division in money modules."""
    found = []
    for module in modules:
        if not module.path.startswith(MONEY) or module.path in FLOATS_ALLOWED:
            continue
        skipped = {id(part) for note in _annotations(module.tree) for part in ast.walk(note)}
        found += [f"{module.path}:{node.lineno} {what}: money has no floats" for node in ast.walk(module.tree) if id(node) not in skipped and (what := _float_in(node))]
    return found


def _float_in(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and type(node.value) is float:
        return f"holds the float {node.value}"
    if isinstance(node, ast.Name) and node.id == "float":
        return "uses float"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div) and not _is_path(node):
        return "divides with /"
    return ""


def _is_path(node: ast.BinOp | ast.AugAssign) -> bool:
    """A `/` with a literal text on its right, or a place on its left, joins a path."""
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    place = ast.unparse(left).rpartition(".")[2].lower().endswith(("path", "folder", "parent", "here", "home"))
    return place or isinstance(right, ast.JoinedStr) or (isinstance(right, ast.Constant) and isinstance(right.value, str))


def _annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def cycles(modules: Iterable[Module]) -> list[str]:
    """Import cycles between modules, each named once."""
    modules = list(modules)
    names = {module.name for module in modules}
    edges = {module.name: sorted({found for _, target in imports(module) if (found := _nearest(target, names)) and found != module.name}) for module in modules}
    found: dict[frozenset[str], str] = {}
    done: set[str] = set()
    for name in sorted(edges):
        _walk(name, edges, [], done, found)
    return sorted(found.values())


def _nearest(target: str, names: set[str]) -> str:
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target


def _walk(name: str, edges: dict[str, list[str]], path: list[str], done: set[str], found: dict[frozenset[str], str]) -> None:
    if name in path:
        ring = path[path.index(name) :]
        found.setdefault(frozenset(ring), " → ".join([*ring, name]))
        return
    if name in done:
        return
    for target in edges.get(name, ()):
        _walk(target, edges, [*path, name], done, found)
    done.add(name)


def busy_imports(modules: Iterable[Module]) -> list[str]:
    """Top-level statements that do something when a module is imported."""
    return [
        f"{module.path}:{node.lineno} does something on import: {ast.unparse(node).splitlines()[0][:60]}"
        for module in modules
        for node in module.tree.body
        if not _is_still(node)
    ]


def _is_still(node: ast.stmt) -> bool:
    if isinstance(node, STILL):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.If) and (_is_type_checking(node) or ast.unparse(node.test) == "__name__ == '__main__'")


def banned_names(modules: Iterable[Module]) -> list[str]:
    """Modules and packages whose name hides what is in them."""
    return [
        f"{module.path}: no module is called {part}; a noun is missing"
        for module in modules
        for part in module.name.split(".")
        if set(part.strip("_").split("_")) & set(BANNED_NAMES)
    ]


def thawed_events(modules: Iterable[Module]) -> list[str]:
    """Event classes that are not frozen, keyword-only dataclasses, or that the bench's KINDS leave out."""
    found = []
    for module in modules:
        if not (module.bench and module.path.endswith("events.py")):
            continue
        kinds = _kinds(module.tree)
        for node in module.tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            if not any("frozen=True" in ast.unparse(mark) and "kw_only=True" in ast.unparse(mark) for mark in node.decorator_list):
                found.append(f"{module.path}:{node.lineno} {node.name} is not a frozen, keyword-only dataclass")
            if any(ast.unparse(parent) == "Event" for parent in node.bases) and node.name not in kinds:
                found.append(f"{module.path}:{node.lineno} {node.name} is missing from KINDS")
    return found


def _kinds(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "KINDS" and isinstance(node.value, ast.Tuple):
                return {ast.unparse(item) for item in node.value.elts}
    return set()


def lengths(modules: Iterable[Module], root: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Measure modules and functions in lines, longest first."""
    files, functions = [], []
    for module in modules:
        files.append((len((root / module.path).read_text("utf-8").splitlines()), module.path))
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append(((node.end_lineno or node.lineno) - node.lineno + 1, f"{module.path}:{node.lineno} {node.name}"))
    return sorted(files, reverse=True), sorted(functions, reverse=True)
