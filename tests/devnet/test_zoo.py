"""The zoo: each kind really does what its row says, by real transactions on the local chain."""

from __future__ import annotations

import re

import pytest

from chain.devnet.calls import Tx, encode, topic
from chain.devnet.compile import SOURCES, artifacts
from chain.devnet.kinds import SPEND_WEI, Outcome
from chain.devnet.node import Refused
from chain.devnet.texts import HOSTILE_ANSWERS, HOSTILE_TEXTS, text_answer
from chain.devnet.toolchain import require
from chain.devnet.zoo import ROUTES, ZOO, ZooToken
from tests.devnet.trader import Trader

KINDS = {odd.kind: odd for odd in ZOO}
TRADED = [(odd.kind, pool.route) for odd in ZOO for pool in odd.pools if pool.venue != "v4"]
BARRED_AFTER_A_BUY = ("blacklist_on_buy", "cooldown_60s")
"""Kinds whose real sale reverts because of a real buy, which an override of the balance cannot show."""
WHOLE = 10**18


def trader(chain, kind: str, route: str = "v2/weth") -> Trader:
    """A wallet with ETH and an approval."""
    made = Trader(chain, KINDS[kind], route)
    made.endow()
    return made


def holder(chain, kind: str, route: str = "v2/weth") -> Trader:
    """A wallet that really bought."""
    made = trader(chain, kind, route)
    assert made.buy(), kind
    return made


def arrival_wei(chain, kind: str, route: str = "v2/weth") -> int:
    """What selling all of a real buy brings."""
    made = holder(chain, kind, route)
    assert made.sell(made.held()), kind
    return made.weth()


# --- the table ------------------------------------------------------------------------------------------------------


def test_kinds_are_named_once():
    assert len(KINDS) == len(ZOO)


def test_agents_cannot_tell_a_kind_by_its_name():
    shown = [(odd.kind, str(odd.args[0])) for odd in ZOO if len(odd.args) > 3 and isinstance(odd.args[0], str)]
    assert [kind for kind, name in shown if set(kind.split("_")) & set(name.lower().split())] == [] and len({name for _, name in shown}) == len(shown)


def test_every_contract_of_the_zoo_is_a_kind():
    inner = {"NamespacedLogic", "BalanceStore", "Multicall3", "Feed", "Usdg"}
    beside = {name for source in (SOURCES / "annex").glob("*.sol") for name in re.findall(r"^contract (\w+)", source.read_text(), re.MULTILINE)}
    assert set(artifacts(require())) - inner - beside == {odd.artifact for odd in ZOO}


def test_every_route_kind_has_a_token():
    assert {pool.route for odd in ZOO for pool in odd.pools} == set(ROUTES)


def test_a_route_without_a_pool_is_expected_to_have_none():
    assert KINDS["honeypot"].expected("v3/weth", "sell").outcome is Outcome.NO_POOL


def test_refusals_and_unprovables_name_their_reason():
    expected = [odd.expected(pool.route, side) for odd in ZOO for pool in odd.pools for side in ("buy", "sell")]
    assert all(bool(one.reason) == (one.outcome in (Outcome.REFUSED, Outcome.UNPROVABLE)) for one in expected)


# --- every kind really trades as expected ---------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "route"), [(kind, route) for kind, route in TRADED if kind != "balance_reverts"])
def test_real_trades_go_through_where_the_row_says_so(chain, kind, route):
    odd, wallet = KINDS[kind], trader(chain, kind, route)
    bought = wallet.buy()
    if not bought:
        wallet.hand_out(odd.pools[0].token_raw // 1_000)
    buy_reverts, sale_reverts = (odd.expected(route, side).outcome is Outcome.REVERTS_ON_BOTH for side in ("buy", "sell"))
    assert (bought, wallet.sell(wallet.held())) == (not buy_reverts, not (sale_reverts or kind in BARRED_AFTER_A_BUY))


def test_only_kinds_that_revert_on_a_buy_are_not_buyable():
    reverting = {odd.kind for odd in ZOO if all(odd.expected(pool.route, "buy").outcome is Outcome.REVERTS_ON_BOTH for pool in odd.pools)}
    assert {odd.kind for odd in ZOO if not odd.buyable} == reverting


# --- taxes and limits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "buy_bps", "sell_bps"), [("tax_5", 500, 500), ("tax_10", 1_000, 1_000), ("tax_buy", 1_000, 0), ("tax_sell", 0, 1_000), ("tax_sell_60", 0, 6_000)])
def test_a_tax_takes_its_share(chain, kind, buy_bps, sell_bps):
    plain, taxed = holder(chain, "plain_oz"), holder(chain, kind)
    assert taxed.held() == plain.held() - plain.held() * buy_bps // 10_000
    before = taxed.read("balanceOf(address)", taxed.place.key)
    sold = taxed.held()
    assert taxed.sell(sold)
    assert taxed.read("balanceOf(address)", taxed.place.key) - before == sold - sold * sell_bps // 10_000


def test_a_wallet_limit_binds_on_the_whole_holding(chain):
    wallet = trader(chain, "max_wallet")
    wallet.hand_out(19_900 * WHOLE)
    assert not wallet.buy()


def test_a_sale_limit_binds_above_it_only(chain):
    wallet = trader(chain, "max_sell")
    wallet.hand_out(3_000 * WHOLE)
    assert (wallet.sell(2_000 * WHOLE + 1), wallet.sell(2_000 * WHOLE)) == (False, True)


def test_a_listed_account_cannot_sell(chain):
    wallet = holder(chain, "blacklist")
    wallet.owner("list(address,bool)", wallet.wallet, True)
    assert not wallet.sell(wallet.held())


def test_a_paused_token_does_not_move(chain):
    wallet = holder(chain, "pausable")
    wallet.owner("pause(bool)", True)
    assert not wallet.sell(wallet.held())


def test_the_sale_of_a_swap_back_comes_second(chain):
    assert arrival_wei(chain, "swap_back") < arrival_wei(chain, "plain_oz")


# --- tokens that know what they run in ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "free_gas"), [("sim_aware", {}), ("gas_aware", {"gas": hex(400_000_000)})])
def test_a_simulation_aware_honeypot_sells_in_a_careless_simulation(chain, kind, free_gas):
    wallet = holder(chain, kind)
    assert wallet.answer("transfer(address,uint256)", wallet.place.key, wallet.held(), **{"from": wallet.wallet, **free_gas}) == "0x" + "0" * 63 + "1"
    assert not wallet.sell(wallet.held())


# --- state per holder -----------------------------------------------------------------------------------------------


def test_an_early_seller_pays_less_with_time(chain):
    wallet = holder(chain, "early_seller")
    early = wallet.read("taxBps(address)", wallet.wallet)
    chain.mine(60)
    assert 0 < wallet.read("taxBps(address)", wallet.wallet) < early <= 2_500


def test_who_never_bought_pays_no_early_tax(chain):
    assert trader(chain, "early_seller").read("taxBps(address)", "0x" + "77" * 20) == 0


def test_who_never_bought_cannot_sell_registered_tokens(chain):
    wallet = trader(chain, "registered_buyers")
    wallet.hand_out(100 * WHOLE)
    assert not wallet.sell(100 * WHOLE)


def test_a_second_sale_of_sell_once_reverts(chain):
    wallet = holder(chain, "sell_once")
    assert (wallet.sell(wallet.held() // 2), wallet.sell(wallet.held())) == (True, False)


def test_each_further_sale_is_taxed_more(chain):
    wallet = holder(chain, "sale_count")
    before = wallet.read("balanceOf(address)", wallet.place.key)
    part = wallet.held() // 3
    assert wallet.sell(part) and wallet.sell(part)
    assert wallet.read("balanceOf(address)", wallet.place.key) - before == part + part - part // 10


def test_who_holds_some_already_buys_without_the_tax_of_the_first_buy(chain):
    wallet = holder(chain, "loyal")
    first = wallet.held()
    assert wallet.buy() and wallet.held() > 2 * first


def test_a_watched_token_sells_where_a_balance_was_asked_for_by_transaction(chain):
    wallet = holder(chain, "watched")
    asked = Tx(sender=wallet.wallet, to=wallet.token, data=encode("balanceOf(address)", wallet.wallet))
    sold = Tx(sender=wallet.wallet, to=wallet.token, data=encode("transfer(address,uint256)", wallet.place.key, 1))
    assert [receipt["status"] for receipt in chain.send(sold)] == ["0x0"]
    assert [receipt["status"] for receipt in chain.send(asked, sold)] == ["0x1", "0x1"]


def test_an_allowance_of_one_use_is_gone_after_it(chain):
    wallet = holder(chain, "one_use")
    assert (wallet.sell(wallet.held() // 2), wallet.sell(wallet.held())) == (True, False)


def test_a_cooldown_ends(chain):
    wallet = holder(chain, "cooldown_60s")
    chain.mine(59)
    assert wallet.sell(wallet.held())


# --- answers that lie -----------------------------------------------------------------------------------------------


def test_an_event_liar_logs_four_times_what_moves(chain):
    wallet = trader(chain, "event_liar")
    wallet.buy()
    logs = chain.node.call("eth_getLogs", [{"address": wallet.token, "topics": [topic("Transfer(address,address,uint256)")], "fromBlock": hex(chain.height), "toBlock": hex(chain.height)}])
    assert [int(log["data"], 16) for log in logs] == [4 * wallet.held()]


def test_a_doubling_balance_is_twice_what_can_be_sold(chain):
    wallet = holder(chain, "balance_doubles")
    assert (wallet.sell(wallet.held() // 2 + 1), wallet.sell(wallet.held() // 2)) == (False, True)


def test_who_holds_nothing_is_told_everything(chain):
    assert trader(chain, "balance_max").held() == 2**256 - 1


def test_a_balance_that_is_not_told_reverts(chain):
    with pytest.raises(Refused, match="revert"):
        trader(chain, "balance_reverts").held()


def test_a_changed_allowance_must_pass_through_zero(chain):
    wallet = trader(chain, "no_return")
    spender = chain.addresses["swap_router_02"]
    assert wallet.send(wallet.token, encode("approve(address,uint256)", spender, 5))["status"] == "0x0"


# --- layouts, rebases, costs ----------------------------------------------------------------------------------------

PLAIN_SHEETS = ("namespaced_proxy", "stored_elsewhere", "packed_flag", "packed_high", "packed_middle", "two_mappings", "checkpointed", "masked", "gons")


@pytest.mark.parametrize("kind", PLAIN_SHEETS)
def test_an_odd_layout_holds_what_a_plain_one_does(chain, kind):
    assert holder(chain, kind).held() == holder(chain, "plain_oz").held()


def test_a_proxy_keeps_its_logic_in_the_slot_of_eip_1967(chain):
    token = Trader(chain, KINDS["namespaced_proxy"], "v2/weth").token
    slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
    assert int(chain.node.call("eth_getStorageAt", [token, slot, "latest"]), 16) != 0


@pytest.mark.parametrize("kind", ["shares", "gons"])
def test_a_rebase_moves_every_balance(chain, kind):
    wallet = holder(chain, kind)
    before, supply = wallet.held(), wallet.read("totalSupply()")
    wallet.owner("rebase(uint256)", supply * 2)
    assert abs(wallet.held() - 2 * before) <= 2


def test_interest_grows_by_the_second(chain):
    wallet = holder(chain, "interest")
    before = wallet.held()
    chain.mine(10)
    assert wallet.held() > before


def test_reflection_gives_holders_of_what_others_move(chain):
    wallet = holder(chain, "reflection")
    before = wallet.held()
    other = Trader(chain, KINDS["reflection"], "v2/weth", wallet="0x" + "0b" * 20)
    other.endow()
    assert other.buy(10 * SPEND_WEI) and wallet.held() > before


def test_a_guzzler_costs_about_a_million_gas(chain):
    wallet = holder(chain, "gas_guzzler")
    used = int(wallet.send(wallet.token, encode("transfer(address,uint256)", "0x" + "0c" * 20, 1))["gasUsed"], 16)
    assert 900_000 < used < 1_200_000


# --- facts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_hostile_text_is_answered_byte_for_byte(chain, text):
    token = Trader(chain, KINDS[f"text_{text}"], "v2/weth")
    assert [token.answer("name()"), token.answer("symbol()")] == ["0x" + text_answer(part).hex() for part in HOSTILE_TEXTS[text]]


@pytest.mark.parametrize("answer", HOSTILE_ANSWERS)
def test_a_raw_answer_is_given_byte_for_byte(chain, answer):
    token = Trader(chain, KINDS[f"answer_{answer}"], "v2/weth")
    assert [token.answer("name()"), token.answer("symbol()")] == ["0x" + part.hex() for part in HOSTILE_ANSWERS[answer]]


def test_a_bomb_answers_a_million_letters(chain):
    assert len(Trader(chain, KINDS["facts_bomb"], "v2/weth").answer("symbol()")) == 2 + 2 * 1_000_064


def test_an_endless_name_uses_up_its_gas(chain):
    with pytest.raises(Refused):
        Trader(chain, KINDS["facts_endless"], "v2/weth").answer("name()", gas=hex(1_000_000))


def decimals_told(chain, kind: str) -> int:
    return Trader(chain, KINDS[kind], "v2/weth").read("decimals()")


@pytest.mark.parametrize("decimals", [0, 6, 24, 77, 255])
def test_decimals_are_told_as_named(chain, decimals):
    assert decimals_told(chain, f"decimals_{decimals}") == decimals


def test_decimals_can_be_no_byte_at_all(chain):
    assert decimals_told(chain, "decimals_word") == 2**255


def test_decimals_can_be_refused(chain):
    with pytest.raises(Refused, match="revert"):
        decimals_told(chain, "no_facts")


def test_a_kind_is_a_frozen_row():
    with pytest.raises(AttributeError):
        ZOO[0].kind = "other"
    assert isinstance(ZOO[0], ZooToken)
