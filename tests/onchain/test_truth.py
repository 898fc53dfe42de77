"""The truth table holds: every order is credited to the wei what really executing its transaction brings (ONC-10)."""

from chain.devnet.zoo import ZOO
from tests.truth import table_of, truth_rows


async def test_every_credit_equals_real_execution_to_the_wei(chain):
    rows = [row async for row in truth_rows(chain)]
    wrong = [row for row in rows if not row.holds]
    assert len(rows) >= 2 * len(ZOO)
    assert not wrong, table_of(wrong).text()
