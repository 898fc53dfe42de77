"""The lock of a store: one daemon at a time.

It is an advisory lock on a file beside the store, so it dies with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ledgers.errors import StoreFault


class StoreLock:
    """A held lock. Raises: StoreFault, naming the holder, when another process has it."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + ".lock")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreFault(
                f"the store {store.name} is in use by process {holder}; let it finish or stop it (kill -INT {holder}), "
                "or set REFEREE_HOME to another directory"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    @staticmethod
    def holder(store: Path) -> str:
        """Name the process that holds a store's lock; empty when none does."""
        try:
            file = os.open(store.with_name(store.name + ".lock"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return ""
        except OSError:
            return os.pread(file, 20, 0).decode("ascii", "replace").strip() or "unknown"
        finally:
            os.close(file)

    def holds(self) -> bool:
        """Tell whether the lock file is still there; once removed, another process could lock a new one."""
        return os.fstat(self._file).st_nlink > 0

    def release(self) -> None:
        """Let the next daemon in; the file stays, because removing it would race with whoever waits."""
        os.close(self._file)
