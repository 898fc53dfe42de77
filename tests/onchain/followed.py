"""A run whose further ledgers follow it: each decision by headline, then by own impact at the same block, then delayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import orjson

from chain.devnet.calls import Tx
from ledgers.events import Event
from ledgers.money import Wei
from ledgers.postings import BOOK, ETH
from referee.onchain.decision_desk import Refereed
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT, FillCredited, OrderAsked, Pin, RouteSimulated
from referee.onchain.further_desk import FurtherDesk
from referee.onchain.further_events import FurtherBoardTaken, RouteRemembered
from referee.onchain.marks import Valued
from referee.onchain.state import Trade, traded
from tests.onchain.given import filled, opened, outcome, wei
from tests.onchain.ground import Run

DELAY_BLOCKS = 3
"""Blocks after which the delayed ledger looks again."""


@dataclass(slots=True)
class FollowedRun(Run):
    """A run with all ledgers."""

    trades: list[Trade] = field(default_factory=list)
    followed: dict[str, list[Refereed]] = field(default_factory=lambda: {ledger: [] for ledger in FURTHER_LEDGERS})
    """What further ledgers made of each order that headline filled."""
    stake_on: tuple[str, ...] = FURTHER_LEDGERS

    def __post_init__(self) -> None:
        self.fold([opened(wei(self.stake), self.run_id, self.wallet, self.stake_on)])

    @property
    def further(self) -> FurtherDesk:
        return FurtherDesk(self.ground.desk)

    async def play(self, *orders: OrderAsked, meanwhile: Callable[[], None] | None = None, ledgers: Sequence[str] = FURTHER_LEDGERS) -> None:
        """Have a decision refereed on every ledger; `meanwhile` happens before the delayed one looks again."""
        self.tick += 1
        pin = await self.ground.desk.pin()
        desk = self.ground.desk.decision(self.run_id, self.wallet, self.tick, pin, self.ground.clock.now_ms(), self.books.both(self.run_id))
        filled = []
        for index, asked in enumerate(orders):
            asked = replace(asked, index=index)
            fill = outcome(await self.order(desk, asked))
            if isinstance(fill, FillCredited):
                filled.append((asked, fill, desk.filled.get(fill.order_id)))
        if IMPACT in ledgers:
            await self._follow(IMPACT, pin, pin, filled)
        if DELAYED in ledgers:
            (meanwhile or (lambda: self.ground.chain.mine(DELAY_BLOCKS)))()
            self.ground.settle()
            await self._follow(DELAYED, pin, await self.ground.desk.pin(), filled)

    async def _follow(self, ledger: str, quoted: Pin, pin: Pin, filled: Sequence[tuple]) -> None:
        desk = self.further.decision(ledger, self.run_id, self.wallet, self.tick, pin, self.book(ledger), tuple(self.trades) if ledger == IMPACT else ())
        for asked, fill, route in filled:
            refereed = await desk.follow(asked, fill, route, quoted, self.book(ledger))
            self.followed[ledger].append(refereed)
            self.fold(refereed.events)
            self.remember(refereed.events)

    def remember(self, events: Sequence[Event]) -> None:
        """Keep the trades of own impact as a run's state does."""
        ways = next((event.ways for event in events if isinstance(event, RouteRemembered)), None)
        if ways is not None:
            board, fill = further_board(events), outcome(events, IMPACT)
            self.trades.append(replace(traded(fill, board.pin), ways=ways, amount_raw=sum(int(way.amount_raw) for way in ways)))

    def spent(self, wei_: Wei, ledger: str) -> FillCredited:
        """ETH of one ledger that went for nothing."""
        return replace(filled({(BOOK, ETH): -int(wei_), ("market", ETH): int(wei_)}, token="", ledgers=(ledger,)), run_id=self.run_id)

    def fills(self, ledger: str) -> list[FillCredited]:
        """The fills of a ledger, in order."""
        return [event for event in self.events if isinstance(event, FillCredited) and ledger in event.ledgers]

    def boards(self, ledger: str) -> list[FurtherBoardTaken]:
        return [event for event in self.events if isinstance(event, FurtherBoardTaken) and ledger in event.ledgers]

    async def valued(self, ledger: str) -> Valued:
        """Mark a further ledger."""
        pin = await self.ground.desk.pin()
        (valued,) = await self.further.value(self.run_id, self.wallet, self.book(ledger), pin, tuple(self.trades) if ledger == IMPACT else ())
        return valued

    def sent(self, ledger: str = IMPACT) -> list[list[Tx]]:
        """What the wallet sent for each fill of a further ledger, by its evidence."""
        return [txs for refereed in self.followed[ledger] if (txs := sent_by(refereed, self.wallet)) is not None]


def further_board(events: Sequence[Event]) -> FurtherBoardTaken:
    (board,) = [event for event in events if isinstance(event, FurtherBoardTaken)]
    return board


def sent_by(refereed: Refereed, wallet: str) -> list[Tx] | None:
    """What the wallet sent in the evidence of an order's chosen route; none where no route was chosen."""
    for event in refereed.events:
        if isinstance(event, RouteSimulated):
            blocks = orjson.loads(refereed.blobs[event.evidence_sha256])["params"][0]["blockStateCalls"]
            return [
                Tx(sender=wallet, to=call["to"], data=call["data"], value_wei=int(call.get("value", "0x0"), 16), gas=int(call["gas"], 16))
                for block in blocks for call in block["calls"] if call["from"] == wallet
            ]  # fmt: skip
    return None


def moved(fill: FillCredited) -> tuple:
    """What a fill came to, whatever the ledger."""
    return fill.side, fill.route, int(fill.spent_raw), int(fill.arrival_raw), int(fill.gas_wei), fill.approvals, fill.entry.postings


def headline_moves(run: FollowedRun) -> list[tuple]:
    return [moved(fill) for fill in run.fills(HEADLINE)]
