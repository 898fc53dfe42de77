"""Other routers on the same pools, where they can be run: their quote beside what our best row brings.

uniswap-python 0.7.1 needs web3 below 7, which our own interpreter does not have: name one that has both in
REFEREE_BENCH_UNISWAP_PYTHON. Its v3 looks for the first Quoter at a fixed address; its code is put there on the local chain.
@uniswap/smart-order-router 4.31.10 is looked for in the folder named by REFEREE_BENCH_NODE_MODULES. It knows no chain of
ours: `smart_order_router.js` says how it is told. It quotes v2 and v3 here; v4 and mixed ways it only knows by addresses
that are fixed for each chain. Both only quote, so tokens that take a part of a transfer are not among the orders.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from eth_utils import to_checksum_address

from chain.devnet.calls import arguments
from chain.pools import Pool
from chain.tokens import read_facts
from tests.bench.ground import Ground
from tests.bench.routes import BPS_WHOLE, ETH, NEAR_BPS, Asked, Search, asked_of
from tests.bench.turns import Result

UNISWAP_PYTHON, NODE_MODULES = "REFEREE_BENCH_UNISWAP_PYTHON", "REFEREE_BENCH_NODE_MODULES"
QUOTER = "0xb27308f9f90d607463bb33ea1bebb41c27ce5ab6"
"""Where uniswap-python looks for v3's first quoter on every chain."""
MULTICALL = "0x1f98415757620b543a52e61c46b32eb19261f984"
"""Where the contract that smart-order-router asks through stands on most chains."""
LENSES = "node_modules/@uniswap/v3-periphery/artifacts/contracts/lens"
ANSWER_S_MAX = 280
DOLLARS = 3_000
"""For ranking pools only."""


async def other_results(ground: Ground, sizes_milli: Sequence[int], toolchain: Path, tokens_max: int | None = None) -> list[Result]:
    """One line for each of them; one that cannot be run says why."""
    orders = list(asked_of(ground, sizes_milli, tokens_max))
    _put_codes(ground, toolchain)
    pools = await _told(ground)
    ways: dict[str, Callable[[], list[int]]] = {
        "uniswap-python": lambda: _uniswap_python(ground, orders),
        "smart-order-router": lambda: _smart_order_router(ground, orders, pools),
    }
    results = []
    for name, quotes in ways.items():
        try:
            results.append(await _beside(ground, name, orders, quotes()))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            results.append(Result(what=f"router, no worse than {name}", ours="not run", against=str(error)[:60], value=0, unit="%"))
    return results


async def _beside(ground: Ground, name: str, orders: Sequence[Asked], theirs: Sequence[int]) -> Result:
    """How often our best row brings no less than they quote, to a basis point."""
    search, level, better = Search(ground), 0, 0
    asked = [(order, quote) for order, quote in zip(orders, theirs, strict=True) if quote]
    for order, quote in asked:
        ours = await search.ours(order)
        level += ours * BPS_WHOLE >= quote * (BPS_WHOLE - NEAR_BPS)
        better += ours * BPS_WHOLE > quote * (BPS_WHOLE + NEAR_BPS)
    return Result(
        what=f"router, no worse than {name}", ours=f"{level} of {len(asked)}, {better} better", against=f"{len(orders) - len(asked)} it cannot quote",
        value=100 * level / max(len(asked), 1), unit="%", limit=100, at_least=True,
    )  # fmt: skip


def _put_codes(ground: Ground, toolchain: Path) -> None:
    """Put what the others look for at fixed addresses there, and seal it in."""
    lens = {name: json.loads((toolchain / LENSES / f"{name}.sol" / f"{name}.json").read_text()) for name in ("Quoter", "UniswapInterfaceMulticall")}
    node, network = ground.chain.node, ground.network
    creation = lens["Quoter"]["bytecode"] + arguments(("address", "address"), (network.v3_factory, network.weth))
    code = node.call("eth_call", [{"data": creation, "gas": hex(30_000_000)}, "latest"])
    node.batch([("anvil_setCode", [QUOTER, code]), ("anvil_setCode", [MULTICALL, lens["UniswapInterfaceMulticall"]["deployedBytecode"]])])
    ground.chain.mine()


def _named(orders: Sequence[Asked]) -> list[tuple[str, str, str]]:
    return [(order.side, to_checksum_address(order.token), str(order.amount)) for order in orders]


def _uniswap_python(ground: Ground, orders: Sequence[Asked]) -> list[int]:
    """What it quotes for each order; 0 for nothing. Raises: ValueError with what is missing."""
    network = ground.network
    asked = {
        "url": ground.chain.url, "chain_id": network.chain_id, "factory": to_checksum_address(network.v2_factory), "router": to_checksum_address(network.v2_router),
        "orders": _named(orders),
    }  # fmt: skip
    return _answered([os.environ.get(UNISWAP_PYTHON, sys.executable), str(Path(__file__).with_name("uniswap_python_quotes.py"))], asked)


def _smart_order_router(ground: Ground, orders: Sequence[Asked], pools: dict[str, object]) -> list[int]:
    """What it quotes for each order; 0 for nothing. Raises: ValueError with what is missing."""
    folder = os.environ.get(NODE_MODULES)
    if not folder:
        raise ValueError("not installed")
    network = ground.network
    contracts = {"v2_factory": network.v2_factory, "v3_factory": network.v3_factory, "quoter": network.quoter_v2, "weth": network.weth, "usdg": network.usdg}
    asked = {
        "url": ground.chain.url, "block": ground.chain.height, "gas_price_wei": str(ground.pin.base_fee_wei), "multicall": MULTICALL, "orders": _named(orders),
        **{name: to_checksum_address(address) for name, address in contracts.items()}, **pools,
    }  # fmt: skip
    return _answered(["node", str(Path(__file__).with_name("smart_order_router.js")), folder], asked)


async def _told(ground: Ground) -> dict[str, object]:
    """Tokens and pools as a subgraph would tell them."""
    own = [pool for pool in ground.graph.pools.values() if not pool.fork and pool.key in ground.graph.states]
    tokens = sorted({token for pool in own for token in (pool.token0, pool.token1)})
    facts = await read_facts(ground.desk.rpc, tokens, ground.pin.block)
    named = [(to_checksum_address(token), fact.decimals) for token, fact in facts.items() if fact.decimals is not None]
    return {"tokens": named, **{venue: [_row(ground, pool) for pool in own if pool.venue == venue] for venue in ("v2", "v3")}}


def _row(ground: Ground, pool: Pool) -> dict[str, object]:
    state, network = ground.graph.states[pool.key], ground.network
    dollars = state.depth_raw(pool, network.usdg) * 10**12 if network.usdg in (pool.token0, pool.token1) else 0
    ether = (state.depth_raw(pool, network.weth) if network.weth in (pool.token0, pool.token1) else dollars / DOLLARS) / ETH
    return {
        "id": pool.key, "feeTier": str(pool.fee_ppm), "liquidity": str(state.liquidity), "token0": {"id": pool.token0}, "token1": {"id": pool.token1},
        "tvlETH": ether, "tvlUSD": ether * DOLLARS, "supply": state.liquidity / ETH, "reserve": 2 * ether, "reserveUSD": 2 * ether * DOLLARS,
    }  # fmt: skip


def _answered(command: Sequence[str], asked: dict[str, object]) -> list[int]:
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=ANSWER_S_MAX)
    if done.returncode:
        said = [line for line in done.stderr.strip().splitlines() if "Error" in line] or ["no word"]
        missing = any(word in said[-1] for word in ("ModuleNotFoundError", "ImportError", "Cannot find module"))
        raise ValueError("not installed" if missing else said[-1])
    return [int(quote) for quote in json.loads(done.stdout)]
