"""The rules page: what is in force, with its source, value, status and proof."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from referee.onchain.rulebook import RULE_ROWS
from referee.onchain.rules import DEFAULT

TEXT_WIDTH = 110


def rules_list() -> tuple[str, dict[str, object]]:
    """List the rules that are in force with source, value, status and proving tests."""
    data = {
        "name": DEFAULT.name,
        "since": DEFAULT.since,
        "sha256": DEFAULT.sha256(),
        "rules": [
            {"id": row.id, "rule": row.rule, "value": row.value, "source": row.source, "status": row.status, "tests": list(row.tests)}
            for row in RULE_ROWS
        ],
    }
    return "\n".join(_rules_text()) + "\n", data


def _rules_text() -> Iterator[str]:
    yield f"{DEFAULT.name}, in force since {DEFAULT.since}, sha256 {DEFAULT.sha256()}"
    for row in RULE_ROWS:
        yield f"\n{row.id}  {row.status:8}  {row.value}  [{row.source}]"
        yield from textwrap.wrap(row.rule, TEXT_WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
        yield from (f"        proof: {test}" for test in row.tests)
