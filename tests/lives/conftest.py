"""Fixtures of the lives: two worlds for a module, and a door to the one on paper."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from chain.rpc import RpcDoor
from tests.lives.paper import lane_to
from tests.lives.world import Twins


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    """Both worlds; every life begins where they were built."""
    built = Twins.build()
    yield built
    built.close()


@pytest.fixture
async def door(twins: Twins) -> AsyncIterator[RpcDoor]:
    door = lane_to(twins)
    yield door
    await door.close()
