"""Launches: new tokens that appear with a pool of their own while the market runs.

Every fortieth block one is born; of each four the first has its liquidity pulled half a minute later.
"""

from __future__ import annotations

from random import Random

from chain.devnet.assets import ETH_USD
from chain.devnet.calls import Tx, arguments, created_address
from chain.devnet.foundation import DEPLOY_GAS
from chain.devnet.places import ETH, HONEST, Deployment, Market, Token
from chain.devnet.traders import Launch

FIRST_AGE, EVERY = 8, 40
"""Blocks of market before the first launch, and between two."""
RUG_EVERY, RUG_AGE = 4, 30
YOUNG = 60
"""Blocks during which a launch is traded."""
SUPPLY = 1_000_000_000
DECIMALS = 18
HEADS = ("Moon", "Pixel", "Turbo", "Captain", "Velvet", "Quantum", "Sleepy", "Golden", "Feral", "Neon")
TAILS = ("Otter", "Waffle", "Comet", "Turnip", "Wizard", "Heron", "Biscuit", "Goblin", "Pickle", "Marmot")


def due(age: int) -> int | None:
    """Which launch is due at this age of the market, if one is."""
    index, rest = divmod(age - FIRST_AGE, EVERY)
    return index if index >= 0 and rest == 0 else None


def launch(deployment: Deployment, nonce: int, index: int, block: int, rng: Random) -> tuple[Launch, list[Tx]]:
    """A new token with a pool, and the transactions that make them: a v2 pair, of each four the third a v3 pool."""
    name, depth_wei = f"{rng.choice(HEADS)} {rng.choice(TAILS)}", ETH * (2 + rng.randrange(8))
    pooled_raw = SUPPLY * 10**DECIMALS * 8 // 10
    maker, venues = deployment.cast.launcher, deployment.venues
    address, weth = created_address(maker, nonce), deployment.at["weth"]
    price = depth_wei * ETH_USD * 10**DECIMALS // (pooled_raw * ETH)
    token = Token(
        symbol=f"{name[0]}{name.split()[1][:3]}{index}".upper(),
        kind=HONEST,
        address=address,
        decimals=DECIMALS,
        price=price,
        artifact=deployment.plain.name,
    )
    place = venues.place("v3", address, weth, 10_000) if index % RUG_EVERY == 2 else venues.place("v2", address, weth, 3_000)
    raw = (pooled_raw, depth_wei) if place.token0 == address else (depth_wei, pooled_raw)
    code = deployment.plain.bytecode + arguments(
        ("string", "string", "uint8", "uint256"), (name, token.symbol, DECIMALS, SUPPLY * 10**DECIMALS)
    )
    txs = [
        Tx(sender=maker, to=None, data=code, gas=DEPLOY_GAS),
        *venues.approvals(maker, address, place.venue),
        *venues.open(maker, place, *raw),
    ]
    born = Launch(
        Market(token=token, hub="weth", place=place, depth_wei=depth_wei, raw=raw), block, block + RUG_AGE if index % RUG_EVERY == 0 else 0
    )
    return born, txs
