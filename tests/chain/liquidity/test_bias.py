"""Dilution (ONC-21): paper and real in the same outside flow; the bias is what Lp / L says."""

from tests.liquidity_bias import FLOWS, biases, table_of


async def test_bias_of_paper_fees_is_what_its_share_says(chain):
    rows = [row async for row in biases(chain, shares_ppm=(100_000,))]
    assert [row.flow for row in rows if not row.holds] == [] and len(rows) == 2 * len(FLOWS)
    assert all(row.swaps > 40 for row in rows)
    assert "10 of 10 lines hold" in table_of(rows).text()
