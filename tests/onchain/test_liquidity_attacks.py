"""Attacks on liquidity positions (ONC-21): lost openings, edges of every kind, and any history held to a real position beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chain.devnet.calls import Tx as Sent
from chain.devnet.calls import encode
from chain.header import header_of, header_request
from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.reading import follow, read_path
from chain.liquidity.record import path_of
from chain.liquidity.ticks import sqrt_price_at
from chain.pools import Pool, discover, read_states
from chain.positions import Placed, is_eth, straight_close_txs
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock, VirtualClock
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw
from ledgers.seal import export
from referee.onchain.board import header_of_pin
from referee.onchain.cadence import tick_ts_ms
from referee.onchain.events import LEDGERS, MarkTaken, OrderRefused, RunScored
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityOpened
from referee.onchain.replay import replay
from referee.onchain.run import open_window
from tests.onchain import recount
from tests.chain.liquidity.twin import TwinPool
from tests.onchain.attacker import deployed
from tests.onchain.given import filled, outcome, said, wei
from tests.onchain.ground import Ground, Run
from tests.onchain.paper import T0, events_of, ordering
from tests.onchain.pooling import TWIN, Twin, around, churn, closing, opening, paid, pool_of, pooled, sizes, tick_of
from tests.onchain.test_liquidity import another_desk, funded_twin, with_tokens
from tests.onchain.test_liquidity_refusals import own_pool
from tests.onchain.test_liquidity_window import TICKS, Mortal, ended, one_tick, played, seated, through
from tests.onchain.test_replay import once, retold


@pytest.fixture
def run(ground):
    return Run(ground, stake="10 eth")


async def truth_of(run: Run, pool: Pool, opened: list[LiquidityOpened], block: int, path: PoolPath | None = None) -> PoolPath:
    """What positions side by side earn on the chain as it is now, from their openings to a block, by one walk that knows no detour."""
    ground = run.ground
    records = {digest: blob for refereed in run.refereed for digest, blob in refereed.blobs.items()}
    for at in sorted({event.pin.block for event in opened} | {block}):
        (answer,) = await ground.desk.rpc.batch([header_request(at)])
        header = header_of(answer, at)
        if path is None:
            recorded = path_of(records[opened[0].path_sha256])
            path = recorded if recorded.block_hash == header.block_hash else await read_path(ground.desk.rpc, ground.network, pool, header)
        elif path.block < at:
            path = (await follow(ground.desk.rpc, ground.network, pool, path, header)).path
        for event in (event for event in opened if event.pin.block == at):
            path.positions.append(PaperPosition(lower=event.tick_lower, upper=event.tick_upper, liquidity=int(event.liquidity_raw)))
    assert path is not None
    return path


def earned(path: PoolPath) -> list[tuple[int, int]]:
    return [paper.fees() for paper in path.positions]


async def told(ground: Ground, pool: Pool, block: int) -> bool:
    """Whether the node still knows the pool as it was at a block."""
    (answer,) = await ground.desk.rpc.batch([header_request(block)])
    try:
        return bool(await read_path(ground.desk.rpc, ground.network, pool, header_of(answer, block)))
    except ChainFault:
        return False


async def marked(run: Run, *, anew: bool = False) -> tuple[int, list[tuple[int, int]], list[str]]:
    """Mark headline, by this process or by one that knows the journal only: block, fees of each position, what was healed."""
    pin = await run.ground.desk.pin()
    desk = another_desk(run) if anew else run.ground.desk
    (valued, *_) = await desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    run.fold(valued.accrued)
    return pin.block, [(int(mark.fees0_raw), int(mark.fees1_raw)) for mark in valued.positions], [event.healed for event in valued.accrued]


# --- lost blocks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["v3 weth LEAF", "v4 eth PINE"])
@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another process"])
@pytest.mark.parametrize("seen", [False, True], ids=["at once", "after a mark"])
async def test_onc_21_a_lost_opening_is_followed_from_its_block_as_it_is_now(ground, run, kind, anew, seen):
    pool = pool_of(ground, kind)
    await with_tokens(run, pool)
    fork = ground.chain.snapshot()
    churn(ground, pool, 10**17)
    ground.settle()
    opened = await pooled(run, pool)
    if seen:
        churn(ground, pool, 2 * 10**17)
        ground.settle()
        await marked(run)
    ground.chain.revert(fork)
    for eth_wei in (3 * 10**17, 10**17, 2 * 10**17):
        churn(ground, pool, eth_wei)
    ground.settle()
    block, fees, healed = await marked(run, anew=anew)
    begun = opened if await told(ground, pool, opened.pin.block) else replace(opened, pin=replace(opened.pin, block=block))
    assert fees == earned(truth := await truth_of(run, pool, [begun], block)) and healed[0] == "reorg"
    churn(ground, pool, 10**17)
    ground.settle()
    block, later, healed = await marked(run)
    assert later == earned(await truth_of(run, pool, [], block, truth)) and healed == [""] and min(later[0]) > 0
    assert await run.say(closing(opened.position)) == ["closed"]


@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another process"])
@pytest.mark.parametrize("seen", [False, True], ids=["at once", "after a mark"])
async def test_onc_21_two_positions_lose_the_blocks_in_which_the_second_was_opened(ground, run, anew, seen):
    """The first earned on the lost blocks; neither may keep what it earned there."""
    pool = pool_of(ground, "v4 eth PINE")
    first = await pooled(run, pool)
    churn(ground, pool)
    ground.settle()
    await marked(run)
    fork = ground.chain.snapshot()
    churn(ground, pool, 10**18)
    ground.settle()
    second = outcome((await run.decide(opening(pool, around(ground, pool, ticks=6_000), sizes(ground, run, pool))))[0])
    assert isinstance(second, LiquidityOpened), second
    churn(ground, pool, 10**18)
    ground.settle()
    if seen:
        await marked(run)
    ground.chain.revert(fork)
    for eth_wei in (10**16, 10**17, 2 * 10**16):
        churn(ground, pool, eth_wei)
    ground.settle()
    block, fees, healed = await marked(run, anew=anew)
    assert fees == earned(await truth_of(run, pool, [first, second], block))
    assert "reorg" in healed


async def test_onc_21_another_opening_after_lost_blocks_begins_at_the_pool_as_it_is(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    await with_tokens(run, pool)
    fork = ground.chain.snapshot()
    churn(ground, pool, 10**18)
    ground.settle()
    lost = await pooled(run, pool)
    assert await run.say(closing(lost.position)) == ["closed"]
    ground.chain.revert(fork)
    churn(ground, pool, 10**17)
    ground.settle()
    (events,) = await run.decide(opening(pool, around(ground, pool), sizes(ground, run, pool)))
    assert said(events) == "opened", outcome(events)
    churn(ground, pool, 10**17)
    ground.settle()
    block, fees, _ = await marked(run)
    assert fees == earned(await truth_of(run, pool, [outcome(events)], block))


# --- any history, beside a real position ----------------------------------------------------------------------------

async def known(ground: Ground, twin: TwinPool) -> Pool:
    """Let the desk know a pool made for a test."""
    for pool in await discover(ground.desk.rpc, ground.network, 0, ground.chain.height):
        ground.graph.add(pool)
    ground.graph.states.update(await read_states(ground.desk.rpc, ground.network, ground.graph.pools.values(), ground.chain.height))
    ground.settle()
    return ground.graph.pools[twin.pool.key]


async def granted(run: Run, pool: Pool, units: int = 10**24) -> None:
    """Book plenty of a pool's tokens."""
    for token in (token for token in (pool.token0, pool.token1) if not is_eth(run.ground.network, token)):
        await run.grant_token(token, units)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("venue", "hub", "fee_ppm", "spacing"), [("v3", "LEAF", 3_000, 60), ("v3", "decimals_0", 100, 1), ("v4", "native", 500, 10), ("v4", "MOSS", 20_000, 200)])
async def test_onc_21_over_any_history_a_paper_position_holds_what_a_real_one_does_and_earns_its_share(chain, venue, hub, fee_ppm, spacing, seed):
    twin = TwinPool.made(chain, venue, hub, fee_ppm, spacing, seed=seed)
    twin.riot(1)
    ground = await Ground.on(chain)
    run = Run(ground, stake="1000000 eth")
    pool = await known(ground, twin)
    await granted(run, pool)
    opened = None
    for part in (8, 80, 800, 10**6):
        (events,) = await run.decide(opening(pool, twin.bounds, (10**21 // part, 10**21 // part)))
        if isinstance(outcome(events), LiquidityOpened):
            opened = outcome(events)
            break
        assert said(events) in ("lp_share", "lp_range"), outcome(events)
    assert opened is not None
    liquidity = int(opened.liquidity_raw)
    assert opened.share_ppm <= 90_910
    twin.open(liquidity, twin.bounds)
    plain = None
    for round_, cuts in enumerate((None, (4, 6) if venue == "v3" else (700, 1_000), None, (0, 0))):
        if cuts:
            twin.protocol_takes(*cuts)
        twin.riot(3)
        ground.settle()
        block, fees, healed = await marked(run, anew=round_ == 2)
        plain = await truth_of(run, pool, [] if plain else [opened], block, plain)
        here = chain.snapshot()
        closed = twin.close(liquidity, twin.bounds)
        chain.revert(here)
        position = run.book().position(opened.position)
        (mark,) = (await run.worth()).positions
        assert (int(mark.amount0_raw), int(mark.amount1_raw)) == closed.principal
        assert fees == earned(plain) and healed in ([""], [])
        for told_, real in zip(fees[0], closed.fees, strict=True):
            assert real // 2 - 10**3 <= told_ <= real, (told_, real, position)
    before = run.book()
    (events,) = await run.decide(closing(opened.position))
    ended = outcome(events)
    assert said(events) == "closed", ended
    assert (int(ended.amount0_raw), int(ended.amount1_raw)) == closed.principal and [(int(ended.fees0_raw), int(ended.fees1_raw))] == fees
    assert not run.book().positions and before.positions
    await ground.close()


# --- edges ----------------------------------------------------------------------------------------------------------

EDGES = [("v3", "LEAF", 100, 1), ("v3", "LEAF", 10_000, 200), ("v4", "native", 3_000, 60), ("v4", "decimals_0", 500, 10)]
WHERE = ["everything", "just below", "just above", "far below", "far above", "one step", "as others"]


def edge(twin: TwinPool, where: str, tick: int) -> tuple[int, int]:
    """A range of a kind, on the grid."""
    spacing = twin.pool.tick_spacing
    most, here = 887_272 // spacing * spacing, tick // spacing * spacing
    return {
        "everything": (-most, most), "just below": (here - 10 * spacing, here), "just above": (here + spacing, here + 11 * spacing),
        "far below": (-most, -most + spacing), "far above": (most - spacing, most), "one step": (here, here + spacing), "as others": twin.bounds,
    }[where]  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("venue", "hub", "fee_ppm", "spacing"), EDGES)
async def test_onc_21_ranges_at_every_edge_open_hold_and_close_as_real_ones_or_are_refused(chain, venue, hub, fee_ppm, spacing, where):
    """The price runs across the whole range and comes back; one more and one less wei than the least that makes liquidity."""
    twin = TwinPool.made(chain, venue, hub, fee_ppm, spacing, seed=5)
    twin.riot(1)
    ground = await Ground.on(chain)
    run = Run(ground, stake="1000000 eth")
    pool = await known(ground, twin)
    await granted(run, pool)
    bounds = edge(twin, where, tick_of(ground, pool))
    assert await run.say(opening(pool, bounds, (2**128 - 1, 2**128 - 1))) == ["insufficient_tokens"]
    opened = None
    for raw in [10**power for power in range(21, -1, -1)]:
        (events,) = await run.decide(opening(pool, bounds, (raw, raw)))
        opened = outcome(events)
        if isinstance(opened, LiquidityOpened):
            break
        assert said(events) in ("lp_share", "lp_range"), opened
    if not isinstance(opened, LiquidityOpened):
        await ground.close()
        assert where in ("far below", "far above"), opened  # no amount makes so little of that much
        return
    liquidity = int(opened.liquidity_raw)
    twin.open(liquidity, bounds)
    low, high = sqrt_price_at(max(bounds[0] - spacing, twin.start - 20_000)), sqrt_price_at(min(bounds[1] + spacing, twin.start + 20_000))
    for limit, zero in ((low, True), (high, False), (low, True), (high, False)):
        twin.play([(0, zero, 0, 0, 10**24, limit, 0)])
    twin.riot(1)
    ground.settle()
    block, fees, _ = await marked(run)
    closed = twin.close(liquidity, bounds)
    truth = await truth_of(run, pool, [opened], block)
    assert fees == earned(truth) and all(told_ <= real for told_, real in zip(fees[0], closed.fees, strict=True))
    (events,) = await run.decide(closing(opened.position))
    ended = outcome(events)
    assert said(events) == "closed" and (int(ended.amount0_raw), int(ended.amount1_raw)) == closed.principal, ended
    assert not run.books.of(run.run_id, "headline").positions
    await ground.close()


async def test_onc_21_opened_and_closed_in_one_decision_costs_gas_and_rounding_alone(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    await with_tokens(run, pool)
    before = run.book()
    own = f"{run.run_id}/{run.tick + 1}/0"
    events = await run.decide(opening(pool, around(ground, pool), sizes(ground, run, pool)), closing(own), closing(own), run.sell("LEAF"))
    assert [said(each) for each in events] == ["opened", "closed", "no_position", "filled"]
    opened, closed = outcome(events[0]), outcome(events[1])
    assert 0 <= int(opened.amount0_raw) - int(closed.amount0_raw) <= 2 and 0 <= int(opened.amount1_raw) - int(closed.amount1_raw) <= 2
    assert int(closed.fees0_raw) == int(closed.fees1_raw) == 0 and int(outcome(events[3]).spent_raw) >= int(before.held(ground.token("LEAF")).units_raw) - 2


async def test_onc_21_approvals_are_paid_once_by_run_and_ledger(ground, run):
    pool = pool_of(ground, "v4 BRIM USDG")
    await with_tokens(run, pool)
    ticks, amounts = around(ground, pool), sizes(ground, run, pool, part=8)
    events = await run.decide(opening(pool, ticks, amounts), opening(pool, ticks, amounts))
    later = await run.decide(opening(pool, ticks, amounts))
    first, second, third = (outcome(each) for each in (*events, *later))
    assert len(first.approvals) == 4 and second.approvals == third.approvals == ()
    assert int(second.gas_wei) < int(first.gas_wei) and abs(int(second.gas_wei) - int(third.gas_wei)) * 10 < int(third.gas_wei)


async def test_onc_21_an_own_buy_that_moves_the_price_to_more_liquidity_buys_no_greater_share(chain):
    """What counts is the liquidity at the price that is really there, or after the own orders where that is less."""
    twin = TwinPool.made(chain, "v4", "native", 500, 10, seed=3)
    spacing, here = twin.pool.tick_spacing, twin.start // twin.pool.tick_spacing * twin.pool.tick_spacing
    twin.play([(1, False, here - 40 * spacing, here - 20 * spacing, 10**26, 0, 0), (1, False, here + 20 * spacing, here + 40 * spacing, 10**26, 0, 0)])
    ground = await Ground.on(chain)
    run = Run(ground, stake="1000000 eth")
    pool = await known(ground, twin)
    await granted(run, pool)
    ground.keep(lambda each: each.key == pool.key)
    bounds, amounts = (here - 20 * spacing, here + 20 * spacing), (3 * 10**19, 3 * 10**19)
    assert await run.copy().say(opening(pool, bounds, amounts)) == ["lp_share"]
    buy = replace(run.buy("FERN", wei("3 eth")), token=pool.token1)
    assert await run.say(buy, opening(pool, bounds, amounts)) == ["filled", "lp_share"]
    await ground.close()


# --- marks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["v3 weth LEAF", "v3 MOSS USDG", "v4 eth PINE", "v4 BRIM USDG"])
@pytest.mark.parametrize("shift", [0, -9_000, 9_000], ids=["in range", "below", "above"])
async def test_onc_21_a_mark_is_what_really_closing_and_selling_everything_brings_gas_apart_to_the_wei(ground, run, kind, shift):
    pool = pool_of(ground, kind)
    await with_tokens(run, pool)
    amounts = sizes(ground, run, pool, part=1)
    twin = await funded_twin(run, pool)
    ground.settle()
    opened = outcome((await run.decide(opening(pool, around(ground, pool, shift=shift), amounts)))[0])
    assert isinstance(opened, LiquidityOpened), opened
    worth = await run.worth()
    (mark,) = worth.positions
    twin.open(opened, amounts)
    before = ground.eth_of(TWIN)
    block = ground.chain.height
    twin.close(opened)
    twin.sell_as(worth, run.book().approvals)
    gas_wei = sum(paid(receipts_of(ground, number)) for number in range(block + 1, ground.chain.height + 1))
    gross = int(worth.value_wei) - int(worth.eth_wei) + int(mark.close_gas_wei) + int(mark.sale_gas_wei) + sum(int(holding.gas_wei) for holding in worth.holdings)
    assert ground.eth_of(TWIN) - before + gas_wei - gross in (0, 1, 2)
    assert mark.status == "proven" and not mark.unsold


def receipts_of(ground: Ground, block: int) -> list[dict]:
    """Receipts of what the twin sent in a block."""
    return [receipt for receipt in ground.chain.node.call("eth_getBlockReceipts", [hex(block)]) if receipt["from"].lower() == TWIN]


async def test_onc_24_a_mark_between_two_orders_of_a_decision_leaves_the_second_at_their_own_block(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    opened = await pooled(run, pool)
    churn(ground, pool)
    ground.settle()
    _, fees, _ = await marked(run)
    held = run.book().positions
    told = await ground.desk.liquidity.follower.to(run.run_id, LEDGERS, held, header_of_pin(opened.pin), 0)
    assert max(fees[0]) > 0 and (told.events, told.fees_of) == ([], {opened.position: (0, 0)})


# --- tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["eoa_only", "cooldown_60s", "cooldown_block"])
async def test_onc_21_a_token_that_passes_through_no_other_hands_can_be_closed_straight(ground, run, kind):
    """The manager's own way of unwrapping would hold such a token first; the wallet can have both sides itself."""
    pool = await own_pool(ground, kind)
    ground.owner(kind, "markPool(address)", pool.key)
    ground.settle()
    await run.grant(kind, 10**18)
    amounts = (10**15, 10**17) if pool.token0 == ground.network.weth else (10**17, 10**15)
    (events,) = await run.decide(opening(pool, around(ground, pool), amounts))
    opened = outcome(events)
    assert isinstance(opened, LiquidityOpened), opened
    (mark,) = (await run.worth()).positions
    closed = outcome((await run.decide(closing(opened.position)))[0])
    assert (mark.status, mark.amount0_raw, mark.amount1_raw) == ("proven", closed.amount0_raw, closed.amount1_raw)
    twin, placed = Twin(ground, pool), Placed(pool, opened.tick_lower, opened.tick_upper)
    token = ground.token(kind)
    twin.hold(token, 10**18, await ground.desk.slots.of(token, TWIN, header_of_pin(opened.pin)))
    ground.chain.fund(TWIN, 10**19)
    twin.open(opened, amounts)
    raw = int(closed.amount0_raw), int(closed.amount1_raw)
    before = [twin.units(side) for side in placed.tokens]
    receipts = twin.send(*straight_close_txs(ground.network, placed, twin.number, twin.liquidity, TWIN, raw))
    came = [twin.units(side) - was + (paid(receipts) if is_eth(ground.network, side) else 0) for was, side in zip(before, placed.tokens, strict=True)]
    assert tuple(came) == raw and sum(int(receipt["gasUsed"], 16) for receipt in receipts) * int(closed.pin.base_fee_wei) == int(closed.gas_wei)


async def test_onc_21_a_token_that_could_not_come_back_makes_no_position(ground, run):
    """Its balance is the sum of two words, of which an override fills the one that a closing does not."""
    pool = await own_pool(ground, "two_mappings")
    await run.grant("two_mappings", 10**18)
    amounts = (10**15, 10**17) if pool.token0 == ground.network.weth else (10**17, 10**15)
    (events,) = await run.decide(opening(pool, around(ground, pool), amounts))
    assert said(events) == "lp_token" and "could not be closed again" in outcome(events).detail


# --- windows --------------------------------------------------------------------------------------------------------


async def test_onc_21_ledgers_that_hold_otherwise_have_positions_of_their_own_and_a_window_replays_equal(chain, tmp_path):
    """Permissive alone buys a token whose exit cannot be proven, so every later opening stands on two books; one closes early, one opens twice."""
    ground, clock = await Ground.on(chain), VirtualClock(T0)
    ground.clock = ground.desk.clock = clock
    ground.desk.rpc = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    ground.settle()
    pool = pool_of(ground, "v3 weth LEAF")
    low, high = around(ground, pool)

    def buys(name: str) -> str:
        return f'{{"type":"buy","token":"{ground.token(name)}","spend_wei":"{5 * 10**15}"}}'

    def opens(eth_wei: int, wider: int = 0) -> str:
        ticks = f'"tick_lower":"{low - wider}","tick_upper":"{high + wider}"'
        return f'{{"type":"open-lp","pool":"{pool.key}","amount0_raw":"{eth_wei}","amount1_raw":"{4 * 10**18}",{ticks}}}'

    def closes(run_id: str, at: str) -> str:
        return f'{{"type":"close-lp","position":"{run_id}/{at}"}}'

    run_id = "w1-closer-1"
    decided = {
        0: ordering(buys("LEAF"), buys("masked")), 1: ordering(opens(10**15), opens(10**15, 600)),
        3: ordering(closes(run_id, "1/0"), opens(2 * 10**15), closes("w1-keeper-1", "1/0"), closes(run_id, "1/0")), 4: ordering(opens(10**15), closes(run_id, "4/0")),
    }  # fmt: skip
    journal = Mortal("w1")
    live = seated(ground, clock, journal)
    live.seats[run_id].provider.answers = decided
    await through(clock, open_window(live))
    await played(live, ground, clock)
    await ground.close()
    found = replay(journal.read(), journal.blob)
    assert found.difference is None and found.records == journal.head()[0], found.difference
    export(journal, tmp_path / "w1.jsonl")
    recount.recount(str(tmp_path / "w1.jsonl"))
    opened = [event for event in events_of(journal, LiquidityOpened) if event.run_id == run_id]
    assert sorted(event.ledgers for event in opened) == sorted([("headline",), ("permissive",)] * (len(opened) // 2)) and len(opened) == 8
    refused = [event.reason for event in events_of(journal, OrderRefused) if event.run_id == run_id and event.order_id.startswith(f"{run_id}/3/")]
    assert set(refused) == {"no_position"} and len(refused) in (2, 4)
    assert not any(found.state.books.of(run_id, ledger).positions for ledger in LEDGERS)
    grown = [event for event in events_of(journal, LiquidityAccrued) if event.run_id == run_id and event.swaps]
    assert grown and {event.ledgers for event in grown} == {("headline",), ("permissive",)}
    once_more = retold(journal, once(LiquidityAccrued, growth0_x128=lambda was: was + TokenRaw(1)))
    assert replay(once_more, journal.blob).difference.field == "growth"


@pytest.mark.parametrize("lost_at", [1, 2, 3])
async def test_onc_21_a_window_that_loses_blocks_replays_equal_with_its_blobs(chain, lost_at):
    """The chain goes back behind what a tick stood on, with an opening or without, and on otherwise."""
    ground, clock = await Ground.on(chain), VirtualClock(T0)
    ground.clock = ground.desk.clock = clock
    ground.desk.rpc = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    ground.settle()
    journal, pool = Mortal("w1"), pool_of(ground, "v3 weth LEAF")
    live = seated(ground, clock, journal)
    await through(clock, open_window(live))
    for number in range(TICKS):
        if clock.now_ms() < (due_ms := tick_ts_ms(live.opened, number)):
            await clock.advance_to(due_ms)
        before = chain.snapshot()
        churn(ground, pool, 10**17)
        await through(clock, one_tick(live, number))
        if number == lost_at:
            chain.revert(before)
            churn(ground, pool, 3 * 10**17)
            churn(ground, pool, 10**16)
            chain.mine(12)
            ground.settle()
    await clock.advance_to(live.opened.close_ts_ms)
    await through(clock, ended(live))
    await ground.close()
    found = replay(journal.read(), journal.blob)
    assert found.difference is None and found.records == journal.head()[0], found.difference
    healed = {event.healed for event in events_of(journal, LiquidityAccrued)}
    assert "reorg" in healed and events_of(journal, LiquidityOpened), healed
    marked_ = [event for event in events_of(journal, MarkTaken) if event.positions]
    assert marked_ and {event.status for event in events_of(journal, RunScored)} == {"SCORED"}


# --- hooks ----------------------------------------------------------------------------------------------------------

STAY = "0x57a7" + "00" * 16 + "0200"
"""An address whose bits say: asked before liquidity leaves, and may change no amounts."""


@pytest.fixture
async def kept_pool(chain):
    """A pool whose hook can lock liquidity in, its desk, and a run with plenty."""
    here = await Ground.on(chain)
    address = deployed(here, "Stay")
    chain.node.call("anvil_setCode", [STAY, chain.node.call("eth_getCode", [address, "latest"])])
    await here.close()
    twin = TwinPool.made(chain, "v4", "native", 3_000, 60, hooks=STAY)
    ground = await Ground.on(chain)
    run = Run(ground, stake="1000 eth")
    pool = await known(ground, twin)
    await granted(run, pool)
    yield ground, run, pool
    await ground.close()


def lock(ground: Ground, locked: bool) -> None:
    (receipt,) = ground.chain.send(Sent(sender=ground.chain.deployment.cast.visitor, to=STAY, data=encode("lock(bool)", locked)))
    assert receipt["status"] == "0x1"
    ground.settle()


async def test_onc_21_a_hook_that_lets_nobody_go_carries_no_position(kept_pool):
    ground, run, pool = kept_pool
    lock(ground, True)
    (events,) = await run.decide(opening(pool, around(ground, pool), (10**15, 10**15)))
    assert said(events) == "lp_token" and "could not be closed again" in outcome(events).detail


async def test_onc_21_a_hook_that_locks_later_leaves_a_position_without_value_until_it_lets_go(kept_pool):
    ground, run, pool = kept_pool
    (events,) = await run.decide(opening(pool, around(ground, pool), (10**15, 10**15)))
    opened = outcome(events)
    assert isinstance(opened, LiquidityOpened), opened
    lock(ground, True)
    worth = await run.worth()
    (mark,) = worth.positions
    assert (mark.status, int(mark.value_wei)) == ("reverted", 0) and not any(key.account == "lp" for key in worth.entry.postings)
    assert await run.say(closing(opened.position)) == ["reverted"] and run.book().position(opened.position)
    lock(ground, False)
    assert int((await run.worth()).positions[0].value_wei) > 0 and await run.say(closing(opened.position)) == ["closed"]
