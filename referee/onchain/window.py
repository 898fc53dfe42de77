"""The window file: what a person asks for, as a frozen value with one canonical form.

A window file is TOML. Everything in it can change a result, so the canonical bytes are hashed into the window's
identity and kept with the journal: a window resumes from its own record, not from a file that may have changed.
Source: 001 §2.2–2.3; design §4.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ledgers.errors import CorruptJournal, RefereeError
from ledgers.identity import INTEGER_MAX, canonical_bytes, sha256_hex
from referee.onchain.rules import DEFAULT, RULES, Rules, rules_named

SCHEMA = "window/1"
LENGTH_S_MIN, LENGTH_S_MAX = 10, 7 * 86_400
COPIES_MAX = 64
RUNS_MAX = 512
TURNS_MAX = 1_000_000
"""Ticks times runs of one window."""
TOKENS_MAX = 1_000
FILE_BYTES_MAX = 1_000_000
SCRIPT_BYTES_MAX = 16_000_000

PARAMS_MAX = 32
PARAM_CHARS_MAX = 200


PUBLISHED, FRESH = "published", "fresh"
MODEL_FIELDS = ("harness", "prompt", "plan")
PROMPT, PLAN = "onchain/trader-2", "onchain/plan-1"
"""The prompts of a model that names none."""
NO_PLAN = "none"


class BadWindow(RefereeError):
    """A window file that cannot be played; the message is one sentence for the person who wrote it."""


def _name(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9-]{1,32}", value):
        raise ValueError("a name is 1 to 32 lower-case letters, digits and dashes")
    return value


def _tokens(value: object) -> object:
    if value == "all":
        return value
    if not isinstance(value, list) or not 1 <= len(value) <= TOKENS_MAX:
        raise ValueError(f'expected "all" or a list of 1 to {TOKENS_MAX} addresses')
    for token in value:
        if not isinstance(token, str) or not re.fullmatch(r"0x[0-9a-fA-F]{40}", token):
            raise ValueError("a token is an address of 0x and 40 hexadecimal digits")
    if len({token.lower() for token in value}) != len(value):
        raise ValueError("the same token is listed twice")
    return [token.lower() for token in value]


def _params(value: object) -> object:
    if not isinstance(value, dict) or len(value) > PARAMS_MAX:
        raise ValueError(f"parameters are a table of at most {PARAMS_MAX} entries")
    for name, item in value.items():
        if not re.fullmatch(r"[a-z0-9_]{1,32}", name):
            raise ValueError(f"a parameter name is 1 to 32 of a-z, 0-9 and _, found {name[:40]!r}")
        if type(item) not in (str, int, bool) or len(str(item)) > PARAM_CHARS_MAX:
            raise ValueError(f"parameter {name} must be text, a whole number, true or false (fractions are written as text)")
        if type(item) is int and not -INTEGER_MAX <= item <= INTEGER_MAX:
            raise ValueError(f"parameter {name} is beyond 2^53 − 1; write it as text")
    return value


Name = Annotated[str, BeforeValidator(_name)]


class StackEntry(BaseModel):
    """One `[[stack]]` of a window file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Name
    baseline: Name | None = None
    """A stack without a model, by name."""
    script: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    """A file of decisions, one JSON object a line, relative to the window file."""
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A model, by the name its provider knows it under."""
    harness: Annotated[str, Field(min_length=1, max_length=400)] | None = None
    """With a model: the harness manifest, by its name or, of one's own, by its path."""
    prompt: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """With a model: the prompt of its turns."""
    plan: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """With a model: the prompt of its plan turn, or `none`."""
    copies: int = Field(1, ge=1, le=COPIES_MAX)
    params: Annotated[dict[str, bool | int | str], BeforeValidator(_params)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.baseline, self.script, self.model)) != 1:
            raise ValueError(f"stack {self.name} needs one of `baseline`, `script` and `model`, and not two")
        if self.model is not None and self.harness is None:
            raise ValueError(f"stack {self.name} names a model and needs a `harness`")
        if self.model is not None and self.params:
            raise ValueError(f"stack {self.name}: a model takes no parameters; its settings stand in the harness")
        if self.model is None and (said := [name for name in MODEL_FIELDS if getattr(self, name) is not None]):
            raise ValueError(f"stack {self.name} has no model, and `{said[0]}` is for models only")
        return self

    @property
    def asked(self) -> ModelAsked | None:
        """The model that is asked for, if one is."""
        if self.model is None or self.harness is None:
            return None
        plan = PLAN if self.plan is None else self.plan
        return ModelAsked(model=self.model, harness=self.harness, prompt=self.prompt or PROMPT, plan=None if plan == NO_PLAN else plan)


class WindowFile(BaseModel):
    """A window file as it is written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Name
    network: Name
    length_s: int = Field(ge=LENGTH_S_MIN, le=LENGTH_S_MAX)
    interval_s: int = Field(ge=1)
    board: Literal["always", "fallback"] | None = None
    """None: as the rules have it."""
    rules: str = DEFAULT.name
    seed: int = Field(ge=0, le=INTEGER_MAX)
    tokens: Annotated[str | list[str], BeforeValidator(_tokens)] = "all"
    exam: Literal["published", "fresh"] = "published"
    """Which pass of the entrance exam admits a model: of its published turns, or of fresh ones beside them."""
    stack: list[StackEntry] = Field(default_factory=list, max_length=RUNS_MAX)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.stack:
            raise ValueError("there is no stack to play; write at least one [[stack]] table")
        if self.interval_s > self.length_s:
            raise ValueError(f"interval_s {self.interval_s} is longer than the window, length_s {self.length_s}")
        if self.rules not in (known := [rules.name for rules in RULES]):
            raise ValueError(f"no rules named {self.rules[:40]!r}; known: {', '.join(known)}")
        names = [stack.name for stack in self.stack]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two stacks are called {twice[0]}; stack names are unique in a window")
        runs = sum(stack.copies for stack in self.stack)
        if runs > RUNS_MAX:
            raise ValueError(f"{runs} runs are more than the {RUNS_MAX} that one window may have")
        if (turns := runs * -(-self.length_s // self.interval_s)) > TURNS_MAX:
            raise ValueError(f"{turns} turns are more than the {TURNS_MAX} that one window may have")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    """The model of a stack: who is asked, under which harness, with which prompts, all by name."""

    model: str
    harness: str
    prompt: str
    plan: str | None
    """None when no plan turn is played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """One stack of a window."""

    name: str
    baseline: str | None
    script: bytes | None
    """The decisions of a scripted stack, else none."""
    copies: int
    params: tuple[tuple[str, bool | int | str], ...]
    """Sorted by name."""
    model: ModelAsked | None = None
    """None for a stack without a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One run that a window will have."""

    run_id: str
    stack: StackPlan
    copy: int
    """From 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window that can be played."""

    name: str
    network: str
    length_ms: int
    interval_ms: int
    board: str
    rules: str
    seed: int
    tokens: tuple[str, ...] | None
    """Lower-case addresses, sorted; none when every token of the network may be traded."""
    stacks: tuple[StackPlan, ...]
    """In the order of the file."""
    exam: str = PUBLISHED

    @property
    def canonical(self) -> bytes:
        """The window in its one canonical form; scripts by their hashes."""
        return canonical_bytes(
            {
                "schema": SCHEMA,
                "name": self.name,
                "network": self.network,
                "length_s": self.length_ms // 1_000,
                "interval_s": self.interval_ms // 1_000,
                "board": self.board,
                "rules": self.rules,
                "seed": self.seed,
                "tokens": "all" if self.tokens is None else list(self.tokens),
                "stack": [_canonical_stack(stack) for stack in self.stacks],
                **({"exam": self.exam} if self.exam != PUBLISHED else {}),
            }
        )

    @property
    def sha256(self) -> str:
        """Identity of the window file."""
        return sha256_hex(self.canonical)

    @property
    def ruled_by(self) -> Rules:
        """The rules in force: the named ones, with the board policy that the window asks for."""
        return replace(rules_named(self.rules), board_policy=self.board)

    @property
    def blobs(self) -> dict[str, bytes]:
        """Everything `restored` needs, by SHA-256."""
        parts = [self.canonical, *(stack.script for stack in self.stacks if stack.script is not None)]
        return {sha256_hex(part): part for part in parts}

    def runs(self, window_id: str) -> tuple[RunPlan, ...]:
        """List the window's runs. Shapes: in the order of the file, then by copy; ids are `window-stack-copy`."""
        return tuple(
            RunPlan(run_id=f"{window_id}-{stack.name}-{copy}", stack=stack, copy=copy)
            for stack in self.stacks
            for copy in range(1, stack.copies + 1)
        )


def load_window(path: Path) -> Window:
    """Read a window file and the scripts it names. Raises: BadWindow with one sentence saying what to change."""
    data = _read(path, FILE_BYTES_MAX, "window file")
    try:
        text = tomllib.loads(data.decode())
    except RecursionError:
        raise BadWindow(f"{path.name} is not TOML that can be read: its lists are nested too deeply") from None
    except ValueError as error:
        raise BadWindow(f"{path.name} is not TOML: {str(error).partition(';')[0]}") from None
    try:
        file = WindowFile.model_validate(text)
    except ValidationError as error:
        raise BadWindow(f"{path.name}: {_sentence(error)}") from None
    return _window(file, lambda script: _read_script(path, script))


def restored(canonical: bytes, blob: Callable[[str], bytes | None]) -> Window:
    """Rebuild a window from its journal. Raises: CorruptJournal when a part is missing or does not read."""
    try:
        parts: dict[str, Any] = orjson.loads(canonical)
        if parts.pop("schema") != SCHEMA:
            raise ValueError(f"window schema is not {SCHEMA}")
        for stack in parts["stack"]:
            stack["script"] = stack.pop("script_sha256")
        return _window(WindowFile.model_validate(parts), lambda sha256: _kept(blob, sha256))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptJournal(f"the recorded window does not read: {error}") from error


def next_window_id(known: list[str]) -> str:
    """Name the next window of a store: one above the highest number so far."""
    numbers = [int(name[1:]) for name in known if name[:1] == "w" and name[1:].isdecimal()]
    return f"w{max(numbers, default=0) + 1}"


def _window(file: WindowFile, script: Callable[[str], bytes]) -> Window:
    return Window(
        name=file.name,
        network=file.network,
        length_ms=file.length_s * 1_000,
        interval_ms=file.interval_s * 1_000,
        board=file.board or next((rules.board_policy for rules in RULES if rules.name == file.rules), DEFAULT.board_policy),
        rules=file.rules,
        seed=file.seed,
        tokens=None if file.tokens == "all" else tuple(sorted(file.tokens)),
        stacks=tuple(_stack(entry, script) for entry in file.stack),
        exam=file.exam,
    )


def _stack(entry: StackEntry, script: Callable[[str], bytes]) -> StackPlan:
    return StackPlan(
        name=entry.name,
        baseline=entry.baseline,
        script=None if entry.script is None else script(entry.script),
        copies=entry.copies,
        params=tuple(sorted(entry.params.items())),
        model=entry.asked,
    )


def _canonical_stack(stack: StackPlan) -> dict[str, object]:
    """A stack without a model is written as before there were models."""
    asked = stack.model
    model = {} if asked is None else {"model": asked.model, "harness": asked.harness, "prompt": asked.prompt, "plan": asked.plan or NO_PLAN}
    return {
        "name": stack.name,
        "baseline": stack.baseline,
        "script_sha256": None if stack.script is None else sha256_hex(stack.script),
        "copies": stack.copies,
        "params": dict(stack.params),
        **model,
    }


def _read(path: Path, bytes_max: int, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        raise BadWindow(f"cannot read the {what} {path.name}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > bytes_max:
        raise BadWindow(f"the {what} {path.name} is larger than {bytes_max} bytes")
    return data


def _read_script(path: Path, script: str) -> bytes:
    try:
        return _read(path.parent / script, SCRIPT_BYTES_MAX, "script")
    except BadWindow as error:
        raise BadWindow(f"{path.name}: {error}, looked for at {(path.parent / script).absolute()}") from None


def _kept(blob: Callable[[str], bytes | None], sha256: str) -> bytes:
    data = blob(sha256)
    if data is None:
        raise ValueError(f"script {sha256} was not kept")
    return data


def _sentence(error: ValidationError) -> str:
    """Say the first thing that is wrong, where, and what was found; an unknown key is often the missing one misspelt."""
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda each: FIRST.index(each["type"]) if each["type"] in FIRST else len(FIRST))
    where = _where(first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {where}; {_known_keys(first['loc'])}"
    if first["type"] == "missing":
        return f"{where} is missing"
    message = EXPECTED.get(first["type"]) or first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    message = message.format(**first.get("ctx", {})) if first["type"] in EXPECTED else message
    found = "" if first["type"] == "value_error" and isinstance(first["input"], (dict, list)) else _found(first["input"])
    return f"{where}: {message}{found}" if where else message


FIRST = ("extra_forbidden", "missing")
"""Kinds of mistakes that are said before others, in order."""

EXPECTED = {
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "string_type": "expected text in quotes",
    "list_type": "expected tables written as [[stack]]",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "greater_than_equal": "expected at least {ge}",
    "less_than_equal": "expected at most {le}",
    "literal_error": "expected {expected}",
    "string_too_short": "expected some text",
    "string_too_long": "expected at most {max_length} characters",
    "too_long": "expected at most {max_length} entries",
}
"""What was expected, in words of the file, by kind of mistake."""


def _found(value: object) -> str:
    """Say what stands there instead, as the file writes it."""
    if isinstance(value, (dict, list)):
        return f", found {'a' if value else 'an empty'} {'table' if isinstance(value, dict) else 'list'}"
    if isinstance(value, bool):
        return f", found {str(value).lower()}"
    if isinstance(value, str):
        hint = "; write it without quotes" if re.fullmatch(r"-?\d{1,20}", value) else ""
        return f', found the text "{value[:60]}"{hint}'
    return f", found {str(value)[:60]}"


def _known_keys(location: tuple[int | str, ...]) -> str:
    model = StackEntry if len(location) > 2 and location[0] == "stack" else WindowFile
    near = get_close_matches(str(location[-1]), model.model_fields, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(model.model_fields)}"


def _where(location: tuple[int | str, ...]) -> str:
    """Name a field as the file shows it, e.g. `[[stack]] 2: copies`."""
    if len(location) < 2 or location[0] != "stack":
        return ".".join(str(part)[:60] for part in location)
    field = ".".join(str(part)[:60] for part in location[2:])
    return f"[[stack]] {int(location[1]) + 1}" + (f": {field}" if field else "")
