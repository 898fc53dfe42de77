"""The quotes of uniswap-python, asked by an interpreter that has it: one JSON object in, a list of whole numbers out.

It knows one pool at a time: v2 directly, v3 directly for each fee. Chain ids and v3 addresses are fixed in it, so its table
of chains is told of ours, and what it looks for stands at its own addresses on the local chain.
"""

from __future__ import annotations

import json
import sys

FEES = (100, 500, 3_000, 10_000)


def main() -> None:
    """Answer every order with the best of its quotes, 0 where it has none."""
    from uniswap import Uniswap, constants

    asked = json.load(sys.stdin)
    constants._netid_to_name[asked["chain_id"]] = "local"
    chain = {"address": None, "private_key": None, "provider": asked["url"]}
    pairs = Uniswap(version=2, factory_contract_addr=asked["factory"], router_contract_addr=asked["router"], **chain)
    pools = Uniswap(version=3, **chain)
    pools.get_weth_address = lambda: pairs.get_weth_address()
    json.dump([_best(pairs, pools, constants.ETH_ADDRESS, *order) for order in asked["orders"]], sys.stdout)


def _best(pairs: object, pools: object, ether: str, side: str, token: str, size: str) -> int:
    ends, amount = (ether, token) if side == "buy" else (token, ether), int(size)
    asks = [lambda: pairs.get_price_input(*ends, amount), *(lambda fee=fee: pools.get_price_input(*ends, amount, fee) for fee in FEES)]
    return max(_said(ask) for ask in asks)


def _said(ask: object) -> int:
    try:
        return int(ask())
    except Exception:  # a pool that is not there, or a call that reverts
        return 0


if __name__ == "__main__":
    main()
