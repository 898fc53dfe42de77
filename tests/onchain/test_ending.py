"""The ending of a turn: steps, tokens, tool calls and failed attempts are in the journal, and all their bytes."""

from __future__ import annotations

from harnesses.message import Usage
from harnesses.outcome import Attempt, Outcome, Step, ToolUse, Turn
from ledgers.events import decode, encode, kind_of
from ledgers.identity import sha256_hex
from referee.onchain.decision import of_turn
from referee.onchain.ending import turn_blobs, turn_ended
from referee.onchain.events import StepCounted, ToolCalled
from referee.onchain.kinds import KINDS

HOLD = '{"schema":"decision/1","orders":[]}'
TRIED = Attempt("http 429", b"slow down", 3, 2_000)
USE = ToolUse(step=0, call=0, id="c\x1b[2J1", name="gas", arguments_text="\ud800", answer=b'{"a":1}', ok=True, reason="", note="repeated", latency_ms=4)
STEPS = (
    Step(b"q0", b"a0", 10, 2_000, Usage(9, 4, 1, 7, 5, ("inconsistent",)), "tools", "m-1", (TRIED,)),
    Step(b"q1", HOLD.encode(), 11, 0, None, "end", "m-1"),
)
TURN = Turn(Outcome.ANSWERED, HOLD, "", STEPS, 21, 2_000, (USE,))
READ = of_turn(TURN, 8)


def ended(turn=TURN):
    return turn_ended("w1-a-1", 3, turn, of_turn(turn, 8), 5)


def test_each_step_is_followed_by_what_it_used_and_by_its_tool_calls():
    assert [kind_of(event) for event in ended()] == ["StepTaken", "StepCounted", "ToolCalled", "StepTaken", "StepCounted", "TurnPlayed", "DecisionTaken"]


def test_tokens_waits_and_the_model_reported_are_told_as_the_provider_told_them():
    first, second = [event for event in ended() if isinstance(event, StepCounted)]
    assert (first.stop, first.model_reported, first.wait_ms, first.tokens.reasoning_tokens, first.tokens.flags) == ("tools", "m-1", 2_000, 5, ("inconsistent",))
    assert second.tokens is None


def test_every_byte_of_the_way_is_kept():
    kept = turn_blobs(TURN, READ)
    (called,) = [event for event in ended() if isinstance(event, ToolCalled)]
    named = [called.arguments_sha256, called.answer_sha256, sha256_hex(b"slow down"), sha256_hex(b"q0"), sha256_hex(b"a0"), sha256_hex(b"q1")]
    assert all(sha256_hex(kept[digest]) == digest for digest in named)


def test_a_call_id_cannot_act_on_a_terminal():
    (called,) = [event for event in ended() if isinstance(event, ToolCalled)]
    assert called.call_id == "c1"


def test_all_of_it_is_encoded_and_read_back():
    assert [decode(kind_of(event), encode(event), KINDS) for event in ended()] == list(ended())


def test_a_stack_without_a_model_has_steps_alone():
    turn = Turn(Outcome.ANSWERED, HOLD, "", (Step(b"q", HOLD.encode(), 1),), 1, 0)
    assert [kind_of(event) for event in ended(turn)] == ["StepTaken", "TurnPlayed", "DecisionTaken"]
