"""Providers without a model: a script of answers by tick, and a function of the question.

A script is a JSON-lines file, one object per tick:

    {"tick": 0, "decision": {"schema": "decision/1", "orders": []}}     answered as JSON text
    {"tick": 1, "answer": "any text, verbatim"}                         answered as it stands
    {"tick": 2, "fault": "host is down"}                                UNAVAILABLE
    {"tick": 3, "out_of": "steps"}                                      OUT_OF_STEPS (or "output")

`"delay_ms"` on any line lets that much time pass first, by the clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harnesses.provider import Answer, LimitSpent, ProviderFault
from harnesses.question import Question
from ledgers.clock import Clock


class ScriptLine(BaseModel):
    """What a script says to one tick: exactly one of decision, answer, fault and out_of."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tick: int = Field(ge=0)
    decision: dict[str, Any] | None = None
    answer: str | None = None
    fault: str | None = None
    out_of: Literal["steps", "output"] | None = None
    delay_ms: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        said = [name for name in ("decision", "answer", "fault", "out_of") if getattr(self, name) is not None]
        if len(said) != 1:
            raise ValueError(f"a line has exactly one of decision, answer, fault, out_of; found {said or 'none'}")
        return self


Script = Mapping[int, ScriptLine]


def read_script(text: str) -> Script:
    """Read a script, one line per tick, blank lines left out. Raises: ValueError naming the line and what is wrong."""
    script: dict[int, ScriptLine] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        parsed = _line(line, number)
        if parsed.tick in script:
            raise ValueError(f"script line {number}: tick {parsed.tick} has a line already")
        script[parsed.tick] = parsed
    return script


def _line(line: str, number: int) -> ScriptLine:
    try:
        return ScriptLine.model_validate_json(line)
    except ValidationError as error:
        raise ValueError(f"script line {number}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    """Say what is wrong with a line in words of the file."""
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    field = ".".join(str(part)[:60] for part in first["loc"])
    match first["type"]:
        case "json_invalid":
            return "it is not one JSON object"
        case "extra_forbidden":
            return f"unknown key {field}; known: {', '.join(ScriptLine.model_fields)}"
        case "missing":
            return f"{field} is missing"
        case "value_error":
            return first["msg"].removeprefix("Value error, ")
    said = f"{first['msg'][:1].lower()}{first['msg'][1:]}".replace("input should be a valid", "expected a valid").replace("input should be", "expected")
    return f"{field}: {said}" if field else said


class ScriptedProvider:
    """Answers by tick, from a script; ticks without a line get `otherwise`, or a fault when that is none."""

    def __init__(self, script: Script | Mapping[int, str], clock: Clock, otherwise: str | None = None) -> None:
        self._script = {tick: _as_line(tick, said) for tick, said in script.items()}
        self._clock = clock
        self._otherwise = otherwise

    async def answer(self, question: Question) -> Answer:
        """Answer one question. Raises: ProviderFault and LimitSpent where the script says so."""
        line = self._script.get(question.tick)
        if line is None:
            return self._unscripted(question.tick)
        if line.delay_ms:
            await self._clock.sleep_until(self._clock.now_ms() + line.delay_ms)
        if line.fault is not None:
            raise ProviderFault(line.fault)
        if line.out_of is not None:
            raise LimitSpent(line.out_of)
        return Answer(json.dumps(line.decision) if line.answer is None else line.answer)

    def _unscripted(self, tick: int) -> Answer:
        if self._otherwise is None:
            raise ProviderFault(f"the script has no line for tick {tick}")
        return Answer(self._otherwise)


def _as_line(tick: int, said: ScriptLine | str) -> ScriptLine:
    return ScriptLine(tick=tick, answer=said) if isinstance(said, str) else said


class FunctionProvider:
    """Answers with a pure function of the question."""

    def __init__(self, decide: Callable[[Question], str]) -> None:
        self._decide = decide

    async def answer(self, question: Question) -> Answer:
        """Answer one question with the function's text."""
        return Answer(self._decide(question))
