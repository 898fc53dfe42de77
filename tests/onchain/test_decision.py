"""No broken answer ever becomes a trade or a hold: the decision contract and its corpus (001 §2.3.1; ONC-04, ONC-26).

`answers.jsonl` is the corpus: one answer a line with its verdict, `ok` or the reason; `fill` [mark, text, times] writes
the mark out into a long text.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.address import checksummed
from harnesses.outcome import Outcome, Turn
from harnesses.one_object import CHARS_MAX
from ledgers.money import TokenRaw, Wei
from referee.onchain.decision import REASONS, STANDING, UNREAD, Decision, Malformed, of_turn, parse, reading
from referee.onchain.events import OrderAsked

ORDERS_MAX = 8
TOKEN = "0x" + "a1" * 20
HOLD = '{"schema":"decision/1","orders":[]}'
CORPUS = [json.loads(line) for line in (Path(__file__).parent / "answers.jsonl").read_text().splitlines()]


def text_of(row: dict) -> str:
    mark, text, times = row.get("fill", ("", "", 0))
    return row["text"].replace(mark, text * times) if mark else row["text"]


def verdict(read: Decision | Malformed) -> str:
    return "ok" if isinstance(read, Decision) else read.reason


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row["name"])
def test_each_answer_of_the_corpus_has_its_verdict(row: dict) -> None:
    assert verdict(parse(text_of(row), ORDERS_MAX)) == row["verdict"]


def test_every_reason_is_produced_by_the_corpus_but_the_one_no_text_can_have() -> None:
    assert {row["verdict"] for row in CORPUS} == {"ok", *REASONS} - {"not_text", *UNREAD}
    assert len(REASONS) == len(set(REASONS))


@pytest.mark.parametrize("answer", [None, b"{}", 7, {"schema": "decision/1", "orders": []}], ids=repr)
def test_an_answer_that_is_not_text_is_malformed(answer: object) -> None:
    assert verdict(parse(answer, ORDERS_MAX)) == "not_text"  # type: ignore[arg-type]


def test_details_are_bounded_and_plain() -> None:
    for row in CORPUS:
        if isinstance(read := parse(text_of(row), ORDERS_MAX), Malformed):
            assert 0 < len(read.detail) <= 160 and read.detail.isprintable(), row["name"]


def test_an_empty_list_of_orders_is_a_hold() -> None:
    assert parse(HOLD, ORDERS_MAX) == Decision("decision/1", (), (), None)


def test_onc_04_buys_and_sells_are_read_for_their_exact_size() -> None:
    mixed = checksummed(TOKEN)
    answer = json.dumps(
        {
            "schema": "decision/1",
            "orders": [
                {"type": "buy", "token": mixed, "spend_wei": str(2**256 - 1)},
                {"type": "sell", "token": TOKEN, "amount_raw": "7"},
                {"type": "sell", "token": TOKEN, "amount_raw": "all"},
            ],
        }
    )
    blank = {"token": TOKEN, "spend_wei": None, "amount_raw": None, "sell_all": False}
    assert parse(answer, ORDERS_MAX).orders == (
        OrderAsked(**blank | {"index": 0, "side": "buy", "spend_wei": Wei(2**256 - 1)}),
        OrderAsked(**blank | {"index": 1, "side": "sell", "amount_raw": TokenRaw(7)}),
        OrderAsked(**blank | {"index": 2, "side": "sell", "sell_all": True}),
    )


def test_at_most_the_ruled_number_of_orders_is_read() -> None:
    order = {"type": "sell", "token": TOKEN, "amount_raw": "all"}
    answer = json.dumps({"schema": "decision/1", "orders": [order] * 3})
    assert verdict(parse(answer, 3)) == "ok"
    assert verdict(parse(answer, 2)) == "too_many_orders"


def test_the_longest_text_is_read_and_one_character_more_is_not() -> None:
    assert verdict(parse(HOLD + " " * (CHARS_MAX - len(HOLD)), ORDERS_MAX)) == "ok"
    assert verdict(parse(HOLD + " " * (CHARS_MAX - len(HOLD) + 1), ORDERS_MAX)) == "too_long"


def test_onc_21_liquidity_orders_are_read_for_their_exact_range_and_sizes() -> None:
    body = {"type": "open-lp", "pool": TOKEN.upper().replace("0X", "0x"), "amount0_raw": "7", "amount1_raw": "0"}
    by_tick = body | {"pool": TOKEN, "tick_lower": "-120", "tick_upper": "60"}
    by_price = body | {"pool": "0x" + "AB" * 32, "price_lower": "0.50", "price_upper": "2"}
    close = {"type": "close-lp", "position": "w1-a-1/3/0"}
    orders = parse(json.dumps({"schema": "decision/1", "orders": [by_tick, by_price, close]}), ORDERS_MAX).orders
    blank = {"token": "", "spend_wei": None, "amount_raw": None, "sell_all": False}
    opening = blank | {"side": "open-lp", "amount0_raw": TokenRaw(7), "amount1_raw": TokenRaw(0)}
    assert orders == (
        OrderAsked(**opening | {"index": 0, "pool": TOKEN, "tick_lower": -120, "tick_upper": 60}),
        OrderAsked(**opening | {"index": 1, "pool": "0x" + "ab" * 32, "price_lower": "0.50", "price_upper": "2"}),
        OrderAsked(**blank | {"index": 2, "side": "close-lp", "position": "w1-a-1/3/0"}),
    )


@pytest.mark.parametrize("kind", STANDING)
def test_onc_26_orders_not_in_force_keep_their_name_for_the_rule_to_refuse(kind: str) -> None:
    answer = json.dumps({"schema": "decision/1", "orders": [{"type": kind, "token": TOKEN}]})
    (order,) = parse(answer, ORDERS_MAX).orders
    assert (order.side, order.token, order.spend_wei, order.amount_raw, order.sell_all) == (
        kind,
        TOKEN,
        None,
        None,
        False,
    )


def test_onc_26_a_standing_order_has_no_token_unless_it_names_a_valid_one() -> None:
    answer = '{"schema":"decision/1","orders":[{"type":"stop"},{"type":"limit","token":"PEPE"}]}'
    assert [order.token for order in parse(answer, ORDERS_MAX).orders] == ["", ""]


# --- turns ----------------------------------------------------------------------------------------------------------


def ended(outcome: Outcome, answer: str | None, reason: str = "") -> Turn:
    return Turn(outcome, answer, reason, (), 0, 0)


def test_an_answered_turn_brings_its_decision() -> None:
    assert verdict(of_turn(ended(Outcome.ANSWERED, HOLD), ORDERS_MAX)) == "ok"


@pytest.mark.parametrize(
    "outcome", [Outcome.OUT_OF_TIME, Outcome.OUT_OF_STEPS, Outcome.OUT_OF_OUTPUT, Outcome.UNAVAILABLE]
)
def test_a_turn_without_an_answer_brings_no_decision_even_when_text_is_left_of_it(outcome: Outcome) -> None:
    assert of_turn(ended(outcome, HOLD, "why"), ORDERS_MAX) is None


def test_a_malformed_turn_brings_its_reason() -> None:
    assert of_turn(ended(Outcome.MALFORMED, "buy!"), ORDERS_MAX).reason == "not_json"
    assert of_turn(ended(Outcome.MALFORMED, None, "too_long: 9 bytes"), ORDERS_MAX) == Malformed("too_long", "9 bytes")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("call_unreadable: http 400: tool_use_failed", Malformed("call_unreadable", "http 400: tool_use_failed")),
        ("too_deep: nested too deeply to be read", Malformed("too_deep", "nested too deeply to be read")),
        ("another cause: 7", Malformed("unreadable", "another cause: 7")),
    ],
)
def test_a_malformed_turn_without_a_text_is_told_by_its_own_word(reason: str, told: Malformed) -> None:
    assert of_turn(ended(Outcome.MALFORMED, None, reason), ORDERS_MAX) == told
    assert told.reason in REASONS


def test_the_reading_that_a_turn_asks_for_names_the_reason_or_none() -> None:
    assert reading(ORDERS_MAX)(HOLD) is None
    assert reading(ORDERS_MAX)("").startswith("empty: ")


# --- any text at all ------------------------------------------------------------------------------------------------

TOKENS = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
AMOUNTS = st.integers(1, 2**256 - 1).map(str)
POOLS = TOKENS | st.binary(min_size=32, max_size=32).map(lambda raw: "0x" + raw.hex())
LP = {
    "type": st.just("open-lp"),
    "pool": POOLS,
    "amount0_raw": st.integers(0, 2**128 - 1).map(str),
    "amount1_raw": st.integers(1, 2**128 - 1).map(str),
}
ORDERS = st.one_of(
    st.fixed_dictionaries({"type": st.just("buy"), "token": TOKENS | TOKENS.map(checksummed), "spend_wei": AMOUNTS}),
    st.fixed_dictionaries({"type": st.just("sell"), "token": TOKENS, "amount_raw": AMOUNTS | st.just("all")}),
    st.fixed_dictionaries({"type": st.sampled_from(STANDING)}, optional={"token": TOKENS, "price": AMOUNTS}),
    st.fixed_dictionaries(
        {"type": st.just("close-lp"), "position": st.from_regex(r"[a-z0-9-]{1,40}/[0-9]{1,4}/[0-7]", fullmatch=True)}
    ),
    st.fixed_dictionaries(
        LP | {"tick_lower": st.integers(-887_272, 0).map(str), "tick_upper": st.integers(1, 887_272).map(str)}
    ),
    st.fixed_dictionaries(
        LP
        | {
            "price_lower": st.decimals("0.001", 1, places=3).map(str),
            "price_upper": st.decimals("1.5", 9, places=1).map(str),
        }
    ),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
DECISIONS = st.fixed_dictionaries(
    {"schema": st.just("decision/1"), "orders": st.lists(ORDERS, max_size=8)},
    optional={"note": TEXTS, "inputs": st.lists(TEXTS, max_size=4)},
)
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["buy", TOKEN, "all", "1"]),
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(
            st.sampled_from(["schema", "orders", "type", "token", "note"]) | st.text(max_size=5), part, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.text(st.characters(), max_size=300) | JUNK.map(json.dumps) | JUNK.map(lambda part: json.dumps(part) + "x"))
def test_any_text_is_a_decision_or_malformed_with_a_known_reason(text: str) -> None:
    read = parse(text, ORDERS_MAX)
    assert isinstance(read, Decision) or read.reason in REASONS


@given(DECISIONS)
def test_a_valid_decision_is_read_and_its_canonical_form_reads_the_same(body: dict) -> None:
    read = parse(json.dumps(body), ORDERS_MAX)
    assert isinstance(read, Decision)
    assert parse(read.encode(), ORDERS_MAX) == read
    assert [order.side for order in read.orders] == [order["type"] for order in body["orders"]]


@given(DECISIONS, st.data())
def test_a_decision_cut_anywhere_is_never_a_decision(body: dict, data: st.DataObject) -> None:
    text = json.dumps(body)
    assert isinstance(parse(text[: data.draw(st.integers(0, len(text) - 1))], ORDERS_MAX), Malformed)


@given(DECISIONS, st.data())
def test_one_changed_character_never_adds_or_loses_an_order(body: dict, data: st.DataObject) -> None:
    text = json.dumps(body)
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    read = parse(damaged, ORDERS_MAX)
    assert isinstance(read, Malformed) or len(read.orders) == len(body["orders"])
