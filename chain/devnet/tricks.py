"""Tricks: how the rival lies and fails, and on which token; everywhere else it is honest.

Each trick has a token of its own with one plain pool, so that whoever asks about it sees this trick and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chain.devnet.calls import encode
from chain.devnet.places import Market, Token
from chain.devnet.venues import MAX

LIES = {
    "promises_more": "tells a twentieth more than arrives",
    "sends_elsewhere": "its transaction pays what was bought to a stranger",
    "pulls_other": "its transaction takes dollars of the caller, beside the ETH that is sent along",
    "copycat": "quotes and buys another token with the same symbol",
    "other_units": "tells the amount a million times too large",
    "wrong_chain": "answers for another chain: a router that is not here",
    "approves": "its transaction is an approval of a stranger",
    "spends_more": "its transaction takes twice what was asked about",
    "makers_quote": "the route is a maker's firm quote",
    "expired": "its transaction is past its own deadline",
}
FAILURES = {
    "html": "a page instead of JSON",
    "redirect": "sent on to itself without end",
    "overloaded": "HTTP 503",
    "slow": "no answer within any patience",
    "huge": "an answer of many megabytes",
    "no_route": "no route, in the words of each interface",
    "garbage": "bytes that are not JSON",
    "throttled": "HTTP 429 with a time to wait",
}
"""By name: what it does."""
TRICKS = (*LIES, *FAILURES)
MAKER = "hashflow-v3"
FAR_ROUTER = "0x6131b5fae19ea4f9d964eac0408e4408b66337b5"
"""A router's address on other chains; no code here."""
FAR_CHAIN = 1
MORE_PPM = 1_050_000
UNITS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trick:
    """A trick with its token."""

    name: str
    token: Token
    market: Market


def told_raw(trick: str, out_raw: int) -> int:
    """The amount that is told for one that would come."""
    if trick == "promises_more":
        return out_raw * MORE_PPM // 1_000_000
    return out_raw * UNITS if trick == "other_units" else out_raw


def approval(stranger: str) -> str:
    """Calldata that lets a stranger take everything."""
    return encode("approve(address,uint256)", stranger, MAX)


def names() -> Iterator[tuple[str, str]]:
    """Symbol and name of each trick's token; the name tells nothing."""
    for index, _ in enumerate(TRICKS):
        letter = chr(ord("A") + index)
        yield f"V{letter}L{letter}", f"Vale {letter}{letter.lower()}"
