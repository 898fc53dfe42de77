"""The tools of a live turn, on the real local chain: everything as of the turn's block, quotes that never fill."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chain.market import MarketIndex
from chain.network import load_network
from chain.pools import PoolGraph
from chain.probe import probe
from chain.rpc import Lane, RpcDoor
from harnesses.question import Question
from ledgers.clock import SystemClock
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH
from ops.live_market import LiveMarket
from ops.live_tools import LiveTools
from referee.onchain.board import Desk
from referee.onchain.book import entry_of, stake_entry
from referee.onchain.bundle import own_book
from referee.onchain.events import HEADLINE, LEDGERS, BoardTaken, FillCredited, OrderAsked, RunOpened
from referee.onchain.opening import window_opened
from referee.onchain.rules import DEFAULT
from referee.onchain.state import WindowState
from referee.onchain.tool_answers import ANSWER_BYTES_MAX
from referee.onchain.toolbox import QUOTE_WEI_MAX, SPECS
from tests.onchain.paper import PaperChain, Said, live_on

RUN, WALLET = "w1-a-1", "0x7c0ffee0000000000000000000000000000a11ce"
STAKE_WEI = 4 * 10**16
NAMES = [spec.name for spec in SPECS]


class Table:
    """One window with one run on the local chain, and the tools of its turn 0."""

    def __init__(self, chain, market: LiveMarket, desk: Desk) -> None:
        self.chain, self.market, self.desk, self.state = chain, market, desk, WindowState()
        self.tools = LiveTools(market=market, desk=desk, rules=DEFAULT, state=self.state)

    async def open(self) -> None:
        self.pin = await self.desk.pin()
        live = live_on(PaperChain(SystemClock()), {"a": Said(SystemClock())})
        opened = window_opened(live, await self.market.network(), self.pin, await self.market.eth_usd(self.pin), 1_790_000_000_000)
        self.opened = replace(opened, stake_wei=Wei(STAKE_WEI))
        run = RunOpened(
            run_id=RUN, ts_ms=1, window_id="w1", stack="a", stack_sha256="", run_sha256="", copy=1, seed=7, wallet=WALLET, entry=stake_entry(Wei(STAKE_WEI))
        )
        for event in (self.opened, run):
            self.state.apply(event)
        self.bundle = await self.market.bundle(self.opened, 0, self.pin)

    def question(self, tick: int = 0) -> Question:
        book = own_book(self.opened, tick, self.state.books.of(RUN, HEADLINE))
        return Question(RUN, tick, "", self.bundle, book, 60_000)

    def turn(self, *, quotes_max: int = 4, plan: str | None = None, names=tuple(NAMES)):
        return self.tools.turn(self.question(), names=names, quotes_max=quotes_max, plan=plan)

    def plan_turn(self):
        return self.tools.turn(Question("w1-b-1", -1, "", b"", b"", 60_000), names=NAMES, quotes_max=2, plan=None)

    def go_on(self, blocks: int) -> None:
        """Let the market go on, and the clock with it."""
        self.chain.step(blocks)
        self.desk.clock_offset_ms += 1_000 * blocks

    def token(self, name: str) -> str:
        return self.chain.deployment.token(name).address.lower()

    def hold(self, name: str, amount: int) -> None:
        """Give the run a fill, as if it had bought."""
        token, order_id = self.token(name), f"{RUN}/0/0"
        entry = entry_of(LEDGERS, {(BOOK, token): amount, ("market", token): -amount, (BOOK, ETH): -1, ("market", ETH): 1})
        fill = FillCredited(
            run_id=RUN, ts_ms=2, order_id=order_id, ledgers=LEDGERS, proven=True, tag="", side="buy", token=token, route="v2", spent_raw=TokenRaw(1),
            arrival_raw=TokenRaw(amount), gas_wei=Wei(0), approvals=(), entry=entry,
        )  # fmt: skip
        run = self.state.runs[RUN]
        run.owed[order_id] = set(LEDGERS)
        run.pins.update({(order_id, ledger): self.pin for ledger in LEDGERS})
        self.state.apply(fill)


@pytest.fixture
async def table(chain):
    chain.mine(2)
    clock, network = SystemClock(), load_network("devnet")
    door = RpcDoor([Lane("devnet", chain.url)], clock=clock)
    found = await probe(door, network, clock)
    graph = PoolGraph(network)
    market = LiveMarket(rpc=door, chain=network, index=MarketIndex(door, network, graph), rules=DEFAULT, found=found)
    laid = Table(chain, market, Desk(door, network, graph, DEFAULT, clock, found.clock_offset_ms))
    await laid.open()
    yield laid
    await door.close()


def said(answer) -> dict:
    assert answer.ok, answer
    return json.loads(answer.text)


async def quoted(table: Table, tools, **arguments) -> dict:
    return said(await tools.use("quote", {"token": table.token("LEAF"), **arguments}))


# --- quotes ---------------------------------------------------------------------------------------------------------


async def test_onc_07_a_quote_says_what_an_order_of_that_size_brings_at_the_turn_s_block(table):
    quote = await quoted(table, table.turn(), side="buy", spend_wei=str(10**15))
    books = table.state.books.both(RUN)
    asked = OrderAsked(index=0, side="buy", token=table.token("LEAF"), spend_wei=Wei(10**15), amount_raw=None, sell_all=False)
    done = await table.desk.decision(RUN, WALLET, 0, table.pin, table.desk.clock.now_ms(), books).order(asked, books)
    board = next(event for event in done.events if isinstance(event, BoardTaken))
    filled = next(event for event in done.events if isinstance(event, FillCredited))
    best = next(row for row in quote["rows"] if row["route"] == quote["best_route"])
    assert (quote["best_route"], best["arrival_raw"]) == (filled.route, str(filled.arrival_raw))
    assert quote["block"]["hash"] == board.pin.block_hash == table.pin.block_hash
    assert (quote["gate"]["verdict"], quote["would_stop_it"], quote["own_book_cannot"]) == ("CLEAR", None, None)


async def test_onc_07_a_quote_never_fills(table):
    before = table.state.books.of(RUN, HEADLINE)
    quote = await quoted(table, table.turn(), side="buy", spend_wei=str(10**15))
    assert quote["fills"] is False and table.state.books.of(RUN, HEADLINE) == before and not table.state.runs[RUN].history


async def test_quotes_are_counted_and_none_is_given_beyond_the_allowance(table):
    tools = table.turn(quotes_max=2)
    assert [(await quoted(table, tools, side="buy", spend_wei="1000000"))["quotes_left"] for _ in range(2)] == [1, 0]
    answer = await tools.use("quote", {"side": "buy", "token": table.token("LEAF"), "spend_wei": "1000000"})
    assert (answer.ok, answer.reason) == (False, "allowance_spent")


async def test_a_quote_that_was_never_made_is_not_counted(table):
    tools = table.turn(quotes_max=1)
    assert (await tools.use("quote", {"side": "buy", "token": table.token("LEAF"), "spend_wei": 7})).reason == "bad_arguments"
    door, table.desk.rpc = table.desk.rpc, RpcDoor([Lane("gone", "http://127.0.0.1:9")], clock=SystemClock())
    assert (await tools.use("quote", {"side": "buy", "token": table.token("LEAF"), "spend_wei": "7"})).reason == "fault"
    await table.desk.rpc.close()
    table.desk.rpc = door
    assert (await quoted(table, tools, side="buy", spend_wei=str(10**15)))["quotes_left"] == 0


async def test_a_quote_beyond_the_own_book_is_quoted_and_says_so(table):
    tools = table.turn()
    buy = await quoted(table, tools, side="buy", spend_wei=str(10 * STAKE_WEI))
    sale = await quoted(table, tools, side="sell", amount_raw=str(10**15))
    assert (buy["own_book_cannot"], sale["own_book_cannot"]) == ("insufficient_eth", "not_held")
    assert buy["best_route"] and sale["best_route"]
    assert (await quoted(table, tools, side="sell", amount_raw="all"))["would_stop_it"] == "not_held"


async def test_all_of_a_holding_can_be_quoted(table):
    table.hold("LEAF", 10**15)
    quote = await quoted(table, table.turn(), side="sell", amount_raw="all")
    exact = await quoted(table, table.turn(), side="sell", amount_raw=str(10**15))
    assert (quote["amount_raw"], quote["own_book_cannot"]) == (str(10**15), None) and quote["rows"] == exact["rows"]


async def test_a_honeypot_is_quoted_with_what_the_rules_make_of_it(table):
    quote = said(await table.turn().use("quote", {"side": "buy", "token": table.token("honeypot"), "spend_wei": str(10**15)}))
    assert (quote["gate"]["verdict"], quote["would_stop_it"]) == ("FLAGGED", "gate_flagged")


async def test_a_block_that_can_no_longer_fill_is_left_for_a_newer_one(table):
    tools = table.turn()
    table.go_on(3)
    table.desk.rules = table.tools.rules = replace(DEFAULT, board_age_ms_max=-1)
    quote = await quoted(table, tools, side="buy", spend_wei=str(10**15))
    assert quote["block"]["number"] > table.pin.block


async def test_a_block_that_the_node_no_longer_keeps_is_left_for_a_newer_one(table):
    tools = table.turn()
    table.go_on(80)
    table.desk.rules = table.tools.rules = replace(DEFAULT, board_age_ms_max=10**9)
    quote = await quoted(table, tools, side="buy", spend_wei=str(10**15))
    assert quote["block"]["number"] > table.pin.block and quote["best_route"]


# --- the market -----------------------------------------------------------------------------------------------------

ASKED = [("token", {"token": "LEAF"}), ("pools", {"sort": "new"}), ("candles", {"token": "LEAF"}), ("swaps", {"token": "LEAF"}), ("gas", {})]


@pytest.mark.parametrize(("name", "arguments"), ASKED, ids=[name for name, _ in ASKED])
async def test_a_tool_shows_the_market_of_the_turn_s_block_whatever_came_after(table, name, arguments):
    arguments = {key: table.token(value) if key == "token" else value for key, value in arguments.items()}
    before = await table.turn().use(name, arguments)
    tools = table.turn()
    table.go_on(5)
    await table.market.bundle(table.opened, 1, await table.desk.pin())
    after = await tools.use(name, arguments)
    assert before == after and said(after)["block"]["hash"] == table.pin.block_hash


async def test_the_token_tool_tries_a_round_trip_once_for_all_that_ask(table):
    answers = [said(await table.turn().use("token", {"token": table.token(kind)})) for kind in ("LEAF", "honeypot", "LEAF")]
    assert [answer["round_trip"]["verdict"] for answer in answers] == ["CLEAR", "FLAGGED", "CLEAR"]
    assert len(table.tools.trips) == 2 and answers[0] == answers[2]


async def test_tokens_are_tried_of_our_own_accord_and_shown_from_the_next_bundle_on(table):
    assert b"round_trip" not in table.bundle
    for tick in (1, 2):
        table.turn()
        await table.tools.settled()
        table.go_on(1)
        shown = json.loads(await table.market.bundle(table.opened, tick, await table.desk.pin()))
        tried = [token["round_trip"] for token in shown["tokens"] if "round_trip" in token]
        assert len(tried) == 4 * tick and all(trip["block"] <= shown["block"]["number"] for trip in tried)
    assert {trip["verdict"] for trip in tried} == {"CLEAR"}


async def test_what_a_stack_asked_about_is_told_to_nobody_else(table):
    await table.plan_turn().use("token", {"token": table.token("honeypot")})
    table.go_on(1)
    assert b"round_trip" not in await table.market.bundle(table.opened, 1, await table.desk.pin())


async def test_the_book_is_the_one_shown_and_the_history_the_run_s_own(table):
    table.hold("LEAF", 10**15)
    tools = table.turn()
    assert said(await tools.use("book", {}))["book"] == json.loads(table.question().book)
    (line,) = said(await tools.use("history", {}))["history"]
    assert (line["happened"], line["arrival_raw"], line["token"]) == ("filled", str(10**15), table.token("LEAF"))


async def test_a_stack_reads_its_own_plan(table):
    assert said(await table.turn(plan="buy low").use("plan", {}))["plan"] == "buy low"
    assert (await table.turn().use("plan", {})).reason == "no_plan"


async def test_a_plan_turn_has_no_book_and_looks_for_itself(table):
    tools = table.plan_turn()
    assert [(await tools.use(name, {})).reason for name in ("book", "history")] == ["no_book", "no_book"]
    table.go_on(2)
    assert said(await tools.use("gas", {}))["block"]["number"] == table.chain.height - 1
    assert (await quoted(table, tools, side="buy", spend_wei=str(10**15)))["best_route"]


async def test_only_the_tools_of_the_manifest_are_laid_out(table):
    assert [spec.name for spec in table.turn(names=("gas", "quote")).specs] == ["gas", "quote"]
    with pytest.raises(ValueError, match="no tool named 'wallet'"):
        table.turn(names=("wallet",))


async def test_every_answer_on_every_odd_token_is_bounded(table):
    tools = table.turn(quotes_max=1_000)
    for token in table.chain.deployment.tokens:
        for name in ("token", "candles", "swaps", "pools"):
            answer = await tools.use(name, {"token": token.address.lower()})
            assert len(answer.text) <= ANSWER_BYTES_MAX and json.loads(answer.text), (token.kind, name)
            assert answer.ok or answer.reason == "unknown_token", (token.kind, name, answer)
    assert [lane.faults for lane in table.desk.rpc.lanes] == [0]


ODD_SIZES = [1, QUOTE_WEI_MAX, QUOTE_WEI_MAX + 1, 2**96 - 1, 2**96, 2**112, 2**128 - 1, 2**128, 2**255, 2**256 - 1]


@pytest.mark.parametrize("size", ODD_SIZES)
async def test_a_quote_of_any_size_is_answered(table, size):
    tools = table.turn(quotes_max=100)
    for token in ("LEAF", "PINE", "RUNE", "tax_5"):
        for asked in ({"side": "buy", "spend_wei": str(size)}, {"side": "sell", "amount_raw": str(size)}):
            answer = await tools.use("quote", {"token": table.token(token), **asked})
            too_much = asked["side"] == "buy" and size > QUOTE_WEI_MAX
            assert json.loads(answer.text) and (answer.reason if too_much else answer.ok) == ("bad_arguments" if too_much else True), (token, asked, answer)
    assert [lane.faults for lane in table.desk.rpc.lanes] == [0]


async def test_a_quote_of_what_is_no_token_of_the_market_is_answered(table):
    tools = table.turn(quotes_max=100)
    places = [table.chain.addresses[name] for name in ("weth", "usdg", "v2_router", "multicall3")] + ["0x" + "00" * 20, "0x" + "ff" * 20, WALLET]
    for place in places:
        for asked in ({"side": "buy", "spend_wei": str(10**15)}, {"side": "sell", "amount_raw": "1000"}, {"side": "sell", "amount_raw": "all"}):
            answer = await tools.use("quote", {"token": place.lower(), **asked})
            assert json.loads(answer.text) and answer.ok, (place, asked, answer)
    assert [lane.faults for lane in table.desk.rpc.lanes] == [0]
