"""Lives told step by step: what a wallet wrote in another contract, under another key or by sales alone is the wallet's (ONC-29)."""

from __future__ import annotations

import pytest

from tests.lives import compare
from tests.lives.kinds import Act
from tests.lives.life import Lived, live
from tests.lives.told import HONEST, HOSTILE, IN_PARTS, REBASES, WITH_OTHERS, program, then, unloading

SHARED = "shared_state"
"""What a token may be refused for where others wrote the same word since, and it matters."""


def false_of(lived: Lived) -> list[str]:
    return [f"{finding.step} {finding.word}: {finding.detail}" for finding in lived.findings if finding.word.startswith(compare.FALSE)]


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_life_is_told_more_than_it_lives(twins, door, name):
    lived = await live(twins, door, program(name, HOSTILE[name]))
    assert false_of(lived) == []


@pytest.mark.parametrize("name", ["bequests", "burning_crowd", "muted_crowd"])
async def test_no_token_takes_the_others_mark_away(twins, door, name):
    lived = await live(twins, door, program(name, HOSTILE[name]))
    assert [finding.detail for finding in lived.findings if finding.word == "under_no_mark"] == []


@pytest.mark.parametrize("words, filled", [(60, 2), (160, 1)])
async def test_a_sale_whose_gas_only_its_refund_would_pay_is_not_filled(twins, door, words, filled):
    lived = await live(twins, door, program("unloading", unloading(words)))
    assert (lived.findings, lived.counts["filled"]) == ([], filled)


@pytest.mark.parametrize("ppm", REBASES.values(), ids=REBASES)
async def test_shares_that_were_worth_one_each_at_the_buy_are_worth_what_they_are_worth(twins, door, ppm):
    lived = await live(twins, door, program("shares", then(Act("rebase(uint256)", (ppm,), True))))
    assert (lived.findings, lived.counts["claimed"]) == ([], 0)


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_life_is_filled_as_it_is_really_lived(twins, door, name):
    lived = await live(twins, door, program(name, IN_PARTS))
    assert (lived.findings, dict(lived.refusals)) == ([], {})


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_life_among_others_is_never_told_more_and_refused_only_where_words_are_shared(twins, door, name):
    lived = await live(twins, door, program(name, WITH_OTHERS))
    assert (false_of(lived), {word for word in lived.refusals if not word.endswith(SHARED)}) == ([], set())
