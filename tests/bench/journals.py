"""The journal's rows of the table, as `bench_journal` measures them."""

from __future__ import annotations

import re

from tests.bench import bench_journal
from tests.bench.turns import Result

TARGET = re.compile(r"\(target (≤|≥) ([\d.,]+)\)")


def journal_results(rounds: int, events: int) -> list[Result]:
    """Measure appends, verify and decoding. Runs a loop of its own: call it outside of one."""
    return [_result(*each) for each in bench_journal.run(rounds, events)]


def _result(what: str, number: float, meaning: str) -> Result:
    target = TARGET.search(meaning)
    unit, _, against = TARGET.sub("", meaning).strip().partition(" ")
    return Result(
        what=f"journal: {what}", ours="", against=against, value=number, unit=unit,
        limit=float(target[2].replace(",", "")) if target else None, at_least=bool(target and target[1] == "≥"),
    )  # fmt: skip
