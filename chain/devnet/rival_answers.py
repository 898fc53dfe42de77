"""The rival's answers: quotes and transactions in the documents of KyberSwap and of 0x, honest or tricked.

Amounts are decimal text in both. A refusal is a `Failure` with the status and document of its interface.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from chain.address import is_address
from chain.devnet.assets import ETH_USD, USD
from chain.devnet.node import BASE_FEE_WEI, Line
from chain.devnet.rival_calls import NATIVE_E, Order, swap_data
from chain.devnet.rival_routes import Atlas, Hop, Quote
from chain.devnet.tricks import FAR_CHAIN, FAR_ROUTER, MAKER, approval, told_raw
from chain.devnet.venues import NATIVE

BPS = 10_000
SLIPPAGE_BPS, SLIPPAGE_BPS_MAX = 100, 2_000
AMOUNT_MAX = 2**128
FAR_FUTURE_S = 2**40
EXPIRED_S = 1
MAKER_FILL = "0x_RFQ"


class Failure(Exception):
    """A refusal in the words of the interface."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        super().__init__(status)
        self.status, self.document = status, document


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to swap, after checks; native ETH as `NATIVE_E`."""

    sold: str
    bought: str
    amount_raw: int
    trick: str

    def quote(self, atlas: Atlas, line: Line) -> Quote | None:
        """The best route to what is really bought, which a trick may change."""
        if self.trick == "no_route":
            return None
        return atlas.best(line, form(really(atlas, self.trick, self.sold)), form(really(atlas, self.trick, self.bought)), self.amount_raw)


def form(token: str) -> str:
    """The chain's form of a token: native ETH is address zero."""
    return NATIVE if token == NATIVE_E else token


def really(atlas: Atlas, trick: str, token: str) -> str:
    """The token that is quoted for one that was asked about."""
    annex = atlas.deployment.annex
    copied = trick == "copycat" and annex.copycat and token == annex.trick("copycat").token.address
    return annex.copycat.token.address if copied else token


def amount_of(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < AMOUNT_MAX else 0


def data_of(atlas: Atlas, quote: Quote, asked: Asked, least_raw: int, recipient: str, deadline_s: int) -> str:
    """Calldata for a quote, with its trick."""
    stranger, usdg = atlas.deployment.cast.stranger, atlas.deployment.at["usdg"]
    if asked.trick == "approves":
        return approval(stranger)
    sold, bought = (really(atlas, asked.trick, token) for token in (asked.sold, asked.bought))
    order = Order(
        sold=usdg if asked.trick == "pulls_other" else sold,
        bought=usdg if asked.trick == "pulls_other" else bought,
        amount_raw=asked.amount_raw * (2 if asked.trick == "spends_more" else 1),
        least_raw=0 if asked.trick in ("promises_more", "other_units", "pulls_other") else least_raw,
        recipient=stranger if asked.trick in ("sends_elsewhere", "pulls_other") else recipient,
        deadline_s=EXPIRED_S if asked.trick == "expired" else deadline_s,
    )
    if asked.trick == "pulls_other":
        return swap_data(atlas, Quote((), (asked.amount_raw, asked.amount_raw), quote.block), order)
    return swap_data(atlas, quote, order)


def target_of(atlas: Atlas, asked: Asked) -> str:
    """Where the transaction goes; an approval goes to the token itself."""
    if asked.trick == "approves":
        return asked.sold if asked.sold != NATIVE_E else atlas.deployment.at["usdg"]
    return FAR_ROUTER if asked.trick == "wrong_chain" else atlas.deployment.annex.rival


def value_of(asked: Asked) -> int:
    if asked.sold != NATIVE_E or asked.trick == "approves":
        return 0
    return asked.amount_raw * (2 if asked.trick == "spends_more" else 1)


def least_of(out_raw: int, slippage_bps: int) -> int:
    return out_raw * (BPS - slippage_bps) // BPS


def dollars(wei: int) -> str:
    """Wei as text in dollars, at the opening price; nobody trades on it."""
    cents = wei * (ETH_USD // USD) // 10**16
    return f"{cents // 100}.{cents % 100:02d}"


# --- KyberSwap ----------------------------------------------------------------------------------------------------------


def kyber_routes(atlas: Atlas, line: Line, trick: str, query: Mapping[str, str]) -> dict[str, Any]:
    """`GET /api/v1/routes`. Raises: Failure."""
    asked = kyber_asked(atlas, trick, query.get("tokenIn", ""), query.get("tokenOut", ""), query.get("amountIn", ""))
    quote = asked.quote(atlas, line)
    if quote is None:
        raise Failure(400, {"code": 4008, "message": "route not found", "details": None, "requestId": "devnet"})
    summary = {
        "tokenIn": asked.sold,
        "amountIn": str(asked.amount_raw),
        "amountInUsd": dollars(0),
        "tokenOut": really(atlas, trick, asked.bought),
        "amountOut": str(told_raw(trick, quote.out_raw)),
        "amountOutUsd": dollars(0),
        "gas": str(quote.gas),
        "gasPrice": query.get("gasPrice") or str(BASE_FEE_WEI),
        "gasUsd": dollars(quote.gas * BASE_FEE_WEI),
        "l1FeeUsd": "0",
        "extraFee": {"feeAmount": "0", "chargeFeeBy": "", "isInBps": False, "feeReceiver": ""},
        "route": [[kyber_swap(hop, quote.amounts[index], quote.amounts[index + 1], trick) for index, hop in enumerate(quote.hops)]],
        "routeID": "devnet",
        "timestamp": quote.block,
    }
    summary["checksum"] = checksum(summary)
    return {
        "code": 0,
        "message": "successfully",
        "data": {"routeSummary": summary, "routerAddress": target_of(atlas, asked)},
        "requestId": "devnet",
    }


def kyber_asked(atlas: Atlas, trick: str, sold: str, bought: str, amount: str) -> Asked:
    """Check what was asked. Raises: Failure."""
    sold, bought, amount_raw = sold.lower(), bought.lower(), amount_of(amount)
    if not amount_raw or not sold or not bought:
        raise Failure(400, {"code": 4001, "message": "unable to bind query parameters", "requestId": "devnet"})
    for token in (sold, bought):
        if atlas.node_of(form(token)) not in atlas.known:
            raise Failure(400, {"code": 4011, "message": f"token not found: {token}", "requestId": "devnet"})
    return Asked(sold=sold, bought=bought, amount_raw=amount_raw, trick=trick)


def kyber_swap(hop: Hop, given_raw: int, out_raw: int, trick: str) -> dict[str, Any]:
    maker = trick == "makers_quote"
    return {
        "pool": hop.place.key,
        "tokenIn": hop.token_in,
        "tokenOut": hop.token_out,
        "swapAmount": str(given_raw),
        "amountOut": str(out_raw),
        "exchange": MAKER if maker else hop.exchange,
        "poolType": MAKER if maker else hop.kind,
        "poolExtra": None,
        "extra": None,
    }


def checksum(summary: Mapping[str, Any]) -> str:
    """What shows that a summary came back as it was given."""
    kept = {name: value for name, value in summary.items() if name != "checksum"}
    return str(int.from_bytes(hashlib.sha256(b"rival" + orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).digest()[:8], "big"))


def kyber_build(atlas: Atlas, line: Line, trick: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """`POST /api/v1/route/build`. Raises: Failure."""
    summary, recipient, slippage_bps = body["routeSummary"], body.get("recipient"), body.get("slippageTolerance", 0)
    deadline_s = body.get("deadline", FAR_FUTURE_S)
    whole = isinstance(slippage_bps, int) and 0 <= slippage_bps <= SLIPPAGE_BPS_MAX and isinstance(deadline_s, int) and deadline_s > 0
    if not isinstance(recipient, str) or not is_address(recipient.lower()) or not body.get("sender") or not whole:
        raise Failure(400, {"code": 4002, "message": "invalid body", "requestId": "devnet"})
    if summary.get("checksum") != checksum(summary):
        raise Failure(400, {"code": 4002, "message": "checksum of the route does not match", "requestId": "devnet"})
    hops = [atlas.direct(atlas.pools[swap["pool"]], swap["tokenIn"]) for swap in summary["route"][0]]
    sold = summary["tokenIn"]
    bought = atlas.deployment.annex.trick("copycat").token.address if trick == "copycat" and sold == NATIVE_E else summary["tokenOut"]
    asked = Asked(sold=sold, bought=bought, amount_raw=int(summary["amountIn"]), trick=trick)
    quote = Quote(tuple(hops), (asked.amount_raw, int(summary["route"][0][-1]["amountOut"])), summary["timestamp"])
    data = data_of(atlas, quote, asked, least_of(quote.out_raw, slippage_bps), recipient.lower(), deadline_s)
    return {
        "code": 0,
        "message": "successfully",
        "data": {
            "amountIn": summary["amountIn"],
            "amountInUsd": summary["amountInUsd"],
            "amountOut": summary["amountOut"],
            "amountOutUsd": summary["amountOutUsd"],
            "gas": summary["gas"],
            "gasUsd": summary["gasUsd"],
            "additionalCostUsd": "0",
            "additionalCostMessage": "",
            "outputChange": {"amount": "0", "percent": 0, "level": 0},
            "data": data,
            "routerAddress": target_of(atlas, asked),
            "transactionValue": str(value_of(asked)),
        },
        "requestId": "devnet",
    }


# --- 0x -----------------------------------------------------------------------------------------------------------------


def zerox_quote(atlas: Atlas, line: Line, trick: str, query: Mapping[str, str], zid: str, *, firm: bool) -> dict[str, Any]:
    """`GET /swap/allowance-holder/quote`, or `/price` without a transaction. Raises: Failure."""
    asked, taker, slippage_bps = zerox_asked(atlas, trick, query, zid, firm=firm)
    quote = asked.quote(atlas, line)
    if quote is None:
        return {"liquidityAvailable": False, "zid": zid}
    told, price_wei = told_raw(trick, quote.out_raw), query.get("gasPrice") or str(BASE_FEE_WEI)
    target = target_of(atlas, asked)
    document: dict[str, Any] = {
        "liquidityAvailable": True,
        "blockNumber": str(quote.block),
        "buyAmount": str(told),
        "buyToken": really(atlas, trick, asked.bought),
        "fees": {"integratorFee": None, "zeroExFee": None, "gasFee": None},
        "gas": str(quote.gas),
        "gasPrice": price_wei,
        "issues": {
            "allowance": None if asked.sold == NATIVE_E else {"actual": "0", "spender": target},
            "balance": None,
            "simulationIncomplete": False,
            "invalidSourcesPassed": [],
        },
        "minBuyAmount": str(least_of(told, slippage_bps)),
        "route": zerox_route(quote, trick),
        "sellAmount": str(asked.amount_raw),
        "sellToken": asked.sold,
        "tokenMetadata": {side: {"buyTaxBps": "0", "sellTaxBps": "0", "transferTaxBps": "0"} for side in ("buyToken", "sellToken")},
        "totalNetworkFee": str(quote.gas * int(price_wei)),
        "zid": zid,
    } | ({} if asked.sold == NATIVE_E else {"allowanceTarget": target})
    if trick == "wrong_chain":
        document["chainId"] = FAR_CHAIN
    if firm:
        data = data_of(atlas, quote, asked, least_of(quote.out_raw, slippage_bps), taker, FAR_FUTURE_S)
        document["transaction"] = {"to": target, "data": data, "gas": str(quote.gas), "gasPrice": price_wei, "value": str(value_of(asked))}
    return document


def zerox_asked(atlas: Atlas, trick: str, query: Mapping[str, str], zid: str, *, firm: bool) -> tuple[Asked, str, int]:
    """Check what was asked; with the taker and the slippage. Raises: Failure."""
    sold, bought, taker = (query.get(name, "").lower() for name in ("sellToken", "buyToken", "taker"))
    slippage = query.get("slippageBps", str(SLIPPAGE_BPS))
    amount_raw = amount_of(query.get("sellAmount", ""))
    wrong = [
        name
        for name, right in (
            ("sellAmount", amount_raw > 0),
            ("taker", is_address(taker) or not firm),
            ("slippageBps", slippage.isascii() and slippage.isdigit() and int(slippage) <= BPS),
            ("gasPrice", query.get("gasPrice", "0").isdigit()),
        )
        if not right
    ]
    if wrong:
        details = [{"field": name, "reason": f"Invalid {name}"} for name in wrong]
        raise Failure(400, {"name": "INPUT_INVALID", "message": "The input is invalid", "data": {"zid": zid, "details": details}})
    for token in (sold, bought):
        if atlas.node_of(form(token)) not in atlas.known:
            raise Failure(400, {"name": "TOKEN_NOT_SUPPORTED", "message": f"Token {token} is not supported", "data": {"zid": zid}})
    return Asked(sold=sold, bought=bought, amount_raw=amount_raw, trick=trick), taker, int(slippage)


def zerox_route(quote: Quote, trick: str) -> dict[str, Any]:
    tokens = dict.fromkeys(token for hop in quote.hops for token in (hop.token_in, hop.token_out))
    return {
        "fills": [
            {
                "from": hop.token_in,
                "to": hop.token_out,
                "source": MAKER_FILL if trick == "makers_quote" else hop.exchange,
                "proportionBps": str(BPS),
            }
            for hop in quote.hops
        ],
        "tokens": [{"address": token, "symbol": ""} for token in tokens],
    }
