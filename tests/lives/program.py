"""The program of a life: a random sequence of steps, a function of its seed and kind alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from referee.onchain.events import DELAYED, HEADLINE
from tests.lives.kinds import Act, LifeKind

ETH = 10**18
SPENDS_WEI = (ETH // 1_000, ETH // 100, ETH // 20, ETH // 20, ETH // 5)
NEARLY_ALL = 0
"""Stands for all ETH of the book but the price of some gas."""
PARTS_PPM = (100_000, 333_333, 500_000, 1_000_000, 1_000_000)
LEAPS_S = (0, 0, 0, 1, 7, 8, 9, 10, 30, 60, 590, 610, 3_500, 3_590, 3_600, 3_700, 86_400, 30 * 86_400)
"""Around the borders of what tokens here look at: ten seconds, ten minutes, an hour, a day."""
STRANGERS_WEI = (ETH // 100, ETH // 2, 5 * ETH)
STEPS = (5, 9)


@dataclass(frozen=True, slots=True)
class Order:
    """Buy for `wei`, or sell a part of what is held."""

    stall: int
    """0 is the plain companion, 1 the token of the life."""
    side: str
    wei: int = 0
    part_ppm: int = 0


@dataclass(frozen=True, slots=True)
class Decide:
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Value everything."""


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Owner:
    act: Act


@dataclass(frozen=True, slots=True)
class Stranger:
    """Stranger `who` buys for `wei`, or sells `raw`."""

    who: int
    wei: int = 0
    raw: int = 0


Step = Decide | Mark | Wait | Owner | Stranger


@dataclass(frozen=True, slots=True)
class Program:
    seed: int
    kind: LifeKind
    venue: str
    wallet: str
    stake_wei: int
    steps: tuple[Step, ...]
    rival: str = ""
    """Venue of a second, better pool of the token that a rival alone trades at; empty without a rival."""
    ledger: str = HEADLINE
    """Whose orders are really sent."""


RIVALS_PPM, DELAYED_PPM = 150_000, 100_000
RIVAL_VENUES = ("v2", "v3")


def program_of(seed: int, kind: LifeKind) -> Program:
    """The life of a kind that a seed stands for."""
    dice = Random(f"life {seed} of {kind.name}")
    wallet = f"0x{dice.getrandbits(160):040x}"
    venue, stake_wei, steps = dice.choice(kind.venues), dice.choice((ETH, ETH, ETH // 20)), tuple(_steps(dice, kind))
    others = [other for other in RIVAL_VENUES if other in kind.venues and other != venue]
    rival = dice.choice(others) if others and dice.randrange(1_000_000) < RIVALS_PPM else ""
    ledger = DELAYED if dice.randrange(1_000_000) < DELAYED_PPM else HEADLINE
    return Program(seed, kind, venue, wallet, stake_wei, steps, "" if ledger == DELAYED else rival, ledger)


def _steps(dice: Random, kind: LifeKind) -> Iterator[Step]:
    yield Decide((Order(1, "buy", dice.choice(SPENDS_WEI[:3])),))
    for _ in range(dice.randint(*STEPS)):
        yield _step(dice, kind)
    yield Mark()
    yield Decide((Order(1, "sell", part_ppm=1_000_000),))
    yield Mark()


def _step(dice: Random, kind: LifeKind) -> Step:
    drawn = dice.random()
    if drawn < 0.45:
        return Decide(tuple(_order(dice) for _ in range(dice.choice((1, 1, 1, 2, 3)))))
    if drawn < 0.68:
        return Wait(dice.choice(LEAPS_S), dice.randint(1, 3))
    if drawn < 0.88 and kind.acts:
        return Owner(dice.choice(kind.acts))
    if drawn < 0.95:
        buys = dice.random() < 0.6
        return Stranger(dice.randrange(3), dice.choice(STRANGERS_WEI), 0) if buys else Stranger(dice.randrange(3), 0, dice.choice((10, 500, 2_000)) * ETH)
    return Mark()


def _order(dice: Random) -> Order:
    stall = 0 if dice.random() < 0.2 else 1
    if dice.random() < 0.45:
        return Order(stall, "buy", NEARLY_ALL if dice.random() < 0.04 else dice.choice(SPENDS_WEI))
    return Order(stall, "sell", part_ppm=dice.choice(PARTS_PPM))
