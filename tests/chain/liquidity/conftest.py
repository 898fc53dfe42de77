"""A door to the session's chain."""

import pytest

from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock


@pytest.fixture
async def door(chain):
    opened = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    yield opened
    await opened.close()
