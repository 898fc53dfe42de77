"""A network: the addresses and parameters of one chain, as data in `networks/<name>.toml`.

Addresses are kept in lower case and told apart only by that form; names and tickers are copied freely on a real chain.
Other exchanges of known shapes are data too: a `[[fork]]` each, and a `[[curve]]` for each launchpad.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

NETWORKS = Path(__file__).parent / "networks"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
ADDRESS = re.compile(r"0x[0-9a-f]{40}")
TOPIC = re.compile(r"0x[0-9a-f]{64}")
NOT_CONTRACTS = frozenset({"fee_recipient", "reader"})
READER = "0x00000000000000000000000000000000005eade5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Another exchange whose pools have a known shape."""

    name: str
    """How its pools are named in routes and tables; unique in its network."""
    shape: str
    """`v2` or `v3`: the shape of its pools and of the logs that create them."""
    factory: str
    router: str | None = None
    """Who trades there; without one its pools are known and priced, never traded."""
    router_shape: str | None = None
    """`swap_router_02` (v2 and v3) or `v2_router02` (v2): whose calldata the router takes."""
    quoter: str | None = None
    """A contract in QuoterV2's shape, for v3; a v2 fork's router quotes itself."""
    swap_topic: str | None = None
    """Topic of its pools' Swap log where it is not Uniswap's own."""
    fee_ppm: int | None = None
    """What a v2 pair takes of every swap; v3 pools say it themselves."""
    source: str
    """Where these addresses are from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A launchpad that sells a new token along a curve of its own before any pool exists."""

    name: str
    factory: str
    """Who logs a launch: its token and its curve contract."""
    launched_topic: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchpad:
    """Who starts tokens here, and what its pools do to a trade."""

    name: str
    factory: str | None = None
    hook: str | None = None
    """The hook of its v4 pools."""
    shape: str
    """How its tokens trade, in words."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePool:
    """A pool that others know by name; a probe looks whether it is there."""

    name: str
    venue: str
    key: str
    """Its address; for v4 its 32-byte id."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFeed:
    """A feed in Chainlink's aggregator shape."""

    name: str
    address: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceLayout:
    """Where a token is known to keep balances: a mapping at `position`, of which the lowest `bits` are the balance."""

    token: str
    position: int
    bits: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Another address that is known by name. Nothing here calls it."""

    name: str
    address: str
    kind: str
    """`infra`, `router`, `venue`, `token`, `stock` (a tokenised share), `beacon`, `fake` (a token that bears another's
    symbol) or `account` (somebody's, without code)."""
    source: str


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
    universal_router_hop_prices: bool = False
    """Whether its swaps take a least price of every hop: the shape of version 2.1.1 as deployed, unlike that of the package 2.1.0."""
    v3_positions: str | None = None
    """NonfungiblePositionManager of v3."""
    v4_positions: str | None = None
    """PositionManager of v4."""
    tick_lens: str | None = None
    forks: tuple[Fork, ...] = ()
    """Other exchanges, in the order of the file."""
    curves: tuple[Curve, ...] = ()
    """Launchpads with curves of their own."""
    launchpads: tuple[Launchpad, ...] = ()
    reference_pools: tuple[ReferencePool, ...] = ()
    feeds: tuple[PriceFeed, ...] = ()
    """Feeds besides ETH/USD."""
    balance_layouts: tuple[BalanceLayout, ...] = ()
    places: tuple[Place, ...] = ()
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
    block0_hash: str | None = None
    """Hash of block 0 where it is known: other chains may have the same id."""
    clock: str
    """`wall`: block times follow wall time; `measured`: they run on their own and the offset is measured."""
    reader: str = READER
    """Sends the reads of a simulation, funded by override only. Where windows are played nobody knows it beforehand, so that no
    contract can tell a simulation by its purse or by what stands beside it."""

    @property
    def random_words(self) -> bool:
        """Whether a simulation may set a block's random word; Nitro keeps its own version there, and its contracts see none."""
        return self.fee_recipient is None

    def contracts(self) -> dict[str, str]:
        """Name every configured contract's address."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_CONTRACTS}
        return {name: value for name, value in named.items() if isinstance(value, str) and ADDRESS.fullmatch(value)}

    def known(self) -> dict[str, str]:
        """Name every other address of the file that should have code: forks, curves, launchpads, feeds, pools, places."""
        found: dict[str, str] = {}
        for fork in self.forks:
            found |= {f"{fork.name} {part}": value for part in ("factory", "router", "quoter") if (value := getattr(fork, part))}
        found |= {f"{curve.name} curve": curve.factory for curve in self.curves}
        for pad in self.launchpads:
            found |= {f"{pad.name} {part}": value for part in ("factory", "hook") if (value := getattr(pad, part))}
        found |= {f"feed {feed.name}": feed.address for feed in self.feeds}
        found |= {f"pool {pool.name}": pool.key for pool in self.reference_pools if pool.venue != "v4"}
        return found | {place.name: place.address for place in self.places if place.kind != "account"}


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
    tables = {field: tuple(kind(**row.model_dump()) for row in getattr(file, table)) for table, (field, kind) in TABLES.items()}
    return Network(**file.model_dump(exclude={"contracts", *TABLES}), **file.contracts.model_dump(), **tables)


TABLES = {
    "fork": ("forks", Fork), "curve": ("curves", Curve), "launchpad": ("launchpads", Launchpad), "reference_pool": ("reference_pools", ReferencePool),
    "feed": ("feeds", PriceFeed), "balance_layout": ("balance_layouts", BalanceLayout), "place": ("places", Place),
}  # fmt: skip
"""Tables of a file of which there may be many: the field and the type that each becomes."""


def _lower_case_address(text: str) -> str:
    if not ADDRESS.fullmatch(text.lower()):
        raise ValueError(f"expected 0x and 40 hex digits, found {text[:50]!r}")
    return text.lower()


def _lower_case_topic(text: str) -> str:
    if not TOPIC.fullmatch(text.lower()):
        raise ValueError(f"expected 0x and 64 hex digits, found {text[:70]!r}")
    return text.lower()


Address = Annotated[str, AfterValidator(_lower_case_address)]
Topic = Annotated[str, AfterValidator(_lower_case_topic)]
PlaceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,23}$")]
Source = Annotated[str, Field(min_length=1, max_length=200)]


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
    v3_positions: Address | None = None
    v4_positions: Address | None = None
    tick_lens: Address | None = None
    feed: Address
    fee_recipient: Address | None = None


class ForkFile(_Strict):
    """One `[[fork]]` table."""

    name: PlaceName
    shape: Literal["v2", "v3"]
    factory: Address
    router: Address | None = None
    router_shape: Literal["swap_router_02", "v2_router02"] | None = None
    quoter: Address | None = None
    swap_topic: Topic | None = None
    fee_ppm: int | None = Field(default=None, ge=0, lt=1_000_000)
    source: Source

    @model_validator(mode="after")
    def _fits_its_shape(self) -> ForkFile:
        if (self.router is None) != (self.router_shape is None):
            raise ValueError("router and router_shape go together")
        if self.router_shape == "v2_router02" and self.shape != "v2":
            raise ValueError("a router of shape v2_router02 trades no v3 pools")
        if (self.fee_ppm is not None) != (self.shape == "v2"):
            raise ValueError("fee_ppm is told of v2 forks, and of them only")
        return self


class CurveFile(_Strict):
    """One `[[curve]]` table."""

    name: PlaceName
    factory: Address
    launched_topic: Topic
    source: Source


class LaunchpadFile(_Strict):
    """One `[[launchpad]]` table."""

    name: PlaceName
    factory: Address | None = None
    hook: Address | None = None
    shape: Source
    source: Source


class ReferencePoolFile(_Strict):
    """One `[[reference_pool]]` table."""

    name: str = Field(min_length=1, max_length=48)
    venue: Literal["v2", "v3", "v4"]
    key: str
    source: Source

    @model_validator(mode="after")
    def _has_the_key_of_its_venue(self) -> ReferencePoolFile:
        self.key = _lower_case_topic(self.key) if self.venue == "v4" else _lower_case_address(self.key)
        return self


class PriceFeedFile(_Strict):
    """One `[[feed]]` table."""

    name: str = Field(min_length=1, max_length=24)
    address: Address
    source: Source


class BalanceLayoutFile(_Strict):
    """One `[[balance_layout]]` table."""

    token: Address
    position: int = Field(ge=0, lt=2**32)
    bits: int = Field(gt=0, le=256)
    source: Source


class PlaceFile(_Strict):
    """One `[[place]]` table."""

    name: str = Field(min_length=1, max_length=48)
    address: Address
    kind: Literal["infra", "router", "venue", "token", "stock", "beacon", "fake", "account"]
    source: Source


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
    block0_hash: Topic | None = None
    universal_router_hop_prices: bool = False
    contracts: ContractsFile
    fork: tuple[ForkFile, ...] = Field(default=(), strict=False, max_length=64)
    curve: tuple[CurveFile, ...] = Field(default=(), strict=False, max_length=64)
    launchpad: tuple[LaunchpadFile, ...] = Field(default=(), strict=False, max_length=128)
    reference_pool: tuple[ReferencePoolFile, ...] = Field(default=(), strict=False, max_length=64)
    feed: tuple[PriceFeedFile, ...] = Field(default=(), strict=False, max_length=128)
    balance_layout: tuple[BalanceLayoutFile, ...] = Field(default=(), strict=False, max_length=64)
    place: tuple[PlaceFile, ...] = Field(default=(), strict=False, max_length=256)

    @model_validator(mode="after")
    def _places_are_told_apart(self) -> NetworkFile:
        places = [*self.fork, *self.curve]
        for what, values in (("names", [place.name for place in places]), ("factories", [place.factory for place in places])):
            if len(set(values)) < len(values):
                raise ValueError(f"two forks or curves have equal {what}")
        return self
