"""A mined swap run again by simulation on its parent block, and compared with what the chain did.

The block's own number, time, base fee, coinbase and random word; the sender's real balance and nonce. Transfers must be
equal to the wei and the L2 gas to the unit. Nobody signed what is simulated, so that the L1 part is an estimate: it must be
within its padding. It is told apart by running the same in a block that pays somebody else.
Source: design §6; 001 §2.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chain.calldata import hex_int, uint_at
from chain.mined import Emitted, MinedSwap, emitted_of
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, refusal_word
from ledgers.errors import ChainFault

SOMEBODY_ELSE = "0x000000000000000000000000000000000000dead"
SWAPS_AT_ONCE = 10
L1_UNDER_PERCENT, L1_OVER_PERCENT = 90, 130
"""Where the simulated L1 part must lie, in percent of the mined one: Nitro adds 16 × 16 units and 1 % where nobody signed."""
UNREAD = "unread"
STATE_GONE = "state_gone"
REFUSED, STATUS, TRANSFERS, LOGS, NATIVE, L2_GAS, L1_GAS = "refused", "status", "transfers", "logs", "native", "l2_gas", "l1_gas"
START, ACCESS_LIST, DELEGATION = "start of block", "access list", "delegation"
"""What else was going on, where it may be why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reenacted:
    """How one mined swap compares with its simulation."""

    swap: MinedSwap
    unread: str = ""
    """Why nothing could be compared; empty where it was."""
    differences: tuple[str, ...] = ()
    """What differs, each with what else was going on where that may be why."""
    transfers: int = 0
    """Token transfers compared."""
    l2_gas: tuple[int, int] = (0, 0)
    """Mined, simulated."""
    l1_gas: tuple[int, int] = (0, 0)
    native_compared: bool = False
    """The sender's ETH could be told on both sides."""

    @property
    def equal(self) -> bool:
        return not self.unread and not self.differences


async def reenact(rpc: RpcDoor, swaps: Sequence[MinedSwap]) -> list[Reenacted]:
    """Run mined swaps again, in the order given. Raises: ChainFault when the node fails or answers nonsense."""
    done: list[Reenacted] = []
    for start in range(0, len(swaps), SWAPS_AT_ONCE):
        several = swaps[start : start + SWAPS_AT_ONCE]
        answers = await rpc.batch([request for swap in several for request in _requests(swap)])
        rows = [answers[place : place + 4] for place in range(0, len(answers), 4)]
        done += [_compared(swap, *row) for swap, row in zip(several, rows, strict=True)]
    return done


def _requests(swap: MinedSwap) -> list[tuple[str, list[Any]]]:
    """The simulation, the same paying somebody else, and the sender's ETH before and after."""
    pin, own = {"blockHash": swap.parent_hash}, {"blockHash": swap.header.block_hash}
    simulations = [("eth_simulateV1", [_payload(swap, coinbase), pin]) for coinbase in (swap.coinbase, SOMEBODY_ELSE)]
    return [*simulations, ("eth_getBalance", [swap.sender, pin]), ("eth_getBalance", [swap.sender, own])]


def _payload(swap: MinedSwap, coinbase: str) -> dict[str, Any]:
    overrides = {
        "number": hex(swap.header.block),
        "time": hex(swap.header.ts_s),
        "baseFeePerGas": hex(swap.header.base_fee_wei),
        "feeRecipient": coinbase,
        "prevRandao": swap.randao,
    }
    return {"blockStateCalls": [{"blockOverrides": overrides, "calls": [swap.call]}], "traceTransfers": True, "validation": True}


def _compared(swap: MinedSwap, answer: Any, apart: Any, before: Any, after: Any) -> Reenacted:
    for each in (answer, apart):
        if isinstance(each, RpcRefused):
            word = refusal_word(each)
            return Reenacted(swap=swap, unread=word) if word == STATE_GONE else Reenacted(swap=swap, differences=(f"{REFUSED}: {word}",))
    call, elsewhere = _only_call(answer), _only_call(apart)
    gas, l2_gas = hex_int(call.get("gasUsed")), hex_int(elsewhere.get("gasUsed"))
    emitted = [emitted_of(log) for log in call["logs"]]
    found = [log for log in emitted if log[0] != NATIVE_LOG]
    l2, l1 = (swap.gas_used - swap.l1_gas, l2_gas), (swap.l1_gas, gas - l2_gas)
    native = _native(swap, emitted, before, after)
    checks = (
        (STATUS, call.get("status") == "0x1"),
        (TRANSFERS, _transfers(found) == _transfers(swap.emitted)),
        (LOGS, tuple(found) == swap.emitted),
        (NATIVE, native is not False),
        (L2_GAS, l2[0] == l2[1]),
        (L1_GAS, l1[0] * L1_UNDER_PERCENT <= l1[1] * 100 <= l1[0] * L1_OVER_PERCENT),
    )
    differences = tuple(_why(name, swap) for name, holds in checks if not holds)
    return Reenacted(
        swap=swap, differences=differences, transfers=len(_transfers(swap.emitted)), l2_gas=l2, l1_gas=l1, native_compared=native is not None,
    )  # fmt: skip


def _only_call(answer: Any) -> dict[str, Any]:
    calls = answer[0].get("calls") if isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], dict) else None
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], dict) or not isinstance(calls[0].get("logs"), list):
        raise ChainFault("bad_answer", "expected one simulated call with its logs")
    return calls[0]


def _transfers(emitted: Sequence[Emitted]) -> list[Emitted]:
    return [log for log in emitted if log[1][:1] == (TRANSFER_TOPIC,)]


def _native(swap: MinedSwap, emitted: Sequence[Emitted], before: Any, after: Any) -> bool | None:
    """Whether the sender's ETH moved on the chain as the simulation traced it; None where the chain does not tell.

    Who else acted in the block may have paid the sender too, so that a difference there says nothing."""
    if isinstance(before, RpcRefused) or isinstance(after, RpcRefused):
        return None
    sender = "0x" + swap.sender[2:].rjust(64, "0")
    net: Counter[str] = Counter()
    for address, topics, data in emitted:
        if address == NATIVE_LOG and len(topics) == 3:
            net[topics[2]] += uint_at(data, 0) or 0
            net[topics[1]] -= uint_at(data, 0) or 0
    equal = hex_int(after) - hex_int(before) + swap.fee_wei == net[sender]
    return equal if equal or swap.alone else None


def _why(name: str, swap: MinedSwap) -> str:
    around = [
        word
        for word, there in ((START, swap.start_moved), (ACCESS_LIST, "accessList" in swap.call), (DELEGATION, "authorizationList" in swap.call))
        if there
    ]
    return f"{name} ({', '.join(around)})" if around else name
