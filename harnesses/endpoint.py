"""The endpoint: one call to a model, whatever dialect its provider speaks.

    openai_chat.py        OpenAI chat completions: most hosts, most local servers
    openai_responses.py   OpenAI responses
    anthropic.py          Anthropic messages
    http_agent.py         a program of anybody, which we POST each step to
    ScriptedEndpoint      replies from a list, for tests and replays
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harnesses.message import Message, Reply, Usage
from harnesses.outcome import Attempt
from harnesses.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What one step may still use."""

    output_tokens_max: int | None
    """Hidden reasoning inside; none at an open door."""
    deadline_ms: int
    """From now; the whole exchange, retries and waits in, ends before it is past."""


@dataclass(slots=True)
class Wire:
    """What goes over the wire in one step, kept as it goes, so that a step that is cut off still has its bytes.

    Holds no header and no address; who reads `kept` gets no bytes that repeat a key."""

    request: bytes = b""
    answer: bytearray = field(default_factory=bytearray)
    """What came back so far, as it came."""
    blot: Callable[[bytes], bytes] = bytes
    """Takes secrets out of what came back."""
    attempts: list[Attempt] = field(default_factory=list)
    """Exchanges that failed and were tried again, or ended the step."""
    wait_ms: int = 0
    """Time spent waiting: for a rate limit, a back-off, or our own slot."""
    began: bool = False
    """Whether the exchange under way was accepted and is being answered."""
    spent: Usage | None = None
    """What the exchange that ended the step cost, where it brought no reply."""

    _kept: tuple[bytearray, int, bytes] | None = None

    def kept(self) -> bytes:
        """What came back, fit for the journal; blotted once for as long as nothing more comes."""
        known = self._kept
        if known is None or known[0] is not self.answer or known[1] != len(self.answer):
            known = self._kept = (self.answer, len(self.answer), self.blot(bytes(self.answer)))
        return known[2]


class Endpoint(Protocol):
    """Completes a conversation by one answer."""

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits, wire: Wire
    ) -> Reply:
        """Answer once. Raises: ProviderFault; LimitSpent when the time or the output limit ran out on the way."""
        ...


class ScriptedEndpoint:
    """Replies from a list, one for each step; raises what stands in a reply's place. When they are used up, starts
    over."""

    def __init__(self, replies: Sequence[Reply | BaseException | Callable[[Sequence[Message]], Reply]]) -> None:
        assert replies, "a scripted endpoint has at least one reply"
        self._replies = tuple(replies)
        self._next = 0

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits, wire: Wire
    ) -> Reply:
        """Give the next reply."""
        reply = self._replies[self._next % len(self._replies)]
        self._next += 1
        wire.request = messages[-1].text.encode("utf-8", "surrogatepass")
        if isinstance(reply, BaseException):
            raise reply
        said = reply if isinstance(reply, Reply) else reply(messages)
        wire.answer += said.text.encode("utf-8", "surrogatepass")
        return said
