"""The toolchain: installed once from locks with hashes; what is missing is said in one sentence that tells what to do."""

import json

import pytest

from chain.devnet import toolchain
from ledgers.errors import ChainFault


def test_a_missing_toolchain_says_what_to_run(tmp_path):
    with pytest.raises(ChainFault, match="run `make setup`"):
        toolchain.require(tmp_path)


def test_an_installed_toolchain_is_not_installed_again():
    said = []
    toolchain.install(toolchain.require(), say=said.append)
    assert len(said) == 1 and "already installed" in said[0]


def test_another_lock_file_asks_for_another_installation(tmp_path):
    there = toolchain.require()
    (tmp_path / "node_modules").symlink_to(there / "node_modules")
    (tmp_path / toolchain.STAMP).write_text(toolchain.lock_sha256())
    assert toolchain.installed(tmp_path)
    (tmp_path / toolchain.STAMP).write_text("0" * 64)
    assert not toolchain.installed(tmp_path)


def test_every_package_is_pinned_and_the_hardhat_tools_are_left_out():
    packages = json.loads((toolchain.HERE / "package-lock.json").read_text())["packages"]
    wanted = json.loads((toolchain.HERE / "package.json").read_text())["dependencies"]
    assert all(version[0].isdigit() for version in wanted.values())
    assert not any("hardhat" in name.removeprefix("node_modules/hardhat-watcher") for name in packages) and not any(
        "edr" in name for name in packages
    )


def test_the_wheel_with_npm_is_pinned_by_hash():
    text = toolchain.NODEJS_LOCK.read_text()
    assert "==" in text and text.count("--hash=sha256:") == 4 and "://" not in text


def test_a_failed_fetch_is_one_sentence_that_says_what_to_do(tmp_path):
    with pytest.raises(ChainFault, match="could not be fetched .* run `make setup` again"):
        toolchain.fetch_packages(tmp_path, ["false"], say=lambda _: None)
    assert not (tmp_path / toolchain.STAMP).exists()
