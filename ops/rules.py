"""The rules page: what is in force, with its source, value, status and proof."""

from __future__ import annotations

from collections.abc import Iterator

from ledgers.layout import TEXT_WIDTH, labelled
from referee.onchain.rulebook import RULE_ROWS
from referee.onchain.rules import DEFAULT


def rules_list(width: int = TEXT_WIDTH) -> tuple[str, dict[str, object]]:
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
    return "\n".join(_rules_text(width)) + "\n", data


def _rules_text(width: int) -> Iterator[str]:
    yield f"{DEFAULT.name}, in force since {DEFAULT.since}, sha256 {DEFAULT.sha256()}"
    for row in RULE_ROWS:
        yield ""
        yield from labelled(row.id, f"{row.status}, {row.value}  [{row.source}]", 6, width)
        yield from labelled("", row.rule, 6, width)
        yield from (f"        proof: {test}" for test in row.tests)
