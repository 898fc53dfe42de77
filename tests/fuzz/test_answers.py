"""What the fuzzer checks holds over the corpus, over damaged answers of it, and under atheris where it is installed."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.answers import one_input, seeds

ROOT = Path(__file__).parents[2]
SEEDS = seeds()
ARGUMENTS = st.dictionaries(st.sampled_from(["token", "pool", "limit", "side", "search"]), st.text() | st.integers() | st.none() | st.lists(st.text()))


def test_every_answer_of_the_corpus_passes() -> None:
    for data in SEEDS:
        one_input(data)


@given(st.sampled_from(SEEDS), st.data())
def test_a_damaged_answer_passes(seed: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(seed)))
    end = data.draw(st.integers(start, len(seed)))
    one_input(seed[:start] + data.draw(st.binary(max_size=8)) + seed[end:])


@given(st.sampled_from(SEEDS), st.sampled_from(SEEDS), st.data())
def test_two_answers_grown_together_pass(one: bytes, other: bytes, data: st.DataObject) -> None:
    one_input(one[: data.draw(st.integers(0, len(one)))] + other[data.draw(st.integers(0, len(other))) :])


@given(st.integers(0, 255), ARGUMENTS)
def test_any_arguments_pass(tool: int, arguments: dict) -> None:
    one_input(bytes([tool]) + json.dumps(arguments).encode())


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_the_fuzzer_finds_nothing_in_a_short_run(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for at, data in enumerate(SEEDS):
        (tmp_path / "corpus" / str(at)).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.answers", "-runs=20000", "-seed=7", "-verbosity=0", f"-artifact_prefix={tmp_path}/", str(tmp_path / "corpus")],
        cwd=ROOT, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
