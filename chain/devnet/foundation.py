"""The foundation: the contracts a market stands on, at addresses that are the same in every build.

Who deploys is account 0 of the node's well-known accounts; addresses follow from the order below.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chain.devnet.assets import ETH_USD, USD
from chain.devnet.calls import Tx, arguments, created_address, encode
from chain.devnet.compile import Artifact
from chain.devnet.miner import Miner
from chain.devnet.packages import code_hash, creation_code, permit2_code

PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
"""Permit2's address on every chain."""
NO_ADDRESS = "0x" + "00" * 20
ETHER_LABEL = b"ETH".ljust(32, b"\0")
UNSUBSCRIBE_GAS = 300_000
DEPLOY_GAS = 30_000_000
FEED_DECIMALS = 8
ORDER = (
    "weth",
    "v2_factory",
    "v2_router",
    "v3_factory",
    "v3_text_library",
    "v3_descriptor",
    "v3_positions",
    "quoter_v2",
    "swap_router_02",
    "v4_pool_manager",
    "v4_descriptor",
    "v4_positions",
    "v4_quoter",
    "v4_state_view",
    "universal_router",
    "multicall3",
    "feed",
    "usdg",
)
"""Order of deployment, hence the addresses."""


def deploy_foundation(miner: Miner, toolchain: Path, compiled: Mapping[str, Artifact], deployer: str) -> dict[str, str]:
    """Deploy it in one block; addresses by name, lower case. Raises: ChainFault."""
    at = {name: created_address(deployer, nonce) for nonce, name in enumerate(ORDER)} | {"permit2": PERMIT2}
    codes = foundation_codes(toolchain, compiled, at, deployer)
    miner.node.call("anvil_setCode", [PERMIT2, permit2_code(toolchain)])
    deploys = [Tx(sender=deployer, to=None, data=codes[name], gas=DEPLOY_GAS) for name in ORDER]
    one_pip_fee = Tx(sender=deployer, to=at["v3_factory"], data=encode("enableFeeAmount(uint24,int24)", 100, 1))
    receipts = miner.mine_all([*deploys, one_pip_fee])
    for name, receipt in zip(ORDER, receipts, strict=False):
        assert receipt["contractAddress"].lower() == at[name], f"{name} expected at {at[name]}, found {receipt['contractAddress']}"
    return at


def foundation_codes(toolchain: Path, compiled: Mapping[str, Artifact], at: Mapping[str, str], deployer: str) -> dict[str, str]:
    """Creation code with constructor arguments, by name."""

    def package(name: str, types: tuple[str, ...] = (), *values, library: str | None = None) -> str:
        return creation_code(toolchain, name, library) + arguments(types, values)

    def own(name: str, types: tuple[str, ...] = (), *values) -> str:
        return compiled[name].bytecode + arguments(types, values)

    one, two, four = ("address",), ("address",) * 2, ("address",) * 4
    weth, manager = at["weth"], at["v4_pool_manager"]
    return {
        "weth": package("WETH9"),
        "v2_factory": package("UniswapV2Factory", one, deployer),
        "v2_router": package("UniswapV2Router02", two, at["v2_factory"], weth),
        "v3_factory": package("UniswapV3Factory"),
        "v3_text_library": package("NFTDescriptor"),
        "v3_descriptor": package(
            "NonfungibleTokenPositionDescriptor", ("address", "bytes32"), weth, ETHER_LABEL, library=at["v3_text_library"]
        ),
        "v3_positions": package("NonfungiblePositionManager", ("address",) * 3, at["v3_factory"], weth, at["v3_descriptor"]),
        "quoter_v2": package("QuoterV2", two, at["v3_factory"], weth),
        "swap_router_02": package("SwapRouter02", four, at["v2_factory"], at["v3_factory"], at["v3_positions"], weth),
        "v4_pool_manager": package("PoolManager", one, deployer),
        "v4_descriptor": package("PositionDescriptor", ("address", "address", "bytes32"), manager, weth, ETHER_LABEL),
        "v4_positions": package(
            "PositionManager",
            ("address", "address", "uint256", "address", "address"),
            manager,
            PERMIT2,
            UNSUBSCRIBE_GAS,
            at["v4_descriptor"],
            weth,
        ),
        "v4_quoter": package("V4Quoter", one, manager),
        "v4_state_view": package("StateView", one, manager),
        "universal_router": package("UniversalRouter", ROUTER_TYPES, router_parameters(toolchain, at)),
        "multicall3": own("Multicall3"),
        "feed": own("Feed", ("string", "int256"), "ETH / USD", ETH_USD * 10**FEED_DECIMALS // USD),
        "usdg": own("Usdg"),
    }


ROUTER_TYPES = ("(address,address,address,address,bytes32,bytes32,address,address,address,address)",)


def router_parameters(toolchain: Path, at: Mapping[str, str]) -> tuple:
    """The universal router's one constructor argument; it has no bridge here."""
    pair, pool = (bytes.fromhex(code_hash(toolchain, name)[2:]) for name in ("UniswapV2Pair", "UniswapV3Pool"))
    factories = (at["v2_factory"], at["v3_factory"], pair, pool)
    return (PERMIT2, at["weth"], *factories, at["v4_pool_manager"], at["v3_positions"], at["v4_positions"], NO_ADDRESS)
