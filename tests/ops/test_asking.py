"""The asking: boards, safety stories and pools of a living chain, as a person reads them."""

from __future__ import annotations

import orjson
import pytest

from chain.market import MarketIndex
from ops.asking import board_data, board_table, board_text, raw_typed, token_typed
from ops.onlooker import Onlooker
from ops.pools import pools_table, tokens_table
from ops.reading import WrongUse
from referee.onchain.credit import chosen_row
from referee.onchain.events import HEADLINE, BoardTaken, FillCredited, GateTaken, OrderAsked
from ledgers.money import TokenRaw, Wei
from tests.onchain.ground import Ground


async def seen_on(ground: Ground) -> Onlooker:
    index = MarketIndex(ground.desk.rpc, ground.network, ground.graph)
    return Onlooker(network=ground.network, rpc=ground.desk.rpc, desk=ground.desk, index=index, pin=await ground.desk.pin())


def buy(token: str, spend_wei: int) -> OrderAsked:
    return OrderAsked(index=0, side="buy", token=token, spend_wei=Wei(spend_wei), amount_raw=None, sell_all=False)


def sale(token: str, amount_raw: int) -> OrderAsked:
    return OrderAsked(index=0, side="sell", token=token, spend_wei=None, amount_raw=TokenRaw(amount_raw), sell_all=False)


@pytest.mark.parametrize(("text", "decimals", "raw"), [("0.05", 18, 5 * 10**16), ("1", 0, 1), ("12.5", 6, 12_500_000), ("0.000001", 6, 1), ("9" * 30, 18, (10**30 - 1) * 10**18)])
def test_an_amount_is_read_to_the_last_base_unit(text, decimals, raw):
    assert raw_typed(text, decimals, "--spend") == raw


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", "1e3", "1,5", ".5", "5.", "0.0000001", "nan", "١", "1 ", "9" * 31])
def test_an_amount_that_is_not_whole_base_units_above_0_is_wrong_use(text):
    with pytest.raises(WrongUse):
        raw_typed(text, 6, "--sell")


@pytest.mark.parametrize("text", ["", "0x", "0x59", "LEAF", "0x71C95911e9a5d330f4d621842ec243ee1343292e", "71c95911e9a5d330f4d621842ec243ee1343292e00"])
def test_a_token_is_named_by_its_address_only(text):
    with pytest.raises(WrongUse):
        token_typed(text)


def test_nothing_and_a_wrong_checksum_are_named_as_such():
    with pytest.raises(WrongUse, match="--sell of 0.0 is nothing"):
        raw_typed("0.0", 6, "--sell")
    with pytest.raises(WrongUse, match="EIP-55 checksum"):
        token_typed("0x71C95911e9a5d330f4d621842ec243ee1343292e")


async def test_a_sale_of_more_than_there_is_and_one_that_never_goes_through_say_so(chain):
    ground = await Ground.on(chain)
    seen = await seen_on(ground)
    leaf, trap = (chain.deployment.token(name).address for name in ("LEAF", "honeypot"))
    supply = (await seen.facts(leaf)).total_supply_raw
    told = []
    for asked in (sale(leaf, supply + 1), sale(leaf, supply // 10**6), sale(trap, 10**18)):
        told.append(board_text(seen, asked, await seen.facts(asked.token), await seen.referee(asked), 100))
    assert ["more than there is of it" in text for text in told][:2] == [True, False]
    assert [f"`referee token {trap}`" in " ".join(text.split()) for text in told] == [False, False, True]
    await ground.close()


async def test_a_board_shows_every_row_and_the_one_that_would_fill(chain):
    ground = await Ground.on(chain)
    token = chain.deployment.token("LEAF").address
    seen = await seen_on(ground)
    asked, facts = buy(token, 5 * 10**16), await seen.facts(token)
    events = await seen.referee(asked)
    board = next(event for event in events if isinstance(event, BoardTaken))
    fill = next(event for event in events if isinstance(event, FillCredited))
    table = board_table(seen, board, facts)
    chosen = [row for row in table.data()["rows"] if row["chosen"]]
    assert len(table.rows) == len(board.rows) >= 2
    assert [row["route"] for row in chosen] == [fill.route] == [chosen_row(board, HEADLINE).route]
    assert chosen[0]["arrives_raw"] == str(int(fill.arrival_raw))
    text = board_text(seen, asked, facts, events, 100)
    assert "gate" in text and "CLEAR" in text and "would fill" in text and max(map(len, text.splitlines())) <= 130
    told = board_data(seen, asked, events)
    assert orjson.loads(orjson.dumps(told))["events"][0]["kind"] == "BoardTaken"
    await ground.close()


async def test_asking_for_a_board_moves_nothing_and_a_honeypot_says_why(chain):
    ground = await Ground.on(chain)
    token = chain.deployment.token("honeypot").address
    seen = await seen_on(ground)
    asked, facts = buy(token, 10**16), await seen.facts(token)
    events = await seen.referee(asked)
    gate = next(event for event in events if isinstance(event, GateTaken))
    text = board_text(seen, asked, facts, events, 100)
    assert gate.verdict == "FLAGGED" and "FLAGGED" in text and "gate_flagged (ONC-08)" in text
    assert not [event for event in events if isinstance(event, FillCredited)]
    await ground.close()


@pytest.mark.parametrize("kind", ["LEAF", "shares", "no_return", "tax_5"])
async def test_a_sale_of_exactly_so_many_tokens_is_refereed_whatever_keeps_them(chain, kind):
    ground = await Ground.on(chain)
    token = chain.deployment.token(kind).address
    seen = await seen_on(ground)
    amount_raw = 25 * 10 ** (await seen.facts(token)).decimals
    events = await seen.referee(sale(token, amount_raw))
    board = next(event for event in events if isinstance(event, BoardTaken))
    assert int(board.size_raw) == amount_raw
    assert any(isinstance(event, FillCredited) and int(event.arrival_raw) > 0 for event in events)
    await ground.close()


async def test_pools_are_listed_with_fee_hook_and_depth(chain):
    ground = await Ground.on(chain)
    token = chain.deployment.token("LEAF").address
    seen = await seen_on(ground)
    table = pools_table(seen, await seen.facts(token))
    assert {row["pool"] for row in table.data()["rows"]} == {pool.key for pool in ground.graph.pools_of(token)}
    assert all(int(row["depth"]) > 0 for row in table.data()["rows"])
    await ground.close()


async def test_a_pool_is_named_whole_with_its_exchange_and_whether_it_takes_positions(chain):
    ground = await Ground.on(chain)
    seen = await seen_on(ground)
    token = chain.deployment.token("LEAF").address
    table = pools_table(seen, await seen.facts(token))
    rows = {row["pool"]: row for row in table.data()["rows"]}
    for pool in ground.graph.pools_of(token):
        assert (rows[pool.key]["exchange"], rows[pool.key]["positions"]) == (pool.fork or "Uniswap", "yes" if pool.venue != "v2" and not pool.fork else "no")
    assert {row["exchange"] for row in rows.values()} >= {"Uniswap", "grove"}
    for width in (80, 120):
        lines = table.text(width).splitlines()
        assert max(map(len, lines)) <= width and {line.split()[-1] for line in lines if line.startswith("  pool ")} == set(rows)
    await ground.close()


async def test_the_tokens_of_a_network_are_listed_the_deepest_first_and_no_more_than_asked(chain):
    ground = await Ground.on(chain)
    seen = await seen_on(ground)
    table = await tokens_table(seen, 5)
    depths = [int(row["depth"]) for row in table.data()["rows"] if row["other"] != "USDG"]
    assert len(table.rows) == 5 and depths == sorted(depths, reverse=True)
    assert "more with less: --all" in table.note
    assert len((await tokens_table(seen, None)).rows) > 5
    await ground.close()


async def test_a_hook_that_lets_nobody_sell_is_named_as_what_refused(chain):
    ground = await Ground.on(chain)
    token = chain.deployment.annex.stall("no_sale").token.address
    seen = await seen_on(ground)
    asked, facts = buy(token, 10**16), await seen.facts(token)
    text = board_text(seen, asked, facts, await seen.referee(asked), 120)
    assert "the pool's hook refused the sale" in text
    await ground.close()
