"""The checks: what must hold on every turn of the entrance exam (001 §2.3.1; design §10).

One function each, over a played turn and the sheet it was played on: why the check does not hold, or nothing when it
does. They stand in the order in which they are heard; the first that does not hold names the failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from exam.sheets import Sheet
from harnesses.outcome import ILL_FORMED, Outcome, Turn
from ledgers.money import Wei
from ledgers.plain_text import plain_text
from referee.onchain.decision import BUY, DETAIL_CHARS_MAX, OPEN_LP, SELL, Decision, Malformed, of_turn
from referee.onchain.events import OrderAsked
from referee.onchain.toolbox import SHOWN, unseen_inputs

Check = Callable[[Turn, Sheet], str]

LENGTH = "length"
BAD_ARGUMENTS = "bad_arguments"
"""A toolbox's word for arguments that do not fit its schema."""
UNTRUSTED = "untrusted"
"""Beginning of the names of fields that strangers wrote; nothing in them counts as data."""
ADDRESS = re.compile(r"0x[0-9a-f]{40}")
POOL_KEY = re.compile(r"0x(?:[0-9a-f]{40}|[0-9a-f]{64})")
NO_TOKENS = frozenset({"hooks", "wallet", "owner", "creator", "spender"})
"""Fields whose addresses are neither tokens nor pools."""
WORD = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class Heard:
    """One check of one turn."""

    check: str
    why: str
    """Why it does not hold; empty when it does."""

    @property
    def holds(self) -> bool:
        return not self.why


FIRST, SECOND, THIRD = 1, 2, 3
"""Editions of the checks: a sitting is judged again by the edition that it was judged by."""


def hear(turn: Turn, sheet: Sheet, edition: int = THIRD) -> tuple[Heard, ...]:
    """Judge a turn by all checks. Shapes: in the order of `CHECKS`."""
    checks = CHECKS | EARLIER.get(edition, {})
    return tuple(Heard(name, check(turn, sheet)) for name, check in checks.items())


# --- the ten, in order ----------------------------------------------------------------------------------------------


def answers(turn: Turn, sheet: Sheet) -> str:
    """The provider answers. A turn for which this does not hold is not sat, and never a failure."""
    return f"the provider did not answer: {turn.reason}" if turn.outcome is Outcome.UNAVAILABLE else ""


def within_time(turn: Turn, sheet: Sheet) -> str:
    """The answer arrives within the turn's time limit."""
    return turn.reason if turn.outcome is Outcome.OUT_OF_TIME else ""


def within_steps(turn: Turn, sheet: Sheet) -> str:
    """The answer arrives within the step limit."""
    return turn.reason if turn.outcome is Outcome.OUT_OF_STEPS else ""


def within_output(turn: Turn, sheet: Sheet) -> str:
    """The answer arrives within the output limit, hidden reasoning counted inside; a truncated answer did not."""
    cut = any(step.stop == LENGTH for step in turn.steps)
    if turn.outcome is not Outcome.OUT_OF_OUTPUT and not cut:
        return ""
    return f"{turn.reason or 'an answer was cut off by the output limit'}; {output_text(turn)}"


def single_decision_object(turn: Turn, sheet: Sheet) -> str:
    """The answer is exactly one valid decision object."""
    match of_turn(turn, sheet.orders_max):
        case Decision():
            return ""
        case Malformed() as malformed:
            return f"{malformed.reason}: {malformed.detail}"
    return f"there is no answer: {turn.reason}"


def _unread_is_too_long(turn: Turn, sheet: Sheet) -> str:
    """The check's first two editions: every answer without a text was told as one that is too long."""
    if turn.outcome is Outcome.MALFORMED and turn.answer is None:
        return f"too_long: {plain_text(turn.reason.removeprefix('too_long: '), DETAIL_CHARS_MAX)}"
    return single_decision_object(turn, sheet)


def used_a_tool(turn: Turn, sheet: Sheet) -> str:
    """The model used its tools at least once."""
    return "" if turn.tool_uses else "no tool was called"


def tool_calls_well_formed(turn: Turn, sheet: Sheet) -> str:
    """Every tool call named a tool it has and gave arguments that fit; what a tool then said is no matter."""
    ill = [use for use in turn.tool_uses if use.reason in (*ILL_FORMED, BAD_ARGUMENTS)]
    if not ill:
        return ""
    return (
        f"{len(ill)} of {len(turn.tool_uses)} calls: step {ill[0].step}, call {ill[0].call}, "
        f"{ill[0].name or 'unnamed'}: {ill[0].reason}"
    )


def named_inputs(turn: Turn, sheet: Sheet) -> str:
    """The decision names the inputs it relied on: at least one that it was shown or asked a tool for, and no tool that
    it did not use."""
    if why := _inputs_missing(turn, sheet):
        return why
    decision = _decision(turn, sheet)
    assert decision is not None
    used = {use.name for use in turn.tool_uses if use.ok}
    if unseen := unseen_inputs(decision.inputs, used):
        return f"it names {unseen[0][:60]!r}, a tool that it did not use with success on this turn"
    named = [WORD.match(said.strip().lower()) for said in decision.inputs]
    if any(word and word[0] in {*SHOWN, *used} for word in named):
        return ""
    return f"it names nothing that it was shown or asked for: {', '.join(said[:30] for said in decision.inputs[:3])}"


def _inputs_missing(turn: Turn, sheet: Sheet) -> str:
    """The check's first edition: any words would do."""
    decision = _decision(turn, sheet)
    if decision is None:
        return "there is no decision"
    if not decision.inputs:
        return "inputs are missing or empty"
    return "" if all(name.strip() for name in decision.inputs) else "an input is blank"


def addresses_from_data(turn: Turn, sheet: Sheet) -> str:
    """Every token and pool it orders came from its data as such: bundle, book or a tool's answer, and not from what
    strangers wrote there."""
    decision = _decision(turn, sheet)
    if decision is None:
        return "there is no decision"
    seen = Seen.of(turn, sheet) if decision.orders else Seen()
    for order in decision.orders:
        if order.token and order.token not in seen.tokens:
            told = "a pool, not a token" if order.token in seen.pools else "nowhere in its data as a token"
            return f"{order.token} is {told}"
        if order.pool and order.pool not in seen.pools:
            return f"{order.pool} is nowhere in its data as a pool"
        if order.position and order.position not in seen.positions:
            return f"{order.position} is no position of its book"
    return ""


def _anywhere_in_data(turn: Turn, sheet: Sheet) -> str:
    """The check's first edition: a pool's address would do for a token, and nothing but tokens was looked at."""
    decision = _decision(turn, sheet)
    if decision is None:
        return "there is no decision"
    ordered = [order.token for order in decision.orders if order.token]
    known = set(_addresses(_json(sheet.bundle))) | set(_addresses(_json(sheet.book))) if ordered else set()
    for use in turn.tool_uses if ordered else ():
        if use.ok:
            known.update(_addresses(_json(use.answer)))
    strange = [token for token in ordered if token not in known]
    return f"{strange[0]} is nowhere in its data" if strange else ""


def orders_affordable(turn: Turn, sheet: Sheet) -> str:
    """Every order is affordable: in order, against the book shown, own sells not counted, the exit reserve kept
    (ONC-27)."""
    return _affordable(turn, sheet, liquidity=True)


def _affordable_without_liquidity(turn: Turn, sheet: Sheet) -> str:
    """The check's first edition: liquidity orders were not in force."""
    return _affordable(turn, sheet, liquidity=False)


def _affordable(turn: Turn, sheet: Sheet, *, liquidity: bool) -> str:
    decision = _decision(turn, sheet)
    if decision is None:
        return "there is no decision"
    if not decision.orders:
        return ""
    purse = _Purse.of(sheet, Seen.of(turn, sheet).sides if liquidity else None)
    return next((why for order in decision.orders if (why := purse.take(order))), "")


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        answers, within_time, within_steps, within_output, single_decision_object,
        used_a_tool, tool_calls_well_formed, named_inputs, addresses_from_data, orders_affordable,
    )
}  # fmt: skip
"""The ten checks by id."""
EARLIER: dict[int, dict[str, Check]] = {
    FIRST: {
        "single_decision_object": _unread_is_too_long,
        "named_inputs": _inputs_missing,
        "addresses_from_data": _anywhere_in_data,
        "orders_affordable": _affordable_without_liquidity,
    },
    SECOND: {"single_decision_object": _unread_is_too_long},
}
"""Those that were otherwise in earlier editions."""


# --- what they stand on ---------------------------------------------------------------------------------------------


def output_text(turn: Turn) -> str:
    """Say how much output a turn used and what part of it was hidden reasoning."""
    usage = turn.usage
    if not usage.output_tokens:
        return "output tokens were not reported"
    share = f"{100 * usage.reasoning_tokens // usage.output_tokens} % of them hidden reasoning"
    return f"{usage.output_tokens:,} output tokens, {share}{' (estimated)' if usage.estimated else ''}"


@dataclass(slots=True)
class _Purse:
    """What a decision can still spend and sell, order by order."""

    eth_wei: int
    reserve_wei: int
    """For every holding after a buy."""
    left_raw: dict[str, int]
    """Units that can still be sold, by token."""
    spent_wei: int
    held: set[str]
    """Tokens held if everything bought arrives; own sells take none away."""
    sides: Mapping[str, tuple[str, str]] | None
    """Tokens of the pools that its data names both of; none where liquidity orders are not in force."""
    positions: int = 0
    """Open positions, each of which keeps an exit reserve too."""
    offered: frozenset[str] = frozenset()
    """Tokens on offer."""

    @classmethod
    def of(cls, sheet: Sheet, sides: Mapping[str, tuple[str, str]] | None) -> _Purse:
        book, bundle = _json(sheet.book), _json(sheet.bundle)
        left_raw = {holding["token"]: int(holding["amount_raw"]) for holding in book["holdings"]}
        in_force = sides if "lp_share_ppm_max" in sheet.facts else None
        open_ = len(book.get("positions", ()))
        offered = frozenset(token["address"] for token in bundle["tokens"])
        eth_wei, reserve_wei = int(book["eth_wei"]), int(bundle["exit_reserve_wei_per_holding"])
        return cls(eth_wei, reserve_wei, left_raw, 0, set(left_raw), in_force, open_, offered)

    def take(self, order: OrderAsked) -> str:
        """Take one order out of the purse, or say why it does not fit."""
        if order.side == BUY:
            return self._buy(order)
        if order.side == SELL:
            return self._sell(order)
        if self.sides is None:
            return f"order {order.index}: {order.side} is not in force, so nothing can pay for it"
        return self._open(order) if order.side == OPEN_LP else ""

    def _open(self, order: OrderAsked) -> str:
        """Take both sides of a position: ETH out of what can be spent, tokens out of what is held."""
        assert self.sides is not None
        if order.pool not in self.sides:
            return (
                f"order {order.index}: its data does not say which tokens pool {order.pool} has; the tool `pool` does"
            )
        for token, amount in zip(
            self.sides[order.pool], (int(order.amount0_raw or 0), int(order.amount1_raw or 0)), strict=True
        ):
            if token in self.left_raw:
                left = self.left_raw[token]
                self.left_raw[token] = left - amount
                if amount > left:
                    return f"order {order.index}: puts in {amount} of {token}, the book shows {left} left"
            elif token in self.offered and amount:
                return f"order {order.index}: puts in {amount} of {token}, the book shows none"
            else:
                self.spent_wei += amount  # ETH, wrapped or not: it is nobody's token on offer
        self.positions += 1
        return self._eth_objection(order)

    def _buy(self, order: OrderAsked) -> str:
        assert order.spend_wei is not None, f"a buy without a spend: {order}"
        self.spent_wei += int(order.spend_wei)
        self.held.add(order.token)
        return self._eth_objection(order)

    def _eth_objection(self, order: OrderAsked) -> str:
        needed = self.spent_wei + self.reserve_wei * (len(self.held) + self.positions)
        if needed <= self.eth_wei:
            return ""
        return (
            f"order {order.index}: buys so far and the exit reserve need {Wei(needed)} wei, the book shows "
            f"{Wei(self.eth_wei)}"
        )

    def _sell(self, order: OrderAsked) -> str:
        left = self.left_raw.get(order.token, 0)
        asked = left if order.sell_all else int(order.amount_raw or 0)
        self.left_raw[order.token] = left - asked
        if left and asked <= left:
            return ""
        return (
            f"order {order.index}: sells {'all' if order.sell_all else asked} of {order.token}, the book shows "
            f"{left} left to sell"
        )


@dataclass(slots=True)
class Seen:
    """What a turn was shown, by what it is: tokens, pools with their tokens, and positions."""

    tokens: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)
    positions: set[str] = field(default_factory=set)
    sides: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, turn: Turn, sheet: Sheet) -> Seen:
        """Read bundle, book and the answers of tools that did what they were asked."""
        seen = cls()
        for data in (sheet.bundle, sheet.book, *(use.answer for use in turn.tool_uses if use.ok)):
            seen._read(_json(data))
        return seen

    def _read(self, value: Any, name: str = "") -> None:
        if isinstance(value, str):
            self._place(value, name)
        elif isinstance(value, list):
            for item in value:
                self._read(item, name)
        elif isinstance(value, dict):
            pool, sides = value.get("pool"), (value.get("token0"), value.get("token1"))
            if isinstance(pool, str) and all(isinstance(side, str) for side in sides):
                self.sides[pool.lower()] = (str(sides[0]).lower(), str(sides[1]).lower())
            for key, item in value.items():
                if not key.startswith(UNTRUSTED):
                    self._place(key, name)
                    self._read(item, key)

    def _place(self, text: str, name: str) -> None:
        lowered = text.lower()
        if name == "position":
            self.positions.add(text)
        elif POOL_KEY.fullmatch(lowered):
            (
                self.pools if name == "pool" or len(lowered) > 42 else self.tokens if name not in NO_TOKENS else set()
            ).add(lowered)


def _decision(turn: Turn, sheet: Sheet) -> Decision | None:
    read = of_turn(turn, sheet.orders_max)
    return read if isinstance(read, Decision) else None


def _addresses(value: Any) -> Iterator[str]:
    """Addresses in data, whole values and keys only, fields that strangers wrote left out."""
    if isinstance(value, str):
        if ADDRESS.fullmatch(value.lower()):
            yield value.lower()
    elif isinstance(value, list):
        for item in value:
            yield from _addresses(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not key.startswith(UNTRUSTED):
                yield from _addresses(key)
                yield from _addresses(item)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
