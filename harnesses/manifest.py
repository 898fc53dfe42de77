"""The harness manifest: which tools, which limits, versioned and hashed byte for byte.

Source: 001 §2.1. A changed byte is a new identity; a manifest is never edited once used, it gets a successor.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledgers.identity import identity_of, sha256_hex

MANIFESTS = Path(__file__).parent / "manifests"
"""Where the shipped manifests live, one file per version."""


class Limits(BaseModel):
    """What one turn may use."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    steps_max: int = Field(ge=1, le=1_000)
    """Calls to whoever answers."""
    turn_ms_max: int = Field(ge=1, le=3_600_000)


class Manifest(BaseModel):
    """One harness version, as its file says it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)
    version: int = Field(ge=1)
    answers: Literal["function"]
    """Who answers: `function`, a stack without a model. Models come with their own kinds."""
    exam: Literal["exempt"]
    """Whether the entrance exam is asked for (ONC-13); stacks without a model are exempt."""
    exam_reason: str = Field(min_length=1, max_length=200)
    tools: list[str] = Field(max_length=0)
    """Tool names; a stack without a model has none."""
    limits: Limits


class Harness(BaseModel):
    """A manifest together with the identity of its bytes."""

    model_config = ConfigDict(frozen=True)

    manifest: Manifest
    sha256: str

    @property
    def tools_sha256(self) -> str:
        """Identity of the tool list."""
        return identity_of(self.manifest.tools)


def load_harness(name: str) -> Harness:
    """Load a shipped manifest by its file's name, e.g. `baseline-1`. Raises: ValueError naming what is wrong."""
    path = MANIFESTS / f"{name}.toml"
    known = sorted(entry.stem for entry in MANIFESTS.glob("*.toml"))
    if name not in known:
        raise ValueError(f"no harness named {name[:40]!r}; known: {', '.join(known)}")
    return read_harness(path.read_bytes(), name)


def read_harness(data: bytes, name: str) -> Harness:
    """Read a manifest's bytes. Raises: ValueError naming the manifest, the field and what was expected."""
    try:
        manifest = Manifest.model_validate(tomllib.loads(data.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"harness {name}: {field}: {first['msg']}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"harness {name} is not TOML: {error}") from error
    if manifest.name != name:
        raise ValueError(f"harness {name} calls itself {manifest.name!r}; file and name must agree")
    return Harness(manifest=manifest, sha256=sha256_hex(data))
