"""The replay of further ledgers: equal for what happened, and the first difference by record and field for anything else."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ledgers.clock import VirtualClock
from ledgers.journal import MemoryJournal
from ledgers.money import TokenRaw
from referee.onchain.events import DELAYED, IMPACT, FillCredited, OrderNotFilled, RunOpened, RunScored
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped, RouteRemembered, WayTaken
from referee.onchain.replay import replay
from referee.onchain.run import open_window, play_window
from tests.onchain.paper import T0, PaperChain, Said, a_buy, events_of, live_on, ordering, selling, to_the_end
from tests.onchain.test_replay import once, retold, wei_more


async def a_window() -> MemoryJournal:
    """A window with fills, a revert and skips on further ledgers."""
    chain = PaperChain(VirtualClock(T0))
    said = {0: ordering(a_buy(10**16), a_buy(10**15), a_buy(10**18)), 2: selling(), 4: ordering(a_buy(2 * 10**15)), 5: selling()}
    live = live_on(chain, {"a": Said(chain.clock, said)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 41_000)
    chain.wei_per_token = 10**15 * 103 // 100
    await to_the_end(chain, playing)
    return live.journal


def on(ledger: str, kind, **changes):
    """Change the first event of a kind on a ledger."""
    done = []

    def change(event):
        if isinstance(event, kind) and event.ledgers == (ledger,) and not done:
            done.append(event)
            return [replace(event, **{name: value(getattr(event, name)) if callable(value) else value for name, value in changes.items()})]
        return [event]

    return change


async def test_a_replay_of_further_ledgers_is_equal():
    journal = await a_window()
    assert {type(event) for event in events_of(journal, DelayedReverted, OrderSkipped, FurtherBoardTaken)} == {DelayedReverted, OrderSkipped, FurtherBoardTaken}
    found = replay(journal.read())
    assert (found.difference, found.records, found.observed) == (None, journal.head()[0], 2)  # a buy too dear for both that share boards


CHANGES = [
    (once(RunOpened, entry=lambda entry: replace(entry, ledgers=entry.ledgers[:3])), "RunOpened", "entry"),
    (on(DELAYED, FurtherBoardTaken, quote_raw=wei_more), "FurtherBoardTaken", "quote_raw"),
    (on(DELAYED, FurtherBoardTaken, least_raw=wei_more), "FurtherBoardTaken", "least_raw"),
    (on(DELAYED, FurtherBoardTaken, delay_ms=1_999), "FurtherBoardTaken", "delay_ms"),
    (on(DELAYED, FurtherBoardTaken, pin=lambda pin: replace(pin, block_ts_s=pin.block_ts_s - 1), delay_ms=1_000), "FurtherBoardTaken", "delay_ms"),
    (on(DELAYED, FurtherBoardTaken, size_raw=wei_more), "FurtherBoardTaken", "size_raw"),
    (on(DELAYED, FurtherBoardTaken, rows=lambda rows: (replace(rows[0], arrival_raw=TokenRaw(1)),)), "RouteSimulated", "kind"),
    (on(IMPACT, FurtherBoardTaken, earlier=("w1-a-1/9/9",), earlier_weights_ppm=(1,)), "FurtherBoardTaken", "earlier"),
    (on(IMPACT, FurtherBoardTaken, earlier_weights_ppm=(1,)), "FurtherBoardTaken", "earlier_weights_ppm"),
    (on(IMPACT, FillCredited, gas_wei=wei_more), "FillCredited", "gas_wei"),
    (on(DELAYED, FillCredited, arrival_raw=wei_more), "FillCredited", "arrival_raw"),
    (once(DelayedReverted, gas_wei=wei_more), "DelayedReverted", "gas_wei"),
    (once(DelayedReverted, entry=lambda entry: replace(entry, postings=())), "DelayedReverted", "entry"),
    (once(OrderSkipped, reason="headline_not_filled"), "OrderSkipped", "reason"),
    (once(OrderSkipped, detail="other"), "OrderSkipped", "detail"),
    (once(RunScored, delayed_wei=wei_more), "WindowScored", "delayed_wei"),
    (once(RunScored, impact_ppm=lambda ppm: ppm + 1), "WindowScored", "impact_ppm"),
]


@pytest.mark.parametrize(("change", "kind", "field"), CHANGES, ids=[f"{kind}.{field}-{place}" for place, (_, kind, field) in enumerate(CHANGES)])
async def test_any_other_telling_is_found_by_record_and_field(change, kind, field):
    found = replay(retold(await a_window(), change)).difference
    assert found is not None and (found.kind, found.field.split(": ")[-1]) == (kind, field)


@pytest.mark.parametrize(("ledger", "kind"), [(DELAYED, FillCredited), (IMPACT, FillCredited), (DELAYED, DelayedReverted)])
async def test_an_outcome_of_a_further_ledger_that_is_left_out_is_found(ledger, kind):
    journal = await a_window()
    out = next(event for event in events_of(journal, kind) if event.ledgers == (ledger,))
    assert replay(retold(journal, lambda event: [] if event == out else [event])).difference is not None


async def test_a_skip_of_what_the_ledger_holds_is_found():
    journal = await a_window()
    sale = next(event for event in events_of(journal, FurtherBoardTaken) if event.side == "sell" and event.ledgers == (DELAYED,))
    skip = OrderSkipped(run_id=sale.run_id, ts_ms=sale.ts_ms, order_id=sale.order_id, ledgers=sale.ledgers, reason="not_held", detail="")
    difference = replay(retold(journal, lambda event: [skip] if event == sale else [event])).difference
    assert (difference.kind, difference.field) == ("OrderSkipped", "reason")


async def test_a_fill_without_a_board_and_a_fault_in_its_place():
    """A fill must have its board; that a node failed is the world's word."""
    journal = await a_window()
    board = next(event for event in events_of(journal, FurtherBoardTaken) if event.ledgers == (IMPACT,))
    assert replay(retold(journal, lambda event: [] if event == board else [event])).difference.field == "kind"
    fault = OrderNotFilled(run_id=board.run_id, ts_ms=board.ts_ms, order_id=board.order_id, ledgers=(IMPACT,), reason="fault", detail="")

    def faulted(event):
        of_it = getattr(event, "order_id", "") == board.order_id and getattr(event, "ledgers", ()) == (IMPACT,)
        return [fault] if event == board else [] if of_it else [event]

    records = retold(journal, faulted)
    until = next(place for place, record in enumerate(records) if record.kind == "OrderNotFilled") + 1
    found = replay(records[:until])
    assert (found.difference, found.observed) == (None, 3)


async def test_a_remembered_route_must_come_to_the_size_of_its_order():
    journal = await a_window()
    fill = next(event for event in events_of(journal, FillCredited) if event.ledgers == (IMPACT,))

    def remembered(amount: int):
        ways = (WayTaken(amount_raw=TokenRaw(amount), pools=("0xpool",)),)
        event = RouteRemembered(run_id=fill.run_id, ts_ms=fill.ts_ms, order_id=fill.order_id, ledgers=(IMPACT,), route="paper", ways=ways)
        return lambda told: [told, event] if told == fill else [told]

    records = retold(journal, remembered(int(fill.spent_raw) + 1))
    assert replay(records).difference.field == "ways"
    until = next(place for place, record in enumerate(records) if record.kind == "RouteRemembered") + 1
    assert replay(retold(journal, remembered(int(fill.spent_raw)))[:until]).difference is None
