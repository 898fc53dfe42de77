"""The campaign: many lives, by jobs that each have two chains of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
import queue as queues
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.queues import Queue

from chain.devnet.node import Refused
from ledgers.errors import ChainFault
from tests.lives.kinds import KINDS, LifeKind
from tests.lives.life import Lived, live
from tests.lives.paper import lane_to
from tests.lives.program import Program, program_of
from tests.lives.world import Twins

LOOK_S = 5
"""How often it is looked whether a job that says nothing still lives."""


def chosen(names: Sequence[str]) -> tuple[LifeKind, ...]:
    """The kinds that are named, each by its name or by the beginning of some with a star; all where none is. Raises: ValueError naming the unknown."""
    found = {name: [kind for kind in KINDS if kind.name == name or name.endswith("*") and kind.name.startswith(name[:-1])] for name in names}
    if unknown := [name for name, kinds in found.items() if not kinds]:
        raise ValueError(f"no kind is called {unknown[0]}; there are {', '.join(kind.name for kind in KINDS if '/' not in kind.name)} and EFFECT/PLACE")
    return tuple(dict.fromkeys(kind for kinds in found.values() for kind in kinds)) or KINDS


def programs(kinds: Sequence[LifeKind], seed: int, lives: int, job: int, jobs: int) -> Iterator[Program]:
    """The lives of one job."""
    for index in range(job, lives, jobs):
        yield program_of(seed + index // len(kinds), kinds[index % len(kinds)])


async def lived(kinds: Sequence[LifeKind], seed: int, lives: int, job: int, jobs: int, until_s: float, queue: Queue) -> None:
    """Live one job's lives; a world that breaks is built anew."""
    twins = Twins.build()
    door = lane_to(twins)
    for program in programs(kinds, seed, lives, job, jobs):
        if time.monotonic() > until_s:
            break
        try:
            queue.put(await live(twins, door, program))
        except (ChainFault, Refused, AssertionError, OSError) as error:
            queue.put(Lived(program, Counter(broken=1), trouble=f"{type(error).__name__}: {str(error)[:300]}"))
            await door.close()
            twins.close()
            twins = Twins.build()
            door = lane_to(twins)
    await door.close()
    twins.close()


def work(*given) -> None:
    """One job's process."""
    queue = given[-1]
    try:
        asyncio.run(lived(*given))
    finally:
        queue.put(None)


def results(kinds: Sequence[LifeKind], seed: int, lives: int, jobs: int, until_s: float) -> Iterator[Lived]:
    """Every life as it ends. Raises: RuntimeError when a job died."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    going = [context.Process(target=work, args=(kinds, seed, lives, job, jobs, until_s, queue)) for job in range(jobs)]
    for job in going:
        job.start()
    ended = 0
    while ended < jobs:
        try:
            result = queue.get(timeout=LOOK_S)
        except queues.Empty:
            if any(job.exitcode for job in going):
                raise RuntimeError("a job of the campaign died") from None
            continue
        if result is None:
            ended += 1
        else:
            yield result
    for job in going:
        job.join()
