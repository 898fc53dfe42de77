"""The settings: empty is unset, and a home that cannot be one is said by the name of its variable."""

from __future__ import annotations

import pytest

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
