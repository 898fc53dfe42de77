"""Carriers: which pools may carry a paper position.

What a position earns is worked out from the pool's own arithmetic, so a pool where a hook may change the amounts of a swap or of
liquidity carries none. A hook's address says what it may: its last 14 bits are its permissions, which it cannot change. A fee that
a hook sets is fine: it is read from each swap.
Source: 001 §5.10 (ONC-21); v4's Hooks library.
"""

from __future__ import annotations

from chain.liquidity.pool_logs import PANCAKE, V3, V4
from chain.pools import Pool
from chain.swaps import PANCAKE_V3_SWAP, V3_SWAP

CHANGES = {
    1 << 3: "change the amounts of a swap before it",
    1 << 2: "change the amounts of a swap after it",
    1 << 1: "change what adding liquidity costs",
    1 << 0: "change what removing liquidity pays",
}
"""What a hook may do with amounts, by the bit of its address."""


def shape_of(pool: Pool) -> str | None:
    """How a pool logs and takes the protocol's cut: v3, pancake or v4; None where that is not known."""
    if pool.venue == "v4":
        return V4
    if pool.venue != "v3":
        return None
    return {"": V3, V3_SWAP: V3, PANCAKE_V3_SWAP: PANCAKE}.get(pool.swap_topic)


def refusal(pool: Pool) -> str:
    """Say why a pool may not carry a position; empty where it may."""
    if pool.venue not in ("v3", "v4"):
        return f"{pool.venue} pools have no ranges"
    if shape_of(pool) is None:
        return "its swaps are logged in a form of their own"
    may = [what for bit, what in CHANGES.items() if pool.venue == "v4" and int(pool.hooks, 16) & bit]
    return f"its hook may {', '.join(may)}" if may else ""
