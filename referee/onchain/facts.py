"""The facts of a run: what its prompt may say about it, written from what the run has pinned, never typed by hand.

The recorded prompt of a turn is the verbatim prompt, the block of facts, and the frozen plan if there is one (ONC-03,
ONC-14; 001 §2.2, §2.3.2). A stack without a model is told nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledgers.identity import canonical_bytes
from ledgers.money import decimal_text
from referee.onchain.events import WindowOpened
from referee.onchain.rules import Rules

SCHEMA = "facts/1"
FACTS_HEAD = "# Facts of this run"
PLAN_HEAD = "# Your plan"
PLAN_LEAD = "You wrote this before the window opened. It is frozen and will be published."


def run_facts(opened: WindowOpened, rules: Rules, limits: Mapping[str, int]) -> dict[str, object]:
    """List what a run has pinned, as far as its stack must know it. Units: in the names."""
    return {
        "schema": SCHEMA,
        "network": opened.label,
        "chain_id": opened.chain_id,
        "woken_every_s": opened.interval_ms // 1_000,
        "window_length_s": (opened.close_ts_ms - opened.open_ts_ms) // 1_000,
        "turns": opened.ticks,
        "stake_wei": str(opened.stake_wei),
        "stake_usd": decimal_text(rules.stake_micro_usd, 6),
        "rules": rules.name,
        "rules_since": rules.since,
        "rules_sha256": rules.sha256(),
        "orders_max": rules.orders_max,
        "quotes_asked_of": f"own routes and rivals, {opened.board_policy}",
        "board_age_ms_max": rules.board_age_ms_max,
        "round_trip_loss_bps_max": rules.gate_loss_bps_max,
        "exit_reserve_gas_per_holding": rules.exit_reserve_gas_per_holding,
        **({"lp_share_ppm_max": rules.lp_share_ppm_max, "lp_positions_max": rules.lp_positions_max} if rules.lp_share_ppm_max is not None else {}),
        "limits": dict(limits),
    }


def recorded_prompt(prompt: str, facts: Mapping[str, object], plan: str = "") -> str:
    """Put a turn's prompt together: the verbatim prompt, the facts, the frozen plan. Empty for a stack without a prompt."""
    if not prompt:
        return ""
    blocks = [prompt.rstrip("\n"), f"{FACTS_HEAD}\n\n{canonical_bytes(dict(facts)).decode()}"]
    if plan:
        blocks.append(f"{PLAN_HEAD}\n\n{PLAN_LEAD}\n\n{plan}")
    return "\n\n".join(blocks) + "\n"
