"""The costs: tokens and their list price, as a person reads them; unpriced is unpriced, never zero (ONC-19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledgers.compute import TokensUsed, cost_of
from ledgers.money import MicroUsd, decimal_text

UNPRICED = "unpriced"
UNREPORTED = "not reported"

UsageTold = Mapping[str, Any] | None
"""Tokens of one step as a record holds them; none where nobody counted."""


def usages_cost(model: str, usages: Sequence[UsageTold]) -> MicroUsd | None:
    """Price steps at the list price of a model; none when it is unpriced or a step's tokens are not known."""
    return cost_of(model, [None if usage is None else used_of(usage) for usage in usages])


def used_of(usage: Mapping[str, Any]) -> TokensUsed:
    """The priced classes of one step's tokens."""
    return TokensUsed(
        input_tokens=usage["input_tokens"], cached_tokens=usage["cached_tokens"],
        cache_write_tokens=usage["cache_write_tokens"], output_tokens=usage["output_tokens"],
    )  # fmt: skip


def cost_text(cost: MicroUsd | None) -> str:
    """Say a cost in dollars."""
    return UNPRICED if cost is None else f"{decimal_text(cost, 6)} USD"


def tokens_text(usages: Sequence[UsageTold]) -> str:
    """Say tokens in and out, and the hidden part of the output."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return UNREPORTED
    total = {name: sum(usage[name] for usage in known) for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")}
    cached = f" ({total['cached_tokens']:,} cached)" if total["cached_tokens"] else ""
    hidden = f" ({total['reasoning_tokens']:,} hidden)" if total["reasoning_tokens"] else ""
    flags = sorted({flag for usage in known for flag in usage.get("flags", ())})
    return f"{total['input_tokens']:,}{cached} in, {total['output_tokens']:,}{hidden} out{f' [{chr(44).join(flags)}]' if flags else ''}"
