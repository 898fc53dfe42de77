"""Recorded simulations: what evidence holds of them, read back from its bytes, and what a trade's calls credit by themselves.

Nothing but the recorded request is used, so that what is run again is what was asked, however long ago.
Source: 001 §2.2 (credited is what arrives); design §6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from chain import calldata
from chain.evm.execute import LocalCall
from chain.evm.local import difference_of
from chain.simulate import CallAnswer, lens_of
from ledgers.errors import ChainFault

METHOD = "eth_simulateV1"
SIMULATIONS_MAX = 4_096
"""Of one piece of evidence."""


class NotRecorded(Exception):
    """What is recorded is no simulation that can be run again; the message tells why."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One simulation as it was asked, and what the node said."""

    block_hash: str
    blocks: list[dict[str, Any]]
    rows: list[list[CallAnswer]]


@dataclass(frozen=True, slots=True)
class Traded:
    """What the calls of one trade say that it did. Token units, wei, gas."""

    spent_wei: int
    """What the swap was sent with."""
    tokens: int
    """Difference of the wallet's token balance."""
    eth_wei: int
    """Difference of its ETH before gas."""
    gas: int
    """Of the swap and of the approvals before it that count."""
    gas_price_wei: int


def recorded_in(evidence: bytes) -> list[Recorded]:
    """The simulations of a piece of evidence, in its order; none where nothing had to be asked. Raises: NotRecorded."""
    try:
        asked = list(_asked(orjson.loads(evidence)))
        if len(asked) > SIMULATIONS_MAX:
            raise NotRecorded(f"it holds {len(asked)} simulations")
        return [_recorded(each["params"], each["answer"]) for each in asked]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise NotRecorded(f"it is not written as evidence: {error!r}") from None


def difference_from(recorded: Recorded, calls: Sequence[Sequence[LocalCall]]) -> str:
    """How what was run differs from what is recorded, empty where it does not; a recorded answer that cannot be read differs."""
    try:
        return difference_of(calls, recorded.rows)
    except (ChainFault, KeyError, TypeError, ValueError, AttributeError) as error:
        return f"the recorded answer cannot be read: {error!r}"


def traded(blocks: Sequence[dict[str, Any]], calls: Sequence[Sequence[LocalCall]], wallet: str, token: str, multicall3: str) -> Traded:
    """Read what a trade credits: around the wallet's last transaction its token and its ETH are read. Raises: NotRecorded."""
    place = max((at for at, block in enumerate(blocks) if any(call["from"] == wallet for call in block["calls"])), default=None)
    if place is None:
        raise NotRecorded("the wallet sent nothing")
    asked, done = blocks[place]["calls"], calls[place]
    sent = [at for at, call in enumerate(asked) if call["from"] == wallet]
    swap, reads = sent[-1], [(call["from"], call["to"], call["data"]) for call in asked]
    around = [at for at in range(swap - 1) if reads[at : at + 2] == reads[swap + 1 : swap + 3]]
    if len(around) != 1 or not done[swap].ok:
        raise NotRecorded("the balances around the swap were not read, or it did not go through")
    (before,), price = around, int(asked[swap]["maxFeePerGas"], 16)
    reader = asked[swap + 1]["from"]
    if reads[swap + 1 : swap + 3] != [(reader, lens_of(token, reader)[0], calldata.balance_of(wallet)), (reader, multicall3, calldata.eth_balance(wallet))]:
        raise NotRecorded("other balances than the wallet's were read")
    if any(not _lens(address, override["code"], reader) for block in blocks[: place + 1] for address, override in block.get("stateOverrides", {}).items() if "code" in override):
        raise NotRecorded("code was put where there is other code on the chain")
    gas = sum(done[at].gas_used for at in sent if at > before)
    tokens, eth_wei = (_word(done[swap + 1 + at]) - _word(done[before + at]) for at in (0, 1))
    return Traded(int(asked[swap].get("value", "0x0"), 16), tokens, eth_wei + gas * price, gas, price)


def _lens(address: str, code: str, reader: str) -> bool:
    """Whether an override puts nothing but a reader's lens somewhere."""
    at = lens_of("0x" + "00" * 20, reader)[1].index("00" * 20)
    return lens_of("0x" + code[at : at + 40], reader) == (address, code)


def _asked(value: Any) -> Iterator[dict[str, Any]]:
    """Every question to simulate, wherever evidence keeps it."""
    if isinstance(value, dict) and value.get("method") == METHOD:
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _asked(part)


def _recorded(params: Any, answer: Any) -> Recorded:
    body, pin = params
    if body.keys() != {"blockStateCalls", "traceTransfers", "validation"} or not body["validation"] or pin.keys() != {"blockHash"}:
        raise NotRecorded("it was asked in another way")
    blocks = body["blockStateCalls"]
    if not isinstance(answer, list):
        raise NotRecorded("the node refused it")
    numbers = {block["blockOverrides"]["number"] for block in blocks}
    told = [block["calls"] for block in answer if block["number"] in numbers]
    return Recorded(pin["blockHash"], blocks, [[CallAnswer(call["status"] == "0x1", int(call["gasUsed"], 16), call) for call in row] for row in told])


def _word(call: LocalCall) -> int:
    value = calldata.uint_at(call.data, 0)
    if not call.ok or value is None:
        raise NotRecorded("a balance could not be read")
    return value
