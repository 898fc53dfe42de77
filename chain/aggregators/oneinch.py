"""1inch: quote and transaction in one answer; a key is needed.

Limit 1 request a second on the free plan. The check of balances on its side is switched off: the paper wallet has none there. The
approval goes to the transaction's target, its router. Makers and limit orders are among its protocols and tagged.
Source: business.1inch.com, `GET /swap/v6.1/{chain}/swap`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_PERCENT, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

NO_ROUTE_WORDS = "insufficient liquidity"


@dataclass(frozen=True, slots=True)
class OneInch:
    """1inch's classic swaps."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = (Limit(1, 1_000),)
    name: ClassVar[str] = "1inch"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a swap. Raises: Silence."""
        if not self.key:
            raise Silence("no_key", "set REFEREE_KEY_1INCH")
        await door.take()
        asked = {
            "src": ask.sold(NATIVE_E), "dst": ask.bought(NATIVE_E), "amount": ask.amount, "from": ask.wallet, "origin": ask.wallet, "receiver": ask.wallet,
            "slippage": SLIPPAGE_PERCENT, "disableEstimate": "true", "allowPartialFill": "false", "gasPrice": ask.gas_price_wei,
            "includeTokensInfo": "true", "includeProtocols": "true", "includeGas": "true",
        }  # fmt: skip
        answer = await door.get(f"/swap/v6.1/{ask.chain_id}/swap", asked, {"Authorization": f"Bearer {self.key}"})
        if answer.status != 200:
            raise _no(answer, door)
        return _read(ask, answer.document)


def _read(ask: Ask, document: Any) -> Offer:
    _token(part(document, "srcToken"), ask.sold(NATIVE_E), ask)
    _token(part(document, "dstToken"), ask.bought(NATIVE_E), ask)
    for name in ("srcAmount", "fromAmount"):
        if (amount := maybe(document, name)) is not None:
            claims.same_amount(amount, ask)
    tx = part(document, "tx")
    claims.same_wallet(part(tx, "from"), ask)
    protocols = claims.found(maybe(document, "protocols"), "name")
    return Offer(
        out_raw=claims.out_amount(part(document, "dstAmount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value")),
        spender=claims.spender(ask, part(tx, "to")),
        gas_estimate=claims.gas_claim(maybe(document, "gas")) or claims.gas_claim(maybe(tx, "gas")),
        via=claims.names(protocols),
        rfq=any_inventory(protocols),
    )


def _token(told: Any, expected: str, ask: Ask) -> None:
    claims.same_token(part(told, "address"), expected)
    if expected == ask.token:
        claims.same_decimals(part(told, "decimals"), ask.token_decimals)


def _no(answer: Answer, door: RivalDoor) -> Silence:
    words = door.shown(maybe(answer.document, "description"))
    if answer.status == 400 and NO_ROUTE_WORDS in words.lower():
        return Silence("no_route", words)
    return Silence(f"http_{answer.status}", words)
