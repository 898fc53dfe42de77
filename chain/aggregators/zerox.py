"""0x: a firm quote with its transaction in one answer; a key is needed.

Limit 5 requests a second on the free plan. The allowance-holder form needs an ordinary approval only; the spender is the one it
names and may differ from the transaction's target. Its own makers (`0x_RFQ` and others) are among the fills and tagged.
Source: docs.0x.org, `GET /swap/allowance-holder/quote`, version 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_BPS, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import RivalDoor

NAMED = {
    "TOKEN_NOT_SUPPORTED": "token_not_supported",
    "BUY_TOKEN_NOT_AUTHORIZED_FOR_TRADE": "token_not_supported",
    "SELL_TOKEN_NOT_AUTHORIZED_FOR_TRADE": "token_not_supported",
}
"""Names of its refusals, in our words; `liquidityAvailable: false` is its own word for no route."""


@dataclass(frozen=True, slots=True)
class ZeroX:
    """0x's swap interface."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = (Limit(5, 1_000),)
    name: ClassVar[str] = "0x"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a firm quote. Raises: Silence."""
        if not self.key:
            raise Silence("no_key", "set REFEREE_KEY_0X")
        await door.take()
        asked = {
            "chainId": ask.chain_id, "sellToken": ask.sold(NATIVE_E), "buyToken": ask.bought(NATIVE_E), "sellAmount": ask.amount,
            "taker": ask.wallet, "slippageBps": SLIPPAGE_BPS, "gasPrice": ask.gas_price_wei,
        }  # fmt: skip
        answer = await door.get("/swap/allowance-holder/quote", asked, {"0x-api-key": self.key, "0x-version": "v2"})
        if answer.status != 200:
            raise Silence(NAMED.get(str(maybe(answer.document, "name")), f"http_{answer.status}"), door.shown(maybe(answer.document, "message") or maybe(answer.document, "name")))
        if part(answer.document, "liquidityAvailable") is False:
            raise Silence("no_route", "no liquidity")
        return _read(ask, answer.document)


def _read(ask: Ask, document: Any) -> Offer:
    if (chain_id := maybe(document, "chainId")) is not None:
        claims.same_chain(chain_id, ask)
    claims.same_token(part(document, "sellToken"), ask.sold(NATIVE_E))
    claims.same_token(part(document, "buyToken"), ask.bought(NATIVE_E))
    claims.same_amount(part(document, "sellAmount"), ask)
    tx = part(document, "transaction")
    if (sender := maybe(tx, "from")) is not None:
        claims.same_wallet(sender, ask)
    sources = [maybe(fill, "source") for fill in claims.rows(part(document, "route", "fills"))]
    return Offer(
        out_raw=claims.out_amount(part(document, "buyAmount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value")),
        spender=claims.spender(ask, maybe(document, "allowanceTarget") or maybe(document, "issues", "allowance", "spender")),
        gas_estimate=claims.gas_claim(maybe(tx, "gas")) or claims.gas_claim(maybe(document, "gas")),
        via=claims.names(sources),
        rfq=any_inventory(sources),
    )
