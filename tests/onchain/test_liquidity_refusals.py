"""What is no position: pools, ranges, shares and books that are refused, each with its reason; and nodes that do not tell (ONC-21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chain.calldata import APPROVE, PERMIT2_APPROVE, balance_of, eth_balance
from chain.devnet.calls import Tx, encode
from chain.devnet.hooks import HOOKS
from chain.pools import NATIVE, Pool, discover, read_states
from chain.position_proofs import INCREASE_LIQUIDITY, MODIFY_LIQUIDITY
from ledgers.errors import ChainFault
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, OrderRefused
from referee.onchain.liquidity_events import LiquidityOpened
from tests.onchain.given import outcome, said
from tests.onchain.ground import WALLET, Ground, Run
from tests.onchain.pooling import around, churn, closing, opening, pool_of, pooled, sizes, tick_of

CHANGING = {spec.name for spec in HOOKS if spec.flags & 0b1111}
"""Hooks of the local chain that may take a part of what moves."""


@pytest.fixture
def run(ground):
    return Run(ground, stake="10 eth")


async def refused(run: Run, order) -> OrderRefused:
    refusal = outcome((await run.decide(order))[0])
    assert isinstance(refusal, OrderRefused) and refusal.ledgers == LEDGERS and refusal.rule, refusal
    return refusal


def stall_pool(ground: Ground, name: str) -> tuple[Pool, str]:
    """A pool of the annex and its token."""
    stall = ground.chain.deployment.annex.stall(name)
    return ground.graph.pools[stall.place.key], stall.token.address.lower()


# --- pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", [spec.name for spec in HOOKS])
async def test_onc_21_hooks_that_change_amounts_carry_no_position_and_others_do(ground, run, hook):
    pool, token = stall_pool(ground, hook)
    run.fold([])
    await run.grant_token(token, 10**20)
    if pool.token1 == ground.network.usdg or pool.token0 == ground.network.usdg:
        await run.grant_token(ground.network.usdg, 10**9)
    (events,) = await run.decide(opening(pool, around(ground, pool), sizes(ground, run, pool, eth_wei=10**15, part=10**4)))
    if hook in CHANGING:
        assert (said(events), outcome(events).rule) == ("lp_pool", "ONC-21") and "its hook may" in outcome(events).detail
    else:
        assert said(events) == "opened", outcome(events)


@pytest.mark.parametrize(
    ("pool", "detail"),
    [("0x" + "12" * 20, "no such pool"), ("0x" + "12" * 32, "no such pool"), ("v2 weth LEAF", "v2 pools"), ("fork", "thicket pools")],
)
async def test_onc_21_pools_that_are_not_refereed_are_refused(ground, run, pool, detail):
    await run.grant("LEAF", 10**20)
    if pool == "fork":
        known = next(known for known in ground.graph.pools.values() if known.fork == "thicket")
    else:
        known = replace(pool_of(ground, "v2 weth LEAF"), key=pool) if pool.startswith("0x") else pool_of(ground, pool)
    refusal = await refused(run, opening(known, (-60, 60), (10**15, 10**15)))
    assert (refusal.reason, detail in refusal.detail) == ("lp_pool", True)


# --- ranges and amounts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ticks", "detail"),
    [((-60, 59), "multiples"), ((-59, 60), "multiples"), ((-887_220, 887_280), "no position reaches"), ((60, 60), "no position reaches")],
)
async def test_onc_21_a_range_off_the_pools_grid_is_refused(ground, run, ticks, detail):
    await run.grant("LEAF", 10**20)
    refusal = await refused(run, opening(pool_of(ground, "v3 weth LEAF"), ticks, (10**15, 10**15)))
    assert (refusal.reason, detail in refusal.detail) == ("lp_range", True)


async def test_onc_21_prices_with_no_step_of_the_grid_between_them_are_refused(ground, run):
    await run.grant("LEAF", 10**20)
    order = replace(opening(pool_of(ground, "v3 weth LEAF"), (0, 0), (10**15, 10**15)), price_lower="1000", price_upper="1000.0001")
    assert (await refused(run, order)).reason == "lp_range"


async def test_onc_21_prices_of_a_token_that_does_not_tell_its_decimals_are_refused_and_cost_the_node_nothing(ground, run):
    kind = "no_facts"
    pool = await own_pool(ground, kind)
    await run.grant(kind, 10**20)
    order = replace(opening(pool, (0, 0), (10**15, 10**15)), price_lower="0.001", price_upper="1000")
    refusal = await refused(run, order)
    assert (refusal.reason, "decimals" in refusal.detail) == ("lp_range", True)
    assert [state.faults for state in ground.desk.rpc.lanes] == [0]


async def test_onc_21_amounts_that_make_no_liquidity_are_refused(ground, run):
    """In range both sides are needed."""
    await run.grant("LEAF", 10**20)
    pool = pool_of(ground, "v3 weth LEAF")
    refusal = await refused(run, opening(pool, around(ground, pool), (10**15, 0)))
    assert (refusal.reason, "no liquidity" in refusal.detail) == ("lp_range", True)


@pytest.mark.parametrize("over", [False, True])
async def test_onc_21_a_tenth_of_the_others_liquidity_is_taken_and_more_is_not(ground, run, over):
    await run.grant("LEAF", 10**26)
    pool = pool_of(ground, "v3 weth LEAF")
    probe = outcome((await run.copy().decide(opening(pool, around(ground, pool), (10**15, 10**22))))[0])
    assert isinstance(probe, LiquidityOpened)
    most = int(probe.pool_liquidity_raw) // 10
    eth_wei = int(probe.amount0_raw) * most // int(probe.liquidity_raw)
    (events,) = await run.decide(opening(pool, around(ground, pool), (eth_wei * (101 if over else 99) // 100, 10**26)))
    assert said(events) == ("lp_share" if over else "opened"), outcome(events)
    if not over:
        assert 89_000 < outcome(events).share_ppm <= 90_910


# --- books ----------------------------------------------------------------------------------------------------------


async def test_onc_04_what_is_not_held_cannot_be_put_in(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    order = opening(pool, around(ground, pool), (10**15, 10**15))
    assert (await refused(run, order)).reason == "not_held"
    assert (await refused(run, opening(pool, around(ground, pool, shift=9_000), (10**15, 0)))).reason == "not_held"
    await run.grant("LEAF", 10**15 - 1)
    assert (await refused(run, order)).reason == "insufficient_tokens"


async def test_onc_27_an_opening_leaves_the_gas_of_every_exit_its_own_included(ground):
    pool, price = pool_of(ground, "v3 weth LEAF"), 10_000_000
    rich = Run(ground, stake="1 eth")
    await rich.grant("LEAF", 10**21)
    opened = outcome((await rich.decide(opening(pool, around(ground, pool), (10**15, 10**21))))[0])
    needed = int(opened.amount0_raw) + int(opened.gas_wei) + 2 * 1_000_000 * price
    for spare, end in ((0, "opened"), (-1, "insufficient_eth")):
        run = Run(ground, stake=f"{needed + spare} wei")
        await run.grant("LEAF", 10**21)
        assert await run.say(opening(pool, around(ground, pool), (int(opened.amount0_raw), 10**21))) == [end]


async def test_onc_21_exits_that_cannot_be_proven_make_no_position(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    await run.grant("LEAF", 10**20, cause="words_untold")
    assert (await refused(run, opening(pool, around(ground, pool), (10**15, 10**15)))).reason == "lp_token"


async def test_onc_21_a_position_that_is_not_open_cannot_be_closed_twice_or_on_another_ledger(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    await run.grant("LEAF", 10**21, ledgers=(PERMISSIVE,))
    (events,) = await run.decide(opening(pool, around(ground, pool), (10**15, 10**21)))
    assert (said(events), said(events, PERMISSIVE)) == ("not_held", "opened")
    position = outcome(events, PERMISSIVE).position
    (events,) = await run.decide(closing(position))
    assert (said(events), said(events, PERMISSIVE)) == ("no_position", "closed")
    assert await run.say(closing(position), ledger=PERMISSIVE) == ["no_position"]
    assert not run.books.of(run.run_id, HEADLINE).positions


async def test_onc_21_closing_that_the_book_has_no_gas_for_is_refused(ground, run):
    opened = await pooled(run, pool_of(ground, "v3 weth LEAF"))
    book = run.book()
    run.fold([burnt(run, int(book.eth_wei) - 10**9)])
    assert await run.say(closing(opened.position)) == ["insufficient_eth"]
    assert run.book().position(opened.position)


def burnt(run: Run, eth_wei: int):
    """An entry that takes ETH away."""
    from ledgers.postings import BOOK, ETH
    from tests.onchain.given import filled

    return replace(filled({(BOOK, ETH): -eth_wei, ("market", ETH): eth_wei}, token="", ledgers=LEDGERS), run_id=run.run_id)


async def test_onc_07_an_opening_on_a_block_too_old_is_refused(ground, run):
    await run.grant("LEAF", 10**21)
    pool = pool_of(ground, "v3 weth LEAF")
    desk = await run.sit_down()
    ground.desk.clock_offset_ms += 30_001
    assert said(await run.order(desk, opening(pool, around(ground, pool), (10**15, 10**21)))) == "board_too_old"


# --- nodes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["eth_simulateV1", "eth_getLogs", "eth_call"])
async def test_onc_21_what_the_node_does_not_tell_opens_closes_and_marks_nothing(ground, run, method):
    pool = pool_of(ground, "v4 eth PINE")
    opened = await pooled(run, pool)
    churn(ground, pool)
    ground.settle()
    ground.wire.missing = {method}
    assert await run.say(closing(opened.position)) == ["fault"]
    with pytest.raises(Exception, match=r"."):
        await run.worth()
    assert run.book().position(opened.position)
    ground.wire.missing = set()
    assert (await run.worth()).positions[0].fees_wei > Wei(0)
    assert await run.say(closing(opened.position)) == ["closed"]


@pytest.mark.parametrize("kind", ["v3 weth LEAF", "v4 eth PINE"])
async def test_onc_21_a_log_that_is_left_out_is_noticed_and_healed_before_any_mark(ground, run, kind):
    pool = pool_of(ground, kind)
    await pooled(run, pool)
    churn(ground, pool)
    ground.settle()
    honest = await run.copy().worth()
    asked = []

    def once_without(request, told):
        if request["method"] == "eth_getLogs" and told.get("result") and not asked:
            asked.append(request)
            return told | {"result": told["result"][1:]}
        return told

    ground.desk.liquidity.follower._tracks.clear()
    ground.desk.liquidity.follower.recall = {digest: blob for refereed in run.refereed for digest, blob in refereed.blobs.items()}.get
    ground.wire.answer = once_without
    healed = await run.worth()
    assert asked and healed.positions == honest.positions
    assert [(event.healed, event.fees0_raw, event.fees1_raw) for event in healed.accrued] == [("gap", honest.accrued[0].fees0_raw, honest.accrued[0].fees1_raw)]


async def test_onc_21_logs_that_are_always_left_out_leave_no_mark_and_no_closing(ground, run):
    pool = pool_of(ground, "v3 weth LEAF")
    opened = await pooled(run, pool)
    churn(ground, pool)
    ground.settle()
    ground.wire.answer = lambda request, told: told | {"result": []} if request["method"] == "eth_getLogs" else told
    with pytest.raises(Exception, match="gap|liquidity"):
        await run.worth()
    assert await run.say(closing(opened.position)) == ["fault"]
    assert tick_of(ground, pool) and run.book().position(opened.position).fees == (TokenRaw(0), TokenRaw(0)) and NATIVE


# --- tokens that change their minds ---------------------------------------------------------------------------------


async def own_pool(ground: Ground, name: str) -> Pool:
    """A v3 pool against WETH of a token that has none, made and filled by the token's owner."""
    keeper, venues = ground.chain.deployment.cast.zookeeper, ground.chain.deployment.venues
    token, weth = ground.token(name), ground.network.weth
    place = venues.place("v3", token, weth, 3_000)
    amounts = tuple(10**21 if side == token else 10**19 for side in (place.token0, place.token1))
    ground.chain.fund(keeper, 10**21)
    wrap = Tx(sender=keeper, to=weth, data=encode("deposit()"), value_wei=10**20)
    approvals = [tx for side in (token, weth) for tx in venues.approvals(keeper, side, "v3")]
    receipts = ground.chain.send(wrap, *approvals, *venues.open(keeper, place, *amounts))
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    for pool in await discover(ground.desk.rpc, ground.network, 0, ground.chain.height):
        ground.graph.add(pool)
    ground.graph.states.update(await read_states(ground.desk.rpc, ground.network, ground.graph.pools.values(), ground.chain.height))
    ground.settle()
    return ground.graph.pools[place.key.lower()]


async def test_onc_21_a_token_that_takes_a_tenth_of_what_pools_pay_leaves_that_to_a_closing(ground, run):
    pool = await own_pool(ground, "tax_buy")
    await run.grant("tax_buy", 10**20)
    (events,) = await run.decide(opening(pool, around(ground, pool), (10**16, 10**18) if pool.token0 == ground.network.weth else (10**18, 10**16)))
    opened = outcome(events)
    assert isinstance(opened, LiquidityOpened), opened
    ground.owner("tax_buy", "markPool(address)", pool.key)
    ground.settle()
    (mark,) = (await run.worth()).positions
    closed = outcome((await run.decide(closing(opened.position)))[0])
    put, back = ((event.amount0_raw, event.amount1_raw)[pool.token0 == ground.network.weth] for event in (opened, closed))
    assert int(back) == int(put) * 9 // 10 or abs(int(back) - int(put) * 9 // 10) <= 2
    assert (mark.amount0_raw, mark.amount1_raw) == (closed.amount0_raw, closed.amount1_raw)


async def test_onc_21_a_position_whose_token_moves_no_more_counts_nothing_and_comes_back_when_it_does(ground, run):
    pool = await own_pool(ground, "pausable")
    await run.grant("pausable", 10**20)
    (events,) = await run.decide(opening(pool, around(ground, pool), (10**16, 10**18) if pool.token0 == ground.network.weth else (10**18, 10**16)))
    opened = outcome(events)
    ground.owner("pausable", "pause(bool)", True)
    ground.settle()
    worth = await run.worth()
    (mark,) = worth.positions
    assert (mark.status, mark.value_wei) == ("reverted", Wei(0)) and mark.reason and worth.value_wei == worth.eth_wei
    assert await run.say(closing(opened.position)) == ["reverted"] and run.book().position(opened.position)
    ground.owner("pausable", "pause(bool)", False)
    ground.settle()
    assert (await run.worth()).positions[0].value_wei > Wei(0) and await run.say(closing(opened.position)) == ["closed"]


# --- nodes that lie -------------------------------------------------------------------------------------------------


def lie_about(change):
    """Let every simulated call be answered otherwise."""

    def answer(request, told):
        if request["method"] != "eth_simulateV1" or "result" not in told:
            return told
        for asked, block in zip(request["params"][0]["blockStateCalls"], told["result"], strict=True):
            for question, call in zip(asked["calls"], block["calls"], strict=True):
                change(question, call)
        return told

    return answer


def more_liquidity(question, call):
    for log in call["logs"]:
        if log["topics"][0] in (INCREASE_LIQUIDITY, MODIFY_LIQUIDITY):
            words = [log["data"][2 + 64 * at : 66 + 64 * at] for at in range((len(log["data"]) - 2) // 64)]
            at = 0 if log["topics"][0] == INCREASE_LIQUIDITY else 2
            words[at] = f"{int(words[at], 16) + 1:064x}"
            log["data"] = "0x" + "".join(words)


def no_logs(question, call):
    if question["from"] == WALLET and question["data"][:10] not in ("0x" + APPROVE, "0x" + PERMIT2_APPROVE):
        call["logs"] = []


def much_ether(question, call):
    if question["data"] == eth_balance(WALLET):
        call["returnData"] = "0x" + f"{2**255:064x}"


def growing_ether(question, call):
    """Every look at the wallet's ETH finds more of it."""
    if question["data"] == eth_balance(WALLET):
        growing_ether.looks += 1
        call["returnData"] = f"0x{int(call['returnData'], 16) + growing_ether.looks * 10**15:064x}"


growing_ether.looks = 0


def growing_tokens(question, call):
    if question["data"] == balance_of(WALLET):
        growing_tokens.looks += 1
        call["returnData"] = f"0x{int(call['returnData'], 16) + growing_tokens.looks * 10**18:064x}"


growing_tokens.looks = 0


def other_number(question, call):
    for log in call["logs"]:
        if len(log["topics"]) == 4 and log["topics"][1] == "0x" + "0" * 64:
            log["topics"][3] = f"0x{7:064x}"


@pytest.mark.parametrize("lie", [more_liquidity, no_logs, much_ether, growing_ether, growing_tokens, other_number], ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("kind", ["v3 weth LEAF", "v4 eth PINE"])
async def test_onc_10_a_node_that_lies_opens_closes_and_marks_no_position_better_than_it_is(ground, run, kind, lie):
    pool = pool_of(ground, kind)
    opened = await pooled(run, pool)
    ground.settle()
    honest = run.copy()
    truth = (await honest.worth()).positions[0].value_wei
    closed = outcome((await honest.decide(closing(opened.position)))[0])
    before = run.book()
    ground.wire.answer = lie_about(lie)
    ticks = around(ground, pool)
    (events,) = await run.copy().decide(opening(pool, ticks, sizes(ground, run, pool)))
    ended = outcome(events)
    if isinstance(ended, LiquidityOpened):
        assert lie is other_number
    else:
        assert said(events) in ("fault", "unprovable_no_quote", "lp_token"), ended
    (events,) = await run.decide(closing(opened.position))
    ended = outcome(events)
    if said(events) == "closed":
        assert (ended.amount0_raw, ended.amount1_raw, ended.entry) == (closed.amount0_raw, closed.amount1_raw, closed.entry)
    else:
        assert said(events) in ("fault", "unprovable_no_quote", "reverted") and run.book() == replace(before, positions=run.book().positions)
        try:
            (mark,) = (await run.worth()).positions
        except ChainFault:
            return
        assert mark.value_wei <= truth
