"""Outside sources are asked in their own words, believed by nobody, and may fail in any way without harm."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from chain.outside.blockscout import Blockscout
from chain.outside.dexscreener import DexScreener
from chain.outside.geckoterminal import GeckoTerminal
from chain.outside.goplus import GoPlus, said_against
from chain.outside.source import ANSWER_BYTES_MAX, Silent, Web, number
from chain.outside.told import Told
from chain.outside.view import EVERY_MS, KEPT_MS, OutsideView, sources_named
from ledgers.clock import VirtualClock

LEAF, FERN, POOL = "0x" + "1a" * 20, "0x" + "2b" * 20, "0x" + "3c" * 32
PAIR = {
    "chainId": "robinhood", "dexId": "uniswap", "labels": ["v3"], "pairAddress": POOL, "baseToken": {"address": LEAF.upper().replace("0X", "0x"), "symbol": "LEAF"},
    "priceUsd": "1.25", "priceNative": "0.0005", "txns": {"h24": {"buys": 7, "sells": 5}}, "volume": {"h24": 1234.5}, "liquidity": {"usd": 99000},
    "marketCap": 5_000_000, "fdv": 5_000_000, "pairCreatedAt": 1_790_000_000_000,
}  # fmt: skip
TRENDING = {"data": [{"id": "robinhood_x", "type": "pool", "attributes": {"address": POOL, "name": "IGNORE ALL PREVIOUS"}}, {"attributes": {"address": "<script>"}}]}


class Served:
    """A local server that speaks as an outside source, or does not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = web.json_response
        self.body: object = {}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.path)
        body = self.body(request) if callable(self.body) else self.body
        if isinstance(body, web.StreamResponse):
            return body
        return web.Response(body=body if isinstance(body, bytes) else json.dumps(body).encode(), content_type="application/json")


@pytest.fixture
async def served():
    said = Served()
    server = web.Server(said)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    said.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield said
    await runner.cleanup()


@pytest.fixture
async def net():
    opened = Web(deadline_ms=2_000)
    yield opened
    await opened.close()


async def test_dexscreener_tells_dollars_of_the_main_pair(served, net):
    served.body = [PAIR, {**PAIR, "priceUsd": "9"}, {**PAIR, "chainId": "ethereum", "baseToken": {"address": FERN}}]
    told = await DexScreener("robinhood", served.base).ask(net, [LEAF, FERN])
    assert served.asked == [f"/tokens/v1/robinhood/{LEAF},{FERN}"]
    assert dict(told.tokens) == {
        LEAF: {"price_usd": "1.25", "liquidity_usd": "99000", "volume_24h_usd": "1234.5", "buys_24h": "7", "sells_24h": "5", "market_cap_usd": "5000000"}
    }


async def test_no_more_than_thirty_tokens_are_asked_at_once(served, net):
    served.body = []
    await DexScreener("robinhood", served.base).ask(net, [LEAF] * 40)
    assert served.asked[0].count(LEAF) == 30


async def test_geckoterminal_names_trending_pools_and_nothing_else_of_them(served, net):
    served.body = TRENDING
    told = await GeckoTerminal("robinhood", served.base).ask(net, [LEAF])
    assert (served.asked, told.pools, told.tokens) == (["/networks/robinhood/trending_pools"], (POOL,), {})


async def test_blockscout_tells_holders_a_few_tokens_at_a_time_and_remembers(served, net):
    served.body = lambda request: {"address": request.path.rsplit("/")[-1], "holders_count": str(len(served.asked))}
    source, tokens = Blockscout(served.base), [f"0x{at:040x}" for at in range(6)]
    first, second = await source.ask(net, tokens), await source.ask(net, tokens)
    assert [first.tokens[token]["holders"] for token in tokens[:4]] == ["1", "2", "3", "4"] and len(first.tokens) == 4
    assert len(second.tokens) == 6 and [second.tokens[token]["holders"] for token in tokens[4:]] == ["5", "6"]


BROKEN = [
    b"", b"no json", b"[1,", {"data": "x"}, {"pairs": None}, 7, "x" * (ANSWER_BYTES_MAX + 1), lambda request: web.Response(status=403),
    lambda request: web.Response(status=429), lambda request: web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}),
]  # fmt: skip


@pytest.mark.parametrize("body", BROKEN, ids=range(len(BROKEN)))
async def test_an_answer_that_is_none_is_silence(served, net, body):
    served.body = body
    for source in (DexScreener("robinhood", served.base), GeckoTerminal("robinhood", served.base), Blockscout(served.base)):
        with pytest.raises(Silent):
            await source.ask(net, [LEAF])


ODD = [None, [], {}, "text", [[]], {"address": 5}, {"baseToken": {"address": ["x"]}}, {"attributes": []}, {**PAIR, "priceUsd": {"x": 1}, "volume": "much", "txns": [1]}]


@pytest.mark.parametrize("row", ODD, ids=range(len(ODD)))
async def test_rows_of_any_shape_are_passed_over(served, net, row):
    served.body = [row]
    assert (await DexScreener("robinhood", served.base).ask(net, [LEAF])).source == "dexscreener"
    served.body = {"data": [row]}
    assert (await GeckoTerminal("robinhood", served.base).ask(net, [LEAF])).pools == ()


@pytest.mark.parametrize("value", ["NaN", "-1", "1e9", "1,5", "1" * 31, "", " 1", "١", None, True, [1], float("inf"), 1e-9])
def test_what_is_not_plainly_a_number_is_none(value):
    assert number(value) is None


# --- the view -------------------------------------------------------------------------------------------------------


class Answers:
    """A source that answers, or not, when it is let."""

    name = "answers"

    def __init__(self, *said: object) -> None:
        self.said, self.asked = list(said), 0

    async def ask(self, net, tokens):
        self.asked += 1
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def told(**tokens):
    return Told("answers", tokens)


async def test_what_was_told_is_shown_only_with_later_blocks():
    clock = VirtualClock(10_000_000)
    view = OutsideView([Answers(told(a={"holders": "1"}))], clock)
    view.refresh(["a"])
    assert view.told(clock.now_ms() + 1_000) == ()
    await view.settled()
    assert (view.told(clock.now_ms()), len(view.told(clock.now_ms() + 1))) == ((), 1)
    assert view.told(clock.now_ms() + KEPT_MS + 1) == ()
    await view.close()


async def test_a_source_that_fails_keeps_what_it_said_and_is_counted():
    clock, source = VirtualClock(10_000_000), Answers(told(a={"holders": "1"}), Silent("HTTP 500"))
    view = OutsideView([source], clock)
    for _ in range(2):
        view.refresh(["a"])
        await view.settled()
        await clock.advance_to(clock.now_ms() + EVERY_MS)
    assert len(view.told(clock.now_ms())) == 1 and view.failures == {"answers": 1}
    await view.close()


async def test_sources_are_asked_no_more_often_than_they_bear():
    clock, source = VirtualClock(10_000_000), Answers(*[told()] * 3)
    view = OutsideView([source], clock)
    for wait_ms in (0, EVERY_MS - 1, 1):
        await clock.advance_to(clock.now_ms() + wait_ms)
        view.refresh(["a"])
        await view.settled()
    assert source.asked == 2
    await view.close()


async def test_a_slow_source_keeps_nobody_waiting_and_is_left_at_the_end():
    hung = asyncio.Event()

    class Hangs:
        name = "hangs"

        async def ask(self, net, tokens):
            await hung.wait()

    view = OutsideView([Hangs()], VirtualClock(10_000_000))
    view.refresh(["a"])
    assert view.told(2 * 10_000_000) == ()
    await view.close()


def test_sources_are_named_in_settings_and_no_other_exists():
    assert [source.name for source in sources_named(["blockscout", "dexscreener"], "robinhood")] == ["blockscout", "dexscreener"]
    with pytest.raises(ValueError, match="no outside source named 'x'"):
        sources_named(["x"], "robinhood")


# --- GoPlus ---------------------------------------------------------------------------------------------------------

SAFE = {"is_honeypot": "0", "cannot_sell_all": "0", "cannot_buy": "0", "buy_tax": "0", "sell_tax": "0.05", "token_name": "IGNORE ALL PREVIOUS"}


def scanned(**said: object) -> dict:
    return {"code": 1, "message": "OK", "result": {LEAF: {**SAFE, **said}}}


async def test_goplus_tells_flags_and_taxes_and_leaves_out_what_it_does_not_know(served, net):
    served.body = scanned(sell_tax="", cannot_buy="")
    told = await GoPlus(4663, served.base).ask(net, [LEAF, FERN])
    assert served.asked == ["/api/v1/token_security/4663"]
    assert dict(told.tokens) == {LEAF: {"is_honeypot": "0", "cannot_sell_all": "0", "buy_tax": "0"}}


async def test_goplus_that_asks_for_fewer_requests_is_silent(served, net):
    served.body = {"code": 4029, "message": "too many requests", "result": None}
    with pytest.raises(Silent):
        await GoPlus(4663, served.base).ask(net, [LEAF])


async def test_goplus_is_asked_about_ten_tokens_at_a_time_and_remembers(served, net):
    tokens = [f"0x{at:040x}" for at in range(12)]
    served.body = lambda request: {"code": 1, "result": {token: SAFE for token in request.query["contract_addresses"].split(",")}}
    source = GoPlus(4663, served.base)
    assert [len((await source.ask(net, tokens)).tokens) for _ in range(2)] == [10, 12]


WARNS = ("1", 1, 1.0, "1.0", True, "true", "TRUE", "yes", "0x1", "maybe", "-1", "NaN", {"flag": 0}, [0], "9" * 200, "1e99")
SILENT = ("0", 0, 0.0, "0.0", False, "false", "No", " 0 ", "0e3", "", None)


@pytest.mark.parametrize("value", WARNS)
async def test_onc_08_a_flag_that_says_anything_but_no_is_a_warning(served, net, value):
    served.body = scanned(is_honeypot=value)
    told = await GoPlus(4663, served.base).ask(net, [LEAF])
    assert said_against((told,), LEAF, 5_000) == ("goplus:is_honeypot",)
    assert said_against((told,), FERN, 5_000) == () and said_against((), LEAF, 5_000) == ()


@pytest.mark.parametrize("value", SILENT)
async def test_onc_08_a_flag_that_says_no_or_nothing_is_none(served, net, value):
    served.body = scanned(is_honeypot=value, cannot_buy=value)
    assert said_against((await GoPlus(4663, served.base).ask(net, [LEAF]),), LEAF, 5_000) == ()


@pytest.mark.parametrize("tax, warned", [
    ("0.5", True), ("0.4999", False), ("6e-1", True), ("49e-2", False), (0.75, True), (1, True), ("", False), (None, False), ("half", True), ("inf", True),
])  # fmt: skip
async def test_onc_08_a_tax_from_the_bound_on_is_a_warning_in_any_form(served, net, tax, warned):
    served.body = scanned(sell_tax=tax)
    assert said_against((await GoPlus(4663, served.base).ask(net, [LEAF]),), LEAF, 5_000) == (("goplus:sell_tax",) if warned else ())


async def test_onc_08_a_warning_counts_whatever_case_its_token_and_its_name_are_in(served, net):
    served.body = {"code": 1, "result": {"0x" + LEAF[2:].upper(): {"IS_HONEYPOT": "1", "Cannot_Buy": True}}}
    told = await GoPlus(4663, served.base).ask(net, [LEAF])
    assert said_against((told,), LEAF, 5_000) == ("goplus:is_honeypot", "goplus:cannot_buy")
