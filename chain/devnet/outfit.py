"""The outfit: money and approvals for those who move the market.

Traders trade through SwapRouter02 and, on v4, through Permit2 and the UniversalRouter; providers through the position
manager and the v2 router. Everything is given out by the issuer in ordinary transfers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chain.devnet.assets import ASSETS
from chain.devnet.calls import Tx, encode
from chain.devnet.places import ETH, HONEST, USDG, Deployment, Token

ARBITRAGE_CUT, OTHERS_CUT = 5, 50
"""The part of each supply that the arbitrageur, and each other actor, is given: one in so many."""
DOLLARS_RAW = 1_000_000_000 * USDG
WRAPPED_WEI = 1_000_000 * ETH


def outfit(deployment: Deployment) -> list[Tx]:
    """Give everybody what the market needs of them."""
    cast, at = deployment.cast, deployment.at
    traders = (cast.arbitrageur, *cast.noise, *cast.momentum)
    honest = [token for token in deployment.tokens if token.kind == HONEST]
    return [
        *gifts(deployment, honest, (*traders, *cast.providers)),
        *wraps(deployment, (*traders, *cast.providers, cast.launcher)),
        *[tx for trader in traders for tx in trading_approvals(deployment, honest, trader)],
        *[
            tx
            for provider in cast.providers
            for token in holdings(at, honest)
            for venue in ("v2", "v3")
            for tx in deployment.venues.approvals(provider, token, venue)
        ],
        *deployment.venues.approvals(cast.launcher, at["weth"], "v3"),
    ]


def gifts(deployment: Deployment, honest: Sequence[Token], actors: Sequence[str]) -> Iterator[Tx]:
    issuer, usdg = deployment.cast.issuer, deployment.at["usdg"]
    for actor in actors:
        yield Tx(sender=issuer, to=usdg, data=encode("transfer(address,uint256)", actor, DOLLARS_RAW))
        cut = ARBITRAGE_CUT if actor == deployment.cast.arbitrageur else OTHERS_CUT
        for asset, token in zip(ASSETS, honest, strict=True):
            yield Tx(
                sender=issuer, to=token.address, data=encode("transfer(address,uint256)", actor, asset.supply * 10**asset.decimals // cut)
            )


def wraps(deployment: Deployment, actors: Sequence[str]) -> Iterator[Tx]:
    for actor in actors:
        yield Tx(sender=actor, to=deployment.at["weth"], data=encode("deposit()"), value_wei=WRAPPED_WEI)


def trading_approvals(deployment: Deployment, honest: Sequence[Token], trader: str) -> Iterator[Tx]:
    at, venues = deployment.at, deployment.venues
    on_v4 = {token for market in deployment.markets if market.place.venue == "v4" for token in (market.place.token0, market.place.token1)}
    for token in holdings(at, honest):
        yield from venues.approve(trader, token, (at["swap_router_02"],))
        if token in on_v4:
            yield from venues.approve(trader, token, (at["permit2"], at["universal_router"]))


def holdings(at: dict[str, str], honest: Sequence[Token]) -> list[str]:
    return [at["weth"], at["usdg"], *(token.address for token in honest)]
