"""Candidates: which ways of an order are worth a simulation, and how an order is best split over two of them.

Chosen cheaply, by promise, and bounded. What anybody can make in any number never crowds out the rest: v4 pools, pools of
other exchanges, ways through other tokens, and pools of one token that differ only in their way to the dollar have few
places each, and pools whose own fee takes half come last. Of the v4 pools one place is for hooks, one for those without, one for the oldest.
An order is split over two ways, or three that share no pool.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import isqrt

from chain.network import Network
from chain.paths import Path, Response, Router, Way, promise, response, ways_of
from chain.pools import PoolGraph

CANDIDATES_MAX = 6
V4_CANDIDATES_MAX = 3
"""Anybody can make any number of v4 pools that promise much; they crowd out no more than these."""
FOREIGN_CANDIDATES_MAX = 2
"""Ways over other exchanges, on top of the others."""
AROUND_CANDIDATES_MAX, AROUND_PERCENT_MIN = 2, 90
"""Ways through tokens that are no hubs, on top of the others, where they promise nearly as much as the best of those."""
SPLITS_MAX = 4
"""Splits, on top of the others: over pools of v2 and v3 alone, and such that may cross v4; each over two ways and over three."""
SPLIT_PLAIN_MAX, SPLIT_OTHERS_MAX = 4, 2
"""Best ways that splits are made of: over pools of v2 and v3, and over v4 or around."""
SPLIT_GAIN_PART = 20_000
"""A split counts when it promises more by at least this part: half a basis point."""
THIRD_GAIN_PART = 5_000
"""A third way counts when it adds at least this part: two basis points."""
ROOT_BITS, WIDE_BITS = 96, 256
"""Precision of roots."""
CAPPED_PART = 1_000
"""A promise less by this part than the pools' curve is bounded by what they hold: such a way is not split."""


@dataclass(frozen=True, slots=True)
class Part:
    """What of an order goes one way."""

    amount: int
    path: Path


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way, or a split over two, for an exact size."""

    label: str
    parts: tuple[Part, ...]
    router: Router
    promised: int

    @property
    def path(self) -> Path:
        """All pools crossed."""
        return tuple(hop for part in self.parts for hop in part.path)


def candidates(network: Network, graph: PoolGraph, side: str, token: str, amount: int) -> list[Candidate]:
    """Candidates for an order, best promise first."""
    ranked = sorted(((promise(graph, way.path, amount), way) for way in ways_of(network, graph, side, token)), key=_rank)
    best = max((promised for promised, way in ranked if not way.around), default=0)
    ranked = [(promised, way) for promised, way in ranked if not way.around or 100 * promised >= AROUND_PERCENT_MIN * best]
    kept = chosen([way for _, way in ranked])
    found = [Candidate(way.label, (Part(amount, way.path),), way.router, promised) for promised, way in ranked if way.label in kept]
    found += _splits(graph, ranked, amount)
    return sorted(found, key=lambda each: (-each.promised, each.label))


def _rank(promised: tuple[int, Way]) -> tuple[int, str]:
    return -promised[0], promised[1].label


# --- which ways -----------------------------------------------------------------------------------------------------


def chosen(ranked: Sequence[Way]) -> set[str]:
    """Labels of the ways that have a place, best promise first in."""
    own = [way for way in ranked if not way.foreign and not way.around]
    besides = {way.label for way in _spread(way for way in ranked if way.foreign)[:FOREIGN_CANDIDATES_MAX]}
    besides |= {way.label for way in [way for way in ranked if way.around][:AROUND_CANDIDATES_MAX]}
    if len(own) <= CANDIDATES_MAX:
        return {way.label for way in own} | besides
    plain, made = _spread(way for way in own if not way.made), _of_each_kind([way for way in own if way.made])
    few = made[:V4_CANDIDATES_MAX]
    kept = [*few, *plain[: CANDIDATES_MAX - len(few)]]
    kept += made[len(few) :][: CANDIDATES_MAX - len(kept)]
    return {way.label for way in kept} | besides


def _spread(ranked: Iterable[Way]) -> list[Way]:
    """The best way of each pool of the token before any second one."""
    first, further, seen = [], [], set()
    for way in ranked:
        (further if way.token_pool in seen else first).append(way)
        seen.add(way.token_pool)
    return [*first, *further]


def _of_each_kind(ranked: Sequence[Way]) -> list[Way]:
    """v4 ways: one without hooks, one with, the oldest, then the rest; bait last."""
    usual = _spread(way for way in ranked if not way.steep)
    kinds: list[Callable[[], Way | None]] = [
        lambda: next((way for way in usual if not way.hooked), None),
        lambda: next((way for way in usual if way.hooked), None),
        lambda: min(usual, key=lambda way: way.born_block, default=None),
    ]
    first: dict[str, Way] = {}
    for kind in kinds:
        way = kind()
        if way is not None:
            first[way.label] = way
    return [*first.values(), *(way for way in (*usual, *(way for way in ranked if way.steep)) if way.label not in first)]


# --- splits ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Curve:
    """A way of the order with its response."""

    way: Way
    response: Response
    promised: int


def _splits(graph: PoolGraph, ranked: Sequence[tuple[int, Way]], amount: int) -> Iterator[Candidate]:
    """The best split of each kind that promises enough more than the best of its ways alone, and more than any plain way."""
    own = [(promised, way) for promised, way in ranked if promised and not way.foreign and not way.steep]
    plain = _curves(graph, [row for row in own if not row[1].made and not row[1].around], amount, SPLIT_PLAIN_MAX)
    others = _curves(graph, [row for row in own if row[1].made or row[1].around], amount, SPLIT_OTHERS_MAX)
    sound = plain[0].promised if plain else 0
    for pairs, thirds in ((combinations(plain, 2), plain), (chain(product(plain, others), combinations(others, 2)), [*plain, *others])):
        found = [(split, one, other) for one, other in pairs if (split := _split(graph, one, other, amount)) is not None]
        if not found:
            continue
        best, one, other = max(found, key=lambda each: (each[0].promised, each[0].label))
        if best.promised > sound:
            yield best
        wide = [split for third in thirds if (split := _wide_split((one, other, third), amount)) is not None]
        if wide and (widest := max(wide, key=lambda each: (each.promised, each.label))).promised * THIRD_GAIN_PART > max(best.promised, sound) * (THIRD_GAIN_PART + 1):
            yield widest


def _curves(graph: PoolGraph, ranked: Sequence[tuple[int, Way]], amount: int, count_max: int) -> list[_Curve]:
    """The best ways whose promise is not bounded by what their pools hold."""
    curves = []
    for promised, way in ranked:
        of = response(graph, way.path)
        if of is not None and of.out(amount) * (CAPPED_PART - 1) <= promised * CAPPED_PART:
            curves.append(_Curve(way, of, promised))
        if len(curves) == count_max:
            break
    return curves


def _split(graph: PoolGraph, one: _Curve, other: _Curve, amount: int) -> Candidate | None:
    if one.promised < other.promised:
        one, other = other, one
    if not _worth_it(one.response, other.response, amount):
        return None
    apart = one.way.pools.isdisjoint(other.way.pools)
    found = _best(one.response, other.response, amount) if apart else split_of(graph, one.way.path, other.way.path, amount)
    if found is None or found[1] * SPLIT_GAIN_PART <= one.promised * (SPLIT_GAIN_PART + 1):
        return None
    return _candidate((one, other), (found[0], amount - found[0]), found[1])


def _candidate(curves: Sequence[_Curve], shares: Sequence[int], promised: int) -> Candidate:
    amount = sum(shares)
    percents = [(100 * share + amount // 2) // amount for share in shares[:-1]]
    percents.append(100 - sum(percents))
    label = "split " + " + ".join(f"{percent}% {curve.way.label}" for percent, curve in zip(percents, curves, strict=True))
    router = next((curve.way.router for curve in curves if curve.way.made), curves[0].way.router)
    return Candidate(label, tuple(Part(share, curve.way.path) for share, curve in zip(shares, curves, strict=True)), router, promised)


def _wide_split(curves: Sequence[_Curve], amount: int) -> Candidate | None:
    """An order over several ways that share no pool; None where one of them would get nothing."""
    if any(not one.way.pools.isdisjoint(other.way.pools) for one, other in combinations(curves, 2)):
        return None
    shares = even_shares([curve.response for curve in curves], amount)
    if min(shares) <= 0:
        return None
    return _candidate(curves, shares, sum(curve.response.out(share) for curve, share in zip(curves, shares, strict=True)))


def even_shares(responses: Sequence[Response], amount: int) -> list[int]:
    """How an amount is shared so that every way's last unit brings the same: `√(a·d) / (c·x + d)` is one number for all.

    Shapes: one share for each, in order; they add up to the amount. A share that is not positive says that its way is too dear."""
    roots = [isqrt(of.a * of.d << 2 * WIDE_BITS) for of in responses]
    offsets = [(of.d << WIDE_BITS) // of.c for of in responses]
    above, below = (amount << WIDE_BITS) + sum(offsets), sum(root // of.c for root, of in zip(roots, responses, strict=True))
    ends = [(root * above // (below * of.c) - offset) >> WIDE_BITS for root, of, offset in zip(roots, responses, offsets, strict=True)]
    return [amount - sum(ends[1:]), *ends[1:]]


def _worth_it(one: Response, other: Response, amount: int) -> bool:
    """Whether the first unit brings more on the other way than the last one brings on the better."""
    return other.a * (one.c * amount + one.d) ** 2 > one.a * one.d * other.d


def split_of(graph: PoolGraph, one: Path, other: Path, amount: int) -> tuple[int, int] | None:
    """How much of an amount goes the first of two ways so that both last units bring the same, and what both bring.

    Pools that both ways begin or end with are crossed by all of it. None when the ways share a pool in between, or all of it
    is best on one."""
    start = _shared(one, other)
    end = _shared(one[start:][::-1], other[start:][::-1])
    mine, its = one[start : len(one) - end], other[start : len(other) - end]
    if not mine or not its or {hop.pool.key for hop in mine} & {hop.pool.key for hop in its}:
        return None
    before, after, first, second = (response(graph, part) for part in (one[:start], one[len(one) - end :], mine, its))
    if before is None or after is None or first is None or second is None:
        return None
    best = _best(first, second, before.out(amount))
    if best is None:
        return None
    spent = before.inverse(best[0]) if start else best[0]
    return (spent, after.out(best[1])) if 0 < spent < amount else None


def _best(one: Response, other: Response, amount: int) -> tuple[int, int] | None:
    """How much goes the first way, and what both bring; None where all of it is best on one."""
    share = _even(one, other, amount)
    return (share, one.out(share) + other.out(amount - share)) if 0 < share < amount else None


def _shared(one: Path, other: Path) -> int:
    """How many hops two ways have in common from their beginning."""
    count = 0
    for mine, its in zip(one, other, strict=False):
        if mine.pool.key != its.pool.key:
            break
        count += 1
    return count


def _even(one: Response, other: Response, amount: int) -> int:
    """Where the derivatives `a·d / (c·x + d)²` of both are equal: `x = (k·(C·amount + D) − d) / (c + k·C)`, `k² = a·d / (A·D)`."""
    above, below = one.a * one.d, other.a * other.d
    scale = max(ROOT_BITS + (below.bit_length() - above.bit_length()) // 2, 0)
    root = isqrt((above << 2 * scale) // below)
    upper = root * (other.c * amount + other.d) - (one.d << scale)
    lower = (one.c << scale) + root * other.c
    return upper // lower if lower else 0
