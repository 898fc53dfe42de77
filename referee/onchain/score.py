"""The score: what a run ended with against what it began with, in ETH and in dollars.

Source: 001 §4; ONC-16. Rounded down, so never in the agent's favour. A ledger that could not be liquidated has no
score: unscored is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ledgers.money import MicroUsd, Wei, mul_div_floor
from referee.onchain.events import FURTHER_LEDGERS, HEADLINE, PERMISSIVE, RunScored, WindowScored
from referee.onchain.rules import Rules
from referee.onchain.safety import trapped
from referee.onchain.state import RunState

SCORED = "SCORED"
UNSCORED = "UNSCORED"
REORGED = "reorged"
"""Reason beside a score of which too many fills stand on lost blocks."""
PPM = 1_000_000
WEI_PER_ETH = 10**18


def stake_for(stake_micro_usd: int, eth_usd_micro_usd: MicroUsd) -> Wei:
    """Price a stake in dollars, rounded down (ONC-02, ONC-28)."""
    return Wei(mul_div_floor(stake_micro_usd, WEI_PER_ETH, eth_usd_micro_usd))


def return_ppm(value_wei: Wei, stake_wei: Wei) -> int:
    """Return over the window in parts per million of the stake, rounded down."""
    return mul_div_floor(value_wei - stake_wei, PPM, stake_wei)


def dollars(value_wei: Wei, eth_usd_micro_usd: MicroUsd) -> MicroUsd:
    """Value ETH in dollars, rounded down."""
    return MicroUsd(mul_div_floor(value_wei, eth_usd_micro_usd, WEI_PER_ETH))


def score_run(
    run: RunState, stake_wei: Wei, lost: Set[str], close_eth_usd: MicroUsd | None, rules: Rules, reason: str, ts_ms: int
) -> RunScored:
    """Score one run; `reason` says why a ledger was not liquidated, where one was not (ONC-16).

    Shapes: `lost` are hashes of blocks that left the chain."""
    headline, permissive = run.liquidated.get(HEADLINE), run.liquidated.get(PERMISSIVE)
    scored = headline is not None and permissive is not None
    return RunScored(
        run_id=run.opened.run_id,
        ts_ms=ts_ms,
        status=SCORED if scored else UNSCORED,
        reason=_reorg_reason(run, lost, rules) if scored else reason,
        stake_wei=stake_wei,
        headline_wei=headline and headline.value_wei,
        permissive_wei=permissive and permissive.value_wei,
        headline_ppm=headline and return_ppm(headline.value_wei, stake_wei),
        permissive_ppm=permissive and return_ppm(permissive.value_wei, stake_wei),
        headline_without_unproven_ppm=headline and return_ppm(proven_wei(run), stake_wei),
        close_usd_micro_usd=dollars(headline.value_wei, close_eth_usd) if headline and close_eth_usd is not None else None,
        turns_answered=run.turns_answered,
        turns_total=run.turns_total,
        fills=len(run.headline_fills),
        reorged_fills=reorged_fills(run, lost),
        trapped=0 if rules.later_blocks is None else trapped(headline),
        **further_values(run, stake_wei),
    )


def further_values(run: RunState, stake_wei: Wei) -> dict[str, Wei | int | None]:
    """What the further ledgers came to, as fields of a score: shown beside it and never part of it; none where one was not measured."""
    sold = {ledger: run.liquidated.get(ledger) for ledger in FURTHER_LEDGERS}
    values = {f"{ledger}_wei": event and event.value_wei for ledger, event in sold.items()}
    return values | {f"{ledger}_ppm": event and return_ppm(event.value_wei, stake_wei) for ledger, event in sold.items()}


def score_window(window_id: str, scores: Sequence[RunScored], close_eth_usd: MicroUsd | None, ts_ms: int) -> WindowScored:
    """Count the scores of a window; n is shown beside every one of them."""
    scored = sum(score.status == SCORED for score in scores)
    return WindowScored(run_id=window_id, ts_ms=ts_ms, runs=len(scores), scored=scored, close_eth_usd_micro_usd=close_eth_usd)


def proven_wei(run: RunState) -> Wei:
    """Headline value with every exit that rests on a claim at 0: those of the window and those of the liquidation."""
    headline = run.liquidated[HEADLINE]
    return max(headline.value_wei - headline.unproven_wei - run.tagged_exit_wei, Wei(0))


def reorged_fills(run: RunState, lost: Set[str]) -> int:
    """Count the headline fills that stand on lost blocks."""
    return sum(fill.block_hash in lost for fill in run.headline_fills)


def _reorg_reason(run: RunState, lost: Set[str], rules: Rules) -> str:
    fills = len(run.headline_fills)
    return REORGED if fills and mul_div_floor(reorged_fills(run, lost), PPM, fills) > rules.reorg_fills_ppm_max else ""
