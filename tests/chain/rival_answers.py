"""Rivals' answers in their documented shapes, and where each fact stands in them, so that a test can turn one into a lie."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chain.address import checksummed
from chain.aggregators.ask import Ask

CHAIN_ID, DECIMALS, GAS_PRICE = 4663, 9, 21_000_000
TOKEN, WETH = "0x" + "a1" * 20, "0x0bd7d308f8e1639fab988df18a8011f41eacad73"
COPYCAT = "0x" + "a2" * 20
"""Another token of the same symbol."""
WALLET, STRANGER = "0x" + "b1" * 20, "0x" + "b2" * 20
ROUTER, HOLDER = "0x" + "c1" * 20, "0x" + "c2" * 20
NATIVE_E, NATIVE_0 = "0x" + "Ee" * 20, "0x" + "00" * 20
OUT, GAS = 123_456_789_012_345_678, 289_123
CALLDATA = "0xe21fd0e9" + "00" * 68
NOW_S = 1_790_000_000

BUY = Ask(
    side="buy", token=TOKEN, amount=50_000_000_000_000_000, wallet=WALLET, token_decimals=DECIMALS, chain_id=CHAIN_ID, weth=WETH,
    gas_price_wei=GAS_PRICE, now_s=NOW_S, deadline_ms=5_000,
)  # fmt: skip
SELL = replace(BUY, side="sell", amount=7_000_000_001)
ASKS = {"buy": BUY, "sell": SELL}

KEYS = {
    "0x": "zerox-key-5f3a9c1e7b", "uniswap": "uni-key-77ab10cd92", "1inch": "oneinch-key-4e0f8812aa", "okx": "okx-key-91c2d3e4f5",
    "okx_secret": "okx-secret-0a1b2c3d4e5f", "okx_passphrase": "Pass-phrase-of-okx-66", "okx_project": "okx-project-31415926",
    "lifi": "lifi-key-deadbeef4242", "relay": "relay-key-cafe77001133", "sushi": "sushi-key-beef99887766",
}  # fmt: skip

Path = tuple[str | int, ...]
Places = Mapping[str, tuple[Path, ...]]


@dataclass(frozen=True)
class Shape:
    """One rival's interface: its answers by path, and the places of facts as (path of the request, keys inside)."""

    name: str
    answers: Mapping[str, Any]
    places: Places
    via: tuple[str, ...]
    sale_places: Places

    def facts(self, side: str) -> Places:
        """Where each fact stands in answers for a side."""
        return {**self.places, **(self.sale_places if side == "sell" else {})}


def changed(answers: Mapping[str, Any], place: Path, value: Any) -> dict[str, Any]:
    """The same answers with another value in one place."""
    copied = copy.deepcopy(dict(answers))
    node: Any = copied
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value
    return copied


def without(answers: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """The same answers without one place."""
    copied = copy.deepcopy(dict(answers))
    node: Any = copied
    for name in place[:-1]:
        node = node[name]
    del node[place[-1]]
    return copied


def every_place(document: Any, at: Path = ()) -> list[Path]:
    """Every place in a document."""
    inside = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return [place for name, node in inside for place in ((*at, name), *every_place(node, (*at, name)))]


def shape(name: str, ask: Ask) -> Shape:
    """One rival's good answer to an ask."""
    return {
        "kyberswap": _kyber, "lifi": _lifi, "sushi": _sushi, "relay": _relay, "openocean": _openocean, "0x": _zerox,
        "uniswap": _uniswap, "1inch": _oneinch, "okx": _okx,
    }[name](ask)  # fmt: skip


NAMES = ("kyberswap", "lifi", "sushi", "relay", "openocean", "0x", "uniswap", "1inch", "okx")


def _in(ask: Ask, native: str) -> tuple[str, str]:
    return (native, checksummed(ask.token)) if ask.side == "buy" else (checksummed(ask.token), native)


def _value(ask: Ask) -> int:
    return ask.amount if ask.side == "buy" else 0


def _token(address: str, **more: Any) -> dict[str, Any]:
    decimals = 18 if address in (NATIVE_E, NATIVE_0) else DECIMALS
    return {"address": address, "symbol": "LEAF", "name": "Leaf", "decimals": decimals, **more}


def _traded(ask: Ask, sold: Path, bought: Path) -> Path:
    """Of two places, the token's."""
    return bought if ask.side == "buy" else sold


def _kyber(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    routes, build = "/api/v1/routes", "/api/v1/route/build"
    hop = {
        "pool": "0x" + "d1" * 20, "tokenIn": sold, "tokenOut": bought, "swapAmount": str(ask.amount), "amountOut": str(OUT), "exchange": "uniswap-v4",
        "poolType": "uniswap-v4", "poolExtra": {"fee": 3000}, "extra": None,
    }  # fmt: skip
    summary = {
        "tokenIn": sold, "amountIn": str(ask.amount), "amountInUsd": "125.31", "tokenOut": bought, "amountOut": str(OUT), "amountOutUsd": "124.9",
        "gas": str(GAS), "gasPrice": str(GAS_PRICE), "gasUsd": "0.07", "l1FeeUsd": "0.001", "extraFee": {"feeAmount": "", "chargeFeeBy": ""},
        "route": [[hop], [{**hop, "exchange": "pancake-v3", "poolType": "pancake-v3"}]], "routeID": "r1", "checksum": "1234567890", "timestamp": NOW_S,
    }  # fmt: skip
    built = {
        "amountIn": str(ask.amount), "amountInUsd": "125.31", "amountOut": str(OUT), "amountOutUsd": "124.9", "gas": str(GAS), "gasUsd": "0.07",
        "additionalCostUsd": "0.001", "additionalCostMessage": "L1 fee", "outputChange": {"amount": "0", "percent": 0, "level": 0},
        "data": CALLDATA, "routerAddress": checksummed(ROUTER), "transactionValue": str(_value(ask)),
    }  # fmt: skip
    answers = {
        routes: {"code": 0, "message": "successfully", "data": {"routeSummary": summary, "routerAddress": checksummed(ROUTER)}, "requestId": "q1"},
        build: {"code": 0, "message": "successfully", "data": built, "requestId": "q2"},
    }
    at = (routes, "data", "routeSummary")
    places = {
        "out": ((build, "data", "amountOut"),), "amount": ((*at, "amountIn"), (build, "data", "amountIn")), "sold": ((*at, "tokenIn"),),
        "bought": ((*at, "tokenOut"),), "to": ((build, "data", "routerAddress"),), "data": ((build, "data", "data"),),
        "value": ((build, "data", "transactionValue"),), "source": ((*at, "route", 0, 0, "exchange"), (*at, "route", 1, 0, "poolType")),
    }  # fmt: skip
    return Shape("kyberswap", answers, places, ("uniswap-v4", "pancake-v3"), {"spender": ((build, "data", "routerAddress"),)})


def _lifi(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_0)
    quote = "/v1/quote"
    action = {
        "fromChainId": CHAIN_ID, "toChainId": CHAIN_ID, "fromToken": _token(sold, chainId=CHAIN_ID, priceUSD="2500.1"),
        "toToken": _token(bought, chainId=CHAIN_ID), "fromAmount": str(ask.amount), "slippage": 0.03, "fromAddress": checksummed(WALLET),
        "toAddress": checksummed(WALLET),
    }  # fmt: skip
    estimate = {
        "tool": "fly", "fromAmount": str(ask.amount), "toAmount": str(OUT), "toAmountMin": str(OUT * 97 // 100), "approvalAddress": checksummed(HOLDER),
        "executionDuration": 1, "gasCosts": [{"type": "SEND", "estimate": str(GAS), "limit": str(GAS * 2), "amount": "1", "price": "21000000"}],
        "feeCosts": [], "fromAmountUSD": "125.3",
    }  # fmt: skip
    answers = {
        quote: {
            "id": "l1", "type": "lifi", "tool": "fly", "toolDetails": {"key": "fly", "name": "Fly"}, "action": action, "estimate": estimate,
            "includedSteps": [{"type": "protocol", "tool": "feeCollection"}, {"type": "swap", "tool": "fly"}],
            "transactionRequest": {
                "to": checksummed(ROUTER), "data": CALLDATA, "value": hex(_value(ask)), "gasLimit": hex(GAS * 2), "gasPrice": hex(GAS_PRICE),
                "chainId": CHAIN_ID, "from": checksummed(WALLET),
            },
        }
    }  # fmt: skip
    tx, traded = (quote, "transactionRequest"), _traded(ask, ("fromToken",), ("toToken",))
    places = {
        "out": ((quote, "estimate", "toAmount"),), "amount": ((quote, "action", "fromAmount"), (quote, "estimate", "fromAmount")),
        "sold": ((quote, "action", "fromToken", "address"),), "bought": ((quote, "action", "toToken", "address"),), "to": ((*tx, "to"),),
        "data": ((*tx, "data"),), "value": ((*tx, "value"),), "wallet": ((*tx, "from"), (quote, "action", "fromAddress"), (quote, "action", "toAddress")),
        "chain": ((*tx, "chainId"), (quote, "action", "fromChainId"), (quote, "action", "toChainId"), (quote, "action", "toToken", "chainId")),
        "decimals": ((quote, "action", *traded, "decimals"),), "source": ((quote, "tool"), (quote, "includedSteps", 1, "tool")),
    }  # fmt: skip
    return Shape("lifi", answers, places, ("fly", "feeCollection"), {"spender": ((quote, "estimate", "approvalAddress"),)})


def _sushi(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    quote, swap = f"/quote/v7/{CHAIN_ID}", f"/swap/v7/{CHAIN_ID}"
    route = {
        "status": "Success", "tokens": [_token(sold), _token(bought)], "tokenFrom": 0, "tokenTo": 1, "swapPrice": 2468.1, "priceImpact": 0.001,
        "amountIn": str(ask.amount), "assumedAmountOut": str(OUT),
    }  # fmt: skip
    tx = {"from": checksummed(WALLET), "to": checksummed(ROUTER), "gasPrice": GAS_PRICE, "data": CALLDATA, "value": str(_value(ask))}
    links = [{"source": 0, "target": 1, "liquidityProvider": 0, "amountIn": str(ask.amount), "amountOut": str(OUT), "value": 1.0}]
    answers = {
        quote: {**route, "visualization": {"liquidityProviders": ["SushiSwapV3", "UniswapV2"], "nodes": [], "links": links}},
        swap: {**route, "gasSpent": GAS, "tx": tx},
    }
    at = _traded(ask, ("tokens", 0), ("tokens", 1))
    places = {
        "out": ((swap, "assumedAmountOut"),), "amount": ((swap, "amountIn"),), "sold": ((swap, "tokens", 0, "address"),),
        "bought": ((swap, "tokens", 1, "address"),), "to": ((swap, "tx", "to"),), "data": ((swap, "tx", "data"),), "value": ((swap, "tx", "value"),),
        "wallet": ((swap, "tx", "from"),), "decimals": ((swap, *at, "decimals"),), "source": ((quote, "visualization", "liquidityProviders", 1),),
    }  # fmt: skip
    return Shape("sushi", answers, places, ("SushiSwapV3", "UniswapV2"), {"spender": ((swap, "tx", "to"),)})


def _relay(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_0)
    quote = "/quote/v2"

    def step(name: str, to: str, data: str, value: int) -> dict[str, Any]:
        tx = {
            "from": checksummed(WALLET), "to": checksummed(to), "data": data, "value": str(value), "chainId": CHAIN_ID, "gas": str(GAS),
            "maxFeePerGas": "21000001", "maxPriorityFeePerGas": "0",
        }  # fmt: skip
        items = [{"status": "incomplete", "data": tx, "check": {"endpoint": "/intents/status", "method": "GET"}}]
        return {"id": name, "kind": "transaction", "requestId": "0x" + "ee" * 32, "items": items}

    approval = "0x095ea7b3" + "0" * 24 + HOLDER[2:] + f"{ask.amount:064x}"
    steps = [step("approve", ask.token, approval, 0)] if ask.side == "sell" else []
    steps.append(step("swap", ROUTER, CALLDATA, _value(ask)))

    def side(address: str, amount: int) -> dict[str, Any]:
        return {"currency": _token(address, chainId=CHAIN_ID), "amount": str(amount), "amountFormatted": "0.05", "amountUsd": "125.1", "minimumAmount": str(amount)}

    details = {
        "operation": "swap", "sender": checksummed(WALLET), "recipient": checksummed(WALLET), "currencyIn": side(sold, ask.amount),
        "currencyOut": side(bought, OUT), "rate": "2469.1", "timeEstimate": 1, "route": {"origin": {"router": "uniswap-v4"}},
    }  # fmt: skip
    at, tx = (quote, "details"), (quote, "steps", len(steps) - 1, "items", 0, "data")
    traded = _traded(ask, ("currencyIn",), ("currencyOut",))
    places = {
        "out": ((*at, "currencyOut", "amount"),), "amount": ((*at, "currencyIn", "amount"),), "sold": ((*at, "currencyIn", "currency", "address"),),
        "bought": ((*at, "currencyOut", "currency", "address"),), "to": ((*tx, "to"),), "data": ((*tx, "data"),), "value": ((*tx, "value"),),
        "wallet": ((*tx, "from"),), "chain": ((*tx, "chainId"), (*at, "currencyIn", "currency", "chainId"), (*at, "currencyOut", "currency", "chainId")),
        "decimals": ((*at, *traded, "currency", "decimals"),), "source": ((*at, "route", "origin", "router"),),
    }  # fmt: skip
    answers = {quote: {"steps": steps, "fees": {"gas": {"amount": "1"}, "relayer": {"amount": "8"}}, "details": details}}
    return Shape("relay", answers, places, ("uniswap-v4",), {})


def _openocean(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    swap = f"/v4/{CHAIN_ID}/swap"
    dexes = [{"dex": "UniswapV3", "pool": "0x" + "d1" * 20, "percentage": 100}]
    told = {
        "inToken": _token(sold, usd="2500.1"), "outToken": _token(bought, usd="1"), "inAmount": str(ask.amount), "outAmount": str(OUT),
        "minOutAmount": str(OUT * 97 // 100), "estimatedGas": GAS, "price_impact": "-0.01%", "resPricePerFromToken": 2469.1, "to": checksummed(ROUTER),
        "data": CALLDATA, "value": str(_value(ask)), "gasPrice": str(GAS_PRICE), "chainId": CHAIN_ID, "from": checksummed(WALLET),
        "path": {"from": sold, "to": bought, "parts": 10, "routes": [{"parts": 10, "percentage": 100, "subRoutes": [{"from": sold, "to": bought, "dexes": dexes}]}]},
    }  # fmt: skip
    at, traded = (swap, "data"), _traded(ask, ("inToken",), ("outToken",))
    places = {
        "out": ((*at, "outAmount"),), "amount": ((*at, "inAmount"),), "sold": ((*at, "inToken", "address"),), "bought": ((*at, "outToken", "address"),),
        "to": ((*at, "to"),), "data": ((*at, "data"),), "value": ((*at, "value"),), "wallet": ((*at, "from"),), "chain": ((*at, "chainId"),),
        "decimals": ((*at, *traded, "decimals"),), "source": ((*at, "path", "routes", 0, "subRoutes", 0, "dexes", 0, "dex"),),
    }  # fmt: skip
    return Shape("openocean", {swap: {"code": 200, "data": told}}, places, ("UniswapV3",), {"spender": ((*at, "to"),)})


def _zerox(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    quote = "/swap/allowance-holder/quote"
    fills = [
        {"from": sold, "to": bought, "source": "Uniswap_V4", "proportionBps": "8500"},
        {"from": sold, "to": bought, "source": "PancakeSwap_V3", "proportionBps": "1500"},
    ]
    told = {
        "liquidityAvailable": True, "blockNumber": "71260000", "buyAmount": str(OUT), "minBuyAmount": str(OUT * 97 // 100), "buyToken": bought.lower(),
        "sellToken": sold.lower(), "sellAmount": str(ask.amount), "allowanceTarget": HOLDER, "gas": str(GAS), "gasPrice": str(GAS_PRICE), "totalNetworkFee": "6",
        "fees": {"integratorFee": None, "zeroExFee": {"amount": "3380754", "token": bought.lower(), "type": "volume"}, "gasFee": None},
        "issues": {"allowance": {"actual": "0", "spender": HOLDER}, "balance": None, "simulationIncomplete": False, "invalidSourcesPassed": []},
        "route": {"fills": fills, "tokens": [{"address": sold.lower(), "symbol": "ETH"}]}, "zid": "0x" + "12" * 12,
        "tokenMetadata": {"buyToken": {"buyTaxBps": "0", "sellTaxBps": "0"}, "sellToken": {"buyTaxBps": None, "sellTaxBps": None}},
        "transaction": {"to": ROUTER, "data": CALLDATA, "gas": str(GAS), "gasPrice": str(GAS_PRICE), "value": str(_value(ask))},
    }  # fmt: skip
    places = {
        "out": ((quote, "buyAmount"),), "amount": ((quote, "sellAmount"),), "sold": ((quote, "sellToken"),), "bought": ((quote, "buyToken"),),
        "to": ((quote, "transaction", "to"),), "data": ((quote, "transaction", "data"),), "value": ((quote, "transaction", "value"),),
        "source": ((quote, "route", "fills", 0, "source"),),
    }  # fmt: skip
    return Shape("0x", {quote: told}, places, ("Uniswap_V4", "PancakeSwap_V3"), {"spender": ((quote, "allowanceTarget"),)})


def _uniswap(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_0)
    quote, swap = "/quote", "/swap"
    told = {
        "chainId": CHAIN_ID, "swapper": checksummed(WALLET), "tradeType": "EXACT_INPUT", "slippage": 3, "input": {"token": sold, "amount": str(ask.amount)},
        "output": {"token": bought, "amount": str(OUT), "minimumAmount": str(OUT * 97 // 100), "recipient": checksummed(WALLET)}, "gasFee": "6000000",
        "gasUseEstimate": str(GAS), "priceImpact": 0.02, "route": [[{"type": "v4-pool", "address": "0x" + "d1" * 32, "fee": "3000"}]],
        "routeString": "[V4] 100.00%", "quoteId": "u1", "blockNumber": "71260000", "txFailureReasons": [],
    }  # fmt: skip
    tx = {
        "to": checksummed(ROUTER), "from": checksummed(WALLET), "data": CALLDATA, "value": hex(_value(ask)) if _value(ask) else "0x00", "gasLimit": "300000",
        "chainId": CHAIN_ID,
    }  # fmt: skip
    answers = {
        quote: {"requestId": "u1", "routing": "CLASSIC", "quote": told, "permitData": None},
        swap: {"requestId": "u2", "swap": tx, "gasFee": "6000000"},
    }
    at, tx_at = (quote, "quote"), (swap, "swap")
    places = {
        "out": ((*at, "output", "amount"),), "amount": ((*at, "input", "amount"),), "sold": ((*at, "input", "token"),), "bought": ((*at, "output", "token"),),
        "to": ((*tx_at, "to"),), "data": ((*tx_at, "data"),), "value": ((*tx_at, "value"),), "wallet": ((*tx_at, "from"), (*at, "swapper")),
        "chain": ((*at, "chainId"), (*tx_at, "chainId")),
    }  # fmt: skip
    return Shape("uniswap", answers, places, ("v4-pool",), {"spender": ((*tx_at, "to"),)})


def _oneinch(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    swap = f"/swap/v6.1/{CHAIN_ID}/swap"
    told = {
        "srcToken": _token(sold.lower()) | {"decimals": 18 if ask.side == "buy" else DECIMALS}, "dstToken": _token(bought.lower()) | {"decimals": DECIMALS if ask.side == "buy" else 18},
        "dstAmount": str(OUT), "gas": GAS,
        "protocols": [[[{"name": "UNISWAP_V4", "part": 60, "fromTokenAddress": sold, "toTokenAddress": bought}, {"name": "UNISWAP_V2", "part": 40}]]],
        "tx": {"from": WALLET, "to": ROUTER, "data": CALLDATA, "value": str(_value(ask)), "gas": 0, "gasPrice": str(GAS_PRICE)},
    }  # fmt: skip
    traded = _traded(ask, ("srcToken",), ("dstToken",))
    places = {
        "out": ((swap, "dstAmount"),), "sold": ((swap, "srcToken", "address"),), "bought": ((swap, "dstToken", "address"),), "to": ((swap, "tx", "to"),),
        "data": ((swap, "tx", "data"),), "value": ((swap, "tx", "value"),), "wallet": ((swap, "tx", "from"),), "decimals": ((swap, *traded, "decimals"),),
        "source": ((swap, "protocols", 0, 0, 1, "name"),),
    }  # fmt: skip
    return Shape("1inch", {swap: told}, places, ("UNISWAP_V4", "UNISWAP_V2"), {"spender": ((swap, "tx", "to"),)})


def _okx(ask: Ask) -> Shape:
    sold, bought = _in(ask, NATIVE_E)
    swap, approve = "/api/v6/dex/aggregator/swap", "/api/v6/dex/aggregator/approve-transaction"

    def token(address: str) -> dict[str, Any]:
        decimals = "18" if address == NATIVE_E else str(DECIMALS)
        return {"tokenContractAddress": address.lower(), "tokenSymbol": "LEAF", "decimal": decimals, "tokenUnitPrice": "1.1", "isHoneyPot": False, "taxRate": "0"}

    result = {
        "chainId": str(CHAIN_ID), "chainIndex": str(CHAIN_ID), "fromTokenAmount": str(ask.amount), "toTokenAmount": str(OUT), "estimateGasFee": str(GAS),
        "tradeFee": "0.07", "priceImpactPercent": "-0.02", "fromToken": token(sold), "toToken": token(bought), "swapMode": "exactIn",
        "dexRouterList": [{"dexProtocol": {"dexName": "Uniswap V4", "percent": "100"}, "fromToken": token(sold), "toToken": token(bought)}],
    }  # fmt: skip
    tx = {
        "from": WALLET, "to": checksummed(ROUTER), "data": CALLDATA, "value": str(_value(ask)), "gas": str(GAS), "gasPrice": str(GAS_PRICE),
        "minReceiveAmount": str(OUT * 97 // 100), "slippagePercent": "3", "signatureData": [""],
    }  # fmt: skip
    approval = {"data": "0x095ea7b3" + "0" * 24 + HOLDER[2:] + f"{ask.amount:064x}", "dexContractAddress": HOLDER, "gasLimit": "50000", "gasPrice": "1"}
    answers = {
        swap: {"code": "0", "msg": "", "data": [{"routerResult": result, "tx": tx}]},
        approve: {"code": "0", "msg": "", "data": [approval]},
    }
    at, tx_at = (swap, "data", 0, "routerResult"), (swap, "data", 0, "tx")
    traded = _traded(ask, ("fromToken",), ("toToken",))
    places = {
        "out": ((*at, "toTokenAmount"),), "amount": ((*at, "fromTokenAmount"),), "sold": ((*at, "fromToken", "tokenContractAddress"),),
        "bought": ((*at, "toToken", "tokenContractAddress"),), "to": ((*tx_at, "to"),), "data": ((*tx_at, "data"),), "value": ((*tx_at, "value"),),
        "wallet": ((*tx_at, "from"),), "chain": ((*at, "chainIndex"),), "decimals": ((*at, *traded, "decimal"),),
        "source": ((*at, "dexRouterList", 0, "dexProtocol", "dexName"),),
    }  # fmt: skip
    return Shape("okx", answers, places, ("Uniswap V4",), {"spender": ((approve, "data", 0, "dexContractAddress"),)})
