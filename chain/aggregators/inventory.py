"""Inventory: which sources are a maker's firm quote or private stock, by the names rivals give them.

Such a row is filled from what one maker holds and is not used up on paper, so it is tagged. The table leans towards the
tag: a pool tagged by mistake fills once a window, an inventory missed would fill for ever. A rival that
names no source is taken for one.
Source: the liquidity sources of KyberSwap's, LI.FI's, 0x's and 1inch's interfaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NAME_LENGTH_MAX = 40
VIA_MAX = 8

FIRM_STARTS = (
    "1inchfusion", "airswap", "arcus", "bebop", "caliber", "clipper", "dexalot", "hashflow", "jitsu", "kyberpmm", "liquidcore",
    "liquorice", "lo1inch", "mxtrading", "native", "nearintents", "onebit", "rialto", "squidintents", "swaap",
    "symbiosisintents", "tokka", "uniswapx", "wintermute", "smartdeposits",
)  # fmt: skip
"""Names of makers and of their desks; letters and digits only, compared from the start."""
FIRM_PARTS = ("rfq", "pmm", "limitorder", "intent", "dutch", "marketmaker", "solver")
"""Parts of names that say what kind of source it is."""


def is_inventory(name: Any) -> bool:
    """Say whether a source is a maker's inventory."""
    letters = "".join(character for character in str(name).lower() if character.isascii() and character.isalnum())
    return letters.startswith(FIRM_STARTS) or any(part in letters for part in FIRM_PARTS)


def any_inventory(names: Iterable[Any]) -> bool:
    """Say whether any of some sources is a maker's inventory, or none is named at all: then nobody knows."""
    known = [name for name in names if name]
    return not known or any(is_inventory(name) for name in known)
