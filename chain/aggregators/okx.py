"""OKX DEX: quote and transaction in one answer, signed questions; a key, its secret and its passphrase are needed.

The budget is about one request a second on the free plan. The approval goes to a contract of its own, asked for once and then remembered.
Each question is signed with HMAC-SHA256 over time, method and path with query. Failures come with HTTP 200 and a code.
Source: web3.okx.com, DEX API v6, `GET /api/v6/dex/aggregator/swap` and `/approve-transaction`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from chain.aggregators import claims
from chain.aggregators.ask import SELL, SLIPPAGE_PERCENT, Ask, Limit, Offer, Silence
from chain.aggregators.claims import NATIVE_E, maybe, part
from chain.aggregators.inventory import any_inventory
from chain.aggregators.web import RivalDoor, with_query

PATH = "/api/v6/dex/aggregator"
FINE, TOO_MANY = "0", "50011"
NO_ROUTE = {"82000": "insufficient liquidity", "82116": "no route"}
CODES = {"50103": "its key is missing", "50113": "its signature is not accepted", "50111": "its key is not accepted", "82105": "it does not know the chain"}


@dataclass(frozen=True, slots=True)
class OkxKey:
    """What OKX knows us by."""

    key: str = field(repr=False)
    secret: str = field(repr=False)
    passphrase: str = field(repr=False)
    project: str = field(default="", repr=False)

    def headers(self, target: str, now_ms: int) -> dict[str, str]:
        """Sign one GET of a path with its query."""
        stamp = timestamp(now_ms)
        sealed = hmac.new(self.secret.encode(), f"{stamp}GET{target}".encode(), hashlib.sha256).digest()
        project = {"OK-ACCESS-PROJECT": self.project} if self.project else {}
        return {
            "OK-ACCESS-KEY": self.key, "OK-ACCESS-SIGN": base64.b64encode(sealed).decode(), "OK-ACCESS-TIMESTAMP": stamp,
            "OK-ACCESS-PASSPHRASE": self.passphrase, **project,
        }  # fmt: skip


def timestamp(now_ms: int) -> str:
    """Write wall time as ISO 8601 with milliseconds, UTC."""
    return f"{datetime.fromtimestamp(now_ms // 1_000, UTC):%Y-%m-%dT%H:%M:%S}.{now_ms % 1_000:03d}Z"


@dataclass(frozen=True, slots=True)
class Okx:
    """OKX's aggregator."""

    base_url: str
    key: OkxKey
    limits: tuple[Limit, ...] = (Limit(2, 2_000),)
    name: ClassVar[str] = "okx"
    _spenders: dict[int, str] = field(default_factory=dict, repr=False)
    """By chain."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.key.key, self.key.secret, self.key.passphrase, self.key.project

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask for a swap, and on the first sale for who must be approved. Raises: Silence."""
        if not (self.key.key and self.key.secret and self.key.passphrase):
            raise Silence("no_key", "set REFEREE_KEY_OKX, REFEREE_KEY_OKX_SECRET and REFEREE_KEY_OKX_PASSPHRASE")
        spender = await self._spender(door, ask) if ask.side == SELL else None
        await door.take()
        asked = {
            "chainIndex": ask.chain_id, "amount": ask.amount, "fromTokenAddress": ask.sold(NATIVE_E), "toTokenAddress": ask.bought(NATIVE_E),
            "slippagePercent": SLIPPAGE_PERCENT, "userWalletAddress": ask.wallet, "swapReceiverAddress": ask.wallet, "swapMode": "exactIn",
        }  # fmt: skip
        return _read(ask, await self._asked(door, f"{PATH}/swap", asked), spender)

    async def _spender(self, door: RivalDoor, ask: Ask) -> str:
        if ask.chain_id not in self._spenders:
            await door.take()
            asked = {"chainIndex": ask.chain_id, "tokenContractAddress": ask.token, "approveAmount": ask.amount}
            told = await self._asked(door, f"{PATH}/approve-transaction", asked)
            named = claims.target(part(told, "dexContractAddress"), ask, "the spender")
            if claims.approved(part(told, "data"), ask) != named:
                raise Silence("bad_target", "the approval is for another spender than it names")
            self._spenders[ask.chain_id] = named
        return self._spenders[ask.chain_id]

    async def _asked(self, door: RivalDoor, path: str, query: Mapping[str, object]) -> Any:
        """The first row of the envelope's data. Raises: Silence."""
        target = with_query(path, query)
        answer = await door.get(target, headers=self.key.headers(target, door.now_ms()))
        code = maybe(answer.document, "code")
        known = code if isinstance(code, str) else ""
        if known == TOO_MANY:
            door.back_off(answer.wait_ms)
            raise Silence("rate_limited", "it asks for fewer questions")
        if known in NO_ROUTE:
            raise Silence("no_route", NO_ROUTE[known])
        if answer.status != 200 or known != FINE:
            words = CODES.get(known) or door.shown(maybe(answer.document, "msg"))
            raise Silence("refused" if answer.status == 200 else f"http_{answer.status}", words)
        return part(answer.document, "data", 0)


def _read(ask: Ask, told: Any, spender: str | None) -> Offer:
    result, tx = part(told, "routerResult"), part(told, "tx")
    claims.same_chain(part(result, "chainIndex"), ask)
    _token(part(result, "fromToken"), ask.sold(NATIVE_E), ask)
    _token(part(result, "toToken"), ask.bought(NATIVE_E), ask)
    claims.same_amount(part(result, "fromTokenAmount"), ask)
    claims.same_wallet(part(tx, "from"), ask)
    sources = claims.found(maybe(result, "dexRouterList"), "dexName")
    return Offer(
        out_raw=claims.out_amount(part(result, "toTokenAmount")),
        tx=claims.transaction(ask, part(tx, "to"), part(tx, "data"), part(tx, "value")),
        spender=spender,
        gas_estimate=claims.gas_claim(maybe(result, "estimateGasFee")) or claims.gas_claim(maybe(tx, "gas")),
        via=claims.names(sources),
        rfq=any_inventory(sources),
    )


def _token(told: Any, expected: str, ask: Ask) -> None:
    claims.same_token(part(told, "tokenContractAddress"), expected)
    if expected == ask.token:
        claims.same_decimals(part(told, "decimal"), ask.token_decimals)
