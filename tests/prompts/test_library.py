"""The library: prompts are what their files hold, byte for byte."""

from __future__ import annotations

import pytest

from ledgers.identity import sha256_hex
from prompts.library import FOLDER, load_prompt, prompt_names, read_prompt


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_is_loaded_verbatim_and_hashed(name):
    data = (FOLDER / f"{name}.md").read_bytes()
    prompt = load_prompt(name)
    assert (prompt.text.encode(), prompt.sha256) == (data, sha256_hex(data))


def test_one_changed_byte_is_a_new_prompt():
    data = (FOLDER / "onchain/trader-1.md").read_bytes()
    assert read_prompt(data + b" ", "onchain/trader-1").sha256 != load_prompt("onchain/trader-1").sha256


def test_carriage_returns_and_braces_are_left_as_they_are():
    assert read_prompt(b"a {interval}\r\nb\n", "x/y-1").text == "a {interval}\r\nb\n"


@pytest.mark.parametrize("name", ["onchain/none", "../README", "onchain/../onchain/trader-1", "/etc/passwd", ""])
def test_only_shipped_prompts_are_known(name):
    with pytest.raises(ValueError, match="known: onchain/plan-1, onchain/trader-1, onchain/trader-2"):
        load_prompt(name)


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff"])
def test_a_prompt_without_text_is_refused(data):
    with pytest.raises(ValueError, match="prompt x"):
        read_prompt(data, "x")


def test_the_trader_is_told_how_orders_must_be_affordable():
    assert "affordable, in order, against the book shown; your own sells of the same decision are not counted" in load_prompt("onchain/trader-2").text


def test_the_first_trader_is_told_that_liquidity_orders_are_refused_and_the_second_how_they_are_written():
    """A window by the rules before them should name the first."""
    first, second = (load_prompt(f"onchain/trader-{number}").text for number in (1, 2))
    assert "are not in force yet and are refused" in first and "not in force" not in second
    for name in ("open-lp", "close-lp", "tick_lower", "price_upper", "amount0_raw", "lp_share_ppm_max"):
        assert name in second and (name in first) == name.endswith("-lp")
