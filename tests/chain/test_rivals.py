"""Rivals: each is asked in its own words and read without belief; a rival that lies or breaks costs its row and nothing else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.aggregators.ask import REASONS, Limit, RivalQuote, RivalSilent, Silence
from chain.aggregators.budget import BACK_OFF_MS, BACK_OFF_MS_MAX, Budget
from chain.aggregators.inventory import VIA_MAX, is_inventory
from chain.aggregators.okx import timestamp
from chain.aggregators.rivals import KEYED, Rivals, rivals_named
from chain.aggregators.web import ANSWER_BYTES_MAX
from chain.gas import SWAP_GAS_LIMIT
from chain.network import load_network
from ledgers.clock import SystemClock, VirtualClock
from tests.chain.rival_answers import (
    ASKS, BUY, CALLDATA, COPYCAT, DECIMALS, GAS, HOLDER, KEYS, NAMES, NATIVE_0, NATIVE_E, NOW_S, OUT, ROUTER, SELL, STRANGER, TOKEN, WALLET, Path,
    changed, every_place, shape, without,
)  # fmt: skip

APPROVE_HOLDER = ("lifi", "relay", "0x", "okx")
"""Rivals whose approval goes to another contract than their transaction."""
MAYBE_KEYED = ("lifi", "relay", "sushi")


class Served:
    """A local server that speaks as a rival, or does not."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.instead: Callable[[web.BaseRequest], Any] | None = None
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.base = ""
        self.hung = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.path_qs, dict(request.headers), json.loads(body) if body else None))
        if self.instead is not None:
            answer = self.instead(request)
            return await answer if asyncio.iscoroutine(answer) else answer
        if request.path not in self.answers:
            return web.Response(status=404, text="not here")
        return web.Response(body=json.dumps(self.answers[request.path]).encode(), content_type="application/json")

    def paths(self) -> list[str]:
        return [target.split("?")[0] for _, target, _, _ in self.asked]

    def query(self, at: int) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.asked[at][1]).query).items()}


@pytest.fixture
async def served():
    said = Served()
    runner = web.ServerRunner(web.Server(said), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    said.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield said
    said.hung.set()
    await runner.cleanup()


@pytest.fixture
async def desk(served):
    """Asks one rival of the local server."""
    opened: list[Rivals] = []

    async def ask(name: str, answers: dict[str, Any] | None, asking: Any = BUY, keys: dict[str, str] = KEYS) -> RivalQuote | RivalSilent:
        served.answers = answers or {}
        rivals = Rivals(rivals_named([name], "robinhood", keys, {name: served.base}), SystemClock())
        opened.append(rivals)
        (answer,) = await rivals.ask(asking)
        return answer

    yield ask
    for rivals in opened:
        await rivals.close()


def reasoned(answer: RivalQuote | RivalSilent) -> str:
    """Why a rival is silent; its row when it is not."""
    assert isinstance(answer, RivalSilent), answer
    assert answer.reason in REASONS or answer.reason.startswith("http_")
    return answer.reason


# --- each in its own words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_good_answer_becomes_a_row_with_its_transaction(served, desk, name, side):
    good = shape(name, ASKS[side])
    row = await desk(name, dict(good.answers), ASKS[side])
    assert isinstance(row, RivalQuote), row
    assert (row.source, row.out_raw, row.gas_estimate, row.via, row.rfq) == (name, OUT, GAS, good.via, False)
    assert (row.tx.to, row.tx.data, row.tx.gas_limit) == (ROUTER, CALLDATA, SWAP_GAS_LIMIT)
    assert row.tx.value_wei == (BUY.amount if side == "buy" else 0)
    assert row.spender == (None if side == "buy" else HOLDER if name in APPROVE_HOLDER else ROUTER)
    assert all(headers["User-Agent"].startswith("Mozilla/5.0") for _, _, headers, _ in served.asked)


async def test_kyberswap_is_asked_without_makers_and_builds_the_very_route_for_the_wallet(served, desk):
    row = await desk("kyberswap", dict(shape("kyberswap", BUY).answers))
    assert served.query(0) == {
        "tokenIn": "0x" + "ee" * 20, "tokenOut": TOKEN, "amountIn": str(BUY.amount), "gasInclude": "true", "gasPrice": str(BUY.gas_price_wei), "excludeRFQSources": "true",
    }  # fmt: skip
    body = served.asked[1][3]
    assert body["routeSummary"] == shape("kyberswap", BUY).answers["/api/v1/routes"]["data"]["routeSummary"]
    assert (body["sender"], body["recipient"], body["slippageTolerance"], body["deadline"]) == (WALLET, WALLET, 300, NOW_S + 1_200)
    assert served.asked[0][2]["X-Client-Id"] == "referee" and row.deadline_s == NOW_S + 1_200


async def test_lifi_is_asked_with_mixed_case_addresses(served, desk):
    await desk("lifi", dict(shape("lifi", SELL).answers), SELL)
    asked = served.query(0)
    assert asked["fromToken"] != TOKEN and asked["fromToken"].lower() == TOKEN and asked["toToken"] == NATIVE_0
    assert asked["fromAddress"].lower() == WALLET and asked["slippage"] == "0.0300"
    assert served.asked[0][2]["x-lifi-api-key"] == KEYS["lifi"]


async def test_relay_names_the_spender_in_its_approval(served, desk):
    row = await desk("relay", dict(shape("relay", SELL).answers), SELL)
    body = served.asked[0][3]
    assert (body["user"], body["amount"], body["tradeType"], body["slippageTolerance"]) == (WALLET, str(SELL.amount), "EXACT_INPUT", "300")
    assert row.spender == HOLDER


async def test_openocean_is_asked_in_base_units(served, desk):
    await desk("openocean", dict(shape("openocean", BUY).answers))
    asked = served.query(0)
    assert asked["amountDecimals"] == str(BUY.amount) and asked["gasPriceDecimals"] == str(BUY.gas_price_wei)
    assert "amount" not in asked and "gasPrice" not in asked


async def test_zerox_is_asked_for_the_second_version_with_its_key(served, desk):
    await desk("0x", dict(shape("0x", BUY).answers))
    headers = served.asked[0][2]
    assert (headers["0x-api-key"], headers["0x-version"], served.query(0)["taker"]) == (KEYS["0x"], "v2", WALLET)


async def test_uniswap_is_asked_for_pools_without_permit2(served, desk):
    await desk("uniswap", dict(shape("uniswap", BUY).answers))
    (_, _, headers, quoted), (_, _, _, built) = served.asked
    assert (headers["x-universal-router-version"], headers["x-permit2-disabled"], headers["x-api-key"]) == ("2.1.1", "true", KEYS["uniswap"])
    assert quoted["protocols"] == ["V2", "V3", "V4"] and built["quote"] == shape("uniswap", BUY).answers["/quote"]["quote"]
    assert built["deadline"] == NOW_S + 1_200


async def test_oneinch_does_not_look_for_balances(served, desk):
    await desk("1inch", dict(shape("1inch", BUY).answers))
    assert (served.query(0)["disableEstimate"], served.asked[0][2]["Authorization"]) == ("true", f"Bearer {KEYS['1inch']}")


async def test_okx_signs_time_method_and_path_with_query(served, desk):
    await desk("okx", dict(shape("okx", SELL).answers), SELL)
    for method, target, headers, _ in served.asked:
        said = f"{headers['OK-ACCESS-TIMESTAMP']}{method}{target}".encode()
        sealed = base64.b64encode(hmac.new(KEYS["okx_secret"].encode(), said, hashlib.sha256).digest()).decode()
        assert headers["OK-ACCESS-SIGN"] == sealed
        assert (headers["OK-ACCESS-KEY"], headers["OK-ACCESS-PASSPHRASE"], headers["OK-ACCESS-PROJECT"]) == (KEYS["okx"], KEYS["okx_passphrase"], KEYS["okx_project"])


def test_okx_time_has_milliseconds():
    assert timestamp(1_790_000_000_007) == "2026-09-21T14:13:20.007Z"


async def test_okx_is_asked_once_who_must_be_approved(served):
    served.answers = dict(shape("okx", SELL).answers)
    clock = VirtualClock()
    rivals = Rivals(rivals_named(["okx"], "robinhood", KEYS, {"okx": served.base}), clock)
    for _ in range(2):
        (row,) = await rivals.ask(SELL)
        assert row.spender == HOLDER
        await clock.advance_to(clock.now_ms() + 2_000)
    assert [path.rsplit("/")[-1] for path in served.paths()] == ["approve-transaction", "swap", "swap"]
    await rivals.close()


# --- lies -----------------------------------------------------------------------------------------------------------

LIES: list[tuple[str, Any, str]] = [
    *(("out", lie, "bad_answer") for lie in (0, "0", -1, "-5", 1.5, "1.5", "1e18", 2**63 + 0.5, 2**128, str(2**128), str(2**256), None, True, [], {"raw": 1}, "", "0x10", " 1", "١", "9" * 90)),
    *(("amount", lie, "wrong_amount") for lie in (0, "1", str(BUY.amount + 1), str(BUY.amount * 10**9), str(2**256 - 1))),
    *(("amount", lie, "bad_answer") for lie in (0.05, "0.05", -1, None, "all", float(BUY.amount), 2**256)),
    *((which, COPYCAT, "wrong_token") for which in ("sold", "bought")),
    *((which, lie, "bad_answer") for which in ("sold", "bought") for lie in ("LEAF", None, 7, {"address": TOKEN}, TOKEN[:-1], TOKEN + "0")),
    *(("decimals", lie, "wrong_units") for lie in (6, "6", DECIMALS + 1)),
    *(("chain", lie, "wrong_chain") for lie in (1, "1", 46_630)),
    *(("chain", lie, "bad_answer") for lie in (4663.5, None, "robinhood")),
    *(("wallet", lie, "wrong_wallet") for lie in (STRANGER, None, NATIVE_0, 5)),
    *(("to", lie, "bad_target") for lie in (TOKEN, TOKEN.upper().replace("0X", "0x"), WALLET, NATIVE_0, NATIVE_E, "0x" + "0" * 38 + "64")),
    *(("to", lie, "bad_answer") for lie in ("", None, 12, "0xabc", "vitalik.eth", ROUTER[2:], f" {ROUTER}", ROUTER + "\n")),
    *(("data", lie, "bad_calldata") for lie in ("", "0x", "0xabc", "0xzz", None, 5, ["0x12"], CALLDATA[2:], CALLDATA + "\n", "0x" + "ab" * (64 * 1024 + 1))),
    *(("value", lie, "bad_answer") for lie in (0.5, -1, "-1", "1.0", [], "0b1")),
]  # fmt: skip


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_lie_about_any_fact_costs_the_row(served, desk, name, side):
    good = shape(name, ASKS[side])
    places = good.facts(side)
    told = 0
    for fact, lie, reason in LIES:
        for place in places.get(fact, ()):
            if (name, fact, lie) == ("openocean", "wallet", None):
                continue  # it need not say for whom it builds
            answer = await desk(name, changed(good.answers, place, lie), ASKS[side])
            assert reasoned(answer) == reason, (fact, lie, place, answer)
            told += 1
    assert told > 60


@pytest.mark.parametrize("lie", [0, BUY.amount - 1, BUY.amount + 1, 2**255])
@pytest.mark.parametrize("name", NAMES)
async def test_a_buy_carries_exactly_what_is_spent(desk, name, lie):
    good = shape(name, BUY)
    (place,) = good.places["value"]
    assert reasoned(await desk(name, changed(good.answers, place, str(lie)))) == "wrong_value"


@pytest.mark.parametrize("name", NAMES)
async def test_a_sale_carries_no_ether(desk, name):
    good = shape(name, SELL)
    (place,) = good.places["value"]
    assert reasoned(await desk(name, changed(good.answers, place, "1"), SELL)) == "wrong_value"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("lifi", "uniswap")])
async def test_hex_is_a_number_only_where_the_interface_writes_it(desk, name):
    good = shape(name, BUY)
    (place,) = good.places["value"]
    assert reasoned(await desk(name, changed(good.answers, place, hex(BUY.amount)))) == "bad_answer"


@pytest.mark.parametrize("lie", [TOKEN, WALLET, NATIVE_0, NATIVE_E])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "relay"])
async def test_nobody_who_may_not_spend_is_approved(desk, name, lie):
    good = shape(name, SELL)
    (place,) = good.sale_places["spender"]
    assert reasoned(await desk(name, changed(good.answers, place, lie), SELL)) == "bad_target"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("0x095ea7b3" + "0" * 24 + WALLET[2:] + f"{SELL.amount:064x}", "bad_target"), ("0x095ea7b3" + "0" * 24 + HOLDER[2:] + f"{SELL.amount - 1:064x}", "bad_answer"),
        ("0xa9059cbb" + "0" * 24 + HOLDER[2:] + f"{SELL.amount:064x}", "bad_answer"), ("0x", "bad_answer"), (None, "bad_answer"),
    ],
    ids=range(5),
)  # fmt: skip
@pytest.mark.parametrize(("name", "at"), [("relay", ("/quote/v2", "steps", 0, "items", 0, "data", "data")), ("okx", ("/api/v6/dex/aggregator/approve-transaction", "data", 0, "data"))])
async def test_an_approval_that_is_none_costs_the_row(desk, name, at, lie, reason):
    assert reasoned(await desk(name, changed(shape(name, SELL).answers, at, lie), SELL)) == reason


async def test_an_approval_of_another_token_costs_the_row(desk):
    lie = changed(shape("relay", SELL).answers, ("/quote/v2", "steps", 0, "items", 0, "data", "to"), COPYCAT)
    assert reasoned(await desk("relay", lie, SELL)) == "wrong_token"


NEEDLESS = {"source"}
"""Facts that only describe."""


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_fact_that_is_missing_costs_the_row(desk, name, side):
    good = shape(name, ASKS[side])
    for fact, places in good.facts(side).items():
        if fact in NEEDLESS or (name, fact) in {("sushi", "value"), ("sushi", "decimals"), ("relay", "decimals"), ("openocean", "decimals"), ("openocean", "wallet"), ("0x", "spender")}:
            continue
        for place in places:
            assert reasoned(await desk(name, without(good.answers, place), ASKS[side])) == "bad_answer", place


async def test_a_missing_value_of_sushi_is_zero_so_no_buy(desk):
    for asking, expected in ((BUY, RivalSilent), (SELL, RivalQuote)):
        good = shape("sushi", asking)
        (place,) = good.places["value"]
        assert isinstance(await desk("sushi", without(good.answers, place), asking), expected)


JUNK: list[Any] = [None, True, 0, -1, 1.5, "", "x" * 5_000, "\x1b[31m\u202eevil", [], {}, [[]], [None], {"code": 0}, 2**63, 2**70, "0x", TOKEN, "NaN"]


@pytest.mark.parametrize("name", NAMES)
async def test_junk_in_any_place_harms_nobody(desk, name):
    chance = random.Random(7)
    for side, asking in ASKS.items():
        good = shape(name, asking)
        places = [place for place in every_place(good.answers) if len(place) > 1]
        for place in chance.sample(places, min(40, len(places))):
            answer = await desk(name, changed(good.answers, place, chance.choice(JUNK)), asking)
            if isinstance(answer, RivalSilent):
                assert reasoned(answer) != "fault", (place, answer)
            else:
                assert (answer.tx.to, answer.tx.value_wei) == (ROUTER, asking.spend_wei) and 0 < answer.out_raw < 2**128, (side, place)
                assert all(name.isprintable() and len(name) <= 40 for name in answer.via)


# --- makers' inventory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", ["hashflow-v3", "native-v1", "bebop", "Rialto", "RIALTO", "0x_RFQ", "kyberswap-limit-order-v2", "ONE_INCH_LIMIT_ORDER_V4", "PMM11", "lifiIntentsDex", "arcus"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "uniswap"])
async def test_a_makers_inventory_is_tagged(desk, name, maker):
    good = shape(name, BUY)
    for place in good.places["source"]:
        row = await desk(name, changed(good.answers, place, maker))
        assert isinstance(row, RivalQuote) and row.rfq, place


@pytest.mark.parametrize("pool", ["uniswap-v4", "UNISWAP_V3", "pancake-v3", "thena-fusion", "SushiSwapV3", "curve-stable-ng", "Fly", "ekubo-v3", "algebra-integral"])
def test_a_pool_is_no_inventory(pool):
    assert not is_inventory(pool)


@pytest.mark.parametrize(("name", "at"), [("sushi", ("/quote/v7/4663", "visualization")), ("relay", ("/quote/v2", "details", "route")), ("1inch", ("/swap/v6.1/4663/swap", "protocols")), ("okx", ("/api/v6/dex/aggregator/swap", "data", 0, "routerResult", "dexRouterList"))])
async def test_sources_that_nobody_names_are_taken_for_inventory(desk, name, at):
    row = await desk(name, without(shape(name, BUY).answers, at))
    assert isinstance(row, RivalQuote) and row.rfq and row.via == ()


async def test_a_maker_behind_many_names_is_still_seen(desk):
    good = shape("0x", BUY)
    fills = [{"source": f"pool {at}"} for at in range(100)] + [{"source": "Bebop"}]
    row = await desk("0x", changed(good.answers, ("/swap/allowance-holder/quote", "route", "fills"), fills))
    assert row.rfq and len(row.via) == VIA_MAX


async def test_names_are_made_plain(desk):
    good = shape("0x", BUY)
    (place,) = good.places["source"]
    row = await desk("0x", changed(good.answers, place, "\x1b[2J\u202eevil\x00\n" + "z" * 500))
    assert row.via[0].isprintable() and len(row.via[0]) == 40


@pytest.mark.parametrize("routing", ["DUTCH_V3", "PRIORITY", "WRAP", None, 5])
async def test_uniswap_is_believed_only_about_pools(served, desk, routing):
    assert reasoned(await desk("uniswap", changed(shape("uniswap", BUY).answers, ("/quote", "routing"), routing))) == "firm_quote"
    assert served.paths() == ["/quote"]


async def test_what_waits_for_a_signature_is_refused(desk):
    permit = {"domain": {}, "values": {}}
    assert reasoned(await desk("uniswap", changed(shape("uniswap", SELL).answers, ("/quote", "permitData"), permit), SELL)) == "firm_quote"
    assert reasoned(await desk("relay", changed(shape("relay", BUY).answers, ("/quote/v2", "steps", 0, "kind"), "signature"))) == "firm_quote"


async def test_relays_deposit_is_a_solvers_stock(desk):
    row = await desk("relay", changed(shape("relay", BUY).answers, ("/quote/v2", "steps", 0, "id"), "deposit"))
    assert row.rfq


async def test_two_transactions_are_not_one(desk):
    good = shape("relay", BUY)
    steps = good.answers["/quote/v2"]["steps"] * 2
    assert reasoned(await desk("relay", changed(good.answers, ("/quote/v2", "steps"), steps))) == "bad_answer"


# --- saying no ------------------------------------------------------------------------------------------------------

NO: list[tuple[str, int, Any, str]] = [
    ("kyberswap", 400, {"code": 4008, "message": "route not found"}, "no_route"), ("kyberswap", 400, {"code": 4010, "message": "x"}, "no_route"),
    ("kyberswap", 404, {"code": 4011, "message": "token not found"}, "no_route"), ("kyberswap", 400, {"code": 4001, "message": "bad"}, "http_400"),
    ("kyberswap", 422, {"code": 4221, "message": "weth not found"}, "http_422"), ("kyberswap", 503, {"code": 50301, "message": "overloaded"}, "http_503"),
    ("kyberswap", 200, {"code": 4005, "message": "x"}, "refused"), ("kyberswap", 200, {"code": "0", "data": {}}, "refused"), ("kyberswap", 404, "not found", "http_404"),
    ("lifi", 404, {"message": "No available quotes", "code": 1002, "errors": []}, "no_route"), ("lifi", 400, {"message": "bad", "code": 1011}, "http_400"),
    ("lifi", 429, {"message": "too many", "code": 1005}, "rate_limited"), ("lifi", 400, {"message": "too many", "code": 1005}, "rate_limited"),
    ("sushi", 200, {"status": "NoWay"}, "no_route"), ("sushi", 200, {**shape("sushi", BUY).answers["/swap/v7/4663"], "status": "Partial"}, "wrong_amount"),
    ("sushi", 422, {"code": "422-04", "detail": "allowance"}, "http_422"), ("sushi", 404, {"type": "https://docs.sushi.com/api/errors/no-route-found"}, "no_route"),
    ("sushi", 200, {"status": "Great"}, "bad_answer"),
    ("relay", 400, {"message": "x", "errorCode": "NO_SWAP_ROUTES_FOUND"}, "no_route"), ("relay", 400, {"message": "x", "errorCode": "AMOUNT_TOO_LOW"}, "no_route"),
    ("relay", 400, {"message": "x", "errorCode": "CHAIN_DISABLED"}, "http_400"), ("relay", 503, {"errorCode": "SERVICE_UNAVAILABLE"}, "http_503"),
    ("openocean", 200, {"code": 500, "error": "boom"}, "refused"), ("openocean", 200, {"code": 400, "message": "No available liquidity"}, "no_route"),
    ("openocean", 403, "<html>blocked</html>", "http_403"), ("openocean", 200, {"code": True, "data": {}}, "refused"),
    ("0x", 200, {"liquidityAvailable": False, "zid": "0x1"}, "no_route"), ("0x", 400, {"name": "INPUT_INVALID", "message": "The input is invalid"}, "http_400"),
    ("0x", 401, {"message": "Unauthorized"}, "http_401"), ("0x", 422, {"name": "TOKEN_NOT_SUPPORTED"}, "token_not_supported"), ("0x", 400, {"name": ["x"]}, "http_400"),
    ("uniswap", 404, {"errorCode": "ResourceNotFound", "detail": "No quotes available"}, "no_route"), ("uniswap", 404, "nothing", "http_404"),
    ("uniswap", 400, {"errorCode": "RequestValidationError", "detail": "x"}, "http_400"), ("uniswap", 403, "error code: 1010", "http_403"),
    ("1inch", 400, {"error": "Bad Request", "description": "insufficient liquidity", "statusCode": 400}, "no_route"),
    ("1inch", 400, {"description": "Not enough 0xa1 balance"}, "http_400"), ("1inch", 401, {"error": "Unauthorized"}, "http_401"),
    ("okx", 200, {"code": "82000", "msg": "Insufficient liquidity", "data": []}, "no_route"), ("okx", 200, {"code": "50011", "msg": "Too Many Requests"}, "rate_limited"),
    ("okx", 401, {"code": "50113", "msg": "Invalid Sign"}, "http_401"), ("okx", 200, {"code": "82105", "msg": "chain"}, "refused"), ("okx", 200, {"code": 0, "data": [{}]}, "refused"),
    ("okx", 200, {"code": "0", "data": []}, "bad_answer"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "reason"), NO, ids=[f"{name}-{status}-{reason}-{at}" for at, (name, status, _, reason) in enumerate(NO)])
async def test_every_documented_no_has_its_word(served, desk, name, status, body, reason):
    text = body if isinstance(body, str) else json.dumps(body)
    served.instead = lambda request: web.Response(status=status, text=text, content_type="text/html" if text.startswith("<") else "application/json")
    assert reasoned(await desk(name, None)) == reason


@pytest.mark.parametrize("name", KEYED)
async def test_without_its_key_a_rival_is_not_asked(served, desk, name):
    answer = await desk(name, dict(shape(name, BUY).answers), BUY, {})
    assert reasoned(answer) == "no_key" and "REFEREE_KEY_" in answer.detail and served.asked == []


@pytest.mark.parametrize("name", MAYBE_KEYED)
async def test_a_key_that_is_optional_is_not_needed(desk, name):
    assert isinstance(await desk(name, dict(shape(name, BUY).answers), BUY, {}), RivalQuote)


# --- keys -----------------------------------------------------------------------------------------------------------

ECHOES: list[Callable[[str], str]] = [
    lambda key: key, lambda key: f"bad key {key}!", str.upper, lambda key: " ".join(key), lambda key: "\u200b".join(key), lambda key: f"…{key[-9:]}", lambda key: f"\x1b[1m{key}",
    lambda key: key.replace("-", "_"), lambda key: f'{{"headers": {{"x-api-key": "{key}"}}}}',
]  # fmt: skip


@pytest.mark.parametrize("name", [*KEYED, *MAYBE_KEYED])
async def test_a_key_that_comes_back_is_never_told(served, desk, name):
    keys = [key for owner, key in KEYS.items() if owner.startswith(name)]
    assert keys
    for status in (400, 401, 500, 200):
        for key in keys:
            for echo in ECHOES:
                words = echo(key)
                body = {part: words for part in ("message", "msg", "detail", "description", "error", "name", "type", "errorCode", "code", "status")}
                served.instead = lambda request, body=body, status=status: web.Response(status=status, text=json.dumps(body), content_type="application/json")
                said = repr(await desk(name, None)).lower()
                letters = "".join(character for character in said if character.isalnum())
                inside = "".join(character for character in key.lower() if character.isalnum())
                assert not any(inside[at : at + 8] in letters for at in range(len(inside) - 7)), said


def test_a_rival_does_not_show_its_keys():
    shown = repr(rivals_named(NAMES, "robinhood", KEYS))
    assert all(key not in shown for key in KEYS.values())


# --- faults ---------------------------------------------------------------------------------------------------------


async def _dripping(request: web.BaseRequest) -> web.StreamResponse:
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    await reply.prepare(request)
    for _ in range(20):
        await reply.write(b" " * ANSWER_BYTES_MAX)
    return reply


FAULTS: list[tuple[str, Callable[[web.BaseRequest], Any], str]] = [
    *((f"status {status}", lambda request, status=status: web.Response(status=status, text="no"), f"http_{status}") for status in (201, 401, 403, 404, 422, 500, 502, 503)),
    ("429", lambda request: web.Response(status=429), "rate_limited"),
    ("html", lambda request: web.Response(text="  <!doctype html><html>Just a moment…</html>", content_type="text/html"), "html"),
    ("text", lambda request: web.Response(text="error code: 1010"), "bad_answer"),
    ("empty", lambda request: web.Response(), "bad_answer"),
    ("truncated", lambda request: web.Response(text='{"code":0,"data":{"routeSum'), "bad_answer"),
    ("redirect loop", lambda request: web.Response(status=302, headers={"Location": str(request.url)}), "redirect"),
    ("redirect inwards", lambda request: web.Response(status=307, headers={"Location": "http://127.0.0.1:9/"}), "redirect"),
    ("ten megabytes", lambda request: web.Response(body=b"[" + b" " * 10 * 2**20 + b"]"), "too_long"),
    ("endless", _dripping, "too_long"),
    ("deep", lambda request: web.Response(text="[" * 100_000 + "]" * 100_000), "bad_answer"),
    ("packed", lambda request: web.Response(body=b"{}", headers={"Content-Encoding": "gzip"}), "bad_answer"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "answer", "reason"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
@pytest.mark.parametrize("name", NAMES)
async def test_a_broken_answer_costs_the_row(served, desk, name, fault, answer, reason):
    served.instead = answer
    assert reasoned(await desk(name, None)) == reason


@pytest.mark.parametrize("document", [None, [], {}, "text", 5, [[]], {"data": None}, {"data": []}, {"code": 0, "data": {}}, {"code": "0", "data": [None]}], ids=range(10))
@pytest.mark.parametrize("name", NAMES)
async def test_a_document_of_another_shape_costs_the_row(served, desk, name, document):
    served.instead = lambda request: web.Response(text=json.dumps(document), content_type="application/json")
    for asking in (BUY, SELL):
        assert reasoned(await desk(name, None, asking)) in ("bad_answer", "refused", "firm_quote")


@pytest.mark.parametrize(("name", "at"), [("kyberswap", ("/api/v1/routes", "data", "routeSummary", "extraFee")), ("uniswap", ("/quote", "quote", "route"))])
async def test_what_is_sent_back_may_be_of_any_depth(desk, name, at):
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    assert reasoned(await desk(name, changed(shape(name, BUY).answers, at, deep))) == "bad_answer"


async def test_a_connection_that_breaks_costs_the_row(served, desk):
    served.instead = lambda request: request.transport.close() or web.Response()
    for name in NAMES:
        assert reasoned(await desk(name, None)) == "dead"


async def test_no_cookie_is_kept(served, desk):
    served.instead = lambda request: web.Response(status=500, headers={"Set-Cookie": "id=1"})
    rivals = Rivals(rivals_named(["relay"], "robinhood", {}, {"relay": served.base}), SystemClock())
    for _ in range(2):
        await rivals.ask(BUY)
    assert all("Cookie" not in headers for _, _, headers, _ in served.asked)
    await rivals.close()


# --- side by side ---------------------------------------------------------------------------------------------------


class Played:
    """A rival that does what a test says."""

    base_url, limits, secrets = "http://127.0.0.1:9", (Limit(100, 1_000),), ()

    def __init__(self, name: str, act: Callable[[], Any]) -> None:
        self.name, self._act = name, act

    async def offer(self, door, ask):
        answer = self._act()
        return await answer if asyncio.iscoroutine(answer) else answer


async def _raise(error: BaseException) -> None:
    raise error


async def test_whatever_one_rival_does_the_others_answer_in_their_order(served):
    served.answers = {path: answer for name in ("kyberswap", "0x") for path, answer in shape(name, BUY).answers.items()}
    kyber, zerox = rivals_named(["kyberswap", "0x"], "robinhood", KEYS, {"kyberswap": served.base, "0x": served.base})
    odd = [
        Played("raises", lambda: _raise(RecursionError())), Played("asserts", lambda: _raise(AssertionError("key"))), Played("cancels", lambda: _raise(asyncio.CancelledError())),
        Played("hangs", lambda: served.hung.wait()), Played("clings", lambda: _clinging(served.hung)), Played("wrong", lambda: None), Played("silent", lambda: _raise(Silence("no_route", "x"))),
    ]  # fmt: skip
    rivals = Rivals([kyber, *odd, zerox], SystemClock())
    answers = await rivals.ask(replace(BUY, deadline_ms=400))
    assert [answer.source for answer in answers] == list(rivals.names)
    assert isinstance(answers[0], RivalQuote) and isinstance(answers[-1], RivalQuote)
    assert [answer.reason for answer in answers[1:-1]] == ["fault", "fault", "slow", "slow", "slow", "fault", "no_route"]
    assert "key" not in answers[2].detail
    await rivals.close()


async def _clinging(let_go: asyncio.Event) -> None:
    """Ignores being told to stop."""
    while not let_go.is_set():
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            continue


async def test_rivals_that_are_slow_are_cut_together(served):
    async def hang(request: web.BaseRequest) -> web.Response:
        await served.hung.wait()
        return web.Response()

    served.instead = hang
    rivals = Rivals(rivals_named(NAMES, "robinhood", KEYS, dict.fromkeys(NAMES, served.base)), SystemClock())
    answers = await rivals.ask(replace(BUY, deadline_ms=300))
    assert [reasoned(answer) for answer in answers] == ["slow"] * len(NAMES)
    await rivals.close()


async def test_a_body_that_drips_is_cut_at_the_deadline(served):
    async def drip(request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "application/json"})
        await reply.prepare(request)
        await reply.write(b'{"code":')
        await served.hung.wait()
        return reply

    served.instead = drip
    rivals = Rivals(rivals_named(NAMES, "robinhood", KEYS, dict.fromkeys(NAMES, served.base)), SystemClock())
    assert [reasoned(answer) for answer in await rivals.ask(replace(BUY, deadline_ms=300))] == ["slow"] * len(NAMES)
    await rivals.close()


async def test_nobody_to_ask_is_no_answer():
    rivals = Rivals((), SystemClock())
    assert await rivals.ask(BUY) == () and rivals.names == ()
    await rivals.close()


async def test_an_answer_tells_when_it_came(served):
    clock = VirtualClock()
    served.answers = dict(shape("0x", BUY).answers)
    rivals = Rivals(rivals_named(["0x"], "robinhood", KEYS, {"0x": served.base}), clock)
    (row,) = await rivals.ask(BUY)
    assert (row.answered_ts_ms, row.latency_ms) == (clock.now_ms(), 0)
    await rivals.close()


# --- budgets --------------------------------------------------------------------------------------------------------

WAIT_MS_MAX = 1_000


def test_where_there_is_no_budget_everything_is_sent():
    budget = Budget((), VirtualClock())
    assert [budget.take(requests) for requests in (2, 9, 1)] == [0, 0, 0]


def test_a_question_that_comes_too_early_is_not_sent():
    budget = Budget((Limit(3, 1_000),), VirtualClock())
    assert [budget.take(requests) for requests in (2, 2, 1, 1)] == [0, None, 0, None]


def test_where_it_may_wait_it_waits_in_its_order_and_no_longer():
    budget = Budget((Limit(3, 1_000),), VirtualClock(), WAIT_MS_MAX)
    assert [budget.take(requests) for requests in (2, 2, 1, 2, 4)] == [0, 1_000, 1_000, None, None]


async def test_requests_are_told_apart_to_the_millisecond():
    clock = VirtualClock()
    budget, sent, begun_ms = Budget((Limit(1, 1_000), Limit(2, 5_000)), clock, WAIT_MS_MAX), [], clock.now_ms()
    for wait_ms in (0, 1, 0, 1_000, 2_998, 1, 1):
        await clock.advance_to(clock.now_ms() + wait_ms)
        taken = budget.take(1)
        sent.append(None if taken is None else clock.now_ms() + taken - begun_ms)
    assert sent == [0, 1_000, None, None, None, 5_000, None]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 700), st.integers(1, 3)), max_size=40))
def test_no_more_than_the_budget_is_ever_sent(steps):
    limits = (Limit(3, 1_000), Limit(7, 4_000))
    sent = asyncio.run(_sent(limits, steps))
    assert sent == sorted(sent)
    assert all(sum(at_ms - limit.per_ms < each <= at_ms for each in sent) <= limit.requests for limit in limits for at_ms in sent)


async def _sent(limits: tuple[Limit, ...], steps: list[tuple[int, int]]) -> list[int]:
    """When requests are sent that come so many milliseconds after each other, so many at once."""
    clock, sent = VirtualClock(), []
    budget = Budget(limits, clock, WAIT_MS_MAX)
    for wait_ms, requests in steps:
        await clock.advance_to(clock.now_ms() + wait_ms)
        taken = budget.take(requests)
        assert taken is None or 0 <= taken <= WAIT_MS_MAX
        sent += [] if taken is None else [clock.monotonic_ms() + taken] * requests
    return sent


@pytest.mark.parametrize(("said_ms", "wait_ms"), [(None, BACK_OFF_MS), (0, 0), (30_000, 30_000), (10**12, BACK_OFF_MS_MAX), (-5, 0)])
async def test_a_rival_is_left_alone_as_long_as_it_says(said_ms, wait_ms):
    clock = VirtualClock()
    budget = Budget((Limit(9, 1),), clock)
    budget.back_off(said_ms)
    if wait_ms:
        await clock.advance_to(clock.now_ms() + wait_ms - 1)
        assert budget.take(1) is None
        await clock.advance_to(clock.now_ms() + 1)
    assert budget.take(1) == 0


async def test_a_budget_that_is_used_up_is_not_asked_for(served):
    clock = VirtualClock()
    served.answers = dict(shape("lifi", BUY).answers)
    rivals = Rivals(rivals_named(["lifi"], "robinhood", {}, {"lifi": served.base}), clock)
    for _ in range(75):
        assert isinstance((await rivals.ask(BUY))[0], RivalQuote)
    assert reasoned((await rivals.ask(BUY))[0]) == "rate_limited" and len(served.asked) == 75
    await clock.advance_to(clock.now_ms() + 7_200_000)
    assert isinstance((await rivals.ask(BUY))[0], RivalQuote)
    await rivals.close()


async def test_orders_of_one_second_take_turns_where_they_may_wait(served):
    clock = VirtualClock()
    served.answers = dict(shape("kyberswap", BUY).answers)
    rivals = Rivals(rivals_named(["kyberswap"], "robinhood", {}, {"kyberswap": served.base}), clock, wait_ms_max=WAIT_MS_MAX)
    assert isinstance((await rivals.ask(BUY))[0], RivalQuote)
    second, third = asyncio.ensure_future(rivals.ask(BUY)), asyncio.ensure_future(rivals.ask(BUY))
    await asyncio.wait([third])
    assert reasoned(third.result()[0]) == "rate_limited" and len(served.asked) == 2
    await clock.advance_to(clock.now_ms() + 1_000)
    assert isinstance((await second)[0], RivalQuote) and len(served.asked) == 4
    await rivals.close()


async def test_an_order_that_may_not_wait_is_not_sent(served):
    clock = VirtualClock()
    served.answers = dict(shape("kyberswap", BUY).answers)
    rivals = Rivals(rivals_named(["kyberswap"], "robinhood", {}, {"kyberswap": served.base}), clock)
    said = []
    for wait_ms in (0, 0, 1_000):
        await clock.advance_to(clock.now_ms() + wait_ms)
        (answer,) = await rivals.ask(BUY)
        said.append((getattr(answer, "reason", "row"), len(served.asked)))
    assert said == [("row", 2), ("rate_limited", 2), ("row", 4)]
    await rivals.close()


@pytest.mark.parametrize(("headers", "wait_s"), [({"Retry-After": "30"}, 30), ({}, 10), ({"Retry-After": "soon"}, 10), ({"Retry-After": "-1"}, 10), ({"ratelimit-reset": "44"}, 44), ({"Retry-After": "9" * 9}, 3_600)])
async def test_a_rival_that_says_too_many_is_left_alone(served, headers, wait_s):
    clock = VirtualClock()
    served.instead = lambda request: web.Response(status=429, headers=headers)
    rivals = Rivals(rivals_named(["relay"], "robinhood", {}, {"relay": served.base}), clock)
    for wait_ms, asked in ((0, 1), (wait_s * 1_000 - 1, 1), (1, 2)):
        await clock.advance_to(clock.now_ms() + wait_ms)
        assert reasoned((await rivals.ask(BUY))[0]) == "rate_limited" and len(served.asked) == asked
    await rivals.close()


# --- by name --------------------------------------------------------------------------------------------------------


def test_all_means_those_that_can_be_asked():
    assert [rival.name for rival in rivals_named(["all"], "robinhood", {"0x": "k"})] == ["kyberswap", "lifi", "sushi", "relay", "openocean", "0x"]
    assert [rival.name for rival in rivals_named(["all"], "devnet", {}, {"kyberswap": "http://127.0.0.1:1"})] == ["kyberswap"]
    assert rivals_named(["none"], "robinhood", {}) == () and rivals_named([], "robinhood", {}) == ()


def test_budgets_are_those_of_the_public_interfaces():
    own = dict.fromkeys(NAMES, "http://127.0.0.1:1")
    assert all(rival.limits for rival in rivals_named(NAMES, "robinhood", KEYS, own))
    assert not any(rival.limits for rival in rivals_named(NAMES, "devnet", KEYS, own))
    (keyless,), (keyed,) = (rivals_named(["lifi"], "robinhood", keys) for keys in ({}, KEYS))
    assert keyless.limits == (Limit(75, 7_200_000),) and keyed.limits[0] == Limit(100, 60_000)


def test_a_rival_that_is_named_is_asked_once_even_without_its_key():
    assert [rival.name for rival in rivals_named(["okx", "0x", "okx"], "robinhood", {})] == ["okx", "0x"]


@pytest.mark.parametrize(("names", "network", "says"), [(["kyberswap", "matcha"], "robinhood", "no rival named 'matcha'"), (["all", "0x"], "robinhood", "no rival named 'all'"), (["0x"], "devnet", "rival 0x does not know the network devnet")])
def test_a_name_that_nobody_has_is_said(names, network, says):
    with pytest.raises(ValueError, match=says):
        rivals_named(names, network, {})


def test_every_public_address_is_https():
    assert all(rival.base_url.startswith("https://") for rival in rivals_named(NAMES, "robinhood", {}))


def test_every_place_of_a_lie_stands_in_its_answer():
    for name in NAMES:
        for side, asking in ASKS.items():
            good = shape(name, asking)
            for places in good.facts(side).values():
                for place in places:
                    assert _at(good.answers, place) is not None


def _at(document: Any, place: Path) -> Any:
    for name in place:
        document = document[name]
    return document


@pytest.mark.live
async def test_live_rivals_without_a_key_quote_dollars_for_ether():
    network = load_network("robinhood")
    ask = replace(BUY, token=network.usdg, token_decimals=6, amount=10**16, weth=network.weth, now_s=SystemClock().now_ms() // 1_000, deadline_ms=20_000)
    rivals = Rivals(rivals_named(["all"], "robinhood", {}), SystemClock())
    answers = await rivals.ask(ask)
    await rivals.close()
    assert any(isinstance(answer, RivalQuote) for answer in answers), answers
    assert all(isinstance(answer, RivalQuote) or answer.reason not in ("fault", "bad_answer") for answer in answers), answers
