"""The settings: empty is unset, and a home that cannot be one is said by the name of its variable."""

from __future__ import annotations

import pytest

from chain.lane import LaneLimits
from ops.settings import BadSettings, Settings, _usable


def test_an_empty_variable_is_unset():
    assert Settings.model_config["env_ignore_empty"]


@pytest.mark.parametrize("below", ["", "further/down"])
def test_a_home_that_is_a_file_names_the_variable(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSettings, match="REFEREE_HOME is .* is not a directory"):
        _usable(tmp_path / "file" / below)


def test_a_home_that_can_be_made_is_usable(tmp_path):
    _usable(tmp_path / "not" / "yet")


def test_a_node_address_may_carry_limits_behind_it():
    first, second = Settings(rpc_urls="https://a.example/key|rps=25|batch=10, https://b.example").lanes()
    assert (first.name, first.url, first.limits.requests_per_s, first.limits.batch_max) == ("lane-1", "https://a.example/key", 25, 10)
    assert (second.name, second.url, second.limits) == ("lane-2", "https://b.example", LaneLimits(tries=second.limits.tries))


@pytest.mark.parametrize("urls", ["https://a.example,secret-key-0123", "https://a.example|rps=secret-key-0123", "ftp://secret-key-0123"])
def test_a_bad_node_address_is_named_by_its_place_never_shown(urls):
    with pytest.raises(BadSettings, match="address [12] of REFEREE_RPC_URLS") as refused:
        Settings(rpc_urls=urls).lanes()
    assert "secret-key" not in str(refused.value)


# --- rivals ---------------------------------------------------------------------------------------------------------

KEYS = {f"REFEREE_KEY_{name}": f"secret-{name.lower()}-0123456789" for name in ("0X", "UNISWAP", "1INCH", "OKX", "OKX_SECRET", "OKX_PASSPHRASE", "OKX_PROJECT", "LIFI", "RELAY", "SUSHI")}


def fields(environment):
    """Settings from variables, by the names of their fields."""
    return Settings(**{name.removeprefix("REFEREE_").lower(): value for name, value in environment.items()})


def test_every_rival_is_asked_unless_others_are_named():
    assert (Settings().rival_names(), Settings(rivals=" KyberSwap, 0x,, ").rival_names(), Settings(rivals="none").rival_names()) == (("all",), ("kyberswap", "0x"), ("none",))


def test_keys_of_rivals_are_known_by_rival_and_never_shown():
    settings = fields(KEYS)
    assert settings.rival_keys() == {name.removeprefix("REFEREE_KEY_").lower(): key for name, key in KEYS.items()}
    assert "secret-" not in repr(settings) + str(settings) + settings.model_dump_json()
    assert Settings().rival_keys() == {}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("odd", ["sécret-0123456789", "secret 0123456789", "secret\r\nX-Evil: 1"])
def test_a_key_that_no_key_can_be_is_named_by_its_variable_only(name, odd):
    with pytest.raises(BadSettings, match=f"^{name} ") as refused:
        fields({name: odd}).rival_keys()
    assert "0123456789" not in str(refused.value) and "Evil" not in str(refused.value)
