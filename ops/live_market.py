"""The market behind a live run: the chain as it is shown and priced, seen through one node door."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from chain.calldata import hex_bytes, hex_int
from chain.header import header_of, header_request
from chain.market import MarketIndex
from chain.network import Network
from chain.outside import goplus
from chain.outside.told import Told
from chain.outside.view import OutsideView
from chain.owners import born_ts_s, owners_of, traders_of
from chain.pools import Pool
from chain.price import EthUsd, eth_usd
from chain.probe import Capabilities
from chain.router import Route
from chain.rpc import RpcDoor, RpcRefused
from chain.snapshot import MarketSnapshot
from ledgers.errors import ChainFault, FeedFault
from ledgers.money import MicroUsd
from referee.onchain.bundle import shared_bundle
from referee.onchain.doors import NetworkSeen
from referee.onchain.events import FillCredited, Pin, PoolCrossed, WindowOpened
from referee.onchain.pool_facts import pool_crossed
from referee.onchain.round_trip import RoundTrip
from referee.onchain.rules import Rules

T = TypeVar("T")
CODE, NONCE, BALANCE = "eth_getCode", "eth_getTransactionCount", "eth_getBalance"


TOKENS_SEEN_MAX = 2_000
"""Deepest tokens that a look keeps; the bundle shows fewer, tools find the rest."""
OUTSIDE_TOKENS_MAX = 30
"""Deepest tokens that outside sources are asked about."""
CROSSING_S_MAX = 5
"""How long the facts of one pool may take."""
STRETCHES_PER_LOOK = 8
"""Stretches of older logs that one look reads."""
LOOKS_KEPT = 8
"""Ticks whose look is still at hand when a turn begins."""


@dataclass(frozen=True, slots=True)
class Look:
    """The market as the stacks of one tick are shown it; nothing that happens later changes it."""

    pin: Pin
    snapshot: MarketSnapshot
    outside: tuple[Told, ...] = ()
    """What outside sources had said before the block."""
    trips: Mapping[str, RoundTrip] = field(default_factory=dict)
    """Round trips that were tried at the block or before it, by token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMarket:
    """One network, followed block by block."""

    rpc: RpcDoor
    chain: Network
    index: MarketIndex
    rules: Rules
    found: Capabilities
    """What the node was found to be when this process began."""
    looks: dict[int, Look] = field(default_factory=dict)
    """Latest looks by tick."""
    trips: dict[str, RoundTrip] = field(default_factory=dict)
    """What was found of our own accord, by token, the one tried longest ago first."""
    outside: OutsideView | None = None
    """What outside sources say, where any are asked."""
    bought: dict[tuple[str, str], int] = field(default_factory=dict)
    """Block of the last buy of a token by a run, as far as this process saw it."""

    @property
    def lane(self) -> str:
        """Name of the lane that answered last."""
        return self.rpc.lane

    async def network(self) -> NetworkSeen:
        """Say what the node is."""
        return NetworkSeen(
            name=self.chain.name,
            label=self.chain.label,
            chain_id=self.found.chain_id,
            block0_hash=self.found.block0_hash,
            client=self.found.client,
            clock_offset_ms=self.found.clock_offset_ms,
        )

    async def eth_usd(self, pin: Pin) -> EthUsd:
        """Price one ETH at a block. Raises: ChainFault, FeedFault."""
        await self.index.advance(pin.block)
        return await self._eth_usd(pin)

    async def _eth_usd(self, pin: Pin) -> EthUsd:
        return await eth_usd(self.rpc, self.chain, self.index.graph, pin.block, gap_bps_max=self.rules.feed_gap_bps_max)

    async def follow(self, pin: Pin) -> None:
        """Know the pools of the block that orders stand on, new ones too; without its logs orders stand on what was known before."""
        with suppress(ChainFault):
            await self.index.advance(pin.block)

    async def pools_crossed(self, fill: FillCredited, route: Route, block: int) -> tuple[PoolCrossed, ...]:
        """Say what is known of the pools of a fill within a few seconds; what is not told by then is unknown (ONC-25)."""
        key = (fill.order_id.partition("/")[0], fill.token)
        since = self.bought.get(key) if fill.side == "sell" else None
        if fill.side == "buy":
            self.bought[key] = block
        pools = dict.fromkeys(hop.pool for hop in route.hops)
        return tuple([await self._crossed(pool, block, since) for pool in pools])

    async def _crossed(self, pool: Pool, block: int, since: int | None) -> PoolCrossed:
        born_s, owners, traders = None, None, None
        with suppress(ChainFault, TimeoutError):
            async with asyncio.timeout(CROSSING_S_MAX):
                (stood,) = await self.rpc.batch([header_request(block)])
                born_s = header_of(stood, block).ts_s - await born_ts_s(self.rpc, pool)
                owners = await owners_of(self.rpc, self.chain, pool, block)
                traders = None if since is None else await traders_of(self.rpc, self.chain, pool, since + 1, block)
        return pool_crossed(pool, born_s, owners, traders)

    async def used_addresses(self, addresses: Collection[str], pin: Pin) -> set[str]:
        """Name those addresses that have code, a nonce or a balance. Raises: ChainFault."""
        asked = [(method, [address, hex(pin.block)]) for address in addresses for method in (CODE, NONCE, BALANCE)]
        answers = await self._batches(asked)
        return {params[0] for (method, params), answer in zip(asked, answers, strict=True) if _is_used(method, answer)}

    async def hashes(self, blocks: Collection[int]) -> dict[int, str]:
        """Hash of each block that the node still knows. Raises: ChainFault."""
        wanted = sorted(blocks)
        answers = await self._batches([header_request(block) for block in wanted])
        known = [(block, answer) for block, answer in zip(wanted, answers, strict=True) if answer is not None and not isinstance(answer, RpcRefused)]
        return {block: header_of(answer, block).block_hash for block, answer in known}

    async def bundle(self, opened: WindowOpened, tick: int, pin: Pin) -> bytes:
        """Write what every stack of a tick is shown. Raises: ChainFault."""
        look = await self.look(pin)
        self.looks[tick] = look
        for old in sorted(self.looks)[:-LOOKS_KEPT]:
            del self.looks[old]
        return shared_bundle(look.snapshot, opened, tick, self.rules, look.outside, look.trips)

    async def look(self, pin: Pin) -> Look:
        """See the market at a block, and then read some more of the last hour as long as it is not known whole.

        Raises: ChainFault, `market_ahead` when the market was followed further already: look again at a newer pin."""
        if self.index.block is None:
            await self.index.advance(pin.block)
        with suppress(ChainFault):
            for _ in range(STRETCHES_PER_LOOK):
                if not await self.index.reach_back():
                    break
        snapshot = await self.index.look(pin, lambda: self._price(pin), tokens_max=TOKENS_SEEN_MAX)
        trips = {token: trip for token, trip in self.trips.items() if trip.block is not None and trip.block <= snapshot.block}
        return Look(pin, snapshot, self._outside(snapshot), trips)

    def said_against(self, tick: int, token: str) -> tuple[str, ...]:
        """What outside sources had said against a token when a tick was shown: the same for every stack of it (ONC-08)."""
        look = self.looks.get(tick)
        return goplus.said_against(look.outside, token, self.rules.gate_loss_bps_max) if look else ()

    def _outside(self, snapshot: MarketSnapshot) -> tuple[Told, ...]:
        """What was said before the block; what is asked for now is for the next look."""
        if self.outside is None:
            return ()
        self.outside.refresh([token.address for token in snapshot.tokens[:OUTSIDE_TOKENS_MAX]])
        return self.outside.told(snapshot.block_ts_s * 1_000 - self.found.clock_offset_ms)

    async def _price(self, pin: Pin) -> MicroUsd | None:
        try:
            return (await self._eth_usd(pin)).micro_usd
        except FeedFault:
            return None

    async def _batches(self, requests: Sequence[tuple[str, list]]) -> list:
        return [answer for chunk in _chunks(requests, self.found.batch_max) for answer in await self.rpc.batch(chunk)]


def _is_used(method: str, answer: object) -> bool:
    if isinstance(answer, RpcRefused):
        raise ChainFault("bad_answer", f"the node refused {method} of a paper wallet: {answer.message}")
    return bool(hex_bytes(answer)) if method == CODE else hex_int(answer) != 0


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))
