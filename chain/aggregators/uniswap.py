"""Uniswap's Trading API: a quote, then its transaction; a key is needed.

The budget is not published; ours is one order a second. Only its pools are asked for, and anything but a classic route (a
Dutch or priority order waits for a filler's signature) is refused. With Permit2 switched off an ordinary approval of the
transaction's target, a proxy before the router, is all a sale needs.
Source: api-docs.uniswap.org, `POST /quote`, `POST /swap`, and its guide to swapping without Permit2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_PERCENT, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_0, maybe, part
from chain.aggregators.web import Answer, RivalDoor

ROUTER_VERSION = "2.1.1"
CLASSIC = "CLASSIC"


@dataclass(frozen=True, slots=True)
class Uniswap:
    """Uniswap's own router, as a service."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = (Limit(2, 1_000),)
    name: ClassVar[str] = "uniswap"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a quote, then for its transaction. Raises: Silence."""
        if not self.key:
            raise Silence("no_key", "set REFEREE_KEY_UNISWAP")
        await door.take(2)
        headers = {"x-api-key": self.key, "x-universal-router-version": ROUTER_VERSION, "x-permit2-disabled": "true"}
        asked = {
            "type": "EXACT_INPUT", "amount": str(ask.amount), "tokenIn": ask.sold(NATIVE_0), "tokenOut": ask.bought(NATIVE_0),
            "tokenInChainId": ask.chain_id, "tokenOutChainId": ask.chain_id, "swapper": ask.wallet, "slippageTolerance": SLIPPAGE_PERCENT,
            "protocols": ["V2", "V3", "V4"], "hooksOptions": "V4_HOOKS_INCLUSIVE", "routingPreference": "BEST_PRICE",
        }  # fmt: skip
        quoted = _fine(await door.post("/quote", asked, headers), door)
        _check(ask, quoted)
        quote = part(quoted, "quote")
        built = _fine(await door.post("/swap", {"quote": quote, "simulateTransaction": False, "deadline": ask.deadline_s}, headers), door)
        return _read(ask, quote, part(built, "swap"))


def _check(ask: Ask, quoted: Any) -> None:
    if part(quoted, "routing") != CLASSIC:
        raise Silence("firm_quote", "not a route through pools")
    if maybe(quoted, "permitData") is not None:
        raise Silence("firm_quote", "it waits for a signature")
    quote = part(quoted, "quote")
    claims.same_chain(part(quote, "chainId"), ask)
    claims.same_token(part(quote, "input", "token"), ask.sold(NATIVE_0))
    claims.same_token(part(quote, "output", "token"), ask.bought(NATIVE_0))
    claims.same_amount(part(quote, "input", "amount"), ask)
    claims.same_wallet(part(quote, "swapper"), ask)


def _read(ask: Ask, quote: Any, tx: Any) -> Offer:
    claims.same_chain(part(tx, "chainId"), ask)
    claims.same_wallet(part(tx, "from"), ask)
    pools = claims.found(maybe(quote, "route"), "type")
    return Offer(
        out_raw=claims.out_amount(part(quote, "output", "amount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value"), hexed=True),
        spender=claims.spender(ask, part(tx, "to")),
        gas_estimate=claims.gas_claim(maybe(quote, "gasUseEstimate")),
        via=claims.names(pools),
        rfq=False,
        deadline_s=ask.deadline_s,
    )


def _fine(answer: Answer, door: RivalDoor) -> Any:
    """The document. Raises: Silence."""
    if answer.status == 200:
        return answer.document
    if answer.status == 404 and maybe(answer.document, "errorCode") is not None:
        raise Silence("no_route", "no quotes available")
    raise Silence(f"http_{answer.status}", door.shown(maybe(answer.document, "detail")))
