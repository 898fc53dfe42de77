"""Costs: what was paid for what is held, and what sales brought beyond it."""

from hypothesis import given
from hypothesis import strategies as st

from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH
from referee.onchain.book import SHARES, entry_of
from referee.onchain.costs import Costs
from referee.onchain.events import FillCredited
from tests.onchain.shown import address

TOKEN = address("a")


def fill(units: int, eth_wei: int, asset: str = TOKEN) -> FillCredited:
    """A fill that moved token units and ETH into the book, or out of it."""
    entry = entry_of(("headline",), {(BOOK, asset): units, ("market", asset): -units, (BOOK, ETH): eth_wei, ("market", ETH): -eth_wei})
    return FillCredited(
        run_id="r", ts_ms=1, order_id="o", ledgers=("headline",), proven=True, tag="", side="buy" if units > 0 else "sell", token=TOKEN, route="v2",
        spent_raw=TokenRaw(0), arrival_raw=TokenRaw(0), gas_wei=Wei(0), approvals=(), entry=entry,
    )  # fmt: skip


def costs(*fills: FillCredited) -> Costs:
    folded = Costs()
    for each in fills:
        folded.apply(each)
    return folded


def test_buys_add_up_and_a_part_sold_takes_its_part_of_the_cost() -> None:
    folded = costs(fill(100, -50), fill(100, -150), fill(-50, 80))
    assert (folded.of(TOKEN), folded.held[TOKEN][0], folded.realised_wei) == (150, 150, 30)


def test_what_is_sold_out_has_no_cost_left() -> None:
    folded = costs(fill(3, -100), fill(-3, 60))
    assert (folded.of(TOKEN), folded.realised_wei) == (None, -40)


def test_shares_are_counted_as_the_book_counts_them() -> None:
    folded = costs(fill(10, -100, TOKEN + SHARES), fill(-5, 80, TOKEN + SHARES))
    assert (folded.of(TOKEN), folded.realised_wei) == (50, 30)


@given(st.lists(st.tuples(st.integers(1, 10**24), st.integers(1, 10**20)), min_size=1, max_size=6), st.integers(1, 10**6))
def test_what_was_paid_is_what_is_still_held_and_what_was_sold(buys: list[tuple[int, int]], part_ppm: int) -> None:
    folded = costs(*(fill(units, -wei) for units, wei in buys))
    held = sum(units for units, _ in buys)
    sold = max(held * part_ppm // 10**6, 1)
    folded.apply(fill(-sold, 7))
    assert (folded.of(TOKEN) or 0) + 7 - folded.realised_wei == sum(wei for _, wei in buys)
    assert folded.held.get(TOKEN, (0, 0))[0] == held - sold
