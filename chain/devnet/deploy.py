"""The deployment: core contracts, honest tokens with their pools, actors with money; the same chain in every build.

Order and senders are fixed, hence every address is. `networks/devnet.toml` names the addresses; a test holds it to them.
Source: design §7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from chain.devnet.annex import NO_ANNEX, annex
from chain.devnet.assets import ASSETS, ETH_USD, ETHER_POOLS, NATIVE_POOLS, USD, Asset
from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.compile import Artifact, artifacts
from chain.devnet.foundation import DEPLOY_GAS, deploy_foundation
from chain.devnet.miner import Miner
from chain.devnet.outfit import outfit
from chain.devnet.packages import code_hash
from chain.devnet.places import ETH, HONEST, USDG, Cast, Deployment, Market, Token
from chain.devnet.venues import NATIVE, Place, Venues
from chain.devnet.zoo import ZOO, ZooCall, ZooToken, resolved

LAUNCHED = "PlainOz"
"""What new launches are made of."""
MILLI = 10**15
WRAPPED_WEI = 5_000_000 * ETH
DOLLARS_RAW = 10_000_000_000 * USDG


def deploy(miner: Miner, toolchain: Path) -> Deployment:
    """Build everything on an empty chain. Raises: ChainFault naming the transaction that failed."""
    compiled = artifacts(toolchain)
    cast = Cast.of(miner.node.call("eth_accounts", []))
    at = deploy_foundation(miner, toolchain, compiled, cast.deployer)
    venues = Venues(at, code_hash(toolchain, "UniswapV2Pair"), code_hash(toolchain, "UniswapV3Pool"))
    fund_owners(miner, at, cast)
    tokens = issue(miner, compiled, cast.issuer)
    markets = [
        *ether_markets(venues),
        *(market for asset, token in zip(ASSETS, tokens, strict=True) for market in token_markets(venues, asset, token)),
    ]
    miner.mine_all(openings(venues, cast.issuer, markets))
    zoo_tokens, zoo_markets = deploy_zoo(miner, compiled, venues, cast.zookeeper)
    plain = Deployment(
        at=at,
        cast=cast,
        venues=venues,
        tokens=(*tokens, *zoo_tokens),
        markets=(*markets, *zoo_markets),
        plain=compiled[LAUNCHED],
        height=miner.height + 1,
        annex=NO_ANNEX,
    )
    beside, txs = annex(miner, toolchain, compiled, plain)
    miner.mine_all([*outfit(plain), *txs])
    return replace(plain, annex=beside)


def fund_owners(miner: Miner, at: dict[str, str], cast: Cast) -> None:
    """Give those who open pools dollars and wrapped ETH."""
    owners = (cast.issuer, cast.zookeeper)
    mints = [Tx(sender=cast.deployer, to=at["usdg"], data=encode("mint(address,uint64)", owner, DOLLARS_RAW)) for owner in owners]
    wraps = [Tx(sender=owner, to=at["weth"], data=encode("deposit()"), value_wei=WRAPPED_WEI) for owner in owners]
    miner.mine_all(mints + wraps)


def issue(miner: Miner, compiled: Mapping[str, Artifact], issuer: str) -> tuple[Token, ...]:
    """Create the honest tokens; their whole supply is the issuer's."""
    first = miner.nonce(issuer)
    tokens = tuple(
        Token(
            symbol=asset.symbol,
            kind=HONEST,
            address=created_address(issuer, first + index),
            decimals=asset.decimals,
            price=asset.price,
            artifact=asset.artifact,
        )
        for index, asset in enumerate(ASSETS)
    )
    miner.mine_all([Tx(sender=issuer, to=None, data=creation(compiled, asset), gas=DEPLOY_GAS) for asset in ASSETS])
    return tokens


def creation(compiled: Mapping[str, Artifact], asset: Asset) -> str:
    values = (asset.name, asset.symbol, asset.decimals, asset.supply * 10**asset.decimals)
    return compiled[asset.artifact].bytecode + arguments(("string", "string", "uint8", "uint256"), values)


def ether_markets(venues: Venues) -> list[Market]:
    """The pools that price ETH in dollars."""
    weth, usdg = venues.at["weth"], venues.at["usdg"]
    specs = [(weth, spec) for spec in ETHER_POOLS] + [(NATIVE, spec) for spec in NATIVE_POOLS]
    return [
        market_of(
            venues, None, base, spec.depth_meth * MILLI, "usdg", venues.place(spec.venue, base, usdg, spec.fee_ppm), spec.depth_meth * MILLI
        )
        for base, spec in specs
    ]


def token_markets(venues: Venues, asset: Asset, token: Token) -> list[Market]:
    """The pools of an honest token, at its opening price."""
    hubs, made = hub_addresses(venues), []
    for spec in asset.pools:
        depth_wei = spec.depth_meth * MILLI
        token_raw = depth_wei * ETH_USD * 10**token.decimals // (token.price * ETH)
        made.append(
            market_of(
                venues,
                token,
                token.address,
                token_raw,
                spec.hub,
                venues.place(spec.venue, token.address, hubs[spec.hub], spec.fee_ppm),
                depth_wei,
            )
        )
    return made


def market_of(venues: Venues, token: Token | None, base: str, base_raw: int, hub: str, place: Place, depth_wei: int) -> Market:
    """A market with `base_raw` of `base` against a hub's worth of `depth_wei`."""
    hub_raw = depth_wei * ETH_USD // USD * USDG // ETH if hub == "usdg" else depth_wei
    raw = (base_raw, hub_raw) if place.token0 == base else (hub_raw, base_raw)
    return Market(token=token, hub=hub, place=place, depth_wei=depth_wei, raw=raw)


def hub_addresses(venues: Venues) -> dict[str, str]:
    return {"weth": venues.at["weth"], "usdg": venues.at["usdg"], "native": NATIVE}


def openings(venues: Venues, owner: str, markets: Sequence[Market]) -> list[Tx]:
    """Make pools and fill them, after one round of approvals."""
    wanted = dict.fromkeys((token, market.place.venue) for market in markets for token in (market.place.token0, market.place.token1))
    approvals = [tx for token, venue in wanted for tx in venues.approvals(owner, token, venue)]
    return approvals + [tx for market in markets for tx in venues.open(owner, market.place, *market.raw)]


def deploy_zoo(miner: Miner, compiled: Mapping[str, Artifact], venues: Venues, owner: str) -> tuple[list[Token], list[Market]]:
    """Deploy every odd token with its pools, in the zoo's own order."""
    first, markets = miner.nonce(owner), []
    tokens = [zoo_token(odd, created_address(owner, first + index)) for index, odd in enumerate(ZOO)]
    pools = [zoo_markets(venues, odd, token) for odd, token in zip(ZOO, tokens, strict=True)]
    miner.mine_all([Tx(sender=owner, to=None, data=zoo_creation(compiled, odd), gas=DEPLOY_GAS) for odd in ZOO])
    miner.mine_all(
        [
            tx
            for odd, token, mine in zip(ZOO, tokens, pools, strict=True)
            for tx in owner_calls(venues, owner, odd.before_pools, token, mine)
        ]
    )
    markets = [market for mine in pools for market in mine]
    miner.mine_all(openings(venues, owner, markets))
    miner.mine_all(
        [tx for odd, token, mine in zip(ZOO, tokens, pools, strict=True) for tx in owner_calls(venues, owner, odd.after_pools, token, mine)]
    )
    return tokens, markets


def zoo_token(odd: ZooToken, address: str) -> Token:
    pool = odd.pools[0]
    price = pool.depth_wei * ETH_USD * 10**odd.decimals // (pool.token_raw * ETH)
    return Token(symbol="", kind=odd.kind, address=address, decimals=odd.decimals, price=price, artifact=odd.artifact)


def zoo_creation(compiled: Mapping[str, Artifact], odd: ZooToken) -> str:
    artifact = compiled[odd.artifact]
    return artifact.bytecode + arguments(artifact.constructor_types, odd.args)


def zoo_markets(venues: Venues, odd: ZooToken, token: Token) -> list[Market]:
    hubs = hub_addresses(venues)
    return [
        market_of(
            venues,
            token,
            token.address,
            pool.token_raw,
            pool.quote,
            venues.place(pool.venue, token.address, hubs[pool.quote], pool.fee_ppm),
            pool.depth_wei,
        )
        for pool in odd.pools
    ]


def owner_calls(venues: Venues, owner: str, calls: Sequence[ZooCall], token: Token, markets: Sequence[Market]) -> list[Tx]:
    """The owner's calls around the making of pools; a v4 pool is meant by the pool manager."""
    pools = [venues.at["v4_pool_manager"] if market.place.venue == "v4" else market.place.key for market in markets]
    return [
        Tx(sender=owner, to=target, data=encode(signature, *values)) for target, signature, values in resolved(calls, token.address, pools)
    ]
