"""Replaying: a journal of the store, or an exported file, computed again without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledgers.errors import CorruptJournal
from ledgers.journal import Record
from ledgers.plain_text import plain_text
from ledgers.report import eth_text, percent_text
from ledgers.seal import read_export
from ops.lines import counted
from ops.reading import WrongUse, is_file_name, journal_named
from ops.settings import Settings
from referee.onchain.accrual_court import Recall
from referee.onchain.events import HEADLINE, PERMISSIVE, RunScored
from referee.onchain.replay import Difference, Replayed, replay

VALUE_CHARS_MAX = 200


def replayed(settings: Settings, name: str) -> tuple[str, dict[str, object], bool]:
    """Replay what a person named. Returns: text, data, and whether it came out equal.

    Raises: WrongUse, CorruptJournal when chain or entries do not hold."""
    with records_named(settings, name) as (records, run_id, recall):
        found = replay(records, recall)
    if not found.records and found.difference is None:
        raise CorruptJournal(f"{plain_text(name, 200)} holds no record, expected a window's journal", 1)
    if run_id is not None and run_id not in found.state.runs and found.difference is None:
        raise WrongUse(f"no run named {name[:80]!r}; `referee runs` lists them")
    return _text(found, run_id), _data(found, run_id), found.difference is None


@contextmanager
def records_named(settings: Settings, name: str) -> Iterator[tuple[Iterator[Record], str | None, Recall | None]]:
    """Open the records of a run, a window or an exported file; with them the run's id, if a run was named, and where their blobs are found."""
    if not is_file_name(name):
        with journal_named(settings, name) as (journal, run_id):
            yield journal.read(), run_id, journal.blob
    elif not Path(name).is_file():
        raise WrongUse(f"there is no file {name[:200]!r} to replay")
    else:
        yield read_export(Path(name)), None, None


def _text(found: Replayed, run_id: str | None) -> str:
    if found.difference is not None:
        return f"DIFFERENT: {difference_text(found.difference)}"
    work = f"{counted(found.records, 'record')}, {found.recomputed:,} computed again, {counted(found.observed, 'outcome')} taken as observed"
    ended = "" if found.state.sealed else "; the window is not sealed yet"
    return "\n".join([f"EQUAL: {work}{ended}", *(f"  {line}" for line in _run_lines(found, run_id))])


def difference_text(difference: Difference) -> str:
    """Name the first difference."""
    recorded, recomputed = (plain_text(value, VALUE_CHARS_MAX) for value in (difference.recorded, difference.recomputed))
    return f"record {difference.seq} ({difference.kind}), {difference.field}: recorded {recorded}, computed {recomputed}"


def _run_lines(found: Replayed, run_id: str | None) -> Iterator[str]:
    for name, run in found.state.runs.items():
        if run_id in (None, name):
            yield f"{name}: {_score_text(run.scored)}"
            yield from (f"  {ledger} holds {eth_text(found.state.books.of(name, ledger).eth_wei, 18)} ETH" for ledger in (HEADLINE, PERMISSIVE))


def _score_text(scored: RunScored | None) -> str:
    if scored is None:
        return "not scored yet"
    return f"{percent_text(scored.headline_ppm)} headline, {percent_text(scored.permissive_ppm)} permissive" if scored.headline_ppm is not None else "UNSCORED"


def _data(found: Replayed, run_id: str | None) -> dict[str, object]:
    difference = found.difference
    return {
        "equal": difference is None,
        "records": found.records,
        "recomputed": found.recomputed,
        "observed": found.observed,
        "sealed": found.state.sealed is not None,
        "difference": None
        if difference is None
        else {
            "seq": difference.seq,
            "kind": difference.kind,
            "field": difference.field,
            "recorded": difference.recorded,
            "recomputed": difference.recomputed,
        },
        "runs": [
            {
                "run_id": name,
                "headline_ppm": run.scored.headline_ppm if run.scored else None,
                "permissive_ppm": run.scored.permissive_ppm if run.scored else None,
                "eth_wei": {ledger: str(found.state.books.of(name, ledger).eth_wei) for ledger in (HEADLINE, PERMISSIVE)},
            }
            for name, run in found.state.runs.items()
            if run_id in (None, name)
        ],
    }
