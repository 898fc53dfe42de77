"""Claims: what rivals' documents hold, read without belief.

Numbers are whole: text or JSON integers, never floats (a JSON number past 64 bits arrives as one and is refused too).
Addresses are compared as addresses, never by ticker. Every reader raises Silence with the word for what was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from chain.address import is_address
from chain.aggregators.ask import SELL, Ask, Silence
from chain.aggregators.inventory import NAME_LENGTH_MAX, VIA_MAX
from chain.gas import SWAP_GAS_LIMIT
from chain.router import Tx
from chain.text import clean

NATIVE_E = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
"""Native ETH for most rivals."""
NATIVE_0 = "0x0000000000000000000000000000000000000000"
"""Native ETH for the others."""
NATIVE = (NATIVE_E, NATIVE_0)
OUT_RAW_MAX = 2**128 - 1
CALLDATA_BYTES_MAX = 64 * 1024
GAS_ESTIMATE_MAX = 1_000_000_000
DECIMAL = re.compile(r"[0-9]{1,78}", re.ASCII)
HEX = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)
APPROVAL = re.compile(r"0x095ea7b30{24}([0-9a-fA-F]{40})([0-9a-fA-F]{64})", re.ASCII)
"""`approve(address,uint256)`."""
CALLDATA = re.compile(r"0x(?:[0-9a-fA-F]{2})+", re.ASCII)


def part(document: Any, *names: str | int) -> Any:
    """Walk into nested objects and lists. Raises: Silence where there is nothing."""
    for name in names:
        inside = isinstance(document, dict) if isinstance(name, str) else isinstance(document, list) and len(document) > name
        if not inside or (isinstance(name, str) and name not in document):
            raise Silence("bad_answer", f"no {'.'.join(map(str, names))}")
        document = document[name]
    return document


def maybe(document: Any, *names: str | int) -> Any:
    """Walk into nested objects and lists; none where there is nothing."""
    try:
        return part(document, *names)
    except Silence:
        return None


def whole(value: Any, what: str, *, hexed: bool = False) -> int:
    """A whole number, as JSON integer or decimal text; as hex text only where the interface writes hex. Raises: Silence."""
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        if DECIMAL.fullmatch(value):
            return int(value)
        if hexed and HEX.fullmatch(value):
            return int(value, 16)
    raise Silence("bad_answer", f"{what} is not a whole number")


def out_amount(value: Any) -> int:
    """What comes out: above 0 and below 2^128. Raises: Silence."""
    out_raw = whole(value, "the amount out")
    if not 0 < out_raw <= OUT_RAW_MAX:
        raise Silence("bad_answer", "the amount out is zero or past 128 bits")
    return out_raw


def gas_claim(value: Any, *, hexed: bool = False) -> int | None:
    """A gas estimate, if it is one; nothing rests on it."""
    try:
        gas = whole(value, "gas", hexed=hexed)
    except Silence:
        return None
    return gas if 0 < gas <= GAS_ESTIMATE_MAX else None


def same_amount(value: Any, ask: Ask) -> None:
    """Hold the size in an answer against the one asked for. Raises: Silence."""
    if whole(value, "the amount in") != ask.amount:
        raise Silence("wrong_amount", "it quotes another size")


def same_token(value: Any, expected: str) -> None:
    """Hold a token in an answer against the one asked for, by address; native ETH has two names. Raises: Silence."""
    if not isinstance(value, str) or not is_address(value):
        raise Silence("bad_answer", "a token without an address")
    if value.lower() not in (NATIVE if expected in NATIVE else (expected,)):
        raise Silence("wrong_token", "it quotes another token")


def same_chain(value: Any, ask: Ask) -> None:
    """Hold the chain in an answer against ours. Raises: Silence."""
    if whole(value, "the chain id") != ask.chain_id:
        raise Silence("wrong_chain", "it answers for another chain")


def same_wallet(value: Any, ask: Ask) -> None:
    """Hold the taker in an answer against the paper wallet. Raises: Silence."""
    if not isinstance(value, str) or value.lower() != ask.wallet.lower():
        raise Silence("wrong_wallet", "it builds for another wallet")


def same_decimals(value: Any, expected: int) -> None:
    """Hold a token's decimals in an answer against the token's own, where it says them. Raises: Silence."""
    if value is not None and whole(value, "decimals") != expected:
        raise Silence("wrong_units", "it counts the token in other decimals")


def target(value: Any, ask: Ask, what: str) -> str:
    """An address that may be called or approved, in lower case. Raises: Silence."""
    if not isinstance(value, str) or not is_address(value):
        raise Silence("bad_answer", f"{what} is not an address")
    address = value.lower()
    if int(address, 16) <= 0xFFFF or address in (NATIVE_E, ask.wallet.lower(), ask.token.lower()):
        raise Silence("bad_target", f"{what} is the token, the wallet or nobody")
    return address


def transaction(ask: Ask, to: Any, data: Any, value: Any, *, hexed: bool = False) -> Tx:
    """The transaction to simulate: bounded calldata to an acceptable target, carrying exactly what is spent. Raises: Silence."""
    address = target(to, ask, "the transaction's target")
    if not isinstance(data, str) or len(data) > 2 + 2 * CALLDATA_BYTES_MAX or not CALLDATA.fullmatch(data):
        raise Silence("bad_calldata", f"not hex, or more than {CALLDATA_BYTES_MAX} bytes")
    if whole(value, "the transaction's value", hexed=hexed) != ask.spend_wei:
        raise Silence("wrong_value", "the transaction carries another amount of ETH than is spent")
    return Tx(address, data.lower(), SWAP_GAS_LIMIT, ask.spend_wei)


def spender(ask: Ask, value: Any) -> str | None:
    """Who must be approved for the token that is sold; nobody on a buy. Raises: Silence."""
    return target(value, ask, "the spender") if ask.side == SELL else None


def names(values: Iterable[Any]) -> tuple[str, ...]:
    """Names of sources, plain, bounded, each once."""
    plain = (clean(value, NAME_LENGTH_MAX) for value in values)
    return tuple(dict.fromkeys(name for name in plain if name))[:VIA_MAX]


def rows(value: Any) -> list[Any]:
    """A list; anything else is an empty one. The body's bound is its bound."""
    return value if isinstance(value, list) else []


def found(document: Any, *keys: str) -> list[Any]:
    """Everything that stands under some keys, however deep, in the order written."""
    values, waiting = [], [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            values += [node[key] for key in keys if isinstance(node.get(key), str)]
            waiting += reversed(list(node.values()))
        elif isinstance(node, list):
            waiting += reversed(node)
    return values


def approved(data: Any, ask: Ask) -> str:
    """The spender in an approval's calldata; it must cover what is sold. Raises: Silence."""
    match = APPROVAL.fullmatch(data) if isinstance(data, str) else None
    if match is None or int(match[2], 16) < ask.amount:
        raise Silence("bad_answer", "an approval that is none, or for less than is sold")
    return target(f"0x{match[1]}", ask, "the spender")
