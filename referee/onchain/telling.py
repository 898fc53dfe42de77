"""The telling: what rows of a board wrote, and whether all readings of shared words agree on what they bring.

A row that may be filled is run here as well as at the node. Where both did the same, what its transactions wrote is known and
the wallet carries it from then on. The row is run again by every other reading of the words that others changed since the
wallet wrote them, and with another random word: unless all bring the same to the wei, nobody knows what it brings.
Source: ONC-11, ONC-29.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chain.evm import Executed, LocalEvm, NotCovered
from chain.evm.l1_gas import Charged
from chain.gas import least_gas_of
from chain.rpc import RpcDoor
from chain.simulate import Simulated, Simulation, SimulationRefused, answered
from chain.trade import PROVEN, TradeSimulation
from chain.words import CHANCE, SHARED_STATE, Place, Reading
from chain.written import Asked, Market, Told, Untold, alike, refused, told
from ledgers.errors import ChainFault
from referee.onchain.book import words_kept
from referee.onchain.events import Row
from referee.onchain.rows import Rows


@dataclass(slots=True)
class Telling:
    """Tells the rows of one decision's boards."""

    evm: LocalEvm
    rpc: RpcDoor
    market: Market
    begun: Mapping[Place, int] = field(default_factory=dict)
    """What places held before the wallet of the board at hand wrote them, as far as it did before."""
    readings: tuple[Reading, ...] = ((),)
    """All readings of that wallet's words, its own first."""
    untold: dict[tuple[int, str, str], str] = field(default_factory=dict)
    """Why what a row wrote is not known, by board, source and route."""

    _runs: dict[int, tuple[Simulation, asyncio.Future[Executed | NotCovered]]] = field(default_factory=dict)
    """Runs that were begun, by the identity of their simulation, which is kept so that no other takes it."""

    def begin(self, simulation: Simulation) -> None:
        """Begin to run what will probably be told, beside asking the node."""
        if id(simulation) not in self._runs:
            self._runs[id(simulation)] = simulation, asyncio.ensure_future(self.evm.run(simulation, proven=False))

    async def settle(self) -> None:
        """Wait for all that was begun, whatever came of it."""
        await asyncio.gather(*(run for _, run in self._runs.values()), return_exceptions=True)

    async def tell(self, rows: Rows, row: Row, eth_wei: int) -> None:
        """Tell one row. Raises: ChainFault where the node fails or contradicts itself."""
        asked = rows.asked_of(row)
        if asked is None:
            return
        trade, answer = asked
        done = answered(trade.simulation, answer)
        self.begin(trade.simulation)
        try:
            executed = await alike(self.evm, await self._runs[id(trade.simulation)][1], done)
            written = await self._written(trade, executed, eth_wei)
        except ChainFault as fault:
            executed = written = refused(fault)
        if row.status != PROVEN and isinstance(written, Told):
            rows.tell(row, words_kept(written.words), written.gas_limit)
        if row.status != PROVEN and len(self.readings) == 1:
            return
        hangs = isinstance(executed, Untold) or executed.saw_chance
        objection, gas = await self._objection(trade, done, () if isinstance(executed, Untold) else executed.charges, hangs)
        if objection is not None:
            rows.unknown(row, *objection)
            return
        if row.status != PROVEN:
            return
        if not isinstance(written, Told):
            self.untold[id(rows), row.source, row.route] = written.reason
        limit = written.gas_limit if isinstance(written, Told) else least_gas_of(row.swap_gas)
        rows.tell(row, words_kept(written.words) if isinstance(written, Told) else (), max(limit, gas))
        rows.charge(row, gas)

    async def _written(self, trade: TradeSimulation, executed: Executed | Untold, eth_wei: int) -> Told | Untold:
        asked = Asked(trade.simulation, trade.sent, trade.wallet, trade.route.tokens)
        return executed if isinstance(executed, Untold) else await told(self.evm, self.market, asked, executed, self.begun, eth_wei)

    async def _objection(self, trade: TradeSimulation, done: Simulated, charges: Charged, hangs: bool) -> tuple[tuple[str, int | None] | None, int]:
        """Why the readings do not agree, and the least that came by any, where something came by all; `hangs` where it may hang on chance.

        Shapes: beside it the gas to charge, more than the most of them by as much as they differ."""
        came = trade.came(done)
        most = least = came.swap_gas
        for number, writes in enumerate(self.readings):
            if not number and not hangs:
                continue
            again = trade.by_reading(writes, number + 1)
            other = again.came(await self._run(again, charges))
            if other.result != came.result:
                brought = [each.brought(trade.route.side) for each in (came, other)]
                return (SHARED_STATE if number else CHANCE, None if None in brought else min(each or 0 for each in brought)), most
            most, least = max(most, other.swap_gas), min(least, other.swap_gas)
        return None, 2 * most - least

    async def _run(self, trade: TradeSimulation, charges: Charged) -> Any:
        """Run one reading here, at the node where that cannot be. Raises: ChainFault."""
        found = await self.evm.run(trade.simulation, proven=False, charges=charges)
        if not isinstance(found, NotCovered):
            return found
        (answer,) = await self.rpc.batch([trade.simulation.request()])
        try:
            return answered(trade.simulation, answer)
        except SimulationRefused as refusal:
            raise ChainFault(refusal.word, "the node refused to simulate another reading") from None

    def reason(self, rows: Rows, row: Row) -> str:
        """Why what a row wrote is not known; empty where it is."""
        return self.untold.get((id(rows), row.source, row.route), "")
