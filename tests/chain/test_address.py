"""EIP-55: the four published cases, and what is not an address."""

import pytest
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from chain.address import checksum_ok, checksummed, is_address

PUBLISHED = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@pytest.mark.parametrize("address", PUBLISHED)
def test_the_published_addresses_are_right_and_one_wrong_letter_is_not(address: str) -> None:
    assert checksum_ok(address) and checksum_ok(address.lower())
    place = next(i for i, letter in enumerate(address) if i > 1 and letter.isalpha())
    mixed = address[:place] + address[place].swapcase() + address[place + 1 :]
    assert not checksum_ok(mixed) or mixed == mixed.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "0x" + "a" * 39,
        "0x" + "a" * 41,
        "0X" + "a" * 40,
        "a" * 40,
        "0x" + "g" * 40,
        " 0x" + "a" * 40,
        "0x" + "a" * 40 + "\n",
        "0x" + "а" * 40,
        "0x" + "１" * 40,
    ],
)
def test_what_is_not_an_address_is_not(text: str) -> None:
    assert not is_address(text) and not checksum_ok(text)


@given(st.binary(min_size=20, max_size=20))
def test_the_checksum_is_the_one_others_compute(raw: bytes) -> None:
    assert checksummed("0x" + raw.hex()) == to_checksum_address(raw)
