"""The decision: exactly one valid object, or a reason why the answer is none (001 §2.3.1; ONC-04, ONC-26).

    {"schema": "decision/1",
     "orders": [{"type": "buy", "token": "0x…", "spend_wei": "1000000000000000"},
                {"type": "sell", "token": "0x…", "amount_raw": "250000"},
                {"type": "sell", "token": "0x…", "amount_raw": "all"}],
     "inputs": ["what it relied on"],
     "note": "why"}

`inputs` and `note` may be left out; an empty list of orders is a hold. An input begins with what was relied on: `bundle`,
`book`, `plan`, or the name of a tool, then what it was asked; they are kept verbatim and move nothing. Unknown fields are refused and nothing is
repaired: no broken answer ever becomes a trade or a hold. What parses may still be refused, order by order, by a rule:
open-lp and close-lp as `not_yet`, stops, limits and other standing orders by their names (ONC-26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from chain.address import checksum_ok, is_address
from harnesses.one_object import OBJECT_REASONS, NotOneObject, read_object
from harnesses.outcome import Outcome, Turn
from ledgers.identity import canonical_bytes, sha256_hex
from ledgers.money import TokenRaw, Wei
from ledgers.plain_text import plain_text
from referee.onchain.events import OrderAsked

SCHEMA = "decision/1"
AMOUNT_MAX = 2**256 - 1
INPUTS_MAX = 32
INPUT_CHARS_MAX = 200
NOTE_CHARS_MAX = 2_000
LP_FIELD_CHARS_MAX = 100
DETAIL_CHARS_MAX = 160

BUY, SELL, OPEN_LP, CLOSE_LP = "buy", "sell", "open-lp", "close-lp"
STANDING = ("stop", "stop-loss", "stop-limit", "trailing-stop", "limit", "take-profit", "standing")
"""Orders that would act between turns: understood by name, so that a rule can refuse them by name."""

REASONS = OBJECT_REASONS + (
    "missing_field",
    "unknown_field",
    "wrong_type",
    "wrong_schema",
    "unknown_order_type",
    "too_many_orders",
    "too_many_inputs",
    "field_too_long",
    "not_an_address",
    "wrong_checksum",
    "homoglyph",
    "space_in_number",
    "plus_sign",
    "negative",
    "zero",
    "leading_zero",
    "too_large",
    "not_a_number",
)
"""Every reason why an answer is not a decision."""

_LP_FIELDS = {
    OPEN_LP: ("token", "pool", "spend_wei", "tick_lower", "tick_upper"),
    CLOSE_LP: ("token", "pool", "position"),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A valid decision."""

    schema: str
    orders: tuple[OrderAsked, ...]
    inputs: tuple[str, ...]
    """What it says it relied on, verbatim: text of outside origin."""
    note: str | None
    """Why, verbatim: text of outside origin."""

    def encode(self) -> str:
        """Write the decision in its canonical form, which parses to the same decision."""
        body: dict[str, object] = {"schema": self.schema, "orders": [_written(order) for order in self.orders]}
        if self.inputs:
            body["inputs"] = list(self.inputs)
        if self.note is not None:
            body["note"] = self.note
        return canonical_bytes(body).decode()

    @property
    def sha256(self) -> str:
        """Identity of the canonical form."""
        return sha256_hex(self.encode().encode())


@dataclass(frozen=True, slots=True)
class Malformed:
    """An answer that is no decision."""

    reason: str
    """One of `REASONS`."""
    detail: str
    """Bounded and plain."""


class _NotADecision(ValueError):
    """One object, but not a decision."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def parse(text: str, orders_max: int) -> Decision | Malformed:
    """Read an answer as a decision of at most `orders_max` orders. Raises: nothing, whatever the text."""
    try:
        return _decision(read_object(text), orders_max)
    except (NotOneObject, _NotADecision) as refused:
        return Malformed(refused.reason, plain_text(refused.detail, DETAIL_CHARS_MAX))


def reading(orders_max: int) -> Callable[[str], str | None]:
    """Make the reading of answers that `play` asks for: the reason why a text is malformed, or none."""

    def malformed(text: str) -> str | None:
        read = parse(text, orders_max)
        return f"{read.reason}: {read.detail}" if isinstance(read, Malformed) else None

    return malformed


def of_turn(turn: Turn, orders_max: int) -> Decision | Malformed | None:
    """Read what a turn brought: a decision, a malformed answer, or none when it is neither (out of a limit, unavailable)."""
    if turn.outcome not in (Outcome.ANSWERED, Outcome.MALFORMED):
        return None
    if turn.answer is None:
        return Malformed("too_long", plain_text(turn.reason.removeprefix("too_long: "), DETAIL_CHARS_MAX))
    return parse(turn.answer, orders_max)


def _decision(body: dict[str, Any], orders_max: int) -> Decision:
    if body.get("schema", SCHEMA) != SCHEMA:
        _refuse("wrong_schema", f"schema is {str(body['schema'])[:40]!r}, expected {SCHEMA!r}")
    _fields(body, ("schema", "orders"), ("inputs", "note"), "the decision")
    orders = _typed(body["orders"], list, "orders")
    if len(orders) > orders_max:
        _refuse("too_many_orders", f"{len(orders)} orders, at most {orders_max}")
    return Decision(
        SCHEMA,
        tuple(_order(order, index) for index, order in enumerate(orders)),
        _inputs(body.get("inputs", [])),
        _text(body["note"], NOTE_CHARS_MAX, "note") if "note" in body else None,
    )


def _inputs(value: object) -> tuple[str, ...]:
    inputs = _typed(value, list, "inputs")
    if len(inputs) > INPUTS_MAX:
        _refuse("too_many_inputs", f"{len(inputs)} inputs, at most {INPUTS_MAX}")
    return tuple(_text(item, INPUT_CHARS_MAX, f"inputs[{index}]") for index, item in enumerate(inputs))


# --- orders ---------------------------------------------------------------------------------------------------------


def _order(value: object, index: int) -> OrderAsked:
    where = f"orders[{index}]"
    order = _typed(value, dict, where)
    if "type" not in order:
        _refuse("missing_field", f"{where} has no type")
    side = _typed(order["type"], str, f"{where}.type")
    match side:
        case "buy":
            return _buy(order, index, where)
        case "sell":
            return _sell(order, index, where)
        case "open-lp" | "close-lp":
            return _lp(order, side, index, where)
        case _ if side in STANDING:
            return _asked(index, side, _token_if_any(order))
    _refuse("unknown_order_type", f"{where}.type is {side[:40]!r}")


def _buy(order: dict[str, Any], index: int, where: str) -> OrderAsked:
    _fields(order, ("type", "token", "spend_wei"), (), where)
    token = _token(order["token"], f"{where}.token")
    return _asked(index, BUY, token, spend_wei=Wei(_amount(order["spend_wei"], f"{where}.spend_wei")))


def _sell(order: dict[str, Any], index: int, where: str) -> OrderAsked:
    _fields(order, ("type", "token", "amount_raw"), (), where)
    token = _token(order["token"], f"{where}.token")
    if order["amount_raw"] == "all":
        return _asked(index, SELL, token, sell_all=True)
    return _asked(index, SELL, token, amount_raw=TokenRaw(_amount(order["amount_raw"], f"{where}.amount_raw")))


def _lp(order: dict[str, Any], side: str, index: int, where: str) -> OrderAsked:
    """Read a liquidity order as far as its form: its amounts are not read until such orders are in force."""
    _fields(order, ("type",), _LP_FIELDS[side], where)
    for name in order:
        _text(order[name], LP_FIELD_CHARS_MAX, f"{where}.{name}")
    return _asked(index, side, _token(order["token"], f"{where}.token") if "token" in order else "")


def _token_if_any(order: dict[str, Any]) -> str:
    token = order.get("token")
    return token.lower() if isinstance(token, str) and checksum_ok(token) else ""


def _asked(
    index: int,
    side: str,
    token: str,
    *,
    spend_wei: Wei | None = None,
    amount_raw: TokenRaw | None = None,
    sell_all: bool = False,
) -> OrderAsked:
    return OrderAsked(
        index=index, side=side, token=token, spend_wei=spend_wei, amount_raw=amount_raw, sell_all=sell_all
    )


def _written(order: OrderAsked) -> dict[str, str]:
    body = {"type": order.side} | ({"token": order.token} if order.token else {})
    if order.spend_wei is not None:
        body["spend_wei"] = str(order.spend_wei)
    if order.sell_all or order.amount_raw is not None:
        body["amount_raw"] = "all" if order.sell_all else str(order.amount_raw)
    return body


# --- fields ---------------------------------------------------------------------------------------------------------


def _fields(body: dict[str, Any], needed: tuple[str, ...], allowed: tuple[str, ...], where: str) -> None:
    for name in needed:
        if name not in body:
            _refuse("missing_field", f"{where} has no {name}")
    for name in body:
        if name not in needed and name not in allowed:
            _refuse("unknown_field", f"{where} has {name[:40]!r}, which is not part of {SCHEMA}")


def _typed(value: object, kind: type, where: str) -> Any:
    if type(value) is not kind:
        _refuse("wrong_type", f"{where} is a {type(value).__name__}, expected a {kind.__name__}")
    return value


def _text(value: object, chars_max: int, where: str) -> str:
    text = _typed(value, str, where)
    if len(text) > chars_max:
        _refuse("field_too_long", f"{where} has {len(text)} characters, at most {chars_max}")
    return text


def _token(value: object, where: str) -> str:
    token = _typed(value, str, where)
    if not token.isascii():
        _refuse("homoglyph", f"{where} holds characters that are not ASCII: {ascii(token[:44])}")
    if not is_address(token):
        _refuse("not_an_address", f"{where} is {token[:44]!r}, expected 0x and 40 hex digits")
    if not checksum_ok(token):
        _refuse("wrong_checksum", f"{where} is {token}: neither lower case nor its EIP-55 form")
    return token.lower()


_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_NUMBER_FORMS = (
    (re.compile(r"(?s).*\s", re.ASCII), "space_in_number"),
    (re.compile(r"\+"), "plus_sign"),
    (re.compile(r"(?i)[-+]?(nan|inf|infinity)\Z"), "not_finite"),
    (re.compile(r"-[0-9.]"), "negative"),
    (re.compile(r"[0-9]*\.[0-9]+(e[-+]?[0-9]+)?\Z|[0-9]+\.?(e[-+]?[0-9]+)\Z|[0-9]+\.\Z", re.IGNORECASE), "float"),
)
"""What a text that is not plain digits looks like; the first that fits names the reason."""


def _amount(value: object, where: str) -> int:
    digits = _typed(value, str, where)
    if not digits.isascii():
        _refuse("homoglyph", f"{where} holds characters that are not ASCII: {ascii(digits[:40])}")
    if not _DIGITS.fullmatch(digits):
        reason = next((reason for form, reason in _NUMBER_FORMS if form.match(digits)), "not_a_number")
        _refuse(reason, f"{where} is {digits[:40]!r}, expected the digits of a whole number above 0")
    if digits == "0":
        _refuse("zero", f"{where} is 0")
    if digits.startswith("0"):
        _refuse("leading_zero", f"{where} is {digits[:40]!r}")
    if len(digits) > 78 or int(digits) > AMOUNT_MAX:
        _refuse("too_large", f"{where} is above 2^256 − 1")
    return int(digits)


def _refuse(reason: str, detail: str) -> NoReturn:
    raise _NotADecision(reason, detail)
