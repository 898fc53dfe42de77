"""Random lives on paper are what the same lives really bring (ONC-10, ONC-29), and what compares them is not blind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgers.money import TokenRaw, Wei
from referee.onchain.events import DELAYED, HEADLINE, IMPACT, HoldingMark
from tests.lives import compare
from tests.lives.kinds import KINDS, kind_named
from tests.lives.life import live
from tests.lives.program import program_of, undisturbed
from tests.lives.reality import Happened
from tests.lives.report import Tally
from tests.onchain.given import bought, sold

ETH = 10**18
LEDGERS = (HEADLINE, DELAYED, IMPACT)
# --- lives --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ledger", LEDGERS)
@pytest.mark.parametrize("seed", range(3))
async def test_every_order_and_mark_of_a_plain_life_is_what_is_really_lived(twins, door, seed, ledger):
    alone = replace(program_of(seed, kind_named("plain")), rival="", ledger=ledger)
    lived = await live(twins, door, undisturbed(alone) if ledger == IMPACT else alone)
    assert (lived.findings, lived.refusals.keys() - {"buy insufficient_eth"}, lived.counts["felt"]) == ([], set(), 0)
    assert lived.counts["filled"] >= 1 and lived.counts["marks"] >= 2


@pytest.mark.parametrize("venue, rival", [("v2", "v3"), ("v3", "v2"), ("v4", "v3")])
async def test_a_life_that_a_rival_fills_too_is_what_is_really_lived(twins, door, venue, rival):
    lived = await live(twins, door, replace(program_of(1, kind_named("plain")), venue=venue, rival=rival, ledger=HEADLINE))
    assert (lived.findings, lived.counts["felt"]) == ([], 0) and 0 < lived.counts["rival"] < lived.counts["filled"]


async def test_the_same_seed_is_the_same_life(twins, door):
    drawn = program_of(5, kind_named("third_taxed/far"))
    first, again = [await live(twins, door, drawn) for _ in range(2)]
    assert (first.counts, first.findings, first.refusals) == (again.counts, again.findings, again.refusals) and drawn == program_of(5, kind_named("third_taxed/far"))


def test_kinds_have_names_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS)


# --- what compares them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gross, gas, ok, words",
    [
        (100, 7, True, []), (99, 7, True, ["false_fill"]), (101, 7, True, ["under_fill"]), (100, 8, True, ["false_gas"]), (100, 6, True, ["under_gas"]),
        (98, 9, True, ["false_fill", "false_gas"]), (0, 7, False, ["false_revert"]),
    ],
)  # fmt: skip
def test_a_sale_that_differs_by_a_wei_is_named(gross, gas, ok, words):
    fill = replace(sold("LEAF", 5, 100), arrival_raw=TokenRaw(100), gas_wei=Wei(7), side="sell")
    assert [word for word, _ in compare.of_fill(fill, Happened(ok, gross, gas))] == words


@pytest.mark.parametrize("gross, words", [(-100, []), (-101, ["false_fill"]), (-99, ["under_fill"])])
def test_a_buy_that_costs_a_wei_more_is_false(gross, words):
    fill = replace(bought("LEAF", 5, 100), spent_raw=TokenRaw(100))
    assert [word for word, _ in compare.of_fill(fill, Happened(True, gross, 0))] == words


@pytest.mark.parametrize("credited, done, words", [(5, Happened(True, 5, 1), []), (6, Happened(True, 5, 1), ["false_claim"]), (4, Happened(True, 5, 1), ["under_claim"]), (1, Happened(False, 9, 0), ["false_claim"])])
def test_a_claim_is_held_against_the_best_that_could_be_done(credited, done, words):
    fill = replace(sold("LEAF", 5, credited), arrival_raw=TokenRaw(credited), side="sell")
    assert [word for word, _ in compare.of_claim(fill, done)] == words


@pytest.mark.parametrize("moved, rounding, words", [(10, 0, []), (11, 0, ["false_tokens"]), (11, 1, []), (9, 0, ["under_tokens"]), (-10, 19, ["under_tokens"])])
def test_tokens_that_paper_has_too_many_of_are_false(moved, rounding, words):
    assert [word for word, _ in compare.of_tokens("0x", moved, 10, rounding)] == words


@pytest.mark.parametrize("value, words", [(10, []), (11, ["false_mark"]), (9, ["under_mark"])])
def test_a_mark_above_what_selling_brings_is_false(value, words):
    mark = HoldingMark(token="0x", amount_raw=TokenRaw(1), status="proven", reason="", route="v2", gross_wei=Wei(0), gas_wei=Wei(0), value_wei=Wei(value))
    assert [word for word, _ in compare.of_mark(mark, 10)] == words


async def test_the_table_counts_every_life_and_the_worst_comes_first(twins, door):
    tally = Tally()
    for name in ("plain", "stopped"):
        tally.add(await live(twins, door, program_of(1, kind_named(name))))
    text = tally.table().text()
    assert tally.all("lives") == 2 and "plain" in text and "stopped" in text
    assert [finding.word.startswith("false") for finding in tally.worst()] == sorted((finding.word.startswith("false") for finding in tally.worst()), reverse=True)
