"""Capturing: one turn of a run of the local chain, kept whole as an exam sheet (001 §2.3.1).

Bundle and book are the recorded bytes. The chain is played again from its seed to the block that the turn saw, its hash
is checked, and the live tools are asked there for everything a stack may ask: so that the sheet needs no network later.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chain.devnet.devnet import Devnet
from chain.market import MarketIndex
from chain.pools import PoolGraph
from chain.probe import probe
from chain.rpc import Lane, RpcDoor
from exam.kept_tools import LISTS, captured_as
from exam.sheets import Captured, Sheet, ToolRecord
from harnesses.question import Question
from ledgers.clock import Clock
from ledgers.errors import CorruptJournal
from ledgers.journal import Journal
from ledgers.money import mul_div_floor
from ops.assembly import network_named
from ops.home_chain import DEVNET
from ops.live_market import LiveMarket
from ops.live_tools import LiveTools
from ops.reading import WrongUse
from referee.onchain import toolbox
from referee.onchain.board import Desk
from referee.onchain.events import BundleShown, WindowOpened
from referee.onchain.facts import run_facts
from referee.onchain.rules import Rules, rules_named
from referee.onchain.state import WindowState, decoded
from referee.onchain.window import Window, restored

SPENDS_WEI = (10**14, 10**15, 5 * 10**15, 2 * 10**16, 4 * 10**16)
"""Buys that are quoted for every token; the last is about a whole stake."""
PARTS = (10, 2)
"""Parts of a holding whose sale is quoted, beside all of it."""
QUOTES_MAX = 1_000_000
LIMITLESS = 0


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """One turn of a run, as far as its journal had come when it was shown."""

    shown: BundleShown
    state: WindowState
    opened: WindowOpened
    window: Window
    bundle: bytes
    book: bytes

    @property
    def rules(self) -> Rules:
        return self.window.ruled_by if self.window.rules == self.opened.rules_name else rules_named(self.opened.rules_name)


async def capture(journal: Journal, run_id: str, tick: int, name: str, purpose: str, clock: Clock) -> Sheet:
    """Capture one turn. Raises: WrongUse when it cannot be, ChainFault, CorruptJournal."""
    seen = turn_seen(journal, run_id, tick)
    async with _tools_then(seen, clock) as tools:
        question = Question(run_id, tick, "", seen.bundle, seen.book, LIMITLESS)
        box = tools.turn(question, names=list(toolbox.TOOLS), quotes_max=QUOTES_MAX, plan=None)
        records = []
        for tool, arguments in everything(seen.bundle, seen.book):
            answer = await box.use(tool, arguments)
            key = captured_as(tool, toolbox.read_arguments(tool, arguments))
            records.append(ToolRecord(name=tool, arguments=key, ok=answer.ok, reason=answer.reason, answer=json.loads(answer.text)))
    pin = seen.shown.pin
    return Sheet(
        name=name,
        purpose=purpose,
        captured=Captured(
            run_id=run_id, tick=tick, label=seen.opened.label, block=pin.block, block_hash=pin.block_hash,
            window_sha256=seen.opened.window_sha256, ts_ms=clock.now_ms(),
        ),
        orders_max=seen.rules.orders_max,
        facts=run_facts(seen.opened, seen.rules, {}),
        bundle=seen.bundle,
        book=seen.book,
        answers=tuple(records),
    )  # fmt: skip


def turn_seen(journal: Journal, run_id: str, tick: int) -> TurnSeen:
    """Fold a journal up to what a turn was shown. Raises: WrongUse when there is no such turn, CorruptJournal."""
    state = WindowState()
    for record in journal.read():
        event = decoded(record)
        state.apply(event)
        if isinstance(event, BundleShown) and (event.run_id, event.tick) == (run_id, tick):
            opened, (bundle, book) = state.opened, (journal.blob(event.bundle_sha256), journal.blob(event.book_sha256))
            if opened is None or bundle is None or book is None:
                raise CorruptJournal(f"the bytes that {run_id} was shown at tick {tick} were not kept", record.seq)
            return TurnSeen(event, state, opened, restored(journal.blob(opened.window_file_sha256) or b"", journal.blob), bundle, book)
    raise WrongUse(f"{run_id} was shown nothing at tick {tick}; `referee show {run_id}` tells its turns")


@asynccontextmanager
async def _tools_then(seen: TurnSeen, clock: Clock) -> AsyncIterator[LiveTools]:
    """The live tools on the chain as the turn saw it."""
    opened, pin = seen.opened, seen.shown.pin
    if opened.network != DEVNET:
        raise WrongUse(f"{opened.run_id} was played on {opened.label}; only the local chain can be played again to a block")
    chain = await asyncio.to_thread(Devnet.build, opened.seed, pin.head_block)
    try:
        if chain.block_hash(pin.block) != pin.block_hash:
            raise WrongUse(f"block {pin.block} of seed {opened.seed} is now another than the turn saw; the chain's code has changed since")
        network = network_named(DEVNET)
        door = RpcDoor([Lane(DEVNET, chain.url)], clock=clock)
        try:
            found, graph, rules = await probe(door, network, clock), PoolGraph(network), seen.rules
            index = MarketIndex(door, network, graph, history_step_s=json.loads(seen.bundle)["history_step_s"], tokens=seen.window.tokens)
            market = LiveMarket(rpc=door, chain=network, index=index, rules=rules, found=found)
            desk = Desk(door, network, graph, rules, clock, found.clock_offset_ms)
            desk.fit(gas_cap=found.gas_cap, headers_sealed=found.headers_sealed)
            await market.bundle(opened, seen.shown.tick, pin)
            yield LiveTools(market=market, desk=desk, rules=rules, state=seen.state)
        finally:
            await door.close()
    finally:
        await asyncio.to_thread(chain.close)


def everything(bundle: bytes, book: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything that is asked of the tools for a sheet, from what the turn was shown."""
    tokens, holdings = json.loads(bundle)["tokens"], json.loads(book)["holdings"]
    yield "gas", {}
    yield "history", {"limit": LISTS["history"][0]}
    for sort in ("liquidity", "volume", "trending", "new"):
        yield "pools", {"sort": sort, "limit": LISTS["pools"][0]}
    for token in tokens:
        yield from _of_token(token)
    for holding in holdings:
        yield from _of_holding(holding)


def _of_token(token: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    address = token["address"]
    yield "token", {"token": address}
    places = [{"token": address}, *({"pool": pool["pool"]} for pool in token["pools"])]
    for place in places:
        yield "swaps", {**place, "limit": LISTS["swaps"][0]}
        for span in toolbox.SPANS_S:
            yield "candles", {**place, "span": span, "limit": LISTS["candles"][0]}
    for place in places[1:]:
        yield "pool", place
    for spend_wei in SPENDS_WEI:
        yield "quote", {"side": "buy", "token": address, "spend_wei": str(spend_wei)}
        if amount_raw := mul_div_floor(spend_wei, 10 ** token["decimals"], max(1, int(token["price_wei"]))):
            yield "quote", {"side": "sell", "token": address, "amount_raw": str(amount_raw)}


def _of_holding(holding: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    amount_raw = int(holding["amount_raw"])
    sizes = {str(size) for size in (amount_raw, *(amount_raw // part for part in PARTS)) if size}
    for size in (*sorted(sizes, key=int), "all"):
        yield "quote", {"side": "sell", "token": holding["token"], "amount_raw": size}
