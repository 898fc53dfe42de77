"""Price paths: what a token is worth to those who know, block by block, from a seed or from a recorded tape.

Integers only, so that every machine walks the same path. Units: dollars × 10¹⁸ per whole token; steps in parts per million.
"""

from __future__ import annotations

import csv
import hashlib
import io
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import orjson

from chain.devnet.assets import USD

ETHER = "ETH"
PPM = 1_000_000
REGIME_BLOCKS = 50
"""How long a token keeps its drift."""
PULL = 2_000
"""A price this many times its own distance from its opening returns there, per block."""
DICE, DICE_SIDE, DICE_SPREAD = 6, 500, 708
"""Dice thrown for one step, half their range, and the standard deviation of their sum."""


@dataclass(frozen=True, slots=True)
class Tape:
    """Recorded prices by symbol: times in milliseconds since the market began, ascending, and prices."""

    rows: Mapping[str, tuple[tuple[int, int], ...]]
    sha256: str
    """Identity of the recorded text."""

    def at(self, symbol: str, elapsed_ms: int) -> int | None:
        """The last recorded price, the first one before that, or nothing for a symbol that was not recorded."""
        rows = self.rows.get(symbol)
        if not rows:
            return None
        return rows[max(0, bisect_right(rows, (elapsed_ms, 1 << 256)) - 1)][1]


def read_tape(text: str) -> Tape:
    """Read a tape: JSON lines or CSV with `t_ms`, `symbol` and `usd` (a decimal string). Raises: ValueError naming the line."""
    rows: dict[str, list[tuple[int, int]]] = {}
    lines = text.strip().splitlines()
    parsed = (orjson.loads(line) for line in lines) if text.lstrip().startswith("{") else csv.DictReader(io.StringIO(text.strip()))
    for number, row in enumerate(parsed, 1):
        try:
            rows.setdefault(str(row["symbol"]), []).append((int(row["t_ms"]), dollars(str(row["usd"]))))
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(
                f"tape row {number}: expected t_ms, symbol and usd (a decimal string), found {str(dict(row))[:100]}"
            ) from error
    return Tape({symbol: tuple(sorted(found)) for symbol, found in rows.items()}, hashlib.sha256(text.encode()).hexdigest())


def dollars(text: str) -> int:
    """A decimal number of dollars as an integer price; positive."""
    whole, _, rest = text.partition(".")
    value = int(whole or "0") * USD + int(rest[:18].ljust(18, "0") or "0")
    if value <= 0 or not (whole + rest).isdigit():
        raise ValueError(f"expected a positive decimal number of dollars, found {text[:40]!r}")
    return value


@dataclass(slots=True)
class Paths:
    """The current price of every symbol."""

    opening: Mapping[str, int]
    sigma_ppm: Mapping[str, int]
    """Standard deviation of one block's step."""
    tape: Tape | None = None
    now: dict[str, int] = field(default_factory=dict)
    drift_ppm: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = dict(self.opening)

    def advance(self, rng: Random, age: int, elapsed_ms: int) -> None:
        """Walk one block further; `age` counts blocks since the market began."""
        for symbol, opening in self.opening.items():
            sigma = self.sigma_ppm[symbol]
            if age % REGIME_BLOCKS == 1:
                self.drift_ppm[symbol] = rng.randrange(-sigma, sigma + 1) // 4
            step = self.drift_ppm.get(symbol, 0) + bell(rng, sigma) + (opening - self.now[symbol]) * PPM // opening // PULL
            recorded = self.tape.at(symbol, elapsed_ms) if self.tape else None
            self.now[symbol] = recorded or max(1, self.now[symbol] * (PPM + step) // PPM)

    def ratio(self, symbol0: str, decimals0: int, symbol1: str, decimals1: int) -> tuple[int, int]:
        """Worth of a base unit of the first in base units of the second, as a fraction."""
        return self._usd(symbol0) * 10**decimals1, self._usd(symbol1) * 10**decimals0

    def _usd(self, symbol: str) -> int:
        return USD if symbol == "USDG" else self.now[symbol]


def bell(rng: Random, sigma: int) -> int:
    """A roughly normal integer with standard deviation `sigma`."""
    return sum(rng.randrange(-DICE_SIDE, DICE_SIDE + 1) for _ in range(DICE)) * sigma // DICE_SPREAD
