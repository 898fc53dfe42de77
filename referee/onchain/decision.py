"""The decision: exactly one valid object, or a reason why the answer is none (001 §2.3.1; ONC-04, ONC-26).

    {"schema": "decision/1",
     "orders": [{"type": "buy", "token": "0x…", "spend_wei": "1000000000000000"},
                {"type": "sell", "token": "0x…", "amount_raw": "250000"},
                {"type": "sell", "token": "0x…", "amount_raw": "all"},
                {"type": "open-lp", "pool": "0x…", "amount0_raw": "1000", "amount1_raw": "0", "tick_lower": "-600",
                "tick_upper": "600"}, {"type": "open-lp", "pool": "0x…", "amount0_raw": "1000", "amount1_raw": "5",
                "price_lower": "0.9", "price_upper": "1.1"}, {"type": "close-lp", "position": "w1-a-1/3/0"}],
     "inputs": ["what it relied on"],
     "note": "why"}

`inputs` and `note` may be left out; an empty list of orders is a hold. An input begins with what was relied on:
`bundle`, `book`, `plan`, or the name of a tool, then what it was asked; they are kept verbatim and move nothing.
Unknown fields are refused and nothing is repaired: no broken answer ever becomes a trade or a hold. The amounts of
open-lp are the most that may leave the book, and one of them may be 0; its range is by tick, or by price in whole token
1 per whole token 0. What parses may still be refused, order by order, by a rule: stops, limits and other standing
orders by their names (ONC-26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
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
LP_AMOUNT_MAX = 2**128 - 1
"""Pools count in 128 bits."""
TICK_MAX = 887_272
PRICE_CHARS_MAX = 78
INPUTS_MAX = 32
INPUT_CHARS_MAX = 200
NOTE_CHARS_MAX = 2_000
LP_FIELD_CHARS_MAX = 100
DETAIL_CHARS_MAX = 160

BUY, SELL, OPEN_LP, CLOSE_LP = "buy", "sell", "open-lp", "close-lp"
STANDING = ("stop", "stop-loss", "stop-limit", "trailing-stop", "limit", "take-profit", "standing")
"""Orders that would act between turns: understood by name, so that a rule can refuse them by name."""

UNREAD = ("call_unreadable", "unreadable")
"""Reasons of an answer without a text: its host could not read what the model wrote, or it was left unread for another
cause."""

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
    "empty_range",
    "not_a_position",
) + UNREAD
"""Every reason why an answer is not a decision."""

_BY_TICK, _BY_PRICE = ("tick_lower", "tick_upper"), ("price_lower", "price_upper")


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
    """Read what a turn brought: a decision, a malformed answer, or none when it is neither (out of a limit,
    unavailable)."""
    if turn.outcome not in (Outcome.ANSWERED, Outcome.MALFORMED):
        return None
    if turn.answer is None:
        word, _, detail = turn.reason.partition(": ")
        return Malformed(
            *(
                (word, plain_text(detail, DETAIL_CHARS_MAX))
                if word in REASONS
                else ("unreadable", plain_text(turn.reason, DETAIL_CHARS_MAX))
            )
        )
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
        case "open-lp":
            return _open_lp(order, index, where)
        case "close-lp":
            return _close_lp(order, index, where)
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


def _open_lp(order: dict[str, Any], index: int, where: str) -> OrderAsked:
    by_price = any(name in order for name in _BY_PRICE)
    _fields(order, ("type", "pool", "amount0_raw", "amount1_raw", *(_BY_PRICE if by_price else _BY_TICK)), (), where)
    amounts = [_lp_amount(order[name], f"{where}.{name}") for name in ("amount0_raw", "amount1_raw")]
    if not any(amounts):
        _refuse("zero", f"{where} puts in nothing of either token")
    asked = replace(
        _asked(index, OPEN_LP, ""),
        pool=_pool(order["pool"], f"{where}.pool"),
        amount0_raw=TokenRaw(amounts[0]),
        amount1_raw=TokenRaw(amounts[1]),
    )
    if by_price:
        lower, upper = (_price(order[name], f"{where}.{name}") for name in _BY_PRICE)
        _ordered(Fraction(lower), Fraction(upper), where)
        return replace(asked, price_lower=lower, price_upper=upper)
    low, high = (_tick(order[name], f"{where}.{name}") for name in _BY_TICK)
    _ordered(low, high, where)
    return replace(asked, tick_lower=low, tick_upper=high)


def _close_lp(order: dict[str, Any], index: int, where: str) -> OrderAsked:
    _fields(order, ("type", "position"), (), where)
    position = _text(order["position"], LP_FIELD_CHARS_MAX, f"{where}.position")
    if not _POSITION.fullmatch(position):
        _refuse("not_a_position", f"{where}.position is {position[:40]!r}, expected the id that the book shows")
    return replace(_asked(index, CLOSE_LP, ""), position=position)


def _ordered(lower: int | Fraction, upper: int | Fraction, where: str) -> None:
    if lower >= upper:
        _refuse("empty_range", f"{where} has a range that ends where it begins or before")


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
    if order.side == OPEN_LP:
        by_price = order.price_lower != ""
        span = (order.price_lower, order.price_upper) if by_price else (str(order.tick_lower), str(order.tick_upper))
        amounts = {"amount0_raw": str(order.amount0_raw), "amount1_raw": str(order.amount1_raw)}
        return body | {"pool": order.pool} | amounts | dict(zip(_BY_PRICE if by_price else _BY_TICK, span, strict=True))
    if order.side == CLOSE_LP:
        return body | {"position": order.position}
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


def _pool(value: object, where: str) -> str:
    pool = _text(value, LP_FIELD_CHARS_MAX, where)
    if not _POOL_ID.fullmatch(pool):
        return _token(pool, where)
    return pool.lower()


_POOL_ID = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_POSITION = re.compile(r"[a-z0-9/-]+", re.ASCII)
_TICK = re.compile(r"-?[0-9]+", re.ASCII)
_PRICE = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_NUMBER_FORMS = (
    (re.compile(r"(?s).*\s", re.ASCII), "space_in_number"),
    (re.compile(r"\+"), "plus_sign"),
    (re.compile(r"(?i)[-+]?(nan|inf|infinity)\Z"), "not_finite"),
    (re.compile(r"-[0-9.]"), "negative"),
    (re.compile(r"[0-9]*\.[0-9]+(e[-+]?[0-9]+)?\Z|[0-9]+\.?(e[-+]?[0-9]+)\Z|[0-9]+\.\Z", re.IGNORECASE), "float"),
)
"""What a text that is not plain digits looks like; the first that fits names the reason."""


def _lp_amount(value: object, where: str) -> int:
    """One side of a position: 0 where the range lies on the other side of the price."""
    if value == "0":
        return 0
    amount = _amount(value, where)
    if amount > LP_AMOUNT_MAX:
        _refuse("too_large", f"{where} is above 2^128 − 1")
    return amount


def _tick(value: object, where: str) -> int:
    digits = _shaped(value, _TICK, "a whole number, below 0 with a minus sign", where, allow=("negative",))
    if digits.removeprefix("-").startswith("0") and digits != "0":
        _refuse("leading_zero", f"{where} is {digits[:40]!r}")
    if len(digits) > 7 or abs(int(digits)) > TICK_MAX:
        _refuse("too_large", f"{where} is {digits[:40]}, expected −{TICK_MAX} to {TICK_MAX}")
    return int(digits)


def _price(value: object, where: str) -> str:
    digits = _shaped(value, _PRICE, "a decimal number above 0", where, allow=("float",))
    if len(digits) > PRICE_CHARS_MAX:
        _refuse("too_large", f"{where} has {len(digits)} characters, at most {PRICE_CHARS_MAX}")
    if digits.startswith("0") and not digits.startswith("0.") and digits != "0":
        _refuse("leading_zero", f"{where} is {digits[:40]!r}")
    if not Fraction(digits):
        _refuse("zero", f"{where} is 0")
    return digits


def _shaped(value: object, shape: re.Pattern[str], expected: str, where: str, allow: tuple[str, ...] = ()) -> str:
    """A number's text, or the reason why it is none; the forms that `allow` names are part of the shape."""
    digits = _typed(value, str, where)
    if not digits.isascii():
        _refuse("homoglyph", f"{where} holds characters that are not ASCII: {ascii(digits[:40])}")
    if not shape.fullmatch(digits):
        found = [reason for form, reason in _NUMBER_FORMS if reason not in allow and form.match(digits)]
        _refuse(found[0] if found else "not_a_number", f"{where} is {digits[:40]!r}, expected {expected}")
    return digits


def _amount(value: object, where: str) -> int:
    digits = _shaped(value, _DIGITS, "the digits of a whole number above 0", where)
    if digits == "0":
        _refuse("zero", f"{where} is 0")
    if digits.startswith("0"):
        _refuse("leading_zero", f"{where} is {digits[:40]!r}")
    if len(digits) > 78 or int(digits) > AMOUNT_MAX:
        _refuse("too_large", f"{where} is above 2^256 − 1")
    return int(digits)


def _refuse(reason: str, detail: str) -> NoReturn:
    raise _NotADecision(reason, detail)
