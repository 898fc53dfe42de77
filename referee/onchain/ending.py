"""The ending of a turn: how it was played and what it decided, as events of one append (001 §2.1–2.3)."""

from __future__ import annotations

from harnesses.outcome import Outcome, Turn
from ledgers.events import Event
from ledgers.identity import sha256_hex
from referee.onchain.decision import Decision, Malformed
from referee.onchain.events import DecisionMalformed, DecisionTaken, StepTaken, TurnPlayed, TurnUnavailable


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
    """Write down the way of a turn, step by step."""
    return tuple(
        StepTaken(
            run_id=run_id,
            ts_ms=ts_ms,
            tick=tick,
            step=place,
            request_sha256=sha256_hex(step.request),
            answer_sha256=sha256_hex(step.answer),
            latency_ms=step.latency_ms,
        )
        for place, step in enumerate(played.steps)
    )


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
    """The bytes of a turn's steps, by SHA-256."""
    return {sha256_hex(part): part for step in played.steps for part in (step.request, step.answer)}


def turn_blind(run_id: str, tick: int, reason: str, ts_ms: int) -> tuple[Event, ...]:
    """Write down a turn in which nothing could be shown: not the stack's result."""
    named = {"run_id": run_id, "ts_ms": ts_ms, "tick": tick, "reason": f"no_bundle: {reason}"}
    outcome = Outcome.UNAVAILABLE.value
    return (TurnPlayed(**named, outcome=outcome, steps=0, latency_ms=0, wait_ms=0), TurnUnavailable(**named))
