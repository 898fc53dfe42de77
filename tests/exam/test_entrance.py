"""The entrance: pass, fail and not sat, under the exact limits; and a record in which every sitting stays."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from exam.entrance import FAIL, NOT_SAT, PASS, Candidate, outage, sit, verdict
from exam.checks import FIRST
from exam.record import INTERRUPTED, Sittings, heard_again
from exam.sheets import exam_sha256
from harnesses.message import Usage
from harnesses.outcome import Outcome
from harnesses.provider import Answer, LimitSpent, ModelFault, ProviderFault
from harnesses.stack import Stack
from ledgers.clock import VirtualClock
from ledgers.errors import CorruptJournal
from ledgers.identity import sha256_hex
from ledgers.journal import GENESIS, Record, link_of
from ledgers.seal import line_of, read_export
from tests.exam.given import LEAF, a_buy, a_sheet, a_step, a_turn, deciding

T0 = 1_790_000_000_000
SHEETS = tuple(a_sheet(name=name) for name in ("one", "two", "three"))
EXAM = exam_sha256(SHEETS)
STACK = Stack(
    name="m", provider="hosted", model="m", harness_sha256="a" * 64, prompt_sha256="b" * 64, tools_sha256="c" * 64,
    params=()
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
    ("spent", "check"),
    [
        (LimitSpent("steps"), "within_steps"),
        (LimitSpent("output"), "within_output"),
        (LimitSpent("time"), "within_time"),
    ],
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


def test_a_wait_excuses_no_turn_that_ran_out_of_time_but_in_the_first_edition():
    late = a_turn(outcome=Outcome.OUT_OF_TIME, reason="late", latency_ms=300_000, wait_ms=1)
    assert not outage(late, 300_000) and outage(late, 300_000, FIRST)
    assert outage(a_turn(outcome=Outcome.UNAVAILABLE, reason="lost to faults"), 300_000) == "lost to faults"


async def test_the_question_is_that_of_a_live_turn_with_this_harness_limits():
    _, provider = await sat(GOOD, GOOD, GOOD)
    question = provider.asked[0]
    assert (question.bundle, question.book, question.deadline_ms) == (SHEETS[0].bundle, SHEETS[0].book, 300_000)
    assert (
        question.prompt.startswith("Trade.\n\n# Facts of this run") and '"limits":{"steps_max":12}' in question.prompt
    )


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
    begun = sittings.begin(CANDIDATE, SHEETS, SHEETS, ts_ms)
    for place, turn in enumerate(played, start=1):
        sittings.turn(begun, place, turn)
    sittings.end(begun, played)
    return sittings


async def test_every_sitting_is_kept_in_order_dated_and_with_the_model_reported(tmp_path):
    await recorded(tmp_path, a_turn("no"), GOOD, GOOD)
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    told = [
        (body["sitting"], body["date"], body["verdict"]["standing"], body["model_reported"])
        for _, body in sittings.all()
    ]
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


@pytest.mark.parametrize(
    "turns",
    [(GOOD, GOOD, GOOD), (GOOD, a_turn("no"), GOOD), (ProviderFault("down"),), (LimitSpent("output"), GOOD, GOOD)],
)
async def test_a_sitting_is_heard_again_with_the_same_verdict(tmp_path, turns):
    sittings = await recorded(tmp_path, *turns)
    ((_, body),) = sittings.all()
    found, different = heard_again(body, sittings, SHEETS)
    assert (different, found.standing) == ([], body["verdict"]["standing"])


async def test_a_changed_sheet_is_another_exam(tmp_path):
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    ((_, body),) = sittings.all()
    _, different = heard_again(
        body, sittings, tuple(a_sheet(name=name, purpose="other") for name in ("one", "two", "three"))
    )
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


# --- kept from the first step on --------------------------------------------------------------------------------------


async def interrupted(tmp_path, *turns) -> Sittings:
    sittings = Sittings(tmp_path)
    played, _ = await sat(*turns, *[GOOD] * (3 - len(turns)))
    begun = sittings.begin(CANDIDATE, SHEETS, SHEETS, T0)
    for place, turn in enumerate(played[: len(turns)], start=1):
        sittings.turn(begun, place, turn)
    return sittings


@pytest.mark.parametrize(
    ("turns", "check", "why"),
    [
        ((), "", "after 0 turns"),
        ((GOOD,), "", "after 1 turns"),
        ((a_turn("no"),), "single_decision_object", "had failed"),
    ],
)
async def test_a_sitting_that_has_no_end_is_kept_counted_and_admits_nobody(tmp_path, turns, check, why):
    sittings = await interrupted(tmp_path, *turns)
    ((_, body),) = sittings.all()
    assert (body["sitting"], body["verdict"]["standing"], body["verdict"]["check"], len(body["turns"])) == (
        "s1",
        INTERRUPTED,
        check,
        len(turns),
    )
    assert why in body["verdict"]["reason"] and sittings.pass_of(STACK, EXAM) is None
    assert heard_again(body, sittings, SHEETS)[1] == []
    assert (await recorded(tmp_path, GOOD, GOOD, GOOD)).pass_of(STACK, EXAM).sittings == 2
    assert [body["sitting"] for _, body in sittings.all()] == ["s1", "s2"]


async def test_a_model_whose_host_answers_as_another_has_to_sit_again(tmp_path):
    sittings = await recorded(tmp_path, GOOD, GOOD, GOOD)
    assert sittings.pass_of(STACK, EXAM)
    assert sittings.drift(STACK, "m-09", "m-10", "w3", T0) and not sittings.drift(STACK, "m-09", "m-10", "w3", T0)
    assert sittings.pass_of(STACK, EXAM) is None
    assert sittings.pass_of(replace(STACK, harness_sha256="d" * 64), EXAM) is None
    assert (await recorded(tmp_path, GOOD, GOOD, GOOD)).pass_of(STACK, EXAM).sittings == 2


async def test_a_pass_on_fresh_turns_says_so_and_is_judged_again_from_its_own_sheets(tmp_path):
    sittings, new = Sittings(tmp_path), (*SHEETS, a_sheet(name="four", purpose="nobody saw it"))
    clock = VirtualClock(T0)
    played = await sit(CANDIDATE, Trailed(clock, *[GOOD] * 4), new, clock, "s1")
    begun = sittings.begin(CANDIDATE, new, SHEETS, T0)
    sittings.end(begun, played)
    found = sittings.pass_of(STACK, EXAM)
    assert (
        found is not None
        and found.fresh
        and not (await recorded(tmp_path, GOOD, GOOD, GOOD)).pass_of(STACK, EXAM).fresh
    )
    assert heard_again(sittings.all()[0][1], sittings, SHEETS) == (verdict(played, 4), [])


async def test_a_sitting_of_the_second_edition_is_judged_again_in_its_own_words(tmp_path):
    """Sealed when every answer without a text was told as one that is too long."""
    sittings = await recorded(tmp_path, ModelFault("call_unreadable", "http 400"), GOOD, GOOD)
    lines, previous = [], GENESIS
    for record in read_export(tmp_path / "sittings.jsonl"):
        body = record.body.replace(b"sitting/3", b"sitting/2").replace(
            b'"why":"call_unreadable', b'"why":"too_long: call_unreadable'
        )
        body = body.replace(
            b'"reason":"call_unreadable: http 400","standing"',
            b'"reason":"too_long: call_unreadable: http 400","standing"',
        )
        lines.append(Record(record.seq, record.kind, body, link_of(previous, record.kind, body)))
        previous = lines[-1].link
    (tmp_path / "sittings.jsonl").write_bytes(b"".join(map(line_of, lines)))
    (_, body), = sittings.all()
    found, different = heard_again(body, sittings, SHEETS)
    assert (body["schema"], found.reason, different) == ("sitting/2", "too_long: call_unreadable: http 400", [])
    (_, now), = (await recorded(tmp_path / "now", ModelFault("call_unreadable", "http 400"), GOOD, GOOD)).all()
    assert (now["schema"], now["verdict"]["check"], now["verdict"]["reason"]) == (
        "sitting/3",
        "single_decision_object",
        "call_unreadable: http 400",
    )


FIRST_EDITION = Path(__file__).parent / "first_edition"


def test_sittings_of_the_first_edition_are_judged_again_as_they_were():
    """Recorded before sittings were written down turn by turn and before inputs had to name what was shown."""
    sittings = Sittings(FIRST_EDITION)
    standings = [body["verdict"]["standing"] for _, body in sittings.all()]
    assert standings == [PASS, FAIL, PASS, NOT_SAT]
    assert [heard_again(body, sittings, SHEETS)[1] for _, body in sittings.all()] == [[]] * 4
    assert sittings.pass_of(STACK, EXAM).sitting == "s3"
