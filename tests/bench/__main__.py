"""The benchmark: every speed target of the design beside what this machine does now, as ratios measured in one run.

`make bench`, or `make bench ARGS=--quick` for a short run whose numbers mean little. Exit code 0 whatever the numbers are, 1
only when a part broke: a machine shared with others proves nothing by one miss. The table is also written as JSON under `.referee/bench/`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chain.devnet.toolchain import require
from ledgers.clock import SystemClock
from ledgers.report import Basis, Column, Table
from ops.collector import rest
from tests.bench.evm import evm_results
from tests.bench.ground import standing
from tests.bench.journals import journal_results
from tests.bench.marks import mark_results
from tests.bench.orders import delayed_results, order_results
from tests.bench.other_routers import other_results
from tests.bench.routes import SIZES_MILLI, route_results
from tests.bench.turns import Result
from tests.bench.windows import window_results
from tests.bench.witnesses import witness_results

COLUMNS = tuple(
    Column(name, heading)
    for name, heading in (
        ("what", "what"), ("ours", "ours"), ("against", "against"), ("figure", "figure"), ("spread", "quarters"), ("target", "target"), ("verdict", ""),
    )
)  # fmt: skip
VERDICTS = {None: "", True: "met", False: "missed"}


@dataclass(frozen=True, slots=True)
class Size:
    """How long to measure."""

    rounds: int
    orders: int
    """Orders a round at concurrency 1; more at more."""
    delayed: int
    holdings: tuple[int, ...]
    mark_rounds: int
    stacks: int
    traders: int
    length_s: int
    journal_rounds: int
    journal_events: int
    sizes_milli: tuple[int, ...]
    """Sizes of the orders that routes are searched for, in thousandths of an ETH."""
    tokens_max: int | None = None


FULL = Size(rounds=24, orders=20, delayed=20, holdings=(1, 10, 100, 500), mark_rounds=11, stacks=200, traders=20, length_s=30, journal_rounds=40, journal_events=20_000, sizes_milli=SIZES_MILLI)
QUICK = Size(rounds=2, orders=5, delayed=2, holdings=(1, 10), mark_rounds=2, stacks=4, traders=3, length_s=10, journal_rounds=2, journal_events=500, sizes_milli=(100,), tokens_max=4)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Print the speed ratios.")
    parser.add_argument("--quick", action="store_true", help="a short run whose numbers mean little")
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("REFEREE_HOME", ".referee")), help="where the JSON is written")
    asked = parser.parse_args(arguments)
    size = QUICK if asked.quick else FULL
    results, broken = _measured(size, quick=asked.quick)
    table = table_of(results, size)
    print(table.text())
    print(f"written to {_written(table, results, asked.home)}")
    for part, error in broken.items():
        print(f"{part} broke and are missing above: {error}", file=sys.stderr)
    return 1 if broken else 0


def _measured(size: Size, *, quick: bool) -> tuple[list[Result], dict[str, str]]:
    """All parts one after another; one that breaks does not take the others with it."""
    parts: dict[str, Callable[[], list[Result]]] = {
        "orders and marks": lambda: asyncio.run(_on_a_chain(size)),
        "routes": lambda: asyncio.run(_routes(size)),
        "the local EVM": lambda: asyncio.run(_local_evm(size)),
        "journal rows": lambda: journal_results(size.journal_rounds, size.journal_events),
        "windows": lambda: asyncio.run(window_results(size.stacks, size.length_s, size.traders, at_once=quick)),
    }
    results: list[Result] = []
    broken: dict[str, str] = {}
    for part, measure in parts.items():
        print(f"measuring {part} …", file=sys.stderr, flush=True)
        try:
            results += measure()
        except Exception as error:  # whatever broke, what was measured is shown
            broken[part] = f"{type(error).__name__}: {str(error)[-500:]}"
    return results, broken


async def _on_a_chain(size: Size) -> list[Result]:
    async with standing(max(size.holdings)) as ground:
        rest()  # as the daemon does before it plays
        orders = await order_results(ground, size.rounds, size.orders)
        delayed = await delayed_results(ground, size.delayed)
        return [*orders, *delayed, *await witness_results(ground), *await mark_results(ground, size.holdings, size.mark_rounds)]


async def _routes(size: Size) -> list[Result]:
    async with standing(0) as ground:
        found = await route_results(ground, size.sizes_milli, size.tokens_max)
        return [*found, *await other_results(ground, size.sizes_milli, require(), size.tokens_max)]


async def _local_evm(size: Size) -> list[Result]:
    async with standing(0) as ground:
        return await evm_results(ground, size.rounds)


def table_of(results: Sequence[Result], size: Size) -> Table:
    """The table as printed."""
    missed = sum(result.met is False for result in results)
    targets = sum(result.met is not None for result in results)
    return Table(
        name="bench",
        title="Speed: ratios measured in one run",
        basis=Basis(label="devnet", n=size.rounds, of="rounds", claim="this machine, now"),
        columns=COLUMNS,
        rows=tuple((each.what, each.ours, each.against, each.figure, each.spread, each.target, VERDICTS[each.met]) for each in results),
        note=f"{targets - missed} of {targets} targets met. A figure is the median of the rounds' own ratios, its quarters are theirs.\n"
        f"Both sides take turns on one node; it, they and whatever else runs share {os.cpu_count()} processors: load {_load():.1f} at the end.",
    )


def _load() -> float:
    return os.getloadavg()[0]


def _written(table: Table, results: Sequence[Result], home: Path) -> Path:
    folder = home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{SystemClock().now_ms()}.json"
    figures = [{"what": each.what, "against": each.against, "value": each.value, "unit": each.unit, "low": each.low, "high": each.high, "met": each.met} for each in results]
    machine = {"processors": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine(), "load": _load()}
    path.write_text(json.dumps({**table.data(), "figures": figures, "machine": machine}, ensure_ascii=False, indent=1))
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
