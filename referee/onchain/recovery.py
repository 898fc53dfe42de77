"""Recovery: what a process that takes a window up again owes the record for the time nobody was running it.

Source: design §9. A turn that was under way is abandoned, an order without an outcome on a ledger, further ones included, is
interrupted there and never priced late, and every tick that nobody was woken for is missed, one by one. A tick that may still begin in time is left to be
played.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledgers.events import Event
from referee.onchain.cadence import late_ms_max, tick_ts_ms
from referee.onchain.events import OrderNotFilled, TickMissed, TurnAbandoned
from referee.onchain.rules import Rules
from referee.onchain.state import RunState, WindowState

DOWN = "down"
INTERRUPTED = "interrupted"


def owed_events(state: WindowState, rules: Rules, now_ms: int) -> tuple[Event, ...]:
    """List what must be recorded before the window goes on. Shapes: run by run, in the order they were opened."""
    return tuple(event for run in state.runs.values() for event in _of_run(state, run, rules, now_ms))


def _of_run(state: WindowState, run: RunState, rules: Rules, now_ms: int) -> Iterator[Event]:
    run_id = run.opened.run_id
    if run.asking is not None:
        yield TurnAbandoned(run_id=run_id, ts_ms=now_ms, tick=run.asking)
    for order_id, ledgers in run.owed.items():
        yield OrderNotFilled(
            run_id=run_id,
            ts_ms=now_ms,
            order_id=order_id,
            ledgers=tuple(ledger for ledger in run.ledgers if ledger in ledgers),
            reason=INTERRUPTED,
            detail="the process ended before this order was quoted",
        )
    yield from _missed(state, run, rules, now_ms)


def _missed(state: WindowState, run: RunState, rules: Rules, now_ms: int) -> Iterator[Event]:
    opened = state.opened
    assert opened is not None, "a window that never opened cannot be resumed"
    begun_ms = now_ms - late_ms_max(rules, opened.interval_ms)
    for tick in range(opened.ticks):
        scheduled_ts_ms = tick_ts_ms(opened, tick)
        if scheduled_ts_ms >= begun_ms and now_ms < opened.close_ts_ms:
            return
        if tick not in run.ticks:
            yield TickMissed(run_id=run.opened.run_id, ts_ms=now_ms, tick=tick, scheduled_ts_ms=scheduled_ts_ms, reason=DOWN)
