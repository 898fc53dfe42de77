"""Calldata of the few calls that every order makes, packed by hand; tests check each against eth_abi.

Units: amounts are base units; addresses are lower-case hex text; calldata is hex text with 0x.
"""

from __future__ import annotations

from collections.abc import Sequence

from eth_utils import keccak

from ledgers.errors import ChainFault

WORD_MAX = 2**256 - 1
RETURN_BYTES_MAX = 1 << 21
"""More than the gas limits of what is simulated let a contract return, so that no token can make an answer malformed."""

BALANCE_OF = "70a08231"
APPROVE = "095ea7b3"
ALLOWANCE = "dd62ed3e"
ETH_BALANCE = "4d2301cc"
AGGREGATE3 = "82ad56cb"
QUOTE_V3_SINGLE = "c6a5026a"
QUOTE_V3_PATH = "cdca1753"
AMOUNTS_OUT = "d06ca61f"
SWAP_V3_SINGLE = "04e45aaf"
SWAP_V3_PATH = "b858183f"
SWAP_V2 = "472b43f3"
MULTICALL = "ac9650d8"
UNWRAP_WETH = "49404b7c"
SWAP_ETH_V2 = "b6f9de95"
SWAP_FOR_ETH_V2 = "791ac947"
CURVE_BUY = "59a87bc1"
CURVE_SELL = "d04c6983"
QUOTE_V4_SINGLE = "aa9d21cb"
UNIVERSAL_EXECUTE = "3593564c"
PERMIT2_APPROVE = "87517c45"


def word(value: int) -> str:
    """Pack an unsigned integer into 32 bytes of hex."""
    return f"{value:064x}"


def address_word(address: str) -> str:
    """Pack an address into 32 bytes of hex."""
    return "0" * 24 + address[2:]


def balance_of(owner: str) -> str:
    """Encode `balanceOf(address)`."""
    return f"0x{BALANCE_OF}{address_word(owner)}"


def approve(spender: str, amount: int = WORD_MAX) -> str:
    """Encode `approve(address,uint256)`; the usual unlimited amount by default."""
    return f"0x{APPROVE}{address_word(spender)}{word(amount)}"


def allowance(owner: str, spender: str) -> str:
    """Encode `allowance(address,address)`."""
    return f"0x{ALLOWANCE}{address_word(owner)}{address_word(spender)}"


def eth_balance(owner: str) -> str:
    """Encode Multicall3's `getEthBalance(address)`."""
    return f"0x{ETH_BALANCE}{address_word(owner)}"


def tail(data_hex: str) -> str:
    """Pack dynamic bytes: length, then content padded to whole words."""
    size = len(data_hex) // 2
    return word(size) + data_hex + "0" * (-len(data_hex) % 64)


def bytes_array(items: Sequence[str]) -> str:
    """Pack `bytes[]` (hex without 0x): count, offsets, tails."""
    tails = [tail(item) for item in items]
    offsets, at = [], 32 * len(items)
    for packed in tails:
        offsets.append(word(at))
        at += len(packed) // 2
    return word(len(items)) + "".join(offsets) + "".join(tails)


def multicall(calls: Sequence[str]) -> str:
    """Encode SwapRouter02's `multicall(bytes[])`."""
    return f"0x{MULTICALL}{word(32)}{bytes_array([call[2:] for call in calls])}"


def v3_path(tokens: Sequence[str], fees_ppm: Sequence[int]) -> str:
    """Pack a v3 path: token, fee, token, … as hex without 0x."""
    return tokens[0][2:] + "".join(f"{fee:06x}{token[2:]}" for fee, token in zip(fees_ppm, tokens[1:], strict=True))


def swap_v3_single(token_in: str, token_out: str, fee_ppm: int, recipient: str, amount_in: int) -> str:
    """Encode SwapRouter02's `exactInputSingle` with no minimum and no price limit."""
    parts = (address_word(token_in), address_word(token_out), word(fee_ppm), address_word(recipient), word(amount_in), word(0), word(0))
    return f"0x{SWAP_V3_SINGLE}{''.join(parts)}"


def swap_v3_path(path_hex: str, recipient: str, amount_in: int) -> str:
    """Encode SwapRouter02's `exactInput` with no minimum."""
    return f"0x{SWAP_V3_PATH}{word(32)}{word(128)}{address_word(recipient)}{word(amount_in)}{word(0)}{tail(path_hex)}"


def swap_v2(tokens: Sequence[str], recipient: str, amount_in: int) -> str:
    """Encode SwapRouter02's `swapExactTokensForTokens` with no minimum."""
    path = word(len(tokens)) + "".join(address_word(token) for token in tokens)
    return f"0x{SWAP_V2}{word(amount_in)}{word(0)}{word(128)}{address_word(recipient)}{path}"


def swap_eth_v2(tokens: Sequence[str], recipient: str) -> str:
    """Encode the v2 router's `swapExactETHForTokensSupportingFeeOnTransferTokens` with no minimum and no end."""
    path = word(len(tokens)) + "".join(address_word(token) for token in tokens)
    return f"0x{SWAP_ETH_V2}{word(0)}{word(128)}{address_word(recipient)}{word(WORD_MAX)}{path}"


def swap_for_eth_v2(amount_in: int, tokens: Sequence[str], recipient: str) -> str:
    """Encode the v2 router's `swapExactTokensForETHSupportingFeeOnTransferTokens` with no minimum and no end."""
    path = word(len(tokens)) + "".join(address_word(token) for token in tokens)
    return f"0x{SWAP_FOR_ETH_V2}{word(amount_in)}{word(0)}{word(160)}{address_word(recipient)}{word(WORD_MAX)}{path}"


def trade_curve(side: str, amount_in: int, recipient: str) -> str:
    """Encode a launchpad curve's `buy(uint256,uint256,address)` or `sell(uint256,uint256,address)` with no minimum."""
    return f"0x{CURVE_BUY if side == 'buy' else CURVE_SELL}{word(amount_in)}{word(0)}{address_word(recipient)}"


def unwrap_weth(recipient: str) -> str:
    """Encode SwapRouter02's `unwrapWETH9(uint256,address)` with no minimum."""
    return f"0x{UNWRAP_WETH}{word(0)}{address_word(recipient)}"


def quote_v3_single(token_in: str, token_out: str, amount_in: int, fee_ppm: int) -> str:
    """Encode QuoterV2's `quoteExactInputSingle`."""
    return f"0x{QUOTE_V3_SINGLE}{address_word(token_in)}{address_word(token_out)}{word(amount_in)}{word(fee_ppm)}{word(0)}"


def quote_v3_path(path_hex: str, amount_in: int) -> str:
    """Encode QuoterV2's `quoteExactInput`."""
    return f"0x{QUOTE_V3_PATH}{word(64)}{word(amount_in)}{tail(path_hex)}"


def amounts_out(amount_in: int, tokens: Sequence[str]) -> str:
    """Encode the v2 router's `getAmountsOut`."""
    return f"0x{AMOUNTS_OUT}{word(amount_in)}{word(64)}{word(len(tokens))}{''.join(address_word(token) for token in tokens)}"


def quote_v4_single(pool_key: str, zero_for_one: bool, amount_in: int) -> str:
    """Encode V4Quoter's `quoteExactInputSingle`; `pool_key` is five packed words."""
    return f"0x{QUOTE_V4_SINGLE}{word(32)}{pool_key}{word(int(zero_for_one))}{word(amount_in)}{word(256)}{word(0)}"


def permit2_approve(token: str, spender: str) -> str:
    """Encode Permit2's `approve(token, spender, uint160, uint48)` without limit and without end."""
    return f"0x{PERMIT2_APPROVE}{address_word(token)}{address_word(spender)}{word(2**160 - 1)}{word(2**48 - 1)}"


def aggregate3(calls: Sequence[tuple[str, str]]) -> str:
    """Encode Multicall3's `aggregate3` of (target, calldata) pairs, each allowed to fail."""
    packed = [address_word(target) + word(1) + word(96) + tail(data[2:]) for target, data in calls]
    offsets, at = [], 32 * len(packed)
    for item in packed:
        offsets.append(word(at))
        at += len(item) // 2
    return f"0x{AGGREGATE3}{word(32)}{word(len(packed))}{''.join(offsets)}{''.join(packed)}"


def aggregate3_results(answer: object, count: int) -> list[bytes | None]:
    """Decode `aggregate3`: each call's return data, or None where it failed.

    Raises: ChainFault when the answer is not `count` results."""
    data = hex_bytes(answer)
    try:
        base = _number_at(data, 0)
        if _number_at(data, base) != count:
            raise ValueError
        results: list[bytes | None] = []
        head, left = base + 32, len(data)
        for index in range(count):
            at = head + _number_at(data, head + 32 * index)
            length_at = at + _number_at(data, at + 32)
            length = _number_at(data, length_at)
            left -= length
            if length_at + 32 + length > len(data) or left < 0:
                raise ValueError
            results.append(data[length_at + 32 : length_at + 32 + length] if _number_at(data, at) == 1 else None)
        return results
    except ValueError:
        raise ChainFault("bad_answer", f"expected {count} multicall results") from None


def _number_at(data: bytes, at: int) -> int:
    piece = data[at : at + 32]
    if len(piece) != 32:
        raise ValueError
    return int.from_bytes(piece)


def hex_bytes(value: object) -> bytes:
    """Decode 0x hex text. Raises: ChainFault for anything else."""
    if not isinstance(value, str) or value[:2] != "0x" or len(value) > 2 * RETURN_BYTES_MAX + 2:
        raise ChainFault("bad_answer", "expected 0x hex data")
    try:
        data = bytes.fromhex(value[2:])
    except ValueError:
        raise ChainFault("bad_answer", "expected 0x hex data") from None
    if 2 * len(data) + 2 != len(value):
        raise ChainFault("bad_answer", "expected 0x hex data without blanks")
    return data


def hex_int(value: object) -> int:
    """Decode a JSON-RPC quantity of at most 256 bits. Raises: ChainFault for anything else."""
    if not isinstance(value, str) or value[:2] != "0x" or not 3 <= len(value) <= 66 or not (value.isascii() and value.isalnum()):
        raise ChainFault("bad_answer", "expected a 0x quantity")
    try:
        return int(value, 16)
    except ValueError:
        raise ChainFault("bad_answer", "expected a 0x quantity") from None


def uint_at(data: bytes, index: int) -> int | None:
    """Read the index-th word as an unsigned integer; None when the data is too short."""
    piece = data[32 * index : 32 * index + 32]
    return int.from_bytes(piece) if len(piece) == 32 else None


def mapping_slot(owner: str, position: int) -> str:
    """Storage slot of `mapping(address => …)` at a position, Solidity's way."""
    return "0x" + keccak(bytes.fromhex(address_word(owner) + word(position))).hex()


def mapping_slot_vyper(owner: str, position: int) -> str:
    """Storage slot of a `HashMap[address, …]` at a position, Vyper's way."""
    return "0x" + keccak(bytes.fromhex(word(position) + address_word(owner))).hex()
