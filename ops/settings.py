"""The settings: what the environment says, read once at the edge.

Addresses of nodes and of providers carry keys, and rivals ask for some: they are secrets here, and everywhere else these have only names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from chain.lane import Lane, limits_of
from harnesses.address import Address
from ledgers.errors import RefereeError

SCHEMES = ("http", "https")
EXPECTED = {"metrics_port": "a port is a number from 1 to 65535", "home": "it must name a directory"}
"""What a variable must say, by field."""
KEY_FIELD = "key_"
"""How the fields of rivals' keys begin."""


class BadSettings(RefereeError):
    """The environment asks for something impossible; the message is one sentence and holds no address."""


class Settings(BaseSettings):
    """What `REFEREE_…` variables say."""

    model_config = SettingsConfigDict(env_prefix="REFEREE_", frozen=True, hide_input_in_errors=True, extra="ignore", env_ignore_empty=True)

    home: Path = Path(".referee")
    """Where the journal, the reports and the local chain's state are kept."""
    rpc_urls: SecretStr = SecretStr("")
    """Nodes of a real chain, separated by commas; the first is asked first. Behind an address may stand its limits: `|rps=25|batch=25|logs=10000`."""
    metrics_port: int | None = Field(None, ge=1, le=65_535)
    """Loopback port for metrics; off unless asked."""
    outside: str = ""
    """Outside sources of market data on a real chain, separated by commas: dexscreener, geckoterminal, blockscout, goplus; none unless asked."""
    rivals: str = "all"
    """Rival routers asked beside ours, by name and separated by commas; `all` are those that can be asked with the keys there are."""
    key_0x: SecretStr = SecretStr("")
    key_uniswap: SecretStr = SecretStr("")
    key_1inch: SecretStr = SecretStr("")
    key_okx: SecretStr = SecretStr("")
    key_okx_secret: SecretStr = SecretStr("")
    key_okx_passphrase: SecretStr = SecretStr("")
    key_okx_project: SecretStr = SecretStr("")
    key_lifi: SecretStr = SecretStr("")
    key_relay: SecretStr = SecretStr("")
    key_sushi: SecretStr = SecretStr("")
    """Keys of rivals; LI.FI, Relay and Sushi answer without one."""

    def outside_names(self) -> tuple[str, ...]:
        """List the outside sources that are asked for."""
        return tuple(part.strip() for part in self.outside.split(",") if part.strip())

    def rival_names(self) -> tuple[str, ...]:
        """List the rivals that are asked for."""
        return tuple(part.strip().lower() for part in self.rivals.split(",") if part.strip())

    def rival_keys(self) -> dict[str, str]:
        """The keys of rivals, by rival. Raises: BadSettings naming the variable, never its text."""
        fields = {name.removeprefix(KEY_FIELD): getattr(self, name).get_secret_value().strip() for name in type(self).model_fields if name.startswith(KEY_FIELD)}
        for name, key in fields.items():
            if not (key.isascii() and key.isprintable() and " " not in key):
                raise BadSettings(f"REFEREE_KEY_{name.upper()} holds blanks or letters that no key has")
        return {name: key for name, key in fields.items() if key}

    @property
    def store_path(self) -> Path:
        """The journal store."""
        return self.home / "journal.db"

    def reports_path(self, window_id: str) -> Path:
        """Where a window's report is written."""
        return self.home / "reports" / window_id

    def lanes(self) -> tuple[Lane, ...]:
        """Name the lanes to a real chain in order. Raises: BadSettings naming the place of a bad one, never its text."""
        parts = [part.strip() for part in self.rpc_urls.get_secret_value().split(",") if part.strip()]
        return tuple(lane_of(part, f"lane-{place}", f"address {place} of REFEREE_RPC_URLS") for place, part in enumerate(parts, start=1))

    def provider_address(self, name: str, environment: Mapping[str, str] | None = None) -> Address:
        """Find where a provider of models answers, by the name its manifests use. Raises: BadSettings naming the variable, never its text."""
        said = os.environ if environment is None else environment
        variable = f"REFEREE_PROVIDER_{name.upper().replace('-', '_')}"
        url = said.get(f"{variable}_URL", "").strip()
        if not url:
            raise BadSettings(f"provider {name} has no address: set {variable}_URL (and {variable}_KEY if it asks for a key)")
        if not is_address(url):
            raise BadSettings(f"{variable}_URL is not an http or https address")
        return Address(url, said.get(f"{variable}_KEY", "").strip())


def lane_of(text: str, name: str, what: str) -> Lane:
    """Read one node address with the limits behind it. Raises: BadSettings saying what is wrong with `what`, never its text."""
    url, _, options = (part.strip() for part in text.partition("|"))
    if not is_address(url):
        raise BadSettings(f"{what} is not an http or https address")
    try:
        return Lane(name, url, limits_of(options))
    except ValueError as error:
        raise BadSettings(f"{what}: {error}") from None


def load_settings() -> Settings:
    """Read the environment. Raises: BadSettings with one sentence."""
    try:
        settings = Settings()
        _usable(settings.home)
        return settings
    except ValidationError as error:
        name = "_".join(str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"])
        raise BadSettings(f"REFEREE_{name.upper()} is not usable: {EXPECTED.get(name, 'its text does not fit')}") from None


def _usable(home: Path) -> None:
    """Look whether data can live there: a directory, or a place where one could be made. Raises: BadSettings."""
    for place in (home, *home.parents):
        try:
            if place.is_dir():
                return
            if place.exists():
                raise BadSettings(f"REFEREE_HOME is {home}, but {place} is not a directory; name another one, or unset it to use .referee")
        except OSError as error:
            raise BadSettings(f"REFEREE_HOME is {home}, which cannot be looked at ({error.strerror}); name another directory") from None


def is_address(url: str) -> bool:
    """Say whether a text is an http or https address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
