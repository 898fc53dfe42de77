"""The ending of a turn: how it was played and what it decided, as events of one append (001 §2.1–2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harnesses.message import Usage
from harnesses.outcome import Outcome, Step, Turn
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.plain_text import plain_text
from referee.onchain.decision import Decision, Malformed
from referee.onchain.events import (
    DecisionMalformed, DecisionTaken, StepAttempt, StepCounted, StepTaken, TokensSpent, ToolCalled, TurnPlayed, TurnUnavailable,
)  # fmt: skip

CALL_ID_CHARS_MAX = 120


def turn_ended(run_id: str, tick: int, played: Turn, read: Decision | Malformed | None, ts_ms: int) -> tuple[Event, ...]:
    """Write down how a turn ended. Shapes: its steps, TurnPlayed, then exactly one of decision, malformed, unavailable."""
    named = {"run_id": run_id, "ts_ms": ts_ms, "tick": tick}
    ended = TurnPlayed(
        **named,
        outcome=played.outcome.value,
        reason=played.reason,
        steps=len(played.steps),
        latency_ms=played.latency_ms,
        wait_ms=played.wait_ms,
    )
    return (*steps_taken(run_id, tick, played, ts_ms), ended, _said(named, played, read))


def steps_taken(run_id: str, tick: int, played: Turn, ts_ms: int) -> tuple[Event, ...]:
    """Write down the way of a turn. Shapes: step by step, each with what it used and the tool calls it asked for."""
    named = {"run_id": run_id, "ts_ms": ts_ms, "tick": tick}
    return tuple(event for place, step in enumerate(played.steps) for event in (*_step(named, place, step), *_calls(named, place, played)))


def _step(named: dict[str, Any], place: int, step: Step) -> Iterator[Event]:
    yield StepTaken(
        **named, step=place, request_sha256=sha256_hex(step.request), answer_sha256=sha256_hex(step.answer), latency_ms=step.latency_ms
    )
    if step.stop or step.usage or step.attempts or step.model_reported or step.wait_ms:
        yield StepCounted(
            **named,
            step=place,
            stop=step.stop,
            model_reported=step.model_reported,
            wait_ms=step.wait_ms,
            tokens=_tokens(step.usage),
            attempts=tuple(
                StepAttempt(
                    reason=tried.reason, answer_sha256=sha256_hex(tried.answer), latency_ms=tried.latency_ms, wait_ms=tried.wait_ms,
                    tokens=_tokens(tried.usage),
                )
                for tried in step.attempts
            ),
        )


def _tokens(usage: Usage | None) -> TokensSpent | None:
    if usage is None:
        return None
    return TokensSpent(
        input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens, reasoning_tokens=usage.reasoning_tokens, flags=usage.flags,
    )  # fmt: skip


def _calls(named: dict[str, Any], place: int, played: Turn) -> Iterator[Event]:
    for use in played.tool_uses:
        if use.step == place:
            yield ToolCalled(
                **named, step=place, call=use.call, call_id=plain_text(use.id, CALL_ID_CHARS_MAX), name=use.name,
                arguments_sha256=sha256_hex(_bytes(use.arguments_text)), answer_sha256=sha256_hex(use.answer), ok=use.ok, reason=use.reason,
                note=use.note, latency_ms=use.latency_ms,
            )  # fmt: skip


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _said(named: dict[str, str | int], played: Turn, read: Decision | Malformed | None) -> Event:
    match read:
        case Decision():
            return DecisionTaken(**named, decision_sha256=read.sha256, schema=read.schema, orders=read.orders)
        case Malformed():
            answer = played.steps[-1].answer if played.steps else b""
            return DecisionMalformed(**named, reason=read.reason, detail=read.detail, answer_sha256=sha256_hex(answer))
        case _:
            return TurnUnavailable(**named, reason=f"{played.outcome.value}: {played.reason}")


def turn_blobs(played: Turn, read: Decision | Malformed | None) -> dict[str, bytes]:
    """The bytes behind a turn, by SHA-256."""
    decided = read.encode().encode() if isinstance(read, Decision) else None
    return step_blobs(played) | ({} if decided is None else {sha256_hex(decided): decided})


def step_blobs(played: Turn) -> dict[str, bytes]:
    """The bytes of a turn's steps and tool calls, by SHA-256."""
    steps = [part for step in played.steps for part in (step.request, step.answer, *(tried.answer for tried in step.attempts))]
    calls = [part for use in played.tool_uses for part in (_bytes(use.arguments_text), use.answer)]
    return {sha256_hex(part): part for part in (*steps, *calls)}


def turn_blind(run_id: str, tick: int, reason: str, ts_ms: int) -> tuple[Event, ...]:
    """Write down a turn in which nothing could be shown: not the stack's result."""
    named = {"run_id": run_id, "ts_ms": ts_ms, "tick": tick, "reason": f"no_bundle: {reason}"}
    outcome = Outcome.UNAVAILABLE.value
    return (TurnPlayed(**named, outcome=outcome, steps=0, latency_ms=0, wait_ms=0), TurnUnavailable(**named))
