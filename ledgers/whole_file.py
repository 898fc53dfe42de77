"""A whole file: one that is on disk with all its bytes, or not there at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ledgers.errors import StoreFault


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place once complete and on disk, or vanishes. Raises: StoreFault."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise StoreFault(f"cannot write {path}: {error.strerror or error}; nothing was left behind") from error


def write_whole(path: Path, data: bytes) -> None:
    """Put bytes into a whole file. Raises: StoreFault."""
    with whole_file(path) as file:
        file.write(data)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
