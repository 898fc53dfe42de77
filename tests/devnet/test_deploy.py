"""The deployment: the same addresses in every build, and they are the ones that the network file names."""

from chain.devnet.calls import decode, encode
from chain.network import load_network


def test_network_file_names_the_deployed_contracts(devnet):
    named = load_network("devnet").contracts()
    assert named == {name: devnet.addresses[name] for name in named}


def test_every_named_contract_has_code(devnet):
    codes = devnet.node.batch([("eth_getCode", [address, "latest"]) for address in load_network("devnet").contracts().values()])
    assert all(len(code) > 2 for code in codes)


def test_every_market_has_a_pool_where_its_address_was_computed(devnet):
    pools = [market.place.key for market in devnet.deployment.markets if market.place.venue != "v4"]
    codes = devnet.node.batch([("eth_getCode", [pool, "latest"]) for pool in pools])
    assert all(len(code) > 2 for code in codes)


def test_v4_pools_have_liquidity(devnet):
    pools = [market.place.key for market in devnet.deployment.markets if market.place.venue == "v4"]
    view = devnet.addresses["v4_state_view"]
    calls = [("eth_call", [{"to": view, "data": encode("getLiquidity(bytes32)", bytes.fromhex(pool[2:]))}, "latest"]) for pool in pools]
    assert pools and all(decode(("uint128",), answer)[0] > 0 for answer in devnet.node.batch(calls))


def test_pools_cover_three_versions_and_four_fee_tiers(devnet):
    markets = devnet.deployment.markets
    assert {market.place.venue for market in markets} == {"v2", "v3", "v4"}
    assert {market.place.fee_ppm for market in markets} == {100, 500, 3_000, 10_000}
    assert {market.hub for market in markets} == {"weth", "usdg", "native"}


def test_at_least_eight_honest_tokens_have_a_pool(devnet):
    honest = {market.token.symbol for market in devnet.deployment.markets if market.token and market.token.kind == "honest"}
    assert len(honest) >= 8


def test_network_file_names_the_forks_and_the_launchpad_of_the_annex(devnet):
    named, annex = load_network("devnet"), devnet.deployment.annex
    told = [(fork.name, fork.shape, fork.factory, fork.router, fork.quoter, fork.swap_topic) for fork in annex.forks]
    assert [(fork.name, fork.shape, fork.factory, fork.router, fork.quoter, fork.swap_topic) for fork in named.forks] == told
    assert [curve.factory for curve in named.curves] == [annex.launchpad]


def test_annex_moves_no_address_of_the_plain_market(devnet):
    tokens = {token.symbol: token.address for token in devnet.deployment.tokens if token.symbol}
    assert (tokens["LEAF"], devnet.deployment.token("honeypot").address, devnet.height > devnet.deployment.height == 9) == (
        "0x71c95911e9a5d330f4d621842ec243ee1343292e",
        "0x029a31edd4c791c99387b318cbc352ea4d3f64bf",
        True,
    )
