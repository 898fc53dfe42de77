"""The L1 part of gas: what a chain charges each transaction for being written to the chain beneath.

It hangs on prices and on how well a transaction packs, so that it is not worked out here: a run is repeated with what the node
says that it charged, and counts only where everything else is then the same.
Source: Nitro's gas charging hook: taken before the first step, apart from refunds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chain.evm.execute import L1_GAS, LocalCall
from chain.simulate import CallAnswer

Charged = tuple[tuple[int, ...], ...]
"""By block and call."""


def charged(calls: Sequence[Sequence[LocalCall]], rows: Sequence[Sequence[CallAnswer]]) -> Charged | None:
    """What the node charged each call more than it used here; none where it charged some of them less."""
    if [len(row) for row in calls] != [len(row) for row in rows]:
        return None
    more = tuple(
        tuple(answer.gas_used - call.gas_used for call, answer in zip(row, answers, strict=True)) for row, answers in zip(calls, rows, strict=True)
    )  # fmt: skip
    return None if any(gas < 0 for row in more for gas in row) else more


def with_charges(blocks: Sequence[dict[str, Any]], more: Charged) -> list[dict[str, Any]]:
    """Blocks of calls that begin with so much of their gas gone."""
    return [
        {**block, "calls": [{**call, L1_GAS: hex(gas)} for call, gas in zip(block["calls"], row, strict=True)]}
        for block, row in zip(blocks, more, strict=True)
    ]  # fmt: skip


def charges_in(blocks: Sequence[dict[str, Any]]) -> Charged:
    """What calls were charged in a run."""
    return tuple(tuple(int(call.get(L1_GAS, "0x0"), 16) for call in block["calls"]) for block in blocks)


def without_charges(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Blocks of calls as they were asked for."""
    return [{**block, "calls": [{name: value for name, value in call.items() if name != L1_GAS} for call in block["calls"]]} for block in blocks]
