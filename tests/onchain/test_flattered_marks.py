"""A hook that takes its part of every swap but not of a quote lowers no mark: what a sale brought stands against what its quoter said (ONC-12)."""

from chain.devnet.venues import NATIVE
from tests.onchain.ground import Ground, Run

ETH = 10**18


async def test_onc_12_a_hook_that_flatters_the_quoter_lowers_no_mark(chain):
    token, hook = chain.deployment.token("PINE"), chain.deployment.annex.stall("flatters").hook
    place = chain.deployment.venues.hooked(token.address, NATIVE, 0, 200, hook.address)
    worth_raw = 200 * ETH * 3 * 10 ** (3 + token.decimals) // token.price
    owner = chain.deployment.cast.issuer
    dearer = chain.deployment.venues.open(owner, place, 200 * ETH, worth_raw * 95 // 100)
    receipts = chain.send(*chain.deployment.venues.approvals(owner, token.address, "v4"), *dearer)
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    ground = await Ground.on(chain)
    run = Run(ground)
    await run.fill(run.buy("PINE", "0.5 eth"))
    flattered = await run.worth()
    ground.desk.best_route.clear()
    ground.keep(lambda pool: pool.key != place.key)
    plain = await run.worth()
    assert flattered.value_wei == plain.value_wei
    await ground.close()
