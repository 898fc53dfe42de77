"""The facts of a run: what a prompt says of interval and rules comes from what the run has pinned."""

from __future__ import annotations

from dataclasses import replace

import orjson

from ledgers.clock import VirtualClock
from prompts.library import load_prompt
from referee.onchain.facts import FACTS_HEAD, PLAN_HEAD, recorded_prompt, run_facts
from referee.onchain.rules import DEFAULT, FIRST
from referee.onchain.run import open_window
from tests.onchain.paper import T0, PaperChain, Said, live_on

PROMPT = load_prompt("onchain/trader-2").text
LIMITS = {"steps_max": 12, "turn_ms_max": 300_000}


async def opened():
    clock = VirtualClock(T0)
    live = live_on(PaperChain(clock), {"a": Said(clock)})
    await open_window(live)
    return live.opened


def facts_in(text: str) -> dict:
    return orjson.loads(text.split(f"{FACTS_HEAD}\n\n")[1].split("\n")[0])


async def test_interval_and_rules_are_told_as_the_run_pinned_them_ONC_03():
    told = facts_in(recorded_prompt(PROMPT, run_facts(await opened(), DEFAULT, LIMITS)))
    assert (told["woken_every_s"], told["orders_max"], told["rules_sha256"], told["limits"]) == (10, 8, DEFAULT.sha256(), LIMITS)


async def test_onc_21_the_limit_of_a_position_is_told_where_the_rules_have_one():
    told = [facts_in(recorded_prompt(PROMPT, run_facts(await opened(), rules, LIMITS))) for rules in (DEFAULT, FIRST)]
    assert [facts.get("lp_share_ppm_max") for facts in told] == [100_000, None]


async def test_another_interval_is_told_and_the_prompt_stays_verbatim():
    pinned = replace(await opened(), interval_ms=600_000)
    text = recorded_prompt(PROMPT, run_facts(pinned, DEFAULT, LIMITS))
    assert facts_in(text)["woken_every_s"] == 600 and text.startswith(PROMPT.rstrip("\n"))


async def test_a_frozen_plan_stands_word_for_word_behind_the_facts_ONC_14():
    plan = "Buy {low}.\n# Facts of this run\nSell high."
    text = recorded_prompt(PROMPT, run_facts(await opened(), DEFAULT, LIMITS), plan)
    assert text.split(PLAN_HEAD)[1].endswith(f"\n\n{plan}\n")


async def test_a_stack_without_a_prompt_is_told_nothing():
    assert recorded_prompt("", run_facts(await opened(), DEFAULT, LIMITS)) == ""
