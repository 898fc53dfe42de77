"""The token zoo: every kind of odd token, counted out and named, ready to be deployed.

The owner, who deploys a token and adds its liquidity, is bound by none of its oddities, so that a pool can be made for
every kind. Order: deploy, `before_pools`, pools, `after_pools`. Names tell an agent nothing about a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chain.devnet.kinds import NO_POOL, SUPPLY, Expected, Kind, Tokens, Word, ZooCall, kinds

DEPTH_WEI = 10 * 10**18
POOLED = 200_000
"""A usual pool: so much ETH against so many whole tokens."""
DEPLOY_GAS = 30_000_000
"""Gas limit that deploys any kind; the long names cost most."""
ROUTES = ("v2/weth", "v3/weth", "v4/native", "v2/usdg", "v3/usdg")
"""Kinds of route that some kind of token has."""
COLOURS = ("Amber", "Cobalt", "Dune", "Ember", "Fern", "Garnet", "Hazel", "Indigo", "Jade", "Lilac", "Maple", "Olive")
ANIMALS = ("Badger", "Crane", "Dormouse", "Egret", "Falcon", "Gecko", "Heron", "Ibis", "Jackal", "Kestrel")


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool to make for a token; v3 and v4 positions span the full range."""

    venue: str
    """v2, v3 or v4."""
    quote: str
    """weth, usdg or native."""
    fee_ppm: int
    depth_wei: int
    """Worth of the quote side in ETH; a USDG side is counted out at the chain's own price."""
    token_raw: int
    """The token's side."""

    @property
    def route(self) -> str:
        """The kind of route that leads through it: `v2/weth`."""
        return f"{self.venue}/{self.quote}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooToken:
    """One kind of token."""

    kind: str
    artifact: str
    args: tuple
    """Constructor arguments."""
    decimals: int
    """What an honest wallet would show; a kind may tell something else or nothing."""
    supply_raw: int
    pools: tuple[PoolSpec, ...]
    before_pools: tuple[ZooCall, ...]
    after_pools: tuple[ZooCall, ...]
    outcomes: Kind
    """The row of the table with the expected outcomes."""
    note: str

    @property
    def buyable(self) -> bool:
        """Whether a wallet can come by it with a real buy; else the owner hands it out."""
        return self.outcomes.buyable

    def expected(self, route: str, side: str) -> Expected:
        """The outcome of an order on this side by this kind of route (`v2/weth`)."""
        if all(pool.route != route for pool in self.pools):
            return NO_POOL
        usual = self.outcomes.buy if side == "buy" else self.outcomes.sell
        return self.outcomes.apart.get((route, side), usual)


def resolved(calls: Sequence[ZooCall], token: str, pools: Sequence[str]) -> Iterator[tuple[str, str, tuple]]:
    """Fill the addresses into a token's calls.

    Shapes: (target, signature, values); a call that names each pool comes once per distinct address, and the pool
    manager's address stands for a v4 pool.
    """
    for call in calls:
        words = (call.target, *call.values)
        for pool in dict.fromkeys(pools) if Word.EACH_POOL in words else ("",):
            target, *values = (_filled(word, {Word.TOKEN: token, Word.EACH_POOL: pool}) for word in words)
            yield target, call.signature, tuple(values)


def _filled(value: object, known: dict) -> object:
    return known[value] if isinstance(value, Word) else value


def _token(index: int, kind: Kind) -> ZooToken:
    unit = _unit(kind.decimals)
    known = dict(zip((Word.NAME, Word.SYMBOL), _label(index), strict=True))
    return ZooToken(
        kind=kind.kind,
        artifact=kind.artifact,
        args=tuple(_filled(value, known) for value in _counted(kind.args, unit)),
        decimals=kind.decimals,
        supply_raw=SUPPLY * unit,
        pools=tuple(PoolSpec(*route.split("/"), fee_ppm, DEPTH_WEI, POOLED * unit) for route, fee_ppm in kind.pools),
        before_pools=tuple(ZooCall(call.signature, _counted(call.values, unit), call.target) for call in kind.before),
        after_pools=kind.after,
        outcomes=kind,
        note=kind.note,
    )


def _unit(decimals: int) -> int:
    """Raw units of one token; v2 keeps reserves in 112 bits and spends need some units, so absurd ones count as others."""
    return 10 ** (decimals if 0 < decimals <= 24 else 18) if decimals else 1_000


def _counted(values: tuple, unit: int) -> tuple:
    return tuple(value.whole * unit if isinstance(value, Tokens) else value for value in values)


def _label(index: int) -> tuple[str, str]:
    colour, animal = COLOURS[index % len(COLOURS)], ANIMALS[index // len(COLOURS)]
    return f"{colour} {animal}", f"{colour[:2]}{animal[:2]}".upper()


ZOO: tuple[ZooToken, ...] = tuple(_token(index, kind) for index, kind in enumerate(kinds()))
"""Every kind, in the order in which they are deployed."""
