"""A header that orders stand on says what its own hash says; any other is a fault (ONC-07, design §9)."""

from __future__ import annotations

import pytest

from chain.header import SEALED, header_of, seal_of, sealed_header_of
from chain.rpc import RpcRefused
from ledgers.errors import ChainFault

FIELDS = {"number": "0x5", "hash": "0x" + "ab" * 32, "timestamp": "0x64", "baseFeePerGas": "0x7"}


def blocks(devnet) -> list[dict]:
    return [devnet.node.call("eth_getBlockByNumber", [hex(block), False]) for block in (0, 1, devnet.height // 2, devnet.height)]


def test_every_block_of_the_chain_hashes_to_its_own_hash(devnet):
    assert all(seal_of(block) == block["hash"] for block in blocks(devnet))


def test_a_sealed_header_is_read(devnet):
    block = blocks(devnet)[-1]
    assert sealed_header_of(block, devnet.height) == header_of(block)


@pytest.mark.parametrize("name", [*SEALED, "hash"])
def test_a_header_with_any_field_changed_is_a_fault(devnet, name):
    block = blocks(devnet)[-1]
    changed = block[name][:-1] + ("1" if block[name][-1] == "0" else "0")
    with pytest.raises(ChainFault):
        sealed_header_of(block | {name: changed})


def test_a_header_with_a_field_left_out_is_a_fault(devnet):
    block = blocks(devnet)[-1]
    for name in SEALED:
        with pytest.raises(ChainFault):
            sealed_header_of({key: value for key, value in block.items() if key != name})


def test_an_older_chains_header_has_fewer_fields_and_still_a_hash():
    """Block 1 of Ethereum's main chain, which has none of the later fields; its hash is well known."""
    empty_list = "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
    empty_trie = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    block = {
        "parentHash": "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3", "sha3Uncles": "0x" + empty_list,
        "miner": "0x05a56e2d52c817161883f50c441c3228cfe54d9f", "stateRoot": "0xd67e4d450343046425ae4271474353857ab860dbc0a1dde64b41b5cd3a532bf3",
        "transactionsRoot": "0x" + empty_trie, "receiptsRoot": "0x" + empty_trie, "logsBloom": "0x" + "00" * 256, "difficulty": "0x3ff800000",
        "number": "0x1", "gasLimit": "0x1388", "gasUsed": "0x0", "timestamp": "0x55ba4224", "extraData": "0x476574682f76312e302e302f6c696e75782f676f312e342e32",
        "mixHash": "0x969b900de27b6ac6a67742365dd65f55a0526c41fd18e1b16f1a1215c2e66f59", "nonce": "0x539bd4979fef1ec4",
    }  # fmt: skip
    assert seal_of(block) == "0x88e96d4537bea4d9c05d12549907b32561d3bf31f45aae734cdc119f13406cb6"


@pytest.mark.parametrize("answer", [None, RpcRefused(-32000, "no")])
def test_a_block_that_a_node_does_not_have_is_behind(answer):
    with pytest.raises(ChainFault) as caught:
        header_of(answer, 5)
    assert caught.value.reason == "behind"


@pytest.mark.parametrize("changes", [{"number": "0x6"}, {"number": None}, {"hash": "0x12"}, {"hash": None}, {"timestamp": "soon"}, {"timestamp": hex(2**53)}, {"baseFeePerGas": hex(2**128)}])
def test_a_header_that_is_none_is_a_fault(changes):
    with pytest.raises(ChainFault) as caught:
        header_of(FIELDS | changes, 5)
    assert caught.value.reason == "bad_answer"
