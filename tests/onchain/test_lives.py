"""Lives: a wallet that buys and sells over many blocks is credited, each time, what really doing the same brings (ONC-10).

On paper the market moves by a stranger who really does what the wallet would; then the wallet really does it itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from chain.devnet.calls import Tx
from chain.devnet.devnet import Devnet
from ledgers.money import Wei
from referee.onchain.events import HEADLINE, FillCredited
from tests.onchain.given import outcome, said
from tests.onchain.ground import WALLET, Ground, Run, transactions

STRANGER = "0x7c0ffee000000000000000000000000000000b0b"
STAKE_WEI = 10**18
LIFE = (("buy", 10**16), ("sell", 2), ("buy", 2 * 10**16), ("sell", 3), ("sell", 1))
"""Wei to spend, or which part of the holding to sell; some blocks apart."""
BLOCKS_APART = 3
KINDS = {"plain_oz": "v3", "plain_vyper": "v2", "plain_usdg_v2": "v2", "plain_v4": "v4", "tax_5": "v2", "one_use": "v2", "rich_only": "v2",
         "packed_middle": "v2", "max_wallet": "v2", "no_return": "v3", "swap_back": "v2",
         "loyal": "v2", "early_seller": "v2", "registered_buyers": "v3", "sale_count": "v2", "buy_count": "v2", "stamped": "v2"}  # fmt: skip
HUBS = {"v4": "native", "usdg": "usdg"}


@dataclass(frozen=True)
class Step:
    """One order: what was credited, and the transactions that would have been sent for it."""

    fill: FillCredited
    txs: tuple[Tx, ...]


def sent_by(who: str, txs: tuple[Tx, ...]) -> list[Tx]:
    return [replace(tx, sender=who, data=tx.data.replace(WALLET[2:], who[2:])) for tx in txs]


async def on_paper(chain: Devnet, kind: str) -> list[Step]:
    """Referee a life; after each order the stranger does the same in the block that was simulated."""
    chain.fund(STRANGER, STAKE_WEI)
    here = chain.snapshot()
    ground = await Ground.on(chain)
    chain.revert(here)
    ground.keep_venue(kind, KINDS[kind], "usdg" if "usdg" in kind else HUBS.get(KINDS[kind], "weth"))
    run, steps = Run(ground), []
    for side, size in LIFE:
        chain.mine(BLOCKS_APART)
        here = chain.snapshot()
        ground.settle()
        order = run.buy(kind, Wei(size)) if side == "buy" else run.sell(kind, None if size == 1 else run.held(kind) // size)
        (fill,) = await run.fill(order)
        chain.revert(here)
        steps.append(Step(fill, tuple(transactions(run.refereed[-1]))))
        chain.send(*sent_by(STRANGER, steps[-1].txs))
    await ground.close()
    return steps


@pytest.mark.parametrize("kind", KINDS)
async def test_onc_10_every_order_of_a_life_is_credited_what_really_living_it_brings_to_the_wei(chain, kind):
    start = chain.snapshot()
    steps = await on_paper(chain, kind)
    chain.revert(start)
    chain.fund(WALLET, STAKE_WEI)
    for step in steps:
        chain.mine(BLOCKS_APART)
        before = eth_of(chain)
        receipts = chain.send(*step.txs)
        assert {receipt["status"] for receipt in receipts} == {"0x1"}
        fill = step.fill
        gross = -int(fill.spent_raw) if fill.side == "buy" else int(fill.arrival_raw)
        assert eth_of(chain) - before == gross - int(fill.gas_wei)


def eth_of(chain: Devnet) -> int:
    return int(chain.node.call("eth_getBalance", [WALLET, "latest"]), 16)


# --- tokens that would make a fault of an exit ------------------------------------------------------------------------

WORDS = ("operation timed out", "rate limit reached", "method not supported", "aborted", "insufficient funds")


@pytest.mark.parametrize("words", WORDS)
async def test_onc_11_an_exit_is_not_trapped_by_a_token_that_reverts_with_a_nodes_words(ground, words):
    run = Run(ground)
    await run.fill(run.buy("moody", "0.01 eth"))
    ground.owner("moody", "say(string)", words)
    await marked_and_sold(ground, run)


async def test_onc_11_an_exit_is_not_trapped_by_a_token_that_answers_at_length(ground):
    run = Run(ground)
    await run.fill(run.buy("moody", "0.01 eth"))
    ground.owner("moody", "ramble(uint256)", 1_000_000)
    await marked_and_sold(ground, run)


async def marked_and_sold(ground: Ground, run: Run) -> None:
    """What it says of balances matters to nobody: the words are carried, and the sale is told by the ETH that comes."""
    ground.settle()
    (mark,) = (await run.worth()).holdings
    (whole,) = await run.copy().fill(run.sell("moody"))
    assert (mark.status, mark.gross_wei) == ("proven", Wei(int(whole.arrival_raw)))
    for size in (run.held("moody") // 2, None):
        assert await run.say(run.sell("moody", size)) == ["filled"]
    assert run.held("moody") == 0
    assert [state.faults for state in ground.desk.rpc.lanes] == [0]


# --- tokens that look at who they trade with --------------------------------------------------------------------------


async def test_a_buy_that_its_holding_changes_is_the_buy_of_a_holder(ground):
    """A fifth of a buy is kept of who holds none yet."""
    run = Run(ground)
    first, second = [(await run.fill(run.buy("loyal", "0.01 eth")))[0] for _ in range(2)]
    assert second.proven and int(first.arrival_raw) == int(second.arrival_raw) - int(second.arrival_raw) // 5


async def test_onc_06_an_allowance_that_is_used_up_is_paid_by_every_sale(ground):
    run = Run(ground)
    ground.keep_venue("one_use", "v2", "weth")
    await run.fill(run.buy("one_use", "0.02 eth"))
    first, second = [(await run.fill(run.sell("one_use", run.held("one_use") // 3)))[0] for _ in range(2)]
    assert first.approvals == second.approvals != () and first.gas_wei == second.gas_wei


async def test_onc_06_an_approval_that_was_paid_brings_nothing_again(ground):
    """The token pays for every approval; the wallet would make one only."""
    ground.chain.fund(ground.token("bounty"), 10**18)
    ground.settle()
    ground.keep_venue("bounty", "v2", "weth")
    run = Run(ground)
    await run.fill(run.buy("bounty", "0.02 eth"))
    (unpaid,) = (await run.worth()).holdings
    part = run.held("bounty") // 3
    first, second = [(await run.fill(run.sell("bounty", part)))[0] for _ in range(2)]
    assert int(first.arrival_raw) - int(second.arrival_raw) == 10**15
    (paid,) = (await run.worth()).holdings
    (rest,) = await run.fill(run.sell("bounty"))
    assert int(paid.gross_wei) == int(rest.arrival_raw) < int(unpaid.gross_wei) - 10**15


async def test_onc_10_a_wallet_shows_the_ether_of_its_book(ground):
    """A token that looks at its seller's purse is sold with the purse that the book says."""
    ground.keep_venue("rich_only", "v2", "weth")
    rich, poor = Run(ground), Run(ground, stake="0.019 eth")
    for run, end in ((rich, "filled"), (poor, "gate_flagged")):
        (events,) = await run.decide(run.buy("rich_only", "0.01 eth"))
        assert said(events, HEADLINE) == end, outcome(events)
