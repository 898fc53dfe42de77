"""Hooks that look at who trades, when and how often: a fill that counts is what the wallet would really get, to the wei and the gas (ONC-10, ONC-11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from chain.devnet.annex import worth_raw as worth_of
from chain.devnet.calls import Tx, arguments, encode
from chain.devnet.hooks import AFTER_SWAP, AFTER_SWAP_DELTA, PERMISSIONS
from chain.devnet.venues import NATIVE, Place
from chain.network import READER
from chain.simulate import lens_of
from referee.onchain.events import FillCredited, OrderAsked
from tests.onchain.attacker import DEPLOY_GAS, compiled
from tests.onchain.given import outcome, said, wei
from tests.onchain.ground import WALLET, Ground, Run, transactions
from tests.onchain.rival import gives

ETH = 10**18
SYMBOL = "PINE"
DEPTH_WEI = 200 * ETH
SPEND = "0.05 eth"
STRANGER = "0x7c0ffee000000000000000000000000000000b0b"
"""As many zero bytes as the run's own wallet has."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A hook of the attacker by what it does."""

    name: str
    mode: int
    most: int = 0
    favoured: str = ""


TRAPS = (
    Trap("plain", 0), Trap("router_favoured", 1, favoured="universal_router"), Trap("router_taxed", 1, favoured="v4_quoter"), Trap("odd_blocks", 2, 1), Trap("even_blocks", 2, 0),
    Trap("odd_minutes", 3, 1), Trap("even_minutes", 3, 0), Trap("after_three", 4, 3), Trap("after_six", 4, 6), Trap("twice_a_transaction", 5),
    Trap("twice_a_block", 6), Trap("second_sale", 7, 1), Trap("third_sale", 7, 2), Trap("late_for_buyers", 8, 60), Trap("late_by_another", 22, 60),
    Trap("gives_tokens", 9), Trap("gives_eth", 10), Trap("trades_inside", 11), Trap("subsidises", 12), Trap("exact_in_taxed", 13), Trap("chance", 15),
    Trap("reader_taxed", 16, favoured=READER), Trap("coinbase", 17),
    Trap("knows_the_reader", 20, favoured=READER), Trap("knows_the_lens", 21, favoured="lens"), Trap("bequeaths_eth", 18), Trap("burns_gas", 19, 5), Trap("chatters", 23, 6),
)  # fmt: skip


REFUSED = ("chance", "burns_gas", "chatters", "gives_eth", "bequeaths_eth")
"""Hooks in whose pools nobody may buy, whatever they offer."""


def trapped(chain, trap: Trap, symbol: str = SYMBOL, depth_wei: int = DEPTH_WEI, percent: int = 100) -> Place:
    """Open a pool of a token and native ETH under a hook, with so many percent of the token that the opening's price asks for."""
    stalls = {stall.name: stall.token for stall in chain.deployment.annex.stalls}
    token, owner = (stalls[symbol], chain.deployment.cast.annexer) if symbol in stalls else (chain.deployment.token(symbol), chain.deployment.cast.issuer)
    flags = AFTER_SWAP | AFTER_SWAP_DELTA
    address = f"0x{(0x7EA9 << 144 | trap.mode << 40 | trap.most << 24) & ~PERMISSIONS | flags:040x}"
    artifact, at = compiled("Trap"), chain.deployment.at
    favoured = lens_of(token.address.lower())[0] if trap.favoured == "lens" else at.get(trap.favoured, trap.favoured or NATIVE)
    creation = artifact.bytecode + arguments(artifact.constructor_types, (at["v4_pool_manager"], trap.mode, trap.most, favoured, token.address))
    code = chain.node.call("eth_call", [{"data": creation, "gas": hex(DEPLOY_GAS)}, "latest"])
    chain.node.call("anvil_setCode", [address, code])
    place = chain.deployment.venues.hooked(token.address, NATIVE, 0, 200, address)
    worth_raw = worth_of(token, depth_wei) * percent // 100
    stock = Tx(sender=owner, to=token.address, data=gives(token.address, address, worth_raw // 10).data)
    receipts = chain.send(*chain.deployment.venues.approvals(owner, token.address, "v4"), *chain.deployment.venues.open(owner, place, depth_wei, worth_raw), stock)
    primed = chain.send(Tx(sender=owner, to=address, data=encode("prime()"), gas=8_000_000))
    assert {receipt["status"] for receipt in (*receipts, *primed)} == {"0x1"}
    chain.fund(address, 20 * ETH)
    return place


async def grounded(chain, place: Place) -> Ground:
    ground = await unknown(chain)
    ground.keep(lambda pool: pool.key == place.key)
    return ground


async def unknown(chain) -> Ground:
    """A ground whose reader nobody knew beforehand, as where windows are played."""
    ground = await Ground.on(chain)
    ground.network = ground.desk.network = ground.graph.network = replace(ground.network, reader="0x5ec4e7000000000000000000000000000000a11d")
    return ground


def really(ground: Ground, txs: list[Tx], sender: str = WALLET) -> tuple[bool, int, int, int]:
    """Send what a route sends, as somebody: whether it went through, tokens and ETH gained before gas, and the gas."""
    before = ground.tokens_of(SYMBOL, sender), ground.eth_of(sender)
    receipts = ground.chain.send(*(replace(tx, sender=sender, data=tx.data.replace(WALLET[2:], sender[2:])) for tx in txs))
    gas = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
    ok = all(receipt["status"] == "0x1" for receipt in receipts)
    return ok, ground.tokens_of(SYMBOL, sender) - before[0], ground.eth_of(sender) - before[1] + gas, gas


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_a_buy_that_counts_is_what_really_arrives(chain, trap):
    place = trapped(chain, trap)
    chain.fund(WALLET, 2 * ETH)
    mark = chain.snapshot()
    ground = await grounded(chain, place)
    run = Run(ground)
    (events,) = await run.decide(run.buy(SYMBOL, SPEND))
    await ground.close()
    fill = outcome(events)
    print(trap.name, said(events), getattr(fill, "detail", ""))
    chain.revert(mark)
    if isinstance(fill, FillCredited):
        assert fill.proven and really(ground, transactions(run.refereed[0])) == (True, int(fill.arrival_raw), -int(wei(SPEND)), int(fill.gas_wei))


@pytest.mark.parametrize("later_blocks", [1, 90])
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_a_sale_that_counts_is_what_a_wallet_that_bought_really_gets(chain, trap, later_blocks):
    """On paper after a stranger really bought the same, and really after the wallet did."""
    place = trapped(chain, trap)
    chain.fund(WALLET, 2 * ETH)
    chain.fund(STRANGER, 2 * ETH)
    start = chain.snapshot()
    ground = await grounded(chain, place)
    run = Run(ground)
    (events,) = await run.decide(run.buy(SYMBOL, SPEND))
    chain.revert(start)
    if not isinstance(outcome(events), FillCredited):
        await ground.close()
        return
    bought, mark = transactions(run.refereed[0]), chain.snapshot()
    assert really(ground, bought, STRANGER)[0]
    chain.mine(later_blocks)
    before_sale = chain.snapshot()
    ground.settle()
    (sold,) = await run.decide(run.sell(SYMBOL))
    await ground.close()
    fill = outcome(sold)
    print(trap.name, said(sold), getattr(fill, "detail", ""))
    chain.revert(before_sale)
    chain.revert(mark)
    assert really(ground, bought)[0]
    chain.mine(later_blocks)
    if isinstance(fill, FillCredited):
        ok, gained, eth, gas = really(ground, transactions(run.refereed[-1]))
        assert fill.proven and ok and (eth, gas) == (int(fill.arrival_raw), int(fill.gas_wei)) and gained >= -int(fill.spent_raw)


@pytest.mark.parametrize("name", ["bequeaths_eth", "gives_eth", "burns_gas", "gives_tokens", "chatters"])
async def test_a_pool_under_a_hook_spoils_no_order_over_other_pools(chain, name):
    """Anybody can open such a pool for any token; what is traded elsewhere fills as before."""
    trapped(chain, next(trap for trap in TRAPS if trap.name == name))
    ground = await Ground.on(chain)
    run = Run(ground)
    assert await run.say(run.buy(SYMBOL, SPEND), run.sell(SYMBOL)) == ["filled", "filled"]
    await run.fill(run.buy(SYMBOL, SPEND))
    assert int((await run.worth()).value_wei) > 0
    assert await run.say(run.sell(SYMBOL)) == ["filled"]
    await ground.close()


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "among_others"])
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_onc_24_orders_of_one_decision_are_what_the_same_transactions_bring_in_one_block(chain, trap, alone):
    place = trapped(chain, trap)
    chain.fund(WALLET, 2 * ETH)
    mark = chain.snapshot()
    ground = await grounded(chain, place) if alone else await unknown(chain)
    run = Run(ground)
    events = await run.decide(run.buy(SYMBOL, SPEND), run.sell(SYMBOL), run.buy(SYMBOL, SPEND))
    fills = [outcome(each) for each in events]
    await ground.close()
    chain.revert(mark)
    filled = [(fill, refereed) for fill, refereed in zip(fills, run.refereed, strict=True) if isinstance(fill, FillCredited)]
    print(trap.name, [said(each) for each in events])
    assert alone or len(filled) == 3
    if filled:
        ok, gained, eth, gas = really(ground, transactions(filled[-1][1]))
        paid = sum((int(fill.arrival_raw) if fill.side == "sell" else -int(fill.spent_raw)) for fill, _ in filled)
        units = sum((int(fill.arrival_raw) if fill.side == "buy" else -int(fill.spent_raw)) for fill, _ in filled)
        assert ok and (eth, gas) == (paid, sum(int(fill.gas_wei) for fill, _ in filled)) and gained >= units


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_a_pool_under_a_hook_that_is_cheaper_keeps_nobody_from_buying_elsewhere(chain, trap):
    """Where its gate refuses, our own best row without hooks is what fills; what its hook notes of the buyer is carried, and sold elsewhere."""
    place = trapped(chain, trap, percent=110)
    chain.fund(WALLET, 2 * ETH)
    mark = chain.snapshot()
    ground = await unknown(chain)
    run = Run(ground)
    (fill,) = await run.fill(run.buy(SYMBOL, SPEND))
    print(trap.name, fill.route)
    assert fill.proven and (place.key[:10] not in fill.route or trap.name not in REFUSED)
    await run.fill(run.sell(SYMBOL))
    await ground.close()
    chain.revert(mark)
    assert really(ground, transactions(run.refereed[0])) == (True, int(fill.arrival_raw), -int(wei(SPEND)), int(fill.gas_wei))


BAIT = tuple(Trap(f"bait_{index}", 13, index) for index in range(8))
"""Pools that promise much, and keep half of every swap."""


async def test_deep_pools_that_keep_half_crowd_out_no_honest_one(chain):
    """Nor the only honest pool of a token where that has a hook too."""
    ground = await Ground.on(chain)
    fee_after = chain.deployment.annex.stall("fee_after").token.address.lower()
    orders = [lambda run: run.buy(SYMBOL, SPEND), lambda run: OrderAsked(index=0, side="buy", token=fee_after, spend_wei=wei(SPEND), amount_raw=None, sell_all=False)]
    before = [(await Run(ground).fill(order(Run(ground))))[0].arrival_raw for order in orders]
    await ground.close()
    for trap in BAIT:
        trapped(chain, trap, SYMBOL, 10 * DEPTH_WEI)
        trapped(chain, replace(trap, mode=1, favoured="v4_quoter"), "fee_after", 2 * DEPTH_WEI)
    ground = await Ground.on(chain)
    after = [(await Run(ground).fill(order(Run(ground))))[0].arrival_raw for order in orders]
    await ground.close()
    assert [int(one) * 1_000 >= int(other) * 999 for one, other in zip(after, before, strict=True)] == [True, True], (before, after)


@pytest.mark.parametrize("seed", range(8))
async def test_any_decision_over_any_mixture_of_such_pools_is_what_really_happens(chain, seed):
    dice = Random(seed)
    for trap in dice.sample(TRAPS, dice.randint(2, 4)):
        trapped(chain, trap, SYMBOL, dice.choice((DEPTH_WEI // 10, DEPTH_WEI)), dice.choice((97, 100, 103, 106, 110)))
    chain.fund(WALLET, 20 * ETH)
    mark = chain.snapshot()
    ground = await unknown(chain)
    run = Run(ground, stake="10 eth")
    desk = await run.sit_down()
    events = []
    for index in range(4):
        held = run.held(SYMBOL)
        order = run.sell(SYMBOL, max(held // dice.choice((1, 2, 3)), 1)) if held and dice.random() < 0.5 else run.buy(SYMBOL, dice.choice(("0.01 eth", "0.2 eth", "1.3 eth")))
        events.append(await run.order(desk, replace(order, index=index)))
    print(seed, [said(each) for each in events])
    assert all(said(each) == "filled" for each in events)
    chain.revert(mark)
    fills = [outcome(each) for each in events]
    ok, gained, eth, gas = really(ground, transactions(run.refereed[-1]))
    paid = sum(int(fill.arrival_raw) if fill.side == "sell" else -int(fill.spent_raw) for fill in fills)
    units = sum(int(fill.arrival_raw) if fill.side == "buy" else -int(fill.spent_raw) for fill in fills)
    assert ok and (eth, gas) == (paid, sum(int(fill.gas_wei) for fill in fills)) and gained >= units
    await ground.close()


# --- splits and mixtures with hooks in them -----------------------------------------------------------------------------

HOOKED = ("plain", "router_favoured", "subsidises", "trades_inside", "gives_tokens")
SIZES = (("0.003 eth", 3), ("0.7 eth", 5), ("4 eth", 7), ("11.7 eth", 11))


@pytest.mark.parametrize("spend, part", SIZES)
async def test_orders_over_a_whole_market_with_hooks_bring_what_one_real_transaction_brings(chain, spend, part):
    """Bought and, in an odd part, sold, on paper after a stranger bought the same; then the wallet really sends each in the block that was simulated."""
    for trap in TRAPS:
        if trap.name in HOOKED:
            trapped(chain, trap)
    chain.fund(WALLET, 40 * ETH)
    chain.fund(STRANGER, 40 * ETH)
    mark = chain.snapshot()
    ground = await Ground.on(chain)
    run = Run(ground, stake="30 eth")
    (bought,) = await run.fill(run.buy(SYMBOL, spend))
    txs = transactions(run.refereed[0])
    chain.revert(mark)
    mark = chain.snapshot()
    assert really(ground, txs, STRANGER)[0]
    ground.settle()
    (sold,) = await run.fill(run.sell(SYMBOL, run.held(SYMBOL) // part * (part - 1)))
    await ground.close()
    chain.revert(mark)
    ok, gained, eth, gas = really(ground, txs)
    assert (ok, gained, eth, gas) == (True, int(bought.arrival_raw), -int(wei(spend)), int(bought.gas_wei)), bought.route
    ok, gained, eth, gas = really(ground, transactions(run.refereed[1]))
    assert ok and (eth, gas) == (int(sold.arrival_raw), int(sold.gas_wei)) and gained >= -int(sold.spent_raw), sold.route
    print(bought.route, "|", sold.route)
