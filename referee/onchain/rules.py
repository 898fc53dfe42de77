"""The rules of an on-chain window as a frozen, dated value; a run pins its hash.

Source: 001 §2–4; ids and defaults as listed by `referee rules`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from ledgers.identity import identity_of
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, IMPACT


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
    rival_answer_ms_max: int | None = None
    """ONC-05: how long rivals may take to answer; none: no rival is asked."""
    later_blocks: int | None = None
    """ONC-08: a sale that only its buyer cannot make is tried again so many blocks and so long later, and what is trapped at the end
    is counted; none: neither."""
    later_s: int | None = None
    lp_share_ppm_max: int | None = None
    """ONC-21: a run's positions of a pool may come to this part of the liquidity that others have in range, Lp / L; none: no liquidity orders."""
    lp_positions_max: int | None = None
    """ONC-21: open positions of a run on one ledger."""
    delay_ms: int | None = None
    """ONC-22: how much later the delayed ledger simulates an order again; none: no such ledger."""
    delay_loss_bps_max: int | None = None
    """ONC-22: a delayed order fills when at most this much less arrives than was quoted."""
    impact_full_ms: int | None = None
    """ONC-23: an earlier trade of the run is felt in full so long; none: no such ledger."""
    impact_gone_ms: int | None = None
    """ONC-23: and fades evenly to nothing by then."""
    impact_trades_max: int | None = None
    """ONC-23: the latest trades that are executed again."""

    lane_claims_only: bool | None = None
    """ONC-11: headline fills at a quote only where our own lane failed, never for what a token does; none: for either."""

    unforeseen_wallets: bool | None = None
    """ONC-29: paper wallets are derived from the window's secret too, so that no owner can act on one; none: from its identity alone."""

    @property
    def further_ledgers(self) -> tuple[str, ...]:
        """Ledgers with simulations of their own that these rules keep."""
        kept = {DELAYED: self.delay_ms, IMPACT: self.impact_full_ms}
        return tuple(name for name in FURTHER_LEDGERS if kept[name] is not None)

    def sha256(self) -> str:
        """Identity of the rules; what a rule set does not declare is no part of it, so that older ones keep theirs."""
        return identity_of({name: value for name, value in asdict(self).items() if value is not None})


FIRST = Rules(
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

SECOND = replace(
    FIRST,
    name="onc/default-2",
    since="2026-11-30",
    rival_answer_ms_max=2_500,
    later_blocks=200,
    later_s=86_400,
    lp_share_ppm_max=100_000,
    lp_positions_max=16,
    delay_ms=2_000,
    delay_loss_bps_max=100,
    impact_full_ms=600_000,
    impact_gone_ms=3_600_000,
    impact_trades_max=64,
)

FIRST_PAPER = replace(SECOND, name="onc/paper", board_policy="fallback")

DEFAULT = replace(SECOND, name="onc/default-3", since="2026-12-01", lane_claims_only=True, unforeseen_wallets=True)

PAPER = replace(DEFAULT, name="onc/paper-2", board_policy="fallback")
"""The paper's own from 2026-09-24 21:00 UTC on: rivals are asked only where our own router has no proven row (001 §2.2)."""

RULES: tuple[Rules, ...] = (FIRST, SECOND, FIRST_PAPER, DEFAULT, PAPER)
"""Every rule set that ever was; superseded ones stay and still replay."""


def rules_named(name: str) -> Rules:
    """Find a rule set by name. Raises: KeyError naming the known ones."""
    for rules in RULES:
        if rules.name == name:
            return rules
    raise KeyError(f"no rules named {name!r}; known: {', '.join(rules.name for rules in RULES)}")
