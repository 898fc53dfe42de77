"""Reading: which journal a person means when they type a run, a window or a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ledgers.errors import RefereeError
from ledgers.journal import Journal
from ledgers.store import EmptyStore, Store
from ops.settings import Settings


class WrongUse(RefereeError):
    """What was typed does not fit; the message is one sentence that says what does."""


@contextmanager
def journal_named(settings: Settings, name: str) -> Iterator[tuple[Journal, str | None]]:
    """Open the journal of a run or window for reading; yields it with the run's id, None when a window was named.

    Raises: WrongUse when there is no such run or window, StoreFault when the store cannot be read."""
    try:
        store = Store(settings.store_path, exclusive=False)
    except EmptyStore:
        raise WrongUse(f"no run or window named {name[:80]!r}: nothing has been run in {settings.home} yet") from None
    with store:
        window_ids = store.window_ids()
        window_id = name.split("-")[0]
        if window_id not in window_ids:
            known = f"this home has {_spanned(window_ids)}" if window_ids else f"nothing has been run in {settings.home} yet"
            raise WrongUse(f"no run or window named {name[:80]!r}; {known}, `referee runs` lists them")
        yield store.journal(window_id), (None if name == window_id else name)


def in_order(window_ids: Sequence[str]) -> list[str]:
    """Order windows by their numbers, oldest first."""
    return sorted(window_ids, key=lambda name: (len(name), name))


def newest(window_ids: Sequence[str]) -> str:
    """Name the last window that was opened."""
    return in_order(window_ids)[-1]


def _spanned(window_ids: Sequence[str]) -> str:
    first, *more = in_order(window_ids)
    return f"{first} to {more[-1]}" if more else first


RUNS_NAMED = 12


def named_runs(run_ids: Sequence[str]) -> str:
    """Name the runs of a window, the first of many."""
    more = len(run_ids) - RUNS_NAMED
    return ", ".join(run_ids[:RUNS_NAMED]) + (f" and {more} more" if more > 0 else "")


def is_file_name(name: str) -> bool:
    """Whether a person means a file: run and window ids hold neither dots nor slashes."""
    return "." in name or "/" in name or Path(name).is_file()
