"""The rival: answers in two wire shapes, really executed; better than hubs alone on some pairs; lies and fails as its table says."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import orjson
import pytest

from chain.devnet.calls import Tx, decode, encode
from chain.devnet.devnet import Devnet
from chain.devnet.places import ETH, USDG
from chain.devnet.rival import KEY, KYBER_BASE, Rival
from chain.devnet.rival_calls import NATIVE_E
from chain.devnet.tricks import FAILURES, FAR_ROUTER, LIES, TRICKS
from chain.devnet.venues import MAX

WALLET = "0x000000000000000000000000000000000000b0b1"
SPEND = ETH // 100
GAS = 5_000_000
ZEROX_HEADERS = {"0x-api-key": KEY, "0x-version": "v2"}
SHAPES = ("kyber", "0x")


@dataclass(frozen=True, slots=True)
class Offered:
    """What a test needs of an answer, whichever shape it had."""

    out_raw: int
    to: str
    data: str
    value_wei: int
    document: dict


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the rival over HTTP, and really executes what it answers."""

    chain: Devnet
    rival: Rival

    def http(self, method: str, path: str, body: dict | None = None, headers: dict | None = None, limit_s: float = 20) -> tuple[int, bytes, dict]:
        line = http.client.HTTPConnection("127.0.0.1", urlsplit(self.rival.url).port or 0, timeout=limit_s)
        try:
            line.request(method, path, orjson.dumps(body) if body is not None else None, headers or {})
            reply = line.getresponse()
            return reply.status, reply.read(), dict(reply.headers)
        finally:
            line.close()

    def route(self, sold: str, bought: str, amount: int) -> tuple[int, bytes, dict]:
        query = urlencode({"tokenIn": sold, "tokenOut": bought, "amountIn": amount, "gasInclude": "1"})
        return self.http("GET", f"{KYBER_BASE}/api/v1/routes?{query}")

    def quote(self, sold: str, bought: str, amount: int, **fields) -> tuple[int, bytes, dict]:
        query = {"chainId": 4663, "sellToken": sold, "buyToken": bought, "sellAmount": amount, "taker": WALLET, **fields}
        return self.http("GET", f"/swap/allowance-holder/quote?{urlencode(query)}", headers=ZEROX_HEADERS)

    def kyber(self, sold: str, bought: str, amount: int) -> Offered:
        routed = good(self.route(sold, bought, amount))["data"]
        body = {"routeSummary": routed["routeSummary"], "sender": WALLET, "recipient": WALLET, "slippageTolerance": 100}
        built = good(self.http("POST", f"{KYBER_BASE}/api/v1/route/build", body))["data"]
        return Offered(int(built["amountOut"]), built["routerAddress"], built["data"], int(built["transactionValue"]), {**built, **routed})

    def zerox(self, sold: str, bought: str, amount: int) -> Offered:
        document = good(self.quote(sold, bought, amount))
        tx = document["transaction"]
        return Offered(int(document["buyAmount"]), tx["to"], tx["data"], int(tx["value"]), document)

    def offer(self, shape: str, sold: str, bought: str, amount: int) -> Offered:
        return (self.kyber if shape == "kyber" else self.zerox)(sold, bought, amount)

    def held(self, token: str, owner: str = WALLET) -> int:
        if token == NATIVE_E:
            return int(self.chain.node.call("eth_getBalance", [owner, "latest"]), 16)
        return decode(("uint256",), self.chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", owner)}, "latest"]))[0]

    def execute(self, offered: Offered, bought: str) -> int | None:
        """What arrived, gas put back; None when it reverted."""
        before = self.held(bought)
        [receipt] = self.chain.send(Tx(sender=WALLET, to=offered.to, data=offered.data, value_wei=offered.value_wei, gas=GAS))
        gas = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) if bought == NATIVE_E else 0
        return self.held(bought) - before + gas if receipt["status"] == "0x1" else None

    def approve(self, token: str) -> None:
        executor = self.chain.deployment.annex.rival
        self.chain.send(Tx(sender=WALLET, to=token, data=encode("approve(address,uint256)", executor, MAX), gas=200_000))

    def address(self, symbol: str) -> str:
        annex = self.chain.deployment.annex
        known = {market.token.symbol: market.token.address for market in annex.markets}
        return known.get(symbol) or self.chain.deployment.token(symbol).address

    def trick(self, name: str) -> str:
        return self.chain.deployment.annex.trick(name).token.address


def good(answer: tuple[int, bytes, dict]) -> dict:
    assert answer[0] == 200, answer
    return orjson.loads(answer[1])


@pytest.fixture
def asker(chain: Devnet) -> Iterator[Asker]:
    chain.fund(WALLET, 10 * ETH)
    with chain.rival() as rival:
        yield Asker(chain, rival)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("symbol", ["LEAF", "PINE", "BARK", "GLADE", "FJORD", "DOGW", "ALDE", "HAZE"])
def test_what_is_told_arrives_to_the_unit_both_ways(asker, shape, symbol):
    token = asker.address(symbol)
    buy = asker.offer(shape, NATIVE_E, token, SPEND)
    assert asker.execute(buy, token) == buy.out_raw > 0
    asker.approve(token)
    amount = min(asker.held(token), ETH // 20) if symbol == "DOGW" else asker.held(token)
    sale = asker.offer(shape, token, NATIVE_E, amount)
    assert asker.execute(sale, NATIVE_E) == sale.out_raw > 0


def test_tokens_on_a_curve_are_bought_there(asker):
    token = asker.chain.deployment.annex.launched[1].token
    offered = asker.kyber(NATIVE_E, token, SPEND)
    assert asker.execute(offered, token) == offered.out_raw and offered.document["routeSummary"]["route"][0][0]["exchange"] == "launchpad"


@pytest.mark.parametrize(("symbol", "hops"), [("GLADE", 2), ("FJORD", 3)])
def test_deep_ways_through_other_tokens_are_found(asker, symbol, hops):
    token = asker.address(symbol)
    offered = asker.kyber(NATIVE_E, token, ETH)
    [path] = offered.document["routeSummary"]["route"]
    assert len(path) == hops
    thin = next(market.place for market in asker.chain.deployment.annex.off_path if market.token.symbol == symbol and market.hub == "weth")
    order = (asker.chain.addresses["weth"], token, ETH, thin.fee_ppm, 0)
    data = encode("quoteExactInputSingle((address,address,uint256,uint24,uint160))", order)
    answer = asker.chain.node.call("eth_call", [{"to": asker.chain.addresses["quoter_v2"], "data": data}, "latest"])
    assert asker.execute(offered, token) > decode(("uint256",), answer[:66])[0] * 5 // 4


def test_quotes_follow_the_newest_block(asker):
    leaf = asker.address("LEAF")
    first = asker.zerox(NATIVE_E, leaf, 5 * ETH)
    asker.execute(first, leaf)
    second = asker.zerox(NATIVE_E, leaf, 5 * ETH)
    assert second.out_raw < first.out_raw and int(second.document["blockNumber"]) == asker.chain.height


def test_calldata_is_bound_to_the_taker_and_least_to_the_slippage(asker):
    leaf = asker.address("LEAF")
    document = good(asker.quote(NATIVE_E, leaf, SPEND, slippageBps=50))
    assert WALLET[2:] in document["transaction"]["data"] and int(document["minBuyAmount"]) == int(document["buyAmount"]) * 9_950 // 10_000


# --- the shapes -------------------------------------------------------------------------------------------------------


def test_kyber_answers_have_the_members_of_the_real_ones(asker):
    routed = good(asker.route(NATIVE_E, asker.address("LEAF"), SPEND))
    assert routed["code"] == 0 and {"routeSummary", "routerAddress"} == routed["data"].keys()
    summary = routed["data"]["routeSummary"]
    assert {"tokenIn", "amountIn", "amountInUsd", "tokenOut", "amountOut", "amountOutUsd", "gas", "gasPrice", "l1FeeUsd", "extraFee", "route", "routeID", "checksum", "timestamp"} <= summary.keys()
    assert {"pool", "exchange", "poolType", "tokenIn", "tokenOut"} <= summary["route"][0][0].keys()


def test_zerox_answers_have_the_members_of_the_real_ones(asker):
    document = good(asker.quote(asker.address("LEAF"), NATIVE_E, ETH))
    assert {"liquidityAvailable", "blockNumber", "buyAmount", "minBuyAmount", "sellAmount", "allowanceTarget", "fees", "gas", "gasPrice", "totalNetworkFee", "issues", "route", "tokenMetadata", "transaction", "zid"} <= document.keys()
    assert {"to", "data", "gas", "gasPrice", "value"} == document["transaction"].keys()
    assert document["issues"]["allowance"]["spender"] == document["allowanceTarget"] == asker.chain.deployment.annex.rival


def test_price_has_no_transaction(asker):
    query = urlencode({"chainId": 4663, "sellToken": NATIVE_E, "buyToken": asker.address("LEAF"), "sellAmount": SPEND})
    document = good(asker.http("GET", f"/swap/allowance-holder/price?{query}", headers=ZEROX_HEADERS))
    assert document["liquidityAvailable"] and "transaction" not in document


@pytest.mark.parametrize("headers", [{}, {"0x-version": "v2"}, {"0x-api-key": "other", "0x-version": "v2"}])
def test_zerox_without_its_key_is_401(asker, headers):
    assert asker.http("GET", "/swap/allowance-holder/quote?chainId=4663", headers=headers)[0] == 401


@pytest.mark.parametrize("change", [{"chainId": 1}, {"sellAmount": 0}, {"sellAmount": "1.5"}, {"taker": ""}, {"slippageBps": "x"}])
def test_zerox_refuses_wrong_members_by_name(asker, change):
    status, body, _ = asker.quote(NATIVE_E, asker.address("LEAF"), SPEND, **change)
    assert (status, orjson.loads(body)["name"]) == (400, "INPUT_INVALID")


def test_kyber_refuses_unknown_tokens_and_changed_summaries(asker):
    status, body, _ = asker.route(NATIVE_E, "0x" + "12" * 20, SPEND)
    assert (status, orjson.loads(body)["code"]) == (400, 4011)
    summary = good(asker.route(NATIVE_E, asker.address("LEAF"), SPEND))["data"]["routeSummary"]
    body = {"routeSummary": {**summary, "amountOut": "1"}, "sender": WALLET, "recipient": WALLET, "slippageTolerance": 100}
    status, answer, _ = asker.http("POST", f"{KYBER_BASE}/api/v1/route/build", body)
    assert (status, orjson.loads(answer)["code"]) == (400, 4002)


def test_other_paths_are_not_found(asker):
    assert asker.http("GET", "/")[0] == 404 and asker.http("GET", "/ethereum/api/v1/routes")[0] == 404


# --- the tricks -------------------------------------------------------------------------------------------------------


def test_every_trick_has_a_token_of_its_own(devnet):
    tricks = devnet.deployment.annex.tricks
    assert [trick.name for trick in tricks] == list(TRICKS) == [*LIES, *FAILURES]
    assert len({trick.token.symbol for trick in tricks}) == len(tricks)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("trick", "told_ppm"), [("promises_more", 1_050_000), ("other_units", 10**12)])
def test_more_is_told_than_arrives(asker, shape, trick, told_ppm):
    token = asker.trick(trick)
    offered = asker.offer(shape, NATIVE_E, token, SPEND)
    arrived = asker.execute(offered, token)
    assert offered.out_raw == arrived * told_ppm // 10**6


@pytest.mark.parametrize("shape", SHAPES)
def test_output_is_sent_elsewhere(asker, shape):
    token, stranger = asker.trick("sends_elsewhere"), asker.chain.deployment.cast.stranger
    offered = asker.offer(shape, NATIVE_E, token, SPEND)
    assert asker.execute(offered, token) == 0 and asker.held(token, stranger) == offered.out_raw


@pytest.mark.parametrize("shape", SHAPES)
def test_another_token_is_pulled(asker, shape):
    token, usdg, cast = asker.trick("pulls_other"), asker.chain.addresses["usdg"], asker.chain.deployment.cast
    asker.chain.send(Tx(sender=cast.deployer, to=usdg, data=encode("mint(address,uint64)", WALLET, 100 * USDG)))
    asker.approve(usdg)
    offered = asker.offer(shape, NATIVE_E, token, 50 * USDG)
    assert asker.execute(offered, token) == 0 and asker.held(usdg) == 50 * USDG == asker.held(usdg, cast.stranger)


@pytest.mark.parametrize("shape", SHAPES)
def test_copycat_of_the_same_symbol_is_bought(asker, shape):
    token, copy = asker.trick("copycat"), asker.chain.deployment.annex.copycat.token
    assert copy.symbol == asker.chain.deployment.annex.trick("copycat").token.symbol
    assert asker.execute(asker.offer(shape, NATIVE_E, token, SPEND), token) == 0 and asker.held(copy.address) > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_wrong_chain_names_a_router_without_code(asker, shape):
    offered = asker.offer(shape, NATIVE_E, asker.trick("wrong_chain"), SPEND)
    assert offered.to == FAR_ROUTER and asker.chain.node.call("eth_getCode", [FAR_ROUTER, "latest"]) == "0x"


@pytest.mark.parametrize("shape", SHAPES)
def test_approval_is_passed_off_as_a_swap(asker, shape):
    token = asker.trick("approves")
    offered = asker.offer(shape, token, NATIVE_E, ETH)
    assert offered.to == token and asker.execute(offered, token) == 0
    data = encode("allowance(address,address)", WALLET, asker.chain.deployment.cast.stranger)
    assert int(asker.chain.node.call("eth_call", [{"to": token, "data": data}, "latest"]), 16) == MAX


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_is_spent(asker, shape):
    assert asker.offer(shape, NATIVE_E, asker.trick("spends_more"), SPEND).value_wei == 2 * SPEND


def test_makers_quote_names_its_source(asker):
    token = asker.trick("makers_quote")
    assert asker.kyber(NATIVE_E, token, SPEND).document["routeSummary"]["route"][0][0]["exchange"] == "hashflow-v3"
    assert asker.zerox(NATIVE_E, token, SPEND).document["route"]["fills"][0]["source"] == "0x_RFQ"


@pytest.mark.parametrize("shape", SHAPES)
def test_expired_transaction_reverts(asker, shape):
    token = asker.trick("expired")
    assert asker.execute(asker.offer(shape, NATIVE_E, token, SPEND), token) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_failures_are_as_named(asker, shape):
    def ask(name: str):
        ask_rival = asker.route if shape == "kyber" else asker.quote
        return ask_rival(NATIVE_E, asker.trick(name), SPEND)

    assert ask("html")[1].startswith(b"<!DOCTYPE html>")
    status, _, headers = ask("redirect")
    assert status == 302 and headers["Location"]
    assert ask("overloaded")[0] == 503 and len(ask("huge")[1]) > 8_000_000
    status, _, headers = ask("throttled")
    assert (status, headers["Retry-After"]) == (429, "7")
    with pytest.raises(ValueError, match="."):
        orjson.loads(ask("garbage")[1])
    status, body, _ = ask("no_route")
    if shape == "kyber":
        assert (status, orjson.loads(body)["code"]) == (400, 4008)
    else:
        assert (status, orjson.loads(body)["liquidityAvailable"]) == (200, False)


def test_slow_answers_stay_away_until_the_rival_ends(asker):
    line = http.client.HTTPConnection("127.0.0.1", urlsplit(asker.rival.url).port or 0, timeout=0.3)
    query = urlencode({"tokenIn": NATIVE_E, "tokenOut": asker.trick("slow"), "amountIn": SPEND})
    line.request("GET", f"{KYBER_BASE}/api/v1/routes?{query}")
    with pytest.raises(TimeoutError):
        line.getresponse()
    line.close()


def test_a_dead_node_is_said_and_not_waited_for():
    with Devnet.build(5) as alone, alone.rival() as rival:
        asker = Asker(alone, rival)
        leaf = asker.address("LEAF")
        assert asker.route(NATIVE_E, leaf, SPEND)[0] == 200
        alone.node.process.kill()
        alone.node.process.wait()
        status, body, _ = asker.route(NATIVE_E, leaf, SPEND)
        assert (status, orjson.loads(body)["code"]) == (503, 50301)
