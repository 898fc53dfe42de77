"""Fuzzing of what a stack may send: answers and tool arguments, any bytes at all.

    python -m tests.fuzz.answers -max_total_time=60        # needs atheris; crashes are written beside

Without atheris the same checks run over the corpus and what hypothesis makes of it (`test_answers.py`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from referee.onchain.decision import REASONS, Decision, parse
from referee.onchain.toolbox import TOOLS, ToolRefused, read_arguments, refused

ORDERS_MAX = 8


def check_answer(data: bytes) -> None:
    """Hold one answer to the contract: it is malformed for a known reason, or one object with exactly the orders read."""
    text = data.decode("utf-8", "surrogateescape")
    read = parse(text, ORDERS_MAX)
    if not isinstance(read, Decision):
        assert read.reason in REASONS and read.detail.isprintable() and len(read.detail) <= 160, read
        return
    body = json.loads(text)
    assert isinstance(body, dict) and body["schema"] == "decision/1" and len(body["orders"]) == len(read.orders) <= ORDERS_MAX
    assert [order["type"] for order in body["orders"]] == [order.side for order in read.orders]
    for said, order in zip(body["orders"], read.orders, strict=True):
        if order.side == "buy":
            assert str(order.spend_wei) == said["spend_wei"] and order.token == said["token"].lower()
        if order.side == "sell":
            assert order.token == said["token"].lower() and ("all" if order.sell_all else str(order.amount_raw)) == said["amount_raw"]
    assert parse(read.encode(), ORDERS_MAX) == read


def check_arguments(data: bytes) -> None:
    """Hold one object of tool arguments to the contract: read, or refused in a bounded answer."""
    names = sorted(TOOLS)
    try:
        arguments = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    if not isinstance(arguments, dict):
        return
    try:
        read_arguments(names[data[0] % len(names)], arguments)
    except ToolRefused as error:
        assert len(refused(error.reason, error.detail).text) < 2_000


def one_input(data: bytes) -> None:
    """Check the same bytes as an answer and as tool arguments."""
    check_answer(data)
    check_arguments(data)


def seeds() -> list[bytes]:
    """Answers of the corpus, the long ones cut."""
    rows = (Path(__file__).parents[1] / "onchain" / "answers.jsonl").read_text("utf-8").splitlines()
    return [json.loads(row)["text"].encode("utf-8", "surrogatepass") for row in rows]


def main() -> None:
    """Fuzz until told to stop by the arguments of libFuzzer."""
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
