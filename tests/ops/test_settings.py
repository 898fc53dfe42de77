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
