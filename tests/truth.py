"""The truth table: what the referee credits against what really executing the same transaction brings.

For every kind of token, kind of route and side. The referee's own evidence names the transaction; the same wallet, funded by
a real transfer and a real buy, then really sends it in the block that was simulated, at the same time and base fee. A sale
is simulated on a chain where a stranger bought the tokens, and executed on one where the wallet did.
Run: `make truth`. Exit code 1 when an outcome is not the expected one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import orjson

from chain.balance_slot import SlotBook
from chain.devnet.calls import Tx
from chain.devnet.devnet import Devnet
from chain.devnet.kinds import SPEND_WEI, Expected, Outcome
from chain.devnet.zoo import ROUTES, ZOO, ZooToken
from chain.header import header_of
from chain.network import Network, load_network
from chain.pools import NATIVE, PoolGraph, discover, read_states
from chain.rpc import Lane, RpcDoor
from chain.words import Word
from ledgers.clock import SystemClock
from ledgers.money import TokenRaw, Wei
from ledgers.report import Basis, Column, Table
from referee.onchain.board import Desk
from referee.onchain.book import Book, Holding, word_of
from referee.onchain.decision_desk import Refereed
from referee.onchain.events import (
    HEADLINE,
    LEDGERS,
    PERMISSIVE,
    BoardTaken,
    FillCredited,
    GateTaken,
    OrderAsked,
    OrderNotFilled,
    OrderRefused,
    Pin,
    Row,
    RouteReverted,
    RouteSimulated,
)
from referee.onchain.rules import DEFAULT

VIA_USDG = {f"{venue}/usdg via {hub}": (venue, "usdg", hub) for venue in ("v2", "v3") for hub in ("v2", "v3")}
ROUTE_KINDS = {route: (*route.split("/"), "") for route in ROUTES if not route.endswith("/usdg")} | VIA_USDG
"""Kinds of route: venue and quote of the token's pool, and for a dollar pool the venue of the hop between ETH and USDG."""
WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
STRANGER = "0x7c0ffee000000000000000000000000000000b0b"
PURSE_WEI = 10**18


@dataclass(frozen=True, slots=True)
class TruthRow:
    """One line of the table."""

    kind: str
    route: str
    side: str
    expected: Expected
    found: Expected
    detail: str

    @property
    def holds(self) -> bool:
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Executed:
    """What really happened to the wallet."""

    ok: bool
    gas_used: tuple[int, ...]
    """Per transaction."""
    eth_raw: int
    """ETH gained before gas."""
    token_raw: int
    """Token units gained."""


class Truth:
    """Compares the referee with the chain, one order at a time."""

    def __init__(self, chain: Devnet, network: Network, door: RpcDoor, whole: PoolGraph) -> None:
        self.chain, self.network, self.door, self.whole = chain, network, door, whole

    async def row(self, odd: ZooToken, route: str, side: str) -> TruthRow:
        """Check one order; the chain is put back after."""
        expected = odd.expected(route.partition(" ")[0], side)
        if expected.outcome is Outcome.NO_POOL:
            return TruthRow(odd.kind, route, side, expected, await self._no_pool(odd, route, side), "")
        mark = self.chain.snapshot()
        try:
            found, detail = await (self._buy(odd, route) if side == "buy" else self._sell(odd, route))
        finally:
            self.chain.revert(mark)
        return TruthRow(odd.kind, route, side, expected, found, detail)

    # --- the referee's side -----------------------------------------------------------------------------------------

    def _graph(self, token: str, route: str) -> PoolGraph:
        venue, quote, hub_venue = ROUTE_KINDS[route]
        hub = {"weth": self.network.weth, "usdg": self.network.usdg, "native": NATIVE}[quote]
        graph = PoolGraph(self.network)
        for pool in self.whole.pools.values():
            own = pool.venue == venue and {pool.token0, pool.token1} == {token, hub}
            if own or (hub_venue == pool.venue and {pool.token0, pool.token1} == {self.network.weth, self.network.usdg}):
                graph.add(pool)
        graph.states.update(self.whole.states)
        return graph

    async def _referee(self, token: str, route: str, asked: OrderAsked, holdings: tuple[Holding, ...], words: tuple[Word, ...] = ()) -> Refereed:
        clock = SystemClock()
        head = self.chain.node.call("eth_getBlockByNumber", ["latest", False])
        offset_ms = int(head["timestamp"], 16) * 1_000 - clock.now_ms()
        desk = Desk(self.door, self.network, self._graph(token, route), DEFAULT, clock, offset_ms)
        told = frozenset({token} if words else ())
        books = {ledger: Book(ledger, Wei(PURSE_WEI), holdings, frozenset(), words=words, told=told) for ledger in LEDGERS}
        pin: Pin = await desk.pin()
        return await desk.decision("truth", WALLET, 0, pin, clock.now_ms(), books).order(asked, books)

    async def _no_pool(self, odd: ZooToken, route: str, side: str) -> Expected:
        token = self.chain.deployment.token(odd.kind).address.lower()
        holdings = () if side == "buy" else (Holding(token, TokenRaw(10**6), False, ""),)
        mark = self.chain.snapshot()
        self.chain.mine()
        refereed = await self._referee(token, route, _asked(side, token), holdings)
        self.chain.revert(mark)
        (event,) = [event for event in refereed.events if isinstance(event, (OrderNotFilled, FillCredited, OrderRefused))]
        return Expected(Outcome.NO_POOL) if getattr(event, "reason", "") == "no_route" else Expected(Outcome.EQUAL, f"without a pool: {getattr(event, 'reason', 'filled')} {getattr(event, 'detail', '')}")

    # --- buys -------------------------------------------------------------------------------------------------------

    async def _buy(self, odd: ZooToken, route: str) -> tuple[Expected, str]:
        token = self.chain.deployment.token(odd.kind).address.lower()
        self.chain.fund(WALLET, 2 * PURSE_WEI)
        here = self.chain.snapshot()
        self.chain.mine()
        refereed = await self._referee(token, route, _asked("buy", token), ())
        self.chain.revert(here)
        txs = _transactions(refereed)
        executed = self._execute(token, txs) if txs else None
        return _judged(refereed, executed, "buy")

    # --- sells ------------------------------------------------------------------------------------------------------

    async def _sell(self, odd: ZooToken, route: str) -> tuple[Expected, str]:
        token = self.chain.deployment.token(odd.kind).address.lower()
        start = self.chain.snapshot()
        self.chain.fund(STRANGER, 2 * PURSE_WEI)
        here = self.chain.snapshot()
        self.chain.mine()
        bought = await self._referee(token, route, _asked("buy", token), ())
        self.chain.revert(here)
        holding = self._come_by(odd, token, bought, STRANGER)
        words = _words(bought) or await self._balance_like(token, STRANGER)
        self.chain.mine()
        refereed = await self._referee(token, route, _asked("sell", token), (holding,), words)
        self.chain.revert(start)
        self.chain.fund(WALLET, 2 * PURSE_WEI)
        self._come_by(odd, token, bought, WALLET)
        txs = _transactions(refereed) or _sale_like(bought)
        executed = self._execute(token, txs) if txs else None
        return _judged(refereed, executed, "sell")

    def _come_by(self, odd: ZooToken, token: str, bought: Refereed, buyer: str) -> Holding:
        """Let `buyer` really get the tokens in the block that was simulated; the book then says what the wallet would hold."""
        row = _best(bought)
        if odd.buyable and row is not None:
            for tx in _transactions(bought):
                self.chain.send(replace(tx, sender=buyer, data=tx.data.replace(WALLET[2:], buyer[2:])))
            units = int(row.units_raw or 0)
        else:
            units = odd.supply_raw // 5_000 or 1
            keeper = self.chain.deployment.cast.zookeeper
            data = "0xa9059cbb" + "0" * 24 + buyer[2:] + f"{units:064x}"
            self.chain.send(Tx(sender=keeper, to=token, data=data, gas=6_000_000))
        return Holding(token, TokenRaw(units), False, _exit_cause(bought))

    async def _balance_like(self, token: str, other: str) -> tuple[Word, ...]:
        """The word of a balance that no buy brought about, as another holder has it; none where it is not found."""
        slots, pin = SlotBook(self.door), header_of(self.chain.node.call("eth_getBlockByNumber", ["latest", False]))
        own, theirs = [await slots.of(token, owner, pin) for owner in (WALLET, other)]
        if own is None or theirs is None:
            return ()
        return (Word(own.contract, own.slot, 0, int(self.chain.node.call("eth_getStorageAt", [theirs.contract, theirs.slot, "latest"]), 16)),)

    # --- the chain's side -------------------------------------------------------------------------------------------

    def _execute(self, token: str, txs: list[Tx]) -> Executed:
        before = self._eth(), self._tokens(token)
        receipts = self.chain.send(*txs)
        gas = tuple(int(receipt["gasUsed"], 16) for receipt in receipts)
        paid = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
        ok = all(receipt["status"] == "0x1" for receipt in receipts)
        return Executed(ok, gas, self._eth() - before[0] + paid, self._tokens(token) - before[1])

    def _eth(self) -> int:
        return int(self.chain.node.call("eth_getBalance", [WALLET, "latest"]), 16)

    def _tokens(self, token: str) -> int:
        data = "0x70a08231" + "0" * 24 + WALLET[2:]
        try:
            answer = self.chain.node.call("eth_call", [{"to": token, "data": data, "gas": "0x2dc6c0"}, "latest"])
        except Exception:  # a token may refuse to tell; then nothing is known of it
            return 0
        return int(answer[:66], 16) if len(answer) >= 66 else 0


def _asked(side: str, token: str) -> OrderAsked:
    buy = side == "buy"
    return OrderAsked(index=0, side=side, token=token, spend_wei=Wei(SPEND_WEI) if buy else None, amount_raw=None, sell_all=not buy)


def _best(refereed: Refereed) -> Row | None:
    return next((row for event in refereed.events if isinstance(event, BoardTaken) for row in event.rows if row.status == "proven"), None)


def _exit_cause(bought: Refereed) -> str:
    gate = next((event for event in refereed_gates(bought)), None)
    return gate.exit_cause if gate else ""


def _words(bought: Refereed) -> tuple[Word, ...]:
    """What the buy wrote, as a book carries it, whether or not it was then refused."""
    row = _best(bought)
    return tuple(word_of(word) for word in row.kept) if row else ()


def refereed_gates(refereed: Refereed) -> list[GateTaken]:
    """The gates of an order."""
    return [event for event in refereed.events if isinstance(event, GateTaken)]


def _transactions(refereed: Refereed) -> list[Tx]:
    """The wallet's own transactions in the evidence of the chosen (or reverted) route."""
    named = [event.evidence_sha256 for event in refereed.events if isinstance(event, (RouteSimulated, RouteReverted))]
    gated = [event.digest for event in refereed_gates(refereed)]
    for digest in [*named, *gated]:
        kept = orjson.loads(refereed.blobs[digest])
        first = kept[0] if isinstance(kept, list) else kept
        calls = first["params"][0]["blockStateCalls"][0]["calls"]
        return [
            Tx(sender=WALLET, to=call["to"], data=call["data"], value_wei=int(call.get("value", "0x0"), 16), gas=int(call["gas"], 16))
            for call in calls if call["from"] == WALLET
        ]  # fmt: skip
    return []


def _sale_like(bought: Refereed) -> list[Tx]:
    """The gate's own sale, when the sell itself left no evidence of a transaction."""
    for event in refereed_gates(bought):
        calls = orjson.loads(bought.blobs[event.digest])[0]["params"][0]["blockStateCalls"][1]["calls"]
        return [Tx(sender=WALLET, to=call["to"], data=call["data"], gas=int(call["gas"], 16)) for call in calls if call["from"] == WALLET]
    return []


def _judged(refereed: Refereed, executed: Executed | None, side: str) -> tuple[Expected, str]:
    events = refereed.events
    fill = next((event for event in events if isinstance(event, FillCredited) and HEADLINE in event.ledgers), None)
    if fill is not None and fill.proven:
        return _compared(events, fill, executed, side)
    claimed = next((event for event in events if isinstance(event, FillCredited)), None)
    if claimed is not None and PERMISSIVE in claimed.ledgers:
        return Expected(Outcome.UNPROVABLE, claimed.tag.partition(":")[2]), f"claimed {claimed.arrival_raw}"
    missed = next((event for event in events if isinstance(event, OrderNotFilled)), None)
    if missed is not None and missed.reason == "reverted":
        return (Expected(Outcome.REVERTS_ON_BOTH) if executed and not executed.ok else Expected(Outcome.EQUAL, "really went through")), missed.detail
    other = missed or next(event for event in events if isinstance(event, OrderRefused))
    return Expected(Outcome.REFUSED, other.reason), other.detail


def _compared(events: tuple, fill: FillCredited, executed: Executed | None, side: str) -> tuple[Expected, str]:
    row = next(row for event in events if isinstance(event, BoardTaken) for row in event.rows if row.route == fill.route)
    if executed is None or not executed.ok:
        return Expected(Outcome.EQUAL, "really reverts"), fill.route
    arrived = executed.token_raw if side == "buy" else executed.eth_raw
    charged, used = (row.swap_gas, row.approve_gas), (executed.gas_used[-1], sum(executed.gas_used[:-1]))
    if arrived == int(fill.arrival_raw) and charged[0] > used[0] and charged[1] == used[1]:
        return Expected(Outcome.GAS_ABOVE), f"{arrived}, gas {row.swap_gas} + {row.approve_gas}, really {used[0]}"
    if arrived == int(fill.arrival_raw) and charged == used:
        return Expected(Outcome.EQUAL), f"{arrived}, gas {row.swap_gas} + {row.approve_gas}"
    return Expected(Outcome.EQUAL, "differs"), f"credited {fill.arrival_raw} gas {row.swap_gas}+{row.approve_gas}, really {arrived} gas {executed.gas_used}"


async def truth_rows(chain: Devnet, kinds: tuple[ZooToken, ...] = ZOO) -> AsyncIterator[TruthRow]:
    """Every line of the table on a living chain."""
    network = load_network("devnet")
    door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    graph = PoolGraph(network)
    for pool in await discover(door, network, 0, chain.height):
        graph.add(pool)
    graph.states.update(await read_states(door, network, graph.pools.values(), chain.height))
    truth = Truth(chain, network, door, graph)
    for odd in kinds:
        for route in ROUTE_KINDS:
            for side in ("buy", "sell"):
                yield await truth.row(odd, route, side)
    await door.close()


def table_of(rows: list[TruthRow]) -> Table:
    """The table as printed; kinds without a pool on a route are only counted."""
    shown = [row for row in rows if row.expected.outcome is not Outcome.NO_POOL or not row.holds]
    cells = [(row.kind, row.route, row.side, _text(row.expected), _text(row.found), "yes" if row.holds else "NO", row.detail[:70]) for row in shown]
    held = sum(row.holds for row in rows)
    headings = ("token", "route", "side", "expected", "found", "holds", "detail")
    return Table(
        name="truth",
        title="Truth table: what is credited against what is really executed",
        basis=Basis(label="devnet", n=len(rows), of="orders", claim="equal to the wei, gas included"),
        columns=tuple(Column(heading, heading) for heading in headings),
        rows=tuple(cells),
        note=f"{held} of {len(rows)} lines hold; {len(rows) - len(shown)} are NO_POOL, as expected, and not shown",
    )


def _text(expected: Expected) -> str:
    return f"{expected.outcome}({expected.reason})" if expected.reason else str(expected.outcome)


async def _main(names: list[str]) -> int:
    kinds = tuple(odd for odd in ZOO if not names or odd.kind in names)
    with Devnet.build(seed=7, height=40) as chain:
        rows = [row async for row in truth_rows(chain, kinds)]
    print(table_of(rows).text())
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(sys.argv[1:])))
