"""Which mined swaps went through hooks, as far as the position manager knows the pools they crossed.

Source: v4's PositionManager keeps the key of every pool that it minted in, by the first 25 bytes of the pool's id.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.calldata import hex_bytes, uint_at
from chain.mined import MinedSwap
from chain.network import Network
from chain.rpc import RpcDoor, RpcRefused
from chain.swaps import V4_SWAP

POOL_KEYS = "0x86b6be7d"
ID_DIGITS = 2 * 25
HOOKED = "v4 with a hook"
KEY_WORDS = 5


async def with_hooks(rpc: RpcDoor, network: Network, swaps: Sequence[MinedSwap]) -> dict[str, tuple[str, ...]]:
    """Name the kinds of pool of each swap, with `v4 with a hook` where that is known.

    Shapes: by transaction hash. Raises: ChainFault."""
    crossed = {swap.tx_hash: {topics[1] for _, topics, _ in swap.emitted if topics[:1] == (V4_SWAP,) and len(topics) > 1} for swap in swaps}
    hooked = await _hooked(rpc, network, sorted(set().union(*crossed.values())))
    return {swap.tx_hash: (*swap.kinds, *((HOOKED,) if crossed[swap.tx_hash] & hooked else ())) for swap in swaps}


async def _hooked(rpc: RpcDoor, network: Network, ids: list[str]) -> set[str]:
    if network.v4_positions is None or not ids:
        return set()
    asked = [("eth_call", [{"to": network.v4_positions, "data": POOL_KEYS + pool[2 : 2 + ID_DIGITS].ljust(64, "0")}, "latest"]) for pool in ids]
    found = set()
    for pool, answer in zip(ids, await rpc.batch(asked), strict=True):
        data = b"" if isinstance(answer, RpcRefused) else hex_bytes(answer)
        if uint_at(data, KEY_WORDS - 1):
            found.add(pool)
    return found
