"""The origin: how much of what a foreign transaction brought came out of pools.

A rival may fill from a stock of its own, which no fill on paper uses up, whatever its answer says. What pools paid out
stands in the Transfer logs of the token, or of wrapped and native ETH, beside the pools' own Swap logs.
Source: 001 §5.1; events of Uniswap v2 pairs, v3 pools and the v4 PoolManager, and of their forks.
"""

from __future__ import annotations

from chain.calldata import hex_bytes, uint_at
from chain.network import Network
from chain.router import Route
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, CallAnswer
from chain.swaps import V2_SWAP, V3_SWAP, V4_SWAP


def from_pools(network: Network, swap: CallAnswer, route: Route) -> int:
    """What pools paid out, less what they took in, of the token that is bought, or of ETH wrapped or not when selling.

    Units: token units of a buy, wei of a sale. A pool is whoever logged a swap."""
    swapped = {V2_SWAP, V3_SWAP, V4_SWAP, *(fork.swap_topic for fork in network.forks if fork.swap_topic)}
    pools = {str(log["address"]).lower() for log in swap.logs if log["topics"] and log["topics"][0] in swapped}
    emitters = {route.token} if route.side == "buy" else {network.weth, NATIVE_LOG}
    paid = 0
    for log in swap.logs:
        topics = log["topics"]
        if len(topics) == 3 and topics[0] == TRANSFER_TOPIC and str(log["address"]).lower() in emitters:
            out = ("0x" + topics[1][26:] in pools) - ("0x" + topics[2][26:] in pools)
            paid += out * (uint_at(hex_bytes(log.get("data")), 0) or 0)
    return paid
