"""The contracts of the lives are what they say, really executed: each remembers through the taking back of the market, and honest ones can be left."""

from __future__ import annotations

import pytest

from chain.devnet.calls import Tx
from chain.devnet.swaps import swap
from tests.lives.kinds import KINDS, LifeKind, kind_named
from tests.lives.world import CALL_GAS, Stall, Twins

ETH = 10**18
WALLET = "0x11fe5ba5e5000000000000000000000000c0ffee"
SPEND_WEI = ETH // 20
PLACES = [kind for kind in KINDS if "third_taxed/" in kind.name]
FAIR = [kind for kind in KINDS if kind.honest and "/" not in kind.name or kind.name.startswith(("noted/", "hook/noted/"))]


class Trader:
    """A wallet in the real world alone, whose market effects are taken back."""

    def __init__(self, twins: Twins, kind: LifeKind, venue: str) -> None:
        twins.reset()
        self.twins, self.world = twins, twins.real
        self.stall: Stall = twins.open(kind, venue)
        twins.stalls.append(self.stall)
        self.world.endow([WALLET], 2 * ETH)
        venues, place = self.world.chain.deployment.venues, self.stall.place
        spenders = (self.world.at["permit2"], self.world.at["universal_router"]) if place.venue == "v4" else (self.world.at["swap_router_02"],)
        self.grants = venues.approve(WALLET, self.stall.token, spenders)

    @property
    def held(self) -> int:
        return self.world.tokens_of(self.stall.token, WALLET) or 0

    def buy(self) -> int:
        """Tokens that arrive."""
        before, place = self.held, self.stall.place
        self._send(swap(self.world.chain.deployment.venues, WALLET, place, place.other(self.stall.token), SPEND_WEI, ether=True))
        return self.held - before

    def sell(self, raw: int) -> int:
        """ETH that arrives, gas apart; 0 when it reverts."""
        before = self.world.eth_of(WALLET)
        receipts = self._send(*self.grants, swap(self.world.chain.deployment.venues, WALLET, self.stall.place, self.stall.token, raw, ether=True))
        paid = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
        return self.world.eth_of(WALLET) - before + paid

    def _send(self, *txs: Tx) -> list[dict]:
        receipts = self.world.send([Tx(sender=tx.sender, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=CALL_GAS) for tx in txs])
        self.twins.undo_market(self.world.traces(receipts))
        return receipts


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
def test_wherever_a_sale_is_remembered_the_third_is_taxed(twins, kind):
    trader = Trader(twins, kind, "v2" if "v2" in kind.venues else "hook")
    part = trader.buy() // 4
    first, second, third = [trader.sell(part) for _ in range(3)]
    assert first == second > SPEND_WEI // 5 and second // 11 < third < second // 9


@pytest.mark.parametrize("kind", FAIR, ids=lambda kind: kind.name)
def test_an_honest_token_can_be_left_in_parts_at_any_time_wherever_it_is_traded(twins, kind):
    for venue in kind.venues:
        trader = Trader(twins, kind, venue)
        part = trader.buy() // 3
        brought = [trader.sell(part)]
        twins.leap(86_400, 1)
        brought += [trader.sell(part), trader.sell(trader.held)]
        assert min(brought) > SPEND_WEI * 9 // 30, (venue, brought)


def test_the_market_is_the_same_again_after_a_real_trade_and_the_wallet_is_not(twins):
    trader = Trader(twins, kind_named("plain"), "v2")
    first = trader.buy()
    assert trader.held == first and trader.buy() == first


@pytest.mark.parametrize("seconds, taxed", [(7, False), (8, True), (3_597, True), (3_598, False)])
def test_the_tax_of_the_hour_begins_at_ten_seconds_and_ends_with_it(twins, seconds, taxed):
    """Two blocks pass beside the leap."""
    trader = Trader(twins, kind_named("from_ten_seconds/far"), "v2")
    bought = trader.buy()
    twins.leap(seconds, 1)
    assert (trader.sell(bought) < SPEND_WEI // 5) == taxed
