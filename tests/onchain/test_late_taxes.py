"""Hooks and tokens that tax a buyer late: what a buy wrote about the wallet is kept, so that a later sale on paper is the wallet's own (ONC-10, ONC-11)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from chain.devnet.calls import Tx, arguments, encode
from chain.devnet.compile import artifacts
from chain.devnet.hooks import AFTER_SWAP, AFTER_SWAP_DELTA, PERMISSIONS
from chain.devnet.toolchain import require
from chain.devnet.venues import NATIVE
from ledgers.money import TokenRaw, Wei
from referee.onchain.book import words_kept
from referee.onchain.events import FURTHER_LEDGERS, HEADLINE, LEDGERS, PERMISSIVE, FillCredited, OrderAsked
from tests.onchain.followed import FollowedRun
from tests.onchain.given import outcome, said, wei
from tests.onchain.ground import WALLET, Ground, Run, gates, transactions

ETH = 10**18
SPEND = wei("0.05 eth")
STRANGER = "0x7c0ffee0000000000000000000000000000b0b01"
NEIGHBOUR = "0x7c0ffee000000000000000000000000000b0b00e"
"""A stranger in the wallet's bucket, of 64."""
DEPLOY_GAS = 12_000_000
LATE_BLOCKS, EARLY_BLOCKS = 90, 20
MAPPING, BY_POOL, OF_POOL, STRUCT, OWN_LIST, LIST, BUCKET, NOTED = range(8)
UNDER_THE_NAME = {"mapping": MAPPING, "by_pool": BY_POOL, "of_pool": OF_POOL, "struct": STRUCT, "own_list": OWN_LIST}
SHARED = {"list": LIST, "bucket": BUCKET}
COINS = ("coin", "coin_packed", "coin_stamped")
"""Tokens that write the time of a buy, beside the balance in its word, and there the time of a sale too."""
MARKED = 3
"""A token that marks its buyers beside the pool's balance, in that one's word, and taxes them once its owner says so."""


def built(name: str, *values) -> str:
    artifact = artifacts(require(), folder=Path(__file__).parent / "late")[name]
    return artifact.bytecode + arguments(artifact.constructor_types, values)


class Late:
    """A market whose buyers are taxed late, the run's wallet and a stranger on it."""

    def __init__(self, chain, token: str, pool: str) -> None:
        self.chain, self.token, self.pool = chain, token.lower(), pool
        chain.fund(WALLET, 3 * ETH)
        chain.fund(STRANGER, 3 * ETH)
        chain.fund(NEIGHBOUR, 3 * ETH)
        self.start = chain.snapshot()

    @classmethod
    def hook(cls, chain, kind: int) -> Late:
        """A pool of an honest token under a late hook."""
        token, owner, at = chain.deployment.token("PINE"), chain.deployment.cast.issuer, chain.deployment.at
        address = f"0x{(0x1A7E << 144 | kind << 32) & ~PERMISSIONS | AFTER_SWAP | AFTER_SWAP_DELTA:040x}"
        creation = built("LateHook", at["v4_pool_manager"], kind)
        chain.node.call("anvil_setCode", [address, chain.node.call("eth_call", [{"data": creation, "gas": hex(DEPLOY_GAS)}, "latest"])])
        venues = chain.deployment.venues
        place = venues.hooked(token.address, NATIVE, 0, 200, address)
        worth_raw = 200 * ETH * 3 * 10 ** (3 + token.decimals) // token.price
        done(chain, *venues.approvals(owner, token.address, "v4"), *venues.open(owner, place, 200 * ETH, worth_raw))
        return cls(chain, token.address, place.key)

    @classmethod
    def coin(cls, chain, kind: int) -> Late:
        """A late token in a v2 pool."""
        owner, venues = chain.deployment.cast.visitor, chain.deployment.venues
        (receipt,) = done(chain, Tx(sender=owner, to=None, data=built("LateToken", kind), gas=DEPLOY_GAS))
        token = receipt["contractAddress"].lower()
        place = venues.place("v2", token, venues.at["weth"].lower(), 3_000)
        chain.fund(owner, 500 * ETH)
        amounts = {token: 200_000 * ETH, place.other(token): 200 * ETH}
        told = Tx(sender=owner, to=token, data=encode("setPool(address)", place.key), gas=1_000_000)
        done(chain, *venues.approvals(owner, token, "v2"), *venues.open(owner, place, amounts[place.token0], amounts[place.token1]), told)
        more = Tx(sender=owner, to=token, data=encode("transfer(address,uint256)", place.key, ETH), gas=1_000_000)
        done(chain, more, Tx(sender=owner, to=place.key, data=encode("skim(address)", owner), gas=1_000_000))  # somebody had some before
        return cls(chain, token, place.key)

    async def ground(self) -> Ground:
        ground = await Ground.on(self.chain)
        ground.keep(lambda pool: pool.key == self.pool)
        return ground

    def buy(self) -> OrderAsked:
        return OrderAsked(index=0, side="buy", token=self.token, spend_wei=Wei(int(SPEND)), amount_raw=None, sell_all=False)

    def sell(self, amount: int | None = None) -> OrderAsked:
        raw = None if amount is None else TokenRaw(amount)
        return OrderAsked(index=0, side="sell", token=self.token, spend_wei=None, amount_raw=raw, sell_all=amount is None)

    def really(self, txs: list[Tx], sender: str = WALLET) -> tuple[bool, int, int]:
        """Send what a route sends, as somebody: whether it went through, ETH gained before gas, and the gas."""
        before = int(self.chain.node.call("eth_getBalance", [sender, "latest"]), 16)
        receipts = self.chain.send(*(replace(tx, sender=sender, data=tx.data.replace(WALLET[2:], sender[2:])) for tx in txs))
        gas = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
        ok = all(receipt["status"] == "0x1" for receipt in receipts)
        return ok, int(self.chain.node.call("eth_getBalance", [sender, "latest"]), 16) - before + gas, gas

    def bought_by(self, sender: str, txs: list[Tx], later_blocks: int, after_blocks: int = 0) -> None:
        """From the start anew, somebody really buys, after a while where it is said, and time passes."""
        self.chain.revert(self.start)
        self.start = self.chain.snapshot()
        self.chain.mine(after_blocks)
        assert self.really(txs, sender)[0]
        self.chain.mine(later_blocks)

    def sold_by_a_holder(self, txs: list[Tx], awake: bool) -> int:
        """Tokens that really come to the pool where the wallet bought and then hands all of it in, after the owner woke the token or not."""
        self.bought_by(WALLET, txs, 1)
        before = self.balance_of(self.pool)
        if awake:
            done(self.chain, Tx(sender=self.chain.deployment.cast.visitor, to=self.token, data=encode("wake()"), gas=1_000_000))
        done(self.chain, Tx(sender=WALLET, to=self.token, data=encode("transfer(address,uint256)", self.pool, self.balance_of(WALLET)), gas=1_000_000))
        return self.balance_of(self.pool) - before

    def balance_of(self, owner: str) -> int:
        return int(self.chain.node.call("eth_call", [{"to": self.token, "data": encode("balanceOf(address)", owner)}, "latest"]), 16)


def done(chain, *txs: Tx) -> list[dict]:
    receipts = chain.send(*txs)
    assert {receipt["status"] for receipt in receipts} == {"0x1"}, receipts
    return receipts


def market(chain, name: str) -> Late:
    if name in COINS:
        return Late.coin(chain, COINS.index(name))
    return Late.hook(chain, (UNDER_THE_NAME | SHARED)[name])


@pytest.mark.parametrize("later_blocks", [EARLY_BLOCKS, LATE_BLOCKS])
@pytest.mark.parametrize("name", [*UNDER_THE_NAME, *COINS])
async def test_a_late_sale_on_paper_is_what_a_wallet_that_bought_really_gets(chain, name, later_blocks):
    late = market(chain, name)
    ground = await late.ground()
    run = Run(ground)
    (bought,) = await run.fill(late.buy())
    assert bought.proven and bought.kept and words_kept(run.book().words) == bought.kept
    txs = transactions(run.refereed[0])
    late.bought_by(STRANGER, txs, later_blocks)
    ground.settle()
    worth = await run.worth()
    (sold,) = await run.fill(late.sell())
    await ground.close()
    late.bought_by(WALLET, txs, later_blocks)
    assert sold.proven and late.really(transactions(run.refereed[-1])) == (True, int(sold.arrival_raw), int(sold.gas_wei))
    assert int(worth.value_wei) == int(run.book().eth_wei)
    assert (int(sold.arrival_raw) * 4 < int(SPEND)) == (later_blocks == LATE_BLOCKS)


@pytest.mark.parametrize("name", ["mapping", "struct", "own_list", *COINS])
async def test_a_second_buy_is_told_of_the_first_and_the_sale_of_both(chain, name):
    late = market(chain, name)
    ground = await late.ground()
    run = Run(ground)
    await run.fill(late.buy())
    first = transactions(run.refereed[0])
    late.bought_by(STRANGER, first, 20)
    ground.settle()
    (again,) = await run.fill(late.buy())
    second = transactions(run.refereed[1])
    late.bought_by(STRANGER, first, 20)
    assert late.really(second, STRANGER)[0]
    late.chain.mine(50)
    ground.settle()
    (sold,) = await run.fill(late.sell())
    await ground.close()
    late.bought_by(WALLET, first, 20)
    assert late.really(second) == (True, -int(SPEND), int(again.gas_wei))
    late.chain.mine(50)
    assert late.really(transactions(run.refereed[2])) == (True, int(sold.arrival_raw), int(sold.gas_wei))
    assert int(sold.arrival_raw) > int(SPEND)


async def test_further_ledgers_sell_as_the_buyer_that_they_are(chain):
    late = Late.hook(chain, MAPPING)
    ground = await late.ground()
    run = FollowedRun(ground)
    await run.play(late.buy())
    chain.mine(LATE_BLOCKS)
    ground.settle()
    await run.play(late.sell())
    await ground.close()
    sales = {ledger: [event for event in run.events if isinstance(event, FillCredited) and event.side == "sell" and ledger in event.ledgers] for ledger in (HEADLINE, *FURTHER_LEDGERS)}
    assert [len(fills) for fills in sales.values()] == [1, 1, 1]
    assert all(int(fill.arrival_raw) * 4 < int(SPEND) and fill.kept for (fill,) in sales.values())


async def test_what_a_sale_writes_about_the_wallet_is_kept_as_well(chain):
    """The second half is sold more than a minute after the buy, yet less after the first half was."""
    late = Late.coin(chain, COINS.index("coin_stamped"))
    ground = await late.ground()
    run = Run(ground)
    (bought,) = await run.fill(late.buy())
    txs, half = transactions(run.refereed[0]), int(bought.arrival_raw) // 2
    late.bought_by(STRANGER, txs, 30)
    ground.settle()
    (first,) = await run.fill(late.sell(half))
    assert first.kept and first.kept != bought.kept
    sale = transactions(run.refereed[1])
    late.bought_by(STRANGER, txs, 30)
    assert late.really(sale, STRANGER)[0]
    late.chain.mine(40)
    ground.settle()
    (second,) = await run.fill(late.sell())
    await ground.close()
    late.bought_by(WALLET, txs, 30)
    assert late.really(sale) == (True, int(first.arrival_raw), int(first.gas_wei))
    late.chain.mine(40)
    assert late.really(transactions(run.refereed[2])[-1:]) == (True, int(second.arrival_raw), int(second.gas_wei))
    assert int(second.arrival_raw) * 3 > int(SPEND)


async def test_a_mark_of_the_buyer_beside_the_pools_balance_is_not_taken_for_the_markets(chain):
    """In a word that moves by little beside what is above the balance: as shares might, which it does not count."""
    late = Late.coin(chain, MARKED)
    ground = await late.ground()
    run = Run(ground)
    (events,) = await run.decide(late.buy())
    await ground.close()
    assert [said(events, ledger) for ledger in LEDGERS] == ["unprovable_exit", "filled BUY_UNPROVEN:not told: where a pool's balance is kept"]
    (gate,) = gates(events)
    calls = orjson.loads(run.refereed[0].blobs[gate.digest])[0]["params"][0]["blockStateCalls"][0]["calls"]
    buy = [Tx(sender=WALLET, to=call["to"], data=call["data"], value_wei=int(call["value"], 16), gas=int(call["gas"], 16)) for call in calls if call["from"] == WALLET]
    unmarked, marked = [late.sold_by_a_holder(buy, awake) for awake in (False, True)]
    assert 0 < marked * 4 < unmarked


@pytest.mark.parametrize("name", [*SHARED])
async def test_what_is_written_where_others_write_too_is_sold_only_by_what_all_readings_bring(chain, name):
    """A stranger wrote the same words since: who is the last of a list, or when the bucket was last written, nobody can say."""
    late = market(chain, name)
    ground = await late.ground()
    run = Run(ground)
    await run.fill(late.buy())
    late.bought_by(NEIGHBOUR, transactions(run.refereed[0]), EARLY_BLOCKS, LATE_BLOCKS)
    ground.settle()
    marks = {ledger: (await run.worth(ledger)).holdings[0] for ledger in LEDGERS}
    (events,) = await run.decide(late.sell())
    await ground.close()
    assert [(said(events, ledger), outcome(events, ledger).ledgers) for ledger in LEDGERS] == [("unprovable", (HEADLINE,)), ("filled EXIT_UNPROVEN:shared_state", (PERMISSIVE,))]
    claimed = outcome(events, PERMISSIVE)
    assert outcome(events).detail == "shared_state" and int(claimed.arrival_raw) * 4 < int(SPEND)
    assert [(mark.status, int(mark.gross_wei)) for mark in marks.values()] == [("unknown", 0), ("unprovable", int(claimed.arrival_raw))]


async def test_what_is_noted_of_a_buyer_costs_no_further_round_trip_once_the_market_is_known(chain):
    late = Late.hook(chain, NOTED)
    ground = await late.ground()
    run, before = Run(ground), Run(ground)
    await before.fill(late.buy())
    ground.trips()
    (bought,) = await run.fill(late.buy())
    assert bought.kept
    assert len([trip for trip in ground.trips() if trip["eth_simulateV1"]]) == 2
    await ground.close()
