"""ONC-01: the unit is the stack, identified by SHA-256; a change is a new identity."""

from dataclasses import replace

import pytest

from harnesses.manifest import MANIFESTS, load_harness, read_harness
from harnesses.stack import NO_MODEL, NO_PROMPT_SHA256, Stack

BYTES = (MANIFESTS / "baseline-1.toml").read_bytes()


def stack() -> Stack:
    harness = load_harness("baseline-1")
    return Stack(
        name="random",
        provider="baseline/random@1",
        model=NO_MODEL,
        harness_sha256=harness.sha256,
        prompt_sha256=NO_PROMPT_SHA256,
        tools_sha256=harness.tools_sha256,
        params=(("buy_ppm", "400000"), ("sell_ppm", "300000")),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "baseline/random@2"},
        {"model": "some-model"},
        {"harness_sha256": "0" * 64},
        {"prompt_sha256": "0" * 64},
        {"tools_sha256": "0" * 64},
        {"params": (("buy_ppm", "400001"), ("sell_ppm", "300000"))},
        {"params": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_onc_01_a_change_in_any_part_is_a_new_identity(change: dict) -> None:
    assert replace(stack(), **change).sha256 != stack().sha256


def test_onc_01_the_name_in_a_window_file_is_a_label_and_no_part_of_the_identity() -> None:
    assert replace(stack(), name="other").sha256 == stack().sha256


def test_a_run_hash_adds_the_plan_and_the_stack_hash_does_not_know_it() -> None:
    assert len({stack().sha256, stack().run_sha256(), stack().run_sha256("0" * 64)}) == 3


def test_onc_13_stacks_without_a_model_are_exempt_from_the_exam_and_only_they() -> None:
    assert stack().exempt_from_exam
    assert not replace(stack(), model="some-model").exempt_from_exam
    manifest = load_harness("baseline-1").manifest
    assert (manifest.exam, manifest.exam_reason) == ("exempt", "no model answers, so there is nothing to examine")


def test_onc_01_one_changed_byte_of_a_manifest_is_a_new_harness() -> None:
    assert read_harness(BYTES, "baseline-1").sha256 != read_harness(BYTES + b"\n", "baseline-1").sha256


def test_a_used_manifest_is_never_edited() -> None:
    assert load_harness("baseline-1").sha256 == "e8ce30400e123bdf0c7cf9b1f2ca8ec1f611c27116a3a3bfacae3a32b3306326"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"version = 1", b"version = 0", "version"),
        (b"version = 1", b"version = 1\nspeed = 9", "speed"),
        (b"steps_max = 1", b"steps_max = 0", "limits.steps_max"),
        (b"turn_ms_max = 10000", b"turn_ms_max = 10.5", "limits.turn_ms_max"),
        (b'exam = "exempt"', b'exam = "passed"', "exam"),
        (b"tools = []", b'tools = ["quote"]', "tools"),
        (b'name = "baseline-1"', b'name = "baseline-2"', "calls itself"),
        (b"tools = []", b"tools = [", "not TOML"),
        (b"# Harness", b"# \xff", "not TOML"),
    ],
)
def test_a_manifest_that_does_not_hold_is_refused_by_field(old: bytes, new: bytes, said: str) -> None:
    with pytest.raises(ValueError, match="harness baseline-1") as refused:
        read_harness(BYTES.replace(old, new), "baseline-1")
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["baseline-9", "../baseline-1", "", "baseline-1.toml"])
def test_an_unknown_harness_is_refused_and_the_known_ones_named(name: str) -> None:
    with pytest.raises(ValueError, match="known: .*baseline-1"):
        load_harness(name)
