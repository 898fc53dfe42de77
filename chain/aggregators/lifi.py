"""LI.FI: quote and transaction in one answer; a key raises the budget.

Limit 75 quotes in 2 hours without a key, about 100 a minute averaged over 2 hours with one. Tokens are asked for in their
mixed-case form. The approval goes to the address it names. Its tools may be makers: they are tagged.
Source: docs.li.fi, `GET /v1/quote`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.address import checksummed
from chain.aggregators import claims
from chain.aggregators.ask import SLIPPAGE_FRACTION, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_0, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import Answer, RivalDoor

TWO_HOURS_MS = 7_200_000
KEYLESS = (Limit(75, TWO_HOURS_MS),)
KEYED = (Limit(100, 60_000), Limit(12_000, TWO_HOURS_MS))
NO_QUOTE, TOO_MANY = 1002, 1005
CODES = {1001: "failed to build the transaction", 1003: "not found", 1011: "it does not accept the question"}


@dataclass(frozen=True, slots=True)
class LiFi:
    """LI.FI's router of routers."""

    base_url: str
    key: str = field(default="", repr=False)
    limits: tuple[Limit, ...] = KEYLESS
    name: ClassVar[str] = "lifi"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a quote. Raises: Silence."""
        await door.take()
        asked = {
            "fromChain": ask.chain_id, "toChain": ask.chain_id, "fromToken": checksummed(ask.sold(NATIVE_0)), "toToken": checksummed(ask.bought(NATIVE_0)),
            "fromAmount": ask.amount, "fromAddress": checksummed(ask.wallet), "toAddress": checksummed(ask.wallet), "slippage": SLIPPAGE_FRACTION,
            "order": "CHEAPEST", "skipSimulation": "true",
        }  # fmt: skip
        answer = await door.get("/v1/quote", asked, {"x-lifi-api-key": self.key} if self.key else None)
        if answer.status != 200:
            raise _no(answer, door)
        return _read(ask, answer.document)


def _read(ask: Ask, document: Any) -> Offer:
    action, estimate, tx = part(document, "action"), part(document, "estimate"), part(document, "transactionRequest")
    for chain in (part(action, "fromChainId"), part(action, "toChainId"), part(tx, "chainId")):
        claims.same_chain(chain, ask)
    _token(part(action, "fromToken"), ask.sold(NATIVE_0), ask)
    _token(part(action, "toToken"), ask.bought(NATIVE_0), ask)
    for amount in (part(action, "fromAmount"), part(estimate, "fromAmount")):
        claims.same_amount(amount, ask)
    for wallet in (part(action, "fromAddress"), part(action, "toAddress"), part(tx, "from")):
        claims.same_wallet(wallet, ask)
    tools = [part(document, "tool"), *(maybe(step, "tool") for step in claims.rows(maybe(document, "includedSteps")))]
    return Offer(
        out_raw=claims.out_amount(part(estimate, "toAmount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value"), hexed=True),
        spender=claims.spender(ask, maybe(estimate, "approvalAddress")),
        gas_estimate=claims.gas_claim(maybe(estimate, "gasCosts", 0, "estimate")) or claims.gas_claim(maybe(tx, "gasLimit"), hexed=True),
        via=claims.names(tools),
        rfq=any_inventory(tools),
    )


def _token(told: Any, expected: str, ask: Ask) -> None:
    claims.same_token(part(told, "address"), expected)
    claims.same_chain(part(told, "chainId"), ask)
    if expected == ask.token:
        claims.same_decimals(part(told, "decimals"), ask.token_decimals)


def _no(answer: Answer, door: RivalDoor) -> Silence:
    code = maybe(answer.document, "code")
    if code == TOO_MANY:
        door.back_off(answer.wait_ms)
        return Silence("rate_limited", "it asks for fewer questions")
    if code == NO_QUOTE:
        return Silence("no_route", "no quote")
    words = CODES.get(code) if type(code) is int else None
    return Silence(f"http_{answer.status}", words or door.shown(maybe(answer.document, "message")))
