"""Money as typed integers that refuse to mix.

A kind of money adds and subtracts only with its own kind; anything else is a TypeError. There is no `*` and no `/`:
`mul_div_floor` and `mul_div_ceil` say their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


class Money(int):
    """An integer with a unit. Subclasses are the units."""

    __slots__ = ()

    def __new__(cls, value: int) -> Self:
        if type(value) is not int and type(value) is not cls:
            raise TypeError(f"{cls.__name__} takes a plain int or a {cls.__name__}, got {type(value).__name__}")
        return int.__new__(cls, value)

    def _same(self, other: object, verb: str) -> None:
        if type(other) is not type(self):
            raise TypeError(f"cannot {verb} {type(self).__name__} and {type(other).__name__}")

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        self._same(other, "add")
        return int.__new__(type(self), int.__add__(self, other))

    def __sub__(self, other: Self) -> Self:  # type: ignore[override]
        self._same(other, "subtract")
        return int.__new__(type(self), int.__sub__(self, other))

    __radd__ = __add__

    def __rsub__(self, other: object) -> Self:  # type: ignore[override]
        raise TypeError(f"cannot subtract {type(self).__name__} from {type(other).__name__}")

    def __neg__(self) -> Self:
        return int.__new__(type(self), int.__neg__(self))

    def _refuse(self, *_: object) -> Self:
        raise TypeError(f"{type(self).__name__} has no such operator; use mul_div_floor or mul_div_ceil")

    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _refuse  # type: ignore[assignment]
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refuse  # type: ignore[assignment]
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __or__ = __xor__ = _refuse  # type: ignore[assignment]

    def __lt__(self, other: int) -> bool:
        self._same(other, "compare")
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        self._same(other, "compare")
        return int.__le__(self, other)

    def __gt__(self, other: int) -> bool:
        self._same(other, "compare")
        return int.__gt__(self, other)

    def __ge__(self, other: int) -> bool:
        self._same(other, "compare")
        return int.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and int.__eq__(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int.__repr__(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)

    def __format__(self, spec: str) -> str:
        return int.__format__(int(self), spec)


class Wei(Money):
    """Wei of ETH; 10^18 are one ETH."""


class TokenRaw(Money):
    """Base units of some token; means nothing without the token's decimals."""


class MicroUsd(Money):
    """Millionths of a US dollar."""


class Bps(Money):
    """Ten-thousandths of a whole."""


@dataclass(frozen=True, slots=True)
class TokenAmount:
    """Base units together with the decimals that scale them; adds only at equal decimals."""

    raw: TokenRaw
    decimals: int

    def __add__(self, other: TokenAmount) -> TokenAmount:
        self._same_scale(other)
        return TokenAmount(self.raw + other.raw, self.decimals)

    def __sub__(self, other: TokenAmount) -> TokenAmount:
        self._same_scale(other)
        return TokenAmount(self.raw - other.raw, self.decimals)

    def _same_scale(self, other: TokenAmount) -> None:
        if not isinstance(other, TokenAmount) or other.decimals != self.decimals:
            raise TypeError(f"cannot mix {self!r} with {other!r}: decimals differ")


def mul_div_floor(value: int, numerator: int, denominator: int) -> int:
    """Multiply, then divide rounding towards minus infinity.

    Units: none; takes and returns plain integers, the caller names the unit. Raises: ZeroDivisionError."""
    return int(value) * int(numerator) // int(denominator)


def mul_div_ceil(value: int, numerator: int, denominator: int) -> int:
    """Multiply, then divide rounding towards plus infinity. Raises: ZeroDivisionError."""
    return -(-int(value) * int(numerator) // int(denominator))


def decimal_text(raw: int, decimals: int, places: int | None = None) -> str:
    """Write an integer amount as a decimal string for people, truncated towards zero to `places`.

    No float is involved; every digit shown is true."""
    sign, digits = ("-" if int(raw) < 0 else ""), str(abs(int(raw))).rjust(decimals + 1, "0")
    whole, fraction = (digits[:-decimals], digits[-decimals:]) if decimals else (digits, "")
    shown = fraction if places is None else fraction[:places]
    shown = shown.rstrip("0") if places is None else shown
    return f"{sign}{whole}.{shown}" if shown else f"{sign}{whole}"
