"""The crowd: many more plain tokens with pools on the local chain, through its admin door.

The devnet trades about a hundred tokens; a mark of 500 holdings needs 500 that can be sold. Each has a v2 pool against ETH,
every third a v3 pool besides, so that marks choose between routes.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.devnet import Devnet
from chain.devnet.foundation import DEPLOY_GAS
from chain.devnet.places import ETH

SUPPLY_RAW = 10**27
POOLED_RAW, POOLED_WEI = SUPPLY_RAW // 10, 5 * ETH
V3_EVERY, V3_FEE_PPM = 3, 3_000
BLOCK_TXS_MAX = 120


def settle(chain: Devnet, count: int) -> list[str]:
    """Put `count` tokens with their pools on the chain; returns their addresses."""
    maker, venues = chain.deployment.cast.visitor, chain.deployment.venues
    weth = chain.addresses["weth"]
    first = chain.miner.nonce(maker)
    tokens = [created_address(maker, first + number) for number in range(count)]
    _mine(chain, [_creation(chain, maker, number) for number in range(count)])
    _mine(chain, [Tx(sender=maker, to=weth, data=encode("deposit()"), value_wei=count * POOLED_WEI), *venues.approvals(maker, weth, "v3")])
    _mine(chain, [tx for number, token in enumerate(tokens) for tx in _pools(chain, maker, number, token)])
    return tokens


def _creation(chain: Devnet, maker: str, number: int) -> Tx:
    values = (f"Crowd {number}", f"C{number}", 18, SUPPLY_RAW)
    plain = chain.deployment.plain.bytecode + arguments(("string", "string", "uint8", "uint256"), values)
    return Tx(sender=maker, to=None, data=plain, gas=DEPLOY_GAS)


def _pools(chain: Devnet, maker: str, number: int, token: str) -> list[Tx]:
    weth, venues, txs = chain.addresses["weth"], chain.deployment.venues, []
    for venue in ("v2", "v3") if number % V3_EVERY == 0 else ("v2",):
        place = venues.place(venue, token, weth, V3_FEE_PPM)
        raw = (POOLED_RAW, POOLED_WEI) if place.token0 == token else (POOLED_WEI, POOLED_RAW)
        txs += [*venues.approvals(maker, token, venue), *venues.open(maker, place, *raw)]
    return txs


def _mine(chain: Devnet, txs: Sequence[Tx]) -> None:
    for start in range(0, len(txs), BLOCK_TXS_MAX):
        chain.miner.mine_all(txs[start : start + BLOCK_TXS_MAX])
