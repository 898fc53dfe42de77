"""A street of mined swaps on the local chain: every kind of pool and router, each swap alone in its block."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

from chain.devnet.calls import Tx, encode
from chain.devnet.devnet import Devnet
from chain.devnet.places import ETH, HONEST
from chain.devnet.swaps import swap
from chain.devnet.venues import NATIVE
from tests.devnet.guest import GAS, MILLI, WALLET, Guest
from tests.devnet.hop_price import execute, pair, v4_plan, v4_single

NATIVE_E = "0x" + "Ee" * 20


def walk(chain: Devnet) -> tuple[int, int]:
    """Mine the swaps; first and last block of them. Blocks whose swap was refused stand between."""
    chain.fund(WALLET, 100 * ETH)
    weth = chain.addresses["weth"]
    chain.send(Tx(sender=WALLET, to=weth, data=encode("deposit()"), value_wei=50 * ETH))
    for fork in chain.deployment.annex.forks:
        chain.send(*fork.venues.approve(WALLET, weth, (fork.router,)))
    first = chain.height + 1
    for tx in _swaps(chain):
        chain.send(tx)
    last = chain.height
    chain.mine()
    return first, last


def _swaps(chain: Devnet) -> Iterator[Tx]:
    deployment = chain.deployment
    for venue, hub in (("v2", "weth"), ("v3", "weth"), ("v4", "native")):
        market = next(each for each in deployment.markets if each.token and each.token.kind == HONEST and (each.place.venue, each.hub) == (venue, hub))
        paid = NATIVE if hub == "native" else chain.addresses["weth"]
        yield swap(deployment.venues, WALLET, market.place, paid, 10 * MILLI, ether=True)
    for stall in deployment.annex.stalls:
        if NATIVE in (stall.place.token0, stall.place.token1):
            yield swap(deployment.venues, WALLET, stall.place, NATIVE, 10 * MILLI)
    yield _through_the_other_router(chain)
    for fork in deployment.annex.forks:
        yield _at_a_fork(chain, fork)
    with chain.rival() as rival:
        yield _through_the_rival(chain, rival.base_urls["kyberswap"])


def _through_the_other_router(chain: Devnet) -> Tx:
    """Least prices of every hop, as the real chain's universal router wants them."""
    guest = Guest(chain, chain.deployment.annex.stall("odd_fee"))
    members = pair(("address", "uint256"), NATIVE, 10 * MILLI), pair(("address", "uint256"), guest.token, 0)
    return execute(guest, 10 * MILLI, v4_plan(b"\x06\x0c\x0f", v4_single(guest.stall.place, NATIVE, 10 * MILLI), *members))


def _through_the_rival(chain: Devnet, base_url: str) -> Tx:
    """What the rival aggregator builds for a buy."""
    bought = chain.deployment.token("LEAF").address
    route = _told(f"{base_url}/api/v1/routes?tokenIn={NATIVE_E}&tokenOut={bought}&amountIn={10 * MILLI}")
    asked = {"routeSummary": route["routeSummary"], "sender": WALLET, "recipient": WALLET, "slippageTolerance": 300}
    built = _told(f"{base_url}/api/v1/route/build", asked)
    return Tx(sender=WALLET, to=built["routerAddress"].lower(), data=built["data"], value_wei=10 * MILLI, gas=GAS)


def _told(url: str, asked: object = None) -> dict:
    body = None if asked is None else json.dumps(asked).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=20) as answer:
        return json.loads(answer.read())["data"]


def _at_a_fork(chain: Devnet, fork) -> Tx:
    weth, market = chain.addresses["weth"], fork.markets[0]
    if fork.shape == "v3":
        return swap(fork.venues, WALLET, market.place, weth, 10 * MILLI)
    signature = "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)"
    data = encode(signature, 10 * MILLI, 0, [weth, market.place.other(weth)], WALLET, 2**40)
    return Tx(sender=WALLET, to=fork.router, data=data, gas=GAS)
