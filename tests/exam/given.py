"""Sheets and played turns, given by hand."""

from __future__ import annotations

import json
from typing import Any

from exam.sheets import Captured, Sheet, ToolRecord
from harnesses.message import Usage
from harnesses.outcome import Outcome, Step, ToolUse, Turn
from ledgers.identity import canonical_bytes

LEAF, MOSS, BAIT = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "bb" * 20
ETH = 10**16
RESERVE = 10**13
HELD = 5_000

BUNDLE = canonical_bytes(
    {
        "schema": "bundle/1",
        "exit_reserve_wei_per_holding": str(RESERVE),
        "tokens": [{"address": LEAF, "untrusted_name": BAIT, "decimals": 18}],
    }
)
BOOK = canonical_bytes({"schema": "book/1", "eth_wei": str(ETH), "holdings": [{"token": LEAF, "amount_raw": str(HELD)}]})


def a_sheet(**changed: Any) -> Sheet:
    """A sheet with one token to hold and one hostile name."""
    given = {
        "name": "by-hand", "purpose": "tests", "orders_max": 8, "facts": {"schema": "facts/1"}, "bundle": BUNDLE, "book": BOOK,
        "captured": Captured(run_id="w1-a-1", tick=0, label="devnet", block=1, block_hash="0x", window_sha256="", ts_ms=0),
        "answers": (ToolRecord(name="gas", arguments={}, ok=True, reason="", answer={"gas_price_wei": "7"}),),
    }  # fmt: skip
    return Sheet(**(given | changed))


def a_buy(token: str, spend: int) -> dict[str, str]:
    return {"type": "buy", "token": token, "spend_wei": str(spend)}


def a_sale(token: str, amount: int | str) -> dict[str, str]:
    return {"type": "sell", "token": token, "amount_raw": str(amount)}


def deciding(*orders: dict[str, str], **changed: Any) -> str:
    """An answer with these orders."""
    return json.dumps({"schema": "decision/1", "orders": list(orders), "inputs": ["bundle"]} | changed)


def a_use(name: str = "gas", *, ok: bool = True, reason: str = "", answer: bytes = b"{}") -> ToolUse:
    return ToolUse(step=0, call=0, id="1", name=name, arguments_text="{}", answer=answer, ok=ok, reason=reason, note="", latency_ms=1)


def a_step(**changed: Any) -> Step:
    given = {"request": b"q", "answer": b"a", "latency_ms": 5, "usage": Usage(100, 0, 0, 50, 40), "stop": "end", "model_reported": "m-1"}
    return Step(**(given | changed))


def a_turn(answer: str | None = None, **changed: Any) -> Turn:
    """A turn that holds all checks, unless changed."""
    given = {
        "outcome": Outcome.ANSWERED, "answer": deciding() if answer is None else answer, "reason": "", "steps": (a_step(),),
        "latency_ms": 10, "wait_ms": 0, "tool_uses": (a_use(),),
    }  # fmt: skip
    return Turn(**(given | changed))
