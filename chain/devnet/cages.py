"""The cages: the zoo put on a chain, every kind with its pools.

Each step is one block, or a few where a block would be full: deploy, calls before the pools, approvals, pools, calls
after. Everything must succeed; a kind that its own owner cannot make a pool for is a bug of the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chain.devnet.assets import ETH_USD, USD
from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.compile import Artifact
from chain.devnet.kinds import ZooCall
from chain.devnet.miner import Miner
from chain.devnet.venues import NATIVE, Place, Venues
from chain.devnet.zoo import DEPLOY_GAS, ZOO, PoolSpec, ZooToken, resolved

ETH = 10**18
USDG = 10**6
PURSE_WEI = 1_000 * ETH
PURSE_USDG_RAW = 3_000_000 * USDG
TXS_MAX = 30
"""Transactions in one block: with their gas limits they must fit into it."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A kind that stands on the chain."""

    token: ZooToken
    address: str
    places: tuple[Place, ...]
    """Its pools, in the order of `token.pools`."""

    def place(self, route: str) -> Place | None:
        """The pool that a kind of route leads through."""
        return next((place for spec, place in zip(self.token.pools, self.places, strict=True) if spec.route == route), None)


def open_zoo(miner: Miner, venues: Venues, compiled: Mapping[str, Artifact], minter: str, keeper: str) -> tuple[Exhibit, ...]:
    """Deploy every kind as `keeper` and make its pools; `minter` issues the dollars.

    Shapes: in the order of ZOO. Raises: ChainFault naming the transaction that failed.
    """
    first = miner.nonce(keeper)
    exhibits = tuple(_exhibit(venues, token, created_address(keeper, first + index)) for index, token in enumerate(ZOO))
    deploys = [Tx(sender=keeper, to=None, data=_creation(compiled[token.artifact], token), gas=DEPLOY_GAS) for token in ZOO]
    steps = (
        deploys,
        _purse(venues, minter, keeper),
        [tx for exhibit in exhibits for tx in _calls(venues, keeper, exhibit, exhibit.token.before_pools)],
        _approvals(venues, keeper, exhibits),
        [tx for exhibit in exhibits for tx in _openings(venues, keeper, exhibit)],
        [tx for exhibit in exhibits for tx in _calls(venues, keeper, exhibit, exhibit.token.after_pools)],
    )
    for txs in steps:
        for start in range(0, len(txs), TXS_MAX):
            miner.mine_all(txs[start : start + TXS_MAX])
    return exhibits


def _exhibit(venues: Venues, token: ZooToken, address: str) -> Exhibit:
    return Exhibit(token, address, tuple(venues.place(spec.venue, address, _hub(venues, spec), spec.fee_ppm) for spec in token.pools))


def _hub(venues: Venues, spec: PoolSpec) -> str:
    return NATIVE if spec.quote == "native" else venues.at[spec.quote]


def _creation(artifact: Artifact, token: ZooToken) -> str:
    return artifact.bytecode + arguments(artifact.constructor_types, token.args)


def _purse(venues: Venues, minter: str, keeper: str) -> list[Tx]:
    return [
        Tx(sender=minter, to=venues.at["usdg"], data=encode("mint(address,uint64)", keeper, PURSE_USDG_RAW)),
        Tx(sender=keeper, to=venues.at["weth"], data=encode("deposit()"), value_wei=PURSE_WEI),
    ]


def _calls(venues: Venues, keeper: str, exhibit: Exhibit, calls: Sequence[ZooCall]) -> Iterator[Tx]:
    pools = [venues.at["v4_pool_manager"] if place.venue == "v4" else place.key for place in exhibit.places]
    for target, signature, values in resolved(calls, exhibit.address, pools):
        yield Tx(sender=keeper, to=target, data=encode(signature, *values))


def _approvals(venues: Venues, keeper: str, exhibits: Sequence[Exhibit]) -> list[Tx]:
    places = [place for exhibit in exhibits for place in exhibit.places]
    wanted = dict.fromkeys((token, place.venue) for place in places for token in (place.token0, place.token1))
    return [tx for token, venue in wanted for tx in venues.approvals(keeper, token, venue)]


def _openings(venues: Venues, keeper: str, exhibit: Exhibit) -> Iterator[Tx]:
    for spec, place in zip(exhibit.token.pools, exhibit.places, strict=True):
        raw = {exhibit.address: spec.token_raw, _hub(venues, spec): _quote_raw(spec)}
        yield from venues.open(keeper, place, raw[place.token0], raw[place.token1])


def _quote_raw(spec: PoolSpec) -> int:
    return spec.depth_wei * ETH_USD // USD * USDG // ETH if spec.quote == "usdg" else spec.depth_wei
