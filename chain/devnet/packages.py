"""Contract packages: creation code of the real Uniswap contracts, as their npm packages carry it.

Nothing of it is kept in this repository; licences are those of the packages.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import orjson

from eth_utils import keccak

PATHS = {
    "WETH9": "v2-periphery/build/WETH9.json",
    "UniswapV2Factory": "v2-core/build/UniswapV2Factory.json",
    "UniswapV2Pair": "v2-core/build/UniswapV2Pair.json",
    "UniswapV2Router02": "v2-periphery/build/UniswapV2Router02.json",
    "UniswapV3Factory": "v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json",
    "UniswapV3Pool": "v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json",
    "NFTDescriptor": "v3-periphery/artifacts/contracts/libraries/NFTDescriptor.sol/NFTDescriptor.json",
    "NonfungibleTokenPositionDescriptor": "v3-periphery/artifacts/contracts/NonfungibleTokenPositionDescriptor.sol/NonfungibleTokenPositionDescriptor.json",
    "NonfungiblePositionManager": "v3-periphery/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager.json",
    "QuoterV2": "swap-router-contracts/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json",
    "SwapRouter02": "swap-router-contracts/artifacts/contracts/SwapRouter02.sol/SwapRouter02.json",
    "PoolManager": "v4-core/out/PoolManager.sol/PoolManager.json",
    "PositionDescriptor": "v4-periphery/foundry-out/PositionDescriptor.sol/PositionDescriptor.json",
    "PositionManager": "v4-periphery/foundry-out/PositionManager.sol/PositionManager.json",
    "V4Quoter": "v4-periphery/foundry-out/V4Quoter.sol/V4Quoter.json",
    "StateView": "v4-periphery/foundry-out/StateView.sol/StateView.json",
    "UniversalRouter": "universal-router/artifacts/contracts/UniversalRouter.sol/UniversalRouter.json",
}
PERMIT2_SOURCE = "v4-periphery/lib/permit2/test/utils/DeployPermit2.sol"
LIBRARY_GAP = re.compile(r"__\$[0-9a-f]{34}\$__")


def creation_code(toolchain: Path, name: str, library: str | None = None) -> str:
    """Creation code as 0x hex, with the address of its one `library` filled in."""
    code = _read(toolchain / "node_modules" / "@uniswap" / PATHS[name])
    return LIBRARY_GAP.sub(library[2:], code) if library else code


def code_hash(toolchain: Path, name: str) -> str:
    """Hash of the creation code, as CREATE2 addresses use it."""
    return "0x" + keccak(bytes.fromhex(creation_code(toolchain, name)[2:])).hex()


@cache
def _read(path: Path) -> str:
    code = orjson.loads(path.read_bytes())["bytecode"]
    text = code["object"] if isinstance(code, dict) else code
    return text if text.startswith("0x") else "0x" + text


@cache
def permit2_code(toolchain: Path) -> str:
    """The code of Permit2, which only a helper contract of another package carries."""
    source = (toolchain / "node_modules" / "@uniswap" / PERMIT2_SOURCE).read_text()
    return "0x" + re.search(r'hex"([0-9a-f]+)"', source).group(1)
