"""Calldata packed by hand equals what the ABI library packs; what nodes send is read strictly (design §6)."""

from __future__ import annotations

import pytest
from eth_abi import encode
from eth_utils import keccak
from hypothesis import given
from hypothesis import strategies as st

from chain import calldata
from chain.pools import NATIVE, Pool, v4_key_words
from ledgers.errors import ChainFault

ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
WORDS = st.integers(0, 2**256 - 1)
FEES = st.integers(0, 2**24 - 1)
DATA = st.binary(max_size=100)
A, B, C = ("0x" + digit * 40 for digit in "abc")


def packed(signature: str, *values: object) -> str:
    """Calldata by the ABI library."""
    types = signature[signature.index("(") :]
    return "0x" + keccak(text=signature)[:4].hex() + encode([types], [values]).hex() if _static(types) else "0x" + keccak(
        text=signature
    )[:4].hex() + encode([types], [values])[32:].hex()


def _static(types: str) -> bool:
    return not any(word in types for word in ("bytes", "[]", "string"))


def path_bytes(tokens: list[str], fees: list[int]) -> bytes:
    path = bytes.fromhex(tokens[0][2:])
    for fee, token in zip(fees, tokens[1:], strict=True):
        path += fee.to_bytes(3) + bytes.fromhex(token[2:])
    return path


# --- encoders -------------------------------------------------------------------------------------------------------


@given(ADDRESSES, ADDRESSES, WORDS, FEES)
def test_plain_calls_equal_the_abi(one, other, amount, fee):
    assert calldata.balance_of(one) == packed("balanceOf(address)", one)
    assert calldata.approve(one, amount) == packed("approve(address,uint256)", one, amount)
    assert calldata.eth_balance(one) == packed("getEthBalance(address)", one)
    assert calldata.unwrap_weth(one) == packed("unwrapWETH9(uint256,address)", 0, one)
    assert calldata.permit2_approve(one, other) == packed("approve(address,address,uint160,uint48)", one, other, 2**160 - 1, 2**48 - 1)
    assert calldata.trade_curve("buy", amount, one) == packed("buy(uint256,uint256,address)", amount, 0, one)
    assert calldata.trade_curve("sell", amount, one) == packed("sell(uint256,uint256,address)", amount, 0, one)
    single = packed("exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))", (one, other, fee, one, amount, 0, 0))
    assert calldata.swap_v3_single(one, other, fee, one, amount) == single
    quote = packed("quoteExactInputSingle((address,address,uint256,uint24,uint160))", (one, other, amount, fee, 0))
    assert calldata.quote_v3_single(one, other, amount, fee) == quote


@given(st.lists(ADDRESSES, min_size=2, max_size=4), FEES, WORDS)
def test_paths_equal_the_abi(tokens, fee, amount):
    fees = [fee] * (len(tokens) - 1)
    path, path_hex = path_bytes(tokens, fees), calldata.v3_path(tokens, fees)
    assert path_hex == path.hex()
    assert calldata.swap_v3_path(path_hex, A, amount) == packed("exactInput((bytes,address,uint256,uint256))", (path, A, amount, 0))
    assert calldata.quote_v3_path(path_hex, amount) == packed("quoteExactInput(bytes,uint256)", path, amount)
    assert calldata.swap_v2(tokens, A, amount) == packed("swapExactTokensForTokens(uint256,uint256,address[],address)", amount, 0, tokens, A)
    assert calldata.amounts_out(amount, tokens) == packed("getAmountsOut(uint256,address[])", amount, tokens)
    never = 2**256 - 1
    bought = packed("swapExactETHForTokensSupportingFeeOnTransferTokens(uint256,address[],address,uint256)", 0, tokens, A, never)
    sold = packed("swapExactTokensForETHSupportingFeeOnTransferTokens(uint256,uint256,address[],address,uint256)", amount, 0, tokens, A, never)
    assert (calldata.swap_eth_v2(tokens, A), calldata.swap_for_eth_v2(amount, tokens, A)) == (bought, sold)


@given(st.lists(DATA, max_size=4), ADDRESSES)
def test_batched_calls_equal_the_abi(items, target):
    assert calldata.multicall(["0x" + item.hex() for item in items]) == packed("multicall(bytes[])", items)
    calls = [(target, True, item) for item in items]
    assert calldata.aggregate3([(target, "0x" + item.hex()) for item in items]) == packed("aggregate3((address,bool,bytes)[])", calls)


@given(st.booleans(), st.integers(0, 2**128 - 1), FEES, st.integers(1, 2**15 - 1))
def test_a_v4_quote_equals_the_abi(zero_for_one, amount, fee, spacing):
    pool = Pool(venue="v4", key="0x", token0=NATIVE, token1=A, fee_ppm=fee, tick_spacing=spacing, hooks=NATIVE, born_block=0)
    signature = "quoteExactInputSingle(((address,address,uint24,int24,address),bool,uint128,bytes))"
    wanted = packed(signature, ((NATIVE, A, fee, spacing, NATIVE), zero_for_one, amount, b""))
    assert calldata.quote_v4_single(v4_key_words(pool), zero_for_one, amount) == wanted


def test_selectors_are_those_of_their_signatures():
    execute = "execute(bytes,bytes[],uint256)"
    assert calldata.UNIVERSAL_EXECUTE == keccak(text=execute)[:4].hex()


@given(ADDRESSES, st.integers(0, 2**64))
def test_mapping_slots_follow_both_compilers(owner, position):
    key, at = bytes.fromhex(owner[2:]).rjust(32, b"\0"), position.to_bytes(32)
    assert calldata.mapping_slot(owner, position) == "0x" + keccak(key + at).hex()
    assert calldata.mapping_slot_vyper(owner, position) == "0x" + keccak(at + key).hex()


# --- aggregate3 -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), DATA), max_size=6))
def test_aggregate3_is_read_back(results):
    answer = "0x" + encode(["(bool,bytes)[]"], [results]).hex()
    assert calldata.aggregate3_results(answer, len(results)) == [data if ok else None for ok, data in results]


@given(st.lists(st.tuples(st.booleans(), DATA), min_size=1, max_size=4), st.data())
def test_a_cut_aggregate3_is_a_fault_or_the_same(results, data):
    whole = encode(["(bool,bytes)[]"], [results])
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        found = calldata.aggregate3_results("0x" + cut.hex(), len(results))
    except ChainFault:
        return
    assert found == [item if ok else None for ok, item in results]


@given(st.binary(max_size=400), st.integers(0, 5))
def test_garbage_for_aggregate3_is_a_fault_or_bounded(garbage, count):
    try:
        found = calldata.aggregate3_results("0x" + garbage.hex(), count)
    except ChainFault:
        return
    assert len(found) == count and sum(len(item or b"") for item in found) <= len(garbage)


def test_an_aggregate3_that_repeats_one_large_result_is_a_fault():
    count, large = 100, 5_000
    heads = [32 * count] * count
    body = b"".join(value.to_bytes(32) for value in (32, count, *heads, 1, 64, large)) + bytes(large)
    with pytest.raises(ChainFault, match="multicall results"):
        calldata.aggregate3_results("0x" + body.hex(), count)


def test_another_count_of_results_is_a_fault():
    answer = "0x" + encode(["(bool,bytes)[]"], [[(True, b"a")]]).hex()
    with pytest.raises(ChainFault, match="expected 2"):
        calldata.aggregate3_results(answer, 2)


# --- reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [None, 5, 5.0, True, b"0x12", [], {}, "", "0x", "12", "0X12", "0x1_0", "0x 1", "0x1 ", "0x+1", "0x-1", "-0x1", "0xg", "0x1.0", "0x\u0663",
     "0x" + "f" * 65, " 0x1", "0x1\n"],
)  # fmt: skip
def test_a_quantity_that_is_none_is_a_fault(garbage):
    with pytest.raises(ChainFault):
        calldata.hex_int(garbage)


@given(WORDS)
def test_a_quantity_is_read(value):
    assert calldata.hex_int(hex(value)) == value


@pytest.mark.parametrize("garbage", [None, 5, b"0x12", [], {}, "", "12", "0X12", "0x1", "0x123", "0xzz", "0x12 34", "0x 12", "0x12\n", "0x1_22", "0x\u0663\u0663"])
def test_data_that_is_no_hex_is_a_fault(garbage):
    with pytest.raises(ChainFault):
        calldata.hex_bytes(garbage)


def test_data_is_read_up_to_what_a_contract_can_return():
    at_most = "0x" + "00" * calldata.RETURN_BYTES_MAX
    assert len(calldata.hex_bytes(at_most)) == calldata.RETURN_BYTES_MAX
    with pytest.raises(ChainFault):
        calldata.hex_bytes(at_most + "00")


@given(DATA, st.integers(0, 5))
def test_a_word_is_read_whole_or_not_at_all(data, index):
    found = calldata.uint_at(data, index)
    whole = 32 * index + 32 <= len(data)
    assert found == (int.from_bytes(data[32 * index : 32 * index + 32]) if whole else None)
