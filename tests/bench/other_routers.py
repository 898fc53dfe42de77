"""Other routers on the same pools, where they can be run: their quote beside what our best row brings.

uniswap-python 0.7.1 needs web3 below 7, which our own interpreter does not have: name one that has both in
REFEREE_BENCH_UNISWAP_PYTHON. Its v3 looks for the first Quoter at a fixed address; its code is put there on the local chain.
@uniswap/smart-order-router 4.31.10: see `SMART_ORDER_ROUTER`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from eth_utils import to_checksum_address

from chain.devnet.calls import arguments
from tests.bench.ground import Ground
from tests.bench.routes import BPS_WHOLE, NEAR_BPS, Asked, Search, asked_of
from tests.bench.turns import Result

UNISWAP_PYTHON = "REFEREE_BENCH_UNISWAP_PYTHON"
QUOTER = "0xb27308f9f90d607463bb33ea1bebb41c27ce5ab6"
"""Where uniswap-python looks for v3's first quoter on every chain."""
QUOTER_ARTIFACT = Path("node_modules/@uniswap/v3-periphery/artifacts/contracts/lens/Quoter.sol/Quoter.json")
ANSWER_S_MAX = 240


async def other_results(ground: Ground, sizes_milli: Sequence[int], toolchain: Path, tokens_max: int | None = None) -> list[Result]:
    """One line for each of them; one that cannot be run says why."""
    orders = list(asked_of(ground, sizes_milli, tokens_max))
    try:
        first = await _beside(ground, "uniswap-python", orders, _uniswap_python(ground, toolchain, orders))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        first = _not_run("uniswap-python", str(error))
    return [first, _not_run("smart-order-router", SMART_ORDER_ROUTER)]


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


def _not_run(name: str, reason: str) -> Result:
    return Result(what=f"router, no worse than {name}", ours="not run", against=reason, value=0, unit="%")


def _uniswap_python(ground: Ground, toolchain: Path, orders: Sequence[Asked]) -> list[int]:
    """What it quotes for each order; 0 for nothing. Raises: ValueError with what is missing."""
    network = ground.network
    creation = json.loads((toolchain / QUOTER_ARTIFACT).read_text())["bytecode"] + arguments(("address", "address"), (network.v3_factory, network.weth))
    code = ground.chain.node.call("eth_call", [{"data": creation, "gas": hex(30_000_000)}, "latest"])
    ground.chain.node.call("anvil_setCode", [QUOTER, code])
    asked = {
        "url": ground.chain.url, "chain_id": network.chain_id, "factory": to_checksum_address(network.v2_factory), "router": to_checksum_address(network.v2_router),
        "orders": [(order.side, to_checksum_address(order.token), order.amount) for order in orders],
    }  # fmt: skip
    interpreter = os.environ.get(UNISWAP_PYTHON, sys.executable)
    script = Path(__file__).with_name("uniswap_python_quotes.py")
    done = subprocess.run([interpreter, str(script)], input=json.dumps(asked), capture_output=True, text=True, timeout=ANSWER_S_MAX)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise ValueError("not installed" if "ModuleNotFoundError" in last or "ImportError" in last else last[:60])
    return [int(quote) for quote in json.loads(done.stdout)]


SMART_ORDER_ROUTER = "knows no chain 4663"
