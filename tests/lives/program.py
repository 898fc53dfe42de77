"""The program of a life: a random sequence of steps, a function of its seed and kind alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from referee.onchain.events import DELAYED, HEADLINE, IMPACT
from tests.lives.kinds import Act, LifeKind

ETH = 10**18
SPENDS_PPM = (1_000, 10_000, 50_000, 50_000, 200_000)
"""Of the stake."""
NEARLY_ALL = 0
"""Stands for all ETH of the book but what is left for gas."""
LEFT_WEI = (6 * 10**12, 8 * 10**12, 12 * 10**12, 40 * 10**12)
"""Gas for about one trade to many."""
PARTS_PPM = (100_000, 333_333, 500_000, 1_000_000, 1_000_000)
LEAPS_S = (0, 0, 0, 1, 7, 8, 9, 10, 30, 60, 590, 610, 3_500, 3_590, 3_600, 3_700, 86_400, 30 * 86_400)
"""Around the borders of what tokens here look at: ten seconds, ten minutes, an hour, a day."""
STRANGERS_WEI = (ETH // 100, ETH // 2, 5 * ETH)
STEPS = (5, 9)


@dataclass(frozen=True, slots=True)
class Order:
    """Buy for `wei`, or sell a part of what is held."""

    stall: int
    """0 is the plain companion, 1 the token of the life, more where it has several."""
    side: str
    wei: int = 0
    part_ppm: int = 0
    left_wei: int = LEFT_WEI[-1]
    """What a buy of nearly everything leaves."""


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


RIVALS_PPM, FURTHER_PPM = 150_000, 100_000
FELT_S = 30
RIVAL_VENUES = ("v2", "v3")


def program_of(seed: int, kind: LifeKind) -> Program:
    """The life of a kind that a seed stands for."""
    dice = Random(f"life {seed} of {kind.name}")
    wallet = f"0x{dice.getrandbits(160):040x}"
    venue, stake_wei = dice.choice(kind.venues), dice.choice((ETH, ETH, ETH // 20))
    steps = tuple(_steps(dice, kind, stake_wei))
    others = [other for other in RIVAL_VENUES if other in kind.venues and other != venue and kind.copies == 1]
    rival = dice.choice(others) if others and dice.randrange(1_000_000) < RIVALS_PPM else ""
    drawn = dice.randrange(1_000_000)
    ledger = DELAYED if drawn < FURTHER_PPM else IMPACT if drawn < 2 * FURTHER_PPM and not kind.judges else HEADLINE
    alone = replace(Program(seed, kind, venue, wallet, stake_wei, steps), ledger=ledger)
    return undisturbed(alone) if ledger == IMPACT else replace(alone, rival="" if ledger == DELAYED else rival)


def undisturbed(program: Program) -> Program:
    """A life of the own-impact ledger, whose market nobody else moves and where earlier trades are felt in full: what it met is then exactly known.

    Nor does its owner act: an earlier trade that is run again meets what he did since."""
    steps = []
    for step in program.steps:
        if isinstance(step, Wait):
            steps.append(Wait(min(step.seconds, FELT_S), step.blocks))
        elif not isinstance(step, Stranger | Owner):
            steps.append(step)
    return replace(program, ledger=IMPACT, rival="", steps=tuple(steps))


def _steps(dice: Random, kind: LifeKind, stake_wei: int) -> Iterator[Step]:
    yield Decide(tuple(Order(1 + copy, "buy", stake_wei * dice.choice(SPENDS_PPM[:3]) // 1_000_000) for copy in range(kind.copies)))
    for _ in range(dice.randint(*STEPS)):
        yield _step(dice, kind, stake_wei)
    yield Mark()
    yield Decide(tuple(Order(1 + copy, "sell", part_ppm=1_000_000) for copy in range(kind.copies)))
    yield Mark()


def _step(dice: Random, kind: LifeKind, stake_wei: int) -> Step:
    drawn = dice.random()
    if drawn < 0.45:
        return Decide(tuple(_order(dice, kind, stake_wei) for _ in range(dice.choice((1, 1, 1, 2, 3)))))
    if drawn < 0.68:
        return Wait(dice.choice(LEAPS_S), dice.randint(1, 3))
    if drawn < 0.88 and kind.acts:
        return Owner(dice.choice(kind.acts))
    if drawn < 0.95:
        buys = dice.random() < 0.6
        return Stranger(dice.randrange(3), dice.choice(STRANGERS_WEI), 0) if buys else Stranger(dice.randrange(3), 0, dice.choice((10, 500, 2_000)) * ETH)
    return Mark()


def _order(dice: Random, kind: LifeKind, stake_wei: int) -> Order:
    stall = 0 if dice.random() < 0.2 else dice.randint(1, kind.copies)
    if dice.random() < 0.45:
        if dice.random() < 0.06:
            return Order(stall, "buy", NEARLY_ALL, left_wei=dice.choice(LEFT_WEI))
        return Order(stall, "buy", stake_wei * dice.choice(SPENDS_PPM) // 1_000_000)
    return Order(stall, "sell", part_ppm=dice.choice(PARTS_PPM))
