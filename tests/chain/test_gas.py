"""Gas limits bound a simulation; estimates stand in for what cannot be simulated, against the agent."""

from chain.gas import APPROVE_GAS_ESTIMATE, SWAP_GAS_LIMIT, fee_wei, swap_gas_estimate
from ledgers.money import Wei

MEASURED_SWAP_GAS_MAX = {1: 200_000, 2: 320_000}
"""Most that swaps of plain tokens were measured to use, by hops."""


def test_a_fee_is_gas_times_price():
    assert fee_wei(21_000, Wei(10_000_000)) == Wei(210_000_000_000)


def test_an_estimate_is_not_below_what_swaps_were_measured_to_use():
    assert all(swap_gas_estimate(hops) >= gas for hops, gas in MEASURED_SWAP_GAS_MAX.items())
    assert APPROVE_GAS_ESTIMATE >= 46_000


def test_an_estimate_grows_with_the_hops_and_stays_within_the_limit():
    assert swap_gas_estimate(1) < swap_gas_estimate(2) < SWAP_GAS_LIMIT
