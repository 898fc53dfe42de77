"""The rules of an on-chain window as a frozen, dated value; a run pins its hash.

Source: 001 §2–4; ids and defaults as listed by `referee rules`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ledgers.identity import identity_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Every number and choice that can change a result."""

    name: str
    since: str
    """Date the rules took effect."""
    stake_micro_usd: int
    """ONC-02."""
    board_policy: str
    """ONC-05: always or fallback."""
    board_age_ms_max: int
    """ONC-07: 30,000 passes, 30,001 is refused."""
    pin_lag_ms_max: int
    """ONC-07: how far the pinned block may be behind the checked clock."""
    gate_loss_bps_max: int
    """ONC-08: a round trip that loses more is FLAGGED."""
    mark_interval_ms_max: int
    """ONC-12: marks on the clock every min(this, window / 6)."""
    mark_window_parts: int
    liquidation_retry_ms_max: int
    """ONC-12: a liquidation that faults is tried again this long."""
    exit_reserve_gas_per_holding: int
    """ONC-27: gas that a buy leaves for the exit of every holding, its own included."""
    feed_gap_bps_max: int
    """ONC-28: the stake's price must be this near the feed."""
    orders_max: int
    """Orders in one decision."""
    late_ms_max: int
    """ONC-03: a tick is played when begun within min(interval / 10, this)."""
    reorg_fills_ppm_max: int
    """A run with more of its fills on lost blocks is marked."""

    def sha256(self) -> str:
        """Identity of the rules."""
        return identity_of(asdict(self))


DEFAULT = Rules(
    name="onc/default",
    since="2026-11-29",
    stake_micro_usd=100_000_000,
    board_policy="always",
    board_age_ms_max=30_000,
    pin_lag_ms_max=3_000,
    gate_loss_bps_max=5_000,
    mark_interval_ms_max=1_800_000,
    mark_window_parts=6,
    liquidation_retry_ms_max=900_000,
    exit_reserve_gas_per_holding=1_000_000,
    feed_gap_bps_max=100,
    orders_max=8,
    late_ms_max=10_000,
    reorg_fills_ppm_max=10_000,
)

RULES: tuple[Rules, ...] = (DEFAULT,)
"""Every rule set that ever was; superseded ones stay and still replay."""


def rules_named(name: str) -> Rules:
    """Find a rule set by name. Raises: KeyError naming the known ones."""
    for rules in RULES:
        if rules.name == name:
            return rules
    raise KeyError(f"no rules named {name!r}; known: {', '.join(rules.name for rules in RULES)}")
