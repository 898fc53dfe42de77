"""Shared fixtures: one local chain for the whole run.

`chain` is what most tests want: the session's devnet, put back as it was when the test ends.

    async def test_something(chain):
        door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())   # read it as the product does
        chain.step(3)                                                      # three blocks of market
        chain.fund(wallet, 10**18)                                         # real ETH, in a block of its own
        chain.send(Tx(sender=wallet, to=token, data="0x…"))                # really executed, from any address

Blocks come only when a test asks for them, so nothing moves between two reads. A test that kills the node, or needs
another seed, builds its own with `Devnet.build`. A missing toolchain fails the test and says what to run.
"""

from collections.abc import Iterator

import pytest

from chain.devnet.devnet import Devnet

SEED = 7
WARM_BLOCKS = 40
"""Blocks of market before the first test, so that there is a history to read; the odd tokens are not traded yet."""


@pytest.fixture(scope="session")
def devnet() -> Iterator[Devnet]:
    """The session's chain, deployed and with some history; use `chain` unless the test only reads."""
    with Devnet.build(SEED) as built:
        built.step(WARM_BLOCKS)
        yield built


@pytest.fixture
def chain(devnet: Devnet) -> Iterator[Devnet]:
    """The session's chain for one test: everything the test did to it is undone."""
    mark = devnet.snapshot()
    yield devnet
    devnet.revert(mark)
