"""Assets: the honest tokens of the local chain and the pools they start with.

Prices and depths are a scene, not data of any market: ETH at about 3,000 dollars, main tokens 20 to 200 ETH deep, a
few thin. Units: a price is dollars × 10¹⁸ per whole token; a depth is milli-ETH on each side of the pool; a step is in ppm.
"""

from __future__ import annotations

from dataclasses import dataclass

USD = 10**18
"""One dollar in the unit of prices."""
ETH_USD = 3_000 * USD
"""Price of ETH at block 0."""
ETH_SIGMA_PPM = 400


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool to be made for a token."""

    venue: str
    """v2, v3 or v4."""
    hub: str
    """The other token: weth, usdg or native."""
    fee_ppm: int
    depth_meth: int


@dataclass(frozen=True, slots=True)
class Asset:
    """An honest token."""

    symbol: str
    name: str
    artifact: str
    decimals: int
    price: int
    supply: int
    """Whole tokens."""
    pools: tuple[PoolSpec, ...]
    sigma_ppm: int = 2_500
    """Standard deviation of one block's price step."""


def v2(hub: str, depth_meth: int) -> PoolSpec:
    return PoolSpec("v2", hub, 3_000, depth_meth)


def v3(hub: str, fee_ppm: int, depth_meth: int) -> PoolSpec:
    return PoolSpec("v3", hub, fee_ppm, depth_meth)


def v4(hub: str, fee_ppm: int, depth_meth: int) -> PoolSpec:
    return PoolSpec("v4", hub, fee_ppm, depth_meth)


ETHER_POOLS = (v2("usdg", 300_000), v3("usdg", 500, 600_000), v3("usdg", 3_000, 300_000))
"""Pools of WETH itself against USDG."""
NATIVE_POOLS = (v4("usdg", 500, 400_000),)
"""Pools of native ETH against USDG."""

ASSETS = (
    Asset("LEAF", "Sherwood Leaf", "PlainOz", 18, 85 * USD // 100, 40_000_000, (v2("weth", 150_000), v3("weth", 3_000, 60_000))),
    Asset("ACRN", "Acorn", "PlainSolady", 18, 1_240 * USD // 100, 10_000_000, (v3("weth", 500, 200_000), v2("weth", 40_000))),
    Asset("FERN", "Fern", "PlainVyper", 18, 31 * USD // 10_000, 10_000_000_000, (v2("weth", 90_000), v3("weth", 10_000, 30_000)), 4_000),
    Asset("BARK", "Bark", "PlainOz", 8, 61_000 * USD, 21_000, (v3("weth", 3_000, 180_000), v3("usdg", 500, 100_000)), 900),
    Asset("MOSS", "Moss Dollar", "PlainSolady", 6, USD, 50_000_000, (v3("usdg", 100, 150_000), v3("weth", 500, 80_000)), 30),
    Asset("RUNE", "Rune Stone", "PlainVyper", 18, 210 * USD, 200_000, (v2("usdg", 70_000), v3("usdg", 3_000, 50_000))),
    Asset("PINE", "Pine", "PlainOz", 18, 42 * USD // 10, 20_000_000, (v4("native", 3_000, 100_000), v2("weth", 30_000))),
    Asset("DUSK", "Dusk", "PlainSolady", 9, 45 * USD // 1_000, 500_000_000, (v4("native", 10_000, 60_000), v3("weth", 10_000, 25_000))),
    Asset(
        "BRIM", "Brim", "PlainVyper", 18, 33 * USD, 2_000_000, (v3("weth", 3_000, 45_000), v2("usdg", 25_000), v4("usdg", 3_000, 30_000))
    ),
    Asset(
        "HAZE", "Haze", "PlainOz", 18, 6 * USD // 10, 60_000_000, (v3("weth", 100, 20_000), v3("weth", 10_000, 12_000), v2("weth", 20_000))
    ),
    Asset("MOTE", "Mote", "PlainOz", 18, 2 * USD // 100_000, 500_000_000_000, (v2("weth", 1_500),), 8_000),
    Asset("GLIM", "Glimmer", "PlainVyper", 2, 5 * USD, 1_000_000, (v3("weth", 10_000, 3_000),)),
)
