"""Manifests of stacks with a model: every limit is pinned, and what cannot work is refused (001 §2.1, §7; ONC-01)."""

import pytest

from harnesses.manifest import ANSWER_TOKENS_MIN, MANIFESTS, ModelManifest, harness_names, load_harness, read_harness

NAMES = [name for name in harness_names() if load_harness(name).manifest.answers == "model"]
H1 = (MANIFESTS / "h1-16k.toml").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_manifest_holds_and_needs_the_exam(name: str) -> None:
    manifest = load_harness(name).model_manifest
    assert (manifest.name, manifest.exam) == (name, "required")


def test_the_paper_s_two_output_limits_are_two_harnesses_and_differ_in_nothing_else() -> None:
    small, large = (load_harness(name).model_manifest for name in ("h1-6k", "h1-16k"))
    assert (small.limits.output_tokens_max, large.limits.output_tokens_max) == (6_000, 16_000)
    assert small.limits.quotes_plan_max > small.limits.quotes_live_max
    same = {"name": "", "limits": large.limits}
    assert small.model_copy(update=same) == large.model_copy(update=same)
    assert load_harness("h1-6k").sha256 != load_harness("h1-16k").sha256


def test_onc_01_any_changed_byte_is_a_new_identity() -> None:
    known = {read_harness(H1, "h1-16k").sha256}
    for place in range(len(H1)):
        known.add(_identity(H1[:place] + b"#" + H1[place:]))
    assert len(known - {None}) > 50


def _identity(data: bytes) -> str | None:
    try:
        return read_harness(data, "h1-16k").sha256
    except ValueError:
        return None


@pytest.mark.parametrize(("budget", "fits"), [(16_000 - ANSWER_TOKENS_MIN, True), (16_001 - ANSWER_TOKENS_MIN, False), (16_000, False)])
def test_a_reasoning_budget_that_does_not_fit_the_output_limit_is_refused(budget: int, fits: bool) -> None:
    data = H1 + f"[reasoning]\nbudget_tokens = {budget}\n".encode()
    if fits:
        assert read_harness(data, "h1-16k").model_manifest.reasoning.budget_tokens == budget
    else:
        with pytest.raises(ValueError, match=f"budget_tokens {budget} does not fit the output limit 16000"):
            read_harness(data, "h1-16k")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'kind = "openai-chat"', b'kind = "telepathy"', "provider.kind"),
        (b'kind = "openai-chat"', b'kind = "http-agent"', "output_tokens_max cannot be held at an open door"),
        (b"output_tokens_max = 16000", b"steps_min = 1", "limits.steps_min"),
        (b"\noutput_tokens_max = 16000", b"\n", "limits.output_tokens_max is missing"),
        (b"backoff_ms = [2000, 8000]", b"backoff_ms = [2000]", "3 attempts have 2 waits"),
        (b"attempts_max = 3", b"attempts_max = 0", "retry.attempts_max"),
        (b'"token", "pool",', b'"token", "token",', "a tool stands twice"),
        (b'name = "hosted"', b'name = "hosted"\nurl = "http://h"', "provider.url"),
        (b'name = "hosted"', b'name = "hosted"\nkey = "k"', "provider.key"),
        (b'exam = "required"', b'exam = "exempt"', "exam"),
        (b"[retry]", b"[reasoning]\n[retry]", "say either effort or budget_tokens"),
        (b"[retry]", b'[reasoning]\neffort = "low"\nbudget_tokens = 9\n[retry]', "say either effort or budget_tokens"),
        (b"[retry]", b"[sampling]\ntemperature = 3.0\n[retry]", "sampling.temperature"),
        (b'answers = "model"', b'answers = "oracle"', "answers"),
    ],
)
def test_a_manifest_that_does_not_hold_is_refused_by_field(old: bytes, new: bytes, said: str) -> None:
    assert old in H1
    with pytest.raises(ValueError, match="harness h1-16k") as refused:
        read_harness(H1.replace(old, new), "h1-16k")
    assert said in str(refused.value)


def test_a_harness_without_a_model_has_no_model_manifest() -> None:
    with pytest.raises(ValueError, match="without a model"):
        load_harness("baseline-1").model_manifest  # noqa: B018
    assert isinstance(load_harness("local-1").model_manifest, ModelManifest)
