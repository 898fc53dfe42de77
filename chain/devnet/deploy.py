"""The deployment: core contracts, honest tokens with their pools, actors with money; the same chain in every build.

Order and senders are fixed, hence every address is. `networks/devnet.toml` names the addresses; a test holds it to them.
Source: design §7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chain.devnet.assets import ASSETS, ETH_USD, ETHER_POOLS, NATIVE_POOLS, USD, Asset, PoolSpec
from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.compile import Artifact, artifacts
from chain.devnet.core import DEPLOY_GAS, deploy_core
from chain.devnet.miner import Miner
from chain.devnet.packages import code_hash
from chain.devnet.venues import NATIVE, Place, Venues

ETH = 10**18
USDG = 10**6
WRAPPED_WEI = 5_000_000 * ETH
DOLLARS_RAW = 10_000_000_000 * USDG


@dataclass(frozen=True, slots=True)
class Cast:
    """Who acts on the local chain; the node's own unlocked accounts, by role."""

    deployer: str
    issuer: str
    zookeeper: str
    launcher: str
    arbitrageur: str
    noise: tuple[str, ...]
    momentum: tuple[str, ...]
    providers: tuple[str, ...]
    visitor: str
    """Never used by the market: for whoever uses the chain from outside."""

    @classmethod
    def of(cls, accounts: Sequence[str]) -> Cast:
        names = [account.lower() for account in accounts]
        return cls(*names[:5], tuple(names[5:8]), tuple(names[8:10]), tuple(names[10:12]), names[19])


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that was deployed."""

    symbol: str
    kind: str
    """`honest`, or the kind of the zoo."""
    address: str
    decimals: int
    price: int
    """Dollars × 10¹⁸ per whole token at block 0."""
    artifact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """A pool of the deployment with the token that it prices."""

    token: Token | None
    """None: the pool prices ETH in dollars."""
    hub: str
    place: Place
    depth_wei: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Everything that stands before the market moves."""

    at: dict[str, str]
    """Core contracts by name, lower case."""
    cast: Cast
    venues: Venues
    tokens: tuple[Token, ...]
    markets: tuple[Market, ...]
    height: int
    """The last block of the deployment."""

    def token(self, symbol: str) -> Token:
        """An honest token by symbol, or one of the zoo by kind."""
        for token in self.tokens:
            if symbol in (token.symbol if token.kind == "honest" else token.kind,):
                return token
        raise KeyError(symbol)


def deploy(miner: Miner, toolchain: Path) -> Deployment:
    """Build everything on an empty chain. Raises: ChainFault naming the transaction that failed."""
    compiled = artifacts(toolchain)
    cast = Cast.of(miner.node.call("eth_accounts", []))
    at = deploy_core(miner, toolchain, compiled, cast.deployer)
    venues = Venues(at, code_hash(toolchain, "UniswapV2Pair"), code_hash(toolchain, "UniswapV3Pool"))
    tokens = issue(miner, compiled, cast.issuer)
    fund_issuer(miner, at, cast)
    markets = [*ether_markets(venues), *(market for asset, token in zip(ASSETS, tokens, strict=True) for market in token_markets(venues, asset.pools, token))]
    open_markets(miner, venues, cast.issuer, markets)
    return Deployment(at=at, cast=cast, venues=venues, tokens=tokens, markets=tuple(markets), height=miner.height)


def issue(miner: Miner, compiled: dict[str, Artifact], issuer: str) -> tuple[Token, ...]:
    """Create the honest tokens; their whole supply is the issuer's."""
    first = miner.nonce(issuer)
    tokens = tuple(
        Token(symbol=asset.symbol, kind="honest", address=created_address(issuer, first + index), decimals=asset.decimals, price=asset.price, artifact=asset.artifact)
        for index, asset in enumerate(ASSETS)
    )
    miner.mine_all([Tx(sender=issuer, to=None, data=creation(compiled, asset), gas=DEPLOY_GAS) for asset in ASSETS])
    return tokens


def creation(compiled: dict[str, Artifact], asset: Asset) -> str:
    values = (asset.name, asset.symbol, asset.decimals, asset.supply * 10**asset.decimals)
    return compiled[asset.artifact].bytecode + arguments(("string", "string", "uint8", "uint256"), values)


def fund_issuer(miner: Miner, at: dict[str, str], cast: Cast) -> None:
    mint = encode("mint(address,uint64)", cast.issuer, DOLLARS_RAW)
    miner.mine_all(
        [
            Tx(sender=cast.deployer, to=at["usdg"], data=mint),
            Tx(sender=cast.issuer, to=at["weth"], data=encode("deposit()"), value_wei=WRAPPED_WEI),
        ]
    )


def ether_markets(venues: Venues) -> list[Market]:
    """The pools that price ETH in dollars."""
    at = venues.at
    return [
        Market(token=None, hub=spec.hub, place=venues.place(spec.venue, base, at["usdg"], spec.fee_ppm), depth_wei=spec.depth_meth * 10**15)
        for base, specs in ((at["weth"], ETHER_POOLS), (NATIVE, NATIVE_POOLS))
        for spec in specs
    ]


def token_markets(venues: Venues, pools: Sequence[PoolSpec], token: Token) -> list[Market]:
    hubs = {"weth": venues.at["weth"], "usdg": venues.at["usdg"], "native": NATIVE}
    return [Market(token=token, hub=spec.hub, place=venues.place(spec.venue, token.address, hubs[spec.hub], spec.fee_ppm), depth_wei=spec.depth_meth * 10**15) for spec in pools]


def open_markets(miner: Miner, venues: Venues, owner: str, markets: Sequence[Market]) -> None:
    """Make pools and fill them, after one round of approvals."""
    wanted = dict.fromkeys((token, market.place.venue) for market in markets for token in (market.place.token0, market.place.token1))
    approvals = [tx for token, venue in wanted for tx in venues.approvals(owner, token, venue)]
    openings = [tx for market in markets for tx in venues.open(owner, market.place, *amounts(venues, market))]
    miner.mine_all(approvals + openings)


def amounts(venues: Venues, market: Market) -> tuple[int, int]:
    """Base units of token0 and token1 that give the market its depth at the opening price."""
    worth = market.depth_wei
    raw = {venues.at["weth"]: worth, NATIVE: worth, venues.at["usdg"]: worth * ETH_USD // USD * USDG // ETH}
    if market.token:
        raw[market.token.address] = worth * ETH_USD * 10**market.token.decimals // (market.token.price * ETH)
    return raw[market.place.token0], raw[market.place.token1]
