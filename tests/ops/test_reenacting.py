"""`referee truth`: mined swaps run again, a table by kind and router, and an exit code."""

from __future__ import annotations

import json

import pytest

from chain.devnet.devnet import Devnet
from chain.network import load_network
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from ops import cli
from ops.reenacting import Wanted, router_name, truth_of_chain
from ops.settings import Settings
from tests.chain.nitro import nitro_node
from tests.chain.street import walk
from tests.onchain.lying import lying_node

KEY = "s3cr3t-k3y-0123456789abcdef"


@pytest.fixture(scope="module")
def street():
    """A chain of this module's own, some blocks after one swap of every kind."""
    with Devnet.build(7, 25) as chain:
        walk(chain)
        chain.step(6)
        yield chain


def flat(text: str) -> str:
    """Text without its line breaks, which fall where the width has them."""
    return " ".join(text.split())


async def told(url: str, clock=None, **wanted):
    return await truth_of_chain(Settings(), url, "devnet", Wanted(**wanted), clock or SystemClock())


def test_swaps_of_the_local_chain_are_all_equal(street, capsys):
    assert cli.main(["truth", street.url, "--network", "devnet", "--swaps", "20"]) == 0
    said = flat(capsys.readouterr().out)
    assert "n = 20 mined swaps" in said and "all equal" in said and "v4 with a hook" in said
    assert "swap_router_02" in said and "griddle router" in said


def test_as_json_every_swap_is_told(street, capsys):
    assert cli.main(["truth", street.url, "--network", "devnet", "--swaps", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["wanted"], said["compared"], said["equal"]) == (5, 5, 5)
    assert all(swap["l2_gas_mined"] == swap["l2_gas_simulated"] and swap["transfers"] for swap in said["swaps"])


def test_fewer_swaps_than_asked_for_is_said(street, capsys):
    assert cli.main(["truth", street.url, "--network", "devnet", "--swaps", "1000", "--wait", "1"]) == 1
    said = capsys.readouterr()
    text = flat(said.out)
    assert "Not enough: " in text and f"no more was mined: all {street.height - 1} blocks of the chain were read; new blocks were followed for 1 s" in text
    assert said.err.count("of 1000 swaps in the blocks at hand; new blocks are followed") == 1


async def test_from_a_block_on_the_oldest_come_first(street):
    _, data, holds = await told(street.url, swaps=4, from_block=26)
    blocks = [swap["block"] for swap in data["swaps"]]
    assert holds and blocks == sorted(blocks) and blocks[0] < 35


async def test_on_a_node_in_nitros_shapes_the_l1_part_is_within_its_padding(street):
    async with nitro_node(street.url) as node:
        text, data, holds = await told(node.url, swaps=20)
    assert holds and all(0 < swap["l1_gas_mined"] < swap["l1_gas_simulated"] for swap in data["swaps"])
    assert "L1 part within its padding" in flat(text)


async def test_new_blocks_are_followed_for_as_long_as_is_asked(chain):
    class Following(SystemClock):
        """Lets the market play a block whenever somebody waits."""

        async def sleep_until(self, ts_ms: int) -> None:
            chain.step()

    first = chain.height
    for wait_s in (60, None):  # the local chain is followed until there are enough
        _, data, holds = await told(chain.url, Following(), swaps=3, from_block=first, wait_s=wait_s)
        assert holds and data["ended"] == "" and all(swap["block"] > first - 1 for swap in data["swaps"])


async def test_a_local_chain_that_stands_still_is_not_followed_for_ever(street):
    class Passing(SystemClock):
        """Lets a second pass whenever somebody waits."""

        passed_ms = 0

        def monotonic_ms(self) -> int:
            return super().monotonic_ms() + self.passed_ms

        async def sleep_until(self, ts_ms: int) -> None:
            self.passed_ms += 1_000

    _, data, holds = await told(street.url, Passing(), swaps=1_000)
    assert not holds and data["ended"].endswith("for 10 s")


async def test_a_difference_is_told_with_its_cause(street):
    def dearer(params, answer):
        return [{**block, "calls": [{**call, "gasUsed": hex(int(call["gasUsed"], 16) + 5)} for call in block["calls"]]} for block in answer]

    async with lying_node(street.url) as node:
        node.by("eth_simulateV1", dearer)
        text, data, holds = await told(node.url, swaps=3)
    assert not holds and "3 differ" in flat(text) and "l2_gas" in text
    assert data["causes"]["rows"][0]["swaps"] == 3


async def test_states_that_are_gone_end_the_walk(street):
    def gone(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32000, "message": "historical state is not available"}} if method == "eth_simulateV1" else row

    async with lying_node(street.url) as node:
        node.lie(alter=gone)
        _, data, holds = await told(node.url, swaps=3, wait_s=0)
    assert not holds and data["compared"] == 0 and data["ended"].startswith("the node no longer has the states of blocks ")


async def test_pruned_logs_end_the_walk(street):
    async with nitro_node(street.url) as node:
        node.oldest_block = street.height + 1
        text, data, holds = await told(node.url, swaps=3, wait_s=0)
    assert not holds and data["compared"] == 0
    assert "Not enough: 0 of the 3 swaps asked for could be run again; the node no longer has the blocks" in flat(text)


async def test_a_node_of_another_chain_is_a_fault(street):
    async with lying_node(street.url) as node:
        node.by("eth_chainId", lambda params, answer: "0x1")
        with pytest.raises(ChainFault, match="wrong_identity"):
            await told(node.url, swaps=1)


def test_the_address_is_never_shown(capsys):
    assert cli.main(["truth", f"http://127.0.0.1:9/{KEY}"]) == 3
    said = capsys.readouterr()
    assert KEY not in said.out + said.err


def test_routers_are_named_by_the_network_file():
    network = load_network("robinhood")
    assert router_name(network, network.universal_router) == "universal_router"
    assert router_name(network, "0x06afba43fd06227fa663b0daecf536f6eaa6bf99") == "UniversalRouter of 2026-07-06"
    assert router_name(network, "0x9a55d3d0c0f09859c7869510f53ed0a30b340766") == "sushi-v2 router"
    assert router_name(network, None) == router_name(network, "0x" + "12" * 20) == "another contract"
