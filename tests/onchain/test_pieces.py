"""ONC-24: the orders of one decision run one after another at one block, so that splitting one never beats it.

What is credited for a whole decision is held against really sending all its transactions, to the wei.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from chain.trade import Purse
from chain.words import own
from ledgers.money import Wei
from referee.onchain.board import header_of_pin
from referee.onchain.events import HEADLINE, PERMISSIVE, FillCredited, OrderAsked
from tests.onchain.given import outcome, said
from tests.onchain.ground import WALLET, Ground, Run, transactions

STRANGER = "0x7c0ffee000000000000000000000000000000b0b"

# --- N pieces ---------------------------------------------------------------------------------------------------------

VENUES = {"v2": ("v2", "weth"), "v3": ("v3", "weth"), "v4": ("v4", "native"), "via usdg": ("v3", "usdg")}


def parts(whole: int, count: int) -> list[int]:
    """Uneven pieces of a whole."""
    pieces = [whole * (2 * at + 1) // count**2 for at in range(count - 1)]
    return [*pieces, whole - sum(pieces)]


async def brought(run: Run, orders: Sequence[OrderAsked], ledger: str = HEADLINE) -> int:
    return sum(int(fill.arrival_raw) for fill in await run.fill(*orders, ledger=ledger))


@pytest.mark.parametrize("venue", VENUES)
async def test_onc_24_a_buy_in_pieces_never_brings_more_than_one_order(ground, venue):
    ground.keep_venue("plain_oz", *VENUES[venue])
    spend = 10**17
    whole = await brought(run := Run(ground), [run.buy("plain_oz", Wei(spend))])
    for count in range(2, 9):
        run = Run(ground)
        split = await brought(run, [run.buy("plain_oz", Wei(part)) for part in parts(spend, count)])
        assert split <= whole, (count, split - whole)
        assert split > whole * 999 // 1_000


@pytest.mark.parametrize("venue", VENUES)
async def test_onc_24_a_sale_in_pieces_never_brings_more_than_one_order(ground, venue):
    ground.keep_venue("plain_oz", *VENUES[venue])
    amount = 2_000 * 10**18
    whole = await brought(run := await holding(ground, "plain_oz", amount), [run.sell("plain_oz", amount)])
    for count in range(2, 9):
        run = await holding(ground, "plain_oz", amount)
        split = await brought(run, [run.sell("plain_oz", part) for part in parts(amount, count)])
        assert split <= whole and run.held("plain_oz") == 0, (count, split - whole)
        assert split > whole * 999 // 1_000


async def holding(ground: Ground, name: str, amount: int, told: bool = True) -> Run:
    run = Run(ground)
    await run.grant(name, amount, told=told)
    return run


@pytest.mark.parametrize("route", [("v2", "weth"), ("v3", "weth")])
@pytest.mark.parametrize("name", ["checkpointed", "registered_buyers"])
async def test_onc_24_a_claimed_sale_in_pieces_never_brings_more_than_one_order(ground, name, route):
    ground.keep_venue(name, *route)
    amount = 2_000 * 10**18
    whole = await brought(run := await holding(ground, name, amount, told=False), [run.sell(name, amount)], PERMISSIVE)
    for count in range(2, 9):
        run = await holding(ground, name, amount, told=False)
        assert await brought(run, [run.sell(name, part) for part in parts(amount, count)], PERMISSIVE) <= whole
        assert (run.held(name, PERMISSIVE), run.held(name)) == (0, amount)


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_onc_24_claims_in_pieces_of_what_a_token_still_tells_never_sell_more_than_is_left(chain, count):
    """A stranger wrote the total of this token too, so that a sale is a claim; no simulation runs it again, and the token goes on telling the whole."""
    chain.fund(STRANGER, 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    ground.keep_venue("reflection", "v2", "weth")
    run = Run(ground)
    await run.fill(run.buy("reflection", "0.1 eth"))
    chain.revert(here)
    bought = [replace(tx, sender=STRANGER, data=tx.data.replace(WALLET[2:], STRANGER[2:])) for tx in transactions(run.refereed[0])]
    assert {receipt["status"] for receipt in chain.send(*bought)} == {"0x1"}
    ground.settle()
    (mark,) = (await run.worth(PERMISSIVE)).holdings
    told = int(mark.amount_raw)
    pieces = [run.sell("reflection", told // (count + 1))] * count
    events = await run.decide(*pieces, run.sell("reflection", told), run.sell("reflection"), run.sell("reflection", 1))
    await ground.close()
    first, later = "filled EXIT_UNPROVEN:shared_state", "filled EXIT_UNPROVEN:words_untold"
    assert [said(each, PERMISSIVE) for each in events] == [first, *[later] * (count - 1), "insufficient_tokens", later, "not_held"]
    assert {said(each, HEADLINE) for each in events} == {"unprovable"}
    fills = [fill for fill in (outcome(each, PERMISSIVE) for each in events) if isinstance(fill, FillCredited)]
    assert sum(int(fill.spent_raw) for fill in fills) == told and sum(int(fill.arrival_raw) for fill in fills) < 10**17
    assert run.held("reflection", PERMISSIVE) == 0 < run.held("reflection")


async def test_onc_24_a_sale_claimed_for_want_of_simulation_in_pieces_never_brings_more_than_one_order(ground):
    ground.keep_venue("plain_oz", "v2", "weth")
    amount = 2_000 * 10**18
    run, split = [await holding(ground, "plain_oz", amount) for _ in range(2)]
    ground.wire.missing = {"eth_simulateV1"}
    whole = await brought(run, [run.sell("plain_oz", amount)])
    assert await brought(split, [split.sell("plain_oz", part) for part in parts(amount, 5)]) <= whole


async def test_onc_24_a_claim_comes_after_what_was_filled_before_it(ground):
    """Permissive buys an unprovable token and sells it at once: at the raised price, and never more than it paid."""
    ground.keep_venue("checkpointed", "v2", "weth")
    run = Run(ground)
    bought, sold = await run.fill(run.buy("checkpointed", "0.1 eth"), run.sell("checkpointed"), ledger=PERMISSIVE)
    assert 0.99 * 10**17 < int(sold.arrival_raw) < 10**17
    cause = "not told: where a pool's balance is kept"
    assert (bought.tag, sold.tag) == (f"BUY_UNPROVEN:{cause}", f"EXIT_UNPROVEN:{cause}")


async def test_onc_24_a_claimed_sale_frees_what_it_held(ground):
    """Sold on a claim and bought again in one decision: the new holding is only what was bought, and its token stays untold."""
    run = await holding(ground, "registered_buyers", 10**20, told=False)
    events = await run.decide(run.sell("registered_buyers"), run.buy("registered_buyers", "0.01 eth"))
    assert [said(each, PERMISSIVE) for each in events] == ["filled EXIT_UNPROVEN:words_untold", "filled BUY_UNPROVEN:words_untold"]
    assert [said(each, HEADLINE) for each in events] == ["unprovable", "unprovable_exit"]
    assert run.held("registered_buyers", PERMISSIVE) == int(outcome(events[1], PERMISSIVE).arrival_raw)


# --- against really sending everything ----------------------------------------------------------------------------------

DECISIONS = {
    "a buy and its sale": [("buy", "LEAF", 10**17), ("sell", "LEAF", 1)],
    "one token bought twice": [("buy", "FERN", 10**17), ("buy", "FERN", 2 * 10**17), ("sell", "FERN", 3), ("buy", "FERN", 10**16)],
    "tokens that share a hub": [("buy", "RUNE", 10**17), ("buy", "LEAF", 10**17), ("sell", "RUNE", 2), ("buy", "plain_usdg_v3", 10**16), ("sell", "LEAF", 1)],
    "v4 with Permit2": [("buy", "plain_v4", 10**17), ("sell", "plain_v4", 2), ("sell", "plain_v4", 3)],
    "taxes": [("buy", "tax_5", 10**17), ("sell", "tax_5", 2), ("buy", "tax_buy", 10**16), ("sell", "tax_5", 1)],
    "approvals taken once": [("buy", "no_return", 10**17), ("sell", "no_return", 2), ("buy", "no_return", 10**16), ("sell", "no_return", 1)],
    "reflection": [("buy", "reflection", 10**17), ("buy", "reflection", 10**17), ("sell", "reflection", 2), ("buy", "reflection", 10**16)],
    "reflection sold out": [("buy", "reflection", 10**17), ("buy", "reflection", 10**17), ("sell", "reflection", 1)],
    "shares": [("buy", "shares", 10**17), ("sell", "shares", 2), ("sell", "shares", 3)],
    "shares sold out": [("buy", "shares", 10**17), ("sell", "shares", 2), ("sell", "shares", 1)],
    "fragments": [("buy", "gons", 10**17), ("sell", "gons", 2), ("buy", "gons", 10**16), ("sell", "gons", 1)],
    "interest": [("buy", "interest", 10**17), ("sell", "interest", 2), ("sell", "interest", 1)],
    "eight orders": [("buy", name, 10**16) for name in ("LEAF", "FERN", "MOSS", "BARK")] + [("sell", name, 2) for name in ("BARK", "MOSS", "FERN", "LEAF")],
}
"""Side, token, and wei to spend or which part of the last buy to sell (1: all that is held)."""
SHARES = ("reflection", "shares", "gons", "interest")
"""Tokens of which a book counts what arrived, and the token tells what it has become; a last unit may be left of what was sold out."""


@pytest.mark.parametrize("name", DECISIONS)
async def test_onc_24_a_decision_is_credited_what_really_sending_it_brings_to_the_wei(chain, name):
    chain.fund(WALLET, 2 * 10**18)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    run = Run(ground)
    await decide(run, DECISIONS[name])
    tokens = dict.fromkeys(token for _, token, _ in DECISIONS[name])
    told = {token: await told_by(run, token) for token in tokens}
    await ground.close()
    chain.revert(here)
    before = ground.eth_of(WALLET)
    receipts = chain.send(*transactions(run.refereed[-1]))
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    assert ground.eth_of(WALLET) - before == int(run.book().eth_wei) - 10**18
    assert {token: ground.tokens_of(token, WALLET) for token in tokens} == told
    assert all(told[token] == run.held(token) if token not in SHARES else run.held(token) > 0 or told[token] <= 1 for token in tokens), told


async def decide(run: Run, orders: Sequence[tuple[str, str, int]]) -> None:
    desk, last = await run.sit_down(), {}
    for side, token, size in orders:
        order = run.buy(token, Wei(size)) if side == "buy" else run.sell(token, None if size == 1 else last[token] // size)
        fill = outcome(await run.order(desk, order))
        assert isinstance(fill, FillCredited) and fill.proven, fill
        last[token] = int(fill.arrival_raw) if side == "buy" else last[token]


async def told_by(run: Run, token: str) -> int:
    """What the token says that the wallet holds after all that was filled, at the block that was simulated."""
    desk, book = run.ground.desk, run.book()
    pin = header_of_pin(await desk.pin())
    told = await desk.amount(Purse(WALLET, int(book.eth_wei), own(book.words)), run.ground.token(token), pin)
    assert told is not None
    return told


async def test_onc_24_an_order_that_reverted_is_not_run_again_before_the_next(ground):
    run, alone = Run(ground), Run(ground)
    _, reverted, sold = [outcome(events) for events in await run.decide(run.buy("LEAF", "0.1 eth"), run.buy("pausable_paused", "0.1 eth"), run.sell("LEAF"))]
    bought, kept = await alone.fill(alone.buy("LEAF", "0.1 eth"), alone.sell("LEAF"))
    assert (reverted.reason, sold.arrival_raw) == ("reverted", kept.arrival_raw)
    assert [tx.data for tx in transactions(run.refereed[-1])] == [tx.data for tx in transactions(alone.refereed[-1])]


async def test_onc_24_a_refused_order_is_not_run_again_before_the_next(ground):
    run, alone = Run(ground), Run(ground)
    await run.decide(run.buy("LEAF", "0.1 eth"), run.buy("honeypot", "0.1 eth"), run.sell("LEAF"))
    await alone.decide(alone.buy("LEAF", "0.1 eth"), alone.sell("LEAF"))
    assert run.book().eth_wei == alone.book().eth_wei


async def test_onc_24_a_sale_runs_after_the_buy_of_the_same_decision(ground):
    """The pool is moved by the buy: what is sold at once brings more than what is sold by itself, and less than it cost."""
    ground.keep_venue("plain_oz", "v2", "weth")
    run = Run(ground)
    bought, sold = await run.fill(run.buy("plain_oz", "0.5 eth"), run.sell("plain_oz"))
    alone = await holding(ground, "plain_oz", int(bought.arrival_raw))
    (apart,) = await alone.fill(alone.sell("plain_oz"))
    assert int(apart.arrival_raw) < int(sold.arrival_raw) < 5 * 10**17


async def test_onc_24_decisions_do_not_move_the_chain_for_each_other(ground):
    run = Run(ground)
    (first,) = await run.fill(run.buy("FERN", "0.1 eth"))
    (second,) = await run.fill(run.buy("FERN", "0.1 eth"))
    assert first.arrival_raw == second.arrival_raw


async def test_onc_24_each_ledger_runs_after_its_own_orders(ground):
    """Permissive bought more of the same pool before: its later order meets a worse price."""
    ground.keep_venue("checkpointed", "v2", "weth")
    run = Run(ground)
    events = await run.decide(run.buy("checkpointed", "0.1 eth"), run.buy("checkpointed", "0.1 eth"))
    first, second = (outcome(each, PERMISSIVE) for each in events)
    assert second.arrival_raw < first.arrival_raw and {said(each, HEADLINE) for each in events} == {"unprovable_exit"}
