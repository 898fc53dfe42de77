"""The library: prompts loaded verbatim and hashed; it never formats.

What differs from run to run (interval, rules, limits, the frozen plan) is no part of a prompt: the bench writes it into
blocks of its own behind the prompt, from what the run has pinned. A changed byte is a new identity; a prompt that was
used is never edited, it gets a successor with a higher number. Source: 001 §2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ledgers.identity import sha256_hex

FOLDER = Path(__file__).parent
SUFFIX = ".md"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, as its file holds it."""

    name: str
    """Folder and file without suffix, e.g. `onchain/trader-1`."""
    text: str
    sha256: str
    """Of the file's bytes."""


def prompt_names() -> tuple[str, ...]:
    """List the shipped prompts. Shapes: sorted by name."""
    return tuple(sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob(f"*/*{SUFFIX}")))


def load_prompt(name: str) -> Prompt:
    """Load a shipped prompt by its name. Raises: ValueError naming the known ones."""
    if name not in (known := prompt_names()):
        raise ValueError(f"no prompt named {name[:60]!r}; known: {', '.join(known)}")
    return read_prompt((FOLDER / f"{name}{SUFFIX}").read_bytes(), name)


def read_prompt(data: bytes, name: str) -> Prompt:
    """Read a prompt's bytes, changing none. Raises: ValueError when they are not UTF-8 or hold nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"prompt {name} is not UTF-8: {error}") from None
    if not text.strip():
        raise ValueError(f"prompt {name} is empty")
    return Prompt(name, text, sha256_hex(data))
