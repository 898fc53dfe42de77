"""Postings balance, entries name their ledgers, a ledger is the fold of its entries."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.errors import CorruptJournal
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry, Ledger, Posting, eth_posting, imbalance, token_posting

TOKENS = ("0xaa", "0xbb", "0xcc")
LEDGERS = st.sampled_from([("headline",), ("permissive",), ("headline", "permissive")])
moves = st.lists(
    st.tuples(LEDGERS, st.sampled_from((ETH, *TOKENS)), st.integers(0, 10**24), st.sampled_from(["market", "gas", "stake"])), max_size=30
)


def entry(amount: int, *ledgers: str, asset: str = ETH) -> Entry:
    """Bring an amount of an asset into the book from the market."""
    postings = (token_posting(BOOK, asset, TokenRaw(amount)), token_posting("market", asset, TokenRaw(-amount)))
    return Entry(ledgers=ledgers or ("headline",), postings=postings)


def folded(entries, name="headline") -> Ledger:
    ledger = Ledger(name)
    for each in entries:
        ledger.post(each)
    return ledger


@given(moves)
def test_a_ledger_equals_a_recount_of_the_entries_that_name_it(drawn):
    entries = [
        Entry(ledgers=ledgers, postings=(token_posting(BOOK, asset, TokenRaw(amount)), token_posting(other, asset, TokenRaw(-amount))))
        for ledgers, asset, amount, other in drawn
    ]
    recount: dict[str, int] = defaultdict(int)
    for ledgers, asset, amount, _ in drawn:
        recount[asset] += amount if "permissive" in ledgers else 0
    ledger = folded(entries, "permissive")
    assert {asset: int(ledger.held(asset)) for asset in recount} == dict(recount)


@given(moves, st.randoms(use_true_random=False))
def test_every_asset_sums_to_zero_over_all_accounts(drawn, shuffled: random.Random):
    entries = [entry(amount, *ledgers, asset=asset) for ledgers, asset, amount, _ in drawn]
    shuffled.shuffle(entries)
    sums: dict[str, int] = defaultdict(int)
    for (_, asset), amount in folded(entries).balances.items():
        sums[asset] += int(amount)
    assert not any(sums.values())


def test_an_entry_that_does_not_balance_is_corrupt():
    off = Entry(ledgers=("headline",), postings=(eth_posting(BOOK, Wei(5)), eth_posting("market", Wei(-4))))
    with pytest.raises(CorruptJournal, match="does not balance"):
        folded([off])


def test_assets_balance_each_for_itself():
    off = (eth_posting(BOOK, Wei(5)), token_posting("market", "0xaa", TokenRaw(-5)))
    assert imbalance(off) == {ETH: TokenRaw(5), "0xaa": TokenRaw(-5)}


def test_a_book_may_fall_to_zero():
    assert folded([entry(5), entry(-5)]).held(ETH) == TokenRaw(0)


def test_a_book_below_zero_is_corrupt():
    with pytest.raises(CorruptJournal, match="holds -1 of eth: below zero"):
        folded([entry(5), entry(-6)])


def test_an_entry_that_ends_at_zero_may_pass_below_it_inside():
    inside = Entry(ledgers=("headline",), postings=(
        eth_posting(BOOK, Wei(-3)), eth_posting(BOOK, Wei(3)), eth_posting("market", Wei(3)), eth_posting("market", Wei(-3)),
    ))  # fmt: skip
    assert folded([inside]).held(ETH) == TokenRaw(0)


def test_other_accounts_may_fall_below_zero():
    assert folded([entry(5)]).balances["market", ETH] == TokenRaw(-5)


def test_entries_of_other_ledgers_are_passed_over():
    assert folded([entry(5, "permissive"), entry(7, "headline", "permissive")]).held(ETH) == TokenRaw(7)


def test_holdings_are_sorted_tokens_above_zero():
    ledger = folded([entry(9), entry(2, asset="0xbb"), entry(1, asset="0xaa"), entry(3, asset="0xcc"), entry(-3, asset="0xcc")])
    assert list(ledger.holdings()) == [("0xaa", TokenRaw(1)), ("0xbb", TokenRaw(2))]


def test_postings_of_wei_keep_their_number():
    assert eth_posting(BOOK, Wei(7)) == Posting(account=BOOK, asset=ETH, amount=TokenRaw(7))
