"""Marks: selling out many holdings, against the bare client with the same bytes and one web3.py call per holding.

Both ledgers hold the same, so they share one mark, as they mostly do. Row 4 of the table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from chain.router import Route, sell_routes
from ledgers.money import TokenRaw
from referee.onchain.board import Desk
from referee.onchain.book import Book, Holding
from referee.onchain.events import LEDGERS
from tests.bench.bare import Bare
from tests.bench.ground import WALLET, Ground, Recording
from tests.bench.turns import Result, Seconds, Side, middle, milliseconds, ratio, take_turns
from tests.bench.web3_client import Web3Client, understood

HELD_RAW = 10**22
TRIPS_MAX, ONE_TRIP_HOLDINGS = 1, 100
BARE_RATIO_MAX, BARE_RATIO_HOLDINGS = 1.2, 500
GROWTH_MAX = 1.25
"""Linear: a holding among 500 may cost so much more than one among 100."""
WEB3_ROUNDS_MAX = 3


async def mark_results(ground: Ground, sizes: Sequence[int], rounds: int) -> list[Result]:
    """Marks of several sizes."""
    results, each = [], {}
    for size in sizes:
        found, each[size] = await _of_size(ground, size, rounds)
        results += found
    if {100, 500} <= each.keys():
        results.append(
            Result(
                what="mark, a holding of 500 against one of 100", ours=milliseconds(each[500]), against=f"{milliseconds(each[100])} among 100",
                value=each[500] / each[100], limit=GROWTH_MAX,
            )  # fmt: skip
        )
    return results


async def _of_size(ground: Ground, size: int, rounds: int) -> tuple[list[Result], float]:
    books = [_book(ground, ledger, ground.crowd[:size]) for ledger in LEDGERS]
    bodies = await _recorded(ground, books)
    bare, client = Bare(ground.chain.node.port, 1), Web3Client(ground)
    routes = _routes(ground, books[0])
    sides: dict[str, Side] = {"ours": lambda: _mark(ground.desk, ground, books), "bare": lambda: _bare(bare, bodies)}
    for warm_up in (*sides.values(), *sides.values()):
        await warm_up()
    taken = await take_turns(rounds, sides)
    web3 = [await _one_call_each(client, routes) for _ in range(min(rounds, WEB3_ROUNDS_MAX))]
    bare.close()
    await client.close()
    what = f"mark of {size} holding{'s' if size > 1 else ''}"
    return [
        Result(what=f"{what}, round trips", ours=str(len(bodies)), against="", value=float(len(bodies)), unit="trips", limit=TRIPS_MAX if size <= ONE_TRIP_HOLDINGS else None),
        ratio(what, taken["ours"], taken["bare"], against="bare socket", limit=BARE_RATIO_MAX if size == BARE_RATIO_HOLDINGS else None),
        ratio(what, taken["ours"][: len(web3)], web3, against="web3.py, a call each"),
    ], middle(taken["ours"]) / size  # fmt: skip


def _book(ground: Ground, ledger: str, tokens: Sequence[str]) -> Book:
    return ground.book(ledger, [Holding(token, TokenRaw(HELD_RAW), False, "") for token in sorted(tokens)])


async def _mark(desk: Desk, ground: Ground, books: Sequence[Book]) -> Seconds:
    begun = time.perf_counter()
    (valued,) = await desk.value("bench", WALLET, books, ground.pin)
    seconds = time.perf_counter() - begun
    assert {mark.status for mark in valued.holdings} == {"proven"}, "a holding of the bench could not be sold"
    return [seconds]


async def _recorded(ground: Ground, books: Sequence[Book]) -> list[bytes]:
    """The request bodies of a mark that is not the first."""
    recording = Recording()
    desk = ground.desk_at(ground.chain.url, recording)
    for _ in range(2):
        await _mark(desk, ground, books)
    recording.bodies.clear()
    await _mark(desk, ground, books)
    return recording.bodies


async def _bare(bare: Bare, bodies: list[bytes]) -> Seconds:
    return bare.play([bodies])


def _routes(ground: Ground, book: Book) -> list[Route]:
    return [understood(sell_routes(ground.network, ground.graph, holding.token, int(holding.units_raw), WALLET))[0] for holding in book.holdings]


async def _one_call_each(client: Web3Client, routes: Sequence[Route]) -> Seconds:
    begun = time.perf_counter()
    for route in routes:
        assert await client.quote(route) > 0
    return [time.perf_counter() - begun]
