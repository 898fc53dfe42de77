"""A network file is refused with one clear sentence unless every value is usable."""

import copy
import tomllib

import pytest

from chain.network import NETWORKS, load_network, network_of

ROBINHOOD = tomllib.loads((NETWORKS / "robinhood.toml").read_text("utf-8"))


def altered(**changes: object) -> dict:
    """The real chain's file with some values changed; dotted names reach into tables as `contracts__feed`."""
    data = copy.deepcopy(ROBINHOOD)
    for name, value in changes.items():
        table, _, key = name.rpartition("__")
        (data[table] if table else data)[key] = value
    return data


def test_the_real_chain_loads_with_lower_case_addresses():
    network = load_network("robinhood")
    assert network.chain_id == 4663
    assert all(address == address.lower() for address in network.contracts().values())


def test_the_hash_of_block_0_may_be_left_out_and_must_be_one():
    assert load_network("robinhood").block0_hash is None
    network = network_of(altered(block0_hash="0x" + "AB" * 32), "some.toml")
    assert network.block0_hash == "0x" + "ab" * 32 and "block0_hash" not in network.contracts()
    with pytest.raises(ValueError, match="some.toml: block0_hash: expected 0x and 64 hex digits"):
        network_of(altered(block0_hash="0x12"), "some.toml")


def test_the_poster_is_not_a_contract():
    network = load_network("robinhood")
    assert network.fee_recipient not in network.contracts().values()
    assert network.contracts()["feed"] == network.feed


def test_a_network_without_v4_loads():
    data = altered()
    for name in ("v4_pool_manager", "v4_quoter", "v4_state_view", "universal_router"):
        del data["contracts"][name]
    assert network_of(data, "some.toml").v4_pool_manager is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pin_depht": 1}, "some.toml: pin_depht: extra inputs are not permitted"),
        ({"contracts__router": "0x" + "00" * 20}, "contracts.router: extra inputs"),
        ({"contracts__feed": "0x1234"}, "contracts.feed: expected 0x and 40 hex digits, found '0x1234'"),
        ({"chain_id": "4663"}, "chain_id: input should be a valid integer"),
        ({"block_time_ms": 0}, "block_time_ms: input should be greater than 0"),
        ({"clock": "sundial"}, "clock: input should be 'wall' or 'measured'"),
    ],
)
def test_a_wrong_value_is_named(changes, said):
    with pytest.raises(ValueError, match="^some.toml") as refused:
        network_of(altered(**changes), "some.toml")
    assert said in str(refused.value)


def test_a_missing_value_is_named():
    data = altered()
    del data["contracts"]["weth"]
    with pytest.raises(ValueError, match="contracts.weth: field required"):
        network_of(data, "some.toml")


def test_an_unknown_network_names_the_known_ones():
    with pytest.raises(ValueError, match="no network named 'atlantis'; known: .*robinhood"):
        load_network("atlantis")


@pytest.mark.parametrize("name", ["../robinhood", "", "Robinhood", "a" * 99])
def test_a_network_name_never_leaves_its_folder(name):
    with pytest.raises(ValueError, match="is not lower-case"):
        load_network(name)


def test_broken_toml_is_said_in_one_sentence(tmp_path):
    (tmp_path / "broken.toml").write_text("name = ")
    with pytest.raises(ValueError, match="broken.toml is not TOML"):
        load_network("broken", tmp_path)


# --- other exchanges ------------------------------------------------------------------------------------------------

A, B, C = ("0x" + two * 20 for two in ("Ab", "Cd", "Ef"))
TOPIC = "0x" + "1A" * 32
V2_FORK = {"name": "some-v2", "shape": "v2", "factory": A, "router": B, "router_shape": "v2_router02", "fee_ppm": 2_500, "source": "its list"}
V3_FORK = {"name": "some-v3", "shape": "v3", "factory": C, "swap_topic": TOPIC, "source": "its list"}
CURVE = {"name": "some-curve", "factory": B, "launched_topic": TOPIC, "source": "its list"}


def test_forks_and_curves_are_read_in_order_and_in_lower_case():
    network = network_of(altered(fork=[V2_FORK, V3_FORK], curve=[CURVE]), "some.toml")
    assert [(fork.name, fork.factory, fork.fee_ppm) for fork in network.forks] == [("some-v2", A.lower(), 2_500), ("some-v3", C.lower(), None)]
    assert network.forks[1].swap_topic == network.curves[0].launched_topic == TOPIC.lower()


def test_a_network_file_need_not_name_forks():
    network = network_of(altered(fork=[], curve=[], universal_router_hop_prices=False), "some.toml")
    assert (network.forks, network.curves, network.universal_router_hop_prices) == ((), (), False)


@pytest.mark.parametrize(
    ("fork", "said"),
    [
        ({"shape": "v9"}, "fork.0.shape: input should be 'v2' or 'v3'"),
        ({"router_shape": None}, "router and router_shape go together"),
        ({"shape": "v3"}, "trades no v3 pools"),
        ({"fee_ppm": None}, "fee_ppm is told of v2 forks, and of them only"),
        ({"fee_ppm": 1_000_000}, "fork.0.fee_ppm: input should be less than 1000000"),
        ({"swap_topic": "0x12"}, "expected 0x and 64 hex digits, found '0x12'"),
        ({"name": "Some V2"}, "fork.0.name: string should match pattern"),
        ({"source": ""}, "fork.0.source: string should have at least 1 character"),
    ],
)
def test_a_fork_that_does_not_fit_its_shape_is_refused(fork, said):
    with pytest.raises(ValueError, match="^some.toml") as refused:
        network_of(altered(fork=[V2_FORK | fork]), "some.toml")
    assert said in str(refused.value)


@pytest.mark.parametrize("alike", [{"name": "some-v2"}, {"factory": A}])
def test_two_places_are_told_apart_by_name_and_by_factory(alike):
    with pytest.raises(ValueError, match="two forks or curves have equal"):
        network_of(altered(fork=[V2_FORK, V3_FORK | alike], curve=[]), "some.toml")


def test_the_real_chains_file_names_forks_launchpads_feeds_pools_and_places():
    network = load_network("robinhood")
    assert network.universal_router_hop_prices
    assert {fork.name for fork in network.forks} >= {"pancake-v2", "pancake-v3", "sushi-v2", "sushi-v3"}
    assert {pad.name for pad in network.launchpads} >= {"pons-v2", "doppler", "flap", "o1"}
    assert {(layout.token, layout.position, layout.bits) for layout in network.balance_layouts} == {(network.weth, 51, 256), (network.usdg, 1, 64)}
    assert {place.kind for place in network.places} >= {"router", "venue", "beacon", "fake", "stock"}
    assert len([pool for pool in network.reference_pools if pool.venue == "v4"]) == 1


def test_nothing_known_is_said_twice_and_everything_has_its_source():
    network = load_network("robinhood")
    known = list(network.known().values())
    doubled = {address for address in known if known.count(address) > 1} - {network.curves[0].factory}
    assert not doubled and not set(known) & set(network.contracts().values())
    tables = (*network.forks, *network.curves, *network.launchpads, *network.reference_pools, *network.feeds, *network.balance_layouts, *network.places)
    assert all(row.source.strip() for row in tables)


@pytest.mark.parametrize("key", ["0x54f7", "0x" + "0" * 40])
def test_a_pool_of_v4_is_named_by_its_id(key):
    with pytest.raises(ValueError, match="reference_pool.0: expected 0x and 64 hex digits"):
        network_of(altered(reference_pool=[{"name": "ETH/USDG", "venue": "v4", "key": key, "source": "x"}]), "some.toml")
