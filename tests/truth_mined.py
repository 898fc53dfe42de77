"""The truth of mined swaps: `referee truth` over more than a hundred swaps of the local chain, straight and in Nitro's shapes.

One swap of every kind first, then the market's own blocks; a node keeps few states, so that every stretch is run again before
the next is played. Run: `make truth`. Exit code 1 when a swap differs from its simulation.
"""

from __future__ import annotations

import asyncio
import sys

from chain.devnet.devnet import Devnet
from chain.hooked import with_hooks
from chain.mined import first_swaps
from chain.network import load_network
from chain.reenact import Reenacted, reenact
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock
from ops.reenacting import Walk, Wanted, told_of
from tests.chain.nitro import nitro_node
from tests.chain.street import walk

SWAPS = 120
STRETCH = 30
NETWORK = load_network("devnet")


async def run_again(chain: Devnet, url: str) -> tuple[list[Reenacted], dict[str, tuple[str, ...]]]:
    """Swaps of a chain that is played on meanwhile."""
    door = RpcDoor([Lane("node", url)], clock=SystemClock())
    first, last = walk(chain)
    rows: list[Reenacted] = []
    while True:
        rows += await reenact(door, await first_swaps(door, NETWORK, first, last))
        if len(rows) >= SWAPS:
            break
        first = chain.height + 1
        chain.step(STRETCH)
        last = chain.height
    labels = await with_hooks(door, NETWORK, [row.swap for row in rows])
    await door.close()
    return rows, labels


async def _main() -> int:
    wrong = 0
    for shape in ("as it is", "in Nitro's shapes"):
        with Devnet.build(seed=7, height=40) as chain:
            async with nitro_node(chain.url) as node:
                rows, labels = await run_again(chain, node.url if shape != "as it is" else chain.url)
        text, _, holds = told_of(NETWORK, Wanted(swaps=SWAPS), Walk(rows), labels)
        print(f"The local chain's node {shape}\n\n{text}")
        wrong += not holds
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
