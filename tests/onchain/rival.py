"""A rival: a real HTTP server in KyberSwap's wire shapes over the real local chain, which answers well or lies as it is told.

Its router is a contract that does whatever its calldata lists, so that a test can let it trade, steal, keep or pay from
stock. Nothing of it is believed by anybody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from chain import calldata
from chain.aggregators.kyber import KyberSwap
from chain.aggregators.rivals import Rivals
from chain.devnet.devnet import Devnet
from chain.pools import PoolGraph
from chain.router import Route, buy_routes, sell_routes
from ledgers.clock import Clock, SystemClock
from tests.onchain.ground import WALLET, Ground

ROUTER = "0x000000000000000000000000000000000e8ec001"
CHOOSY = "0x000000000000000000000000000000000e8ec002"
THIEF = "0x00000000000000000000000000000000007417ef"
NATIVE = "0x" + "ee" * 20


def does_all(only: str = "") -> str:
    """Code that makes each call of its calldata: 20 bytes target, 32 value, 32 length, the data; `only` is who alone may ask."""
    guard = f"73{only[2:]}331415 61FAIL 57" if only else ""
    code = f"""{guard} 5f
    5b 80 36 11 15 61DONE 57
    80 6034 01 35
    80 82 6054 01 5f 37
    5f 5f 82 5f 85 6014 01 35 86 35 6060 1c 5a f1
    15 61FAIL 57
    01 6054 01 61LOOP 56
    5b 00
    5b 5f 5f fd""".replace(" ", "").replace("\n", "")
    size = len(code) // 2
    for word, at in {"FAIL": size - 4, "DONE": size - 6, "LOOP": 29 if only else 1}.items():
        code = code.replace(word, f"{at:04x}")
    return "0x" + code


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the rival's router makes."""

    to: str
    data: str
    value_wei: int = 0


def listed(calls: Sequence[Call]) -> str:
    """Calldata of the rival's router."""
    return "0x" + "".join(call.to[2:] + calldata.word(call.value_wei) + calldata.word(len(call.data) // 2 - 1) + call.data[2:] for call in calls)


def moves(token: str, sender: str, to: str, amount: int) -> Call:
    """`transferFrom`."""
    return Call(token, "0x23b872dd" + calldata.address_word(sender) + calldata.address_word(to) + calldata.word(amount))


def gives(token: str, to: str, amount: int) -> Call:
    """`transfer`."""
    return Call(token, "0xa9059cbb" + calldata.address_word(to) + calldata.word(amount))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the rival is asked for, as its own router reads it."""

    side: str
    token: str
    amount: int
    wallet: str


@dataclass(frozen=True, slots=True)
class Told:
    """What the rival answers."""

    out_raw: int
    data: str
    router: str = ROUTER
    value_wei: int | None = None


@dataclass(slots=True)
class RivalServer:
    """Set `tell` to what it should answer; `page` answers everything with one body instead."""

    ground: Ground
    tell: Callable[[Wanted], Told]
    url: str = ""
    asked: int = 0
    exchange: str = "uniswapv3"
    page: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    whole: PoolGraph = field(init=False)
    """The market as the rival knows it, whatever the desk is left with."""

    def __post_init__(self) -> None:
        self.whole = self.ground.graph

    def rivals(self, clock: Clock | None = None) -> Rivals:
        """The product's own way to it."""
        return Rivals((KyberSwap(self.url),), clock or SystemClock())

    async def routes(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.page is not None:
            return await self.page(request)
        asked = request.query
        summary = {"tokenIn": asked["tokenIn"], "tokenOut": asked["tokenOut"], "amountIn": asked["amountIn"], "route": [[{"exchange": self.exchange, "poolType": "pool"}]]}
        return answer({"routeSummary": summary, "routerAddress": ROUTER})

    async def build(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        summary = body["routeSummary"]
        buy = summary["tokenIn"].lower() == NATIVE
        wanted = Wanted("buy" if buy else "sell", (summary["tokenOut"] if buy else summary["tokenIn"]).lower(), int(summary["amountIn"]), body["sender"].lower())
        told = self.tell(wanted)
        value_wei = told.value_wei if told.value_wei is not None else wanted.amount if buy else 0
        return answer({
            "amountIn": str(wanted.amount), "amountOut": str(told.out_raw), "data": told.data, "routerAddress": told.router,
            "transactionValue": str(value_wei), "gas": "200000",
        })  # fmt: skip

    def ways(self, wanted: Wanted) -> tuple[Route, ...]:
        """Real routes of the whole market for what is wanted, best promise first."""
        of = buy_routes if wanted.side == "buy" else sell_routes
        return of(self.ground.network, self.whole, wanted.token, wanted.amount, wanted.wallet)


def answer(data: Any) -> web.Response:
    return web.Response(body=orjson.dumps({"code": 0, "message": "successfully", "data": data}), content_type="application/json")


@asynccontextmanager
async def rival_server(ground: Ground, tell: Callable[[Wanted], Told]) -> AsyncIterator[RivalServer]:
    """Serve a rival; its contracts stand on the chain."""
    stand(ground.chain)
    server = RivalServer(ground, tell)
    app = web.Application()
    app.router.add_get("/api/v1/routes", server.routes)
    app.router.add_post("/api/v1/route/build", server.build)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def stand(chain: Devnet) -> None:
    """Put the rival's routers on the chain."""
    for address, code in ((ROUTER, does_all()), (CHOOSY, does_all(WALLET))):
        chain.node.call("anvil_setCode", [address, code])
    chain.mine()
