"""The README: every command it shows is one, every file it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ops.cli import parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = sorted(set(re.findall(r"^(?:\S*=\S+ )?(?:\.venv/bin/)?referee (\S.*?)(?:  .*)?$", README, re.MULTILINE)))
PATHS = sorted(set(re.findall(r"(?<![\w./-])((?:ledgers|chain|harnesses|referee|ops|tests)/[\w/]+\.(?:py|md|toml))", README)))


@pytest.mark.parametrize("command", COMMANDS)
def test_shown_command_is_understood(command):
    for action in command.replace("devnet up|status|down", "devnet up\0devnet status\0devnet down").split("\0"):
        parser().parse_args(action.split())


@pytest.mark.parametrize("path", PATHS)
def test_named_file_exists(path):
    assert (ROOT / path).is_file()


def test_the_readme_shows_commands_and_files():
    assert len(COMMANDS) >= 9 and len(PATHS) >= 12


def test_every_make_target_named_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


def test_every_variable_named_is_a_setting():
    from ops.settings import Settings

    named = set(re.findall(r"REFEREE_([A-Z0-9_]+)", README))
    of_providers = {name for name in named if name.startswith("PROVIDER_")}
    assert of_providers == {"PROVIDER_NAME_URL", "PROVIDER_NAME_KEY", "PROVIDER_ANTHROPIC_URL", "PROVIDER_ANTHROPIC_KEY"}
    assert named - of_providers == {name.upper() for name in Settings.model_fields}
