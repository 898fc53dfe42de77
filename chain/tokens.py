"""ERC-20 facts: symbol, name, decimals and supply, asked of contracts that may be hostile.

All four are asked of many tokens in one `eth_call` of a small reader whose code exists only as an override. The reader
gives each question its own gas and keeps at most 128 bytes of each answer, so that a token that burns gas, returns
megabytes or reverts spoils nothing but its own facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chain.calldata import hex_bytes
from chain.rpc import RpcDoor, RpcRefused
from chain.text import clean
from ledgers.errors import ChainFault

DECIMALS_MAX = 36
"""A token that claims more is not tradable."""
SYMBOL_LENGTH_MAX = 16
NAME_LENGTH_MAX = 40
TOKENS_AT_ONCE = 64
CALLS_AT_ONCE = 8

SYMBOL, NAME, DECIMALS, TOTAL_SUPPLY = "95d89b41", "06fdde03", "313ce567", "18160ddd"
QUESTIONS = (SYMBOL, NAME, DECIMALS, TOTAL_SUPPLY)
CALL_GAS = 30_000_000
ANSWER_BYTES = 128
ROW_BYTES = 64 + ANSWER_BYTES
"""One answer: whether the call went through, how much it returned, and the first 128 bytes of that."""

READER = "0x0000000000000000000000000000524541444552"
"""Where the reader's code is put for the length of a call; nobody's address."""
READER_CODE = "0x" + "".join(
    line.split("#")[0].replace(" ", "")
    for line in """
    6020 6000             # out = 0x20, at = 0
    5b                    # next:
    36 81 10 15 603c 57   #   if at >= calldatasize goto end
    80 35                 #   question = calldata[at]: 20 bytes of address, 4 of selector
    80 60a0 1b 6000 52    #   memory[0] = selector
    6080 83 6040 01       #   keep 128 bytes at out + 64
    6004 6000             #   of a call with the selector alone
    84 6060 1c 620186a0   #   to the address, with 100,000 gas
    fa                    #   staticcall
    83 52                 #   memory[out] = went through
    3d 83 6020 01 52      #   memory[out + 32] = size of what it returned
    50 6020 01            #   at += 32
    90 60c0 01 90         #   out += 192
    6004 56               #   goto next
    5b 50                 # end:
    6020 90 03 6020 f3    # return memory[0x20 … out]
    """.splitlines()
)


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a token says of itself, bounded and stripped; it may all be untrue."""

    address: str
    symbol: str
    """Empty when it says none."""
    name: str
    decimals: int | None
    """None when absent or above 36."""
    total_supply_raw: int | None

    @property
    def tradable(self) -> bool:
        """True when amounts of it can be shown; without decimals they cannot."""
        return self.decimals is not None


async def read_facts(rpc: RpcDoor, tokens: Iterable[str], block: int) -> dict[str, TokenFacts]:
    """Read the facts of tokens at a block, in one round trip for up to 512 tokens.

    Shapes: one entry per token; what a token does not answer properly is none or empty. Raises: ChainFault for the node."""
    wanted = list(dict.fromkeys(tokens))
    left = [wanted[at : at + TOKENS_AT_ONCE] for at in range(0, len(wanted), TOKENS_AT_ONCE)]
    facts: dict[str, TokenFacts] = {}
    while left:
        several, left = left[:CALLS_AT_ONCE], left[CALLS_AT_ONCE:]
        for chunk, answer in zip(several, await rpc.batch([_request(chunk, block) for chunk in several]), strict=True):
            if not isinstance(answer, RpcRefused):
                facts |= _facts(chunk, hex_bytes(answer))
            elif len(chunk) > 1:
                left += [chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]]
            else:
                facts[chunk[0]] = TokenFacts(chunk[0], "", "", None, None)
    return facts


def _request(tokens: Sequence[str], block: int) -> tuple[str, list[Any]]:
    questions = "".join(token[2:] + question + "00" * 8 for token in tokens for question in QUESTIONS)
    call = {"to": READER, "data": "0x" + questions, "gas": hex(CALL_GAS)}
    return ("eth_call", [call, hex(block), {READER: {"code": READER_CODE}}])


def _facts(tokens: Sequence[str], data: bytes) -> dict[str, TokenFacts]:
    if len(data) != len(tokens) * len(QUESTIONS) * ROW_BYTES:
        raise ChainFault("bad_answer", f"expected facts of {len(tokens)} tokens, found {len(data)} bytes")
    answers = [_answer(data[at : at + ROW_BYTES]) for at in range(0, len(data), ROW_BYTES)]
    return {token: _read(token, *answers[4 * place : 4 * place + 4]) for place, token in enumerate(tokens)}


def _answer(row: bytes) -> bytes:
    went_through, size = int.from_bytes(row[:32]), int.from_bytes(row[32:64])
    return row[64 : 64 + min(size, ANSWER_BYTES)] if went_through == 1 else b""


def _read(token: str, symbol: bytes, name: bytes, decimals: bytes, supply: bytes) -> TokenFacts:
    scale = _number(decimals)
    return TokenFacts(
        address=token,
        symbol=clean(_text(symbol), SYMBOL_LENGTH_MAX),
        name=clean(_text(name), NAME_LENGTH_MAX),
        decimals=scale if scale is not None and scale <= DECIMALS_MAX else None,
        total_supply_raw=_number(supply),
    )


def _number(answer: bytes) -> int | None:
    return int.from_bytes(answer[:32]) if len(answer) >= 32 else None


def _text(answer: bytes) -> bytes:
    """A string as ABI says, or 32 bytes padded with zeros as some old tokens answer."""
    if len(answer) == 32:
        return answer.rstrip(b"\0")
    start = int.from_bytes(answer[:32]) + 32
    if len(answer) < 64 or start > len(answer):
        return b""
    length = int.from_bytes(answer[start - 32 : start])
    text = answer[start : start + length]
    return text if len(text) == length else text + "…".encode()
