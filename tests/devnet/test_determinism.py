"""The seed decides: same seed, same block hashes, in one go, after a restart in the middle, and after the node was lost."""

import os
import signal

import pytest

from chain.devnet.calls import Tx
from chain.devnet.devnet import Devnet
from ledgers.errors import ChainFault

HEIGHT = 75
"""Past the first launch, the first rug and the second launch."""
LOOKED_AT = (0, 1, 5, 9, 10, 17, 30, 47, 57, HEIGHT)


def hashes(chain: Devnet) -> list[str]:
    return [chain.block_hash(block) for block in LOOKED_AT]


@pytest.fixture(scope="module")
def played():
    """The hashes of a chain played in one go."""
    with Devnet.build(11, HEIGHT) as chain:
        return hashes(chain)


def test_same_seed_gives_the_same_hashes_after_a_restart_in_the_middle(played):
    with Devnet.build(11, 40) as first:
        middle = first.block_hash(40)
    with Devnet.build(11, 40) as again:
        assert again.block_hash(40) == middle
        again.step(HEIGHT - 40)
        assert hashes(again) == played


def test_another_seed_gives_another_chain_from_block_0_on(played):
    with Devnet.build(12, 12) as other:
        assert other.block_hash(0) != played[0] and other.block_hash(10) != played[4]


def test_a_killed_node_is_noticed_and_the_chain_is_rebuilt_with_the_same_hashes(played):
    with Devnet.build(11, 50) as chain:
        os.kill(chain.node.pid, signal.SIGKILL)
        with pytest.raises(ChainFault, match="dead"):
            chain.step()
    with Devnet.build(11, HEIGHT) as rebuilt:
        assert hashes(rebuilt) == played


def test_what_a_test_did_leaves_no_trace_after_revert(played):
    with Devnet.build(11, 30) as chain:
        mark = chain.snapshot()
        chain.step(25)
        stranger = "0x" + "5a" * 20
        chain.fund(stranger, 10**18)
        chain.send(Tx(sender=stranger, to=chain.addresses["weth"], value_wei=10**17))
        chain.mine(3)
        chain.revert(mark)
        chain.step(HEIGHT - 30)
        assert hashes(chain) == played


def test_block_times_and_base_fee_follow_from_the_height(chain):
    chain.step(2)
    block = chain.node.call("eth_getBlockByNumber", [hex(chain.height), False])
    assert (int(block["timestamp"], 16), int(block["baseFeePerGas"], 16)) == (1_790_000_000 + chain.height, 10_000_000)


def test_quarter_second_blocks_share_timestamps():
    with Devnet.build(11, 13, block_time_ms=250) as chain:
        blocks = chain.node.batch([("eth_getBlockByNumber", [hex(number), False]) for number in (11, 12, 13)])
        assert [int(block["timestamp"], 16) - 1_790_000_000 for block in blocks] == [2, 3, 3]
