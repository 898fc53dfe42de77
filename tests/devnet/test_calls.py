"""Addresses and calldata, against values that are known from elsewhere."""

import pytest

from chain.devnet.calls import Tx, create2_address, created_address, encode, types_of

DEPLOYER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"


@pytest.mark.parametrize(
    ("nonce", "address"), [(0, "0x5fbdb2315678afecb367f032d93f642f64180aa3"), (1, "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512")]
)
def test_created_address_of_a_known_deployer(nonce, address):
    assert created_address(DEPLOYER, nonce) == address


def test_created_addresses_of_long_nonces_are_those_of_the_chain(chain):
    sender = chain.deployment.cast.zookeeper
    nonce = chain.miner.nonce(sender)
    assert nonce > 255
    [receipt] = chain.send(Tx(sender=sender, to=None, data="0x600060005260206000f3"))
    assert receipt["contractAddress"].lower() == created_address(sender, nonce)


def test_create2_address_of_the_standards_example():
    assert (
        create2_address("0x" + "00" * 20, b"\0" * 32, "0xbc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a")
        == "0x4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38"
    )


def test_types_are_split_at_the_top_level():
    assert types_of("exactInput((bytes,address,uint256),bool[])") == ("(bytes,address,uint256)", "bool[]") and types_of("deposit()") == ()


def test_a_transfer_is_encoded_as_everybody_does():
    assert encode("transfer(address,uint256)", DEPLOYER, 5) == "0xa9059cbb" + DEPLOYER[2:].rjust(64, "0") + f"{5:064x}"
