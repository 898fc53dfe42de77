"""What a node can do is asked, never assumed; a node of another chain is turned away."""

from dataclasses import replace

import pytest

from chain.network import load_network
from chain.probe import check_identity, probe
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import ChainFault
from tests.chain.lies import door_through, door_to, refusal

NETWORK = load_network("devnet")


async def probed(door, clock=None, network=NETWORK):
    try:
        return await probe(door, network, clock or SystemClock())
    finally:
        await door.close()


def without(*methods: str):
    return lambda method, params, row: refusal(row, -32601, "the method does not exist") if method in methods else row


async def test_the_local_node_can_do_all_that_an_order_needs(devnet):
    found = await probed(door_to(devnet.url))
    assert found.client.startswith("anvil")
    assert found.simulate and found.native_logs and found.real_base_fee and found.access_list and found.headers_sealed and found.number_moves
    assert found.code_missing == ()
    check_identity(found, NETWORK, devnet.block_hash(0))


async def test_limits_and_shapes_are_found_out(devnet):
    found = await probed(door_to(devnet.url))
    assert found.error_code_shape == "-3200:returnData"
    assert found.batch_max == 100 and found.calls_max == 1_000
    assert found.gas_cap > 30_000_000


async def test_the_clock_offset_is_chain_time_minus_wall_time(devnet):
    head_ts_s = int(devnet.node.call("eth_getBlockByNumber", ["latest", False])["timestamp"], 16)
    found = await probed(door_to(devnet.url), VirtualClock(1_790_000_123_456))
    assert found.clock_offset_ms == head_ts_s * 1_000 - 1_790_000_123_456


async def test_a_node_without_simulation_says_so(devnet):
    found = await probed(door_through(devnet.url, without("eth_simulateV1")))
    assert (found.simulate, found.error_code_shape, found.calls_max) == (False, "none", 0)
    with pytest.raises(ChainFault, match="no_simulate"):
        check_identity(found, NETWORK)


async def test_a_node_without_access_lists_is_good_enough(devnet):
    found = await probed(door_through(devnet.url, without("eth_createAccessList")))
    assert not found.access_list
    check_identity(found, NETWORK, devnet.block_hash(0))


async def test_other_error_shapes_are_told_apart(devnet):
    def like_geth(method, params, row):
        for block in row["result"] if method == "eth_simulateV1" and "result" in row else ():
            for call in block["calls"]:
                if call["status"] == "0x0":
                    call["error"] = {"code": 3, "message": "execution reverted", "data": call["returnData"]}
                    call["returnData"] = "0x"
        return row

    assert (await probed(door_through(devnet.url, like_geth))).error_code_shape == "3:data"


async def test_a_node_whose_contracts_see_another_number_is_known(devnet):
    def like_nitro(method, params, row):
        for block in row["result"] if method == "eth_simulateV1" and "result" in row else ():
            for call in block["calls"] if len(row["result"]) == 2 else ():
                call["returnData"] = "0x" + f"{19_000_000:064x}"
        return row

    found = await probed(door_through(devnet.url, like_nitro))
    assert found.simulate and not found.number_moves


async def test_a_node_that_limits_batches_is_asked_for_less(devnet):
    refused = []

    def at_most_25(method, params, row):
        if method == "eth_chainId":
            refused.append(row["id"])
            if len(refused) <= 101:
                return row if len(refused) == 1 else refusal(row, -32000, "batch too large")
        return row

    assert (await probed(door_through(devnet.url, at_most_25))).batch_max == 25


@pytest.mark.parametrize("answer", [[], {}, "0x", [{"calls": []}], [{"calls": [1, 2, 3]}], None])
async def test_a_simulation_of_the_wrong_shape_is_none(devnet, answer):
    between = door_through(devnet.url, lambda method, params, row: {**row, "result": answer} if method == "eth_simulateV1" else row)
    assert not (await probed(between)).simulate


async def test_a_client_name_is_cleaned(devnet):
    def shouting(method, params, row):
        return {**row, "result": "anvil\x1b[31m\n" + "x" * 500} if method == "web3_clientVersion" else row

    found = await probed(door_through(devnet.url, shouting))
    assert found.client.startswith("anvil x") and len(found.client) == 80


@pytest.mark.parametrize("lie", [None, 4663, "4663", "0x", "0xzz"])
async def test_a_chain_id_of_the_wrong_shape_is_a_fault(devnet, lie):
    between = door_through(devnet.url, lambda method, params, row: {**row, "result": lie} if method == "eth_chainId" else row)
    with pytest.raises(ChainFault, match="bad_answer"):
        await probed(between)


async def test_another_chain_is_turned_away(devnet):
    found = await probed(door_to(devnet.url))
    with pytest.raises(ChainFault, match="wrong_identity: expected chain id 4664"):
        check_identity(found, replace(NETWORK, chain_id=4664))
    with pytest.raises(ChainFault, match="another chain with the same id"):
        check_identity(found, NETWORK, "0x" + "00" * 32)


async def test_a_network_whose_contracts_are_not_there_is_turned_away(devnet):
    elsewhere = load_network("robinhood")
    found = await probed(door_to(devnet.url), network=elsewhere)
    with pytest.raises(ChainFault, match="missing_code: no code at the configured address of .*quoter_v2"):
        check_identity(replace(found, client="nitro/v3.7.2"), elsewhere)


async def test_a_development_node_is_never_a_real_chain_whatever_it_holds(devnet):
    found = await probed(door_to(devnet.url))
    with pytest.raises(ChainFault, match="local_node: the node says it is anvil/.*a development node: .* not robinhood, whatever its id"):
        check_identity(replace(found, code_missing=()), load_network("robinhood"))


async def test_a_block_0_that_the_network_file_names_is_held_to(devnet):
    found = await probed(door_to(devnet.url))
    check_identity(found, replace(NETWORK, block0_hash=devnet.block_hash(0)))
    with pytest.raises(ChainFault, match="wrong_identity: expected block 0 0x77"):
        check_identity(found, replace(NETWORK, block0_hash="0x" + "77" * 32))
