"""The round trip: what buying a little of a token and selling it at once came to, by our own simulation at one block.

A fact about the market like any other, for tools and bundle; it opens no gate and no verdict outlives its block (ONC-08).
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.money import Wei
from ledgers.plain_text import plain_text
from referee.onchain.events import BoardTaken, GateTaken

CAUSE_CHARS_MAX = 80


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One round trip."""

    spend_wei: Wei
    board: BoardTaken | None
    """None when no route could even be asked."""
    gate: GateTaken | None
    """None when the buy did not go through."""

    @property
    def block(self) -> int | None:
        """The block it was tried at."""
        return self.board.pin.block if self.board else None

    def shown(self) -> dict[str, object]:
        """Where it was tried, verdict, cause and loss."""
        unknown = {"verdict": "UNKNOWN", "cause": "no_buy", "loss_bps": None, "exit_provable": None}
        return {"block": self.block, "spend_wei": str(self.spend_wei), **(gate_shown(self.gate) if self.gate else unknown)}


def gate_shown(gate: GateTaken) -> dict[str, object]:
    """What a gate found."""
    return {
        "verdict": gate.verdict,
        "cause": plain_text(gate.cause, CAUSE_CHARS_MAX),
        "loss_bps": gate.loss_bps if gate.loss_bps >= 0 or gate.own_wei else None,
        "exit_provable": gate.exit_provable,
    }
