"""Fixtures of the referee's tests: a desk on the session's chain, closed when the test ends."""

from __future__ import annotations

import pytest

from tests.onchain.ground import Ground


@pytest.fixture
async def ground(chain):
    """A desk with a still clock on the chain as the test finds it; everything is undone at the end."""
    ground = await Ground.on(chain)
    yield ground
    await ground.close()
