"""Gas: limits for what is simulated, estimates for what cannot be.

Units: gas. The limits only bound a simulation and are paid back in it; the estimates stand in for a swap that cannot be
simulated, chosen above what such swaps were measured to use, against the agent.
Source: measured on the local chain (swaps use 108,000 to 320,000; a guzzling token about 1,010,000).
"""

from __future__ import annotations

from ledgers.money import Wei

VIEW_GAS_LIMIT = 3_000_000
"""Balance reads and quoters; a v4 quoter needs about 750,000."""
APPROVE_GAS_LIMIT = 1_000_000
SWAP_GAS_LIMIT = 6_000_000
REQUEST_GAS_MAX = 50_000_000
"""What geth and Nitro let all calls of one simulation use together, unless told otherwise; a later call gets only what is left."""

REFUND_PARTS, HANDED_ON = 4, 50

APPROVE_GAS_ESTIMATE = 60_000
SWAP_GAS_ESTIMATE_FIRST_HOP = 200_000
SWAP_GAS_ESTIMATE_NEXT_HOP = 150_000


def fee_wei(gas: int, gas_price_wei: Wei) -> Wei:
    """Price of some gas."""
    return Wei(gas * int(gas_price_wei))


def swap_gas_estimate(hops: int) -> int:
    """Gas that a swap of so many hops is charged when it cannot be simulated."""
    return SWAP_GAS_ESTIMATE_FIRST_HOP + (hops - 1) * SWAP_GAS_ESTIMATE_NEXT_HOP


def least_gas_of(used: int) -> int:
    """A gas limit that is surely enough where it was not told, from what was used after refunds.

    At most a fifth of what was used comes back, and a call hands on at most 63 of 64 parts of its gas."""
    return used + used // REFUND_PARTS + used // HANDED_ON + 1
