"""The entrance: pass, fail and not sat, under the exact limits; and a record in which every sitting stays."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import replace

import pytest

from exam.entrance import FAIL, NOT_SAT, PASS, Candidate, outage, sit, verdict
from exam.record import Sittings, heard_again, sitting_of
from exam.sheets import exam_sha256
from harnesses.message import Usage
from harnesses.outcome import Outcome
from harnesses.provider import Answer, LimitSpent, ProviderFault
from harnesses.stack import Stack
from ledgers.clock import VirtualClock
from ledgers.errors import CorruptJournal
from ledgers.identity import sha256_hex
from tests.exam.given import LEAF, a_buy, a_sheet, a_step, a_turn, deciding

T0 = 1_790_000_000_000
SHEETS = tuple(a_sheet(name=name) for name in ("one", "two", "three"))
EXAM = exam_sha256(SHEETS)
STACK = Stack(
    name="m", provider="hosted", model="m", harness_sha256="a" * 64, prompt_sha256="b" * 64, tools_sha256="c" * 64, params=()
)  # fmt: skip
CANDIDATE = Candidate(stack=STACK, harness="h1-16k", prompt="Trade.", limits={"steps_max": 12}, turn_ms_max=300_000)


class Trailed:
    """A provider that plays given turns, steps and tools included, as a model's loop leaves them."""

    def __init__(self, clock: VirtualClock, *turns) -> None:
        self.clock, self.turns, self.asked = clock, turns, []

    async def answer(self, question) -> Answer:
        raise AssertionError("it is asked on a trail")

    async def answer_on(self, question, trail) -> Answer:
        self.asked.append(question)
        said = self.turns[question.tick]
        if isinstance(said, Exception):
            raise said
        trail.tool_uses.extend(said.tool_uses)
        for step in said.steps:
            trail._ended.append(step)
        return Answer(said.answer or "")


async def sat(*turns):
    clock = VirtualClock(T0)
    provider = Trailed(clock, *turns)
    return await sit(CANDIDATE, provider, SHEETS, clock, "s1"), provider


GOOD = a_turn(deciding(a_buy(LEAF, 1)))


async def test_all_checks_on_all_turns_make_a_pass_ONC_13():
    played, _ = await sat(GOOD, GOOD, GOOD)
    assert verdict(played, 3).standing == PASS


async def test_the_first_failed_check_and_its_turn_are_named():
    played, _ = await sat(GOOD, a_turn(deciding(inputs=[])), a_turn("no"))
    found = verdict(played, 3)
    assert (found.standing, found.check, found.turn) == (FAIL, "named_inputs", 2)


@pytest.mark.parametrize(
    ("spent", "check"), [(LimitSpent("steps"), "within_steps"), (LimitSpent("output"), "within_output"), (LimitSpent("time"), "within_time")]
)
async def test_a_spent_limit_fails_on_its_own_check(spent, check):
    played, _ = await sat(GOOD, spent, GOOD)
    assert (verdict(played, 3).check, verdict(played, 3).turn) == (check, 2)


async def test_a_truncated_answer_fails_on_the_output_limit_with_the_hidden_share():
    played, _ = await sat(a_turn("", steps=(a_step(stop="length", usage=Usage(1, 0, 0, 100, 93)),)), GOOD, GOOD)
    found = verdict(played, 3)
    assert found.check == "within_output" and "93 % of them hidden reasoning" in found.reason


async def test_an_outage_is_never_a_failure_and_nothing_more_is_asked():
    played, provider = await sat(GOOD, ProviderFault("http 503, 3 attempts"), GOOD)
    found = verdict(played, 3)
    assert (found.standing, found.turn, found.reason, len(provider.asked)) == (NOT_SAT, 2, "http 503, 3 attempts", 2)


async def test_an_outage_after_a_failure_leaves_the_failure():
    played, _ = await sat(a_turn("no"), ProviderFault("down"), GOOD)
    assert verdict(played, 3).standing == FAIL


def test_time_spent_waiting_for_the_provider_is_no_failure():
    turn = a_turn(outcome=Outcome.OUT_OF_TIME, reason="late", latency_ms=300_000, wait_ms=1)
    assert outage(turn, 300_000) and not outage(a_turn(outcome=Outcome.OUT_OF_TIME, latency_ms=300_001, wait_ms=0), 300_000)


async def test_the_question_is_that_of_a_live_turn_with_this_harness_limits():
    _, provider = await sat(GOOD, GOOD, GOOD)
    question = provider.asked[0]
    assert (question.bundle, question.book, question.deadline_ms) == (SHEETS[0].bundle, SHEETS[0].book, 300_000)
    assert question.prompt.startswith("Trade.\n\n# Facts of this run") and '"limits":{"steps_max":12}' in question.prompt


async def test_a_provider_that_never_answers_is_out_of_time_at_the_limit():
    clock = VirtualClock(T0)

    class Silent:
        async def answer(self, question):
            await clock.sleep_until(T0 + 10**9)
            return Answer("late")

    sitting = asyncio.ensure_future(sit(CANDIDATE, Silent(), SHEETS[:1], clock, "s1"))
    await clock.advance_to(T0)
    await clock.advance_to(T0 + 300_001)
    assert verdict(await sitting, 1).check == "within_time"


# --- the record -------------------------------------------------------------------------------------------------------


async def recorded(tmp_path, *turns, ts_ms: int = T0):
    sittings = Sittings(tmp_path)
    played, _ = await sat(*turns)
    body, blobs = sitting_of(sittings.next_id(), CANDIDATE, SHEETS, played, ts_ms)
    sittings.add(body, blobs)
    return sittings


async def test_every_sitting_is_kept_in_order_dated_and_with_the_model_reported(tmp_path):
    await recorded(tmp_path, a_turn("no"), GOOD, GOOD)
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    told = [(body["sitting"], body["date"], body["verdict"]["standing"], body["model_reported"]) for _, body in sittings.all()]
    assert told == [("s1", "2026-09-21", "fail", "m-1"), ("s2", "2026-09-21", "pass", "m-1")]


async def test_a_pass_belongs_to_one_model_on_one_harness_identity_ONC_13(tmp_path):
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    others = [replace(STACK, **{part: "x"}) for part in ("model", "provider", "harness_sha256", "tools_sha256")]
    assert sittings.pass_of(STACK, EXAM) and [sittings.pass_of(other, EXAM) for other in others] == [None] * 4


async def test_a_pass_of_another_exam_admits_nobody_ONC_13(tmp_path):
    assert (await recorded(tmp_path, GOOD, GOOD, GOOD)).pass_of(STACK, exam_sha256(SHEETS[:2])) is None


async def test_a_failed_sitting_admits_nobody(tmp_path):
    assert (await recorded(tmp_path, a_turn("no"), GOOD, GOOD)).pass_of(STACK, EXAM) is None


async def test_a_later_failure_does_not_take_a_pass_away_and_both_stay(tmp_path):
    await recorded(tmp_path, GOOD, GOOD, GOOD)
    sittings = await recorded(tmp_path, a_turn("no"), GOOD, GOOD)
    assert sittings.pass_of(STACK, EXAM).sitting == "s1" and len(sittings.all()) == 2


@pytest.mark.parametrize("turns", [(GOOD, GOOD, GOOD), (GOOD, a_turn("no"), GOOD), (ProviderFault("down"),), (LimitSpent("output"), GOOD, GOOD)])
async def test_a_sitting_is_heard_again_with_the_same_verdict(tmp_path, turns):
    sittings = await recorded(tmp_path, *turns)
    ((_, body),) = sittings.all()
    found, different = heard_again(body, sittings, SHEETS)
    assert (different, found.standing) == ([], body["verdict"]["standing"])


async def test_a_changed_sheet_is_another_exam(tmp_path):
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    ((_, body),) = sittings.all()
    _, different = heard_again(body, sittings, tuple(a_sheet(name=name, purpose="other") for name in ("one", "two", "three")))
    assert "another sheet one" in different[0]


async def test_one_changed_byte_in_the_record_is_found(tmp_path):
    sittings = await recorded(tmp_path, a_turn("no"), GOOD, GOOD)
    path = tmp_path / "sittings.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"standing":"fail"', b'"standing":"pass"'))
    with pytest.raises(CorruptJournal):
        sittings.pass_of(STACK, EXAM)


async def test_a_changed_blob_is_found(tmp_path):
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    ((_, body),) = sittings.all()
    digest = body["turns"][0]["answer_sha256"]
    (tmp_path / "blobs" / f"{digest}.z").write_bytes(zlib.compress(b"other"))
    with pytest.raises(CorruptJournal, match="not the ones"):
        heard_again(body, sittings, SHEETS)
    assert sha256_hex(b"other") != digest
