"""Orders: from admitted order to fill value, against the bare client with the same bytes and against web3.py.

The journal is apart. Encoding and decoding are in. Rows 1 to 3 of the table.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from itertools import cycle, islice
from statistics import median

from chain.router import Route, buy_routes, sell_routes
from tests.bench.bare import Bare
from tests.bench.delay import DelayProxy
from tests.bench.ground import WALLET, Ground, Order
from tests.bench.turns import Result, Seconds, Side, middle, milliseconds, quarters, ratio, take_turns
from tests.bench.web3_client import Web3Client, understood

LIMIT_AT = {1: 1.5, 8: 1.25}
RATE_SHARE_MIN = 0.8
DELAY_MS = 50
DELAY_RATIO_MAX = 1.1
TRIPS = {"sell": 2, "buy": 2}
"""A sale first asks what there is to sell; a buy is gated."""

Play = Callable[[Order], Coroutine[None, None, float]]


async def order_results(ground: Ground, rounds: int, per_round: int) -> list[Result]:
    """Latency and rate of both sides of the market, at several concurrencies."""
    results: list[Result] = []
    for side in TRIPS:
        results += await _side_results(ground, side, rounds, per_round)
    return results


async def _side_results(ground: Ground, side: str, rounds: int, per_round: int) -> list[Result]:
    orders = ground.orders(side)
    works = await ground.recorded(orders)
    assert {len(work) for work in works} == {TRIPS[side]}, "an order took more round trips than it may"
    client = Web3Client(ground)
    web3 = await _web3_plays(ground, client, orders)
    latency, rates = [], []
    for width in (1, 8, 32):
        taken = await _at_width(ground, orders, works, web3, width, rounds, max(per_round, 2 * width))
        if width in LIMIT_AT:
            latency += _latency(side, width, taken)
        rates.append(_rate(side, width, taken))
    await client.close()
    return [*latency, *rates]


async def _at_width(
    ground: Ground, orders: Sequence[Order], works: Sequence[list[bytes]], web3: Play, width: int, rounds: int, count: int
) -> dict[str, list[Seconds]]:
    bare = Bare(ground.chain.node.port, width)
    mixed, bodies = list(islice(cycle(orders), count)), list(islice(cycle(works), count))
    walls: dict[str, list[float]] = {"ours": [], "bare": []}

    async def bare_turn() -> Seconds:
        return _walled(walls["bare"], lambda: bare.play(bodies))

    async def our_turn() -> Seconds:
        begun = time.perf_counter()
        seconds = await _at_once(lambda order: ground.play(ground.desk, order), mixed, width)
        walls["ours"].append(time.perf_counter() - begun)
        return seconds

    sides: dict[str, Side] = {"ours": our_turn, "bare": bare_turn}
    if width in LIMIT_AT:
        sides["web3"] = lambda: _at_once(web3, mixed[: 2 * width + 4], width)
    for side in sides.values():
        await side()
    for each in walls.values():
        each.clear()
    taken = await take_turns(rounds, sides)
    bare.close()
    return taken | {f"{name} per second": [[count / wall] for wall in each] for name, each in walls.items()}


def _walled(walls: list[float], work: Callable[[], Seconds]) -> Seconds:
    begun = time.perf_counter()
    seconds = work()
    walls.append(time.perf_counter() - begun)
    return seconds


async def _at_once(play: Play, orders: Sequence[Order], width: int) -> Seconds:
    """Play orders, `width` of them at a time; seconds that each took."""
    todo, seconds = iter(orders), []

    async def one_after_another() -> None:
        for order in todo:
            seconds.append(await play(order))

    await asyncio.gather(*(one_after_another() for _ in range(width)))
    return seconds


async def _web3_plays(ground: Ground, client: Web3Client, orders: Sequence[Order]) -> Play:
    known: dict[str, tuple[Sequence[Route], object]] = {}
    for order in orders:
        await ground.play(ground.desk, order)
        slot = await ground.desk.slots.of(order.asked.token, WALLET, None)  # type: ignore[arg-type]
        known[order.asked.token] = _routes(ground, order), slot
    return lambda order: client.play(order, *known[order.asked.token])  # type: ignore[arg-type]


def _routes(ground: Ground, order: Order) -> Sequence[Route]:
    token, book = order.asked.token, order.books["headline"]
    if order.asked.spend_wei is not None:
        return understood(buy_routes(ground.network, ground.graph, token, int(order.asked.spend_wei), WALLET))
    return understood(sell_routes(ground.network, ground.graph, token, int(book.holdings[0].units_raw), WALLET))


def _latency(side: str, width: int, taken: dict[str, list[Seconds]]) -> list[Result]:
    what = f"order, {side}{' with gate' if side == 'buy' else ''}, concurrency {width}"
    return [
        ratio(what, taken["ours"], taken["bare"], against="bare socket", limit=LIMIT_AT[width]),
        ratio(what, taken["ours"], taken["web3"], against="web3.py"),
    ]


def _rate(side: str, width: int, taken: dict[str, list[Seconds]]) -> Result:
    ours, bare = taken["ours per second"], taken["bare per second"]
    shares = [mine[0] / its[0] for mine, its in zip(ours, bare, strict=True)]
    low, high = quarters(shares)
    return Result(
        what=f"orders a second, {side}, concurrency {width}", ours=f"{middle(ours):,.0f} /s", against=f"{middle(bare):,.0f} /s bare socket",
        value=median(shares), low=low, high=high, limit=RATE_SHARE_MIN, at_least=True,
    )  # fmt: skip


async def delayed_results(ground: Ground, rounds: int) -> list[Result]:
    """One order at a time over a network that takes 50 ms there and back."""
    with DelayProxy(ground.chain.node.port, DELAY_MS) as proxy:
        desk = ground.desk_at(proxy.url)
        return [await _delayed(ground, desk, side, trips, rounds) for side, trips in TRIPS.items()]


async def _delayed(ground: Ground, desk: object, side: str, trips: int, rounds: int) -> Result:
    orders = ground.orders(side)
    for order in orders:
        await ground.play(desk, order)  # type: ignore[arg-type]
    seconds = [await ground.play(desk, order) for order in islice(cycle(orders), rounds)]  # type: ignore[arg-type]
    floor = trips * DELAY_MS / 1_000
    low, high = quarters([second / floor for second in seconds])
    return Result(
        what=f"order, {side}, {DELAY_MS} ms away", ours=milliseconds(middle([seconds])), against=f"{milliseconds(floor)} network alone",
        value=middle([seconds]) / floor, low=low, high=high, limit=DELAY_RATIO_MAX,
    )  # fmt: skip
