"""The window file: what is refused, in which words, and that its canonical form says everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgers.errors import CorruptJournal
from referee.onchain.cadence import late_ms_max, mark_interval_ms, rotation, ticks_in
from referee.onchain.rules import DEFAULT
from referee.onchain.window import BadWindow, ModelAsked, load_window, next_window_id, restored

TOP = {"name": '"first-hour"', "network": '"devnet"', "length_s": "60", "interval_s": "10", "seed": "7"}
STACK = {"name": '"random"', "baseline": '"random"', "copies": "2"}
TOKEN = "0x" + "aB" * 20


def written(folder: Path, top: dict | None = None, *stacks: dict, tail: str = "") -> Path:
    """Write a window file: the usual one, changed as told; a value of none leaves a key out."""
    lines = [f"{key} = {value}" for key, value in (TOP | (top or {})).items() if value is not None]
    for stack in stacks or ({},):
        lines += ["[[stack]]", *(f"{key} = {value}" for key, value in (STACK | stack).items() if value is not None)]
    path = folder / "window.toml"
    path.write_text("\n".join(lines) + "\n" + tail, "utf-8")
    return path


def test_a_window_file_expands_to_runs_a_person_can_type(tmp_path):
    window = load_window(written(tmp_path, {}, {}, {"name": '"hold"', "baseline": '"hold"', "copies": None}))
    assert [run.run_id for run in window.runs("w7")] == ["w7-random-1", "w7-random-2", "w7-hold-1"]


def test_the_canonical_form_rebuilds_the_window_from_its_journal(tmp_path):
    (tmp_path / "moves.jsonl").write_bytes(b'{"tick":0,"answer":"x"}\n')
    scripted = {"name": '"script"', "baseline": None, "script": '"moves.jsonl"', "copies": None}
    window = load_window(written(tmp_path, {"tokens": f'["{TOKEN}"]'}, {}, scripted, tail='[stack.params]\nx = 1\ny = "2"\nz = true\n'))
    assert restored(window.canonical, window.blobs.get) == window


def test_a_script_is_part_of_the_identity_by_its_bytes(tmp_path):
    hashes = set()
    for text in (b'{"tick":0,"answer":"x"}', b'{"tick":0,"answer":"y"}'):
        (tmp_path / "moves.jsonl").write_bytes(text)
        hashes.add(load_window(written(tmp_path, {}, {"baseline": None, "script": '"moves.jsonl"'})).sha256)
    assert len(hashes) == 2


def test_onc_05_the_board_policy_is_pinned_in_window_and_rules(tmp_path):
    windows = [load_window(written(tmp_path, {"board": f'"{policy}"'})) for policy in ("always", "fallback")]
    assert [window.ruled_by.board_policy for window in windows] == ["always", "fallback"]
    assert len({window.sha256 for window in windows}) == len({window.ruled_by.sha256() for window in windows}) == 2


@pytest.mark.parametrize("rules, board, policy", [
    ("onc/paper", None, "fallback"), ("onc/paper", "always", "always"), ("onc/default-2", None, "always"), ("onc/default", None, "always"),
])  # fmt: skip
def test_onc_05_a_window_that_names_no_policy_has_that_of_its_rules(tmp_path, rules, board, policy):
    window = load_window(written(tmp_path, {"rules": f'"{rules}"', "board": f'"{board}"' if board else None}))
    assert (window.board, window.ruled_by.board_policy) == (policy, policy)


MODEL = {"baseline": None, "model": '"m"', "harness": '"h1-16k"'}


@pytest.mark.parametrize("plan", [None, '"none"', '"onchain/plan-1"'])
def test_a_model_is_named_with_its_harness_and_prompts_and_restored_with_them(tmp_path, plan):
    window = load_window(written(tmp_path, {}, MODEL | {"plan": plan}))
    assert restored(window.canonical, window.blobs.get) == window
    assert window.stacks[0].model == ModelAsked(model="m", harness="h1-16k", prompt="onchain/trader-2", plan=None if plan == '"none"' else "onchain/plan-1")


@pytest.mark.parametrize("change", [{"model": '"n"'}, {"harness": '"h1-6k"'}, {"prompt": '"onchain/x-1"'}, {"plan": '"none"'}])
def test_whatever_is_said_of_a_model_is_part_of_the_identity(tmp_path, change):
    assert load_window(written(tmp_path, {}, MODEL)).sha256 != load_window(written(tmp_path, {}, MODEL | change)).sha256


def test_a_window_without_models_keeps_its_identity(tmp_path):
    assert b"model" not in load_window(written(tmp_path)).canonical


def test_spelling_order_and_comments_are_not_part_of_the_identity(tmp_path):
    plain = load_window(written(tmp_path, {"tokens": f'["{TOKEN}"]'})).sha256
    other = written(tmp_path, {"seed": None, "name": '"first-hour" # mine', "tokens": f'["{TOKEN.lower()}"]', "rules": '"onc/default-3"'})
    other.write_text("seed = 7\n" + other.read_text())
    assert load_window(other).sha256 == plain


def test_a_recorded_window_with_a_missing_script_is_corrupt(tmp_path):
    (tmp_path / "moves.jsonl").write_bytes(b"{}")
    window = load_window(written(tmp_path, {}, {"baseline": None, "script": '"moves.jsonl"'}))
    with pytest.raises(CorruptJournal, match="not kept"):
        restored(window.canonical, {}.get)


@pytest.mark.parametrize(
    ("top", "stack", "sentence"),
    [
        ({"length_s": "9"}, {}, "window.toml: length_s: expected at least 10, found 9"),
        ({"length_s": "604801"}, {}, "window.toml: length_s: expected at most 604800, found 604801"),
        ({"length_s": '"60"'}, {}, 'window.toml: length_s: expected a whole number, found the text "60"; write it without quotes'),
        ({"interval_s": "0"}, {}, "window.toml: interval_s: expected at least 1, found 0"),
        ({"interval_s": "61"}, {}, "window.toml: interval_s 61 is longer than the window, length_s 60"),
        ({"name": '"First Hour"'}, {}, 'window.toml: name: a name is 1 to 32 lower-case letters, digits and dashes, found the text "First Hour"'),
        ({"board": '"never"'}, {}, "window.toml: board: expected 'always' or 'fallback', found the text \"never\""),
        ({"rules": '"x"'}, {}, "window.toml: no rules named 'x'; known: onc/default, onc/default-2, onc/paper, onc/default-3, onc/paper-2"),
        ({"seed": None}, {}, "window.toml: seed is missing"),
        ({"stake": "1"}, {}, "window.toml: unknown key stake; did you mean stack?"),
        ({"tokens": '"some"'}, {}, 'window.toml: tokens: expected "all" or a list of 1 to 1000 addresses, found the text "some"'),
        ({"tokens": '["0x1"]'}, {}, "window.toml: tokens: a token is an address of 0x and 40 hexadecimal digits"),
        ({"tokens": f'["{TOKEN}", "{TOKEN.lower()}"]'}, {}, "window.toml: tokens: the same token is listed twice"),
        ({}, {"copies": "65"}, "window.toml: [[stack]] 1: copies: expected at most 64, found 65"),
        ({}, {"copies": "0"}, "window.toml: [[stack]] 1: copies: expected at least 1, found 0"),
        ({}, {"modell": '"x"'}, "window.toml: unknown key [[stack]] 1: modell; did you mean model?"),
        ({}, {"script": '"x"'}, "window.toml: [[stack]] 1: stack random needs one of `baseline`, `script` and `model`, and not two"),
        ({}, {"model": '"m"', "harness": '"h1-16k"'}, "window.toml: [[stack]] 1: stack random needs one of `baseline`, `script` and `model`, and not two"),
        ({}, {"baseline": None, "model": '"m"'}, "window.toml: [[stack]] 1: stack random names a model and needs a `harness`"),
        ({}, {"plan": '"none"'}, "window.toml: [[stack]] 1: stack random has no model, and `plan` is for models only"),
        ({}, {"baseline": None}, "window.toml: [[stack]] 1: stack random needs one of `baseline`, `script` and `model`, and not two"),
        ({}, {"baseline": None, "script": '"gone.jsonl"'}, "window.toml: cannot read the script gone.jsonl: No such file or directory, looked for at {folder}/gone.jsonl"),
        ({"length_s": "604800", "interval_s": "1"}, {"copies": "64"}, "window.toml: 38707200 turns are more than the 1000000 that one window may have"),
    ],
)
def test_a_bad_window_is_one_clear_sentence(tmp_path, top, stack, sentence):
    with pytest.raises(BadWindow) as refused:
        load_window(written(tmp_path, top, stack))
    assert str(refused.value) == sentence.replace("{folder}", str(tmp_path))


@pytest.mark.parametrize("top", [{"length_s": "10"}, {"length_s": "604800", "interval_s": "60"}, {"interval_s": "1"}, {"interval_s": "60"}])
def test_windows_at_the_limits_are_played(tmp_path, top):
    assert load_window(written(tmp_path, top, {"copies": "64"}))


def test_two_stacks_of_one_name_are_refused(tmp_path):
    with pytest.raises(BadWindow, match="two stacks are called random"):
        load_window(written(tmp_path, {}, {}, {}))


def test_fractions_in_parameters_are_written_as_text(tmp_path):
    with pytest.raises(BadWindow, match="fractions are written as text"):
        load_window(written(tmp_path, {}, {}, tail="[stack.params]\nshare = 0.5\n"))


@pytest.mark.parametrize("text", [b"name = ", b"\xff\xfe", b"[[stack]\n"])
def test_a_file_that_is_not_toml_is_said(tmp_path, text):
    path = tmp_path / "window.toml"
    path.write_bytes(text)
    with pytest.raises(BadWindow, match="window.toml is not TOML"):
        load_window(path)


@pytest.mark.parametrize("tail", ["[params]\nx = " + "[" * 5_000 + "]" * 5_000, "[params]\nx = " + "9" * 10_000, "x = \0"])
def test_a_file_that_the_reader_chokes_on_is_not_toml(tmp_path, tail):
    with pytest.raises(BadWindow, match="window.toml is not TOML"):
        load_window(written(tmp_path, tail=tail))


def test_a_script_path_that_no_file_can_have_is_said(tmp_path):
    with pytest.raises(BadWindow, match="cannot read the script"):
        load_window(written(tmp_path, {}, {"baseline": None, "script": '"a\\u0000b"'}))


def test_a_missing_file_and_a_folder_are_said(tmp_path):
    for path in (tmp_path / "gone.toml", tmp_path):
        with pytest.raises(BadWindow, match="cannot read the window file"):
            load_window(path)


def test_windows_are_numbered_above_the_highest():
    assert (next_window_id([]), next_window_id(["w2", "w10", "other"])) == ("w1", "w11")


# --- cadence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length_ms", "ticks"), [(60_000, 6), (60_001, 7), (59_999, 6), (10_000, 1)])
def test_a_tick_falls_only_before_the_close_ONC_03(length_ms, ticks):
    assert ticks_in(length_ms, 10_000) == ticks


def test_marks_fall_every_sixth_of_the_window_but_at_most_half_an_hour_apart_ONC_12():
    assert [mark_interval_ms(DEFAULT, length_ms) for length_ms in (60_000, 10_800_000, 10_800_006)] == [10_000, 1_800_000, 1_800_000]


def test_a_tick_may_be_a_tenth_of_the_interval_late_but_at_most_ten_seconds_ONC_03():
    assert [late_ms_max(DEFAULT, interval_ms) for interval_ms in (6_000, 100_000, 600_000)] == [600, 10_000, 10_000]


@pytest.mark.parametrize("runs", [1, 2, 3, 7])
def test_rotation_gives_every_run_every_place_once_a_round_ONC_15(runs):
    ids = [f"w1-s-{number}" for number in range(runs)]
    for start in (0, runs, 5 * runs):
        orders = [rotation(ids, 7, tick) for tick in range(start, start + runs)]
        assert all(sorted(order) == sorted(ids) for order in orders)
        assert all(len({order[place] for order in orders}) == runs for place in range(runs))


def test_rotation_is_drawn_from_the_seed_and_anew_each_round():
    ids = [f"w1-s-{number}" for number in range(8)]
    assert rotation(ids, 7, 0) != rotation(ids, 8, 0) and rotation(ids, 7, 0) != rotation(ids, 7, 8)
    assert rotation(ids, 7, 3) == rotation(tuple(reversed(ids)), 7, 3)
