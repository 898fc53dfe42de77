"""OpenOcean: quote and transaction in one answer; no key.

The budget is 2 questions a second without a plan. Its plain amounts are in human units, so only the fields in base units are
used. Servers may meet a page instead of data. The approval goes to the transaction's target.
Source: apis.openocean.finance, `GET /v4/{chain}/swap`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_PERCENT, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

FINE = 200
NO_ROUTE_WORDS = ("no route", "no available liquidity", "insufficient liquidity", "no liquidity")


@dataclass(frozen=True, slots=True)
class OpenOcean:
    """OpenOcean's aggregator."""

    base_url: str
    limits: tuple[Limit, ...] = (Limit(2, 1_000),)
    name: ClassVar[str] = "openocean"
    secrets: ClassVar[tuple[str, ...]] = ()

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a swap. Raises: Silence."""
        await door.take()
        asked = {
            "inTokenAddress": ask.sold(NATIVE_E), "outTokenAddress": ask.bought(NATIVE_E), "amountDecimals": ask.amount,
            "gasPriceDecimals": ask.gas_price_wei, "slippage": SLIPPAGE_PERCENT, "account": ask.wallet,
        }  # fmt: skip
        answer = await door.get(f"/v4/{ask.chain_id}/swap", asked)
        code = maybe(answer.document, "code")
        if answer.status != 200 or code != FINE or type(code) is not int:
            raise _no(answer, door)
        return _read(ask, part(answer.document, "data"))


def _read(ask: Ask, told: Any) -> Offer:
    claims.same_chain(part(told, "chainId"), ask)
    _token(part(told, "inToken"), ask.sold(NATIVE_E), ask)
    _token(part(told, "outToken"), ask.bought(NATIVE_E), ask)
    claims.same_amount(part(told, "inAmount"), ask)
    if (account := maybe(told, "from")) is not None:
        claims.same_wallet(account, ask)
    sources = claims.found(maybe(told, "path"), "dex", "dexCode")
    return Offer(
        out_raw=claims.out_amount(part(told, "outAmount")),
        tx=claims.transaction(ask, part(told, "to"), part(told, "data"), part(told, "value")),
        spender=claims.spender(ask, part(told, "to")),
        gas_estimate=claims.gas_claim(maybe(told, "estimatedGas")),
        via=claims.names(sources),
        rfq=any_inventory(sources),
    )


def _token(told: Any, expected: str, ask: Ask) -> None:
    claims.same_token(part(told, "address"), expected)
    if expected == ask.token:
        claims.same_decimals(maybe(told, "decimals"), ask.token_decimals)


def _no(answer: Answer, door: RivalDoor) -> Silence:
    words = door.shown(maybe(answer.document, "error") or maybe(answer.document, "message"))
    if any(part in words.lower() for part in NO_ROUTE_WORDS):
        return Silence("no_route", words)
    return Silence("refused" if answer.status == 200 else f"http_{answer.status}", words)
