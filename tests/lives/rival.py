"""A rival of the lives: an honest one, which alone knows the better pool of a token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chain import calldata
from chain.pools import PoolGraph
from ledgers.clock import VirtualClock
from tests.lives.paper import Paper
from tests.lives.world import Twins
from tests.onchain.rival import ROUTER, Call, RivalServer, Told, Wanted, listed, moves, rival_server


class Patient(VirtualClock):
    """A clock whose monotonic side runs on, so that no budget of asking is used up."""

    def monotonic_ms(self) -> int:
        self._beat = getattr(self, "_beat", 0) + 10_000
        return self._beat


@asynccontextmanager
async def rival_of(twins: Twins, paper: Paper) -> AsyncIterator[None]:
    """Serve the rival for one life."""
    better = PoolGraph(paper.network)
    better.add(paper.desk.graph.pools[twins.stalls[-1].place.key])
    better.states.update(paper.desk.graph.states)
    ground = paper.run.ground
    async with rival_server(ground, lambda wanted: _told(server, wanted)) as server:
        twins.real.send(())  # a rival stands up in a block of its own
        server.whole = better
        asking = server.rivals(Patient())
        paper.rivalled(asking)
        try:
            yield
        finally:
            await asking.close()


def _told(server: RivalServer, wanted: Wanted) -> Told:
    ways = server.ways(wanted)
    if not ways:
        return Told(1, "0x")
    way = ways[0]
    if wanted.side == "buy":
        return Told(1, listed([Call(way.swap.to, way.swap.data, way.swap.value_wei)]))
    return Told(1, listed([moves(wanted.token, wanted.wallet, ROUTER, wanted.amount), Call(wanted.token, calldata.approve(way.swap.to)), Call(way.swap.to, way.swap.data)]))
