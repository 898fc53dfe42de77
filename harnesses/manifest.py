"""The harness manifest: who answers, with which tools, under which limits; versioned and hashed byte for byte.

Source: 001 §2.1, §7; design §10. A changed byte is a new identity; a manifest is never edited once used, it gets a
successor. A manifest names a provider; its address and key come from the environment and never stand in a file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harnesses.asking import Asking, Rate
from harnesses.provider import LimitSpent
from harnesses.quirks import Quirks
from ledgers.identity import identity_of, sha256_hex

MANIFESTS = Path(__file__).parent / "manifests"
"""Where the shipped manifests live, one file per version."""

MANIFEST_BYTES_MAX = 65_536
ANY_MODEL = "any"
"""A manifest's model when the stack names it."""

ANSWER_TOKENS_MIN = 1_024
"""What a reasoning budget must leave of the output limit, or nothing could be answered."""

OPEN_DOORS = ("http-agent", "mcp")
"""Kinds that a program of anybody plays through; what goes on inside it cannot be limited or counted."""

Word = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)]


class Part(BaseModel):
    """A part of a manifest: unknown fields refused, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Limits(Part):
    """What one turn of a stack without a model may use."""

    steps_max: int = Field(ge=1, le=1_000)
    """Calls to whoever answers."""
    turn_ms_max: int = Field(ge=1, le=3_600_000)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What the loop holds one turn to."""

    steps_max: int
    output_tokens_max: int | None
    """Of the whole turn, hidden reasoning inside; none at an open door."""
    calls_per_step_max: int


class ModelLimits(Limits):
    """What one turn of a stack with a model may use, live and in the plan turn."""

    output_tokens_max: int | None = Field(None, ge=256, le=1_000_000)
    """Of the whole turn, hidden reasoning inside; absent at an open door, where it cannot be counted."""
    calls_per_step_max: int = Field(ge=1, le=64)
    quotes_live_max: int = Field(ge=0, le=10_000)
    plan_ms_max: int = Field(ge=1, le=3_600_000)
    plan_steps_max: int = Field(ge=1, le=1_000)
    plan_output_tokens_max: int | None = Field(None, ge=256, le=1_000_000)
    quotes_plan_max: int = Field(ge=0, le=10_000)

    @property
    def live(self) -> TurnLimits:
        """The limits of a live turn."""
        return TurnLimits(self.steps_max, self.output_tokens_max, self.calls_per_step_max)

    @property
    def plan(self) -> TurnLimits:
        """The limits of the plan turn."""
        return TurnLimits(self.plan_steps_max, self.plan_output_tokens_max, self.calls_per_step_max)


class ProviderPart(Part):
    """Who answers and in which dialect."""

    name: Word
    """Names the settings that hold address and key, e.g. `hosted`."""
    kind: Literal["openai-chat", "openai-responses", "anthropic", "http-agent", "mcp", "scripted"]
    model: str = Field(min_length=1, max_length=200)
    """Model name as the provider knows it; `any` when the stack names it."""
    stream: bool = True
    """Whether to ask for the answer as it is written."""
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What chat completions call the output limit there."""
    slots: int = Field(4, ge=1, le=1_000)
    """Requests under way at once; waiting for a slot is recorded apart from latency."""


class Reasoning(Part):
    """How much hidden reasoning is asked for: an effort or a budget."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    budget_tokens: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.effort is None) == (self.budget_tokens is None):
            raise ValueError("say either effort or budget_tokens")
        return self

    def budget_within(self, output_left: int | None, least: int = 1) -> int:
        """The budget of a step that has so many output tokens left, answer inside. Raises: LimitSpent when too few are left."""
        assert self.budget_tokens is not None
        budget = self.budget_tokens if output_left is None else min(self.budget_tokens, output_left - ANSWER_TOKENS_MIN)
        if budget < least:
            raise LimitSpent("output", f"{output_left} output tokens are left, too few to think and to answer")
        return budget


class Sampling(Part):
    """How answers are drawn; what is absent is left to the provider."""

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, le=2**31 - 1)


class Retry(Part):
    """When a transport fault is tried again: no connection, a connection lost, HTTP 408, 429, 5xx. Nothing else ever is."""

    attempts_max: int = Field(ge=1, le=10)
    backoff_ms: list[Annotated[int, Field(ge=0, le=600_000)]]
    """Waits before attempt 2, 3, …; a longer Retry-After of the provider goes first."""

    @model_validator(mode="after")
    def _one_wait_between_two_attempts(self) -> Self:
        if len(self.backoff_ms) != self.attempts_max - 1:
            raise ValueError(f"{self.attempts_max} attempts have {self.attempts_max - 1} waits between them")
        return self


class Manifest(Part):
    """One harness version of stacks without a model, as its file says it."""

    name: Word
    version: int = Field(ge=1)
    answers: Literal["function"]
    """Who answers: `function`, a stack without a model."""
    exam: Literal["exempt"]
    """Whether the entrance exam is asked for (ONC-13); stacks without a model are exempt."""
    exam_reason: str = Field(min_length=1, max_length=200)
    tools: list[str] = Field(max_length=0)
    """Tool names; a stack without a model has none."""
    limits: Limits


class ModelManifest(Part):
    """One harness version of stacks with a model, as its file says it."""

    name: Word
    version: int = Field(ge=1)
    answers: Literal["model"]
    exam: Literal["required"]
    exam_reason: str = Field(min_length=1, max_length=200)
    tools: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]] = Field(max_length=64)
    """Tool names, in the order in which a stack sees them."""
    provider: ProviderPart
    limits: ModelLimits
    reasoning: Reasoning | None = None
    sampling: Sampling = Sampling()
    asking: Asking = Asking()
    quirks: Quirks = Quirks()
    rate: Rate | None = None
    retry: Retry

    @field_validator("tools")
    @classmethod
    def _no_tool_twice(cls, tools: list[str]) -> list[str]:
        if len(set(tools)) != len(tools):
            raise ValueError("a tool stands twice")
        return tools

    @model_validator(mode="after")
    def _output_is_limited_where_it_can_be_counted(self) -> Self:
        for field in ("output_tokens_max", "plan_output_tokens_max"):
            limit, open_door = getattr(self.limits, field), self.provider.kind in OPEN_DOORS
            if open_door and limit is not None:
                raise ValueError(f"limits.{field} cannot be held at an open door ({self.provider.kind}); leave it out")
            if not open_door and limit is None:
                raise ValueError(f"limits.{field} is missing")
        return self

    @model_validator(mode="after")
    def _reasoning_fits_the_output_limit(self) -> Self:
        if self.reasoning is None:
            return self
        if self.provider.kind in OPEN_DOORS:
            raise ValueError("reasoning cannot be set at an open door")
        for field in ("output_tokens_max", "plan_output_tokens_max"):
            budget, limit = self.reasoning.budget_tokens, getattr(self.limits, field) or 0
            if budget is not None and budget + ANSWER_TOKENS_MIN > limit:
                raise ValueError(
                    f"reasoning.budget_tokens {budget} does not fit limits.{field} {limit}:"
                    f" {ANSWER_TOKENS_MIN} must be left for the answer"
                )
        return self

    @model_validator(mode="after")
    def _every_setting_reaches_the_provider(self) -> Self:
        """A setting that a dialect has no word for would be in the identity and change nothing."""
        kind = self.provider.kind
        if kind in ("anthropic", "openai-responses") and self.sampling.seed is not None:
            raise ValueError(f"sampling.seed: {kind} has no seed")
        if kind == "openai-responses" and self.reasoning and self.reasoning.budget_tokens is not None:
            raise ValueError("reasoning.budget_tokens: openai-responses takes an effort, not a budget")
        if kind in OPEN_DOORS and (self.sampling != Sampling() or self.quirks != Quirks() or self.rate):
            raise ValueError("sampling, quirks and rate cannot be set at an open door")
        if kind != "openai-chat" and self.quirks != Quirks():
            raise ValueError(f"quirks: {kind} has none")
        if objection := self.asking.objection(kind):
            raise ValueError(objection)
        return self


class Harness(BaseModel):
    """A manifest together with the identity of its bytes."""

    model_config = ConfigDict(frozen=True)

    manifest: Manifest | ModelManifest
    sha256: str

    @property
    def tools_sha256(self) -> str:
        """Identity of the list of tool names."""
        return identity_of(self.manifest.tools)

    @property
    def model_manifest(self) -> ModelManifest:
        """The manifest of a harness with a model. Raises: ValueError when it has none."""
        if not isinstance(self.manifest, ModelManifest):
            raise ValueError(f"harness {self.manifest.name} is for stacks without a model")
        return self.manifest


def load_harness(name: str) -> Harness:
    """Load a shipped manifest by its file's name, e.g. `baseline-1`, or one of your own by its path, which ends in `.toml`.

    Raises: ValueError naming what is wrong."""
    if name.endswith(".toml"):
        return _own_harness(Path(name))
    path = MANIFESTS / f"{name}.toml"
    known = harness_names()
    if name not in known:
        raise ValueError(f"no harness named {name[:40]!r}; known: {', '.join(known)}")
    return read_harness(path.read_bytes(), name)


def _own_harness(path: Path) -> Harness:
    try:
        with path.open("rb") as file:
            data = file.read(MANIFEST_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"harness {path} cannot be read: {error.strerror or error}; known: {', '.join(harness_names())}") from None
    if len(data) > MANIFEST_BYTES_MAX:
        raise ValueError(f"harness {path}: expected a manifest of at most {MANIFEST_BYTES_MAX} bytes")
    return read_harness(data, path.stem)


def harness_names() -> list[str]:
    """List the shipped manifests, sorted."""
    return sorted(entry.stem for entry in MANIFESTS.glob("*.toml"))


def read_harness(data: bytes, name: str) -> Harness:
    """Read a manifest's bytes. Raises: ValueError naming the manifest, the field and what was expected."""
    try:
        said = tomllib.loads(data.decode())
        manifest = _kind_of(said).model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise ValueError(f"harness {name}: {field}: {first['msg']}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"harness {name} is not TOML: {error}") from error
    if manifest.name != name:
        raise ValueError(f"harness {name} calls itself {manifest.name!r}; file and name must agree")
    return Harness(manifest=manifest, sha256=sha256_hex(data))


def _kind_of(said: dict[str, Any]) -> type[Manifest] | type[ModelManifest]:
    return ModelManifest if said.get("answers") == "model" else Manifest
