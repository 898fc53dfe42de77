"""Compiling: one answer for one set of sources, kept, and the same in every folder."""

from __future__ import annotations

import os

import pytest

from chain.devnet.compile import artifacts, main
from chain.devnet.toolchain import require
from ledgers.errors import ChainFault


@pytest.fixture
def toolchain(tmp_path):
    """An empty folder with the installed packages."""
    os.symlink(require() / "node_modules", tmp_path / "node_modules")
    return tmp_path


def test_another_folder_compiles_to_the_same_bytes(toolchain):
    assert artifacts(toolchain) == artifacts(require())


def test_what_was_compiled_once_needs_no_compiler_again(toolchain):
    compiled = artifacts(require())
    for kept in require().glob("artifacts-*.json"):
        os.symlink(kept, toolchain / kept.name)
    assert artifacts(toolchain, node="no-such-program") == compiled


def test_a_missing_compiler_is_a_fault_in_one_sentence(toolchain):
    with pytest.raises(ChainFault, match="node could not be run"):
        artifacts(toolchain, node="no-such-program")


def test_a_missing_package_is_a_fault_that_says_what_to_do(tmp_path):
    with pytest.raises(ChainFault, match="run set-up"):
        artifacts(tmp_path)


def test_a_failed_compilation_leaves_nothing_behind(toolchain):
    with pytest.raises(ChainFault):
        artifacts(toolchain, node="false")
    assert [path.name for path in toolchain.iterdir()] == ["node_modules"]


def test_no_contract_carries_a_metadata_hash():
    compiled = artifacts(require())
    assert [name for name, artifact in compiled.items() if "a264697066735822" in artifact.bytecode] == []


def test_constructor_types_are_in_order():
    assert artifacts(require())["PlainVyper"].constructor_types == ("string", "string", "uint8", "uint256")


def test_a_contract_without_constructor_takes_nothing():
    assert artifacts(require())["Multicall3"].constructor_types == ()


def test_the_command_says_how_it_is_used(capsys):
    assert (main([]), capsys.readouterr().err) == (2, "usage: python -m chain.devnet.compile TOOLCHAIN_DIR\n")
