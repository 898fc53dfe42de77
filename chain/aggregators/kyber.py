"""KyberSwap: a route by GET, its transaction by POST; no key.

Limit about 3 requests a second with a client id; a route goes stale within 5 to 10 seconds. Makers' quotes are excluded in
the question and tagged in the answer should they come all the same. The router alone is approved.
Source: docs.kyberswap.com, `GET /{chain}/api/v1/routes`, `POST /{chain}/api/v1/route/build`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_BPS, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

CLIENT = {"X-Client-Id": "referee"}
NO_ROUTE = {4008: "no route", 4010: "no eligible pool", 4011: "token not known"}
CODES = {4001: "bad query", 4002: "bad body", 4005: "amount too small", 4007: "amount too large", 4009: "amount past its bound", 4221: "no wrapped ETH known", 50301: "overloaded"}


@dataclass(frozen=True, slots=True)
class KyberSwap:
    """KyberSwap's aggregator on one chain."""

    base_url: str
    limits: tuple[Limit, ...] = (Limit(3, 1_000),)
    name: ClassVar[str] = "kyberswap"
    secrets: ClassVar[tuple[str, ...]] = ()

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a route, then for its transaction. Raises: Silence."""
        await door.take(2)
        asked = {
            "tokenIn": ask.sold(NATIVE_E), "tokenOut": ask.bought(NATIVE_E), "amountIn": ask.amount, "gasInclude": "true",
            "gasPrice": ask.gas_price_wei, "excludeRFQSources": "true",
        }  # fmt: skip
        routed = _data(await door.get("/api/v1/routes", asked, CLIENT), door)
        summary = part(routed, "routeSummary")
        claims.same_token(part(summary, "tokenIn"), ask.sold(NATIVE_E))
        claims.same_token(part(summary, "tokenOut"), ask.bought(NATIVE_E))
        claims.same_amount(part(summary, "amountIn"), ask)
        build = {
            "routeSummary": summary, "sender": ask.wallet, "recipient": ask.wallet, "slippageTolerance": SLIPPAGE_BPS,
            "deadline": ask.deadline_s, "source": "referee", "enableGasEstimation": False,
        }  # fmt: skip
        built = _data(await door.post("/api/v1/route/build", build, CLIENT), door)
        return _read(ask, summary, built)


def _read(ask: Ask, summary: Any, built: Any) -> Offer:
    claims.same_amount(part(built, "amountIn"), ask)
    router = part(built, "routerAddress")
    used = list(_sources(summary))
    return Offer(
        out_raw=claims.out_amount(part(built, "amountOut")),
        tx=claims.transaction(ask, router, part(built, "data"), part(built, "transactionValue")),
        spender=claims.spender(ask, router),
        gas_estimate=claims.gas_claim(claims.maybe(built, "gas")),
        via=claims.names(exchange for exchange, _ in used),
        rfq=any_inventory(name for pair in used for name in pair),
        deadline_s=ask.deadline_s,
    )


def _sources(summary: Any) -> Iterator[tuple[Any, Any]]:
    for path in claims.rows(part(summary, "route")):
        for swap in claims.rows(path):
            yield claims.maybe(swap, "exchange"), claims.maybe(swap, "poolType")


def _data(answer: Answer, door: RivalDoor) -> Any:
    """The envelope's data. Raises: Silence."""
    code = claims.maybe(answer.document, "code")
    known = code if type(code) is int else None
    if known in NO_ROUTE:
        raise Silence("no_route", NO_ROUTE[known])
    words = CODES.get(known) or door.shown(claims.maybe(answer.document, "message"))
    if answer.status != 200:
        raise Silence(f"http_{answer.status}", words)
    if known != 0:
        raise Silence("refused", words)
    return part(answer.document, "data")
