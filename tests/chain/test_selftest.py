"""Every line of the self-test: what it says of a good node, and that it says so when something is not as needed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from chain.aggregators.rivals import Rivals, rivals_named
from chain.devnet.devnet import Devnet
from chain.devnet.rival import KEY
from chain.finding import DIFFERS, FINE, NOTED, UNKNOWN
from chain.network import BalanceLayout, PriceFeed, ReferencePool, load_network
from chain.pools import NATIVE, Pool, v4_id
from chain.rpc import Lane, RpcDoor
from chain.selftest import self_test
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import ChainFault
from tests.chain.lies import door_through, door_to, refusal
from tests.chain.nitro import nitro_node
from tests.chain.nitro_shapes import NODE_INTERFACE

NETWORK = load_network("devnet")


@pytest.fixture(scope="module")
def street():
    """A chain of this module's own: a node forgets states when what others did on it is undone."""
    with Devnet.build(7, 50) as chain:
        yield chain


async def findings_of(door: RpcDoor, network=NETWORK, clock=None, rivals=None) -> dict[str, tuple[str, str]]:
    try:
        found = await self_test(door, network, clock or SystemClock(), rivals)
    finally:
        await door.close()
    return {finding.what: (finding.verdict, finding.found) for finding in found.findings} | {"holds": (str(found.holds), "")}


def without(*methods: str):
    return lambda method, params, row: refusal(row, -32601, "no such method") if method in methods else row


async def test_a_good_node_holds(street):
    found = await findings_of(door_to(street.url))
    assert found.pop("holds")[0] == "True"
    assert {verdict for verdict, _ in found.values()} == {FINE, NOTED}


@pytest.mark.parametrize(("method", "what", "verdict"), [
    ("eth_simulateV1", "eth_simulateV1", DIFFERS),
    ("eth_createAccessList", "eth_createAccessList", NOTED),
    ("eth_getBlockReceipts", "eth_getBlockReceipts", NOTED),
    ("eth_getStorageAt", "eth_getStorageAt", DIFFERS),
    ("eth_getLogs", "blocks in one question for logs", DIFFERS),
])  # fmt: skip
async def test_a_missing_method_is_said(street, method, what, verdict):
    assert (await findings_of(door_through(street.url, without(method))))[what][0] == verdict


async def test_another_chain_id_differs(street):
    assert (await findings_of(door_to(street.url), replace(NETWORK, chain_id=4664)))["chain id"][0] == DIFFERS


async def test_block_0_is_compared_with_the_network_files_or_said_to_be_comparable_with_nothing(street):
    door, own = door_to(street.url), street.block_hash(0)
    assert (await findings_of(door))["block 0"] == (NOTED, f"{own}; each local chain has its own")
    assert (await findings_of(door, replace(NETWORK, block0_hash=own)))["block 0"] == (FINE, own)
    assert (await findings_of(door, replace(NETWORK, block0_hash="0x" + "77" * 32)))["block 0"][0] == DIFFERS
    said = (await findings_of(door, replace(NETWORK, name="elsewhere")))["block 0"]
    assert said == (NOTED, f"{own}; its network file names none, so that nothing here can be compared with it")


async def test_a_chain_on_wall_time_must_be_near_it(street):
    wall = replace(NETWORK, clock="wall")
    head_ms = int(street.node.call("eth_getBlockByNumber", ["latest", False])["timestamp"], 16) * 1_000
    assert (await findings_of(door_to(street.url), wall, VirtualClock(head_ms + 15_000)))["clock"][0] == FINE
    assert (await findings_of(door_to(street.url), wall, VirtualClock(head_ms + 15_001)))["clock"][0] == DIFFERS


@pytest.mark.parametrize(("step_s", "verdict"), [(0, DIFFERS), (1, NOTED)])
async def test_a_node_that_takes_no_equal_times_differs_where_they_are_needed(street, step_s, verdict):
    def later_only(method, params, row):
        overrides = params[0]["blockStateCalls"][0].get("blockOverrides", {}) if method == "eth_simulateV1" else {}
        return refusal(row, -38021, "block timestamps must be in order") if set(overrides) == {"number", "time"} else row

    found = await findings_of(door_through(street.url, later_only), replace(NETWORK, time_step_s=step_s))
    assert found["a block in the same second"][0] == verdict


# --- gas --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def nitro_door(street, alter=None):
    async with nitro_node(street.url) as node:
        node.batch_max = 100
        yield door_through(node.url, alter) if alter else RpcDoor([Lane("nitro", node.url)], clock=SystemClock())


async def test_nitros_l1_part_is_found_once_and_near_the_nodes_own_estimate(street):
    async with nitro_door(street) as door:
        found = await findings_of(door)
    assert found["L1 part"][0] == found["transfer with fees"][0] == FINE and "estimate, padded by a tenth, is" in found["L1 part"][1]


async def test_an_l1_part_far_from_the_nodes_own_estimate_differs(street):
    def estimate(method, params, row):
        return {**row, "result": f"0x{500_000:064x}"} if method == "eth_call" and params[0]["to"] == NODE_INTERFACE else row

    async with nitro_door(street, estimate) as door:
        assert (await findings_of(door))["L1 part"][0] == DIFFERS


def dearer(by: int):
    """A node that says more gas than it charges for."""

    def alter(method, params, row):
        for block in row.get("result") or () if method == "eth_simulateV1" and params[0].get("validation") else ():
            for call in block["calls"]:
                if call["gasUsed"] == "0x5208":
                    call["gasUsed"] = hex(0x5208 + by)
        return row

    return alter


async def test_gas_that_was_not_paid_for_differs(street):
    assert (await findings_of(door_through(street.url, dearer(1))))["transfer with fees"][0] == DIFFERS


async def test_an_l1_part_that_cannot_be_told_apart_is_unknown(street):
    def only_own(method, params, row):
        fee_to = params[0]["blockStateCalls"][0].get("blockOverrides", {}).get("feeRecipient") if method == "eth_simulateV1" else None
        return refusal(row, -32000, "not here") if fee_to else row

    found = await findings_of(door_through(street.url, only_own))
    assert found["L1 part"][0] == UNKNOWN and found["holds"][0] == "False"


# --- what stands on the chain -----------------------------------------------------------------------------------------


async def test_code_that_is_not_there_is_named(street):
    found = await findings_of(door_to(street.url), replace(NETWORK, tick_lens="0x" + "12" * 20, reference_pools=(ReferencePool(name="old", venue="v3", key="0x" + "13" * 20, source="x"),)))
    assert found["contracts"][0] == DIFFERS and found["contracts"][1].endswith("none at tick_lens")
    assert found["other known addresses"][0] == NOTED and found["other known addresses"][1].endswith("none at pool old")


async def test_a_quote_off_the_feed_differs(street):
    def half(method, params, row):
        if method == "eth_call" and params[0]["to"] == NETWORK.quoter_v2 and "result" in row:
            return {**row, "result": f"0x{int(row['result'][2:66], 16) // 2:064x}" + row["result"][66:]}
        return row

    found = await findings_of(door_through(street.url, half))
    assert found["QuoterV2, 0.01 ETH"][0] == DIFFERS and found["V4Quoter, 0.01 ETH"][0] == FINE


async def test_a_feed_that_is_stale_differs_and_another_is_noted(street):
    assert (await findings_of(door_to(street.url), replace(NETWORK, feed_heartbeat_s=0)))["ETH/USD feed"][0] == DIFFERS
    feeds = (PriceFeed(name="ETH/USD again", address=NETWORK.feed, source="x"), PriceFeed(name="none", address=NETWORK.weth, source="x"))
    found = await findings_of(door_to(street.url), replace(NETWORK, feeds=feeds))
    assert found["ETH/USD again feed"][0] == FINE and found["none feed"][0] == NOTED


async def test_pools_of_v4_are_looked_up_by_their_id(street):
    there = Pool(venue="v4", key="", token0=NATIVE, token1=NETWORK.usdg, fee_ppm=500, tick_spacing=10, hooks=NATIVE, born_block=0)
    pools = tuple(ReferencePool(name=name, venue="v4", key=key, source="x") for name, key in (("there", v4_id(there)), ("gone", "0x" + "ab" * 32)))
    found = await findings_of(door_to(street.url), replace(NETWORK, reference_pools=pools))
    assert found["v4 gone"][0] == NOTED and found["v4 there"][0] in (FINE, NOTED)


@pytest.mark.parametrize(("position", "verdict"), [(3, FINE), (4, DIFFERS)])
async def test_a_known_slot_is_written_and_read_back(street, position, verdict):
    layouts = (BalanceLayout(token=NETWORK.weth, position=position, bits=256, source="x"),)
    assert (await findings_of(door_to(street.url), replace(NETWORK, balance_layouts=layouts)))[f"WETH at {position}"][0] == verdict


async def test_a_part_that_fails_is_unknown_and_the_others_are_told(street):
    def broken(method, params, row):
        return {**row, "result": "nonsense"} if method == "eth_call" and params[0]["to"] == NETWORK.v4_quoter else row

    found = await findings_of(door_through(street.url, broken))
    assert found["answers"][0] == UNKNOWN and found["USDG found"][0] == FINE and found["holds"][0] == "False"


async def test_a_node_that_says_nothing_sound_of_itself_is_a_fault(street):
    with pytest.raises(ChainFault):
        await findings_of(door_through(street.url, lambda method, params, row: {**row, "result": 5}))


# --- rivals -----------------------------------------------------------------------------------------------------------


async def test_a_rivals_own_transaction_is_simulated(street):
    with street.rival() as rival:
        asked = Rivals(rivals_named(("kyberswap", "0x"), "devnet", {"0x": KEY}, rival.base_urls), SystemClock())
        try:
            found = await findings_of(door_to(street.url), rivals=asked)
        finally:
            await asked.close()
    assert found["kyberswap"][0] == found["0x"][0] == FINE and "its transaction brings" in found["0x"][1]


async def test_a_silent_rival_is_noted(street):
    asked = Rivals(rivals_named(("kyberswap",), "devnet", {}, {"kyberswap": "http://127.0.0.1:9/robinhood"}), SystemClock())
    try:
        found = await findings_of(door_to(street.url), rivals=asked)
    finally:
        await asked.close()
    assert found["kyberswap"][0] == NOTED and found["kyberswap"][1].startswith("silent: ") and found["holds"][0] == "True"
