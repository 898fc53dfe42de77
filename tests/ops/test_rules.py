"""The rule book: complete, and every claim to be enforced stands on a test that exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ledgers.money import decimal_text
from ops.rules import rules_list
from referee.onchain.rulebook import ENFORCED, PLANNED, RECORDED, RULE_ROWS
from referee.onchain.rules import DEFAULT

ROOT = Path(__file__).parents[2]


def functions_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_every_id_has_one_row_in_order():
    assert [row.id for row in RULE_ROWS] == [f"ONC-{number:02}" for number in range(1, 30)]


@pytest.mark.parametrize("row", RULE_ROWS, ids=lambda row: row.id)
def test_rule_is_proven_by_tests_that_exist(row):
    missing = [test for test in row.tests if not _exists(test)]
    assert missing == [] and (bool(row.tests) or row.status in (PLANNED, RECORDED))


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return (ROOT / file).is_file() and name in functions_in(ROOT / file)


@pytest.mark.parametrize("row", RULE_ROWS, ids=lambda row: row.id)
def test_row_is_complete(row):
    assert row.rule.endswith(".") and row.value and row.source and row.status in (ENFORCED, RECORDED, PLANNED)


def test_values_are_those_of_the_rules_in_force():
    values = {row.id: row.value for row in RULE_ROWS}
    assert values["ONC-02"] == f"{decimal_text(DEFAULT.stake_micro_usd, 6)} USD"
    assert f"{DEFAULT.gate_loss_bps_max:,} bps" == values["ONC-08"]


def test_rules_are_listed_with_their_hash():
    text, data = rules_list()
    assert data["sha256"] == DEFAULT.sha256() and DEFAULT.sha256() in text and "ONC-28" in text
