"""The book: a fold of entries that balance, per ledger, in storage units."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgers.errors import CorruptJournal
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, imbalance
from referee.onchain.book import Book, Holding, asset_of, entry_of, stake_entry
from referee.onchain.events import HEADLINE, LEDGERS, PERMISSIVE, FillCredited, WindowLiquidated, WordKept
from tests.onchain.given import RUN, T0, a_pin, address, book, bought, filled, folded, opened, sold, wei


def test_onc_02_the_stake_is_booked_on_both_ledgers_and_balances():
    entry = stake_entry(wei("0.04 eth"))
    books = folded(opened(wei("0.04 eth")))
    assert (entry.ledgers, imbalance(entry.postings)) == (LEDGERS, {})
    assert [book.eth_wei for book in books.both(RUN).values()] == [wei("0.04 eth")] * 2


def test_onc_28_a_stake_of_one_wei_is_a_stake():
    assert folded(opened(wei("1 wei"))).of(RUN, HEADLINE) == book("1 wei")


def plain(book: Book) -> Book:
    """Without which tokens it knows the words of."""
    return replace(book, told=frozenset(), lost=frozenset())


def test_a_book_is_what_was_bought_less_what_was_sold():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**17), sold("LEAF", 100, 4 * 10**16))
    assert plain(books.of(RUN, HEADLINE)) == book("0.94 eth, 200 LEAF")


def test_an_entry_moves_only_the_ledgers_that_it_names():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**17, ledgers=(PERMISSIVE,)))
    assert (books.of(RUN, HEADLINE), plain(books.of(RUN, PERMISSIVE))) == (book("1 eth"), book("0.9 eth, 300 LEAF", PERMISSIVE))


def test_all_that_is_spent_and_sold_leaves_an_empty_book():
    books = folded(opened(wei("1 eth")), bought("LEAF", 300, 10**18), sold("LEAF", 300, 5))
    assert plain(books.of(RUN, HEADLINE)) == book("5 wei")


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
    liquid = folded(opened(wei("1 eth")), bought("LEAF", 3, 1), liquidated)
    assert plain(liquid.of(RUN, HEADLINE)) == book("1,000,000,000,000,000,089 wei")


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


# --- ONC-29: what the wallet's transactions wrote -----------------------------------------------------------------------

HOOK = address("HOOK")


def word(contract: str, slot: int, value: int, before: int = 0) -> WordKept:
    return WordKept(contract=contract, slot=f"0x{slot:064x}", value=f"0x{value:064x}", before=f"0x{before:064x}")


def after(*fills: FillCredited, ledger: str = HEADLINE) -> Book:
    return folded(opened(wei("1 eth")), *fills).of(RUN, ledger)


def carried(book: Book) -> dict[tuple[str, int], tuple[int, int]]:
    """Before and value by contract and slot."""
    return {(each.contract, int(each.slot, 16)): (each.before, each.value) for each in book.words}


FIRST = replace(bought("LEAF", 300, 1), kept=(word(HOOK, 1, 10, 3), word(address("LEAF"), 2, 20)))


def test_onc_29_every_word_that_was_written_is_carried_whatever_token_it_was_for_and_the_latest_counts():
    other = replace(bought("RUNE", 300, 1), kept=(word(HOOK, 1, 11, 3),))
    part = replace(sold("LEAF", 100, 1), side="sell", kept=(word(HOOK, 1, 12, 3), word(address("LEAF"), 2, 21)))
    leaf = address("LEAF")
    assert carried(after(FIRST)) == {(HOOK, 1): (3, 10), (leaf, 2): (0, 20)}
    assert carried(after(FIRST, other, part)) == {(HOOK, 1): (3, 12), (leaf, 2): (0, 21)}
    assert after(FIRST, other, part).told == {leaf, address("RUNE")} and not after(FIRST, other, part).lost


def test_onc_29_a_word_that_holds_again_what_it_did_is_not_carried():
    assert carried(after(FIRST, replace(sold("LEAF", 300, 1), side="sell", kept=(word(HOOK, 1, 3, 3), word(address("LEAF"), 2, 0))))) == {}


@pytest.mark.parametrize("again", [(), (word(HOOK, 1, 12, 3),)])
def test_onc_29_a_token_traded_once_without_its_words_being_told_stays_untold(again):
    claimed = replace(sold("LEAF", 100, 1, tag="EXIT_UNPROVEN:shared_state"), side="sell")
    book = after(FIRST, claimed, replace(bought("LEAF", 50, 1), kept=again))
    assert (book.lost, book.told, book.unproven(address("LEAF"))) == ({address("LEAF")}, frozenset(), "words_untold")


def test_onc_29_words_are_carried_on_the_ledgers_of_their_fill():
    assert carried(after(replace(FIRST, ledgers=(PERMISSIVE,), entry=replace(FIRST.entry, ledgers=(PERMISSIVE,))))) == {}
    assert carried(after(FIRST, ledger=PERMISSIVE)) == carried(after(FIRST))


def test_onc_29_words_of_superseded_rules_say_nothing_of_what_was_there_before_and_are_not_carried():
    old = replace(FIRST, kept=tuple(replace(each, before="") for each in FIRST.kept))
    assert (after(old).words, after(old).unproven(address("LEAF"))) == ((), "words_untold")
