"""The names: what tokens call themselves, as far as a window's bundles have shown it.

Anybody may call a token anything: a symbol is never shown without four digits of the token's address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from chain.network import load_network
from ledgers.money import TokenRaw, decimal_text
from ledgers.plain_text import plain_text

SYMBOL_CHARS_MAX = 16
DECIMALS_MAX = 255
DOLLAR = "USDG"
DOLLAR_DECIMALS = 6
PLACES = 4
"""Digits shown behind the point; of amounts below one, digits behind the zeros."""


@dataclass(frozen=True, slots=True)
class TokenName:
    """What a token says of itself."""

    symbol: str
    decimals: int


Names = Mapping[str, TokenName]
"""By lower-case address."""


def names_in(bundle: bytes | None) -> dict[str, TokenName]:
    """Read token names out of a shown bundle; one that does not read names nothing."""
    try:
        tokens = orjson.loads(bundle or b"{}")["tokens"]
        return {token["address"]: TokenName(str(token["untrusted_symbol"]), min(int(token["decimals"]), DECIMALS_MAX)) for token in tokens}
    except (ValueError, KeyError, TypeError):
        return {}


def network_names(network: str) -> dict[str, TokenName]:
    """Name the dollar of a network, which no bundle lists, as our own file has it; an unknown network names nothing."""
    try:
        return {load_network(network).usdg: TokenName(DOLLAR, DOLLAR_DECIMALS)}
    except ValueError:
        return {}


def token_text(token: str, names: Names) -> str:
    """Name a token: its symbol and the last four digits of its address."""
    known = names.get(token)
    symbol = plain_text(known.symbol, SYMBOL_CHARS_MAX) if known else ""
    return f"{symbol or 'token'}·{token[-4:]}"


def amount_text(raw: TokenRaw, token: str, names: Names) -> str:
    """Write an amount of a token; in base units when its decimals are not known."""
    known = names.get(token)
    if known is None:
        return f"{raw} units of"
    zeros = max(known.decimals - len(str(abs(int(raw)))), 0)
    return decimal_text(raw, known.decimals, PLACES + zeros)
