"""The annex: what stands beside the plain market, built after it from an account of its own, so that no address there moves.

Pools with hooks and with odd fees, copies of honest pools, deep pools off the beaten path, other exchanges, a launchpad
and a second router. `Deployment.annex` tells by name what stands where; nothing of it is in `Deployment.markets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chain.devnet.assets import ETH_USD, USD
from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.compile import Artifact
from chain.devnet.forks import FORKED, ForkPlan, plan_forks
from chain.devnet.foundation import DEPLOY_GAS, PERMIT2
from chain.devnet.hooks import GRADUATE, HOOKS, HookSpec
from chain.devnet.miner import Miner
from chain.devnet.places import ETH, HONEST, USDG, Deployment, Market, Token
from chain.devnet.tricks import TRICKS, Trick, names
from chain.devnet.venues import MAX, NATIVE, Place, Venues

UNIT = 10**18
PRICE = USD
"""Of a token of the annex at the opening."""
SUPPLY_RAW = 100_000_000 * UNIT
DEPTH_WEI = 30 * ETH
WRAPPED_WEI = 100_000 * ETH
DOLLARS_RAW = 1_000_000_000 * USDG
TRICK_WEI = 20 * ETH
GIFT_WEI = 300 * ETH
"""Worth of the honest tokens that are given to who needs them."""
LAUNCH_GAS = 8_000_000
LAUNCHES = (("Ivory Plover", "IVPL"), ("Teal Marten", "TEMA"))
OFF_PATH = ("GLADE", "FJORD")
NAMES = (
    "Alder", "Birch", "Cedar", "Dogwood", "Elder", "Fir", "Ginkgo", "Hazelnut", "Ironwood", "Juniper", "Kapok", "Larch", "Mulberry",
    "Nettle", "Oakum", "Poplar", "Quince", "Rowan", "Spruce", "Tamarack", "Umbra", "Viburnum",
)  # fmt: skip
ODD_POOLS = (("plain_usdg", "usdg", 3_000, 60), ("odd_fee", "native", 1_234, 7), ("no_fee", "native", 0, 1), ("wide", "native", 2_500, 25))
"""Pools without a hook: against ERC-20 dollars, and of unusual fees and spacings."""
COPIES = (("PINE", 500_000, 200), ("PINE", 990_000, 60), ("DUSK", 800_000, 200))
"""Pools of honest tokens that keep most of what is paid in: symbol, fee and spacing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A v4 pool of the annex."""

    name: str
    hook: HookSpec | None
    market: Market

    @property
    def token(self) -> Token:
        assert self.market.token is not None
        return self.market.token

    @property
    def sold_back(self) -> bool:
        """Whether regulars sell there again what they bought."""
        return self.hook is not None and self.hook.sells

    @property
    def place(self) -> Place:
        return self.market.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Another exchange of a known shape, with pools of honest tokens."""

    name: str
    shape: str
    """v2 or v3."""
    factory: str
    router: str
    quoter: str | None
    swap_topic: str | None
    """Where its pools' Swap log is not Uniswap's."""
    venues: Venues
    markets: tuple[Market, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A token on its curve."""

    symbol: str
    token: str
    curve: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annex:
    """Everything of it, by kind."""

    stalls: tuple[Stall, ...]
    """Hooked pools by the name of their hook; odd ones and copies without one."""
    off_path: tuple[Market, ...]
    """Pools of tokens against tokens; the deep ways to `OFF_PATH`."""
    forks: tuple[Exchange, ...]
    launchpad: str
    launched: tuple[Launched, ...]
    """The first is traded by the market, the second by nobody."""
    hop_price_router: str
    rival: str
    """The rival's executor."""
    tricks: tuple[Trick, ...]
    """What the rival lies about and fails on."""
    copycat: Market | None
    """The pool of the token with the same symbol as the trick of that name."""

    @property
    def markets(self) -> tuple[Market, ...]:
        """Every pool of the annex: stalls, ways off the path, forks, tricks."""
        return (
            *(stall.market for stall in self.stalls),
            *self.off_path,
            *(market for fork in self.forks for market in fork.markets),
            *(trick.market for trick in self.tricks),
            *((self.copycat,) if self.copycat else ()),
        )

    def trick(self, name: str) -> Trick:
        return next(trick for trick in self.tricks if trick.name == name)

    def stall(self, name: str) -> Stall:
        return next(stall for stall in self.stalls if stall.name == name)

    def fork(self, name: str) -> Exchange:
        return next(fork for fork in self.forks if fork.name == name)


NO_ANNEX = Annex(stalls=(), off_path=(), forks=(), launchpad="", launched=(), hop_price_router="", rival="", tricks=(), copycat=None)
"""Before there is one."""


class Builder:
    """Plans the annex: who it is built by fixes every address, and its transactions are kept in order."""

    def __init__(self, miner: Miner, compiled: Mapping[str, Artifact], built: Deployment) -> None:
        self.compiled, self.built = compiled, built
        self.owner = built.cast.annexer
        self.nonce = miner.nonce(self.owner)
        self.txs: list[Tx] = []

    def create(self, code: str) -> str:
        """Deploy; its address."""
        self.nonce += 1
        self.txs.append(Tx(sender=self.owner, to=None, data=code, gas=DEPLOY_GAS))
        return created_address(self.owner, self.nonce - 1)

    def own(self, name: str, *values) -> str:
        """Deploy a contract of ours."""
        artifact = self.compiled[name]
        return self.create(artifact.bytecode + arguments(artifact.constructor_types, values))

    def send(self, *txs: Tx) -> None:
        self.nonce += len(txs)
        self.txs.extend(txs)

    def token(self, symbol: str, name: str) -> Token:
        address = self.own("PlainOz", name, symbol, 18, SUPPLY_RAW)
        return Token(symbol=symbol, kind=HONEST, address=address, decimals=18, price=PRICE, artifact="PlainOz")


def annex(miner: Miner, toolchain: Path, compiled: Mapping[str, Artifact], built: Deployment) -> tuple[Annex, list[Tx]]:
    """Plan the annex and put the hooks' code in place; the transactions that build the rest, all in one block."""
    at, made = built.at, Builder(miner, compiled, built)
    tokens = [made.token(name[:4].upper(), name) for name in NAMES[: len(HOOKS) + len(ODD_POOLS)]]
    off_tokens = [made.token(symbol, symbol.title()) for symbol in OFF_PATH]
    forks = plan_forks(made.create, toolchain, compiled, built)
    put_hooks(miner, compiled, at, dict(zip((hook.name for hook in HOOKS), (token.address for token in tokens), strict=False)))
    launchpad = made.own("Launchpad", at["v4_pool_manager"], GRADUATE.address)
    contracts = ("weth", "v2_factory", "v3_factory", "v4_pool_manager")
    router = made.own("HopPriceRouter", PERMIT2, *(at[name] for name in contracts))
    rival = made.own("Rival")
    stalls = [*hook_stalls(built, tokens), *odd_stalls(built, tokens[len(HOOKS) :]), *copy_stalls(built)]
    off_path = list(off_path_markets(built, off_tokens))
    approve_all(made, built, [*(stall.market for stall in stalls), *off_path], forks)
    for stall in stalls:
        made.send(*built.venues.open(made.owner, stall.place, *stall.market.raw))
    for market in off_path:
        made.send(*built.venues.open(made.owner, market.place, *market.raw))
    for fork in forks:
        made.send(*fork.openings(made.owner))
    launched = launches(made, launchpad)
    tricks = open_tricks(made, built)
    found = Annex(
        stalls=tuple(stalls),
        off_path=tuple(off_path),
        forks=tuple(exchange(fork) for fork in forks),
        launchpad=launchpad,
        launched=launched,
        hop_price_router=router,
        rival=rival,
        tricks=tuple(tricks[:-1]),
        copycat=tricks[-1].market,
    )
    return found, [*endowment(built), *made.txs, *regulars_outfit(built, found)]


def put_hooks(miner: Miner, compiled: Mapping[str, Artifact], at: Mapping[str, str], tokens: Mapping[str, str]) -> None:
    """Put each hook's code at the address that says what it may do."""
    specs = (*HOOKS, GRADUATE)
    asked = [
        ("eth_call", [{"data": spec.creation(compiled, {**at, "token": tokens.get(spec.name, NATIVE)}), "gas": hex(DEPLOY_GAS)}, "latest"])
        for spec in specs
    ]
    codes = miner.node.batch(asked)
    miner.node.batch([("anvil_setCode", [spec.address, code]) for spec, code in zip(specs, codes, strict=True)])


def worth_raw(token: Token, depth_wei: int) -> int:
    """Units of a token worth so much ETH at the opening."""
    return depth_wei * ETH_USD * 10**token.decimals // (token.price * ETH)


def market_at(built: Deployment, token: Token, hub: str, place: Place, depth_wei: int = DEPTH_WEI) -> Market:
    """A pool of a token against ETH or dollars, at its opening price."""
    hub_raw = depth_wei * ETH_USD // USD * USDG // ETH if hub == "usdg" else depth_wei
    raw = (worth_raw(token, depth_wei), hub_raw)
    return Market(token=token, hub=hub, place=place, depth_wei=depth_wei, raw=raw if place.token0 == token.address else raw[::-1])


def hub_address(built: Deployment, hub: str) -> str:
    return NATIVE if hub == "native" else built.at[hub]


def hook_stalls(built: Deployment, tokens: list[Token]) -> Iterator[Stall]:
    for hook, token in zip(HOOKS, tokens, strict=False):
        place = built.venues.hooked(token.address, hub_address(built, hook.hub), hook.fee_ppm, hook.spacing, hook.address)
        yield Stall(name=hook.name, hook=hook, market=market_at(built, token, hook.hub, place))


def odd_stalls(built: Deployment, tokens: list[Token]) -> Iterator[Stall]:
    for (name, hub, fee_ppm, spacing), token in zip(ODD_POOLS, tokens, strict=True):
        place = built.venues.hooked(token.address, hub_address(built, hub), fee_ppm, spacing)
        yield Stall(name=name, hook=None, market=market_at(built, token, hub, place))


def copy_stalls(built: Deployment) -> Iterator[Stall]:
    for symbol, fee_ppm, spacing in COPIES:
        token = built.token(symbol)
        place = built.venues.hooked(token.address, NATIVE, fee_ppm, spacing)
        name = f"copy_{symbol.lower()}_{fee_ppm // 10_000}"
        yield Stall(name=name, hook=None, market=market_at(built, token, "native", place, 5 * ETH))


def off_path_markets(built: Deployment, tokens: list[Token]) -> Iterator[Market]:
    """Each token's thin pool of WETH, and its deep one against another token: one hop off WETH, and one off dollars."""
    for token, neighbour in zip(tokens, ("ACRN", "MOSS"), strict=True):
        other = built.token(neighbour)
        thin = built.venues.place("v3", token.address, built.at["weth"], 10_000)
        deep = built.venues.place("v3", token.address, other.address, 3_000)
        for hub, place, raw, depth_wei in (("weth", thin, 2 * ETH, 2 * ETH), ("", deep, worth_raw(other, 90 * ETH), 90 * ETH)):
            mine = worth_raw(token, depth_wei)
            yield Market(
                token=token,
                hub=hub or neighbour.lower(),
                place=place,
                depth_wei=depth_wei,
                raw=(mine, raw) if place.token0 == token.address else (raw, mine),
            )


def open_tricks(made: Builder, built: Deployment) -> list[Trick]:
    """A token with a v2 pool for each of the rival's tricks; last the copy of one of them."""
    labels = dict(zip(TRICKS, names(), strict=True))
    found = []
    for name, (symbol, title) in (*labels.items(), ("copy", labels["copycat"])):
        token = made.token(symbol, title)
        place = built.venues.place("v2", token.address, built.at["weth"], 3_000)
        market = market_at(built, token, "weth", place, TRICK_WEI)
        made.send(*built.venues.approvals(made.owner, token.address, "v2"), *built.venues.open(made.owner, place, *market.raw))
        found.append(Trick(name=name, token=token, market=market))
    return found


def copied_tokens(built: Deployment) -> list[Token]:
    """Honest tokens that the annexer needs some of."""
    return [token for token in built.tokens if token.kind == HONEST]


def endowment(built: Deployment) -> Iterator[Tx]:
    """Give the annexer and the regulars dollars, wrapped ETH and some of each honest token."""
    cast, at = built.cast, built.at
    for actor in (cast.annexer, *cast.regulars):
        yield Tx(sender=cast.deployer, to=at["usdg"], data=encode("mint(address,uint64)", actor, DOLLARS_RAW))
    for token in copied_tokens(built):
        amount = worth_raw(token, GIFT_WEI)
        for actor in (cast.annexer, *(cast.regulars if token.symbol in FORKED else ())):
            yield Tx(sender=cast.issuer, to=token.address, data=encode("transfer(address,uint256)", actor, amount))


def approve_all(made: Builder, built: Deployment, markets: list[Market], forks: list[ForkPlan]) -> None:
    """Wrap ETH, and approve all that the annexer adds as liquidity."""
    made.send(Tx(sender=made.owner, to=built.at["weth"], data=encode("deposit()"), value_wei=WRAPPED_WEI))
    wanted = dict.fromkeys((token, market.place.venue) for market in markets for token in (market.place.token0, market.place.token1))
    for token, venue in wanted:
        made.send(*built.venues.approvals(made.owner, token, venue))
    for fork in forks:
        made.send(*fork.approvals(made.owner))


def launches(made: Builder, launchpad: str) -> tuple[Launched, ...]:
    """Start the tokens of the launchpad; it makes two contracts each time."""
    found = []
    for index, (name, symbol) in enumerate(LAUNCHES):
        made.send(Tx(sender=made.owner, to=launchpad, data=encode("launch(string,string)", name, symbol), gas=LAUNCH_GAS))
        token, curve = (created_address(launchpad, 2 * index + rank) for rank in (1, 2))
        found.append(Launched(symbol=symbol, token=token, curve=curve))
    return tuple(found)


def exchange(fork: ForkPlan) -> Exchange:
    return Exchange(
        name=fork.name,
        shape=fork.shape,
        factory=fork.factory,
        router=fork.router,
        quoter=fork.quoter,
        swap_topic=fork.swap_topic,
        venues=fork.venues,
        markets=fork.markets,
    )


def regulars_outfit(built: Deployment, found: Annex) -> Iterator[Tx]:
    """Let the regulars buy everywhere in the annex, and sell where a hook lets them."""
    at, venues = built.at, built.venues
    on_v4 = [at["usdg"], *(stall.token.address for stall in found.stalls if stall.sold_back)]
    for trader in built.cast.regulars:
        yield Tx(sender=trader, to=at["weth"], data=encode("deposit()"), value_wei=WRAPPED_WEI)
        for token in on_v4:
            yield from venues.approve(trader, token, (at["permit2"], at["universal_router"]))
        for fork in found.forks:
            for token in dict.fromkeys(token for market in fork.markets for token in (market.place.token0, market.place.token1)):
                yield from venues.approve(trader, token, (fork.router,))
        yield Tx(sender=trader, to=found.launched[0].token, data=encode("approve(address,uint256)", found.launched[0].curve, MAX))

