"""Replaying what a person named: a difference is said wherever it is, the first record included."""

from __future__ import annotations

from ledgers.seal import export
from ops.replaying import replayed
from ops.settings import Settings
from tests.ops.told import told


def test_a_window_of_other_rules_differs_at_its_first_record(tmp_path):
    export(told(), tmp_path / "w1.jsonl")
    text, data, equal = replayed(Settings(home=tmp_path), str(tmp_path / "w1.jsonl"))
    assert not equal and data["records"] == 0 and text.startswith("DIFFERENT: record 1 (WindowOpened), rules_sha256: recorded 0303")
