"""The standing of a background chain: the small file by which its owner tells others where and how it is.

Written whole and renamed into place, so that a reader never sees half of it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from chain.devnet.node import command_of
from ledgers.errors import ChainFault

BUILDING, LIVE, DEAD = "building", "live", "dead"
OWNER_MODULE = "chain.devnet.owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of the chain of one home."""

    phase: str
    """building, live or dead."""
    reason: str
    """Why it is dead; empty otherwise."""
    url: str
    owner_pid: int
    node_pid: int
    seed: int
    block_time_ms: int
    anchor_ms: int
    """Wall time of block 0, Unix milliseconds: block k is due at `anchor_ms + k · block_time_ms`."""
    block0_hash: str
    height: int
    """Newest block when this was written; a live chain is further by now."""
    target_block: int
    """The block at which it was, or will be, ready."""
    of_window: bool = False
    """A window brought it up, and ends it; one that a person brought up stays."""
    rival_url: str = ""
    """Where the rival aggregator of this chain listens; empty where it has none."""

    @property
    def alive(self) -> bool:
        """Whether the chain can be used."""
        return self.phase == LIVE


def folder_of(home: Path) -> Path:
    """Where the files of a home's chain are."""
    return home / "devnet"


def write(folder: Path, standing: Standing) -> None:
    """Put the standing in place of the last one."""
    draft = folder / "chain.json.new"
    draft.write_bytes(orjson.dumps(asdict(standing), option=orjson.OPT_INDENT_2))
    os.replace(draft, folder / "chain.json")


def read(folder: Path) -> Standing | None:
    """The last standing as it was written; None where there is none that can be read."""
    try:
        return Standing(**orjson.loads((folder / "chain.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def forget(folder: Path) -> None:
    (folder / "chain.json").unlink(missing_ok=True)


def owner_runs(standing: Standing, folder: Path) -> bool:
    """Whether the process that wrote it is still there, and is not another one with its number."""
    command = command_of(standing.owner_pid)
    return OWNER_MODULE in command and f"{folder} " in command


@contextmanager
def ownership(folder: Path) -> Iterator[Callable[[], bool]]:
    """Be the only owner of a home's chain; yields how to ask whether it still is: a folder can be removed under it.

    Raises: ChainFault("owned")."""
    with (folder / "owner.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ChainFault("owned", "another process already owns the local chain of this home") from None
        yield lambda: os.fstat(lock.fileno()).st_nlink > 0
