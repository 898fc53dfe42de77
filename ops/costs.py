"""The costs: tokens and their list price, as a person reads them; unpriced is unpriced, never zero (ONC-19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ledgers.compute import TokensUsed, cost_of, list_price
from ledgers.events import Event
from ledgers.money import MicroUsd, decimal_text
from referee.onchain.events import StepCounted, StepTaken, ToolCalled

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
    partly = f", counted on {len(known)} of {len(usages)} steps" if len(known) < len(usages) else ""
    return f"{total['input_tokens']:,}{cached} in, {total['output_tokens']:,}{hidden} out{f' [{chr(44).join(flags)}]' if flags else ''}{partly}"


def used_text(usages: Sequence[UsageTold]) -> str:
    """Say what steps used, inside a sentence."""
    said = tokens_text(usages)
    return f"tokens {said}" if said == UNREPORTED else f"{said.replace(' out', ' out tokens', 1)}"


def price_text(model: str) -> str:
    """Say which price a cost stands on."""
    price = list_price(model)
    return "the model has no list price" if price is None else f"list price of {price.model} at {price.provider}, {price.source}, {price.as_of}"


@dataclass(slots=True)
class Spent:
    """What one turn of a model has used, as a fold over its events."""

    steps: int = 0
    tools: int = 0
    refused: int = 0
    """Tool calls that were not carried out."""
    waited_ms: int = 0
    usages: list[UsageTold] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    """Names that the provider gave the model."""
    counted: bool = False
    """True once a step of a model was seen: a stack without one has nothing to tell."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case StepTaken():
                self.steps += 1
                self.usages.append(None)
            case StepCounted():
                self.counted = True
                self.waited_ms += event.wait_ms
                broken = [asdict(tried.tokens) for tried in event.attempts if tried.tokens]
                self.usages[-1:] = [*broken, asdict(event.tokens) if event.tokens else None]
                if event.model_reported and event.model_reported not in self.reported:
                    self.reported.append(event.model_reported)
            case ToolCalled():
                self.tools, self.refused = self.tools + 1, self.refused + (not event.ok)

    def text(self, latency_ms: int) -> str:
        """Say steps, tools, tokens and seconds in one line."""
        waited = f", waited {self.waited_ms / 1_000:.1f} s" if self.waited_ms else ""
        tools = f"{self.tools} tool call{'' if self.tools == 1 else 's'}"
        refused = f" ({self.refused} refused)" if self.refused else ""
        return f"{self.steps} step{'' if self.steps == 1 else 's'}, {tools}{refused}, {used_text(self.usages)}, {latency_ms / 1_000:.1f} s{waited}"
