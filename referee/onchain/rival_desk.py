"""The rival desk: asks other aggregators for the orders of one decision, and proves what they answer.

They are asked side by side with our own simulations, under one deadline, and never for longer than boards of the decision
stay young; their transactions are then simulated in one more round trip. Whatever fails here costs rows of rivals, never the
order. Source: 001 §2.2; ONC-05, ONC-07.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chain.aggregators.ask import Ask, RivalQuote, RivalSilent
from chain.factories import ask_pairs
from chain.header import Header
from chain.network import Network
from chain.pools import PoolGraph
from chain.rpc import RpcDoor
from chain.tokens import read_facts
from ledgers.clock import Clock
from ledgers.errors import ChainFault
from referee.onchain.rival_rows import NOT_ASKED, TOO_OLD, RivalRow, Rivals, rival_rows
from referee.onchain.rows import Rows
from referee.onchain.rules import Rules
from referee.onchain.variant import Variant

WAIT_PARTS = 3
"""Rivals may take so small a part of a board's life for all orders of one decision."""
Answers = tuple[RivalQuote | RivalSilent, ...]


@dataclass(slots=True)
class RivalDesk:
    """The rivals of one decision."""

    rivals: Rivals
    rpc: RpcDoor
    network: Network
    graph: PoolGraph
    rules: Rules
    clock: Clock
    header: Header
    chain_now_s: int
    """Chain time when the decision was sat down to, Unix seconds."""
    decimals: dict[str, int | None]
    """Of tokens that were asked about before."""
    _waited_ms: int = field(default=0, init=False)

    async def ask(self, boards: Sequence[Rows]) -> list[Answers]:
        """Ask once for each size, all at once. Shapes: for each board, one answer of every rival. Raises: nothing."""
        begun_ms, sizes = self.clock.monotonic_ms(), {rows.variant.size_raw: rows.variant for rows in boards}
        told = dict(zip(sizes, await asyncio.gather(*(self._ask(variant) for variant in sizes.values())), strict=True))
        self._waited_ms += self.clock.monotonic_ms() - begun_ms
        return [told[rows.variant.size_raw] for rows in boards]

    async def _ask(self, variant: Variant) -> Answers:
        assert self.rules.rival_answer_ms_max is not None
        deadline_ms = min(self.rules.rival_answer_ms_max, self.rules.board_age_ms_max // WAIT_PARTS - self._waited_ms)
        decimals = await self._decimals(variant.asked.token)
        if deadline_ms <= 0 or decimals is None or variant.size_raw <= 0:
            return tuple(RivalSilent(source=name, reason=NOT_ASKED, detail="", latency_ms=0) for name in self.rivals.names)
        return await self.rivals.ask(Ask(
            side=variant.asked.side, token=variant.asked.token, amount=variant.size_raw, wallet=variant.purse.wallet, token_decimals=decimals,
            chain_id=self.network.chain_id, weth=self.network.weth, gas_price_wei=self.header.base_fee_wei,
            now_s=max(self.chain_now_s, self.header.ts_s), deadline_ms=deadline_ms,
        ))  # fmt: skip

    async def _decimals(self, token: str) -> int | None:
        if token not in self.decimals:
            try:
                self.decimals[token] = (await read_facts(self.rpc, [token], self.header.block))[token].decimals
            except ChainFault:
                return None
        return self.decimals[token]

    async def prove(self, boards: Sequence[Rows], answers: Sequence[Answers]) -> None:
        """Simulate every answer's own transaction, all in one round trip. Raises: nothing; a fault fails rows."""
        for rows, told in zip(boards, answers, strict=True):
            rows.rivals = rival_rows(self.network, self.graph, self.header, rows.variant, told, self._others(rows.variant))
        asked = [rival for rows in boards for rival in rows.rivals if rival.question is not None]
        addresses = sorted({address for rival in asked for address in rival.contracts()})
        codes = [("eth_getCode", [address, hex(self.header.block)]) for address in addresses]
        simulations = [rival.question.simulation.request() for rival in asked if rival.question is not None]
        try:
            told = await self.rpc.batch([*codes, *simulations])
        except ChainFault as fault:
            for rival in asked:
                rival.fail(fault.reason)
            return
        code: dict[str, Any] = dict(zip(addresses, told, strict=False))
        now_ms, simulated = self.clock.now_ms(), told[len(addresses) :]
        for rival, answer in zip(asked, simulated, strict=True):
            rival.read(answer, code)
        await self._know_more(asked, simulated, code)
        for rival in asked:
            if rival.age_ms(now_ms) > self.rules.board_age_ms_max:
                rival.fail(TOO_OLD)

    async def _know_more(self, asked: Sequence[RivalRow], simulated: Sequence[Any], code: dict[str, Any]) -> None:
        """Ask the factories about places where rivals traded and that no log told of, so that a real market is no stock."""
        pairs = [rival.pairs_unknown(self.network, answer) for rival, answer in zip(asked, simulated, strict=True)]
        if not any(pairs):
            return
        try:
            found = await ask_pairs(self.rpc, self.network, set().union(*pairs), self.header.block)
        except ChainFault:
            return
        for rival, answer, unknown in zip(asked, simulated, pairs, strict=True):
            if unknown:
                rival.read_again(answer, code, {pool.key: pool for pool in found})

    def _others(self, variant: Variant) -> set[str]:
        """Tokens that no row of the order may take: what else is held, and the hubs."""
        held = {holding.token for holding in variant.book.holdings}
        return {self.network.weth, self.network.usdg, *held} - {variant.asked.token}
