"""Places: what stands on the local chain and who acts there, as the deployment left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chain.devnet.compile import Artifact
from chain.devnet.venues import Place, Venues

if TYPE_CHECKING:
    from chain.devnet.annex import Annex

ETH = 10**18
USDG = 10**6
HONEST = "honest"


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
    annexer: str = ""
    """Who builds the annex."""
    regulars: tuple[str, ...] = ()
    """Who trades there."""
    stranger: str = ""
    """Who the rival's tricks would enrich; sends nothing."""

    @classmethod
    def of(cls, accounts: Sequence[str]) -> Cast:
        names = [account.lower() for account in accounts]
        return cls(*names[:5], tuple(names[5:8]), tuple(names[8:10]), tuple(names[10:12]), names[19], names[12], tuple(names[13:16]), names[16])


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
    """weth, usdg or native."""
    place: Place
    depth_wei: int
    """Worth of the hub's side at the opening."""
    raw: tuple[int, int]
    """Base units of token0 and token1 at the opening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Everything that stands before the market moves."""

    at: dict[str, str]
    """Core contracts by name, lower case."""
    cast: Cast
    venues: Venues
    tokens: tuple[Token, ...]
    markets: tuple[Market, ...]
    plain: Artifact
    """What new launches are made of."""
    height: int
    """The last block of the deployment."""
    annex: Annex
    """What was built beside the plain market."""

    def token(self, symbol: str) -> Token:
        """An honest token by symbol, or one of the zoo by kind."""
        for token in self.tokens:
            if symbol in (token.symbol if token.kind == HONEST else token.kind,):
                return token
        raise KeyError(symbol)
