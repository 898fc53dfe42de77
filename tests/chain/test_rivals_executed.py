"""Rivals of the local chain, asked as the product asks: what an honest one offers is really executed, and each trick has its word."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from chain.aggregators.ask import Ask, RivalQuote, RivalSilent
from chain.aggregators.rivals import Rivals, rivals_named
from chain.devnet.calls import Tx, decode, encode
from chain.devnet.devnet import Devnet
from chain.devnet.rival import KEY
from chain.devnet.tricks import TRICKS
from ledgers.clock import SystemClock

WALLET = "0x000000000000000000000000000000000000b0b2"
SPEND = 10**16
NAMES = ("kyberswap", "0x")


@dataclass(frozen=True, slots=True)
class Street:
    """The local chain and the way to its rivals."""

    chain: Devnet
    base_urls: dict[str, str]

    def ask(self, side: str, token: str, amount: int, deadline_ms: int = 20_000) -> Ask:
        return Ask(
            side=side, token=token, amount=amount, wallet=WALLET, token_decimals=18, chain_id=self.chain.chain_id, weth=self.chain.addresses["weth"],
            gas_price_wei=10**7, now_s=int(self.chain.node.call("eth_getBlockByNumber", ["latest", False])["timestamp"], 16), deadline_ms=deadline_ms,
        )  # fmt: skip

    async def answers(self, ask: Ask) -> dict[str, RivalQuote | RivalSilent]:
        rivals = Rivals(rivals_named(NAMES, "devnet", {"0x": KEY}, self.base_urls), SystemClock())
        try:
            return {answer.source: answer for answer in await rivals.ask(ask)}
        finally:
            await rivals.close()

    def send(self, to: str, data: str, value_wei: int = 0) -> int:
        """Really send; the gas in wei that it took."""
        [receipt] = self.chain.send(Tx(sender=WALLET, to=to, data=data, value_wei=value_wei, gas=5_000_000))
        assert receipt["status"] == "0x1"
        return int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)

    def held(self, token: str) -> int:
        return decode(("uint256",), self.chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", WALLET)}, "latest"]))[0]

    def ether(self) -> int:
        return int(self.chain.node.call("eth_getBalance", [WALLET, "latest"]), 16)


@pytest.fixture
async def street(chain: Devnet) -> AsyncIterator[Street]:
    chain.fund(WALLET, 10**19)
    with chain.rival() as rival:
        yield Street(chain, rival.base_urls)


@pytest.mark.parametrize("name", NAMES)
async def test_an_honest_rivals_buy_and_sale_bring_what_it_says(street, name):
    leaf = street.chain.deployment.token("LEAF").address
    bought = (await street.answers(street.ask("buy", leaf, SPEND)))[name]
    assert isinstance(bought, RivalQuote) and not bought.rfq and bought.via and bought.spender is None
    street.send(bought.tx.to, bought.tx.data, bought.tx.value_wei)
    assert street.held(leaf) == bought.out_raw
    sold = (await street.answers(street.ask("sell", leaf, bought.out_raw)))[name]
    assert isinstance(sold, RivalQuote) and sold.spender is not None
    street.send(leaf, encode("approve(address,uint256)", sold.spender, bought.out_raw))
    before = street.ether()
    gas_wei = street.send(sold.tx.to, sold.tx.data)
    assert street.ether() - before + gas_wei == sold.out_raw and street.held(leaf) == 0


UNSEEN = {"promises_more", "sends_elsewhere", "pulls_other", "other_units", "expired"}
"""Lies that stand in nothing but what the transaction does: simulation sees them."""
BUYS = {
    "copycat": "wrong_token", "approves": "wrong_value", "spends_more": "wrong_value", "html": "html", "redirect": "redirect",
    "overloaded": "http_503", "slow": "slow", "huge": "too_long", "no_route": "no_route", "garbage": "bad_answer", "throttled": "rate_limited",
}  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
async def test_each_trick_costs_its_row_or_is_left_to_simulation(street, trick):
    ask = street.ask("buy", street.chain.deployment.annex.trick(trick).token.address, SPEND)
    for name, answer in (await street.answers(replace(ask, deadline_ms=1_500) if trick == "slow" else ask)).items():
        if trick == "makers_quote":
            assert isinstance(answer, RivalQuote) and answer.rfq
        elif trick in UNSEEN or (trick, name) == ("wrong_chain", "kyberswap"):
            assert isinstance(answer, RivalQuote) and not answer.rfq
        else:
            assert isinstance(answer, RivalSilent) and answer.reason == (BUYS | {"wrong_chain": "wrong_chain"})[trick], answer
