"""The book: a fold of entries that balance, per ledger, in storage units."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.words import Word
from ledgers.errors import CorruptJournal
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, imbalance
from referee.onchain.book import UNTOLD, Book, Holding, asset_of, entry_of, stake_entry
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, FillCredited, WindowLiquidated, WordKept
from tests.onchain.given import RUN, T0, a_pin, address, book, bought, filled, folded, opened, sold, wei


def test_onc_02_the_stake_is_booked_on_both_ledgers_and_balances():
    entry = stake_entry(wei("0.04 eth"))
    books = folded(opened(wei("0.04 eth")))
    assert (entry.ledgers, imbalance(entry.postings)) == (LEDGERS, {})
    assert [book.eth_wei for book in books.both(RUN).values()] == [wei("0.04 eth")] * 2


def test_onc_28_a_stake_of_one_wei_is_a_stake():
    assert folded(opened(wei("1 wei"))).of(RUN, HEADLINE) == book("1 wei")


def test_a_book_is_what_was_bought_less_what_was_sold():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**17), sold("LEAF", 100, 4 * 10**16))
    assert books.of(RUN, HEADLINE) == book("0.94 eth, 200 LEAF", lost=("LEAF",))


def test_an_entry_moves_only_the_ledgers_that_it_names():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**17, ledgers=(PERMISSIVE,)))
    assert (books.of(RUN, HEADLINE), books.of(RUN, PERMISSIVE)) == (book("1 eth"), book("0.9 eth, 300 LEAF", PERMISSIVE, lost=("LEAF",)))


def test_all_that_is_spent_and_sold_leaves_an_empty_book():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**18), sold("LEAF", 300, 5))
    assert books.of(RUN, HEADLINE) == book("5 wei", lost=("LEAF",))


@pytest.mark.parametrize("overdraft", [bought("LEAF", 1, 10**18 + 1), sold("LEAF", 1, 1)], ids=["eth", "tokens"])
def test_a_book_below_zero_is_corrupt(overdraft):
    with pytest.raises(CorruptJournal, match="below zero"):
        folded(opened(wei("1 eth")), overdraft)


def test_an_entry_that_does_not_balance_is_corrupt():
    with pytest.raises(CorruptJournal, match="does not balance"):
        folded(opened(wei("1 eth")), filled({(BOOK, ETH): 1}, token=address("LEAF")))


def test_a_fill_whose_entry_names_other_ledgers_is_corrupt():
    other = entry_of((HEADLINE,), {(BOOK, ETH): 1, ("market", ETH): -1})
    with pytest.raises(CorruptJournal, match="names ledgers"):
        folded(opened(wei("1 eth")), filled({}, token=address("LEAF"), entry=other))


def test_shares_are_an_asset_of_their_own_and_the_holding_says_so():
    held = folded(opened(wei("1 eth")), bought("RUNE", 7, 1, shares=True)).of(RUN, HEADLINE).held(address("RUNE"))
    assert held == Holding(address("RUNE"), TokenRaw(7), True, "")


def test_approvals_are_paid_once_and_remembered_by_ledger():
    books = folded(opened(wei("1 eth")), bought("LEAF", 1, 1, ledgers=(HEADLINE,), approvals=("LEAF>router",)))
    assert [book.approvals for book in books.both(RUN).values()] == [{"LEAF>router"}, set()]


# --- why an exit cannot be proven ---------------------------------------------------------------------------------------


def cause_after(*fills) -> str | None:
    held = folded(opened(wei("1 eth")), *fills).of(RUN, PERMISSIVE).held(address("LEAF"))
    return held.cause if held else None


def test_onc_11_a_buy_with_an_unprovable_exit_marks_the_holding_with_its_cause():
    assert cause_after(bought("LEAF", 2, 1, tag="BUY_UNPROVEN:holder_state")) == "holder_state"


def test_onc_11_the_cause_stays_while_any_of_it_is_held_whatever_is_added():
    fills = bought("LEAF", 2, 1, tag="BUY_UNPROVEN:slot"), sold("LEAF", 1, 1, tag="EXIT_UNPROVEN:slot"), bought("LEAF", 5, 1)
    assert cause_after(*fills) == "slot"


def test_onc_11_a_token_sold_out_and_bought_again_with_proof_is_provable_again():
    fills = bought("LEAF", 2, 1, tag="BUY_UNPROVEN:slot"), sold("LEAF", 2, 1, tag="EXIT_UNPROVEN:slot"), bought("LEAF", 5, 1)
    assert cause_after(*fills) == ""


def test_onc_11_an_exit_on_a_claim_does_not_mark_a_holding():
    assert cause_after(bought("LEAF", 2, 1), sold("LEAF", 1, 1, tag="EXIT_UNPROVEN:lane")) == ""


# --- a liquidation ------------------------------------------------------------------------------------------------------


def test_a_liquidation_empties_what_was_sold():
    moves = {(BOOK, ETH): 90, ("market", ETH): -100, ("gas", ETH): 10, (BOOK, address("LEAF")): -3, ("market", address("LEAF")): 3}
    liquidated = WindowLiquidated(
        run_id=RUN, ts_ms=T0, ledgers=LEDGERS, pin=a_pin(), eth_wei=Wei(10**18 - 1), holdings=(), value_wei=Wei(10**18 + 89),
        unproven_wei=Wei(0), late=False, entry=entry_of(LEDGERS, moves), evidence_sha256="",
    )  # fmt: skip
    after = folded(opened(wei("1 eth")), bought("LEAF", 3, 1), liquidated)
    assert after.of(RUN, HEADLINE) == book("1,000,000,000,000,000,089 wei", lost=("LEAF",))


# --- any history --------------------------------------------------------------------------------------------------------

SYMBOLS = ("LEAF", "RUNE", "MOSS")


@given(st.lists(st.tuples(st.sampled_from(SYMBOLS), st.integers(1, 50), st.integers(0, 50), st.sampled_from([LEDGERS, (HEADLINE,), (PERMISSIVE,)]), st.booleans())))
def test_a_fold_of_any_fills_equals_a_recount_by_hand(history):
    """Sales that a ledger could not carry are left out, as the rules would have refused them."""
    events, counted = [opened(wei("1 eth"))], {ledger: Counter(eth=10**18) for ledger in LEDGERS}
    for symbol, units, price, ledgers, buys in history:
        if not buys and any(counted[ledger][symbol] < units for ledger in ledgers):
            continue
        events.append((bought if buys else sold)(symbol, units, price, ledgers=ledgers))
        for ledger in ledgers:
            counted[ledger][symbol] += units if buys else -units
            counted[ledger]["eth"] += -price if buys else price
    books = folded(*events).both(RUN)
    told = {ledger: {holding.token: int(holding.units_raw) for holding in books[ledger].holdings} | {"eth": int(books[ledger].eth_wei)} for ledger in LEDGERS}
    assert told == {ledger: {key if key == "eth" else address(key): amount for key, amount in counts.items() if amount} for ledger, counts in counted.items()}


@given(st.dictionaries(st.tuples(st.sampled_from(["book", "market"]), st.sampled_from(["eth", asset_of(address("LEAF"), True)])), st.integers(-9, 9)))
def test_zero_moves_are_no_postings(moves):
    entry = entry_of(LEDGERS, moves)
    assert all(int(posting.amount) for posting in entry.postings) and len(entry.postings) == sum(amount != 0 for amount in moves.values())


# --- the words that the wallet carries ----------------------------------------------------------------------------------

HOOK, LEAF, RUNE = address("HOOK"), address("LEAF"), address("RUNE")


def kept(contract: str, slot: int, before: int, value: int) -> WordKept:
    return WordKept(contract=contract, slot=f"0x{slot:064x}", value=f"0x{value:064x}", before=f"0x{before:064x}")


def word(contract: str, slot: int, before: int, value: int) -> Word:
    return Word(contract, f"0x{slot:064x}", before, value)


def wrote(fill: FillCredited, *words: WordKept, side: str = "buy") -> FillCredited:
    return replace(fill, side=side, kept=words)


def after(*fills: FillCredited, ledger: str = HEADLINE) -> Book:
    return folded(opened(wei("1 eth")), *fills).of(RUN, ledger)


FIRST = wrote(bought("LEAF", 300, 1), kept(HOOK, 1, 4, 10), kept(LEAF, 2, 0, 20))


def test_what_any_fill_wrote_is_carried_and_the_latest_counts():
    other = wrote(bought("RUNE", 300, 1), kept(HOOK, 1, 4, 11))
    part = wrote(sold("LEAF", 100, 1), kept(LEAF, 2, 0, 21), side="sell")
    assert after(FIRST).words == (word(HOOK, 1, 4, 10), word(LEAF, 2, 0, 20))
    assert after(FIRST, other).words == (word(HOOK, 1, 4, 11), word(LEAF, 2, 0, 20))
    assert after(FIRST, other, part).words == (word(HOOK, 1, 4, 11), word(LEAF, 2, 0, 21))
    assert after(FIRST, other, part).told == {LEAF, RUNE}


def test_a_word_that_is_again_as_the_chain_has_it_is_carried_no_more_and_the_token_stays_told():
    book = after(FIRST, wrote(sold("LEAF", 299, 1), kept(HOOK, 1, 4, 4), kept(LEAF, 2, 0, 0), side="sell"))
    assert (book.words, book.told, book.unproven(LEAF)) == ((), {LEAF}, "")


@pytest.mark.parametrize("untold", [(), (WordKept(contract=HOOK, slot=f"0x{1:064x}", value=f"0x{9:064x}"),)], ids=["nothing", "a guess"])
def test_a_trade_that_was_not_told_leaves_its_token_untold_for_good_and_the_words_as_they_were(untold):
    """Words of windows that guessed at what a buy wrote say nothing of what the chain held before."""
    lost = wrote(sold("LEAF", 100, 1, tag="EXIT_UNPROVEN:slot"), *untold, side="sell")
    again = wrote(bought("LEAF", 300, 1), kept(LEAF, 2, 0, 30))
    assert [after(*fills).unproven(LEAF) for fills in ((FIRST,), (FIRST, lost), (FIRST, lost, again), (again, FIRST))] == ["", UNTOLD, UNTOLD, ""]
    assert after(FIRST, lost).words == after(FIRST).words
    assert (after(FIRST, lost, again).lost, after(FIRST, lost, again).told) == ({LEAF}, set())


def test_a_token_that_is_lost_leaves_the_others_told():
    assert after(FIRST, bought("RUNE", 300, 1)).unproven(LEAF) == "" != after(FIRST, bought("RUNE", 300, 1)).unproven(RUNE)


def test_words_are_carried_on_the_ledgers_of_their_fill():
    first = wrote(bought("LEAF", 300, 1, ledgers=(PERMISSIVE,)), kept(HOOK, 1, 4, 10))
    assert (after(first).words, after(first, ledger=PERMISSIVE).words) == ((), (word(HOOK, 1, 4, 10),))
    assert (after(first).told, after(first, ledger=PERMISSIVE).told) == (set(), {LEAF})


def test_a_cause_of_its_own_speaks_before_the_words():
    assert after(wrote(bought("LEAF", 300, 1, tag="BUY_UNPROVEN:slot"), kept(LEAF, 2, 0, 20)), ledger=PERMISSIVE).unproven(LEAF) == "slot"
