"""SwapRouter02 and the v2 router: a way, or a split over two, as one transaction's calldata.

SwapRouter02 trades v2 and v3 pools and may mix them. Other exchanges have routers of the same shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from chain import calldata
from chain.candidates import Part
from chain.paths import Path

ROUTER_ITSELF = "0x0000000000000000000000000000000000000002"
"""SwapRouter02's word for its own address as a recipient."""
HELD_BY_ROUTER = 0
"""SwapRouter02's word for `everything the router holds` as an amount."""


def swap_router_call(side: str, parts: Sequence[Part], wallet: str) -> str:
    """Encode SwapRouter02's call: all of it arrives at the wallet, of a sale as ETH."""
    recipient = wallet if side == "buy" else ROUTER_ITSELF
    calls = [call for part in parts for call in _swap_calls(part.path, part.amount, recipient)]
    if side == "buy":
        return calls[0] if len(calls) == 1 else calldata.multicall(calls)
    return calldata.multicall([*calls, calldata.unwrap_weth(wallet)])


def _swap_calls(path: Path, amount: int, recipient: str) -> list[str]:
    """One call for each run of pools of one version; all but the last leave what comes in the router."""
    runs = [tuple(run) for _, run in groupby(path, key=lambda hop: hop.pool.venue)]
    *before, last = range(len(runs))
    calls = [_swap_call(runs[place], HELD_BY_ROUTER if place else amount, ROUTER_ITSELF) for place in before]
    return [*calls, _swap_call(runs[last], HELD_BY_ROUTER if last else amount, recipient)]


def _swap_call(run: Path, amount: int, recipient: str) -> str:
    if run[0].pool.venue == "v2":
        return calldata.swap_v2(tokens_of(run), recipient, amount)
    if len(run) == 1:
        (hop,) = run
        return calldata.swap_v3_single(hop.token_in, hop.token_out, hop.pool.fee_ppm, recipient, amount)
    return calldata.swap_v3_path(packed(run), recipient, amount)


def v2_router_call(side: str, part: Part, wallet: str) -> str:
    """Encode the v2 router's call that tokens with a fee on transfers survive."""
    if side == "buy":
        return calldata.swap_eth_v2(tokens_of(part.path), wallet)
    return calldata.swap_for_eth_v2(part.amount, tokens_of(part.path), wallet)


def tokens_of(path: Path) -> list[str]:
    """Every token on a path, in order."""
    return [path[0].token_in, *(hop.token_out for hop in path)]


def packed(path: Path) -> str:
    """A v3 path's tokens and fees."""
    return calldata.v3_path(tokens_of(path), [hop.pool.fee_ppm for hop in path])
