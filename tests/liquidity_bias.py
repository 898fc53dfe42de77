"""What a paper position's fees are biased by: the same outside flow once past the paper, once past the real position (ONC-21).

A paper position leaves the pool as it is; a real one would have made it deeper, by its part of the liquidity with it, Lp / (L + Lp):
  amounts  traders bring amounts: the fees are the same, and the real position's share of them is the paper's; no bias.
  one way  the same, all in one direction: the price goes further past the paper, by Lp / L.
  prices   traders bring the pool to prices, as arbitrageurs do: a deeper pool takes more of them, so the paper earns too little,
           by Lp / (L + Lp) exactly.
  through  the same, and far beyond the position's bounds, which nobody initialised for the paper.
  mixed    amounts and prices by turns: between the two.
In none of them is paper flattered. Run: `make truth`. Exit code 1 when a bias is not where Lp / L says.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random

from chain.devnet.devnet import Devnet
from chain.liquidity.accrual import PaperPosition
from chain.liquidity.reading import follow, read_path
from chain.liquidity.ticks import sqrt_price_at
from chain.rpc import Lane, RpcDoor
from ledgers.clock import SystemClock
from ledgers.report import Basis, Column, Table
from tests.chain.liquidity.twin import CHANGE, LIQUIDITY, MOVES_IN_ONE, SWAP, Move, TwinPool

SHARES_PPM = (1_000, 10_000, 50_000, 100_000)
"""Lp / L; open-lp is refused above the last."""
FLOWS = ("amounts", "one way", "prices", "through", "mixed")
OUTER_TICKS, RANGE_TICKS, INNER_TICKS = 6_000, 600, 500
"""From the start: the crowd's liquidity, our range, and how far flows within it go."""
BLOCKS = 4
ROUNDING_PPM = 2
"""What is allowed for roundings."""
EVERYTHING = 10**25
POOLS = (("v3", "LEAF", 3_000, 60), ("v4", "native", 3_000, 60))


@dataclass(frozen=True, slots=True)
class Bias:
    """One line of the table."""

    venue: str
    flow: str
    share_ppm: int
    """Lp / L."""
    swaps: int
    fees_ppm: tuple[int, int]
    """How far the paper's fees of both tokens are from the real ones'."""
    reach_ppm: int
    """How far the price went past the paper, beyond what it went past the real position."""

    @property
    def dilution_ppm(self) -> int:
        """What Lp / L says: Lp / (L + Lp)."""
        return self.share_ppm * 1_000_000 // (1_000_000 + self.share_ppm)

    @property
    def expected(self) -> tuple[int, int]:
        """Lowest and highest bias of the fees."""
        return (0 if self.flow in ("amounts", "one way") else -self.dilution_ppm, -self.dilution_ppm if self.flow in ("prices", "through") else 0)

    @property
    def holds(self) -> bool:
        low, high = self.expected
        reach = self.flow != "one way" or abs(self.reach_ppm - self.share_ppm) <= ROUNDING_PPM
        return reach and all(low - ROUNDING_PPM <= fees <= high + ROUNDING_PPM for fees in self.fees_ppm)


async def biases(chain: Devnet, pools: tuple[tuple[str, str, int, int], ...] = POOLS, shares_ppm: tuple[int, ...] = SHARES_PPM) -> AsyncIterator[Bias]:
    """Every line on a living chain, which is put back after each."""
    door = RpcDoor([Lane("devnet", chain.url)], clock=SystemClock())
    for pool in pools:
        made = TwinPool.made(chain, *pool)
        place = made.start // made.pool.tick_spacing * made.pool.tick_spacing
        assert made.play([(CHANGE, False, place - OUTER_TICKS, place + OUTER_TICKS, LIQUIDITY, 0, 0)]) == [0]
        made.bounds = (place - RANGE_TICKS, place + RANGE_TICKS)
        for flow in FLOWS:
            for share_ppm in shares_ppm:
                yield await _bias(made, door, flow, share_ppm)
    await door.close()


async def _bias(made: TwinPool, door: RpcDoor, flow: str, share_ppm: int) -> Bias:
    """Play a flow past the paper and past the real position."""
    opening = await read_path(door, made.network, made.pool, await made.header(door))
    liquidity = opening.liquidity * share_ppm // 1_000_000
    paths = []
    for real in (False, True):
        mark = made.chain.snapshot()
        if real:
            made.open(liquidity)
        path = await read_path(door, made.network, made.pool, await made.header(door))
        path.positions.append(PaperPosition(lower=made.bounds[0], upper=made.bounds[1], liquidity=liquidity, twin=real))
        for moves in _moves(made, flow, opening.sqrt_price_x96):
            made.play(moves)
        path = (await follow(door, made.network, made.pool, path, await made.header(door))).path
        if real:
            assert path.positions[0].fees() == made.close(liquidity).fees
        made.chain.revert(mark)
        paths.append(path)
    paper, real = paths
    fees = zip(paper.positions[0].fees(), real.positions[0].fees(), strict=True)
    reach = _over(paper.sqrt_price_x96 - opening.sqrt_price_x96, real.sqrt_price_x96 - opening.sqrt_price_x96)
    return Bias(made.pool.venue, flow, share_ppm, paper.swaps, tuple(_over(*pair) for pair in fees), reach)


def _over(paper: int, real: int) -> int:
    """How far one is above the other, in ppm."""
    return (paper - real) * 1_000_000 // real if real else 0


def _moves(made: TwinPool, flow: str, price: int) -> list[list[Move]]:
    """The same flow each time; what it does follows from its name only."""
    random = Random(flow)
    moves = [_move(made, flow, random, at) for at in range(BLOCKS * MOVES_IN_ONE)]
    return [moves[at : at + MOVES_IN_ONE] for at in range(0, len(moves), MOVES_IN_ONE)]


def _move(made: TwinPool, flow: str, random: Random, at: int) -> Move:
    falls = at % 2 == 1
    kind = random.choice(("amounts", "prices")) if flow == "mixed" else flow
    if kind == "one way":
        return (SWAP, False, 0, 0, _amount(made, random, False) // 20, sqrt_price_at(made.start + OUTER_TICKS), 0)
    if kind == "amounts":
        return (SWAP, falls, 0, 0, _amount(made, random, falls), sqrt_price_at(made.start + (-OUTER_TICKS if falls else OUTER_TICKS)), 0)
    most = 3 * RANGE_TICKS if flow == "through" else INNER_TICKS
    goal = made.start + (-1 if falls else 1) * random.randint(1, most)
    return (SWAP, falls, 0, 0, EVERYTHING, sqrt_price_at(goal), 0)


def _amount(made: TwinPool, random: Random, falls: bool) -> int:
    """An amount of the token that comes in, worth up to half a percent of the price; a little more of what lifts it."""
    price = sqrt_price_at(made.start)
    size = random.randint(LIQUIDITY // 1_000, LIQUIDITY // 250)
    return (size << 96) // price if falls else (size * 11 // 10 * price) >> 96


def table_of(rows: list[Bias]) -> Table:
    """The table as printed."""
    headings = ("venue", "flow", "Lp/L", "swaps", "fees 0", "fees 1", "expected", "reach", "holds")
    cells = [
        (
            row.venue, row.flow, f"{row.share_ppm} ppm", row.swaps, f"{row.fees_ppm[0]} ppm", f"{row.fees_ppm[1]} ppm",
            f"{row.expected[0]} … {row.expected[1]} ppm", f"{row.reach_ppm} ppm" if row.flow == "one way" else None, "yes" if row.holds else "NO",
        )
        for row in rows
    ]  # fmt: skip
    return Table(
        name="liquidity_bias",
        title="Bias of paper liquidity: fees of a paper position against those of a real one in the same flow",
        basis=Basis(label="devnet", n=len(rows), of="flows", claim="where Lp / L says"),
        columns=tuple(Column(heading, heading) for heading in headings),
        rows=tuple(cells),
        note=f"{sum(row.holds for row in rows)} of {len(rows)} lines hold; within {ROUNDING_PPM} ppm of rounding",
    )


async def _main() -> int:
    with Devnet.build(seed=7, height=40) as chain:
        rows = [row async for row in biases(chain)]
    print(table_of(rows).text())
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
