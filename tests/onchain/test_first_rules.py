"""A window that was played under superseded rules, before there were rivals, positions and further ledgers, still replays."""

from __future__ import annotations

from pathlib import Path

from ledgers.seal import Standing, read_export, verify_export
from referee.onchain.replay import replay
from referee.onchain.rules import FIRST
from referee.onchain.state import folded

SEALED = Path(__file__).parent / "first_rules.jsonl"


def test_a_window_sealed_under_superseded_rules_verifies_and_replays_equal():
    assert verify_export(SEALED).standing is Standing.COMPLETE
    state, found = folded(read_export(SEALED)), replay(read_export(SEALED))
    assert state.opened.rules_sha256 == FIRST.sha256()
    assert found.difference is None and found.recomputed == 86
