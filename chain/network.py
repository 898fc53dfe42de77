"""A network: the addresses and parameters of one chain, as data in `networks/<name>.toml`.

Addresses are kept in lower case and told apart only by that form; names and tickers are copied freely on a real chain.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

NETWORKS = Path(__file__).parent / "networks"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
ADDRESS = re.compile(r"0x[0-9a-f]{40}")
NOT_CONTRACTS = frozenset({"fee_recipient"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One chain."""

    name: str
    label: str
    """How results made here must be labelled."""
    chain_id: int
    native_symbol: str
    weth: str
    usdg: str
    """The dollar token, 6 decimals, taken as one dollar."""
    multicall3: str
    permit2: str
    v2_factory: str
    v2_router: str
    v3_factory: str
    quoter_v2: str
    swap_router_02: str
    v4_pool_manager: str | None = None
    v4_quoter: str | None = None
    v4_state_view: str | None = None
    universal_router: str | None = None
    feed: str
    """ETH/USD in Chainlink's aggregator shape."""
    feed_heartbeat_s: int
    """How old the feed's answer may be."""
    block_time_ms: int
    time_step_s: int
    """How far a simulated block's time is after the pinned one's."""
    pin_depth: int
    """How many blocks behind the head everything is pinned."""
    fee_recipient: str | None = None
    """Who simulated blocks pay; Nitro charges the L1 part only to its poster."""
    first_block: int
    """No pool is older."""
    clock: str
    """`wall`: block times follow wall time; `measured`: they run on their own and the offset is measured."""

    def contracts(self) -> dict[str, str]:
        """Name every configured contract's address."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_CONTRACTS}
        return {name: value for name, value in named.items() if isinstance(value, str) and ADDRESS.fullmatch(value)}


def load_network(name: str, folder: Path = NETWORKS) -> Network:
    """Load a network by name. Raises: ValueError with one sentence that says what is wrong and where."""
    if not NAME.fullmatch(name):
        raise ValueError(f"network name {name[:40]!r} is not lower-case letters, digits and dashes")
    path = folder / f"{name}.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in folder.glob("*.toml"))) or "none"
        raise ValueError(f"no network named {name!r}; known: {known}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}") from None
    return network_of(data, path.name)


def network_of(data: dict[str, object], where: str) -> Network:
    """Validate a network's decoded TOML. Raises: ValueError naming the first wrong field."""
    try:
        file = NetworkFile.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        said = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {place}: {said[0].lower()}{said[1:]}") from None
    return Network(**file.model_dump(exclude={"contracts"}), **file.contracts.model_dump())


def _lower_case_address(text: str) -> str:
    if not ADDRESS.fullmatch(text.lower()):
        raise ValueError(f"expected 0x and 40 hex digits, found {text[:50]!r}")
    return text.lower()


Address = Annotated[str, AfterValidator(_lower_case_address)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ContractsFile(_Strict):
    """The `[contracts]` table."""

    weth: Address
    usdg: Address
    multicall3: Address
    permit2: Address
    v2_factory: Address
    v2_router: Address
    v3_factory: Address
    quoter_v2: Address
    swap_router_02: Address
    v4_pool_manager: Address | None = None
    v4_quoter: Address | None = None
    v4_state_view: Address | None = None
    universal_router: Address | None = None
    feed: Address
    fee_recipient: Address | None = None


class NetworkFile(_Strict):
    """A network file."""

    name: str = Field(pattern=rf"^{NAME.pattern}$")
    label: str = Field(min_length=1, max_length=32)
    chain_id: int = Field(gt=0, lt=2**53)
    native_symbol: str = Field(min_length=1, max_length=8)
    block_time_ms: int = Field(gt=0, le=600_000)
    time_step_s: int = Field(ge=0, le=3_600)
    pin_depth: int = Field(ge=0, le=64)
    first_block: int = Field(ge=0, lt=2**53)
    feed_heartbeat_s: int = Field(gt=0, le=604_800)
    clock: Literal["wall", "measured"]
    contracts: ContractsFile
