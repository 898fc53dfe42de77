"""The benchmark runs and prints every row; its numbers are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = (
    "order, sell, concurrency 1", "order, sell, concurrency 8", "order, buy with gate, concurrency 1", "order, buy with gate, concurrency 8",
    "orders a second, sell, concurrency 32", "orders a second, buy, concurrency 32", "order, sell, 50 ms away", "order, buy, 50 ms away",
    "mark of 1 holding, round trips", "mark of 10 holdings", "journal: append at concurrency 1", "journal: verify a chain in memory",
    "local EVM, v2 swap with its reads, warm", "local EVM, v3 swap with its reads, cold, state proven", "witness of a v3 swap", "witness of a v4 swap",
    "wake lag p99, 4 stacks", "memory a stack, 4 stacks", "replay of a real window",
    "router, orders within 1 bp of the best", "router, no worse than uniswap-python", "router, no worse than smart-order-router",
)  # fmt: skip


@pytest.mark.slow
def test_the_benchmark_runs_and_prints_every_row(tmp_path):
    done = subprocess.run([sys.executable, "-m", "tests.bench", "--quick", "--home", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert [row for row in ROWS if row not in done.stdout] == []
    (written,) = (tmp_path / "bench").glob("*.json")
    assert len(json.loads(written.read_text())["figures"]) >= len(ROWS)
