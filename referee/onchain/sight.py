"""Sight: what a stack without a model reads out of the bundle and the book it is shown, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from harnesses.question import Question
from ledgers.money import mul_div_floor


@dataclass(frozen=True, slots=True)
class SeenToken:
    """A token on offer."""

    address: str
    decimals: int
    price_wei: int
    """Wei for one whole token."""
    liquidity_wei: int
    prices_wei: tuple[int, ...]
    """Price at the end of each step of history, oldest first."""


@dataclass(frozen=True, slots=True)
class SeenMarket:
    """The shared part."""

    tokens: tuple[SeenToken, ...]
    """By descending liquidity."""
    reserve_wei: int
    """ETH a buy leaves for each holding's exit."""
    orders_max: int

    def token(self, address: str) -> SeenToken | None:
        """Find a token on offer by its address."""
        return next((token for token in self.tokens if token.address == address), None)


@dataclass(frozen=True, slots=True)
class SeenBook:
    """The own part."""

    eth_wei: int
    holdings: tuple[tuple[str, int], ...]
    """Token and base units held, sorted by address."""

    def holds(self, address: str) -> bool:
        """Say whether a token is held."""
        return any(token == address for token, _ in self.holdings)


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything a stack without a model sees on one turn."""

    tick: int
    market: SeenMarket
    book: SeenBook

    def spendable_wei(self, holdings: int) -> int:
        """ETH left to spend when so many holdings keep their exit reserve; 0 when there is none (ONC-27)."""
        return max(self.book.eth_wei - holdings * self.market.reserve_wei, 0)

    def worth_wei(self, token: SeenToken, amount_raw: int) -> int:
        """Value of an amount at the shown price, rounded down; what a sale brings is less."""
        return mul_div_floor(amount_raw, token.price_wei, 10**token.decimals)


def look(question: Question) -> Sight:
    """Read a question's bundle and book."""
    return Sight(question.tick, _market(question.bundle), _book(orjson.loads(question.book)))


@lru_cache(maxsize=4)
def _market(bundle: bytes) -> SeenMarket:
    """Read a bundle once for all stacks of a tick."""
    shown = orjson.loads(bundle)
    steps = shown["history_step_s"], shown["block"]["ts_s"]
    tokens = tuple(_token(token, *steps) for token in shown["tokens"])
    return SeenMarket(tokens, int(shown["exit_reserve_wei_per_holding"]), shown["orders_max"])


def _token(shown: dict[str, Any], step_s: int, now_s: int) -> SeenToken:
    return SeenToken(
        shown["address"],
        shown["decimals"],
        int(shown["price_wei"]),
        int(shown["liquidity_wei"]),
        _stepped(shown["history"], step_s, now_s),
    )


def _stepped(history: list[tuple[int, str]], step_s: int, now_s: int) -> tuple[int, ...]:
    """Write out what stands between the changes: a price holds until the next one."""
    prices: list[int] = []
    ends = [ts_s // step_s for ts_s, _ in history[1:]] + [now_s // step_s + 1]
    for (ts_s, price_wei), end in zip(history, ends, strict=True) if history else ():
        prices += [int(price_wei)] * (end - ts_s // step_s)
    return tuple(prices)


def _book(shown: dict[str, Any]) -> SeenBook:
    holdings = tuple((holding["token"], int(holding["amount_raw"])) for holding in shown["holdings"])
    return SeenBook(int(shown["eth_wei"]), holdings)
