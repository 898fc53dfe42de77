"""The run: one window from its opening to its seal, step by step as the paper tells it (001 §2.2; design §2).

    open_window (passes, plans) → [tick → look → show → ask → decide → adjudicate → mark]* → liquidate → score → seal
    resume takes a window up where its journal ends

Every step is appended to the journal before anything depends on it; the state is the fold of what was appended. A fault
of the outside world is caught here, at the turn's edge, and recorded; it never becomes a price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from chain.market import at_newest
from harnesses.outcome import Turn
from harnesses.question import Question
from harnesses.turn import play
from ledgers.errors import ChainFault, FeedFault
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import MicroUsd
from referee.onchain.admission import refused_by_name
from referee.onchain.bundle import own_book
from referee.onchain.cadence import beats, late_ms_max, rotation, tick_ts_ms
from referee.onchain.credit import not_filled, refusal
from referee.onchain.crossing import cross
from referee.onchain.decision import Decision, of_turn, reading
from referee.onchain.doors import DecisionDesk
from referee.onchain.ending import turn_blind, turn_blobs, turn_ended
from referee.onchain.events import (
    HEADLINE, LEDGERS, BundleShown, FillCredited, OrderAsked, Pin, ReorgSeen, TickMissed, TurnAbandoned, WindowOpened, WindowPaused,
    WindowResumed, WindowSealed, Woken,
)  # fmt: skip
from referee.onchain.facts import recorded_prompt, run_facts
from referee.onchain.following import Followed, follow
from referee.onchain.further import skipped
from referee.onchain.live import LiveWindow, Seat
from referee.onchain.opening import Refused, paper_wallets, refuse_another_window, refuse_without_pass, revealed, window_opened
from referee.onchain.planning import PLAN_TICK, Planned, plan_blobs, plan_question, plan_reading, planning_text, refuse_unavailable, run_begun
from referee.onchain.recording import pinned, record
from referee.onchain.recovery import owed_events
from referee.onchain.score import score_run, score_window
from referee.onchain.state import assert_settled, order_id_of
from referee.onchain.valuation import CLOCK, TURN
from referee.onchain.valuing import liquidate_left, mark, sell_out
from referee.onchain.witnessing import witnessing

RETRY_MS = 2_000
"""Between attempts to liquidate."""
LATE, BUSY = "late", "busy"
FAULT = "fault"
OPERATOR = "operator"

Shown = tuple[Pin, bytes]
"""The block and the bytes that every stack of a tick is shown."""


# --- open -----------------------------------------------------------------------------------------------------------


async def open_window(live: LiveWindow) -> None:
    """Admit who may play, have plans written, price the stake, pin what can change a result, book every stake.

    Nothing is recorded unless all of it is (ONC-02, ONC-13, ONC-14, ONC-28). Raises: ChainFault, FeedFault, StoreFault, Refused."""
    refuse_without_pass(live)
    seen = await live.market.network()
    pin = shown = await live.desk.pin()
    price = await live.market.eth_usd(pin)
    if used := await live.market.used_addresses(paper_wallets(live, seen), pin):
        raise Refused(f"{len(used)} paper wallets have code, a nonce or a balance on this chain; the window was not opened")
    plans = await write_plans(live, pin, window_opened(live, seen, pin, price, live.clock.now_ms()))
    if plans:
        pin = await live.desk.pin()
        price = await live.market.eth_usd(pin)
    opened = window_opened(live, seen, pin, price, live.clock.now_ms())
    runs = [event for seat in live.seats.values() for event in run_begun(seat, opened, plans.get(seat.run_id), shown, live.secret)]
    blobs = {digest: part for planned in plans.values() for digest, part in plan_blobs(planned).items()}
    await record(live, opened, *runs, blobs=live.window.blobs | blobs)


async def write_plans(live: LiveWindow, pin: Pin, opened: WindowOpened) -> dict[str, Planned]:
    """Play every plan turn, all at once on one look at the market; the window clock starts when all are in (ONC-14).

    Shapes: by run id, of those that plan. Raises: ChainFault; Refused when whoever answers could not be reached."""
    planning = [seat for seat in live.seats.values() if seat.plan_prompt]
    if not planning:
        return {}
    live.tell(planning_text(planning))
    bundle = await live.market.bundle(opened, PLAN_TICK, pin)
    plans = await asyncio.gather(*(write_plan(live, seat, plan_question(seat, opened, live.rules, bundle)) for seat in planning))
    refuse_unavailable(plans)
    return {planned.seat.run_id: planned for planned in plans}


async def write_plan(live: LiveWindow, seat: Seat, question: Question) -> Planned:
    """Play one plan turn."""
    begun_ts_ms = live.clock.now_ms()
    return Planned(seat, question, await play(seat.stack, question, seat.planner or seat.provider, live.clock, plan_reading), begun_ts_ms)


async def resume(live: LiveWindow, *, accept_code_change: bool = False) -> None:
    """Take an opened window up again: what was under way is settled, what was missed is counted (design §9).

    Raises: ChainFault, StoreFault, Refused when the world is not the one the window was opened in."""
    seen = await live.market.network()
    refuse_another_window(live, seen, accept_code_change)
    now_ms = max(live.clock.now_ms(), live.state.ts_ms)
    resumed = WindowResumed(
        run_id=live.window_id,
        ts_ms=now_ms,
        clock_offset_ms=seen.clock_offset_ms,
        down_ms=now_ms - live.state.ts_ms,
        code_sha256=live.code_sha256,
    )
    await record(live, resumed, *owed_events(live.state, live.rules, now_ms))
    await see_reorgs(live)


# --- the window -----------------------------------------------------------------------------------------------------


async def play_window(live: LiveWindow) -> bool:
    """Play an opened or resumed window to its seal; False when an operator paused it on the way.

    Raises: StoreFault, CorruptJournal, alone or inside an ExceptionGroup."""
    async with witnessing(live):
        await play_beats(live)
        unsold = None if live.pausing.is_set() else await liquidate(live)
    if unsold is None:
        await record(live, WindowPaused(run_id=live.window_id, ts_ms=live.clock.now_ms(), reason=OPERATOR))
        return False
    await score(live, unsold)
    await seal(live)
    return True


async def play_beats(live: LiveWindow) -> None:
    """Begin every tick and every mark on the clock at its time, until the close or a pause; then let turns end."""
    begun_ms = live.clock.now_ms()
    async with asyncio.TaskGroup() as turns:
        for beat in beats(live.opened):
            if beat.kind == "mark" and beat.ts_ms < begun_ms:
                continue
            if not await waited(live, beat.ts_ms):
                return
            turns.create_task(tick(live, beat.number, turns) if beat.kind == "tick" else mark(live, tuple(live.seats), CLOCK))
        await waited(live, live.opened.close_ts_ms)


async def waited(live: LiveWindow, ts_ms: int) -> bool:
    """Wait for a time; False as soon as an operator pauses."""
    waits = [asyncio.ensure_future(live.alarm.until(ts_ms)), asyncio.ensure_future(live.pausing.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return not live.pausing.is_set()
    finally:
        for wait in waits:
            wait.cancel()


# --- wake, bundle ---------------------------------------------------------------------------------------------------


async def tick(live: LiveWindow, number: int, turns: asyncio.TaskGroup) -> None:
    """Wake the runs of one tick in rotating order on one bundle; who cannot be woken has missed it (ONC-03, ONC-15)."""
    events = tuple(wake_or_miss(live, number))
    woken = [event.run_id for event in events if isinstance(event, Woken)]
    live.busy.update(woken)
    await record(live, *events)
    if woken:
        shown = await look(live, number)
        for run_id in woken:
            turns.create_task(turn(live, live.seats[run_id], number, shown, turns))


def wake_or_miss(live: LiveWindow, number: int) -> Iterator[Woken | TickMissed]:
    """Say for every run of a tick whether it is woken. Shapes: in the tick's rotation; runs that have it recorded left out."""
    now_ms, scheduled_ts_ms = live.clock.now_ms(), tick_ts_ms(live.opened, number)
    lag_ms = max(0, now_ms - scheduled_ts_ms)
    late = lag_ms > late_ms_max(live.rules, live.opened.interval_ms)
    for place, run_id in enumerate(rotation(tuple(live.seats), live.opened.seed, number)):
        if number in live.state.runs[run_id].ticks:
            continue
        if late or run_id in live.busy:
            reason = LATE if late else BUSY
            yield TickMissed(run_id=run_id, ts_ms=now_ms, tick=number, scheduled_ts_ms=scheduled_ts_ms, reason=reason)
        else:
            yield Woken(run_id=run_id, ts_ms=now_ms, tick=number, scheduled_ts_ms=scheduled_ts_ms, lag_ms=lag_ms, order_index=place)


async def look(live: LiveWindow, number: int) -> Shown | ChainFault:
    """Take the one look at the market that every stack of a tick is shown."""
    try:
        return await at_newest(partial(pinned, live), partial(live.market.bundle, live.opened, number))
    except ChainFault as fault:
        return fault


# --- a turn ---------------------------------------------------------------------------------------------------------


async def turn(live: LiveWindow, seat: Seat, number: int, shown: Shown | ChainFault, turns: asyncio.TaskGroup) -> None:
    """Play one waking of one stack, from what it is shown to the mark after it; further ledgers follow beside it."""
    try:
        if isinstance(shown, ChainFault):
            await record(live, *turn_blind(seat.run_id, number, shown.reason, live.clock.now_ms()))
        else:
            question = await show(live, seat, number, *shown)
            played = await ask(live, seat, question)
            if played is None:
                return
            followed = await decide(live, seat, number, played)
            if followed:
                live.following[seat.run_id] += 1
                turns.create_task(follow(live, seat.run_id, number, followed))
                turns.create_task(cross(live, seat.run_id, followed))
        await mark(live, (seat.run_id,), TURN)
    finally:
        live.busy.discard(seat.run_id)


async def show(live: LiveWindow, seat: Seat, number: int, pin: Pin, bundle: bytes) -> Question:
    """Show a stack the tick's bundle and its own headline book, and record both."""
    run, book = live.state.runs[seat.run_id], live.state.books.of(seat.run_id, HEADLINE)
    own = own_book(live.opened, number, book, run.marks.get(HEADLINE), run.recent, run.costs)
    shown = BundleShown(
        run_id=seat.run_id,
        ts_ms=live.clock.now_ms(),
        tick=number,
        pin=pin,
        bundle_sha256=sha256_hex(bundle),
        book_sha256=sha256_hex(own),
    )
    await record(live, shown, blobs={shown.bundle_sha256: bundle, shown.book_sha256: own})
    left_ms = max(0, live.opened.close_ts_ms - live.clock.now_ms())
    return Question(seat.run_id, number, prompt_of(live, seat), bundle, own, min(seat.turn_ms_max, left_ms))


def prompt_of(live: LiveWindow, seat: Seat) -> str:
    """Put a run's recorded prompt together: verbatim prompt, pinned facts, frozen plan (ONC-14)."""
    if not seat.prompt:
        return ""
    return recorded_prompt(seat.prompt, run_facts(live.opened, live.rules, seat.limits), live.plan_of(seat.run_id) or "")


async def ask(live: LiveWindow, seat: Seat, question: Question) -> Turn | None:
    """Ask a stack; none when an operator pauses first: the turn is abandoned, and it is never asked again."""
    asking = asyncio.ensure_future(play(seat.stack, question, seat.provider, live.clock, reading(live.rules.orders_max)))
    pause = asyncio.ensure_future(live.pausing.wait())
    try:
        await asyncio.wait({asking, pause}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
    finally:
        asking.cancel()
        pause.cancel()
    await record(live, TurnAbandoned(run_id=seat.run_id, ts_ms=live.clock.now_ms(), tick=question.tick))
    return None


async def decide(live: LiveWindow, seat: Seat, number: int, played: Turn) -> list[Followed]:
    """Record how a turn ended and what it decided; then referee its orders. Shapes: what further ledgers have to follow."""
    arrived_ts_ms = live.clock.now_ms()
    read = of_turn(played, live.rules.orders_max)
    await record(live, *turn_ended(seat.run_id, number, played, read, arrived_ts_ms), blobs=turn_blobs(played, read))
    if isinstance(read, Decision):
        live.adjudicating += 1
        live.quiet.clear()
        try:
            async with live.refereeing:
                return await adjudicate(live, seat, number, read.orders, arrived_ts_ms)
        finally:
            live.adjudicating -= 1
            if not live.adjudicating:
                live.quiet.set()
    return []


# --- orders ---------------------------------------------------------------------------------------------------------


async def adjudicate(live: LiveWindow, seat: Seat, number: int, orders: Sequence[OrderAsked], arrived_ts_ms: int) -> list[Followed]:
    """Referee the orders of one decision in their order; all that is known of one is appended before the next begins.

    Shapes: the orders that headline filled and further ledgers have to follow."""
    desk: DecisionDesk | ChainFault | None = None
    followed: list[Followed] = []
    for asked in orders:
        order_id, now_ms = order_id_of(seat.run_id, number, asked.index), live.clock.now_ms()
        reason, detail = refused_by_name(asked, now_ms, live.opened.close_ts_ms, live.rules)
        if reason:
            await record(live, *settled(live, asked, order_id, (refusal(seat.run_id, order_id, LEDGERS, reason, detail, now_ms),)))
            continue
        desk = desk or await sit_down(live, seat, number, arrived_ts_ms)
        if isinstance(desk, ChainFault):
            await record(live, *settled(live, asked, order_id, (not_filled(seat.run_id, order_id, LEDGERS, FAULT, str(desk), now_ms),)))
            continue
        async with live.writing[seat.run_id]:
            refereed = await desk.order(asked, live.state.books.both(seat.run_id))
            events = settled(live, asked, order_id, refereed.events)
            await record(live, *events, blobs=refereed.blobs)
        fill = next((event for event in events if isinstance(event, FillCredited) and HEADLINE in event.ledgers), None)
        if fill is not None and live.state.runs[seat.run_id].further:
            followed.append(Followed(asked, fill, desk.filled.get(order_id)))
    return followed


def settled(live: LiveWindow, asked: OrderAsked, order_id: str, events: Sequence[Event]) -> tuple[Event, ...]:
    """All events of an order that must have ended on the ledgers that share its board, and what further ledgers skip of it."""
    assert_settled(order_id, events)
    run_id = events[0].run_id
    return (*events, *skipped(asked, order_id, events, live.state.runs[run_id].further, run_id, live.clock.now_ms()))


async def sit_down(live: LiveWindow, seat: Seat, number: int, arrived_ts_ms: int) -> DecisionDesk | ChainFault:
    """Pin the block that all orders of a decision are refereed at."""
    try:
        pin = await pinned(live)
    except ChainFault as fault:
        return fault
    await live.market.follow(pin)
    wallet = live.state.runs[seat.run_id].opened.wallet
    return live.desk.decision(seat.run_id, wallet, number, pin, arrived_ts_ms, live.state.books.both(seat.run_id))


# --- close: liquidation, score, seal ----------------------------------------------------------------------------------


async def liquidate(live: LiveWindow) -> dict[str, str] | None:
    """Sell every run out, all at one block; who meets a fault is tried again at later blocks (ONC-12).

    Shapes: the last fault of each run that could not be sold out, by run id; none when an operator paused."""
    give_up_ms = live.clock.monotonic_ms() + live.rules.liquidation_retry_ms_max
    scored = live.state.scored is not None
    unsold = {run_id: "" for run_id, run in live.state.runs.items() if not (HEADLINE in run.liquidated or scored)}
    told = False
    while unsold:
        unsold = await sell_out(live, tuple(unsold))
        if not unsold or live.clock.monotonic_ms() >= give_up_ms:
            break
        if not told:
            told = True
            live.tell(f"not all could be sold yet ({', '.join(sorted(set(unsold.values())))}); it is tried again for up to {live.rules.liquidation_retry_ms_max // 1_000} s")
        if not await waited(live, live.clock.now_ms() + RETRY_MS):
            return None
    if not scored:
        await liquidate_left(live)
    return unsold


async def score(live: LiveWindow, unsold: Mapping[str, str]) -> None:
    """Score every run and the window in one append (ONC-16)."""
    await see_reorgs(live)
    if live.state.scored is not None:
        return
    price, now_ms = await closing_price(live), live.clock.now_ms()
    runs = live.state.runs.items()
    stake_wei, lost = live.opened.stake_wei, live.state.lost
    scores = [score_run(run, stake_wei, lost, price, live.rules, unsold.get(run_id, ""), now_ms) for run_id, run in runs]
    await record(live, *scores, score_window(live.window_id, scores, price, now_ms))


async def closing_price(live: LiveWindow) -> MicroUsd | None:
    """Price one ETH at the block of the last liquidation; none when it cannot be read."""
    pins = [run.liquidated[HEADLINE].pin for run in live.state.runs.values() if HEADLINE in run.liquidated]
    try:
        return (await live.market.eth_usd(max(pins, key=lambda pin: pin.block))).micro_usd if pins else None
    except (ChainFault, FeedFault):
        return None


async def seal(live: LiveWindow) -> None:
    """Append the last event: how many came before it, and the link they end in. Nothing follows."""
    await record(live)
    events, root = live.journal.head()
    now_ms = max(live.stamp.ts_ms, live.clock.now_ms())
    sealed = WindowSealed(run_id=live.window_id, ts_ms=now_ms, events=events, root=root, secret=revealed(live.state.opened, live.secret))
    await live.journal.append(sealed)
    live.state.apply(sealed)


async def see_reorgs(live: LiveWindow) -> None:
    """Ask whether the blocks that fills stand on are still on the chain; a lost one is recorded and marks its fills."""
    stood_on = {(fill.block, fill.block_hash) for run in live.state.runs.values() for fill in run.fills}
    unseen = sorted(pair for pair in stood_on if pair[1] not in live.state.lost)
    try:
        found = await live.market.hashes([block for block, _ in unseen]) if unseen else {}
    except ChainFault:
        return
    lost = [(block, lost_hash) for block, lost_hash in unseen if found.get(block, lost_hash) != lost_hash]
    now_ms = live.clock.now_ms()
    await record(
        live,
        *(ReorgSeen(run_id=live.window_id, ts_ms=now_ms, block=block, lost_hash=lost_hash, found_hash=found[block]) for block, lost_hash in lost),
    )
