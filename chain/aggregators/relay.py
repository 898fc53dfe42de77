"""Relay: a swap on one chain as steps; a key is optional.

Limit 50 quotes a minute. The answer is a list of steps: an approval, whose calldata names the spender, and one transaction.
A deposit hands the money to a solver that pays from its own stock, and is tagged; a step to be signed is refused.
Source: docs.relay.link, `POST /quote/v2`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SELL, SLIPPAGE_BPS, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_0, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

NO_ROUTE = ("AMOUNT_TOO_LOW", "NO_SWAP_ROUTES_FOUND", "INSUFFICIENT_LIQUIDITY", "NO_QUOTES", "NO_INTERNAL_SWAP_ROUTES_FOUND")
APPROVE, DEPOSIT = "approve", "deposit"


@dataclass(frozen=True, slots=True)
class Relay:
    """Relay's quotes within one chain."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = (Limit(50, 60_000),)
    name: ClassVar[str] = "relay"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a quote with its steps. Raises: Silence."""
        await door.take()
        asked = {
            "user": ask.wallet, "recipient": ask.wallet, "originChainId": ask.chain_id, "destinationChainId": ask.chain_id,
            "originCurrency": ask.sold(NATIVE_0), "destinationCurrency": ask.bought(NATIVE_0), "amount": str(ask.amount),
            "tradeType": "EXACT_INPUT", "slippageTolerance": str(SLIPPAGE_BPS),
        }  # fmt: skip
        answer = await door.post("/quote/v2", asked, {"x-api-key": self.key} if self.key else None)
        if answer.status != 200:
            raise _no(answer, door)
        return _read(ask, answer.document)


def _read(ask: Ask, document: Any) -> Offer:
    details = part(document, "details")
    _currency(part(details, "currencyIn"), ask.sold(NATIVE_0), ask)
    _currency(part(details, "currencyOut"), ask.bought(NATIVE_0), ask)
    claims.same_amount(part(details, "currencyIn", "amount"), ask)
    approvals, (step, tx) = _steps(document)
    claims.same_chain(part(tx, "chainId"), ask)
    claims.same_wallet(part(tx, "from"), ask)
    routers = claims.found(maybe(details, "route"), "router")
    return Offer(
        out_raw=claims.out_amount(part(details, "currencyOut", "amount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value")),
        spender=_spender(ask, approvals, part(tx, "to")),
        gas_estimate=claims.gas_claim(maybe(tx, "gas")),
        via=claims.names(routers),
        rfq=step == DEPOSIT or any_inventory(routers),
    )


def _currency(told: Any, expected: str, ask: Ask) -> None:
    claims.same_chain(part(told, "currency", "chainId"), ask)
    claims.same_token(part(told, "currency", "address"), expected)
    if expected == ask.token:
        claims.same_decimals(maybe(told, "currency", "decimals"), ask.token_decimals)


def _steps(document: Any) -> tuple[list[Any], tuple[Any, Any]]:
    """The approvals, and the one transaction that swaps with the id of its step. Raises: Silence."""
    approvals, swaps = [], []
    for step in claims.rows(part(document, "steps")):
        if part(step, "kind") != "transaction":
            raise Silence("firm_quote", "a step of it is signed, not sent")
        for item in claims.rows(part(step, "items")):
            name, tx = part(step, "id"), part(item, "data")
            approvals.append(tx) if name == APPROVE else swaps.append((name, tx))
    if len(swaps) != 1 or len(approvals) > 1:
        raise Silence("bad_answer", f"{len(swaps)} transactions and {len(approvals)} approvals instead of one")
    return approvals, swaps[0]


def _spender(ask: Ask, approvals: list[Any], to: Any) -> str | None:
    if ask.side != SELL:
        return None
    if not approvals:
        return claims.spender(ask, to)
    claims.same_token(part(approvals[0], "to"), ask.token)
    return claims.approved(part(approvals[0], "data"), ask)


def _no(answer: Answer, door: RivalDoor) -> Silence:
    code = maybe(answer.document, "errorCode")
    if code in NO_ROUTE:
        return Silence("no_route", code.lower())
    return Silence(f"http_{answer.status}", door.shown(maybe(answer.document, "message")))
