"""Sushi: a quote that names its sources, then the swap; a key is optional.

The budget is not published; ours is one order a second. An ordinary swap names no source, so a quote for the same size
is asked first and says which kinds of pools stand behind it. A partial fill is another size than asked for and refused. The
approval goes to the transaction's target, its swapper contract.
Source: docs.sushi.com, `GET /quote/v7/{chain}`, `GET /swap/v7/{chain}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_FRACTION, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

NO_ROUTE_WORDS = "no-route"
"""Part of the type of its problem document."""
KIND_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Sushi:
    """Sushi's aggregator."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = (Limit(2, 1_000),)
    name: ClassVar[str] = "sushi"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask what stands behind a quote, then for the swap. Raises: Silence."""
        await door.take(2)
        asked = {
            "tokenIn": ask.sold(NATIVE_E), "tokenOut": ask.bought(NATIVE_E), "amount": ask.amount, "maxSlippage": SLIPPAGE_FRACTION,
            "referrer": "referee",
        } | ({"apiKey": self.key} if self.key else {})  # fmt: skip
        quoted = _fine(await door.get(f"/quote/v7/{ask.chain_id}", {**asked, "visualize": "true"}), door)
        sources = claims.rows(maybe(quoted, "visualization", "liquidityProviders"))
        taker = {"sender": ask.wallet, "recipient": ask.wallet, "simulate": "false"}
        return _read(ask, _fine(await door.get(f"/swap/v7/{ask.chain_id}", {**asked, **taker}), door), sources)


def _read(ask: Ask, document: Any, sources: list[Any]) -> Offer:
    _token(document, "tokenFrom", ask.sold(NATIVE_E), ask)
    _token(document, "tokenTo", ask.bought(NATIVE_E), ask)
    claims.same_amount(part(document, "amountIn"), ask)
    tx = part(document, "tx")
    claims.same_wallet(part(tx, "from"), ask)
    value = maybe(tx, "value")
    return Offer(
        out_raw=claims.out_amount(part(document, "assumedAmountOut")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), 0 if value is None else value),
        spender=claims.spender(ask, part(tx, "to")),
        gas_estimate=claims.gas_claim(maybe(document, "gasSpent")) or claims.gas_claim(maybe(tx, "gas")),
        via=claims.names(sources),
        rfq=any_inventory(sources),
    )


def _token(document: Any, which: str, expected: str, ask: Ask) -> None:
    """A token is told as a place in the list of tokens, or in full."""
    told = part(document, which)
    token = part(document, "tokens", told) if type(told) is int and told >= 0 else told
    claims.same_token(part(token, "address"), expected)
    if expected == ask.token:
        claims.same_decimals(maybe(token, "decimals"), ask.token_decimals)


def _fine(answer: Answer, door: RivalDoor) -> Any:
    """The document of a whole route. Raises: Silence."""
    if answer.status != 200:
        kind = maybe(answer.document, "type")
        if isinstance(kind, str) and NO_ROUTE_WORDS in kind[:KIND_LENGTH_MAX]:
            raise Silence("no_route", "no route")
        raise Silence(f"http_{answer.status}", door.shown(maybe(answer.document, "detail") or maybe(answer.document, "message")))
    status = part(answer.document, "status")
    if status == "NoWay":
        raise Silence("no_route", "no way")
    if status == "Partial":
        raise Silence("wrong_amount", "only a part of the size")
    if status != "Success":
        raise Silence("bad_answer", "a status that is not documented")
    return answer.document
