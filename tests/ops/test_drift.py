"""Drift: who answered is held to who sat the exam."""

from __future__ import annotations

import pytest

from ops.drift import Answered
from referee.onchain.events import PassShown, StepCounted

RUN, T0 = "w1-m-1", 1_790_000_000_000


def folded(sat_as: str, *answered_as: str) -> Answered:
    found = Answered()
    found.apply(PassShown(run_id=RUN, ts_ms=T0, sitting="s1", sitting_sha256="a" * 64, sitting_ts_ms=T0, model="m", model_reported=sat_as))
    for name in answered_as:
        found.apply(StepCounted(run_id=RUN, ts_ms=T0, tick=0, step=0, stop="end", model_reported=name, wait_ms=0, tokens=None, attempts=()))
    return found


@pytest.mark.parametrize(
    ("sat_as", "answered_as", "drifted"),
    [
        ("m-09", ("m-09", "m-09"), []), ("m-09", ("m-10",), ["m-10"]), ("m-09 [fp_1]", ("m-09 [fp_2]",), ["m-09 [fp_2]"]),
        ("m-09, m-10", ("m-10",), []), ("", ("m-10",), []), ("m-09", (), []), ("m-09", ("m-10", "m-11", "m-10"), ["m-10", "m-11"]),
    ],
)  # fmt: skip
def test_a_model_drifted_when_its_host_answers_under_a_name_that_did_not_sit(sat_as, answered_as, drifted):
    assert folded(sat_as, *answered_as).drifted(RUN) == drifted


def test_a_run_that_showed_no_pass_cannot_drift():
    assert Answered().drifted(RUN) == []
