"""The other exchanges of the annex: same shapes, other addresses, real trades; and the launchpad with its curve."""

from __future__ import annotations

import pytest

from chain.devnet.calls import Tx, decode, encode, selector, topic
from chain.devnet.devnet import Devnet
from chain.devnet.forks import PANCAKE_SWAP
from chain.devnet.hooks import GRADUATE
from chain.devnet.places import ETH
from chain.devnet.swaps import swap
from chain.devnet.venues import MAX
from tests.devnet.guest import GAS, MILLI, WALLET

UNISWAP_SWAP = topic("Swap(address,address,int256,int256,uint160,uint128,int24)")
FORKS = ("grove", "thicket", "griddle")


def read(chain: Devnet, to: str, signature: str, *values, types: tuple[str, ...] = ("uint256",)) -> tuple:
    return decode(types, chain.node.call("eth_call", [{"to": to, "data": encode(signature, *values), "from": WALLET}, "latest"]))


def held(chain: Devnet, token: str) -> int:
    return read(chain, token, "balanceOf(address)", WALLET)[0]


def trade(chain: Devnet, fork, market, token_in: str, amount: int) -> dict:
    """Through the fork's own router; a v2 one has SwapRouter02's call under another name."""
    tx = swap(fork.venues, WALLET, market.place, token_in, amount)
    if fork.shape == "v2":
        path = [token_in, market.place.other(token_in)]
        signature = "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)"
        tx = Tx(sender=WALLET, to=fork.router, data=encode(signature, amount, 0, path, WALLET, 2**40), gas=GAS)
    return chain.send(tx)[0]


@pytest.fixture
def wallet(chain):
    chain.fund(WALLET, 20 * ETH)
    chain.send(Tx(sender=WALLET, to=chain.addresses["weth"], data=encode("deposit()"), value_wei=5 * ETH))
    return WALLET


@pytest.mark.parametrize("name", FORKS)
def test_real_trades_go_both_ways_through_the_router_of_the_fork(chain, wallet, name):
    fork, weth = chain.deployment.annex.fork(name), chain.addresses["weth"]
    for market in fork.markets:
        token = market.token.address
        chain.send(*(tx for each in (weth, token) for tx in fork.venues.approve(wallet, each, (fork.router,))))
        before = held(chain, weth)
        assert trade(chain, fork, market, weth, 10 * MILLI)["status"] == "0x1" and held(chain, token)
        assert trade(chain, fork, market, token, held(chain, token))["status"] == "0x1"
        assert 0 < before - held(chain, weth) < 10 * MILLI * 3 // 100


@pytest.mark.parametrize("name", FORKS)
def test_pools_are_announced_by_the_factory_of_the_fork_where_their_address_was_computed(devnet, name):
    fork = devnet.deployment.annex.fork(name)
    created = topic("PairCreated(address,address,address,uint256)" if fork.shape == "v2" else "PoolCreated(address,address,uint24,int24,address)")
    found = devnet.node.call("eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(devnet.deployment.height), "address": fork.factory}])
    pools = [log["data"] for log in found if log["topics"][0] == created]
    assert len(pools) == len(fork.markets)
    assert all(any(market.place.key[2:] in data for data in pools) for market in fork.markets)


@pytest.mark.parametrize("name", ["thicket", "griddle"])
def test_quoter_of_the_fork_agrees_with_what_a_swap_brings(chain, wallet, name):
    fork, weth = chain.deployment.annex.fork(name), chain.addresses["weth"]
    market = fork.markets[0]
    order = (weth, market.token.address, 10 * MILLI, market.place.fee_ppm, 0)
    told = read(chain, fork.quoter, "quoteExactInputSingle((address,address,uint256,uint24,uint160))", order, types=("uint256",))[0]
    chain.send(*fork.venues.approve(wallet, weth, (fork.router,)))
    trade(chain, fork, market, weth, 10 * MILLI)
    assert held(chain, market.token.address) == told


def test_griddle_logs_swaps_as_pancake_does_and_thicket_as_uniswap(chain, wallet):
    weth = chain.addresses["weth"]
    for name, expected, words in (("griddle", PANCAKE_SWAP, 7), ("thicket", UNISWAP_SWAP, 5)):
        fork = chain.deployment.annex.fork(name)
        chain.send(*fork.venues.approve(wallet, weth, (fork.router,)))
        logs = trade(chain, fork, fork.markets[0], weth, MILLI)["logs"]
        [swapped] = [log for log in logs if log["address"] == fork.markets[0].place.key and len(log["topics"]) == 3 and log["topics"][0] == expected]
        assert len(swapped["data"]) == 2 + 64 * words
    assert PANCAKE_SWAP == "0x19b47279256b2a23a1665c810c8d55a1758940ee09377d4f8d26497a3577dc83"


def test_griddle_state_is_what_its_log_says(chain, wallet):
    fork, weth = chain.deployment.annex.fork("griddle"), chain.addresses["weth"]
    pool = fork.markets[0].place
    chain.send(*fork.venues.approve(wallet, weth, (fork.router,)))
    log = next(log for log in trade(chain, fork, fork.markets[0], weth, ETH)["logs"] if log["topics"][0] == PANCAKE_SWAP)
    _, _, root, liquidity, tick, owed0, owed1 = decode(("int256", "int256", "uint160", "uint128", "int24", "uint128", "uint128"), log["data"])
    state = read(chain, pool.key, "slot0()", types=("uint160", "int24", "uint16", "uint16", "uint16", "uint32", "bool"))
    assert (root, tick) == state[:2] and liquidity == read(chain, pool.key, "liquidity()")[0]
    assert (owed0, owed1) == read(chain, pool.key, "protocolFees()", types=("uint128", "uint128")) and max(owed0, owed1) > 0
    edge = pool.full_range[1] if pool.fee_ppm != 2_500 else 887_250
    assert read(chain, pool.key, "ticks(int24)", -edge, types=("uint128", "int128"))[1] == liquidity


# --- the launchpad ----------------------------------------------------------------------------------------------------


def test_selectors_of_the_curve_are_those_of_the_real_launchpad():
    assert selector("buy(uint256,uint256,address)").hex() == "59a87bc1" and selector("sell(uint256,uint256,address)").hex() == "d04c6983"


def test_launches_are_logged_with_token_and_curve(devnet):
    annex = devnet.deployment.annex
    launched = topic("TokenLaunched(address,address,address,uint256,string,string)")
    found = devnet.node.call("eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(devnet.deployment.height), "address": annex.launchpad, "topics": [launched]}])
    told = [tuple("0x" + word[-40:] for word in log["topics"][1:3]) for log in found]
    assert told == [(launch.token, launch.curve) for launch in annex.launched]


def buy(chain: Devnet, curve: str, wei: int, least: int = 0) -> dict:
    data = encode("buy(uint256,uint256,address)", wei, least, WALLET)
    return chain.send(Tx(sender=WALLET, to=curve, data=data, value_wei=wei, gas=GAS))[0]


def test_curve_sells_and_buys_back_as_it_quotes(chain, wallet):
    launch = chain.deployment.annex.launched[1]
    told = read(chain, launch.curve, "quoteBuy(uint256)", ETH // 10, types=("uint256", "uint256"))
    assert buy(chain, launch.curve, ETH // 10, told[0])["status"] == "0x1" and held(chain, launch.token) == told[0]
    assert buy(chain, launch.curve, ETH // 10, told[0])["status"] == "0x0", "the price has risen"
    brings = read(chain, launch.curve, "quoteSell(uint256)", told[0])[0]
    assert 0 < ETH // 10 - brings < ETH // 10 * 21 // 1_000
    approve = Tx(sender=wallet, to=launch.token, data=encode("approve(address,uint256)", launch.curve, MAX))
    sell = Tx(sender=wallet, to=launch.curve, data=encode("sell(uint256,uint256,address)", told[0], brings, wallet), gas=GAS)
    assert [receipt["status"] for receipt in chain.send(approve, sell)] == ["0x1", "0x1"]
    assert read(chain, launch.curve, "raised()")[0] <= 1


def test_curve_ends_in_a_v4_pool_with_a_fee_hook(chain, wallet):
    launch = chain.deployment.annex.launched[1]
    receipt = buy(chain, launch.curve, 5 * ETH)
    assert receipt["status"] == "0x1" and read(chain, launch.curve, "graduated()")[0] == 1
    place = chain.deployment.venues.hooked("0x" + "00" * 20, launch.token, 0, 200, GRADUATE.address)
    assert any(log["address"] == launch.curve and log["topics"][-1] == place.key for log in receipt["logs"])
    before = held(chain, launch.token)
    assert buy(chain, launch.curve, ETH)["status"] == "0x0", "the curve is over"
    assert chain.send(swap(chain.deployment.venues, WALLET, place, place.token0, ETH // 10))[0]["status"] == "0x1"
    assert held(chain, launch.token) > before
