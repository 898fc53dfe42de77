"""The replay: equal for what happened, and the first difference by record and field for anything else."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from ledgers.clock import VirtualClock
from ledgers.errors import CorruptJournal
from ledgers.events import Event, encode, kind_of
from ledgers.identity import canonical_bytes, sha256_hex
from ledgers.journal import GENESIS, MemoryJournal, Record, link_of
from ledgers.money import MicroUsd, TokenRaw
from referee.onchain.events import (
    BoardTaken, BundleShown, FillCredited, GateTaken, MarkTaken, OrderRefused, RunOpened, RunScored, TickMissed,
    WindowLiquidated, WindowOpened, WindowScored, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.replay import replay
from referee.onchain.run import open_window, play_window
from tests.onchain.paper import T0, PaperChain, Said, a_buy, events_of, live_on, ordering, selling, to_the_end


async def a_window(unprovable: bool = False) -> MemoryJournal:
    """A window with buys, sales, refusals of every level, a late tick and something left to liquidate."""
    chain = PaperChain(VirtualClock(T0), unprovable=unprovable)
    trader = {
        0: ordering(a_buy(10**16), a_buy(10**15), a_buy(10**18), '{"type":"limit"}'),
        2: selling(),
        3: "not a decision",
        4: ordering(a_buy(2 * 10**15)),
    }
    live = live_on(chain, {"trader": Said(chain.clock, trader), "holder": Said(chain.clock, delay_ms={1: 12_000})})
    await open_window(live)
    await to_the_end(chain, asyncio.ensure_future(play_window(live)))
    return live.journal


def retold(journal: MemoryJournal, change) -> list[Record]:
    """The journal as somebody else would have told it: every event changed by a function, every link made to hold."""
    records, link = [], GENESIS
    for event in events_of(journal):
        for told in change(event):
            kind, body = kind_of(told), encode(told)
            link = link_of(link, kind, body)
            records.append(Record(len(records) + 1, kind, body, link))
    return records


def once(kind: type[Event], **changes):
    """Change the first event of a kind."""
    done = []

    def change(event: Event):
        if isinstance(event, kind) and not done:
            done.append(event)
            values = {
                name: value(getattr(event, name)) if callable(value) else value for name, value in changes.items()
            }
            return [replace(event, **values)]
        return [event]

    return change


def as_before_refusals_said_more(shown: bytes) -> bytes:
    """What a turn was shown, in the words of the bundle before it told the numbers and fields behind a refusal."""

    def without(part: object) -> object:
        if isinstance(part, dict):
            return {name: without(inner) for name, inner in part.items() if name != "untrusted_detail"}
        return [without(inner) for inner in part] if isinstance(part, list) else part

    return canonical_bytes(without(json.loads(shown)))


async def test_a_window_sealed_in_an_earlier_bundle_s_words_replays_equal_N6():
    """What was shown is pinned by its hash and never written anew: another text of it is another journal, and replays
    as well."""
    journal = await a_window()
    earlier = {}

    def change(event: Event):
        if isinstance(event, BundleShown):
            told = [
                as_before_refusals_said_more(journal.blob(digest))
                for digest in (event.bundle_sha256, event.book_sha256)
            ]
            earlier.update({sha256_hex(text): text for text in told})
            return [replace(event, bundle_sha256=sha256_hex(told[0]), book_sha256=sha256_hex(told[1]))]
        return [event]

    records, link = [], GENESIS
    for record in retold(journal, change):
        body = record.body
        if record.kind == WindowSealed.__name__:
            body = encode(replace(events_of(journal, WindowSealed)[0], root=link))
        link = link_of(link, record.kind, body)
        records.append(Record(record.seq, record.kind, body, link))
    now, before = replay(journal.read()), replay(records)
    spoken = [
        event for event in events_of(journal, BundleShown) if b"untrusted_detail" in journal.blob(event.book_sha256)
    ]
    assert spoken and not any(b"untrusted_detail" in text for text in earlier.values())
    assert records[-1].link != journal.head()[1]
    assert (before.difference, before.recomputed, before.records) == (None, now.recomputed, now.records)
    assert before.state.runs["w1-trader-1"].scored == now.state.runs["w1-trader-1"].scored


@pytest.mark.parametrize("unprovable", [False, True])
async def test_a_replay_of_what_happened_is_equal(unprovable):
    journal = await a_window(unprovable)
    found = replay(journal.read())
    assert (found.difference, found.records) == (None, journal.head()[0])
    assert found.state.runs["w1-trader-1"].scored in events_of(journal, RunScored)


async def test_the_ledgers_part_where_an_exit_cannot_be_proven_and_the_replay_follows():
    journal = await a_window(unprovable=True)
    state = replay(journal.read()).state
    score = state.runs["w1-trader-1"].scored
    assert score.headline_wei != score.permissive_wei and score.headline_ppm == 0


def wei_more(value):
    return value + type(value)(1)


CHANGES = [
    (once(WindowOpened, stake_wei=wei_more), "WindowOpened", "stake_wei"),
    (once(WindowOpened, rules_sha256="0" * 64), "WindowOpened", "rules_sha256"),
    (once(WindowOpened, rules_name="onc/other"), "WindowOpened", "rules_name"),
    (once(WindowOpened, ticks=7), "WindowOpened", "ticks"),
    (once(RunOpened, wallet="0x" + "ab" * 20), "RunOpened", "wallet"),
    (once(Woken, order_index=1), "Woken", "order_index"),
    (once(Woken, scheduled_ts_ms=T0 + 1), "Woken", "scheduled_ts_ms"),
    (once(TickMissed, scheduled_ts_ms=T0), "TickMissed", "scheduled_ts_ms"),
    (once(BoardTaken, age_ms=30_001), "RouteSimulated", "kind"),
    (once(BoardTaken, rows=lambda rows: (replace(rows[0], arrival_raw=TokenRaw(1)),)), "FillCredited", "arrival_raw"),
    (once(GateTaken, verdict="FLAGGED", cause="sale_reverts"), "FillCredited", "kind"),
    (once(GateTaken, exit_provable=False, exit_cause="slot"), "RouteSimulated", "kind"),
    (once(FillCredited, gas_wei=wei_more), "FillCredited", "gas_wei"),
    (once(FillCredited, entry=lambda entry: replace(entry, postings=entry.postings[:1])), "FillCredited", "entry"),
    (once(OrderRefused, reason="not_held", rule="ONC-26"), "OrderRefused", "rule"),
    (once(MarkTaken, value_wei=wei_more), "MarkTaken", "value_wei"),
    (once(MarkTaken, eth_wei=wei_more), "MarkTaken", "eth_wei"),
    (once(WindowLiquidated, value_wei=wei_more), "WindowLiquidated", "value_wei"),
    (once(WindowLiquidated, late=True), "WindowLiquidated", "late"),
    (once(WindowLiquidated, unproven_wei=wei_more), "WindowLiquidated", "unproven_wei"),
    (once(RunScored, headline_ppm=lambda ppm: ppm + 1), "WindowScored", "headline_ppm"),
    (once(RunScored, fills=9), "WindowScored", "fills"),
    (once(WindowScored, scored=1), "WindowScored", "scored"),
    (once(WindowScored, close_eth_usd_micro_usd=MicroUsd(1)), "WindowScored", "close_usd_micro_usd"),
    (once(WindowSealed, events=3), "WindowSealed", "events"),
    (once(WindowSealed, root="0" * 64), "WindowSealed", "root"),
    (once(WindowSealed, secret="another"), "WindowSealed", "secret"),
]


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    CHANGES,
    ids=[f"{kind}.{field}-{place}" for place, (_, kind, field) in enumerate(CHANGES)],
)
async def test_any_other_telling_is_found_by_record_and_field(change, kind, field):
    journal = await a_window()
    found = replay(retold(journal, change)).difference
    assert found is not None and (found.kind, found.field.split(": ")[-1]) == (kind, field)
    assert found.recorded != found.recomputed


async def test_a_fill_that_nobody_decided_is_found():
    journal = await a_window()
    (first, *_) = events_of(journal, FillCredited)

    def with_another(event):
        return [event, replace(event, order_id=event.order_id.replace("/0/0", "/0/9"))] if event == first else [event]

    difference = replay(retold(journal, with_another)).difference
    assert (difference.kind, difference.field) == ("FillCredited", "order_id")


@pytest.mark.parametrize("left_out", [FillCredited, OrderRefused])
async def test_an_outcome_that_is_left_out_is_found(left_out):
    journal = await a_window()
    out = events_of(journal, left_out)[0]
    assert replay(retold(journal, lambda event: [] if event == out else [event])).difference is not None


async def test_a_liquidation_that_books_more_than_it_sold_is_found():
    journal = await a_window()
    sale = next(event for event in events_of(journal, WindowLiquidated) if event.entry.postings)
    doubled = replace(
        sale,
        entry=replace(
            sale.entry,
            postings=tuple(replace(part, amount=TokenRaw(2 * int(part.amount))) for part in sale.entry.postings),
        ),
    )
    difference = replay(retold(journal, lambda event: [doubled] if event == sale else [event])).difference
    assert difference.field == "entry.postings"


async def test_a_mark_that_hides_a_holding_is_found():
    journal = await a_window()
    mark = next(event for event in events_of(journal, MarkTaken) if event.holdings)
    hidden = replace(mark, holdings=(), value_wei=mark.eth_wei)
    assert replay(retold(journal, lambda event: [hidden] if event == mark else [event])).difference.field == "holdings"


async def test_a_broken_link_is_corrupt_and_not_a_difference():
    journal = await a_window()
    records = list(journal.read())
    records[9] = replace(records[9], body=records[9].body.replace(b"1", b"2", 1))
    with pytest.raises(CorruptJournal) as broken:
        replay(records)
    assert broken.value.seq == 10


async def test_an_unfinished_window_replays_as_far_as_it_goes():
    journal = await a_window()
    records = list(journal.read())[:-3]
    assert replay(records).difference is None


async def test_what_is_computed_again_is_counted_apart_from_what_only_the_world_knew():
    found = replay((await a_window()).read())
    assert found.observed == 2 and found.recomputed > 30
