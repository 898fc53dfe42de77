"""Asking: what a harness asks of its host beside tools and limits; declared in the manifest and hashed with it.

    tool_choice, parallel_tool_calls, stop, response_format     as each dialect words them
    system_role       `developer` for hosts that take the prompt under that role
    prompt_caching    marks the prompt and the tools for a host that caches only what is marked
    extra_body        further fields of the request; none that carries the conversation, the limits or the stream
    extra_headers     further headers; none that could carry a key
    [rate]            requests and input tokens a minute, held for the host as a whole, whichever harness asks it
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harnesses.shallow import shallow

EXTRA_BYTES_MAX, EXTRA_DEPTH_MAX = 8_192, 6
RESERVED_FIELDS = frozenset(
    "model messages input instructions system tools functions stream stream_options store include max_tokens "
    "max_completion_tokens"
    " max_output_tokens n reasoning reasoning_effort thinking temperature top_p seed stop stop_sequences tool_choice "
    "function_call"
    " parallel_tool_calls response_format text previous_response_id".split()
)
"""Fields of a request that have a setting of their own, or that a limit hangs on."""
RESERVED_HEADERS = frozenset(
    "accept-encoding connection content-encoding content-length content-type expect host te trailer transfer-encoding "
    "upgrade user-agent"
    " anthropic-version".split()
)
SECRET_WORDS = ("auth", "key", "token", "secret", "cookie", "password", "credential")
"""A header whose name holds one of these is refused: keys come from the environment and never stand in a file."""
KINDS: dict[str, frozenset[str]] = {
    "openai-chat": frozenset(
        "tool_choice parallel_tool_calls stop response_format system_role prompt_caching extra_body "
        "extra_headers".split()
    ),
    "openai-responses": frozenset(
        "tool_choice parallel_tool_calls response_format system_role extra_body extra_headers".split()
    ),
    "anthropic": frozenset("tool_choice parallel_tool_calls stop prompt_caching extra_body extra_headers".split()),
}
"""Which settings each dialect has words for; an open door has none."""

HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,59}$")]
HeaderText = Annotated[str, Field(pattern=r"^[ -~]{1,200}$")]


class Asking(BaseModel):
    """What is asked of a host beside tools and limits; what is absent is left to the host."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tool_choice: Literal["auto", "required"] | None = None
    parallel_tool_calls: bool | None = None
    stop: list[Annotated[str, Field(min_length=1, max_length=60)]] = Field([], max_length=4)
    response_format: Literal["json_object"] | None = None
    system_role: Literal["developer"] | None = None
    prompt_caching: bool = False
    extra_body: dict[str, Any] = {}
    extra_headers: dict[HeaderName, HeaderText] = Field({}, max_length=8)

    @field_validator("extra_body")
    @classmethod
    def _carries_no_more_than_it_may(cls, body: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(RESERVED_FIELDS & set(body)):
            raise ValueError(f"{taken[0]} has a setting of its own or is not a harness's to set")
        if not shallow(body, EXTRA_DEPTH_MAX):
            raise ValueError(f"expected JSON of at most {EXTRA_DEPTH_MAX} levels")
        try:
            size = len(json.dumps(body, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected what JSON can hold: {error}") from None
        if size > EXTRA_BYTES_MAX:
            raise ValueError(f"expected at most {EXTRA_BYTES_MAX} bytes of JSON; found {size}")
        return body

    @field_validator("extra_headers")
    @classmethod
    def _carries_no_key(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            lowered = name.lower()
            if lowered in RESERVED_HEADERS or any(word in lowered for word in SECRET_WORDS):
                raise ValueError(f"header {name} is not a harness's to set; keys come from the environment")
        return headers

    def objection(self, kind: str) -> str:
        """Say which setting a dialect has no word for; empty for none."""
        allowed, usual = KINDS.get(kind, frozenset()), Asking()
        wrong = next(
            (
                name
                for name in type(self).model_fields
                if getattr(self, name) != getattr(usual, name) and name not in allowed
            ),
            "",
        )
        return f"asking.{wrong}: {kind} has no word for it" if wrong else ""


class Rate(BaseModel):
    """What a host takes in a minute, all harnesses together; the least that any of them declares holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    requests_per_minute: int | None = Field(None, ge=1, le=1_000_000)
    input_tokens_per_minute: int | None = Field(None, ge=1_000, le=10**9)
    """Counted from bytes before a request is sent, four to a token."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.requests_per_minute is None and self.input_tokens_per_minute is None:
            raise ValueError("say requests_per_minute, input_tokens_per_minute or both")
        return self
