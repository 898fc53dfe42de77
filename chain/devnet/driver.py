"""The driver: moves the market by one block at a time, with real transactions of several kinds of trader.

What happens in a block is a function of the seed, the block's number and the chain's own state, so that the same seed
gives the same block hashes, whether played in one go or rebuilt after a loss. Source: design §7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from random import Random

from chain.devnet.assets import ASSETS, ETH_SIGMA_PPM, ETH_USD
from chain.devnet.calls import Tx
from chain.devnet.places import HONEST, Deployment, Market
from chain.devnet.kinds import EQUAL
from chain.devnet.launches import YOUNG, due, launch
from chain.devnet.miner import Miner
from chain.devnet.prices import ETHER, Paths, Tape
from chain.devnet.regulars import visits
from chain.devnet.traders import Move, Scene, arbitrageur, gambler, keeper, momentum, noise, pair_provider, range_provider, rug, sniper
from chain.devnet.zoo import ZOO

VISIT_BLOCKS = 3
"""An arbitrageur visits each pool once in so many blocks; those of ETH in dollars in every one."""
NOISE_MAX = 3
MOMENTUM_BLOCKS = 4
WATCHED = 6
"""How many pools momentum traders watch."""
PROVIDER_BLOCKS = 6
ODD_AGE = 45
"""Blocks of market before odd tokens are traded too; until then their pools are as they were made."""
BOUGHT = frozenset(odd.kind for odd in ZOO if odd.buyable)
"""Kinds of the zoo that can be bought, though not all sold again."""
SOLD = frozenset(odd.kind for odd in ZOO if odd.outcomes.sell == EQUAL)
Planned = tuple[str, Move]


class Driver:
    """The market of one chain."""

    def __init__(self, miner: Miner, deployment: Deployment, seed: int, tape: Tape | None = None) -> None:
        self.miner = miner
        self.deployment = deployment
        self.seed = seed
        opening = {asset.symbol: asset.price for asset in ASSETS} | {ETHER: ETH_USD}
        sigma = {asset.symbol: asset.sigma_ppm for asset in ASSETS} | {ETHER: ETH_SIGMA_PPM}
        self.scene = Scene(Paths(opening, sigma, tape), feed_answer=0)
        self.tally: Counter[tuple[str, bool]] = Counter()
        """Transactions by kind of trader and success."""
        self._ether = [market for market in deployment.markets if market.token is None]
        self._traded = [market for market in deployment.markets if market.token and market.token.kind == HONEST]
        self._odd = [market for market in deployment.markets if market.token and market.token.kind in BOUGHT and market.hub != "usdg"]

    def step(self) -> None:
        """Seal the next block with what everybody wants in it. Raises: Refused, ChainFault."""
        block = self.miner.height + 1
        age = block - self.deployment.height
        rng = Random(f"{self.seed}/{block}")
        self.scene.paths.advance(rng, age, age * self.miner.block_time_ms)
        kinds, txs = self._decided([*self._planned(block, age, rng)])
        launched = self._launched(block, age, rng)
        self.miner.mine([*txs, *launched])
        self._count([*kinds, *["launch"] * len(launched)])

    def remember(self) -> Scene:
        """A copy of what a snapshot must bring back."""
        return deepcopy(self.scene)

    def _planned(self, block: int, age: int, rng: Random) -> Iterator[Planned]:
        deployment, scene, cast = self.deployment, self.scene, self.deployment.cast
        yield "feed", keeper(deployment, scene, block)
        for market in self._ether:
            yield "arbitrage", arbitrageur(deployment, scene, market)
        for market in self._traded[block % VISIT_BLOCKS :: VISIT_BLOCKS]:
            yield "arbitrage", arbitrageur(deployment, scene, market)
        for _ in range(rng.randrange(NOISE_MAX + 1)):
            yield "noise", noise(deployment, weighted(self._traded, rng), rng.choice(cast.noise), rng)
        if block % MOMENTUM_BLOCKS == 0:
            market = self._traded[block // MOMENTUM_BLOCKS % WATCHED * len(self._traded) // WATCHED]
            yield "momentum", momentum(deployment, scene, market, rng.choice(cast.momentum))
        if block % PROVIDER_BLOCKS == 0:
            yield "liquidity", self._provided(rng)
        if age > ODD_AGE:
            yield "gambler", self._gambled(rng)
        yield from self._launches(block, rng)
        yield from visits(deployment, scene, block, self.miner.time_of(block), Random(f"annex {self.seed}/{block}"))

    def _provided(self, rng: Random) -> Move:
        market = rng.choice([market for market in self._traded if market.place.venue != "v4"])
        provide = pair_provider if market.place.venue == "v2" else range_provider
        return provide(self.deployment, market, rng.choice(self.deployment.cast.providers), rng)

    def _gambled(self, rng: Random) -> Move:
        market = rng.choice(self._odd)
        sells = market.place.venue == "v2" and market.token is not None and market.token.kind in SOLD
        return gambler(self.deployment, market, rng.choice(self.deployment.cast.noise), sells, rng)

    def _launches(self, block: int, rng: Random) -> Iterator[Planned]:
        for born in self.scene.launches:
            if born.pulled_block == block:
                yield "rug", rug(self.deployment, born)
        standing = [born for born in self.scene.launches if not born.pulled_block or block < born.pulled_block]
        self.scene.launches = [born for born in self.scene.launches if block < max(born.pulled_block, born.born_block + YOUNG)]
        for born in standing:
            if rng.randrange(3) == 0:
                yield "sniper", sniper(self.deployment, born, rng.choice(self.deployment.cast.noise), rng)

    def _launched(self, block: int, age: int, rng: Random) -> list[Tx]:
        index = due(age)
        if index is None:
            return []
        born, txs = launch(self.deployment, self.miner.nonce(self.deployment.cast.launcher), index, block, rng)
        self.scene.launches.append(born)
        return txs

    def _decided(self, planned: list[Planned]) -> tuple[list[str], list[Tx]]:
        """Let every move read and decide, in as few requests as the longest one needs; kinds and transactions in order."""
        asked = {index: next(move) for index, (_, move) in enumerate(planned)}
        wanted: dict[int, list[Tx]] = {}
        while asked:
            answers = iter(self.miner.node.batch([request for requests in asked.values() for request in requests]))
            following = {}
            for index, requests in asked.items():
                try:
                    following[index] = planned[index][1].send([next(answers) for _ in requests])
                except StopIteration as decided:
                    wanted[index] = decided.value
            asked = following
        flat = [(planned[index][0], tx) for index in sorted(wanted) for tx in wanted[index]]
        return [kind for kind, _ in flat], [tx for _, tx in flat]

    def _count(self, kinds: list[str]) -> None:
        receipts = self.miner.receipts()
        assert len(receipts) == len(kinds), f"block {self.miner.height}: {len(kinds)} transactions sent, {len(receipts)} mined"
        self.tally.update((kind, receipt["status"] == "0x1") for kind, receipt in zip(kinds, receipts, strict=True))


def weighted(markets: list[Market], rng: Random) -> Market:
    """A market, the deeper the likelier."""
    left = rng.randrange(sum(market.depth_wei for market in markets))
    for market in markets:
        left -= market.depth_wei
        if left < 0:
            return market
    raise AssertionError("unreachable: the weights add up")
