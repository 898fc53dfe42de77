"""The crossing: what is known of the pools that a headline fill went through, gathered after its outcome is on record (ONC-25).

Nothing waits for it but the end of the window, and nothing rests on it: what cannot be told in time is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from referee.onchain.events import PoolsCrossed
from referee.onchain.following import Followed
from referee.onchain.live import LiveWindow
from referee.onchain.recording import record


async def cross(live: LiveWindow, run_id: str, followed: Sequence[Followed]) -> None:
    """Record the pools of each fill of our own routes."""
    for each in followed:
        stood = next((fill.block for fill in live.state.runs[run_id].fills if fill.order_id == each.fill.order_id), None)
        if stood is None or each.route is None:
            continue
        pools = await live.market.pools_crossed(each.fill, each.route, stood)
        if pools:
            order_id, now_ms = each.fill.order_id, live.clock.now_ms()
            await record(live, PoolsCrossed(run_id=run_id, ts_ms=now_ms, order_id=order_id, route=each.fill.route, pools=pools))
