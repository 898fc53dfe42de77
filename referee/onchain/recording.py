"""The recording: every step is appended to the journal before anything depends on it; the state is the fold of what was appended.

Source: design §4, "append the event first, act on it after".
"""

from __future__ import annotations

from collections.abc import Mapping

from ledgers.errors import ChainFault
from ledgers.events import Event
from referee.onchain.events import NetworkFaulted, NetworkRecovered, Pin
from referee.onchain.live import LiveWindow, Witnessed


async def record(live: LiveWindow, *events: Event, blobs: Mapping[str, bytes] | None = None) -> None:
    """Stamp events, append them as one transaction, then fold them in. Raises: StoreFault, CorruptJournal."""
    stamped = live.stamp.stamped(events, live.clock.now_ms(), live.clock.monotonic_ms())
    if stamped:
        await live.journal.append(*stamped, blobs=blobs)
    for event in stamped:
        live.state.apply(event)
        if live.evm is not None and isinstance(event, Witnessed) and not live.witnesses_owed.full():
            live.witnesses_owed.put_nowait(event)


async def pinned(live: LiveWindow) -> Pin:
    """Pin a block; say once when no lane answers and once when one does again. Raises: ChainFault."""
    try:
        pin = await live.desk.pin()
    except ChainFault as fault:
        if live.faulted_ts_ms is None:
            live.faulted_ts_ms = live.clock.now_ms()
            await record(live, NetworkFaulted(run_id=live.window_id, ts_ms=live.faulted_ts_ms, lane=live.market.lane, reason=fault.reason))
        raise
    if live.faulted_ts_ms is not None:
        now_ms, since_ms, live.faulted_ts_ms = live.clock.now_ms(), live.faulted_ts_ms, None
        await record(live, NetworkRecovered(run_id=live.window_id, ts_ms=now_ms, lane=pin.lane, down_ms=max(0, now_ms - since_ms)))
    return pin
