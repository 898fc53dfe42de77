"""The lost report: written again from the journal when a process was killed between a window's seal and its report."""

from __future__ import annotations

from ops.reading import WrongUse, journal_named
from ops.reporting import write_report
from ops.settings import Settings
from ops.width import text_width
from referee.onchain.state import folded


def reported(settings: Settings, name: str) -> tuple[str, dict[str, object]]:
    """Write the report of a sealed window. Raises: WrongUse, StoreFault, CorruptJournal."""
    with journal_named(settings, name) as (journal, _):
        if folded(journal.read()).sealed is None:
            raise WrongUse(f"{journal.window_id} is not sealed yet; its report is written when it is, `referee run --resume` takes it up")
        report, paths = write_report(journal, settings.reports_path(journal.window_id))
    text = f"{report.text(text_width())}\nwritten to {paths[0].parent}: {', '.join(path.name for path in paths)}"
    return text, {"window": journal.window_id, "written": [str(path) for path in paths]}
