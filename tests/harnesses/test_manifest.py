"""Manifests of stacks with a model: every limit is pinned, and what cannot work is refused (001 §2.1, §7; ONC-01)."""

import pytest

from harnesses.asking import Asking
from harnesses.manifest import ANSWER_TOKENS_MIN, MANIFESTS, ModelManifest, Reasoning, harness_names, load_harness, read_harness
from harnesses.provider import LimitSpent

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
        with pytest.raises(ValueError, match=f"budget_tokens {budget} does not fit limits.output_tokens_max 16000"):
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


def test_a_reasoning_budget_is_held_to_the_plan_turn_s_limit_too() -> None:
    data = H1.replace(b"plan_output_tokens_max = 64000", b"plan_output_tokens_max = 2000") + b"[reasoning]\nbudget_tokens = 4096\n"
    with pytest.raises(ValueError, match="4096 does not fit limits.plan_output_tokens_max 2000"):
        read_harness(data, "h1-16k")


@pytest.mark.parametrize(("left", "budget"), [(None, 4_096), (16_000, 4_096), (5_120, 4_096), (5_119, 4_095), (1_025, 1)])
def test_a_step_s_reasoning_budget_leaves_room_for_the_answer(left: int | None, budget: int) -> None:
    assert Reasoning(budget_tokens=4_096).budget_within(left) == budget


def test_a_step_with_too_little_output_left_to_think_in_is_not_asked() -> None:
    with pytest.raises(LimitSpent, match="1024 output tokens are left"):
        Reasoning(budget_tokens=4_096).budget_within(1_024)


# --- what authors may ask for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('[asking]\nextra_body = { max_tokens = 9 }', "max_tokens has a setting of its own"),
        ('[asking]\nextra_body = { stream = false }', "stream has a setting of its own"),
        ('[asking]\nextra_headers = { Authorization = "Bearer x" }', "header Authorization is not a harness's to set"),
        ('[asking]\nextra_headers = { X-Api-Key = "x" }', "header X-Api-Key is not a harness's to set"),
        ('[asking]\nextra_headers = { Cookie = "x" }', "header Cookie is not a harness's to set"),
        ('[asking]\nextra_headers = { X-Title = "a\\r\\nb" }', "asking.extra_headers"),
        ('[asking]\ntool_choice = "none"', "asking.tool_choice"),
        ('[asking]\nstop = ["a", "b", "c", "d", "e"]', "asking.stop"),
        ('[quirks]\ngive_back = ["content"]', "content is written by the harness itself"),
        ('[rate]', "say requests_per_minute"),
    ],
)
def test_what_an_author_may_not_ask_for_is_refused_by_name(section: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_harness(H1 + f"\n{section}\n".encode(), "h1-16k")


@pytest.mark.parametrize("name", ["h1-responses-16k", "h1-anthropic-16k", "agent-1", "h2"])
def test_a_setting_that_a_dialect_has_no_word_for_is_refused(name: str) -> None:
    data = (MANIFESTS / f"{name}.toml").read_bytes()
    asked = "system_role = 'developer'" if name == "h1-anthropic-16k" else "stop = ['x']"
    with pytest.raises(ValueError, match="has no word for it"):
        read_harness(data + f"\n[asking]\n{asked}\n".encode(), name)


def test_options_are_part_of_the_identity_and_their_absence_is_none() -> None:
    changed = read_harness(H1 + b"\n[asking]\nprompt_caching = true\n", "h1-16k")
    assert changed.sha256 != read_harness(H1, "h1-16k").sha256
    assert read_harness(H1, "h1-16k").model_manifest.asking == Asking()


def test_a_manifest_of_one_s_own_is_read_from_its_path(tmp_path) -> None:
    own = tmp_path / "mine-1.toml"
    own.write_bytes(H1.replace(b'name = "h1-16k"', b'name = "mine-1"'))
    assert load_harness(str(own)).manifest.name == "mine-1"
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        load_harness(str(tmp_path / "other.toml"))
