"""Rules: what instructions cost and what they may use, as of Osaka.

Source: the Yellow Paper, with EIP-150, 160, 161, 170, 1153, 1559, 2028, 2200, 2929, 3529, 3541, 3651, 3855, 3860, 4844, 5656, 6780,
7516, 7623, 7702, 7823, 7825, 7883, 7939, 7951.
"""

from __future__ import annotations

from eth_hash.auto import keccak

CODE_EMPTY = keccak(b"")
WORD_MASK, ADDRESS_MASK, SIGN_BIT = 2**256 - 1, 2**160 - 1, 2**255
STACK_MAX, DEPTH_MAX, NONCE_MAX = 1_024, 1_024, 2**64 - 1
CODE_BYTES_MAX, INIT_CODE_BYTES_MAX = 24_576, 49_152
DELEGATION, DELEGATION_BYTES = b"\xef\x01\x00", 23
BLOCK_HASHES = 256
WORK_MAX = 30_000_000
"""Gas, and work in units of gas, that one run may take: some seconds."""
WORK_RECOVERY, BYTES_PER_WORK = 40_000, 512

GAS_TX, GAS_DATA_TOKEN, GAS_FLOOR_TOKEN, DATA_TOKENS_NONZERO = 21_000, 4, 10, 4
GAS_TX_MAX = 2**24
REFUND_PART, HANDED_ON = 5, 64
"""At most a fifth is paid back; of what is left a sixty-fourth is not handed on."""
GAS_COLD_ADDRESS, GAS_COLD_WORD, GAS_WARM = 2_600, 2_100, 100
GAS_WORD_SET, GAS_WORD_CHANGE, GAS_WORD_STIPEND, REFUND_CLEAR = 20_000, 2_900, 2_300, 4_800
GAS_CALL_VALUE, GAS_NEW_ACCOUNT, GAS_STIPEND = 9_000, 25_000, 2_300
GAS_CREATE, GAS_INIT_WORD, GAS_CODE_BYTE = 32_000, 2, 200
GAS_HASH_WORD, GAS_COPY_WORD, GAS_EXP_BYTE = 6, 3, 50
GAS_LOG, GAS_LOG_BYTE = 375, 8
GAS_SELFDESTRUCT = 5_000


class NotCoveredHere(Exception):
    """A run met something whose result is not known here."""


class Halt(Exception):
    """A frame ended badly: its gas is gone and what it did is taken back."""


def words_of(size: int) -> int:
    """Words that so many bytes take."""
    return (size + 31) >> 5


def memory_gas(words: int) -> int:
    """What memory of so many words has cost."""
    return 3 * words + words * words // 512


def intrinsic_gas(data: bytes) -> tuple[int, int]:
    """What a call costs before it runs, and the least that it is charged. Source: EIP-2028, EIP-7623."""
    zeros = data.count(0)
    tokens = zeros + DATA_TOKENS_NONZERO * (len(data) - zeros)
    return GAS_TX + GAS_DATA_TOKEN * tokens, GAS_TX + GAS_FLOOR_TOKEN * tokens
